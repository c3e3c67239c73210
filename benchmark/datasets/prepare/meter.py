"""How far a long step is: a bar on a terminal, a line now and then in a log."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from tqdm import tqdm

LOG_SECONDS = 30.0  # between two lines, where no terminal shows a bar


class Meter:
    """Counts up to ``total`` (None: unknown) and shows it on standard error; use it in a ``with``."""

    def __init__(self, label: str, total: int | None, unit: str, done: int = 0):
        """Starts at ``done``; the unit ``B`` is shown with its multiples."""
        self.label, self.total, self.unit, self.done = label, total, unit, done
        self._bar = None
        self._last = time.monotonic()
        if sys.stderr.isatty():
            scale = {"unit": "B", "unit_scale": True} if unit == "B" else {"unit": f" {unit}"}
            self._bar = tqdm(total=total, initial=done, desc=label, leave=False, **scale)

    def add(self, count: int) -> None:
        """Counts ``count`` more."""
        self.done += count
        if self._bar is not None:
            self._bar.update(count)
        elif time.monotonic() - self._last >= LOG_SECONDS:
            self._last = time.monotonic()
            print(f"{self.label}: {self._so_far()}", file=sys.stderr, flush=True)

    def _so_far(self) -> str:
        if self.unit == "B":
            done, total = amount(self.done), amount(self.total or 0)
        else:
            done, total = f"{self.done:,}", f"{self.total or 0:,} {self.unit}"
        return f"{100 * self.done / self.total:.0f}% ({done} of {total})" if self.total else done

    def __enter__(self) -> Meter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.close()


def amount(size: int) -> str:
    """Returns a number of bytes as people write it: 12 B, 3.4 kB, 1.2 GB."""
    value = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"
