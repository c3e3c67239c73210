"""A run's folder: its specification is written, old results are kept, and what became of it."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from benchmark.core.errors import RunError
from benchmark.core.files import copy_file
from benchmark.core.records import (
    LOG,
    METRICS,
    NEIGHBOURS,
    PROVENANCE,
    QUERIES,
    RESULT,
    SPEC,
    STATUSES,
    RunSpec,
    Standing,
    digest_of,
)
from benchmark.core.results import Provenance, Result
from benchmark.study import Study
from benchmark.study.grid import Run, expand

PREVIOUS = "previous"
OUTDATED = {SPEC: "spec.outdated.json", RESULT: "result.outdated.json"}
KEPT = (METRICS, PROVENANCE, NEIGHBOURS, QUERIES, LOG)
LOG_END = 1_000_000  # bytes of a log that are looked at
# Log lines that follow the reason of a failure without being it.
_TRAILING = ("Traceback", "  ", "During handling", "The above exception")


def write_spec(run: Run, results: Path, log: Path | None = None) -> None:
    """Write the specification of ``run``, and a line into ``log``.

    A finished result that belongs to another specification is copied to ``previous/<digest>/``
    first, because the training that follows takes its place.
    """
    folder = Path(results) / run.spec.folder
    _put_back(folder, run.digest)
    aside = not (folder / RESULT).exists()
    names = {name: OUTDATED[name] if aside else name for name in (RESULT, SPEC)}
    old = _digest(folder / names[RESULT])
    if old and old != run.digest:
        if _digest(folder / names[SPEC]) != old:
            del names[SPEC]
        for name, here in (names | {name: name for name in KEPT}).items():
            if (folder / here).exists():
                copy_file(folder / here, folder / PREVIOUS / old / name)
    run.spec.write(folder / SPEC)
    for name in OUTDATED.values():
        (folder / name).unlink(missing_ok=True)
    if log:
        log.write_text(f"specification {run.digest} written\n")


def write_specs(runs: Iterable[Run], results: Path) -> int:
    """Write every specification whose file is missing or different; return their number."""
    places = [(run, Path(results) / run.spec.folder / SPEC) for run in runs]
    changed = [run for run, path in places if digest_of(path) != run.digest]
    for run in changed:
        write_spec(run, results)
    return len(changed)


def settle(run: Run, results: Path, *, dry_run: bool = False) -> Standing:
    """Rename the outdated files of a run, and return whether the run is finished.

    Only the content of the files decides. A run is finished if there is a result of its
    specification. ``spec.json`` is outdated if it differs from the specification of the study.
    ``result.json`` is outdated if it is damaged or belongs to another specification. Outdated files
    are renamed, so that Snakemake makes them again. If a later study has the old specification
    again, the renamed files are restored. A dry run changes nothing.
    """
    folder = Path(results) / run.spec.folder
    now = {folder / name: folder / aside for name, aside in OUTDATED.items()}
    if run.digest in (_digest(folder / RESULT), _digest(folder / OUTDATED[RESULT])):
        if not dry_run:
            _put_back(folder, run.digest)
            write_specs([run], results)
        return "finished"
    there = [path for path in now if path.exists()]
    if all(_digest(path) == run.digest for path in there):
        return "to do"
    if dry_run:
        return "outdated"
    for path in there:
        path.replace(now[path])
    return "to do"


def _put_back(folder: Path, digest: str) -> None:
    """Give files of this specification that were put away their own names."""
    for name, aside in OUTDATED.items():
        if _digest(folder / aside) == digest != _digest(folder / name):
            (folder / aside).replace(folder / name)


def _digest(path: Path) -> str | None:
    """Return the digest of a specification, or of a result's; None where it cannot be read."""
    if path.name in (SPEC, OUTDATED[SPEC]):
        return digest_of(path)
    try:
        digest: str = json.loads(path.read_bytes())["spec_digest"]
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return digest


@dataclass(frozen=True)
class RunStatus:
    """Status (one of ``benchmark.core.records.STATUSES``) and reason of a run.

    ``result`` is there when the status is ok or diverged, ``provenance`` when the run has one, too.
    ``code_version`` is that of the result, of a stale one as well.
    """

    status: str
    reason: str = ""
    result: Result | None = None
    provenance: Provenance | None = None
    code_version: str = ""


def states_of(study: Study, results: Path) -> list[tuple[Run, RunStatus]]:
    """Return every run of ``study`` with its status below ``results``."""
    runs = expand(study).values()
    return [(run, status_in(results / run.spec.folder, run.spec)) for run in runs]


def count_by_status(states: Iterable[tuple[Run, RunStatus]]) -> dict[str, int]:
    """Return the number of runs of each status, in the order of STATUSES."""
    return dict.fromkeys(STATUSES, 0) | Counter(state.status for _, state in states)


def status_in(folder: Path, spec: RunSpec) -> RunStatus:
    """Return the status of the run in ``folder``; a damaged file is a failure, no error."""
    try:
        found = [folder / name for name in (RESULT, OUTDATED[RESULT])]
        there = next((path for path in found if path.exists()), None)
        if there is None:
            reason = failure_in(end_of_log(folder / LOG))
            if reason is None:
                words = "started, but neither finished nor failed: still running, or stopped"
                return RunStatus("missing", words if (folder / LOG).exists() else "not run yet")
            return RunStatus("failed", f"{reason} (see {folder / LOG})")
        result = Result.read(there)
        if (old := result.spec_digest) != spec.digest:
            words = f"the result is of specification {old}, the study has {spec.digest}"
            code = result.code_version
            return RunStatus("stale", f"{words}; run the study again", code_version=code)
        path = folder / PROVENANCE
        provenance = Provenance.read(path) if path.exists() else None
    except RunError as error:
        return RunStatus("failed", str(error))
    return RunStatus(result.status, result.reason, result, provenance, result.code_version)


def end_of_log(path: Path) -> list[str]:
    """Return the last lines of a log, whatever is in it; none where there is no log."""
    try:
        with path.open("rb") as stream:
            stream.seek(max(0, path.stat().st_size - LOG_END))
            return stream.read().decode(errors="replace").splitlines()
    except OSError:
        return []


def failure_in(lines: list[str]) -> str | None:
    """Return the reason in the last lines of a log; None when it does not end with an error."""
    full = [line.rstrip() for line in lines if line.strip()]
    start = next((n for n in range(len(full) - 1, -1, -1) if full[n].startswith("error: ")), None)
    if start is not None:
        return " ".join(line.strip() for line in full[start:]).removeprefix("error: ")
    if any(line.startswith("Traceback") for line in full):
        return next((line for line in reversed(full) if not line.startswith(_TRAILING)), full[-1])
    if full and any(word in full[-1].lower() for word in ("error", "killed", "aborted", "fault")):
        return full[-1]
    return None
