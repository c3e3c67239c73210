"""Which published tables a study may name, read from the papers' folders."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

from benchmark.core.registry import data_folders

PACKAGE = Path(__file__).parents[1] / "papers"
PAPER = "paper.yaml"  # makes a folder a paper's
REPRODUCIBLE = ("own", "retrained")


def paper_folders() -> dict[str, Path]:
    """Return the folder of each paper by its key, plugin folders included."""
    return data_folders(PACKAGE, PAPER)


def published_names() -> tuple[str, ...]:
    """Return what a study can ask for: "paper" for all its tables, or "paper/table" for one."""
    return tuple(sorted(set().union(*_names_by_paper().values())))


def named_papers(published: Iterable[str]) -> set[str]:
    """Return the keys of the papers that the names in ``published`` belong to."""
    asked = set(published)
    return {key for key, names in _names_by_paper().items() if names & asked}


def _names_by_paper() -> dict[str, set[str]]:
    names: dict[str, set[str]] = {}
    for key, folder in paper_folders().items():
        path = folder / "results.csv"
        if not path.is_file():
            continue  # reported where the paper is loaded
        with open(path, newline="", encoding="utf-8") as stream:
            for row in csv.DictReader(stream):
                table = row.get("table") or ""
                if table.startswith("table") and row.get("provenance") in REPRODUCIBLE:
                    source = key + (row.get("version") or "")
                    names.setdefault(key, set()).update({source, f"{source}/{table}"})
    return names
