"""Timing of several methods in one process, interleaved: a busy machine slows all of them alike."""

import contextlib
import ctypes
import gc
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

Row = dict[str, Any]
Measure = Callable[[], float]
PEAK_RESET = Path("/proc/self/clear_refs")


class Target(NamedTuple):
    """A measured number and its bound: a minimum (of a speed) or a maximum (of a cost)."""

    what: str
    value: float
    bound: float
    unit: str
    at_least: bool = False

    @property
    def margin(self) -> float:
        """The value over the bound, or its inverse: 1 and more keeps it."""
        return self.value / self.bound if self.at_least else self.bound / max(self.value, 1e-12)


def seconds_of(call: Callable[[], object]) -> float:
    """Return the seconds of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def measure_methods(
    methods: Mapping[str, Callable[[], object]],
    peak_of: Callable[[Callable[[], object]], int],
    *,
    floor: str,
    library: str = "",
    repeats: int,
    seconds: float = float("inf"),
    count_first: bool = False,
) -> list[Row]:
    """Return a row for each method: median time, ratios to two of the methods, peak memory.

    Each runs once for its peak memory, then interleaved with the others; the time of the first run
    counts with ``count_first``, for a ``peak_of`` that slows nothing. None starts after ``seconds``
    of a method.
    """
    peaks = {}
    times = {}
    for name, call in methods.items():
        start = time.perf_counter()
        peaks[name] = peak_of(call)
        times[name] = [time.perf_counter() - start][: int(count_first)]
    for _ in range(repeats - count_first):
        for name, call in methods.items():
            if sum(times[name]) < seconds:
                times[name].append(seconds_of(call))
    typical = {name: statistics.median(times[name]) for name in methods}
    return [
        {
            "method": name,
            "milliseconds": 1000 * typical[name],
            "times_floor": typical[name] / typical[floor] if floor in typical else None,
            "times_faster": typical[library] / typical[name] if library in typical else None,
            "peak_mb": peaks[name] / 2**20,
            "repeats": len(times[name]),
        }
        for name in methods
    ]


def compare(
    what: str, ours: Measure, alternative: Measure, repeats: int, at_least: float | None
) -> Row:
    """Return two speeds (images per second) and the median of their ratios, which has a bound.

    The first measurement of either side does not count.
    """
    pairs = [(ours(), alternative()) for _ in range(repeats + 1)][1:]
    ratio = statistics.median(one / other for one, other in pairs)
    bound = [] if at_least is None else [Target(what, ratio, at_least, "x alternative", True)]
    return {
        "what": what,
        "ours": statistics.median(one for one, _ in pairs),
        "alternative": statistics.median(other for _, other in pairs),
        "ratio": ratio,
        "targets": bound,
    }


def peak_of_process(call: Callable[[], object]) -> int:
    """Return the most bytes by which this process grew during ``call`` (on Linux)."""
    gc.collect()  # garbage that is collected during the call would hide as much of its growth,
    with contextlib.suppress(AttributeError):  # and so would what the C library keeps for later
        ctypes.CDLL(None).malloc_trim(0)
    PEAK_RESET.write_text("5")
    before = _status("VmRSS")
    call()
    return max(0, _status("VmHWM") - before)


def _status(key: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))
