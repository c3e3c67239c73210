"""Read a trace, which a stranger made: what cannot be used is said, and the rest is judged."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from benchmark.core.errors import DataError
from benchmark.core.files import check_regular
from benchmark.replay.recorder import VERSION


@dataclass
class Update:
    """What one call of an optimiser did to the recorded coordinates of ``names``.

    fresh   whether its state was empty, as far as it shows its state
    groups  its hyperparameters as read
    passes  backward passes since the update before
    made    norms of gradients as backward made them; ``norms``: as the optimiser got them
    """

    optimizer: str = ""
    names: Any = ()
    fresh: bool = True
    groups: Any = ()
    passes: int = 1
    made: Any = None
    norms: Any = None
    before: Any = None
    gradient: Any = None
    after: Any = None


@dataclass
class RecordedStep:
    """One step of a program; None stands for what was not recorded or cannot be used."""

    labels: Any = None
    numbers: Any = None
    inputs: Any = None
    embeddings: Any = None
    loss: Any = None
    state: Any = None
    norms_moved: Any = ()
    dtype: str = ""
    tf32: bool = False
    gradients: Any = ()
    updates: Any = ()


@dataclass
class Trace:
    """A recorded run; ``sizes``, ``labels`` and ``numbers`` are of all batches."""

    version: int
    torch: str
    threads: int
    processes: int
    coordinates: int
    shapes: dict[str, list[int]]
    steps: Any
    sizes: Any = None
    labels: Any = None
    numbers: Any = None
    problems: list[str] = field(default_factory=list)


def read_trace(path: Path) -> Trace:
    """Return the trace at ``path``; raise DataError if nothing of it can be judged."""
    problems: list[str] = []
    check_regular(path)
    if not path.exists():
        raise DataError(f"{path} does not exist: recorder.close() writes the trace")
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
        if dict(content)["version"] != VERSION:
            raise ValueError(f"version {content['version']}, not {VERSION}")
        trace = Trace(**_usable(content, "", problems), problems=problems)
        trace.steps = [RecordedStep(**step) for step in trace.steps]
        for step in trace.steps:
            step.updates = [Update(**update) for update in step.updates]
            step.gradients = [x for x in step.gradients if x is not None]
    except Exception as error:  # whatever the bytes provoke
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        advice = "record it anew with the file that 'python -m benchmark replay --recorder' prints"
        raise DataError(f"{path} is cut off or no trace ({reason:.200}); {advice}") from error
    return trace


def _usable(value: Any, place: str, problems: list[str]) -> Any:
    """Return a value with float32 for other floats, and None for what is not finite."""
    if isinstance(value, dict):
        return {key: _usable(value[key], f"{place} {key}", problems) for key in value}
    if isinstance(value, list):
        return [_usable(x, f"{place} {number}", problems) for number, x in enumerate(value, 1)]
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        if value.isfinite().all():
            return value.float()
        problems.append(f"{place.strip()} is not finite, and left out")
        return None
    return value
