"""Finding the verdict that somebody means, from a few words about it."""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Iterable
from typing import Any

import pandas as pd

from benchmark.core.errors import ConfigError
from benchmark.metrics.names import display_name

FIELDS = (
    "source",
    "table",
    "row_label",
    "dataset",
    "setting",
    "backbone",
    "loss",
    "batch_size",
    "split",
    "metric",
)


def find_verdicts(table: pd.DataFrame, cell: str) -> list[dict[str, Any]]:
    """Returns the rows of ``table`` that every word of ``cell`` fits; raises ConfigError with near names.

    Words are separated by "/": those of a table (roadmap2021v2/table1/SmoothAP) and those of a run
    (glyphs_1k/sup_ap/bs32/map_at_r), in any order and number. A word fits a field that equals it, letter case and
    signs apart; with "*" it is a pattern. Where no field equals a word, it may be a part of one.
    """
    if table.empty:
        words = (
            "there are no verdicts: the study names no references, or nothing of it has been run"
        )
        raise ConfigError(
            f"cell {cell}", [f"{words}; 'python -m benchmark check STUDY' says which"]
        )
    rows = table.to_dict("records")
    names = [_names(row) for row in rows]
    known = {name for found in names for name in found}
    kept = list(range(len(rows)))
    problems = []
    for word in filter(None, (plain(part) for part in cell.split("/"))):
        fits = _fitting(word, known)
        if not fits:
            near = difflib.get_close_matches(word, known, n=4, cutoff=0.5)
            problems.append(
                f"'{word}' is in no verdict" + (f"; near: {', '.join(near)}" if near else "")
            )
        kept = [index for index in kept if names[index] & fits]
    if not kept and not problems:
        problems.append(
            f"each word of '{cell}' is in some verdict, but no verdict has all of them; leave one out"
        )
    if problems:
        raise ConfigError(f"cell {cell}", problems)
    return [rows[index] for index in kept]


def key_of(row: dict[str, Any]) -> str:
    """Returns the words that find this verdict alone, as far as any words can."""
    size = "" if pd.isna(row["batch_size"]) else f"bs{row['batch_size']:.0f}"
    source = (
        [row["source"]]
        if row["source"] == row["table"]
        else [row["source"], row["table"], row["row_label"]]
    )
    words = [
        *source,
        row["dataset"],
        row["setting"] or row["backbone"],
        row["loss"],
        size,
        row["split"],
        row["metric"],
    ]
    return "/".join(plain(word) for word in words if isinstance(word, str) and word)


def plain(word: Any) -> str:
    """Returns a word as it is compared: small letters, everything but letters, digits, "*", "~", "." and "@" as "_"."""
    return re.sub(r"[^\w*~.@+-]+", "_", str(word).strip().lower()).strip("_")


def _fitting(word: str, known: Iterable[str]) -> set[str]:
    if "*" in word:
        return set(fnmatch.filter(known, word))
    return {name for name in known if name == word} or {name for name in known if word in name}


def _names(row: dict[str, Any]) -> set[str]:
    values = [row[field] for field in FIELDS if isinstance(row[field], str) and row[field]]
    names = {plain(value) for value in values} | {plain(display_name(str(row["metric"])))}
    return names if pd.isna(row["batch_size"]) else names | {f"bs{row['batch_size']:.0f}"}
