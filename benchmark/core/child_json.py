"""What only costly imports can tell, computed once in a process of its own and kept as JSON."""

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from benchmark.core.errors import BenchmarkError, ConfigError
from benchmark.core.files import write_text
from benchmark.core.paths import MAX_RECORD, read_regular
from benchmark.core.plain import parse_json

PACKAGE = Path(__file__).resolve().parents[2]
T = TypeVar("T")
WRONG = (OSError, ValueError, LookupError, TypeError, AttributeError)
PATIENCE = 900.0  # seconds for the imports, on the slowest of disks


def told_by_child(path: Path, code: str, what: str, make: Callable[[Any], T]) -> T:
    """Return ``make`` of the JSON that the Python ``code`` prints in its last line.

    It is kept at ``path`` with a digest of its own: a file that does not fit it, or that ``make``
    cannot use, is made again. Concurrent callers may all run the code, and each leaves a whole
    file; where it cannot be written, the code runs anew each time. Raise ConfigError, about
    ``what``, when the code fails.
    """
    try:
        content = parse_json(read_regular(path, MAX_RECORD))
        told = content["told"]
        if content["digest"] != _digest(told):
            raise ValueError("changed by another hand")
        return make(told)
    except WRONG:
        pass
    last = _run(code, what)
    try:
        told = parse_json(last)
        made = make(told)
    except WRONG as error:  # a plugin has the last word
        problem = f"a plugin prints {last[:80]!r} where facts are told; plugins must print nothing"
        raise ConfigError(what, [problem]) from error
    with suppress(BenchmarkError, OSError):
        # in the order of the child, which may have a meaning
        write_text(path, json.dumps({"told": told, "digest": _digest(told)}))
    return made


def _digest(told: Any) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def _run(code: str, what: str) -> str:
    """Return the last line that the code prints."""
    # the child must find the same package as this process, wherever it was started
    path = os.pathsep.join([str(PACKAGE), os.environ.get("PYTHONPATH", "")])
    try:
        child = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            env={**os.environ, "PYTHONPATH": path.strip(os.pathsep)},
            check=False,
            timeout=PATIENCE,
        )
    except subprocess.TimeoutExpired as error:
        problem = f"its imports take more than {PATIENCE:.0f} s; does a plugin loop?"
        raise ConfigError(what, [problem]) from error
    if child.returncode or not child.stdout:
        lines = child.stderr.strip().splitlines() or ["a file ended the process"]
        places = re.findall(r'File "([^"]+)", (line \d+)', child.stderr)
        place = f"{', '.join(places[-1])}: " if places else ""
        raise ConfigError(what, [f"{place}it cannot be imported: {lines[-1]}; correct that file"])
    return child.stdout.splitlines()[-1]
