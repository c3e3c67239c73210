"""Time spent in a part of a step, without making the device wait for the clock."""

import contextlib
import time
from collections.abc import Iterator

import torch


class Stopwatch:
    """Sums the seconds inside ``with stopwatch.running()``: wall clock on a CPU, events on CUDA."""

    def __init__(self, device: torch.device):
        self._cuda = device.type == "cuda"
        self._seconds = 0.0
        self._events: list[tuple[torch.cuda.Event, torch.cuda.Event]] = []

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Time the block."""
        if self._cuda:
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            yield
            end.record()
            self._events.append((start, end))
        else:
            started = time.perf_counter()
            yield
            self._seconds += time.perf_counter() - started

    def drain(self) -> float:
        """Return the seconds since the last call; on CUDA this waits for the device once."""
        if self._events:
            torch.cuda.synchronize()
            self._seconds += sum(start.elapsed_time(end) for start, end in self._events) / 1000.0
            self._events.clear()
        seconds, self._seconds = self._seconds, 0.0
        return seconds
