"""The papers' sentences as tests: on the paper's own condition, and on whatever this study ran."""

from __future__ import annotations

from typing import Any

import pandas as pd

from benchmark.papers.library import paper_name
from benchmark.report.tables import TABLES
from benchmark.report.tables.numbers import DASH, count, known, p_value, plain
from benchmark.report.tables.table import (
    Cell,
    Column,
    Line,
    NothingToShow,
    Section,
    Table,
    text_column,
)

CLAIM_TONES = {
    "supported": "good",
    "contradicted": "bad",
    "inconclusive": "unsure",
    "not_run": "muted",
}
PUBLISHED, HERE = "published", "here"


@TABLES.register("claims", display="Claims of the papers")
def build(runs: pd.DataFrame, stats: dict[str, pd.DataFrame], study: Any) -> Table:
    """Returns one row per claim that some run of the study bears on; the others are counted in a note."""
    claims = stats.get("claims", pd.DataFrame())
    if claims.empty:
        raise NothingToShow(
            f"no claim has been tested: run 'python -m benchmark claims {study.name}'"
        )
    pairs = {
        name: {row["reading"]: row for row in rows.to_dict("records")}
        for name, rows in claims.groupby("claim", sort=False)
    }
    tested = {
        name: pair
        for name, pair in pairs.items()
        if any(row["verdict"] != "not_run" for row in pair.values())
    }
    if not tested:
        raise NothingToShow(f"no run of this study bears on any of {count(len(pairs), 'claim')}")
    # Where no sentence could be tested under its own conditions, the columns for them would say nothing but that.
    published = any(pair[PUBLISHED]["verdict"] != "not_run" for pair in tested.values())
    readings = ((PUBLISHED, "As published"), (HERE, "Does it hold here?"))[0 if published else 1 :]
    columns = [
        Column(("What the paper says",), numeric=False, words=("name",)),
        text_column("Its condition"),
    ]
    for _, group in readings:
        columns += [text_column(group, "Verdict"), *_number_columns(group)]
    columns.append(text_column("Rests on (as published, else here)" if published else "Rests on"))
    sections: dict[str, list[list[Cell]]] = {}
    for pair in tested.values():
        row = _row(pair, [name for name, _ in readings])
        sections.setdefault(paper_name(str(pair[HERE]["paper"])), []).append(row)
    caption = (
        "“As published” needs the paper's datasets, backbone and batch sizes; “Does it hold here?” asks the same of "
        "what this study ran, on whatever data, and says nothing about the paper's. A sentence is supported when every "
        "part of it holds in a one-sided paired test, contradicted when some part shows the opposite after Holm. The "
        "numbers are those of the part that decides, with the interval that its test uses. "
        "'python -m benchmark explain NAME "
        f"--study {study.name}' prints every part of a claim, by the name below it."
    )
    rest = len(pairs) - len(tested)
    notes = (
        [f"{count(rest, 'further claim')} cannot be tested with the runs of this study."]
        if rest
        else []
    )
    notes += _outside(pairs, study)
    if not published:
        notes.insert(
            0, "No run is under the conditions of a paper, so nothing here is tested as published."
        )
    return Table(
        "Claims of the papers",
        caption,
        columns,
        [Section(paper, rows) for paper, rows in sections.items()],
        notes,
    )


def _outside(pairs: dict[str, dict[str, dict[str, Any]]], study: Any) -> list[str]:
    """Returns a note for each reason why sentences of the study's papers cannot be decided as published."""
    papers = {name.partition("/")[0] for name in study.references.published}
    counted: dict[str, int] = {}
    for pair in pairs.values():
        reason = pair[PUBLISHED].get("outside")
        if isinstance(reason, str) and reason and pair[PUBLISHED]["paper"] in papers:
            counted[reason] = counted.get(reason, 0) + 1
    return [
        f"No run of the suite can decide {count(number, 'claim')} of its papers as published. {reason}."
        for reason, number in counted.items()
    ]


def _number_columns(group: str) -> list[Column]:
    return [
        Column((group, "Deciding part"), parts=("estimate", "low", "high")),
        Column((group, "p"), parts=("value",)),
        Column((group, "Parts held"), parts=("held", "parts")),
    ]


def _row(pair: dict[str, dict[str, Any]], readings: list[str]) -> list[Cell]:
    published, here = pair[PUBLISHED], pair[HERE]
    name = str(here["claim"])
    shown = here if published["verdict"] == "not_run" else published
    outside = published.get("outside")
    why = f"; not run as published: {outside}" if isinstance(outside, str) and outside else ""
    return [
        Cell(
            str(here["sentence"]), note=str(here["stated_in"]), lines=(Line(name),), words=(name,)
        ),
        Cell(str(published["condition"])),
        *(cell for name in readings for cell in _reading(pair[name])),
        Cell(f"{shown['reason']}{why}"),
    ]


def _reading(row: dict[str, Any]) -> list[Cell]:
    verdict = str(row["verdict"])
    estimate, low, high, p = (known(row[name]) for name in ("estimate", "ci_low", "ci_high", "p"))
    text = DASH if estimate is None else f"{plain(estimate)} {row['unit']}"
    interval = "" if low is None or high is None else f"[{plain(low)}, {plain(high)}]"
    ran = known(row["parts_run"])
    held, parts = (known(row[name]) if ran else None for name in ("parts_holding", "parts"))
    return [
        Cell(verdict.replace("_", " "), tone=CLAIM_TONES.get(verdict, "")),
        Cell(text, note=interval, numbers=(estimate, low, high)),
        Cell(p_value(p), numbers=(p,)),
        Cell(DASH if held is None else f"{held:.0f} of {parts:.0f}", numbers=(held, parts)),
    ]
