"""Facts and hyperparameter schemas of all losses, without importing torch.

Validating a study needs names and schemas only, while importing the losses takes seconds. So the
catalogue is built once, in a process of its own, and kept as JSON. The name of the file is a digest
of all sources it depends on.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmark.core import options, registry
from benchmark.core.child_json import from_child
from benchmark.core.environment import cache_folder

SOURCES = Path(__file__).parent


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
    results/cache).
    """
    return dict(_read(cache_folder() / f"losses-{_digest(_sources())}.json"))


@cache  # a study's checks ask a thousand times
def _read(path: Path) -> dict[str, LossFacts]:
    code = "from benchmark.losses import catalogue; catalogue.print_catalogue()"
    found = from_child(path, code, "loss registry")
    return {name: LossFacts(**facts) for name, facts in found.items()}


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
    """Print the catalogue of the live registry as a line of JSON."""
    print(json.dumps({name: asdict(facts) for name, facts in build_catalogue().items()}))


def _sources() -> tuple[tuple[Path, int], ...]:
    """Return the files that the catalogue depends on, and when each was changed last."""
    shared = [Path(f"{each.__file__}") for each in (options, registry)]
    own = [*sorted(SOURCES.glob("*.py")), *sorted(SOURCES.glob("*.yaml"))]
    files = [*own, *shared, *registry.plugin_files()]
    return tuple((path, path.stat().st_mtime_ns) for path in files)


@cache
def _digest(sources: tuple[tuple[Path, int], ...]) -> str:
    digest = hashlib.sha256(version("pytorch-metric-learning").encode())
    for path, _ in sources:
        digest.update(f"{path.name}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:20]
