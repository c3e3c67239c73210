"""What papers print and claim, beside ours; runs without a result; what networks saw before."""

import csv
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from operator import itemgetter

from benchmark.claims.claim_verdicts import luck
from benchmark.core.words import (
    DASH,
    count,
    finite,
    interval,
    p_value,
    plain,
    signed,
    whole,
    words_of,
)
from benchmark.published.laboratories import known_of_laboratories
from benchmark.report.labels import dataset_label, metric_label
from benchmark.report.row_types import ClaimRow, RunRow, VerdictRow
from benchmark.report.study_results import StudyResults, records
from benchmark.report.table import (
    TONES,
    Column,
    Line,
    NothingToShow,
    Table,
    TableCell,
    filled,
    number_cell,
    numbers,
    words,
)
from benchmark.report.tables import TABLES
from benchmark.study.data_files import PACKAGE, PRETRAINING
from benchmark.verdicts.explain import QUESTIONS, rule
from benchmark.verdicts.verdicts import NOT_RUN, PRINT_IN_CLAIMS

# Short words for the sensitivity assumptions of ``benchmark.stats.reproduction``.
ASSUMPTION_WORDS = {
    "spread": "published spread ×2",
    "best_of_3": "best of 3",
    "tails": "heavy tails",
    "laboratory": "laboratories differ",
}
FROZEN = "Frozen runs of this study"
STANDS = {True: "good", False: "unsure"}  # tones
READINGS = {"published": "As published", "here": "As far as it was run here"}
Readings = dict[str, ClaimRow]  # of one claim, by name
ClaimCell = Callable[[ClaimRow], TableCell]
_MEANING = {  # the gravest first
    "failed": "the job ended with an error",
    "diverged": "the loss became infinite or not a number: a result, shown as such",
    "stale": "made from another specification than that of the study now",
    "missing": "not run yet",
}
PACKAGED = "in1k"  # of the weights that come as a Python package


@TABLES.register("published", display="Published and frozen numbers beside ours")
def published(inputs: StudyResults) -> Table:
    """Return one row per reference number that was run."""
    every = inputs.some("verdicts")
    verdicts = every[every["verdict"] != NOT_RUN]
    if verdicts.empty:
        raise NothingToShow(f"none of {count(len(every), 'reference number')} was run")

    remarks = {
        (number.source, number.line): " ".join(paper.remarks_on(number))
        for paper in filter(None, map(inputs.papers.of, sorted(set(verdicts["source"]))))
        for number in paper.numbers
    }

    def reason(row: VerdictRow) -> str:
        """Return the reason for the verdict, and what the paper says against itself."""
        return " ".join(filter(None, (row.reason, remarks.get((row.source, row.line)))))

    def verdict(row: VerdictRow) -> TableCell:
        text = f"{words_of(row.verdict)} {row.direction}".strip()
        return TableCell(text, tone=TONES[row.verdict], note="interim" if row.interim else "")

    def stands(row: VerdictRow) -> TableCell:
        if finite(row.stands) is None:
            return TableCell(DASH, numbers=(None, None))
        points = finite(row.tip_laboratory)
        ratio = finite(row.tip_ratio)
        note = "" if points is None else f"up to laboratories {points:.1f} points apart"
        text = "yes" if row.stands else "no"
        changes = [ASSUMPTION_WORDS[name] for name in row.changes_under.split()]
        if changes:
            text += f"; changes under {', '.join(changes)}"
        return TableCell(text, note=note, numbers=(points, ratio), tone=STANDS[bool(row.stands)])

    def margin(value: float) -> str:
        return DASH if finite(value) is None else f"±{value:g}"

    def side(header: str, name: str) -> Column:
        def cell(row: VerdictRow) -> TableCell:
            mean, sd, n = (finite(getattr(row, f"{name}_{part}")) for part in ("mean", "sd", "n"))
            spread = "" if mean is None or sd is None else f" ± {sd:.2f}"
            note = "" if mean is None or n is None else f"n={n:.0f}"
            return TableCell(plain(mean) + spread, note=note, numbers=(mean, sd, n))

        return Column((header,), ("mean", "sd", "n"), cell=cell)

    columns = [
        words("Row as printed", lambda row: row.row_label or DASH),
        words("Verdict", verdict),
        Column(("Stands",), ("laboratories", "ratio of spreads"), numeric=False, cell=stands),
        words("Loss", lambda row: inputs.label(row.loss) or DASH),
        words("Dataset", lambda row: dataset_label(row.dataset) or DASH),
        Column(("Batch size",), cell=lambda row: number_cell(whole, row.batch_size)),
        words("Metric", lambda row: metric_label(row.metric) or DASH),
        side("Reference", "reference"),
        side("Ours", "ours"),
        numbers("Difference", signed, points="difference"),
        numbers("Interval", partial(interval, form=signed), low="ci_low", high="ci_high"),
        numbers("Margin", margin, points="margin"),
        numbers("p of drift (Holm)", p_value, value="p_holm"),
        words("Reason", lambda row: reason(row) or DASH),
    ]

    def section(row: VerdictRow) -> str:
        return FROZEN if row.source == "frozen" else f"{row.source} · {row.table}"

    rows = ((section(row), row) for row in records(verdicts, VerdictRow))
    text = rule(verdicts["level"].min())
    caption = (
        "Percentage points throughout; difference is ours minus the reference. The interval counts "
        f"the uncertainty of both sides. {text[:1].upper()}{text[1:]}. {QUESTIONS} Two further "
        "marks are named beside it: the published spread is twice ours, and scores have heavy "
        f"tails. {known_of_laboratories()} {PRINT_IN_CLAIMS}"
    )
    left = len(every) - len(verdicts)
    notes = [f"{count(left, 'further number')} not run: see verdicts.csv."] if left else []
    return filled("Published and frozen numbers beside ours", caption, columns, rows, notes)


@TABLES.register("outside", display="Published numbers outside of every study")
def outside(inputs: StudyResults) -> Table:
    """Return one row per printed table and reason; only for papers that the study covers whole."""
    asked = inputs.study.references.published
    printed = [number for number in inputs.papers.countable() if number.source in asked]
    if not printed:
        raise NothingToShow(
            "the study covers no paper as a whole, so none of its numbers can be left out"
        )
    left_out = Counter(
        (number.source, number.table, number.outside) for number in printed if number.outside
    )
    if not left_out:
        raise NothingToShow("every number that its authors trained belongs to a run of some study")
    columns = [
        words("Printed in", lambda row: inputs.papers.cite(*row[:2])),
        Column(("Numbers",), ("count",), cell=lambda row: number_cell(str, left_out[row])),
        words("Reason", lambda row: row[2]),
    ]
    caption = (
        f"{left_out.total()} of the {len(printed)} numbers that the authors of these papers "
        "trained themselves have no run here."
    )
    return filled(
        "Published numbers outside of every study",
        caption,
        columns,
        (("", row) for row in left_out),
    )


@TABLES.register("claims", display="Claims of the papers")
def claims(inputs: StudyResults) -> Table:
    """Return one row per claim that can be tested with runs of the study; a note counts the others.

    Claims of the papers that the study is about come first. The page folds the other claims.
    """
    name = inputs.study.name
    if inputs.claims.empty:
        raise NothingToShow(f"no claim has been tested: run 'python -m benchmark claims {name}'")
    pairs: dict[str, Readings] = {}
    for row in records(inputs.claims, ClaimRow):
        pairs.setdefault(row.claim, {})[row.reading] = row
    tested = []
    for pair in pairs.values():
        if {row.verdict for row in pair.values()} != {"not_run"}:
            tested.append(pair)
    if not tested:
        raise NothingToShow(f"no run of this study bears on any of {count(len(pairs), 'claim')}")
    papers = {name.partition("/")[0] for name in inputs.study.references.published}
    tested.sort(key=lambda pair: pair["here"].paper not in papers)
    own_papers = {pair["here"].paper for pair in tested if pair["here"].paper in papers}
    # Where no claim could be tested as published, its columns would say nothing but that.
    published = any(pair["published"].verdict != "not_run" for pair in tested)
    readings = [*READINGS] if published else ["here"]

    def sentence(pair: Readings) -> TableCell:
        row = pair["here"]
        below = (Line(row.claim),)
        tooltip = f"its condition: {pair['published'].condition}"
        cell = TableCell(row.sentence, note=row.stated_in, lines=below, words=(row.claim,))
        return replace(cell, title=tooltip)

    def rests_on(pair: Readings) -> str:
        first = pair["here" if pair["published"].verdict == "not_run" else "published"]
        why = pair["published"].outside
        return f"{first.reason}; not run as published: {why}" if why else first.reason

    columns = [
        Column(("What the paper says",), numeric=False, words=("name",), cell=sentence),
        replace(words("Its condition", lambda pair: pair["published"].condition), paged=False),
        *(column for reading in readings for column in _reading(reading)),
        words("Rests on (as published, else here)" if published else "Rests on", rests_on),
    ]
    caption = (
        "“As published” needs all of the paper's datasets, its backbone and its batch sizes; “as "
        "far as it was run here” needs one of the datasets and the backbone. Other runs, such as "
        "those on other data, cannot answer: the claim is not tested on them, and the numbers show "
        "the same comparison there without any verdict. A claim is supported when every part of it "
        "holds in a one-sided paired test, contradicted when some part shows the opposite after "
        "Holm, and after a control of false discoveries over all claims. The numbers are those of "
        "the part that decides, with the interval that its test uses. 'python -m benchmark explain "
        f"NAME --study {name}' prints every part of a claim, by the name below it. "
        f"{PRINT_IN_CLAIMS}"
    )
    notes = []
    if not published:
        notes = ["No run is under the conditions of a paper, so nothing is tested as published."]
    if rest := len(pairs) - len(tested):
        further = count(rest, "further claim")
        notes.append(f"{further} cannot be tested with the runs of this study.")
    judged = inputs.claims.loc[inputs.claims["p_contradicted"].notna(), "reading"].value_counts()
    notes += [f"{READINGS[each]}: {luck(judged[each])}." for each in readings if each in judged]
    reasons = [pair["published"].outside for pair in pairs.values() if pair["here"].paper in papers]
    for reason, number in Counter(filter(None, reasons)).items():
        undecidable = f"{count(number, 'claim')} of its papers as published"
        notes.append(f"No run of the suite can decide {undecidable}. {reason}.")
    rows = ((inputs.papers.name(pair["here"].paper), pair) for pair in tested)
    table = filled("Claims of the papers", caption, columns, rows, notes)
    return replace(table, opened=len(own_papers) or None)


def _reading(reading: str) -> list[Column]:
    """Return the columns of one reading of the claims."""

    def column(header: str, parts: tuple[str, ...], cell: ClaimCell) -> Column:
        head = (READINGS[reading], header)
        return Column(head, parts, numeric=bool(parts), cell=lambda pair: cell(pair[reading]))

    def deciding(row: ClaimRow) -> TableCell:
        text = DASH if finite(row.estimate) is None else f"{plain(row.estimate)} {row.unit}"
        span = interval(row.ci_low, row.ci_high, plain).replace(DASH, "")
        behind = tuple(map(finite, (row.estimate, row.ci_low, row.ci_high)))
        return TableCell(text, note=span, numbers=behind)

    def held(row: ClaimRow) -> TableCell:
        if not finite(row.parts_run):
            return TableCell(DASH, numbers=(None, None))
        return number_cell("{:.0f} of {:.0f}".format, row.parts_holding, row.parts)

    def verdict(row: ClaimRow) -> TableCell:
        tooltip = f"p {p_value(row.p)}; parts held: {held(row).text}"
        return TableCell(words_of(row.verdict), tone=TONES[row.verdict], title=tooltip)

    return [
        column("Verdict", (), verdict),
        column("Deciding part", ("estimate", "low", "high"), deciding),
        replace(column("p", ("value",), lambda row: number_cell(p_value, row.p)), paged=False),
        replace(column("Parts held", ("held", "parts"), held), paged=False),
    ]


@TABLES.register("missing", display="Runs without a result")
def missing(inputs: StudyResults) -> Table:
    """Return failed, diverged, stale and missing runs; NothingToShow when every run finished."""
    runs = inputs.runs
    lost = runs[runs["status"] != "ok"]
    if lost.empty:
        raise NothingToShow(
            f"nothing is missing: all {count(len(runs), 'run')} finished"
            if len(runs)
            else "no run is recorded for this study"
        )
    lost = lost.assign(order=lost["status"].map([*_MEANING].index))
    lost = lost.sort_values(["order", "dataset", "setting", "loss", "batch_size", "seed"])
    columns = [
        words("Status", lambda run: TableCell(run.status, tone=TONES[run.status])),
        words("Dataset · setting", lambda run: dataset_label(run.dataset, run.setting)),
        words("Loss", lambda run: inputs.label(run.loss)),
        numbers("Batch size", str, "batch_size"),
        numbers("Seed", str, "seed"),
        words("Reason", lambda run: run.reason or _MEANING[run.status]),
    ]
    counts = lost["status"].value_counts()
    parts = "; ".join(
        f"{counts[status]} {status} ({meaning})"
        for status, meaning in _MEANING.items()
        if status in counts
    )
    caption = f"{len(lost)} of {count(len(runs), 'run')} gave no usable number: {parts}."
    return filled(
        "Runs without a result", caption, columns, (("", run) for run in records(lost, RunRow))
    )


# One row for each kind of weights: ``tags`` are words of timm's weight tags, a column named like a
# dataset says whether they saw its test images, ``others`` the same of all other datasets.
FACTS = PACKAGE / PRETRAINING


@TABLES.register("pretraining", display="What networks were pretrained on")
def pretraining(inputs: StudyResults) -> Table:
    """Return a row for each pretrained network and dataset, and whether it may hold test images."""
    with open(FACTS, encoding="utf-8", newline="") as stream:
        facts = {tag: row for row in csv.DictReader(stream) for tag in row["tags"].split("|")}
    rows: dict[tuple[str, str], tuple[str, ...]] = {}
    for block in inputs.study.blocks:
        model = block.recipe.model
        if not model.pretrained:
            continue
        # The words of the weight tag that may say what a network was pretrained on: what it saw
        # first comes before what it was tuned on (fb_in22k_ft_in1k).
        tag = model.backbone.partition(".")[2]
        tags = [tag, *tag.split("_")]
        if model.checkpoint is not None:
            tags = [PACKAGED] if model.checkpoint.startswith("package:") else []
        known = next((facts[tag] for tag in tags if tag in facts), {})
        for dataset in block.datasets:
            name = dataset.params.get("of", dataset.name)
            seen = known.get(name, known.get("others", "not known"))
            if "glyphs" in name:
                seen = "no: drawn by this suite"
            rows[model.backbone, dataset.label] = (
                model.backbone,
                dataset_label(dataset.label, block.setting.label),
                known.get("pretrained_on", "not known"),
                seen,
                known.get("source", "none"),
            )
    if not rows:
        raise NothingToShow("no network of this study is pretrained")
    heads = ("Network", "Dataset · setting", "Pretrained on", "May hold test images", "Source")
    columns = [words(head, itemgetter(at)) for at, head in enumerate(heads)]
    caption = (
        "What each network saw before this study. Where that may contain test images or classes, "
        "its scores say less about unseen classes than those of a network that saw none."
    )
    return filled(
        "What networks were pretrained on", caption, columns, (("", row) for row in rows.values())
    )
