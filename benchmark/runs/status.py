"""What became of one run, read from its folder: finished, diverged, missing, failed or stale."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmark.core.records import LOG, PROVENANCE, RESULT, SCHEMA
from benchmark.study.grid import Run

# Log lines that follow the reason of a failure without being it.
_TRAILING = ("Traceback", "  ", "During handling", "The above exception")
_NUMBERS = {"ok", "diverged"}


@dataclass(frozen=True)
class RunState:
    """Status (one of ``benchmark.core.records.STATUSES``) and reason; the records only of this very specification."""

    status: str
    reason: str = ""
    result: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)


def state_of(run: Run, results: Path) -> RunState:
    """Returns the state of ``run`` below ``results``; a file that cannot be read is a failure, never an error."""
    folder = f"{results}/runs/{run.spec.run_id}"
    result, problem = _read(f"{folder}/{RESULT}")
    if problem:
        return RunState("failed", f"{RESULT} {problem}; delete it and run the study again")
    if result is None:
        return _without_result(Path(folder))
    if result.get("schema") != SCHEMA:
        words = f"{RESULT} has schema {result.get('schema')}, this version reads {SCHEMA}"
        return RunState(
            "failed", f"{words}; run it again with this version, or collect with that one"
        )
    if result.get("spec_digest") != run.digest:
        reason = f"the result is of specification {result.get('spec_digest')}, the study asks for {run.digest}"
        return RunState(
            "stale", f"{reason}; run the study again", {"code_version": result.get("code_version")}
        )
    status = result.get("status")
    if status not in _NUMBERS or not isinstance(result.get("metrics"), dict):
        return RunState(
            "failed",
            f"{RESULT} is incomplete (status {status!r}); delete it and run the study again",
        )
    provenance, problem = _read(f"{folder}/{PROVENANCE}")
    return RunState(status, result.get("reason") or problem or "", result, provenance or {})


def _without_result(folder: Path) -> RunState:
    log = folder / LOG
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return RunState("missing", "not run yet")
    reason = failure_in(lines)
    if reason is None:
        return RunState(
            "missing", "started, but neither finished nor failed: still running, or stopped"
        )
    return RunState("failed", f"{reason} (see {log})")


def failure_in(lines: list[str]) -> str | None:
    """Returns the reason in the last lines of a log that ends with an error; None when it does not."""
    full = [line.rstrip() for line in lines if line.strip()]
    start = next((n for n in range(len(full) - 1, -1, -1) if full[n].startswith("error: ")), None)
    if start is not None:
        return " ".join(line.strip() for line in full[start:]).removeprefix("error: ")
    if any(line.startswith("Traceback") for line in full):
        return next((line for line in reversed(full) if not line.startswith(_TRAILING)), full[-1])
    if full and any(word in full[-1].lower() for word in ("error", "killed", "aborted", "fault")):
        return full[-1]
    return None


def _read(path: str) -> tuple[dict[str, Any] | None, str]:
    """Returns (content, "") of a JSON mapping, (None, "") of an absent file, (None, problem) otherwise."""
    try:
        with open(path, encoding="utf-8") as stream:
            value = json.load(stream)
    except (FileNotFoundError, NotADirectoryError):
        return None, ""
    except (OSError, ValueError) as error:
        return None, f"cannot be read ({error})"
    return (value, "") if isinstance(value, dict) else (None, "is no JSON object")
