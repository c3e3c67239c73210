"""Time, memory and made-up batches, on a GPU or, in miniature, on a CPU."""

from __future__ import annotations

import contextlib
import signal
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

PER_CLASS, WIDTH = 4, 512
Row = dict[str, Any]


class OutOfTimeError(BaseException):
    """The time of a part is used up while something is measured.

    No Exception: what is measured shall not catch it.
    """


@dataclass
class Place:
    """Where is measured, whether in miniature, and until when (time.monotonic())."""

    device: torch.device
    small: bool
    until: float = field(default=float("inf"))

    @property
    def over(self) -> bool:
        """Whether the time of this part is used up."""
        return time.monotonic() > self.until

    def tried(self, row: Row, measure: Callable[[], Row]) -> Row:
        """Return ``row`` with what ``measure`` returns, or why there is nothing."""
        if self.over:
            return {**row, "skipped": "out of time"}
        try:
            return {**row, **measure()}
        except Exception as error:
            return {**row, "failed": f"{type(error).__name__}: {error}"[:200]}

    def wait(self) -> None:
        """Wait for the device."""
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def milliseconds(self, work: Callable[[], object], repeats: int = 7) -> float:
        """Return the median time of ``work``, after one call that is not timed."""
        work()
        times = []
        for _ in range(2 if self.small else repeats):
            self.wait()
            start = time.perf_counter()
            work()
            self.wait()
            times.append(1000 * (time.perf_counter() - start))
            if self.over:
                break
        return statistics.median(times)

    def peak_mb(self, work: Callable[[], object]) -> float | None:
        """Return the memory of tensors that ``work`` adds at its peak; None on a CPU."""
        if self.device.type != "cuda":
            return None
        self.wait()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        work()
        self.wait()
        return (torch.cuda.max_memory_allocated() - before) / 2**20

    def batch(self, size: int, width: int = WIDTH, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return unit rows (size, width) that lie near those of their class."""
        generator = torch.Generator().manual_seed(0)
        centers = torch.randn(-(-size // PER_CLASS), width, generator=generator)
        rows = centers.repeat_interleave(PER_CLASS, 0)[:size]
        rows = rows + torch.randn(size, width, generator=generator)
        return torch.nn.functional.normalize(rows, dim=1).to(self.device, dtype)


@contextlib.contextmanager
def ended_after(seconds: float) -> Iterator[None]:
    """Raise OutOfTimeError inside when the seconds are over; only where there are such alarms."""
    main = threading.current_thread() is threading.main_thread()
    if not main or not hasattr(signal, "setitimer"):
        yield
        return

    def ring(*_: object) -> None:
        raise OutOfTimeError(f"ended after {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def labels_of(size: int) -> Tensor:
    """Return the labels of such a batch, on the CPU as in training."""
    return torch.arange(size) // PER_CLASS
