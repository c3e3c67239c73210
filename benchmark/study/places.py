"""What stands in the places of the workflow's folders and files, where Snakemake would fail."""

import errno
import os
from collections.abc import Collection
from itertools import chain
from pathlib import Path

from benchmark.core.files import file_in_the_way
from benchmark.core.records import METRICS, PROVENANCE, RESULT, SPEC

# In a study's folder.
FOLDERS = (
    "analyses", "figures", "gallery", "logs", "made_of", "papers", "report", "stats", "tables"
)  # fmt: skip
FILES = (
    "runs.csv", "scores.csv", "provenance.json", "verdicts.csv", "claims.csv", "imported.txt",
    "report/index.html",
)  # fmt: skip


def in_the_way(results: Path, studies: Collection[Path], runs: Collection[Path]) -> list[str]:
    """Return what has to be moved away first, in the folders of ``studies`` and of their ``runs``.

    The latter are relative to ``results``. Snakemake ends there with a traceback.
    """
    folders = [results / "runs", *studies, *(each / name for each in studies for name in FOLDERS)]
    files = {file for folder in folders if (file := file_in_the_way(folder)) is not None}
    places = chain(
        (results / run / name for run in runs for name in (SPEC, RESULT, METRICS, PROVENANCE)),
        (path for folder in studies for pattern in ("*", "*/*") for path in folder.glob(pattern)),
    )
    circles = {path for path in places if _is_circle(path)}
    instead = {path for each in studies for name in FILES if (path := each / name).is_dir()}
    root = os.path.realpath(results / "runs")
    out = {run for run in runs if not Path(os.path.realpath(results / run)).is_relative_to(root)}
    return [
        *(
            f"{file} is not a folder; move it away, or choose another place for the results"
            for file in sorted(files)
        ),
        *(f"{path} is a link that leads to itself; remove it" for path in sorted(circles)),
        *(f"{path} is a folder in the place of a file; remove it" for path in sorted(instead)),
        *(f"{results / run} leads out of {root} through a link; remove it" for run in sorted(out)),
    ]


def _is_circle(path: Path) -> bool:
    try:
        return path.is_symlink() and not path.stat()
    except OSError as error:
        return error.errno == errno.ELOOP
