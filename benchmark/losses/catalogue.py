"""Facts and hyperparameter schemas of all losses, without importing torch.

Validating a study needs names and schemas only, while importing the losses takes seconds. So the catalogue is
built once, in a process of its own, and kept as JSON whose name is a digest of every source it depends on.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmark.core import options, registry
from benchmark.core.environment import cache_folder
from benchmark.core.errors import ConfigError
from benchmark.core.files import write_json

SOURCES = Path(__file__).parent


def load_catalogue() -> dict[str, dict[str, Any]]:
    """Returns {loss name: {display, paper, kind, stochastic, accepts_references, schema}}, sorted by name.

    ``schema`` is the JSON Schema of the hyperparameters. The cache lies in the folder of the environment
    variable BENCHMARK_CACHE (default results/cache); concurrent callers may all build it, and each leaves a
    whole file. Raises ConfigError when a loss file cannot be imported.
    """
    path = cache_folder() / f"losses-{_digest()}.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        catalogue = _build_in_subprocess()
        write_json(path, catalogue)
        return catalogue


def build_catalogue() -> dict[str, dict[str, Any]]:
    """Returns the catalogue from the live registry; imports torch."""
    from benchmark.losses import LOSSES

    return {
        entry.name: {
            "display": entry.display,
            **entry.facts,
            "schema": options.schema_of(entry.target.Config),
        }
        for entry in LOSSES
    }


def _digest() -> str:
    digest = hashlib.sha256()
    shared = [Path(options.__file__), Path(registry.__file__)]
    for path in [*sorted(SOURCES.glob("*.py")), *shared, *registry.plugin_files()]:
        digest.update(f"{path.name}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:20]


def _build_in_subprocess() -> dict[str, dict[str, Any]]:
    code = "import json; from benchmark.losses.catalogue import build_catalogue; print(json.dumps(build_catalogue()))"
    # the child must find the same package as this process, wherever it was started
    path = os.pathsep.join([str(SOURCES.parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
    child = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )
    if child.returncode:
        lines = child.stderr.strip().splitlines() or ["no message"]
        problem = f"the losses cannot be imported: {lines[-1]}; correct that file"
        raise ConfigError("loss registry", [problem, *lines[-8:-1]])
    return json.loads(child.stdout.splitlines()[-1])
