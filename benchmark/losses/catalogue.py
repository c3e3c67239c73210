"""Facts and hyperparameter schemas of all losses, without importing torch.

Validating a study needs names and schemas only, while importing the losses takes seconds. So the
catalogue is built once, in a process of its own, and kept as JSON. The name of the file is a digest
of all sources it depends on; the content has a digest of its own, and a file that does not fit it
is built again.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmark.core import options, registry
from benchmark.core.environment import cache_folder
from benchmark.core.errors import BenchmarkError, ConfigError
from benchmark.core.files import write_text
from benchmark.core.plain_json import parse_json

SOURCES = Path(__file__).parent
PATIENCE = 900.0  # seconds for the imports, on the slowest of disks


@dataclass(frozen=True)
class LossFacts:
    """What a loss declares, and the JSON Schema of its hyperparameters."""

    display: str
    paper: str
    kind: str
    stochastic: bool
    accepts_references: bool
    schema: dict[str, Any]


def load_catalogue() -> dict[str, LossFacts]:
    """Return the facts of every loss by its name, sorted.

    The cache lies in the folder of the environment variable BENCHMARK_CACHE (default
    results/cache). Concurrent callers may all build it, and each leaves a whole file; where it
    cannot be written, it is built anew. Raises ConfigError when a loss file cannot be imported.
    """
    path = cache_folder() / f"losses-{_digest_of(_sources())}.json"
    return dict(_read(path, _stamp(path)))


@lru_cache(maxsize=4)  # a study's checks ask a thousand times
def _read(path: Path, _: tuple[int, int] | None) -> dict[str, LossFacts]:
    try:
        content = parse_json(path.read_text(encoding="utf-8"))
        losses = content["losses"]
        if content["digest"] != _digest(losses):
            raise ValueError("changed by another hand")
    except (OSError, ValueError, LookupError, TypeError):
        losses = _build_in_subprocess()
        with suppress(BenchmarkError, OSError):
            # in the order of the sources, which is the order of the options that trials vary
            write_text(path, json.dumps({"losses": losses, "digest": _digest(losses)}))
    return {name: LossFacts(**facts) for name, facts in losses.items()}


def build_catalogue() -> dict[str, LossFacts]:
    """Return the catalogue of the live registry; imports torch."""
    from benchmark.losses import LOSSES

    return {
        entry.name: LossFacts(
            entry.display, **entry.facts, schema=options.schema_of(entry.target.Config)
        )
        for entry in LOSSES
    }


def print_catalogue() -> None:
    """Print the catalogue of the live registry as one line of JSON."""
    print(json.dumps({name: asdict(facts) for name, facts in build_catalogue().items()}))


def _sources() -> tuple[tuple[Path, tuple[int, int] | None], ...]:
    shared = [Path(options.__file__), Path(registry.__file__)]
    own = [*sorted(SOURCES.glob("*.py")), *sorted(SOURCES.glob("*.yaml"))]
    return tuple((path, _stamp(path)) for path in [*own, *shared, *registry.plugin_files()])


def _stamp(path: Path) -> tuple[int, int] | None:
    """Return what changes with a file's content; None for a file that is not there."""
    with suppress(OSError):
        status = path.stat()
        return status.st_mtime_ns, status.st_size
    return None


@lru_cache(maxsize=4)
def _digest_of(sources: tuple[tuple[Path, tuple[int, int] | None], ...]) -> str:
    digest = hashlib.sha256(version("pytorch-metric-learning").encode())
    for path, _ in sources:
        digest.update(f"{path.name}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:20]


def _digest(losses: Any) -> str:
    return hashlib.sha256(json.dumps(losses, sort_keys=True).encode()).hexdigest()


def _build_in_subprocess() -> dict[str, Any]:
    code = "from benchmark.losses import catalogue; catalogue.print_catalogue()"
    # the child must find the same package as this process, wherever it was started
    path = os.pathsep.join([str(SOURCES.parents[1]), os.environ.get("PYTHONPATH", "")])
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
        problem = f"importing the losses takes more than {PATIENCE:.0f} s; does a plugin loop?"
        raise ConfigError("loss registry", [problem]) from error
    if child.returncode or not child.stdout:
        lines = child.stderr.strip().splitlines() or ["a file ended the process"]
        problem = f"the losses cannot be imported: {lines[-1]}; correct that file"
        raise ConfigError("loss registry", [problem, *lines[-8:-1]])
    return parse_json(child.stdout.splitlines()[-1])
