"""What a dataset holds beside what its paper says it holds."""

from __future__ import annotations

from collections.abc import Mapping

Counts = Mapping[str, Mapping[str, int]]
HEAD = ("split", "what", "found", "expected", "difference")


def differences(found: Counts, expected: Counts) -> list[str]:
    """Returns one line for each published number that was not found, e.g. ``train images: 5,863 instead of 5,864``."""
    return [
        f"{split} {what}: {found.get(split, {}).get(what, 0):,} instead of {wanted:,}"
        for split, numbers in expected.items()
        for what, wanted in numbers.items()
        if found.get(split, {}).get(what, 0) != wanted
    ]


def counts_table(found: Counts, expected: Counts) -> str:
    """Returns a text table: one row per split and kind of count; ``-`` where nothing is published, or no difference."""
    rows = [HEAD]
    for split in dict.fromkeys([*found, *expected]):
        counted, wanted = found.get(split, {}), expected.get(split, {})
        for what in dict.fromkeys([*counted, *wanted]):
            number = counted.get(what, 0)
            difference = number - wanted[what] if what in wanted else 0
            published = f"{wanted[what]:,}" if what in wanted else "-"
            rows.append(
                (split, what, f"{number:,}", published, f"{difference:+,}" if difference else "-")
            )
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if place < 2 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
