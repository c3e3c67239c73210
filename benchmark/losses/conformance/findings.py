"""What a check found, and the smallest batch that shows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from benchmark.losses.conformance.candidate import REFUSALS, in_words
from benchmark.losses.conformance.cases import Case
from benchmark.losses.conformance.reference import Mismatch

Result = Literal["passed", "failed", "not applicable"]
# From a batch to what is wrong with the candidate on it, None when nothing is.
Problem = Callable[[Case], Mismatch | None]
TENSORS = ("embeddings", "labels", "references", "reference_labels")  # of a case
MOST_TRIALS = 200  # of smaller batches
PLAIN = 1000.0  # times what is allowed


@dataclass(frozen=True)
class Finding:
    """The result of a check in words, and the smallest batch that fails."""

    check: str
    result: Result
    note: str = ""
    case: Case | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the finding as plain data."""
        plain: dict[str, Any] = {"check": self.check, "result": self.result, "note": self.note}
        if self.case is not None:
            values = [(name, getattr(self.case, name)) for name in TENSORS]
            plain["case"] = {name: None if x is None else x.tolist() for name, x in values}
        return plain

    def shown_case(self, most: int = 12) -> str:
        """Return the batch as Python reads it, its first rows when it is large; "" without one."""
        lines = []
        for name in TENSORS:
            values = getattr(self.case, name, None)
            if values is not None and values.ndim == 1:
                lines.append(f"  {name} = {values.tolist()}")
            elif values is not None:
                rows = [[f"{value:.5g}" for value in row] for row in values[:most].tolist()]
                lines.append(f"  {name} = [  # {len(values)} rows, {values.shape[1]} dimensions")
                lines += [f"    [{', '.join(row)}]," for row in rows]
                lines += ["    ...  # all rows are in the JSON"] * (len(values) > most) + ["  ]"]
        return "\n".join(lines)


def examine(
    check: str, cases: Sequence[Case], problem: Problem, crash: Result = "failed"
) -> Finding:
    """Return whether ``problem`` finds nothing on any of the cases.

    ``crash`` is the result of an exception that does not decline a batch in words.
    """
    for case in cases:
        try:
            found = problem(case)
        except Exception as error:
            return of_error(check, case, error, crash)
        if found is not None:
            smallest, found = shrink(case, problem, found)
            return Finding(check, "failed", f"{case.name}: {found.text}", smallest)
    return Finding(check, "passed")


def of_error(check: str, case: Case, error: Exception, crash: Result = "failed") -> Finding:
    """Return what an exception says: the candidate refuses the batch, or it crashes."""
    if isinstance(error, REFUSALS):
        return Finding(check, "not applicable", f"refused: {in_words(error)}")
    note = f"{case.name}: raised {in_words(error)}"
    return Finding(check, crash, note, case if crash == "failed" else None)


def shrink(case: Case, problem: Problem, found: Mismatch) -> tuple[Case, Mismatch]:
    """Return the smallest batch on which the problem still is plain, and what is wrong there.

    Rows are left out first, then dimensions.
    """
    trials, plain = 0, min(PLAIN, found.times)

    def still_plain(smaller: Case | None) -> bool:
        nonlocal trials, case, found
        trials += 1
        if smaller is None or not smaller.has_positive or trials > MOST_TRIALS:
            return False
        try:
            again = problem(smaller)
        except Exception:
            return False
        if again is None or again.times < plain:
            return False
        case, found = smaller, again
        return True

    step = len(case.labels) // 2
    while step:
        start = 0
        while start < len(case.labels):
            rows = range(len(case.labels))
            if not still_plain(case.subset([*rows[:start], *rows[start + step :]])):
                start += step
        step //= 2
    any(still_plain(case.narrowed(dim)) for dim in range(2, case.embeddings.shape[1]))
    return case, found
