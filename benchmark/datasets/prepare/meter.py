"""Progress of a long step: a bar on a terminal, a line now and then in a log."""

from __future__ import annotations

import sys
import time

from tqdm import tqdm

LOG_SECONDS = 30.0  # between two lines, where there is no terminal


class Meter:
    """Counts up to ``total`` (None: unknown), beginning at ``done``, and shows it on stderr.

    Use it in a ``with``. The unit ``B`` is shown with its multiples.
    """

    def __init__(self, label: str, total: int | None, unit: str, done: int = 0):
        self.label, self.total, self.unit, self.done = label, total, unit, done
        self._bar = None
        self._last = time.monotonic()
        if sys.stderr.isatty():
            name = unit if unit == "B" else f" {unit}"
            self._bar = tqdm(
                total=total,
                initial=done,
                desc=label,
                leave=False,
                unit=name,
                unit_scale=name == "B",
            )

    def add(self, count: int) -> None:
        """Count ``count`` more."""
        self.done += count
        if self._bar is not None:
            self._bar.update(count)
        elif time.monotonic() - self._last >= LOG_SECONDS:
            self._last = time.monotonic()
            print(f"{self.label}: {self._progress()}", file=sys.stderr, flush=True)

    def _progress(self) -> str:
        if self.unit == "B":
            done, total = format_bytes(self.done), format_bytes(self.total or 0)
        else:
            done, total = f"{self.done:,}", f"{self.total or 0:,} {self.unit}"
        return f"{100 * self.done / self.total:.0f}% ({done} of {total})" if self.total else done

    def __enter__(self) -> Meter:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()


def format_bytes(size: int) -> str:
    """Return a number of bytes for people: 12 B, 3.4 kB, 1.2 GB."""
    value = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"
