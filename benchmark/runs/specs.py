"""Writing ``spec.json``, where a run's identity meets its folder and old results are kept."""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmark.core.errors import DataError
from benchmark.core.files import copy_file, refuse_link
from benchmark.core.paths import MAX_RECORD, file_below, read_regular
from benchmark.core.plain import parse_json
from benchmark.core.records import (
    DIGEST,
    LOG,
    METRICS,
    NEIGHBOURS,
    PROVENANCE,
    QUERIES,
    RESULT,
    SPEC,
    digest_of,
)
from benchmark.study.grid import Run

PREVIOUS = "previous"
KEPT = (RESULT, METRICS, PROVENANCE, NEIGHBOURS, QUERIES, LOG)


def write_spec(run: Run, results: Path) -> bool:
    """Write the specification of ``run`` unless it is there; return whether the file changed.

    A finished result that belongs to another specification is copied to ``previous/<digest>/``
    first, because the training that follows takes its place. Raise RunError for a folder that is a
    link.
    """
    folder = Path(results) / run.spec.folder
    refuse_link(folder)
    keep_previous(folder, run.digest)
    path = folder / SPEC
    try:
        before = read_regular(path, MAX_RECORD)
    except OSError:  # absent, or none of ours
        before = None
    run.spec.write(path)
    return path.read_bytes() != before


def write_specs(runs: Mapping[str, Run], results: Path) -> int:
    """Write every specification whose file is missing or different; return their number."""
    changed = 0
    for run in runs.values():
        folder = Path(results) / run.spec.folder
        refuse_link(folder)
        if digest_of(folder / SPEC) != run.digest:
            changed += write_spec(run, results)
    return changed


def outdated(runs: Mapping[str, Run], results: Path) -> list[str]:
    """Return the paths of the specifications to write anew: those on the disk that are not the
    study's, and those of results that were made from another one or are torn.

    Snakemake compares dates and remembers parameters; what decides here is content, so that a run
    whose hyperparameter changed is trained again even where Snakemake's memory was lost, and edited
    files do no harm.
    """
    found = []
    for run in runs.values():
        folder = Path(results) / run.spec.folder
        path = folder / SPEC
        if (path.is_file() and digest_of(path) != run.digest) or not _fits(
            folder / RESULT, run.digest
        ):
            found.append(path.as_posix())
    return found


def keep_previous(folder: Path, digest: str) -> Path | None:
    """Copy a finished result of another specification aside; return where to, or None."""
    old = _json(folder / RESULT).get("spec_digest")
    if not isinstance(old, str) or not DIGEST.fullmatch(old) or old == digest:
        return None
    target = file_below(folder, f"{PREVIOUS}/{old}")
    names = KEPT if digest_of(folder / SPEC) != old else (*KEPT, SPEC)
    for name in names:
        with contextlib.suppress(OSError, DataError):  # absent, or nothing that a run has written
            copy_file(file_below(folder, name), target / name)
    return target


def _fits(result: Path, digest: str) -> bool:
    """Return whether a result is of this specification, absent, or not ours to read."""
    try:
        value = parse_json(read_regular(result, MAX_RECORD))
    except OSError:
        return True
    except ValueError:
        return False
    return isinstance(value, dict) and value.get("spec_digest") == digest


def _json(path: Path) -> dict[str, Any]:
    try:
        value = parse_json(read_regular(path, MAX_RECORD))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
