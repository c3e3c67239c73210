"""What is said of a part of a step, and the search for causes of a difference."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import numpy as np
import yaml
from scipy.optimize import minimize_scalar

Outcome = Literal["equal", "differs", "not decided", "not recorded"]


@dataclass(frozen=True)
class Cause:
    """What may explain a difference of a part: its words and its change in ``causes.yaml``."""

    key: str
    part: str
    says: str
    seen: str = ""
    change: dict[str, Any] = field(default_factory=dict)


CAUSES = {
    key: Cause(key, **entry)
    for key, entry in yaml.safe_load(Path(__file__).with_name("causes.yaml").read_text()).items()
}


@dataclass(frozen=True)
class PartFinding:
    """The outcome of one part; ``size`` is how far it is off, ``cause`` a key of the causes."""

    part: str
    outcome: Outcome
    says: str = ""
    size: float | None = None
    cause: str = ""


def differs(part: str, size: float, cause: str, **values: Any) -> PartFinding:
    """Return a difference; ``cause`` is "" if nothing in the table explains it."""
    says = "no cause in the table explains it alone or with another: a second one is not decided"
    if cause:
        says = CAUSES[cause].says.format(**values)
        if CAUSES[cause].seen:
            says += f" (seen: {CAUSES[cause].seen})"
    return PartFinding(part, "differs", says, float(size), cause)


# A cause with one concrete change, such as {"shift": 1}.
Change = tuple[Cause, dict[str, Any]]


def explanation(
    changes: Iterable[Change], fits: Callable[[dict[str, Any]], bool]
) -> tuple[Change, ...] | None:
    """Return the fewest changes, two at most, that make a part fit; None if none do."""
    if fits({}):
        return ()
    changes = list(changes)
    for count in (1, 2):
        for chosen in combinations(changes, count):
            merged: dict[str, Any] = {}
            for _, change in chosen:
                merged |= change
            if fits(merged):
                return chosen
    return None


def sought(error: Callable[[float], float], grid: Sequence[float]) -> float:
    """Return where an error is least, near the best value of a rising grid."""
    best = int(np.argmin([error(value) for value in grid]))
    ends = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    found = minimize_scalar(error, bounds=ends, method="bounded", options={"xatol": 1e-9})
    return float(min(found.x, grid[best], key=error))
