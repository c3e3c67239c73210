"""What a check of an implementation found, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from benchmark.core.errors import BenchmarkError
from benchmark.losses.conformance.formulas import Case

# By raising one of these, an implementation says that it does not do what it is asked for.
REFUSALS = (ValueError, NotImplementedError, AssertionError, BenchmarkError)
TENSORS = ("embeddings", "labels", "references", "reference_labels")  # of a case
# What failed checks have in common: checks that fail, checks that do not fail, where to look.
COMMON: tuple[tuple[set[str], set[str], str], ...] = (
    ({"determinism"}, set(), "one batch has two values: look for what a call leaves to the next"),
    (
        {"order of images", "perfect ranking"},
        set(),
        "the value follows the order of the rows, even where the ranking is perfect: look whether "
        "the positives of other rows count for a query",
    ),
    (
        {"values, float64"},
        {"order of images", "perfect ranking"},
        "right where the ranking is perfect, else another function of the same scores: look at "
        "its step (tau), its ranks and its mean over positives and queries",
    ),
    (
        {"values, float64", "perfect ranking"},
        {"order of images"},
        "wrong even where the ranking is perfect: look for another factor, or another loss",
    ),
    (
        {"gradients, float64"},
        {"values, float64"},
        "the values are right and their gradients are not: look for a part that is detached, or "
        "a step with another derivative",
    ),
    (
        {"values, float32"},
        {"values, float64"},
        "right in float64 alone: look for what overflows or loses digits",
    ),
    (
        {"classes of one image"},
        {"values, float64"},
        "unequal classes alone: look at what counts positives, and queries that have none",
    ),
    ({"ties"}, {"values, float64"}, "equal scores alone: look at how they are ranked"),
)
Result = Literal["passed", "failed", "not applicable"]
NEEDED = "; a loss is one number, a tensor of shape ()"


class NoNumberError(Exception):
    """A candidate did not return one number."""


def in_words(error: Exception) -> str:
    """Return an error of an implementation in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


@dataclass(frozen=True)
class CheckOutcome:
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
                lines.append(f"  {name} = [  # {len(values)} rows, {values.shape[1]} dimensions")
                for row in values[:most].tolist():
                    numbers = ", ".join(f"{value:.5g}" for value in row)
                    lines.append(f"    [{numbers}],")
                if len(values) > most:
                    lines.append("    ...  # all rows are in the JSON")
                lines.append("  ]")
        return "\n".join(lines)


def of_error(check: str, case: Case, error: Exception, crash: Result = "failed") -> CheckOutcome:
    """Return the outcome of an exception: the candidate refuses the batch, or it crashes."""
    if isinstance(error, REFUSALS):
        return CheckOutcome(check, "not applicable", f"refused: {in_words(error)}")
    problem = str(error) if isinstance(error, NoNumberError) else f"raised {in_words(error)}"
    note = f"{case.name}: {problem}"
    return CheckOutcome(check, crash, note, case if crash == "failed" else None)


def in_common(failed: set[str], made: set[str]) -> str:
    """Return in a line what the failed of the ``made`` checks have in common; "" without a rule."""
    for failing, right, cause in COMMON:
        if failing <= failed and right <= made - failed:
            return cause
    return ""
