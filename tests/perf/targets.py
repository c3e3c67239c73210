"""The bounds that measured numbers are to keep, and the table that says which of them were kept."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Any


@dataclass(frozen=True)
class Target:
    """One measured number and its bound.

    what    what is bounded; targets of one ``what`` are told apart by ``where`` and shown by the worst of them
    least   whether the bound is the least value (a speed) or the most (a cost)
    """

    what: str
    value: float
    bound: float
    unit: str
    least: bool = False
    where: str = ""

    @property
    def met(self) -> bool:
        """Says whether the bound is kept; a value that is not a number keeps none."""
        return self.value >= self.bound if self.least else self.value <= self.bound

    @property
    def text(self) -> str:
        """The bound in words."""
        return f"{'at least' if self.least else 'at most'} {self.bound:g} {self.unit}".rstrip()

    @property
    def margin(self) -> float:
        """The value over the bound, or its inverse: above 1 is kept."""
        return self.value / self.bound if self.least else self.bound / max(self.value, 1e-12)


def judgement(targets: Iterable[Target]) -> dict[str, str | None]:
    """Returns the columns ``target`` and ``met`` ("yes" or "no") of the row that these targets belong to."""
    targets = list(targets)
    if not targets:
        return {"target": None, "met": None}
    return {
        "target": "; ".join(target.text for target in targets),
        "met": "yes" if all(target.met for target in targets) else "no",
    }


def overview(part: str, targets: Iterable[Target]) -> list[dict[str, Any]]:
    """Returns a row for each ``what`` of a part, with the value that is worst for its bound."""
    rows = []
    for what, found in groupby(targets, key=lambda target: target.what):
        same = list(found)
        worst = min(same, key=lambda target: target.margin)
        rows.append(
            {
                "part": part,
                "what": what,
                "measured": worst.value,
                "where": worst.where,
                "target": worst.text,
                "met": "yes" if all(target.met for target in same) else "no",
            }
        )
    return rows
