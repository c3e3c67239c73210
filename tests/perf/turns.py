"""Timing of several methods in one process, by turns: a busy spell of the machine meets all of them alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch

from perf.sections import load
from perf.targets import Target, judgement

Measure = Callable[[], float]


def take_turns(
    methods: Mapping[str, Measure], repeats: int, seconds: float = float("inf"), warm: bool = False
) -> dict[str, list[float]]:
    """Returns what each method gives, ``repeats`` times; one that has run for ``seconds`` is not repeated further.

    ``warm``: each runs once more at first, uncounted.
    """
    if warm:
        for measure in methods.values():
            measure()
    found: dict[str, list[float]] = {name: [] for name in methods}
    spent = dict.fromkeys(methods, 0.0)
    for _ in range(repeats):
        for name, measure in methods.items():
            if spent[name] < seconds:
                start = time.perf_counter()
                found[name].append(measure())
                spent[name] += time.perf_counter() - start
    return found


def seconds_of(call: Callable[[], object], device: torch.device | None = None) -> float:
    """Returns the seconds of one call, with all that it started on ``device``."""
    start = _now(device)
    call()
    return _now(device) - start


def medians(found: Mapping[str, list[float]]) -> dict[str, float]:
    """Returns the median of each method."""
    return {name: statistics.median(values) for name, values in found.items()}


def compare(
    what: str,
    ours: Measure,
    alternative: Measure,
    turns: int,
    *,
    least: float | None,
    workers: int = 0,
) -> tuple[dict[str, Any], list[Target]]:
    """Returns the row of two speeds (images per second) and, if their ratio has a ``least`` value, its target.

    The ratio is the median over turns; the first turn of either side is not counted.
    """
    found = take_turns({"ours": ours, "alternative": alternative}, turns, warm=True)
    ratio = statistics.median(
        a / b for a, b in zip(found["ours"], found["alternative"], strict=True)
    )
    targets = (
        [] if least is None else [Target(what, ratio, least, "times the alternative", least=True)]
    )
    row = {
        "what": what,
        **medians(found),
        "ratio": ratio,
        **judgement(targets),
        "turns": turns,
        "workers": workers,
        "threads": torch.get_num_threads(),
        "load": round(load(), 2),
    }
    return row, targets


def _now(device: torch.device | None) -> float:
    if device is not None and device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()
