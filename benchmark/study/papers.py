"""Which published tables a study may name, read from the papers' folders."""

from __future__ import annotations

import csv
from pathlib import Path

from benchmark.core.registry import data_folders

PAPER = "paper.yaml"  # makes a folder a paper's
REPRODUCIBLE = ("own", "retrained")


def paper_folders() -> dict[str, Path]:
    """Return the folder of each paper by its key, plugin folders included."""
    return data_folders(Path(__file__).parents[1] / "papers", PAPER)


def published_names() -> tuple[str, ...]:
    """Return what a study can ask for: "paper" for all its tables, or "paper/table" for one."""
    names: set[str] = set()
    for key, folder in paper_folders().items():
        path = folder / "results.csv"
        if not path.is_file():
            continue  # reported where the paper is loaded
        with open(path, newline="", encoding="utf-8") as stream:
            for row in csv.DictReader(stream):
                table = row.get("table") or ""
                if table.startswith("table") and row.get("provenance") in REPRODUCIBLE:
                    source = key + (row.get("version") or "")
                    names |= {source, f"{source}/{table}"}
    return tuple(sorted(names))
