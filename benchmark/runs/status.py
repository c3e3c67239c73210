"""What became of one run, read from its folder: finished, diverged, missing, failed or stale."""

from dataclasses import dataclass
from pathlib import Path

from benchmark.core.errors import RunError
from benchmark.core.records import LOG, PROVENANCE, RESULT, RunSpec
from benchmark.core.results import Provenance, Result, StaleError, read_own_result
from benchmark.runs.specs import OUTDATED
from benchmark.study.grid import Run

LOG_END = 1_000_000  # bytes of a log that are looked at
# Log lines that follow the reason of a failure without being it.
_TRAILING = ("Traceback", "  ", "During handling", "The above exception")


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


def status_of(run: Run, results: Path) -> RunStatus:
    """Return the status of ``run`` below ``results``; a damaged file is a failure, no error."""
    return status_in(Path(results) / run.spec.folder, run.spec)


def status_in(folder: Path, spec: RunSpec) -> RunStatus:
    """Return the status of the run with this specification from its folder, as ``status_of``."""
    try:
        found = [folder / name for name in (RESULT, OUTDATED[RESULT])]
        there = next((path for path in found if path.exists()), None)
        if there is None:
            return _without_result(folder)
        result = read_own_result(there, spec.digest)
        path = folder / PROVENANCE
        provenance = Provenance.read(path) if path.exists() else None
    except StaleError as error:
        reason = (
            f"the result is of specification {error.result.spec_digest}, the study asks for "
            f"{spec.digest}; run the study again"
        )
        return RunStatus("stale", reason, code_version=error.result.code_version)
    except RunError as error:
        return RunStatus("failed", str(error))
    return RunStatus(result.status, result.reason, result, provenance, result.code_version)


def _without_result(folder: Path) -> RunStatus:
    log = folder / LOG
    try:
        lines = end_of_log(log)
    except OSError:
        return RunStatus("missing", "not run yet")
    reason = failure_in(lines)
    if reason is None:
        return RunStatus(
            "missing", "started, but neither finished nor failed: still running, or stopped"
        )
    return RunStatus("failed", f"{reason} (see {log})")


def end_of_log(path: Path) -> list[str]:
    """Return the last lines of a log, whatever is in it; raise OSError."""
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - LOG_END))
        return stream.read().decode(errors="replace").splitlines()


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
