"""The papers' printed tables beside ours, and the sweeps as one table.

A printed cell has our value, below it the published one, the difference and the verdict. A value
of a sweep stands beside its default, with the papers' claims.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

import pandas as pd

from benchmark.papers.marks import SweptValue
from benchmark.papers.numbers import PublishedNumber
from benchmark.papers.paper import Footnote, Paper, arranged_tables, cite, footnotes
from benchmark.papers.printed import (
    NO_SCORE,
    OTHER_DATA,
    QUOTED,
    TIME,
    PrintedCell,
)
from benchmark.papers.quantities import BACKBONE_TIME, COUNTS, GAP, TIMES
from benchmark.papers.verdicts import DRIFTED, EPOCHS
from benchmark.report.inputs import Inputs, records
from benchmark.report.labels import confidence, loss_label, metric_label
from benchmark.report.numbers import DASH, count, interval, mean_sd, signed, words_of
from benchmark.report.pairs import test_fields
from benchmark.report.records import Part
from benchmark.report.table import (
    TONES,
    Column,
    Field,
    Line,
    Section,
    Table,
    TableCell,
    marks,
    text_column,
)
from benchmark.study import Study

PARTS = (
    "ours", "ours sd", "ours n", "published", "published sd", "published n",
    "difference", "low", "high", "other epoch",
)  # fmt: skip
WORDS = ("verdict", "verdict at the other epoch", "footnote")
UNJUDGED = {
    QUOTED: "",
    TIME: "no verdict on times",
    NO_SCORE: "no score, no verdict",
    OTHER_DATA: "other training set, no verdict",
}
_FACTS = ("backbone", "embedding_dim", "batch_size", "dataset", "metric")
Key = tuple[str, ...]
Cells = Mapping[tuple[str, str, int], PrintedCell]
SWEEPS = "sweeps"
SWEEPS_TITLE = "The sweeps in numbers"
# Of the cells of a test: difference, interval, outcome and p after Holm.
_SWEEP_CELLS, _DETECTABLE = (0, 1, 2, 4), 6


@dataclass(frozen=True)
class Entry:
    """One published number with our side of it and its footnote."""

    number: PublishedNumber
    ours: PrintedCell
    note: Footnote | None
    letter: str


def paper_tables(inputs: Inputs) -> Iterator[Part]:
    """Yield the printed tables that the study's references name, then that of its sweeps.

    The last is there where runs of some sweep have finished.
    """
    study, sweeps = inputs.study, inputs.printed.sweeps
    cells = {(each.source, each.table, each.line): each for each in inputs.printed.cells}
    for paper, name in arranged_tables(study.references.published):
        title = f"{cite(paper.source, name)}: {paper.tables[name].title}"
        make = partial(paper_table, paper, name, cells, study)
        yield Part(f"{paper.source}_{name}", title, "paper", make)
    if sweeps:
        yield Part(
            SWEEPS, SWEEPS_TITLE, "sweep", partial(_sweep_table, sweeps, inputs.claims, study)
        )


def paper_table(paper: Paper, name: str, cells: Cells, study: Study) -> Table:
    """Return one printed table in the paper's arrangement, literature rows included.

    A number without a cell was not run.
    """
    table, numbers = paper.tables[name], paper.table(name)
    notes = footnotes(paper, name)
    distinct = dict.fromkeys(note.text for note in notes.values())
    letters = {text: f"[{chr(ord('a') + number)}]" for number, text in enumerate(distinct)}
    entries: dict[tuple[Key, Key, Key], Entry] = {}
    for number in numbers:
        note = notes.get(number.line)
        key = (number.source, name, number.line)
        ours = cells.get(key, PrintedCell(*key))
        section, row, column = (
            tuple(table.read(number, field) for field in part)
            for part in (table.sections, table.rows, table.columns)
        )
        letter = letters[note.text] if note else ""
        entries[section, row, column] = Entry(number, ours, note, letter)

    heads = _ordered({key[2] for key in entries}, [key[2] for key in entries])
    columns = [
        Column((paper.vocabulary.name("field", field),), numeric=False) for field in table.rows
    ]
    columns += [Column(_head(paper, table.columns, head), PARTS, words=WORDS) for head in heads]
    sections = []
    for section in dict.fromkeys(key[0] for key in entries):
        labels = list(dict.fromkeys(key[1] for key in entries if key[0] == section))
        body = [[entries.get((section, label, head)) for head in heads] for label in labels]
        bold = [_marks([line[index] for line in body]) for index in range(len(heads))]
        lines = []
        for row_number, (label, row_entries) in enumerate(zip(labels, body, strict=True)):
            shown = [
                _cell(entry, bold[index][row_number]) for index, entry in enumerate(row_entries)
            ]
            lines.append([*_row_head(paper, table.rows, label, row_entries), *shown])
        values = zip(table.sections, section, strict=True)
        sections.append(Section(" · ".join(_valued(paper, *value) for value in values), lines))
    remarks = [f"{letter} {text}" for text, letter in letters.items()]
    return Table(
        f"{cite(paper.source, name)}: {table.title}",
        _caption(paper, name, list(entries.values()), study),
        columns,
        sections,
        [*remarks, *paper.about.deviations],
    )


def _ordered(found: set[tuple], seen: list[tuple]) -> list[tuple]:
    """Return the column keys with equal upper levels together, in the order of the print."""
    ranks: list[dict[str, int]] = [{} for _ in seen[0]]
    for key in seen:
        for level, value in enumerate(key):
            ranks[level].setdefault(value, len(ranks[level]))
    return sorted(found, key=lambda key: [ranks[level][value] for level, value in enumerate(key)])


def _valued(paper: Paper, field: str, value: str) -> str:
    """Return a value that explains itself: "batch size 64", "ResNet-50"."""
    words = {"batch_size": "batch size {}", "embedding_dim": "{}-d embedding"}
    return words.get(field, "{}").format(paper.vocabulary.name(field, value))


def _head(paper: Paper, fields: Key, head: Key) -> Key:
    names = zip(fields, head, strict=True)
    parts = tuple(paper.vocabulary.name(field, value) for field, value in names if value)
    return ("",) * (len(head) - len(parts)) + parts


def _row_head(
    paper: Paper, fields: Key, label: Key, entries: list[Entry | None]
) -> list[TableCell]:
    quoted = not any(entry.number.reproducible for entry in entries if entry)
    values = zip(fields, label, strict=True)
    cells = [TableCell(paper.vocabulary.name(field, value) or DASH) for field, value in values]
    return [TableCell(cells[0].text, note="quoted" if quoted else ""), *cells[1:]]


def _marks(entries: list[Entry | None]) -> list[str]:
    """Return the best and second of our values in one column; times have no best."""
    values = [
        round(entry.ours.mean, 2)
        if entry and entry.number.is_score and entry.ours.mean is not None
        else None
        for entry in entries
    ]
    return marks(values)


def _cell(entry: Entry | None, mark: str) -> TableCell:
    nothing = (None,) * len(PARTS)
    if entry is None:
        return TableCell(DASH, numbers=nothing, words=("",) * len(WORDS), tone="muted")
    number, ours, note = entry.number, entry.ours, entry.note
    value = number.points if number.is_score else float(number.value)
    spread = number.sd_points if number.is_score else number.std
    runs = None if number.n_runs is None else float(number.n_runs)
    both = (ours.mean, ours.sd, ours.n or None, value, spread, runs)
    numbers = (*both, ours.difference, ours.low, ours.high, ours.other)
    said = (
        number.text
        + ("" if spread is None else f" ± {spread:.2f}")
        + (f" (n={runs:.0f})" if runs else "")
    )
    verdict = f"{ours.verdict} {ours.direction or ''}".strip()
    words = (verdict, ours.other_verdict or "", note.text if note else "")
    if note:
        said += f" / {note.value} {entry.letter}"
    if ours.verdict == QUOTED:
        return TableCell(said, numbers=numbers, words=words, tone="muted")
    measurable = number.is_score or number.metric in (*TIMES, *COUNTS, GAP)
    text, small = _measured_text(ours, measurable=measurable)
    lines = (Line(f"published {said}"), *_outcome(ours))
    return TableCell(text, mark, small, numbers, "" if ours.n else "muted", lines, words)


def _measured_text(ours: PrintedCell, *, measurable: bool) -> tuple[str, str]:
    if ours.mean is None and ours.verdict == DRIFTED:
        return "diverged", ""
    if ours.mean is None:
        return "not run" if measurable else "not measured", ""
    return f"{ours.mean:.2f}" + ("" if ours.sd is None else f" ± {ours.sd:.2f}"), f"n={ours.n}"


def _outcome(ours: PrintedCell) -> list[Line]:
    if ours.verdict in UNJUDGED:
        return [Line(UNJUDGED[ours.verdict], "muted")]
    if ours.mean is None:
        return []
    lines = []
    if ours.difference is not None:
        span = "" if ours.low is None else f" {interval(ours.low, ours.high, signed)}"
        lines.append(Line(f"{signed(ours.difference)}{span}"))
    verdict = f"{words_of(ours.verdict)} {ours.direction or ''}".strip()
    lines.append(Line(verdict, TONES[ours.verdict]))
    if ours.other is not None:
        gain = ours.mean - ours.other
        by = signed(gain if ours.other_rule == "last" else -gain)
        words = words_of(ours.other_verdict or "")
        lines.append(Line(f"{ours.other_rule} {ours.other:.2f} ({by}): {words}", "muted"))
    return lines


def _other_reading(paper: Paper) -> str:
    """Return what a table says of the epoch that its numbers are of."""
    if paper.about.epoch is None:
        return (
            "The paper does not say which epoch its numbers are of. “best”: mean and verdict at "
            "the best test epoch of each metric, and in brackets the points that this choice adds."
        )
    why = paper.about.epoch.why.rstrip(".")
    if paper.selection == "last":
        return f"That is the paper's rule ({why}). “best”: the best test epoch of each metric."
    return (
        f"That is the paper's rule ({why}). “last”: mean and verdict at the last epoch, and in "
        "brackets the points that choosing the epoch on the test set adds."
    )


def _caption(paper: Paper, name: str, entries: list[Entry], study: Study) -> str:
    own = [entry.number for entry in entries if entry.number.reproducible]
    ours, metrics = [entry.ours for entry in entries], {number.metric for number in own}
    table = paper.tables[name]
    facts = []
    for field in _FACTS:
        values = {number.field(field) for number in own}
        values -= {""} if field == "batch_size" else set()
        arranged = (*table.sections, *table.rows, *table.columns)
        if field not in arranged and len(values) == 1 and values != {""}:
            facts.append(_valued(paper, field, values.pop()))
    source = paper.about.citation
    parts = [f"Arranged as in {source}" + (f": {', '.join(facts)}." if facts else ".")]
    if any(each.n for each in ours):
        parts.append(
            f"Each cell: ours {EPOCHS[paper.selection]}, mean ± sd; published; ours − published in "
            "points with its interval; the verdict."
        )
        parts.append(_other_reading(paper))
    else:
        parts.append("None of these numbers was run here; each cell gives the published value.")
    if any(each.verdict == QUOTED for each in ours):
        parts.append("Quoted rows are literature values as the paper prints them.")
    if metrics & set(TIMES):
        parts.append("Times belong to the machine that took them and get no verdict.")
    if BACKBONE_TIME in metrics:
        parts.append(
            "Our time of the backbone is that of a whole step less the loss: it counts the update "
            "and any wait for images as well."
        )
    if GAP in metrics:
        parts.append(
            "Our values come from 'analyse decomposability_gap' on each dataset, once it has been "
            "made."
        )
    return " ".join(parts)


def _sweep_table(values: Sequence[SweptValue], claims: pd.DataFrame, study: Study) -> Table:
    verdicts = {row.claim: row.verdict for row in records(claims) if row.reading == "here"}
    tests = test_fields(study)
    columns = [
        Column(("Value",), numeric=False, words=("of option",)),
        Column(("Score",), parts=("mean", "sd", "n")),
        *(tests[index].column for index in _SWEEP_CELLS),
        text_column("Claims, and what this study says of them"),
        tests[_DETECTABLE].column,
    ]
    most = max(each.score_n for each in values)
    sections = []
    for title, group in groupby(values, key=lambda each: each.title):
        part = list(group)
        first = part[0]
        swept = title if first.option in title else f"{title} ({first.option})"
        heading = [swept, metric_label(first.metric)]
        heading += [] if first.batch_size is None else [f"batch size {first.batch_size}"]
        told = "; ".join(
            f"{name}: {words_of(verdicts[name])}" for name in first.claims if name in verdicts
        )
        rows = [
            _sweep_row(row, most, tests, told if number == 0 else "", study)
            for number, row in enumerate(part)
        ]
        sections.append(Section(" · ".join(heading), rows))
    caption = (
        f"Test scores in percent at the last epoch, mean ± standard deviation over n = {most} "
        "seeds (other n is noted). Differences are to the default setting of the sweep, paired by "
        f"seed, in percentage points with their {confidence(study)} interval; p is that of the "
        "two-sided paired t-test after Holm's correction. Detectable: the smallest true difference "
        "that this many seeds would have shown with probability 0.8."
    )
    number = sum(each.p_holm is not None for each in values)
    notes = [
        f"Holm families at level {study.comparison.alpha:g}: the settings of one sweep each, "
        f"{count(len(sections), 'sweep')} with {count(number, 'test')}."
    ]
    return Table(SWEEPS_TITLE, caption, columns, sections, notes)


def _sweep_row(
    row: SweptValue, most: int, tests: list[Field], told: str, study: Study
) -> list[TableCell]:
    n = row.score_n
    score = TableCell(
        mean_sd(row.score, row.score_sd),
        note="" if n == most else f"n={n}",
        numbers=(row.score, row.score_sd, n),
    )
    if row.is_default:
        one, two = (TableCell(DASH, numbers=(None,) * parts) for parts in (1, 2))
        test = [TableCell("default", tone="muted"), two, TableCell(DASH), one]
        detectable = one
    else:
        difference, *others = (tests[index].cell(row) for index in _SWEEP_CELLS)
        test = [replace(difference, note=row.note), *others]
        detectable = tests[_DETECTABLE].cell(row)
    value = row.value or f"{loss_label(row.loss, study)} alone"
    return [TableCell(value, words=(row.option,)), score, *test, TableCell(told), detectable]
