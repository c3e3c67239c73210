"""The folder of a run: write its specification, keep old results, and find its status."""

import json
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
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
LOG_END = 1_000_000  # bytes of a log that are read
# Log lines that can follow the reason of a failure.
_TRAILING = ("Traceback", "  ", "During handling", "The above exception")


def write_spec(run: Run, results: Path, log: Path | None = None) -> None:
    """Write the specification of ``run``, and a line into ``log``.

    A finished result of another specification is copied to ``previous/<digest>/`` first, because
    the next training replaces it.
    """
    folder = results / run.spec.folder
    _restore(folder, run.digest)
    sources = {name: name for name in (RESULT, SPEC, *KEPT)}
    if not (folder / RESULT).exists():
        sources |= OUTDATED
    old = _digest(folder / sources[RESULT])
    if old and old != run.digest:
        if _digest(folder / sources[SPEC]) != old:
            del sources[SPEC]
        for name, source in sources.items():
            if (folder / source).exists():
                copy_file(folder / source, folder / PREVIOUS / old / name)
    run.spec.write(folder / SPEC)
    for name in OUTDATED.values():
        (folder / name).unlink(missing_ok=True)
    if log:
        log.write_text(f"specification {run.digest} written\n")


def write_specs(runs: Iterable[Run], results: Path) -> int:
    """Write every specification whose file is missing or different; return their number.

    That of a finished run may say something else of what is kept.
    """
    written = 0
    for run in runs:
        folder = results / run.spec.folder
        known = digest_of(folder / SPEC) == run.digest
        if known and not (folder / RESULT).exists():
            known = RunSpec.read(folder / SPEC).recipe.evaluation == run.spec.recipe.evaluation
        if not known:
            write_spec(run, results)
            written += 1
    return written


def put_away(run: Run, results: Path) -> None:
    """Move a result of another specification, with its files, to ``previous/<digest>/``.

    Training never replaces a result. Snakemake deletes the files itself.
    """
    write_spec(run, results)
    for name in (RESULT, *KEPT):
        (results / run.spec.folder / name).unlink(missing_ok=True)


def settle(run: Run, results: Path, *, dry_run: bool = False) -> Standing:
    """Rename the outdated files of a run, and return whether the run is finished.

    Only the content of the files decides. A run is finished if there is a result of its
    specification. ``spec.json`` is outdated if it differs from the specification of the study.
    ``result.json`` is outdated if it is damaged or belongs to another specification. Outdated files
    are renamed, so that Snakemake makes them again. If a later study has the old specification
    again, the renamed files are restored. A dry run changes nothing.
    """
    folder = results / run.spec.folder
    if run.digest in (_digest(folder / RESULT), _digest(folder / OUTDATED[RESULT])):
        if not dry_run:
            _restore(folder, run.digest)
            write_specs([run], results)
        return "finished"
    names = [name for name in OUTDATED if (folder / name).exists()]
    if all(_digest(folder / name) == run.digest for name in names):
        if names and not dry_run:
            write_specs([run], results)
        return "to do"
    if dry_run:
        return "outdated"
    for name in names:
        (folder / name).replace(folder / OUTDATED[name])
    return "to do"


def _restore(folder: Path, digest: str) -> None:
    """Rename outdated files back if they belong to this specification."""
    for name, outdated in OUTDATED.items():
        if _digest(folder / outdated) == digest != _digest(folder / name):
            (folder / outdated).replace(folder / name)


def _digest(path: Path) -> str | None:
    """Return the digest in a specification or a result; None if the file cannot be read."""
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

    A run that is ok or diverged has a ``result``, and often a ``provenance``. ``code_version`` is
    the version of the result, also of a stale result.
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
    """Return the status of the run in ``folder``; with a damaged result the run has failed."""
    try:
        paths = [folder / name for name in (RESULT, OUTDATED[RESULT])]
        path = next((path for path in paths if path.exists()), None)
        if path is None:
            return _without_result(folder / LOG)
        result = Result.read(path)
        if (old := result.spec_digest) != spec.digest:
            reason = f"the result is of specification {old}, the study has {spec.digest}"
            code = result.code_version
            return RunStatus("stale", f"{reason}; run the study again", code_version=code)
    except RunError as error:
        return RunStatus("failed", str(error))
    provenance = None
    with suppress(RunError):  # the result alone decides whether a run is finished
        provenance = Provenance.read(folder / PROVENANCE)
    return RunStatus(result.status, result.reason, result, provenance, result.code_version)


def _without_result(log: Path) -> RunStatus:
    if reason := failure_in(end_of_log(log)):
        return RunStatus("failed", f"{reason} (see {log})")
    if log.exists():
        reason = "started, but neither finished nor failed: still running, or stopped"
        return RunStatus("missing", reason)
    return RunStatus("missing", "not run yet")


def end_of_log(path: Path) -> list[str]:
    """Return the last lines of a log; an empty list without a log."""
    try:
        with path.open("rb") as stream:
            stream.seek(max(0, path.stat().st_size - LOG_END))
            return stream.read().decode(errors="replace").splitlines()
    except OSError:
        return []


def failure_in(lines: list[str]) -> str | None:
    """Return the reason of a failure in the lines of a log; None if it does not end with one."""
    full = [line.rstrip() for line in lines if line.strip()]
    starts = [number for number, line in enumerate(full) if line.startswith("error: ")]
    if starts:
        return " ".join(line.strip() for line in full[starts[-1] :]).removeprefix("error: ")
    if any(line.startswith("Traceback") for line in full):
        return next((line for line in reversed(full) if not line.startswith(_TRAILING)), full[-1])
    if full and any(word in full[-1].lower() for word in ("error", "killed", "aborted", "fault")):
        return full[-1]
    return None
