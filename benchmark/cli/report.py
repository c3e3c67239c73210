"""The verbs after the runs: report, gallery, verdicts, claims, comparisons, frozen references."""

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from typer import Argument, BadParameter, Exit, Option

from benchmark.cli import (
    MAX_SEED,
    Results,
    StudyName,
    Verb,
    app,
    echo,
    file_to_write,
    folder_to_write,
    load,
    load_runs,
    place_to_write,
)
from benchmark.core.environment import choose_kernels
from benchmark.core.errors import ConfigError
from benchmark.core.files import write_text
from benchmark.core.records import RESULTS


@app.command()
def build(study: StudyName, results: Results = RESULTS) -> None:
    """Build verdicts, tables, figures and the report.

    A part that cannot be made is named on the page and in report/failed.txt; the rest is made.

    Example: python -m benchmark build embedded
    """
    _build(study, results)


for _former in ("stats", "papers", "tables", "plots", "report"):  # verbs of former versions
    app.command(_former, hidden=True, help="Now a part of 'build'.")(build)


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
        for artefact in built.artefacts:
            if artefact.kind == kind:
                content = f"{artefact.rows} rows"
                if artefact.reason:
                    content = f"nothing to show: {artefact.reason}"
                echo(f"  {artefact.name}: {content}")
    reason = "" if built.gallery.pairs else f"nothing to show: {built.gallery.reason}"
    echo(f"gallery: {reason}")
    runs = "  {dataset} {setting} batch size {batch_size} seed {seed}: "
    losses = "{second[display]} against {first[display]}"
    queries = "    of {recorded} queries {improved} improved, {worsened} worsened"
    for pair in built.gallery.pairs:
        echo((runs + losses).format(**pair["pair"]))
        echo(queries.format(**pair))
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
    from benchmark.verdicts.judging import write_verdicts
    from benchmark.verdicts.matching import StudyGrid

    loaded, table = load_runs(study, results)
    folder = loaded.folder(results)
    frozen = loaded.references.frozen
    if frozen and not Path(frozen).is_file():
        advice = f"'python -m benchmark freeze {loaded.name}' writes them"
        echo(f"no frozen runs at {frozen} yet: {advice}", err=True)
    write_verdicts(StudyGrid.of(loaded), table, folder)
    echo(f"wrote {folder / 'verdicts.csv'}, {folder / 'verdicts_other.csv'}")


@app.command()
def check(
    study: StudyName,
    results: Results = RESULTS,
    selection: str = Option(
        "paper", help="epoch: paper (its own rule), other, last, best, one_best, best_recall_at_1"
    ),
    every: bool = Option(False, "--any", help="status 1 also for drifts that do not stand"),
) -> None:
    """Print the verdicts; exit status 1 if a drift stands.

    A drift stands if it does not depend on the laboratory that trains: see docs/verdicts.md. Frozen
    runs have no other laboratory. Changes of the analysis since its registration are printed, too.

    Example: python -m benchmark check embedded
    """
    from benchmark.stats.reproduction import DRIFTED
    from benchmark.verdicts.explain import fails, summary_text
    from benchmark.verdicts.judging import verdicts_of
    from benchmark.verdicts.matching import StudyGrid
    from benchmark.verdicts.registration import registration_state

    loaded, runs = load_runs(study, results)
    grid = StudyGrid.of(loaded)
    table = verdicts_of(grid, runs, loaded.folder(results), selection)
    echo(summary_text(table))
    echo(f"\n{registration_state(grid, results)}")
    drifts = table["verdict"] == DRIFTED if every else fails(table)
    if drifts.any():
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
    from benchmark.claims.claim_verdicts import list_text, summary_text
    from benchmark.published.loading import load_papers
    from benchmark.report.build import write_claims
    from benchmark.verdicts.matching import StudyGrid

    if listing:
        echo(list_text(load_papers().claims()))
        return
    if study is None:
        raise BadParameter("give the name of a study, or --list")
    loaded, table = load_runs(study, results)
    folder = loaded.folder(results)
    judged = write_claims(StudyGrid.of(loaded), table, folder)
    echo(f"wrote {folder / 'claims.csv'}, {folder / 'claims_parts.csv'}")
    echo(summary_text(judged))


@app.command(cls=Verb)
def freeze(
    study: StudyName,
    results: Results = RESULTS,
    out: Path | None = Option(
        None,
        help="file to write; default: the study's frozen reference",
        callback=place_to_write,
    ),
    partial: bool = Option(False, "--partial", help="accept missing, failed or stale runs"),
    licence: str | None = Option(None, help="of a field: under which it may be used"),
    with_features: bool = Option(False, "--with-features", help="a field holds its features, too"),
) -> None:
    """Freeze the scores of STUDY's runs as its reference.

    Of a study with rules, trials and final runs are frozen as a field for 'challenge': a folder.

    Example: python -m benchmark freeze embedded --out results/reference/embedded.csv

    Example: python -m benchmark freeze reality_check --out my_field --licence CC-BY-4.0
    """
    from benchmark.runs.field import freeze_field
    from benchmark.runs.run_table import RunTable
    from benchmark.study.manifest import UNSTATED
    from benchmark.study.trials import selected_path
    from benchmark.verdicts.frozen import freeze as freeze_runs

    loaded, table = load_runs(study, results)
    if loaded.trials:
        folder = out or results / "reference" / loaded.name
        final = RunTable.read(results / selected_path(loaded, results).stem)
        count = freeze_field(
            loaded,
            table,
            final,
            folder,
            licence=licence or UNSTATED,
            with_features=with_features,
        )
        echo(f"froze {count} trials and final runs below {folder}")
        return
    if licence or with_features or loaded.references.trials:
        chosen_by = loaded.references.trials or "with rules"
        raise ConfigError(loaded.name, [f"is no field; 'freeze' the study {chosen_by} as one"])
    default = loaded.references.frozen or results / "reference" / f"{loaded.name}.csv"
    target = out or Path(default)
    count = freeze_runs(table, target, metrics=list(loaded.metrics), partial=partial)
    echo(f"froze {count} runs in {target}")


LISTED = 25  # fitting verdicts that are printed


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
    from benchmark.claims.claim_verdicts import explain_claim, judge_study_claims
    from benchmark.published.quantities import gap_decreases
    from benchmark.verdicts.explain import explain as explain_verdict
    from benchmark.verdicts.explain import find_verdicts, key_of
    from benchmark.verdicts.judging import pairs_of_study, verdicts_of
    from benchmark.verdicts.matching import StudyGrid

    loaded, table = load_runs(study, results)
    grid = StudyGrid.of(loaded)
    claims = {claim.name: claim for claim in grid.papers.claims(loaded.name)}
    if cell in claims:
        judged = judge_study_claims(grid, table, gap_decreases(loaded.folder(results)))
        echo(explain_claim(*(table[table["claim"] == cell] for table in judged)))
        return
    if near := difflib.get_close_matches(cell, claims, n=3):
        message = f"no such claim; near: {', '.join(near)}; 'claims --list' prints them all"
        raise ConfigError(f"cell {cell}", [message])
    verdicts = verdicts_of(grid, table, loaded.folder(results), selection)
    fitting = find_verdicts(verdicts, cell)
    if len(fitting) == 1:
        pairs = pairs_of_study(grid, table, [selection])[selection]
        echo(explain_verdict(verdicts, fitting.index[0], pairs, table))
        return
    echo(f"{len(fitting)} verdicts fit '{cell}'; add words of the one you mean:")
    shown: Iterable[Any] = fitting.head(LISTED).itertuples()
    for row in shown:
        echo(f"  {key_of(row)}: {row.verdict}")
    if len(fitting) > LISTED:
        echo(f"  and {len(fitting) - LISTED} more")
    raise Exit(2)


@app.command()
def compare(
    first: str = Argument(
        metavar="RUN", help="dataset/setting/loss/bs32/seed0, or without the seed"
    ),
    second: str = Argument(metavar="RUN", help="what it is compared with"),
    study: str | None = Option(
        None,
        "--study",
        help="study whose paired test is shown; default: the study with the most losses under "
        "the same condition",
    ),
    results: Results = RESULTS,
) -> None:
    """Compare two runs, or all seeds of two cells.

    Specification, versions, scores, and the paired test of a study's report.

    Example: python -m benchmark compare glyphs_1k/test_resnet/smooth_ap/bs32
    glyphs_1k/test_resnet/sup_ap/bs32
    """
    from benchmark.stats.compare import compare_text

    name = load(study).name if study else "*"
    echo(compare_text(first, second, results, name))


@app.command(cls=Verb)
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

    from benchmark.published.fidelity import Row, as_text, study_ledger
    from benchmark.study import study_names

    names = [study] if study else study_names()
    rows = {(row.recipe, row.item): row for name in names for row in study_ledger(load(name))}
    if not rows:
        echo(f"the recipes of '{study}' follow no paper, so there is nothing to compare")
        return
    if every is None:
        every = csv is not None
    shown = [row for row in rows.values() if row.deviates or every]
    if csv is None:
        echo(as_text(rows.values(), shown))
        return
    write_text(csv, pd.DataFrame(shown, columns=Row._fields).to_csv(index=False))
    echo(csv)


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

    loaded = load(study, results)
    base = out
    if base is None:
        parent = "analyses-quick" if quick else "analyses"
        base = loaded.folder(results) / parent
    for number, analysis in enumerate(names, start=1):
        folder = base / "-".join(filter(None, [analysis, dataset]))
        if out and name != ALL:
            folder = out
        echo(f"{analysis} ({number} of {len(names)})")
        context = Context(loaded, results, seed or (), quick, echo, dataset)
        for sentence in make(analysis, context, folder).sentences:
            echo(f"  {sentence}")
        echo(f"  written: {folder}")
