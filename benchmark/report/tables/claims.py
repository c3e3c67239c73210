"""The papers' sentences as tests: on the paper's whole condition, and on what of it was run."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from benchmark.papers.claim_verdicts import luck
from benchmark.papers.paper import paper_name
from benchmark.report.inputs import Inputs, records
from benchmark.report.numbers import DASH, count, finite, interval, p_value, plain, words_of
from benchmark.report.table import (
    TONES,
    Column,
    Line,
    NothingToShow,
    Table,
    TableCell,
    grouped,
    number_cell,
    text_column,
)
from benchmark.report.tables import TABLES

PUBLISHED, HERE = "published", "here"
READINGS = {PUBLISHED: "As published", HERE: "As far as it was run here"}


@TABLES.register("claims", display="Claims of the papers")
def build(inputs: Inputs) -> Table:
    """Return one row per claim that some run of the study bears on; a note counts the others."""
    name = inputs.study.name
    if inputs.claims.empty:
        raise NothingToShow(f"no claim has been tested: run 'python -m benchmark claims {name}'")
    pairs: dict[str, dict[str, Any]] = {}
    for row in records(inputs.claims):
        pairs.setdefault(row.claim, {})[row.reading] = row
    tested = [
        pair for pair in pairs.values() if any(row.verdict != "not_run" for row in pair.values())
    ]
    if not tested:
        raise NothingToShow(f"no run of this study bears on any of {count(len(pairs), 'claim')}")
    # Where no claim could be tested as published, its columns would say nothing but that.
    published = any(pair[PUBLISHED].verdict != "not_run" for pair in tested)
    readings = [PUBLISHED, HERE] if published else [HERE]
    columns = [
        Column(("What the paper says",), numeric=False, words=("name",)),
        text_column("Its condition"),
        *(column for reading in readings for column in _reading_columns(READINGS[reading])),
        text_column("Rests on (as published, else here)" if published else "Rests on"),
    ]
    caption = (
        "“As published” needs all of the paper's datasets, its backbone and its batch sizes; “as "
        "far as it was run here” needs one of the datasets and the backbone. Other runs, such as "
        "those on other data, cannot answer: the claim is not tested on them, and the numbers show "
        "the same comparison there without any verdict. A claim is supported when every part of it "
        "holds in a one-sided paired test, contradicted when some part shows the opposite after "
        "Holm, and after a control of false discoveries over all claims. The numbers are those of "
        "the part that decides, with the interval that its test uses. 'python -m benchmark explain "
        f"NAME --study {name}' prints every part of a claim, by the name below it."
    )
    notes = []
    if not published:
        notes.append(
            "No run is under the conditions of a paper, so nothing is tested as published."
        )
    if rest := len(pairs) - len(tested):
        notes.append(
            f"{count(rest, 'further claim')} cannot be tested with the runs of this study."
        )
    for reading in readings:
        judged = inputs.claims["p_contradicted"].notna() & (inputs.claims["reading"] == reading)
        if number := int(judged.sum()):
            notes.append(f"{READINGS[reading]}: {luck(number)}.")
    papers = {name.partition("/")[0] for name in inputs.study.references.published}
    never = Counter(
        str(pair[PUBLISHED].outside)
        for pair in pairs.values()
        if pair[PUBLISHED].paper in papers and _outside(pair[PUBLISHED])
    )
    notes += [
        f"No run of the suite can decide {count(number, 'claim')} of its papers as published. "
        f"{reason}."
        for reason, number in never.items()
    ]
    sections = grouped((paper_name(pair[HERE].paper), _row(pair, readings)) for pair in tested)
    return Table("Claims of the papers", caption, columns, sections, notes)


def _outside(row: Any) -> str:
    """Return why no run of the suite can decide a claim as published; "" where one can."""
    reason = getattr(row, "outside", "")
    return reason if isinstance(reason, str) else ""


def _reading_columns(group: str) -> list[Column]:
    return [
        text_column(group, "Verdict"),
        Column((group, "Deciding part"), parts=("estimate", "low", "high")),
        Column((group, "p"), parts=("value",)),
        Column((group, "Parts held"), parts=("held", "parts")),
    ]


def _row(pair: dict[str, Any], readings: Sequence[str]) -> list[TableCell]:
    published, here = pair[PUBLISHED], pair[HERE]
    rests_on = (here if published.verdict == "not_run" else published).reason
    outside = _outside(published)
    why = f"; not run as published: {outside}" if outside else ""
    return [
        TableCell(
            here.sentence, note=here.stated_in, lines=(Line(here.claim),), words=(here.claim,)
        ),
        TableCell(published.condition),
        *(cell for reading in readings for cell in _reading_cells(pair[reading])),
        TableCell(f"{rests_on}{why}"),
    ]


def _reading_cells(row: Any) -> list[TableCell]:
    estimate = f"{plain(row.estimate)} {row.unit}" if finite(row.estimate) is not None else DASH
    span = interval(row.ci_low, row.ci_high, plain)
    numbers = tuple(map(finite, (row.estimate, row.ci_low, row.ci_high)))
    ran = finite(row.parts_run)
    parts = (row.parts_holding, row.parts) if ran else (None, None)
    return [
        TableCell(words_of(row.verdict), tone=TONES[row.verdict]),
        TableCell(estimate, note="" if span == DASH else span, numbers=numbers),
        number_cell(p_value, row.p),
        number_cell(_of, *parts),
    ]


def _of(held: Any, parts: Any) -> str:
    return DASH if finite(held) is None else f"{held:.0f} of {parts:.0f}"
