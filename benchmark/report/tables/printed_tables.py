"""The papers' printed tables beside ours, and the sweeps as one table.

A printed cell has our value, below it the difference to the published one and the verdict; the
page shows the rest on demand. A value of a sweep stands beside its default, with claims about it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import pandas as pd

from benchmark.core.words import DASH, count, finite, interval, mean_sd, signed, words_of
from benchmark.published.paper import Footnote, Papers
from benchmark.published.schema import Paper, PrintedTable, PublishedNumber
from benchmark.report.artefacts import PlannedArtefact
from benchmark.report.labels import metric_label
from benchmark.report.row_types import ClaimRow, PrintedRow, SweptRow
from benchmark.report.study_results import StudyResults, records, rows_of
from benchmark.report.table import (
    TONES,
    Column,
    Line,
    Section,
    Table,
    TableCell,
    filled,
    marks,
    words,
)
from benchmark.report.tables.pair_tests import test_columns
from benchmark.stats.reproduction import DRIFTED, REPRODUCED
from benchmark.verdicts.verdicts import EPOCHS, HIGH, INCONCLUSIVE, LOW

PARTS = (
    "ours", "ours sd", "ours n", "published", "published sd", "published n",
    "difference", "low", "high", "other epoch",
)  # fmt: skip
WORDS = ("verdict", "verdict at the other epoch", "footnote", "reason")
MARK = "§"  # beside a verdict that rests on something unsure
MARKED = (
    f"{MARK} Something is assumed or unknown, or the verdict does not stand if laboratories differ "
    "as they are known to: the cell's tooltip and the CSV file say what."
)
# Beside a difference, with the colour of the verdict.
SIGNS = {REPRODUCED: "=", f"{DRIFTED} {LOW}": "↓", f"{DRIFTED} {HIGH}": "↑", INCONCLUSIVE: "?"}
ACROSS = 7  # columns of numbers that fit beside one another
_FACTS = ("backbone", "embedding_dim", "batch_size", "dataset", "metric")
Key = tuple[str, ...]
Rows = Mapping[tuple[str, int], PrintedRow]  # of ``printed_numbers``, by source and line
SWEEPS = "The sweeps in numbers"


class PrintedEntry(NamedTuple):
    """One published number with its row of the verdicts, its footnote and the letter of that.

    marks   letters of what the paper says against itself of the number
    """

    number: PublishedNumber
    ours: PrintedRow
    note: Footnote | None
    letter: str
    marks: str


# By section, row and column.
Entries = dict[tuple[Key, Key, Key], PrintedEntry]


def paper_tables(inputs: StudyResults) -> Iterator[PlannedArtefact]:
    """Yield the printed tables that the study references, then that of its finished sweeps."""
    rows = {row.Index: row for row in records(inputs.printed.numbers, PrintedRow)}
    told: set[str] = set()
    papers = inputs.papers
    for paper, name in papers.arranged(inputs.study.references.published):
        title = f"{papers.cite(paper.source, name)}: {paper.tables[name].title}"
        against = inputs.printed.against.get(f"{paper.source}_{name}", ())
        first = paper.source not in told
        make = partial(paper_table, papers, paper, name, rows, first=first, against=against)
        told.add(paper.source)
        yield PlannedArtefact(f"{paper.source}_{name}", title, "paper", make)
    if len(inputs.printed.sweeps):
        yield PlannedArtefact("sweeps", SWEEPS, "sweep", partial(sweep_table, inputs))


def paper_table(
    papers: Papers,
    paper: Paper,
    name: str,
    rows: Rows,
    *,
    first: bool = True,
    against: Sequence[str] = (),
) -> Table:
    """Return a printed table in the paper's arrangement.

    The ``first`` of a paper says by which rule our epochs were chosen. ``against``: values that
    follow the authors' code against the text.
    """
    table = paper.tables[name]
    notes = papers.footnotes(paper, name)
    numbers = paper.table(name)
    distinct = dict.fromkeys(note.text for note in notes.values())
    for number in numbers:
        distinct |= dict.fromkeys(paper.remarks_on(number))
    letters = {text: f"[{chr(ord('a') + number)}]" for number, text in enumerate(distinct)}
    entries: Entries = {}
    for number in numbers:
        note = notes.get(number.line)
        read = partial(table.read, number)
        position = (
            tuple(map(read, table.sections)),
            tuple(map(read, table.rows)),
            tuple(map(read, table.columns)),
        )
        ours = rows[number.source, number.line]
        letter = letters[note.text] if note else ""
        remarked = "".join(letters[text] for text in paper.remarks_on(number))
        entries[position] = PrintedEntry(number, ours, note, letter, remarked)
    heads = _heads(entries)
    named = paper.vocabulary.name
    columns = [Column((named("field", field),), numeric=False) for field in table.rows]
    for head in heads:
        names = [
            named(field, value) for field, value in zip(table.columns, head, strict=True) if value
        ]
        above = ("",) * (len(head) - len(names))
        columns.append(Column((*above, *names), PARTS, words=WORDS))
    runs = max((int(entry.ours.ours_n) for entry in entries.values()), default=0)
    sections = [
        _section(paper, table, section, heads, entries, runs)
        for section in dict.fromkeys(section for section, _, _ in entries)
    ]
    remarks = []
    if any(_unsure(entry.ours) for entry in entries.values()):
        remarks.append(MARKED)
    remarks += [f"{letter} {text}" for text, letter in letters.items()]
    if against:
        remarks.append(f"As in the authors' code, against the text: {'; '.join(against)}.")
    return Table(
        f"{papers.cite(paper.source, name)}: {table.title}",
        _caption(paper, table, list(entries.values()), runs, first),
        columns,
        sections,
        [*remarks, *paper.about.deviations],
        across=ACROSS,
    )


def _heads(entries: Entries) -> list[Key]:
    """Return the heads of the columns: equal upper levels stand together, as in the print."""
    printed = [head for _, _, head in entries]
    levels = [list(dict.fromkeys(level)) for level in zip(*printed, strict=True)]

    def order(head: Key) -> list[int]:
        return [level.index(value) for level, value in zip(levels, head, strict=True)]

    return sorted({*printed}, key=order)


def _section(
    paper: Paper, table: PrintedTable, section: Key, heads: list[Key], entries: Entries, runs: int
) -> Section:
    """Return the rows of one section; ``runs`` is the number of runs that most numbers have."""
    labels = list(dict.fromkeys(label for other, label, _ in entries if other == section))
    lines = []
    counts = []
    for label in labels:
        texts = []
        for field, value in zip(table.rows, label, strict=True):
            texts.append(TableCell(paper.vocabulary.name(field, value) or DASH))
        row = [entries[section, label, head] for head in heads if (section, label, head) in entries]
        if not any(entry.number.reproducible for entry in row):
            texts[0] = replace(texts[0], note="quoted")
        counts_of_row = {int(entry.ours.ours_n) for entry in row if entry.ours.ours_n}
        n = runs
        if len(counts_of_row) == 1:
            n = min(counts_of_row)
        if n != runs:
            texts[0] = replace(texts[0], note=f"n={n}")
        counts.append(n)
        lines.append(texts)
    for head in heads:
        column = [entries.get((section, label, head)) for label in labels]
        scores = [  # times have no best
            entry.ours.ours_mean if entry and entry.number.judged else None for entry in column
        ]
        printed = pd.Series(scores, dtype=float).map(lambda score: round(score, 2))
        for line, entry, mark, n in zip(lines, column, marks(printed), counts, strict=True):
            line.append(_cell(entry, mark, n))
    title = []
    for field, value in zip(table.sections, section, strict=True):
        title.append(_valued(paper, field, value))
    return Section(" · ".join(title), lines)


def _valued(paper: Paper, field: str, value: str) -> str:
    """Return a value that explains itself: "batch size 64", "ResNet-50"."""
    words = {"batch_size": "batch size {}", "embedding_dim": "{}-d embedding"}
    return words.get(field, "{}").format(paper.vocabulary.name(field, value))


def _unsure(ours: PrintedRow) -> bool:
    return ours.stands is False or ours.assumed


def _cell(entry: PrintedEntry | None, mark: str, seeds: int) -> TableCell:
    if entry is None:
        nothing = (None,) * len(PARTS)
        return TableCell(DASH, numbers=nothing, words=("",) * len(WORDS), tone="muted")
    number, ours, note, letter, remarked = entry
    runs = None if number.n_runs is None else float(number.n_runs)
    mean = finite(ours.ours_mean)
    sd = finite(ours.ours_sd)
    both = (mean, sd, int(ours.ours_n) or None, number.points, number.sd_points, runs)
    test = (ours.difference, ours.ci_low, ours.ci_high, ours.other_mean)
    numbers = (*both, *map(finite, test))
    printed = number.text
    if number.sd_points is not None:
        printed += f" ± {number.sd_points:.2f}"
    if runs:
        printed += f" (n={runs:.0f})"
    if note:
        printed += f" / {note.value} {letter}"
    if remarked:
        printed += f" {remarked}"
    verdict = f"{ours.verdict} {ours.direction}".strip()
    footnote = note.text if note else ""
    words = (verdict or ours.instead, ours.other_verdict, footnote, ours.reason)
    if not number.reproducible:
        return TableCell(printed, numbers=numbers, words=words, tone="muted")
    small = ""
    if mean is not None:
        text = f"{mean:.2f}"
        if sd is not None:
            text += f" ± {sd:.2f}"
        if ours.ours_n != seeds:
            small = f"n={ours.ours_n:.0f}"
    elif ours.verdict == DRIFTED:
        text = "diverged"
    else:
        text = "not run" if number.kind.measured else "not measured"
    if mean is None or ours.instead:
        judged = [
            Line(f"published {printed}"),
            Line(number.kind.says if ours.instead else "", "muted"),
        ]
    else:
        by = f"{SIGNS[verdict]} {signed(ours.difference)} from {number.text}"
        if _unsure(ours):
            by += f" {MARK}"
        second = f"or from {note.value} {letter}" if note else ""
        judged = [Line(f"{by} {remarked}".rstrip(), TONES[ours.verdict]), Line(second)]
    lines = tuple(each for each in judged if each.text)
    tooltip = "\n".join(_tooltip(printed, verdict, ours))
    tone = "" if ours.ours_n else "muted"
    return TableCell(text, mark, small, numbers, tone, lines, words, tooltip)


def _tooltip(printed: str, verdict: str, ours: PrintedRow) -> Iterator[str]:
    if verdict in SIGNS:
        yield verdict
    yield f"published {printed}; ours n={ours.ours_n:.0f}"
    if finite(ours.ci_low) is not None:
        span = interval(ours.ci_low, ours.ci_high, signed)
        yield f"ours − published: {signed(ours.difference)} {span}"
    if finite(ours.other_mean) is not None and finite(ours.ours_mean) is not None:
        gain = ours.ours_mean - ours.other_mean
        rule = "last"
        if ours.selection == "last":
            gain = -gain
            rule = "best"
        word = words_of(ours.other_verdict)
        yield f"{rule} epoch: {ours.other_mean:.2f} ({signed(gain)}), {word}"
    if finite(ours.stands) is not None:
        yield f"the verdict {'stands' if ours.stands else 'does not stand'}"
    if ours.reason:
        yield ours.reason


def _caption(
    paper: Paper, table: PrintedTable, entries: list[PrintedEntry], runs: int, first: bool
) -> str:
    own = [entry.number for entry in entries if entry.number.reproducible]
    rule = paper.selection[0]
    facts = []
    for field in _FACTS:
        values = {number.field(field) for number in own}
        if field == "batch_size":
            values.discard("")
        arranged = (*table.sections, *table.rows, *table.columns)
        if field not in arranged and len(values) == 1 and values != {""}:
            facts.append(_valued(paper, field, values.pop()))
    named = f": {', '.join(facts)}" if facts else ""
    parts = [f"Arranged as in {paper.about.citation}{named}."]
    if runs and first:
        parts.append(
            f"Each cell: ours {EPOCHS[rule]}, mean ± sd of {runs}; its difference from the print "
            "in points, with the verdict as a colour and a sign: = reproduced, ↑ ↓ drifted, "
            "? inconclusive."
        )
        why = "" if paper.about.epoch is None else paper.about.epoch.why.rstrip(".")
        silent = "The paper does not say which epoch its numbers are of"
        parts.append(f"That is the paper's rule: {why}." if why else f"{silent}.")
        parts.append("A cell's tooltip has the interval, and the result at the other epoch.")
    elif runs:
        parts.append(f"Ours: mean ± sd of {runs}.")
    else:
        parts.append("None of these numbers was run here; each cell gives the published value.")
    kinds = [entry.number.kind for entry in entries]
    parts += [kind.note for kind in paper.vocabulary.kinds.values() if kind in kinds]
    return " ".join(filter(None, parts))


def sweep_table(inputs: StudyResults) -> Table:
    """Return a section a sweep, with the test of each value against the default."""
    here = rows_of(inputs.claims, reading="here")
    verdicts = {row.claim: row.verdict for row in records(here, ClaimRow)}
    values = inputs.printed.sweeps
    most = values["score_n"].max()
    answers: dict[int, str] = {}  # by the first row of a sweep
    rows: list[tuple[str, SweptRow]] = []
    for title, group in values.groupby("title", sort=False):
        first = next(records(group, SweptRow))
        heading = [f"{title}" if first.option in first.title else f"{title} ({first.option})"]
        heading += [metric_label(first.metric)]
        if finite(first.batch_size) is not None:
            heading.append(f"batch size {first.batch_size:.0f}")
        rows += [(" · ".join(heading), each) for each in records(group, SweptRow)]
        answers[first.Index] = "; ".join(
            f"{name}: {words_of(verdicts[name])}" for name in first.claims if name in verdicts
        )

    def value(row: SweptRow) -> TableCell:
        return TableCell(row.value or f"{inputs.label(row.loss)} alone", words=(row.option,))

    def score(row: SweptRow) -> TableCell:
        note = "" if row.score_n == most else f"n={row.score_n}"
        behind = (row.score, finite(row.score_sd), row.score_n)
        return TableCell(mean_sd(row.score, row.score_sd), note=note, numbers=behind)

    def of_test(column: Column, default: TableCell) -> Column:
        return replace(column, cell=lambda row: default if row.is_default else column.cell(row))

    difference, span, outcome, _, p_holm, _, detectable, _ = test_columns(inputs)
    noted = replace(difference, cell=lambda row: replace(difference.cell(row), note=row.note))
    one, two = (TableCell(DASH, numbers=(None,) * parts) for parts in (1, 2))
    columns = [
        Column(("Value",), numeric=False, words=("of option",), cell=value),
        Column(("Score",), parts=("mean", "sd", "n"), cell=score),
        of_test(noted, TableCell("default", tone="muted")),
        of_test(span, two),
        of_test(outcome, TableCell(DASH)),
        of_test(p_holm, one),
        words("Claims, and what this study says of them", lambda row: answers.get(row.Index, "")),
        of_test(detectable, one),
    ]
    caption = (
        f"Test scores in percent at the last epoch, mean ± standard deviation over n = {most} "
        "seeds (other n is noted). Differences are to the default setting of the sweep, paired by "
        f"seed, in percentage points with their {inputs.confidence} interval; p is that of the "
        "two-sided paired t-test, with the spread that all values of the sweep share, after Holm's "
        "correction. Detectable: the smallest true difference that this many seeds would have "
        "shown with probability 0.8."
    )
    number = values["p_holm"].notna().sum()
    note = (
        f"Holm families at level {inputs.study.comparison.alpha:g}: the settings of one sweep "
        f"each, {count(len(answers), 'sweep')} with {count(number, 'test')}."
    )
    return filled(SWEEPS, caption, columns, rows, [note])
