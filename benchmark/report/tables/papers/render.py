"""One way to render every printed table: our value, below it the published one, the difference and the verdict."""

from __future__ import annotations

from typing import Any

import pandas as pd

from benchmark.metrics.names import display_name
from benchmark.papers.references.published import REPRODUCIBLE
from benchmark.papers.verdicts.vocabulary import DRIFTED
from benchmark.report.tables.numbers import DASH
from benchmark.report.tables.papers.arrangement import Arrangement, arrangements_for, names, results
from benchmark.report.tables.papers.costs import BACKBONE, COSTS
from benchmark.report.tables.papers.footnotes import footnotes, printed
from benchmark.report.tables.papers.gaps import GAP
from benchmark.report.tables.papers.ours import QUOTED, UNJUDGED, Measured, Ours
from benchmark.report.tables.published import VERDICT_TONES
from benchmark.report.tables.table import Cell, Column, Line, Section, Table, marks

PARTS = (
    "ours", "ours sd", "ours n", "published", "published sd", "published n", "difference", "low", "high", "best epoch",
)  # fmt: skip
WORDS = ("verdict", "verdict under best-epoch rule", "footnote")
_FACTS = ("backbone", "embedding_dim", "batch_size", "dataset", "metric")


def paper_tables(
    runs: pd.DataFrame, stats: dict[str, pd.DataFrame], study: Any
) -> dict[str, Table]:
    """Returns the printed tables that the study's references name, by name ("roadmap2021v2_table1")."""
    wanted = arrangements_for(study.references.published)
    measured = Measured(runs, stats, study)
    return {each.name: paper_table(each, measured) for each in wanted}


def paper_table(arrangement: Arrangement, measured: Measured) -> Table:
    """Returns one printed table in the paper's arrangement, literature rows included."""
    rows = results()
    rows = rows[(rows["paper"] == arrangement.paper) & (rows["table"] == arrangement.table)]
    ours = measured.rows(arrangement.paper, arrangement.table, rows)
    notes = footnotes(arrangement, rows)
    distinct = dict.fromkeys(note.text for note in notes.values())
    letters = {text: f"[{chr(ord('a') + number)}]" for number, text in enumerate(distinct)}
    cells: dict[tuple, dict] = {}
    for row, mine in zip(rows.to_dict("records"), ours, strict=True):
        note = notes.get(row["line"])
        letter = letters[note.text] if note else ""
        cells[_keys(arrangement, row)] = {"row": row, "ours": mine, "note": note, "letter": letter}

    heads = _ordered({key[2] for key in cells}, [key[2] for key in cells])
    columns = [Column((_name("field", name),), numeric=False) for name in arrangement.rows]
    columns += [Column(_head(arrangement, head), PARTS, words=WORDS) for head in heads]
    sections = []
    for section in dict.fromkeys(key[0] for key in cells):
        labels = list(dict.fromkeys(key[1] for key in cells if key[0] == section))
        body = [[cells.get((section, label, head)) for head in heads] for label in labels]
        bold = [_marks([line[index] for line in body]) for index in range(len(heads))]
        lines = []
        for number, (label, entries) in enumerate(zip(labels, body, strict=True)):
            shown = [_cell(entry, bold[index][number]) for index, entry in enumerate(entries)]
            lines.append([*_row_head(arrangement, label, entries), *shown])
        title = " · ".join(
            _valued(name, value) for name, value in zip(arrangement.sections, section, strict=True)
        )
        sections.append(Section(title, lines))
    remarks = [f"{letter} {text}" for text, letter in letters.items()]
    remarks += arrangement.deviations
    return Table(
        f"{arrangement.place}: {arrangement.title}",
        _caption(arrangement, rows, ours, measured),
        columns,
        sections,
        remarks,
    )


def _keys(arrangement: Arrangement, row: dict) -> tuple[tuple, tuple, tuple]:
    """Returns the section, row and column that a published value belongs to."""

    def value(name: str) -> str:
        text = "" if pd.isna(row[name]) else str(row[name])
        return arrangement.read_as.get(name, {}).get(text, text)

    return tuple(
        tuple(value(name) for name in part)
        for part in (arrangement.sections, arrangement.rows, arrangement.columns)
    )


def _ordered(found: set[tuple], seen: list[tuple]) -> list[tuple]:
    """Returns the column keys with equal upper levels together, each level in the order of the print."""
    ranks: list[dict[str, int]] = [{} for _ in seen[0]]
    for key in seen:
        for level, value in enumerate(key):
            ranks[level].setdefault(value, len(ranks[level]))
    return sorted(found, key=lambda key: [ranks[level][value] for level, value in enumerate(key)])


def _name(field: str, value: str) -> str:
    if field == "metric" and value not in names()["metric"]:
        return display_name(value)
    return names().get(field, {}).get(value, value)


def _valued(field: str, value: str) -> str:
    """Returns a value that explains itself: "batch size 64", "ResNet-50"."""
    words = {"batch_size": "batch size {}", "embedding_dim": "{}-d embedding"}
    return words.get(field, "{}").format(_name(field, value))


def _head(arrangement: Arrangement, head: tuple[str, ...]) -> tuple[str, ...]:
    parts = [
        _name(field, value) for field, value in zip(arrangement.columns, head, strict=True) if value
    ]
    return (
        ("",) * (len(head) - len(parts)) + tuple(parts) if len(parts) < len(head) else tuple(parts)
    )


def _row_head(
    arrangement: Arrangement, label: tuple[str, ...], entries: list[dict | None]
) -> list[Cell]:
    provenances = {entry["row"]["provenance"] for entry in entries if entry}
    quoted = not provenances & set(REPRODUCIBLE)
    cells = [
        Cell(_name(field, value) or DASH)
        for field, value in zip(arrangement.rows, label, strict=True)
    ]
    return [Cell(cells[0].text, note="quoted" if quoted else ""), *cells[1:]]


def _marks(entries: list[dict | None]) -> list[str]:
    """Returns the best and second of our values in one column; times have no best."""
    values = [
        round(entry["ours"].mean, 2)
        if entry and entry["row"]["score"] and entry["ours"].mean is not None
        else None
        for entry in entries
    ]
    return marks(values)


def _cell(entry: dict | None, mark: str) -> Cell:
    nothing = (None,) * len(PARTS)
    if entry is None:
        return Cell(DASH, numbers=nothing, words=("",) * len(WORDS), tone="muted")
    row, ours, note = entry["row"], entry["ours"], entry["note"]
    value = row["points"] if row["score"] else row["value"]
    spread = row["sd_points"] if row["score"] else row["std"]
    spread, runs = (None if pd.isna(each) else float(each) for each in (spread, row["n_runs"]))
    numbers = (ours.mean, ours.sd, ours.n or None, float(value), spread, runs)
    numbers += (ours.difference, ours.low, ours.high, ours.best)
    said = (
        printed(row)
        + ("" if spread is None else f" ± {spread:.2f}")
        + (f" (n={runs:.0f})" if runs else "")
    )
    words = (
        f"{ours.verdict} {ours.direction}".strip(),
        ours.best_verdict,
        note.text if note else "",
    )
    if note:
        said += f" / {note.value} {entry['letter']}"
    if ours.verdict == QUOTED:
        return Cell(said, numbers=numbers, words=words, tone="muted")
    text, small = _measured_text(ours, measurable=row["score"] or row["metric"] in (*COSTS, GAP))
    lines = (Line(f"published {said}"), *_outcome(ours))
    return Cell(text, mark, small, numbers, "" if ours.n else "muted", lines, words)


def _measured_text(ours: Ours, *, measurable: bool) -> tuple[str, str]:
    if ours.mean is None:
        return (
            "diverged" if ours.verdict == DRIFTED else "not run" if measurable else "not measured",
            "",
        )
    return f"{ours.mean:.2f}" + ("" if ours.sd is None else f" ± {ours.sd:.2f}"), f"n={ours.n}"


def _outcome(ours: Ours) -> list[Line]:
    if ours.verdict in UNJUDGED:
        return [Line(UNJUDGED[ours.verdict], "muted")]
    if ours.mean is None:
        return []
    lines = []
    if ours.difference is not None:
        span = "" if ours.low is None else f" [{_signed(ours.low)}, {_signed(ours.high)}]"
        lines.append(Line(f"{_signed(ours.difference)}{span}"))
    lines.append(
        Line(
            f"{ours.verdict.replace('_', ' ')} {ours.direction}".strip(),
            VERDICT_TONES[ours.verdict],
        )
    )
    if ours.best is not None:
        lines.append(Line(f"best {ours.best:.2f}: {ours.best_verdict.replace('_', ' ')}", "muted"))
    return lines


def _signed(value: float | None) -> str:
    return DASH if value is None else f"{value:+.2f}".replace("-", "−")


def _caption(
    arrangement: Arrangement, rows: pd.DataFrame, ours: list[Ours], measured: Measured
) -> str:
    own = rows[rows["provenance"].isin(REPRODUCIBLE)]
    arranged = {*arrangement.sections, *arrangement.rows, *arrangement.columns}
    facts = []
    for field in _FACTS:
        values = set(own[field].dropna().astype(str))
        if field not in arranged and len(values) == 1 and values != {""}:
            facts.append(_valued(field, values.pop()))
    parts = [f"Arranged as in {arrangement.source}" + (f": {', '.join(facts)}." if facts else ".")]
    if measured.stand_in:
        parts.append(
            f"Our values come from stand-in data ({measured.stand_in}) and only show the table: "
            "they are no reproduction of the published ones."
        )
    elif any(each.n for each in ours):
        parts.append(
            "Each cell: ours at the last epoch, mean ± sd; published; ours − published in points with its 90% "
            "interval; the verdict. “best”: mean and verdict under the papers' own rule, the best test epoch."
        )
    else:
        parts.append("None of these numbers was run here; each cell gives the published value.")
    if any(each.verdict == QUOTED for each in ours):
        parts.append("Quoted rows are literature values as the paper prints them.")
    if set(own["metric"]) & set(COSTS):
        parts.append("Times belong to the machine that took them and get no verdict.")
    if BACKBONE in set(own["metric"]):
        parts.append(
            "Our time of the backbone is that of a whole step less the loss: it counts the update and any wait for "
            "images as well."
        )
    if GAP in set(own["metric"]):
        parts.append(
            "Our values come from 'analyse decomposability_gap' on each dataset, once it has been made."
        )
    return " ".join(parts)
