"""The footnotes of a printed table: its values that another table, or the running text, gives differently."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from benchmark.report.tables.papers.arrangement import Arrangement, footnote_rules, place, results


@dataclass(frozen=True)
class Footnote:
    """Another printed value of the same quantity, and where it stands."""

    value: str
    text: str


def footnotes(arrangement: Arrangement, rows: pd.DataFrame) -> dict[int, Footnote]:
    """Returns {line of a published row: its footnote} for the rows of one printed table."""
    found: dict[int, Footnote] = {}
    for rule in footnote_rules():
        if rule["at"] != arrangement.key:
            continue
        paper, table = rule["also"].split("/")
        printed_there = results()[(results()["paper"] == paper) & (results()["table"] == table)]
        others: dict[tuple, list[dict]] = {}
        for other in _meeting(printed_there, rule["also_where"]).to_dict("records"):
            others.setdefault(_quantity(other), []).append(other)
        for row in _meeting(rows, rule["where"]).to_dict("records"):
            same = others.get(_quantity(row), [])
            if len(same) == 1 and same[0]["value"] != row["value"]:
                text = f"The second value stands in {place(paper, table)}" + (
                    f": {rule['text']}" if rule["text"] else ""
                )
                found[row["line"]] = Footnote(printed(same[0]), f"{text}.")
    return found


def printed(row: dict) -> str:
    """Returns a published value with the digits of its print, in percentage points if it is a score."""
    if not row["score"]:
        return f"{row['value']:g}"
    digits = 0
    while digits < 6 and round(row["rounding"] * 10**digits, 9) < 0.5:
        digits += 1
    return f"{row['points']:.{digits}f}"


def _meeting(rows: pd.DataFrame, where: dict[str, str]) -> pd.DataFrame:
    keep = pd.Series(True, index=rows.index)
    for column, value in where.items():
        keep &= rows[column].astype(str) == str(value)
    return rows[keep]


def _quantity(row: dict) -> tuple:
    return row["dataset"], row["protocol"], row["metric"], row["loss"]
