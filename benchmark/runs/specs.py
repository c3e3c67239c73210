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
OUTDATED = {SPEC: "spec.outdated.json", RESULT: "result.outdated.json"}
KEPT = (METRICS, PROVENANCE, NEIGHBOURS, QUERIES, LOG)


def write_spec(run: Run, results: Path, log: Path | None = None) -> str:
    """Write the specification of ``run``, and a line into ``log``; return its digest.

    A finished result that belongs to another specification is copied to ``previous/<digest>/``
    first, because the training that follows takes its place.
    """
    folder = Path(results) / run.spec.folder
    keep_previous(folder, run.digest)
    run.spec.write(folder / SPEC)
    for name in OUTDATED.values():
        (folder / name).unlink(missing_ok=True)
    if log:
        log.write_text(f"specification {run.digest} written\n")
    return run.digest


def write_specs(runs: Mapping[str, Run], results: Path) -> int:
    """Write every specification whose file is missing or different; return their number."""
    changed = 0
    for run in runs.values():
        if digest_of(Path(results) / run.spec.folder / SPEC) != run.digest:
            write_spec(run, results)
            changed += 1
    return changed


def settle(runs: Mapping[str, Run], results: Path, *, dry_run: bool = False) -> int:
    """Put away what is outdated, so that it is made anew; return of how many runs.

    Snakemake compares dates and remembers parameters; what decides is content. A specification that
    is not the study's, or whose result is torn or of another one, gets another name with its
    result. They get their own back when the study asks for them again.
    """
    outdated = 0
    for run in runs.values():
        folder = Path(results) / run.spec.folder
        now = {folder / name: folder / aside for name, aside in OUTDATED.items()}
        fits = [digest == run.digest for digest in map(_digest, now) if digest is not None]
        outdated += not all(fits)
        if dry_run:
            continue
        if not all(fits):
            for path, aside in now.items():
                if path.exists():
                    path.replace(aside)
        elif not fits and all(_digest(aside) == run.digest for aside in now.values()):
            for path, aside in now.items():
                aside.replace(path)
    return outdated


def keep_previous(folder: Path, digest: str) -> Path | None:
    """Copy a finished result of another specification aside; return where to, or None."""
    aside = not (folder / RESULT).exists()
    names = {name: OUTDATED[name] if aside else name for name in (RESULT, SPEC)}
    old = _digest(folder / names[RESULT])
    if not old or old == digest:
        return None
    if _digest(folder / names[SPEC]) != old:
        del names[SPEC]
    target = folder / PREVIOUS / old
    for name, here in (names | {name: name for name in KEPT}).items():
        if (folder / here).exists():
            copy_file(folder / here, target / name)
    return target


def _digest(path: Path) -> str | None:
    """Return the digest of a specification, or of that of a result; "" for a torn file, None for
    none."""
    if not path.exists():
        return None
    if path.name in (SPEC, OUTDATED[SPEC]):
        return digest_of(path) or ""
    try:
        digest: str = json.loads(path.read_bytes())["spec_digest"]
    except (OSError, ValueError, LookupError, TypeError):
        return ""
    return digest
