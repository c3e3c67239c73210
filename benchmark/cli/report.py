"""The verbs behind the runs: report and gallery, verdicts, claims, closer looks, references."""

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from typer import Argument, BadParameter, Exit, Option

from benchmark.cli import (
    MAX_SEED,
    Results,
    StudyName,
    app,
    echo,
    file_to_write,
    folder_to_write,
    load,
    load_runs,
)
from benchmark.core.environment import choose_kernels
from benchmark.core.errors import ConfigError
from benchmark.core.files import write_text
from benchmark.core.records import RESULTS


@app.command()
def build(study: StudyName, results: Results = RESULTS) -> None:
    """Build verdicts, tables, figures and the report.

    What cannot be made is named on the page and in report/failed.txt, and costs none of the rest.

    Example: python -m benchmark build embedded
    """
    _build(study, results)


for _gone in ("stats", "papers", "tables", "plots", "report"):  # what one step each made
    app.command(_gone, hidden=True, help="Now a part of 'build'.")(build)


@app.command()
def gallery(
    study: StudyName,
    first: str | None = Option(None, help="loss on top; default: the study's baseline"),
    second: str | None = Option(None, help="loss below it; default: the best of the others"),
    batch_size: int | None = Option(
        None, help="default: where the second is best", min=2, max=1_000_000
    ),
    seed: int | None = Option(None, help="default: the first that both have", min=0, max=MAX_SEED),
    results: Results = RESULTS,
) -> None:
    """Build STUDY with a gallery of two losses.

    Example: python -m benchmark gallery embedded --first sup_ap --second roadmap --batch-size 32
    """
    _build(study, results, first, second, batch_size, seed)


def _build(study: str, results: Path, *chosen: Any) -> None:
    from benchmark.core.records import PAGE
    from benchmark.report.build import build
    from benchmark.report.gallery import PairChoice

    loaded = load(study, results)
    built = build(loaded, results, PairChoice(*chosen))
    for kind in ("table", "figure"):
        echo(f"{kind}s:")
        for each in built.artefacts:
            if each.kind == kind:
                made = f"nothing to show: {each.reason}" if each.reason else f"{each.rows} rows"
                echo(f"  {each.name}: {made}")
    echo(f"gallery: {'' if built.gallery.pairs else f'nothing to show: {built.gallery.reason}'}")
    pair = "  {dataset} {setting} batch size {batch_size} seed {seed}: {second[display]} against "
    queries = "    of {recorded} queries {improved} improved, {worsened} worsened"
    for shown in built.gallery.pairs:
        echo(f"{pair}{{first[display]}}".format(**shown["pair"]))
        echo(queries.format(**shown))
    for name, reason in built.failed.items():
        echo(f"not made: {name} ({reason})", err=True)
    echo(loaded.folder(results) / PAGE)


@app.command()
def verdicts(study: StudyName, results: Results = RESULTS) -> None:
    """Judge every reference number of STUDY.

    Writes results/STUDY/verdicts.csv and verdicts_other.csv.

    The second has the other reading of the epoch: see docs/statistics.md.

    Example: python -m benchmark verdicts embedded
    """
    from benchmark.papers.judging import write_verdicts

    loaded, table = load_runs(study, results)
    folder = loaded.folder(results)
    frozen = loaded.references.frozen
    if frozen and not Path(frozen).is_file():
        advice = f"'python -m benchmark freeze {loaded.name}' writes them"
        echo(f"no frozen runs at {frozen} yet: {advice}", err=True)
    write_verdicts(loaded, table, folder)
    echo(f"wrote {folder / 'verdicts.csv'}, {folder / 'verdicts_other.csv'}")


@app.command()
def check(
    study: StudyName,
    results: Results = RESULTS,
    selection: str = Option(
        "paper", help="epoch: paper (its own rule), other, last, best, one_best, best_recall_at_1"
    ),
    every: bool = Option(False, "--any", help="status 1 for drifts that do not stand, too"),
) -> None:
    """Print the verdicts; exit status 1 if a drift stands.

    Standing is about the number, whoever trains it: see docs/verdicts.md. Frozen runs of our own
    have no other laboratory. Say also what has changed in the analysis since its registration.

    Example: python -m benchmark check embedded
    """
    from benchmark.papers.explain import fails, summary_text
    from benchmark.papers.judging import verdicts_of
    from benchmark.papers.registration import registration_state
    from benchmark.stats.reproduction import DRIFTED

    loaded, runs = load_runs(study, results)
    table = verdicts_of(loaded, runs, loaded.folder(results), selection)
    echo(summary_text(table))
    echo(f"\n{registration_state(loaded, results)}")
    if ((table["verdict"] == DRIFTED) if every else fails(table)).any():
        raise Exit(1)


@app.command()
def claims(
    study: str | None = Argument(None, metavar="[STUDY]", help="name or path of the study"),
    results: Results = RESULTS,
    listing: bool = Option(False, "--list", help="print the claims themselves, without any study"),
) -> None:
    """Test the papers' sentences on the runs of STUDY.

    Writes results/STUDY/claims.csv and claims_parts.csv.

    Example: python -m benchmark claims sweeps
    """
    from benchmark.papers.claim_verdicts import list_text, summary_text
    from benchmark.papers.paper import claims_of
    from benchmark.report.build import write_claims

    if listing:
        echo(list_text(claims_of()))
        return
    if study is None:
        raise BadParameter("give the name of a study, or --list")
    loaded, table = load_runs(study, results)
    folder = loaded.folder(results)
    judged = write_claims(loaded, table, folder)
    echo(f"wrote {folder / 'claims.csv'}, {folder / 'claims_parts.csv'}")
    echo(summary_text(judged))


@app.command()
def freeze(
    study: StudyName,
    results: Results = RESULTS,
    out: Path | None = Option(None, help="file to write; default: the study's frozen reference"),
    partial: bool = Option(False, "--partial", help="accept missing, failed or stale runs"),
) -> None:
    """Freeze the scores of STUDY's runs as its reference.

    Of a study whose settings trials chose, trials and final runs are frozen, into a folder.

    Example: python -m benchmark freeze embedded --out results/reference/embedded.csv
    """
    from benchmark.papers.frozen import freeze as freeze_runs
    from benchmark.runs.run_table import RunTable, freeze_field

    loaded, table = load_runs(study, results)
    if chosen_by := loaded.references.trials:
        folder = out or results / "reference" / chosen_by
        trials = RunTable.read(results / chosen_by)
        count = freeze_field(trials, table, loaded.metrics[0], folder)
        echo(f"froze {count} trials and final runs below {folder}")
        return
    own = loaded.references.frozen or results / "reference" / f"{loaded.name}.csv"
    target = out or Path(own)
    count = freeze_runs(table, target, metrics=list(loaded.metrics), partial=partial)
    echo(f"froze {count} runs in {target}")


LISTED = 25  # verdicts that fit and are named


@app.command()
def explain(
    cell: str = Argument(
        metavar="CELL", help="words of a verdict, separated by '/', or a claim's name"
    ),
    study: str = Option("embedded", "--study", help="name or path of the study"),
    results: Results = RESULTS,
    selection: str = Option("paper", help="epoch, as in 'check'"),
) -> None:
    """Print the calculation behind one verdict.

    Raw runs, reference, standard error, both tests and Holm.

    CELL is any words of the verdict's row, in any order: of the printed table or of the run.
    '*' stands for anything.

    Example: python -m benchmark explain glyphs_1k/sup_ap/bs32/map_at_r

    Example: python -m benchmark explain roadmap2021v2/table1/SmoothAP/cub --study roadmap

    Example: python -m benchmark explain sup_ap_beats_smooth_ap
    """
    from benchmark.papers.claim_verdicts import explain_claim, judge_study_claims
    from benchmark.papers.explain import explain as explain_verdict
    from benchmark.papers.explain import find_verdicts, key_of
    from benchmark.papers.judging import sides_of_study, verdicts_of
    from benchmark.papers.paper import claims_of
    from benchmark.papers.quantities import gap_decreases

    loaded, table = load_runs(study, results)
    claims = {claim.name: claim for claim in claims_of(loaded.name)}
    if cell in claims:
        judged = judge_study_claims(loaded, table, gap_decreases(loaded.folder(results)))
        echo(explain_claim(*(each[each["claim"] == cell] for each in judged)))
        return
    if near := difflib.get_close_matches(cell, claims, n=3):
        words = f"no such claim; near: {', '.join(near)}; 'claims --list' prints them all"
        raise ConfigError(f"cell {cell}", [words])
    verdicts = verdicts_of(loaded, table, loaded.folder(results), selection)
    found = find_verdicts(verdicts, cell)
    if len(found) == 1:
        sides = sides_of_study(loaded, table, [selection])[selection]
        echo(explain_verdict(verdicts, found.index[0], sides, table))
        return
    echo(f"{len(found)} verdicts fit '{cell}'; add words of the one you mean:")
    shown: Iterable[Any] = found.head(LISTED).itertuples()
    for each in shown:
        echo(f"  {key_of(each)}: {each.verdict}")
    if len(found) > LISTED:
        echo(f"  and {len(found) - LISTED} more")
    raise Exit(2)


@app.command()
def compare(
    first: str = Argument(
        metavar="RUN", help="dataset/setting/loss/bs32/seed0, or without the seed"
    ),
    second: str = Argument(metavar="RUN", help="what it is compared with"),
    study: str | None = Option(
        None, "--study", help="whose test of two cells; default: with most losses beside them"
    ),
    results: Results = RESULTS,
) -> None:
    """Compare two runs, or all seeds of two cells.

    Specification, versions, scores, and the paired test of a study's report.

    Example: python -m benchmark compare glyphs_1k/test_resnet/smooth_ap/bs32
    glyphs_1k/test_resnet/sup_ap/bs32
    """
    from benchmark.stats.compare import compare_text

    echo(compare_text(first, second, results, load(study).name if study else "*"))


@app.command()
def fidelity(
    study: str | None = Argument(None, metavar="[STUDY]", help="name or path of a study"),
    every: bool | None = Option(
        None, "--all/--deviations", help="print all values, or those that may move a score"
    ),
    csv: Path | None = Option(None, help="write the table to this file", callback=file_to_write),
) -> None:
    """Compare values of recipes with papers and their code.

    All studies without STUDY.

    Prints the values that may move a score, and how many there are; --csv writes all.

    Example: python -m benchmark fidelity roadmap --all
    """
    import pandas as pd

    from benchmark.papers.fidelity import Row, as_text, study_ledger
    from benchmark.study import study_names

    rows = {
        (row.recipe, row.item): row
        for name in ([study] if study else study_names())
        for row in study_ledger(load(name))
    }
    if not rows:
        echo(f"the recipes of '{study}' follow no paper, so there is nothing to compare")
        return
    if every is None:
        every = csv is not None
    shown = [row for row in rows.values() if row.deviates or every]
    if csv:
        write_text(csv, pd.DataFrame(shown, columns=Row._fields).to_csv(index=False))
    echo(str(csv) if csv else as_text(rows.values(), shown))


ALL = "all"


@app.command()
def analyse(
    name: str | None = Argument(None, help="name of an analysis, or 'all'"),
    study: str = Argument("embedded", help="study whose first block says what is trained, and how"),
    out: Path | None = Option(
        None,
        help="folder to write; default: results/STUDY/analyses/NAME, or NAME-LABEL",
        callback=folder_to_write,
    ),
    dataset: str | None = Option(
        None, metavar="LABEL", help="train on another dataset of the study, with its first block"
    ),
    seed: list[int] | None = Option(
        None, help="repeat for several; default: the study's first 3", min=0, max=MAX_SEED
    ),
    quick: bool = Option(
        False, "--quick", help="tiny data, one epoch: a trial whose numbers mean nothing"
    ),
    listing: bool = Option(False, "--list", help="list the analyses and what they follow"),
    results: Results = RESULTS,
) -> None:
    """Make an analysis: figure, table and judged claims.

    Example: python -m benchmark analyse toy_ranking

    Example: python -m benchmark analyse decomposability_gap roadmap --dataset sop --seed 0
    """
    choose_kernels()
    from benchmark.analyses import ANALYSES

    if listing:
        for entry in ANALYSES:
            echo(f"{entry.name:22}{entry.display} ({'; '.join(entry.facts['places'])})")
        return
    if name is None:
        allowed = ", ".join([*ANALYSES.names(), ALL])
        raise ConfigError("analyse", [f"NAME is missing (allowed: {allowed})"])
    names = ANALYSES.names() if name == ALL else [ANALYSES[name].name]

    from benchmark.analyses.analysis import Context, make

    chosen = load(study, results)
    base = out or chosen.folder(results) / ("analyses-quick" if quick else "analyses")
    for position, each in enumerate(names, start=1):
        folder = base / (each if dataset is None else f"{each}-{dataset}")
        if out and name != ALL:
            folder = out
        echo(f"{each} ({position} of {len(names)})")
        context = Context(chosen, results, seed or (), quick, echo, dataset)
        for sentence in make(each, context, folder).sentences:
            echo(f"  {sentence}")
        echo(f"  written: {folder}")
