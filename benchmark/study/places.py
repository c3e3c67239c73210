"""What stands in the places of the workflow's folders and files, where Snakemake would fail."""

from __future__ import annotations

import errno
from collections.abc import Collection, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from benchmark.core.errors import ConfigError
from benchmark.core.files import file_in_the_way
from benchmark.core.records import METRICS, PROVENANCE, RESULT, SPEC

if TYPE_CHECKING:
    from benchmark.study.workflow import Flow

# In a study's folder.
FOLDERS = (
    "analyses", "figures", "gallery", "logs", "made_of", "papers", "report", "stats", "tables"
)  # fmt: skip
FILES = (".csv", ".html", ".json", ".txt", ".yaml")


def check_places(flow: Flow) -> None:
    """Raise ConfigError for what has to be moved away first.

    Snakemake ends there with a traceback, or says that there is nothing to be done.
    """
    results = Path(flow.results)
    studies = {flow.study.folder(results), Path(flow.folder)}  # of trials and final runs
    runs = [run.spec.folder for run in (*flow.runs.values(), *flow.final_runs.values())]
    if problems := _in_the_way(results, studies, runs):
        raise ConfigError("workflow configuration", problems)


def _in_the_way(results: Path, studies: Collection[Path], runs: Collection[Path]) -> list[str]:
    """Return the problems of the folders of ``studies``, and of ``runs`` below ``results``."""
    folders = [results / "runs", *studies, *(each / name for each in studies for name in FOLDERS)]
    files = {file for folder in folders if (file := file_in_the_way(folder)) is not None}
    made = [path for each in studies for pattern in ("*", "*/*") for path in each.glob(pattern)]
    of_runs = (results / run / name for run in runs for name in (SPEC, RESULT, METRICS, PROVENANCE))
    return [
        *(
            f"{file} is not a folder; move it away, or choose another place for the results"
            for file in sorted(files)
        ),
        *(
            f"{path} is a link that leads to itself; remove it"
            for path in sorted({*_circles(chain(of_runs, made))})
        ),
        *(
            f"{path} is a folder in the place of a file; remove it"
            for path in sorted(made)
            if path.suffix in FILES and path.is_dir()
        ),
        *(
            f"{results / run} is a link, through which files would be written elsewhere; remove "
            "the link, not what it leads to"
            for run in sorted(runs)
            if (results / run).is_symlink()
        ),
    ]


def _circles(paths: Iterator[Path]) -> Iterator[Path]:
    for path in paths:
        try:
            _ = path.is_symlink() and path.stat()
        except OSError as error:
            if error.errno == errno.ELOOP:
                yield path
