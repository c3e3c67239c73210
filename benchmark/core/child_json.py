"""What only costly imports can tell, computed once in a process of its own and kept as JSON."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmark.core.errors import BenchmarkError, ConfigError
from benchmark.core.files import write_text
from benchmark.core.plain import parse_json

PACKAGE = Path(__file__).resolve().parents[2]
PATIENCE = 900.0  # seconds for the imports, on the slowest of disks


def told_by_child(path: Path, code: str, what: str) -> Any:
    """Return the JSON that the Python ``code`` prints in its last line, kept at ``path``.

    The content has a digest of its own: a file that does not fit it is made again. Concurrent
    callers may all run the code, and each leaves a whole file; where it cannot be written, the code
    runs anew each time. Raise ConfigError, about ``what``, when the code fails.
    """
    try:
        content = parse_json(path.read_text(encoding="utf-8"))
        told = content["told"]
        if content["digest"] != _digest(told):
            raise ValueError("changed by another hand")
    except (OSError, ValueError, LookupError, TypeError):
        told = _run(code, what)
        with suppress(BenchmarkError, OSError):
            # in the order of the child, which may have a meaning
            write_text(path, json.dumps({"told": told, "digest": _digest(told)}))
    return told


def _digest(told: Any) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def _run(code: str, what: str) -> Any:
    # the child must find the same package as this process, wherever it was started
    path = os.pathsep.join([str(PACKAGE), os.environ.get("PYTHONPATH", "")])
    try:
        child = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": path.strip(os.pathsep)},
            check=False,
            timeout=PATIENCE,
        )
    except subprocess.TimeoutExpired as error:
        problem = f"its imports take more than {PATIENCE:.0f} s; does a plugin loop?"
        raise ConfigError(what, [problem]) from error
    if child.returncode or not child.stdout:
        lines = child.stderr.strip().splitlines() or ["a file ended the process"]
        problem = f"it cannot be imported: {lines[-1]}; correct that file"
        raise ConfigError(what, [problem, *lines[-8:-1]])
    return parse_json(child.stdout.splitlines()[-1])
