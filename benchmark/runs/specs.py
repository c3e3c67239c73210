"""Writing ``spec.json``, where a run's identity meets its folder and old results are kept."""

import json
from collections.abc import Mapping
from pathlib import Path

from benchmark.core.files import copy_file
from benchmark.core.records import (
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
    first, because the training that follows takes its place.
    """
    folder = Path(results) / run.spec.folder
    keep_previous(folder, run.digest)
    path = folder / SPEC
    before = path.read_bytes() if path.exists() else None
    run.spec.write(path)
    return path.read_bytes() != before


def write_specs(runs: Mapping[str, Run], results: Path) -> int:
    """Write every specification whose file is missing or different; return their number."""
    changed = 0
    for run in runs.values():
        if digest_of(Path(results) / run.spec.folder / SPEC) != run.digest:
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
        result = folder / RESULT
        fits = not result.exists() or _digest_of_result(result) == run.digest
        if (path.is_file() and digest_of(path) != run.digest) or not fits:
            found.append(path.as_posix())
    return found


def keep_previous(folder: Path, digest: str) -> Path | None:
    """Copy a finished result of another specification aside; return where to, or None."""
    old = _digest_of_result(folder / RESULT)
    if old is None or old == digest:
        return None
    target = folder / PREVIOUS / old
    names = KEPT if digest_of(folder / SPEC) != old else (*KEPT, SPEC)
    for name in names:
        if (folder / name).exists():
            copy_file(folder / name, target / name)
    return target


def _digest_of_result(path: Path) -> str | None:
    """Return the digest of the specification of a result; None where it cannot be read."""
    try:
        digest: str = json.loads(path.read_bytes())["spec_digest"]
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return digest
