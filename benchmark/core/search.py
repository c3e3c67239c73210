"""Ranges that trials draw values from, declared beside the option that they belong to.

A range is one word and its values: ``{"log": [0.001, 0.1]}`` and ``{"linear": [0.0, 0.5]}`` from
low to high, ``{"times": [0.1, 10.0]}`` from low to high times the published value, on a log scale,
and ``{"among": [2, 4, 8]}`` one of these.
"""

from collections.abc import Mapping
from typing import Any

from benchmark.core.seeding import derive

DIGITS = 3  # of a drawn value: readable, and the same on every machine
SEED = 0


def value_at(search: Mapping[str, Any], share: float, published: Any, whole: bool = False) -> Any:
    """Return the value at ``share`` in [0, 1) of a range; a ``whole`` one is rounded."""
    ((scale, values),) = search.items()
    if scale == "among":
        return values[int(share * len(values))]
    low, high = values
    value = low + share * (high - low) if scale == "linear" else low * (high / low) ** share
    if scale == "times":
        value *= published
    return round(value) if whole else float(f"{value:.{DIGITS}g}")


def sobol(name: str, dimensions: int, points: int) -> list[list[float]]:
    """Return the first ``points`` of the scrambled Sobol sequence of ``name``, in [0, 1).

    The scrambling (Owen's, by scipy) is seeded by the name: every loss has points of its own, and
    those of a small budget are the first of a larger one.
    """
    from scipy.stats import qmc

    if not dimensions:
        return [[] for _ in range(points)]
    sequence = qmc.Sobol(dimensions, scramble=True, rng=derive(SEED, "trials", name))
    return sequence.random_base2((points - 1).bit_length()).tolist()[:points]
