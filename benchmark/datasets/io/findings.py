"""What is wrong with a dataset, gathered so that one message names everything."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmark.core.errors import DataError

LISTED = 20  # offenders shown of one kind


class Findings:
    """Problems of one dataset, raised together."""

    def __init__(self, dataset: str, root: Path):
        self.dataset, self.root = dataset, root
        self.problems: list[str] = []

    def add(self, problem: str) -> None:
        """Adds one problem."""
        self.problems.append(problem)

    def add_all(self, what: str, offenders: Sequence[str], advice: str) -> None:
        """Adds a problem that several lines, files or classes share, when there are any: the first 20 are shown."""
        if len(offenders):
            more = [f"and {len(offenders) - LISTED:,} more"] if len(offenders) > LISTED else []
            shown = "\n      ".join([*offenders[:LISTED], *more])
            self.add(f"{len(offenders):,} {what}; {advice}\n      {shown}")

    def stop(self) -> None:
        """Raises DataError with all problems so far; does nothing when there are none."""
        if self.problems:
            count = len(self.problems)
            head = f"dataset '{self.dataset}' at {self.root}: {count} problem{'s' if count != 1 else ''}"
            raise DataError("\n  ".join([head, *self.problems]))
