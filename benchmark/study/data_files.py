"""Which data files a step behind the runs reads: an edit of one makes its readers again.

Every step loads, and thereby checks, all that is known of the papers. Here stands what its files
follow from, so that a changed claim judges no published number again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmark.study.papers import PACKAGE, PAPER, paper_folders

NUMBERS = (PAPER, "results.csv", "implied.yaml", "outside.yaml")  # a published number, completed
WORDS, MARGINS, SWEEPS = "vocabulary.yaml", "margins.yaml", "sweeps.yaml"
FIDELITY, PRETRAINING = "fidelity.csv", "pretraining.csv"
TABLES, FIGURES, CLAIMS, FOOTNOTES = "tables.yaml", "figures.yaml", "claims.yaml", "footnotes.yaml"


@dataclass(frozen=True)
class Reads:
    """File names: beside the papers' folders, of the papers that are named, of all papers."""

    shared: tuple[str, ...]
    named: tuple[str, ...] = ()
    every: tuple[str, ...] = ()


STEPS: Mapping[str, Reads] = {
    "verdicts": Reads((WORDS, MARGINS, FIDELITY), named=NUMBERS, every=(FIDELITY,)),
    "claims": Reads((WORDS, MARGINS, CLAIMS), every=(PAPER, CLAIMS)),
    "papers": Reads((WORDS, SWEEPS), named=(TABLES,), every=(*NUMBERS, FIGURES)),
    "tables": Reads((WORDS, PRETRAINING), named=(*NUMBERS, TABLES, FOOTNOTES), every=(PAPER,)),
    "figures": Reads((WORDS, SWEEPS), every=(PAPER, FIGURES)),
    "report": Reads((FIDELITY,), every=(FIDELITY,)),
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
    return [_relative(path) for path in paths if path.is_file()]


def _relative(path: Path) -> Path:
    path, here = path.resolve(), Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
