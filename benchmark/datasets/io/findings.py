"""Everything that is wrong with a dataset's files, gathered for one error message."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from benchmark.core.errors import DataError

LISTED = 20  # offenders shown of one kind


class Findings:
    """Problems of one dataset, raised together."""

    def __init__(self, dataset: str, root: Path):
        self.dataset, self.root = dataset, root
        self.problems: list[str] = []

    def add(self, problem: str) -> None:
        """Add one problem."""
        self.problems.append(problem)

    def add_all(self, what: str, offenders: Iterable[object], advice: str) -> None:
        """Add a problem of several lines, files or classes, if there are any; list the first 20."""
        offenders = list(offenders)
        if offenders:
            self.add(f"{what}: {len(offenders):,}; {advice}{listed(offenders)}")

    def stop(self) -> None:
        """Raise DataError with all problems so far, if there are any."""
        if self.problems:
            raise self._error()

    def fail(self, problem: str) -> NoReturn:
        """Raise DataError with all problems so far and this one."""
        self.add(problem)
        raise self._error()

    @contextlib.contextmanager
    def reading(self, file: str) -> Iterator[None]:
        """Fail when the block cannot read ``file``: a damaged one makes it raise anything."""
        try:
            yield
        except Exception as error:
            self.fail(f"cannot read {file} ({error}); get it again")

    def _error(self) -> DataError:
        count = len(self.problems)
        head = f"dataset '{self.dataset}' at {self.root}: {count} problem{'s' * (count > 1)}"
        return DataError("\n  ".join([head, *self.problems]))


def listed(offenders: Sequence[object]) -> str:
    """Return the first offenders, one on each line, and the number of the others."""
    # a name that is not UTF-8 could not be printed
    names = [str(each).encode(errors="backslashreplace").decode() for each in offenders[:LISTED]]
    if len(offenders) > LISTED:
        names.append(f"and {len(offenders) - LISTED:,} more")
    return "".join(f"\n      {name}" for name in names)
