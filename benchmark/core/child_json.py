"""What only costly imports can tell, computed once in a process of its own and kept as JSON."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmark.core.errors import ConfigError
from benchmark.core.files import write_text

PACKAGE = Path(__file__).resolve().parents[2]


def from_child(path: Path, code: str, what: str) -> Any:
    """Return the JSON that the Python ``code`` prints in its last line, and keep it at ``path``.

    Concurrent callers may all run the code, and each leaves a whole file. What the code raises is
    shown as Python shows it, and raises ConfigError about ``what``.
    """
    if path.is_file():
        return json.loads(path.read_text(encoding="utf-8"))
    # the child must find the same package as this process, wherever it was started
    places = os.pathsep.join([str(PACKAGE), *filter(None, [os.environ.get("PYTHONPATH")])])
    child = subprocess.run(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": places},
        check=False,
    )
    if child.returncode:
        raise ConfigError(what, ["it cannot be imported; the lines above say why"])
    last = child.stdout.splitlines()[-1]
    write_text(path, last)  # in the order of the child, which may have a meaning
    return json.loads(last)
