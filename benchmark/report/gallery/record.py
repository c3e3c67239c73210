"""``gallery.json``: what the gallery of a study shows, and the files that show it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from benchmark.core.files import write_json
from benchmark.report.artefacts import read_record

FOLDER, FILE = "gallery", "gallery.json"
SIDES: tuple[Literal["first", "second"], ...] = ("first", "second")


@dataclass(frozen=True)
class QuerySide:
    """A query under one loss: its AP, the matches among the images of the strip, the strip."""

    average_precision: float
    matches: int
    retrieved: int
    picture: str
    alt: str


@dataclass(frozen=True)
class Query:
    """A query under both losses, why it is shown, and the name of its curves' files."""

    name: str
    reason: str
    positives: int
    curve: str
    caption: str
    first: QuerySide
    second: QuerySide


@dataclass(frozen=True)
class RunSide:
    """One of the two runs: its loss and its score of the headline metric."""

    loss: str
    display: str
    run_id: str
    score: float


@dataclass(frozen=True)
class RunPair:
    """Two runs that differ in their loss alone."""

    dataset: str
    setting: str
    batch_size: int
    seed: int
    metric: str
    first: RunSide
    second: RunSide


@dataclass(frozen=True)
class PairQueries:
    """The queries of two runs: how many the second loss ranks better and worse, of ``recorded``."""

    pair: RunPair
    recorded: int
    improved: int
    worsened: int
    queries: list[Query]


@dataclass(frozen=True)
class Gallery:
    """The gallery of a study; ``reason`` says why there is none."""

    study: str
    pairs: list[PairQueries]
    reason: str = ""
    schema: Literal[2] = 2

    def write(self, folder: Path) -> None:
        """Write the record into the folder of the gallery: its presence says that all is there."""
        write_json(folder / FILE, asdict(self))

    @staticmethod
    def read(folder: Path) -> Gallery:
        """Return the record in the folder of the gallery; raise RunError when there is none."""
        command = f"python -m benchmark gallery {folder.parent.name}"
        return read_record(Gallery, folder / FILE, command)
