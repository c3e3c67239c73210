"""Which data files a step behind the runs reads: an edit of one makes its readers again.

Every step loads, and thereby checks, all that is known of the papers. Here stands what its files
follow from, so that a changed claim judges no published number again.
"""

import csv
import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmark.core.registry import data_folders
from benchmark.study.model import ROOT

PACKAGE = Path(__file__).parents[1] / "papers"
PAPER = "paper.yaml"  # makes a folder a paper's
REPRODUCIBLE = ("own", "retrained")  # the others were not trained by the paper that prints them
TRIALS, FINAL = "trials", "final"  # folders of a field: the frozen runs of other losses


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
        if not (folder / "results.csv").is_file():
            continue  # said where the paper is loaded
        with open(folder / "results.csv", newline="", encoding="utf-8", errors="replace") as stream:
            rows = list(csv.DictReader(stream))
        for row in rows:
            table = row.get("table") or ""
            if table.startswith("table") and row.get("provenance") in REPRODUCIBLE:
                source = key + (row.get("version") or "")
                names.setdefault(key, set()).update({source, f"{source}/{table}"})
    return names


NUMBERS = (PAPER, "results.csv", "implied.yaml", "outside.yaml")  # a published number, completed
WORDS, SWEEPS, REPEATED = "vocabulary.yaml", "sweeps.yaml", "repeated.yaml"
FIDELITY, PRETRAINING = "fidelity.csv", "pretraining.csv"
TABLES, FIGURES, CLAIMS, FOOTNOTES = "tables.yaml", "figures.yaml", "claims.yaml", "footnotes.yaml"
REMARKS = "remarks.yaml"


@dataclass(frozen=True)
class Reads:
    """File names: beside the papers' folders, of the papers that are named, of all papers."""

    shared: tuple[str, ...]
    named: tuple[str, ...] = ()
    every: tuple[str, ...] = ()


STEPS: Mapping[str, Reads] = {
    "build": Reads(
        (WORDS, SWEEPS, REPEATED, CLAIMS, FIDELITY, PRETRAINING),
        named=(TABLES, FOOTNOTES, REMARKS),
        every=(*NUMBERS, FIGURES, CLAIMS, FIDELITY),
    ),
    "analysis": Reads((), named=("results.csv",)),
}


def data_files(step: str, named: Collection[str]) -> list[Path]:
    """Return the data files of a step whose study, or analysis, names these papers (keys).

    Files that a paper may leave out count once they exist. Paths below the working directory are
    relative to it, so that a moved folder changes nothing.
    """
    reads = STEPS[step]
    paths = [PACKAGE / name for name in reads.shared]
    for key, folder in paper_folders().items():
        names = (*reads.every, *(reads.named if key in named else ()))
        paths += [folder / name for name in dict.fromkeys(names)]
    files, here = [path.resolve() for path in paths if path.is_file()], Path.cwd()
    return [path.relative_to(here) if path.is_relative_to(here) else path for path in files]


def field_folder(field: str | None, kind: str) -> Path:
    """Return the folder of a field's TRIALS or FINAL runs, from here or from the repository."""
    folder = Path(str(field))
    return (folder if os.path.isdir(folder) else ROOT / folder) / kind
