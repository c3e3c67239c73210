"""Counts of images, classes and categories per split, compared with the published ones."""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

Counts = Mapping[str, Mapping[str, int]]  # split -> kind ("images", "classes", ...) -> number


@dataclass(frozen=True)
class CountDifference:
    """A count that is not the published one."""

    split: str
    kind: str
    found: int
    expected: int

    def __str__(self) -> str:
        gap = self.found - self.expected
        return (
            f"{self.split} {self.kind}: {self.found:,} instead of {self.expected:,} "
            f"({abs(gap):,} {'more' if gap > 0 else 'fewer'})"
        )


def count_differences(found: Counts, expected: Counts) -> list[CountDifference]:
    """Return each published count that differs from the one found."""
    return [
        CountDifference(split, kind, number, wanted)
        for split, kinds in expected.items()
        for kind, wanted in kinds.items()
        if (number := found.get(split, {}).get(kind, 0)) != wanted
    ]


def counts_table(found: Counts, expected: Counts) -> str:
    """Return a text table; ``-`` where nothing is published, or nothing differs."""
    rows = []
    for split in dict.fromkeys([*found, *expected]):
        counted, wanted = found.get(split, {}), expected.get(split, {})
        for kind in dict.fromkeys([*counted, *wanted]):
            number = counted.get(kind, 0)
            gap = number - wanted.get(kind, number)
            published = f"{wanted[kind]:,}" if kind in wanted else "-"
            rows.append((split, kind, f"{number:,}", published, f"{gap:+,}" if gap else "-"))
    head = ["split", "what", "found", "expected", "difference"]
    return pd.DataFrame(rows, columns=head).to_string(index=False)
