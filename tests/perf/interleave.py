"""Timing of several methods in one process, interleaved: a busy machine slows all of them alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from functools import partial

import torch

from perf.sections import Measurement, Row, Target, load

Measure = Callable[[], float]


def interleaved(
    methods: Mapping[str, Measure], repeats: int, seconds: float = float("inf")
) -> dict[str, list[float]]:
    """Return up to ``repeats`` measurements of each method.

    A method that has used up ``seconds`` is not repeated further.
    """
    measured: dict[str, list[float]] = {name: [] for name in methods}
    spent = dict.fromkeys(methods, 0.0)
    for _ in range(repeats):
        for name, measure in methods.items():
            if spent[name] < seconds:
                start = time.perf_counter()
                measured[name].append(measure())
                spent[name] += time.perf_counter() - start
    return measured


def seconds_of(call: Callable[[], object], device: torch.device | None = None) -> float:
    """Return the seconds of one call, with everything that it started on ``device``."""
    start = _now(device)
    call()
    return _now(device) - start


def measure_methods(
    methods: Mapping[str, Callable[[], object]],
    peak_of: Callable[[Callable[[], object]], int | None],
    *,
    floor: str,
    library: str,
    repeats: int,
    seconds: float = float("inf"),
    count_first: bool = False,
) -> list[Row]:
    """Return a row for each method: median time, ratios to two of the methods, peak memory.

    Each runs once for its peak memory, then interleaved with the others; the time of the first run
    counts with ``count_first``, for a ``peak_of`` that slows nothing.
    """
    begin = load()
    peaks: dict[str, int | None] = {}
    first = {
        name: seconds_of(lambda name=name, call=call: peaks.update({name: peak_of(call)}))
        for name, call in methods.items()
    }
    calls = {name: partial(seconds_of, call) for name, call in methods.items()}
    times = interleaved(calls, repeats - count_first, seconds)
    for name in first if count_first else ():
        times[name].insert(0, first[name])
    typical = {name: statistics.median(values) for name, values in times.items()}
    return [
        {
            "method": name,
            "milliseconds": 1000 * typical[name],
            "min": 1000 * min(times[name]),
            "max": 1000 * max(times[name]),
            "times_floor": typical[name] / typical[floor],
            "times_faster": typical[library] / typical[name] if library in typical else None,
            "peak_mb": None if (peak := peaks[name]) is None else peak / 2**20,
            "repeats": len(times[name]),
            "threads": torch.get_num_threads(),
            "load": round(max(begin, load()), 2),
        }
        for name in methods
    ]


def compare(
    what: str,
    ours: Measure,
    alternative: Measure,
    repeats: int,
    *,
    at_least: float | None,
    workers: int = 0,
) -> Measurement:
    """Return two speeds (images per second) and their ratio, which may have a bound.

    The ratio is the median over repeats; the first measurement of either side does not count.
    """
    measured = interleaved({"ours": ours, "alternative": alternative}, repeats + 1)
    pairs = list(zip(measured["ours"], measured["alternative"], strict=True))[1:]
    ratio = statistics.median(one / other for one, other in pairs)
    row = {
        "what": what,
        "ours": statistics.median(one for one, _ in pairs),
        "alternative": statistics.median(other for _, other in pairs),
        "ratio": ratio,
        "repeats": repeats,
        "workers": workers,
        "threads": torch.get_num_threads(),
        "load": round(load(), 2),
    }
    unit = "times the alternative"
    bound = [] if at_least is None else [Target(what, ratio, at_least, unit, at_least=True)]
    return Measurement(row, bound)


def _now(device: torch.device | None) -> float:
    if device is not None and device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()
