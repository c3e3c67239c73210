"""Name the data files that each step after the runs reads, so that Snakemake repeats the step.

Every step loads and checks the files of all papers. This module lists only the files that change
the output of a step: an edit of a claim does not repeat the verdicts on published numbers.
"""

import csv
import functools
import io
import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmark.core.documents import MAX_BYTES
from benchmark.core.files import check_regular
from benchmark.core.registry import data_folders
from benchmark.study.model import ROOT

PACKAGE = Path(__file__).parents[1] / "published"
PAPER = "paper.yaml"  # makes a folder a paper's
RESULTS = "results.csv"  # the published numbers of a paper
REPRODUCIBLE = ("own", "retrained")  # the others were not trained by the paper that prints them
CUT = "\0"  # stands for the missing or surplus fields of a row
UNREADABLE = (OSError, UnicodeDecodeError, csv.Error)
# of a field: its manifest, and folders with the frozen runs of other losses
MANIFEST = "field.json"
TRIALS = "trials"
FINAL = "final"


def paper_folders() -> dict[str, Path]:
    """Return the folder of each paper by its key, plugin folders included."""
    return data_folders(PACKAGE, PAPER)


def read_rows(path: Path) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the header of a CSV file, and its rows, each with its ``line``.

    Raise one of ``UNREADABLE``; DataError for what is no regular file, or is too large.
    """
    check_regular(path, MAX_BYTES)
    return _rows(path, path.stat().st_mtime_ns)


@functools.cache
def _rows(path: Path, _changed: int) -> tuple[list[str], list[dict[str, Any]]]:
    text = path.read_text(encoding="utf-8")
    reader = csv.DictReader(io.StringIO(text, newline=""), restval=CUT, restkey=CUT)
    rows = [{**row, "line": reader.line_num} for row in reader]
    return list(reader.fieldnames or ()), rows


def published_names() -> dict[str, str]:
    """Return what a study can ask for, "paper" or "paper/table", each with the paper's key."""
    names: dict[str, str] = {}
    for key, folder in paper_folders().items():
        try:
            _, rows = read_rows(folder / RESULTS)
        except UNREADABLE:
            continue  # loading the paper reports the error
        for row in rows:
            if row.get("provenance") in REPRODUCIBLE:
                source = key + row.get("version", "")
                names |= {source: key, f"{source}/{row.get('table')}": key}
    return names


def named_papers(published: Iterable[str]) -> set[str]:
    """Return the keys of the papers that the names in ``published`` belong to."""
    names = published_names()
    return {names[name] for name in published if name in names}


WORDS = "vocabulary.yaml"
SWEEPS = "sweeps.yaml"
REPEATED = "repeated.yaml"
FIDELITY = "fidelity.csv"
REPLAYED = "replayed.csv"
PRETRAINING = "pretraining.csv"
TABLES = "tables.yaml"
NUMBERS = (PAPER, RESULTS, "implied.yaml", "outside.yaml")  # a published number, completed
FIGURES = "figures.yaml"
CLAIMS = "claims.yaml"
FOOTNOTES = "footnotes.yaml"
REMARKS = "remarks.yaml"


@dataclass(frozen=True)
class Reads:
    """File names: beside the papers' folders, of the named papers, and of all papers."""

    shared: tuple[str, ...]
    named: tuple[str, ...] = ()
    every: tuple[str, ...] = ()


STEPS: Mapping[str, Reads] = {
    "build": Reads(
        (WORDS, SWEEPS, REPEATED, CLAIMS, FIDELITY, REPLAYED, PRETRAINING),
        named=(TABLES, FOOTNOTES, REMARKS),
        every=(*NUMBERS, FIGURES, CLAIMS, FIDELITY),
    ),
    "analysis": Reads((), named=(RESULTS,)),
}


def data_files(step: str, named: Collection[str]) -> list[Path]:
    """Return the data files of a step whose study, or analysis, names these papers (keys).

    Optional files of a paper are returned if they exist. Paths below the working directory are
    relative to it, so that a moved folder changes nothing.
    """
    reads = STEPS[step]
    paths = [PACKAGE / name for name in reads.shared]
    for key, folder in paper_folders().items():
        names = reads.every
        if key in named:
            names += reads.named
        paths += [folder / name for name in dict.fromkeys(names)]
    working_folder = Path.cwd()
    files = []
    for path in paths:
        if path.is_file():
            path = path.resolve()
            if path.is_relative_to(working_folder):
                path = path.relative_to(working_folder)
            files.append(path)
    return files


def field_folder(field: str | None) -> Path:
    """Return the folder of a field.

    ``field`` is a path below the working directory or, if it does not exist there, below the
    repository.
    """
    folder = Path(str(field))
    return folder if os.path.isdir(folder) else ROOT / folder
