"""Facts and hyperparameter schemas of all losses, without importing torch.

Validating a study needs names and schemas only, while importing the losses takes seconds. So the
catalogue is built once, in a process of its own, and kept as JSON. The name of the file is a digest
of all sources it depends on; the content has a digest of its own, and a file that does not fit it
is built again.
"""

import hashlib
import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmark.core import options, registry, sound_options
from benchmark.core.child_json import told_by_child
from benchmark.core.environment import cache_folder
from benchmark.core.errors import ConfigError

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
    results/cache). Concurrent callers may all build it, and each leaves a whole file; where it
    cannot be written, it is built anew. Raises ConfigError when a loss file cannot be imported.
    """
    path = cache_folder() / f"losses-{_digest_of(_sources())}.json"
    return dict(_read(path, _stamp(path)))


@lru_cache(maxsize=4)  # a study's checks ask a thousand times
def _read(path: Path, _: tuple[int, int] | None) -> dict[str, LossFacts]:
    code = "from benchmark.losses import catalogue; catalogue.print_catalogue()"
    return told_by_child(path, code, "loss registry", _taken)


def _taken(told: Any) -> dict[str, LossFacts]:
    """Return what a process has told as facts; raise ConfigError for the problems that it found."""
    if isinstance(told, list):
        raise ConfigError("loss registry", told)
    return {name: LossFacts(**facts) for name, facts in told.items()}


def build_catalogue() -> dict[str, LossFacts]:
    """Return the catalogue of the live registry; imports torch.

    Raise ConfigError for losses of plugins that no run could be made of.
    """
    from benchmark.losses import LOSSES, plugin_problems

    if wrong := plugin_problems():
        raise ConfigError("loss registry", wrong)
    return {
        entry.name: LossFacts(
            entry.display, **entry.facts, schema=options.schema_of(entry.target.Config)
        )
        for entry in LOSSES
    }


def print_catalogue() -> None:
    """Print the catalogue of the live registry, or the problems of a plugin, as a line of JSON."""
    try:
        found: Any = {name: asdict(facts) for name, facts in build_catalogue().items()}
    except ConfigError as error:
        source = "" if error.source == "loss registry" else f"{error.source}: "
        found = [f"{source}{problem}" for problem in error.problems]
    print(json.dumps(found))


def _sources() -> tuple[tuple[Path, tuple[int, int] | None], ...]:
    shared = [Path(f"{each.__file__}") for each in (options, registry, sound_options)]
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
