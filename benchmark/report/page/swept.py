"""The sentence on a study's sweeps: which of them make a difference."""

from __future__ import annotations

from benchmark.papers.printed.study import Printed
from benchmark.papers.printed.sweeps import SweptValue
from benchmark.report.tables.labels import metric_label
from benchmark.report.tables.numbers import count, points

NAMED = 8  # sweeps that the sentence names


def sweeps(printed: Printed) -> list[str]:
    """Return one sentence: the sweeps with a value that differs significantly from their default.

    Of several such values the one that differs most is given; the table of the sweeps has them all.
    """
    titles = {each.title for each in printed.sweeps}
    tested = [each for each in printed.sweeps if each.p_holm is not None]
    if not titles:
        return []
    if not tested:
        needed = "at least two common seeds of a setting and its default"
        return [f"No sweep could be tested: that takes {needed}."]
    furthest: dict[str, SweptValue] = {}
    for each in tested:
        best = furthest.get(each.title)
        if each.significant and (best is None or _size(each) > _size(best)):
            furthest[each.title] = each
    parts = [
        f"{each.title} {each.value} ({points(each.difference)} points of {metric_label(each.metric)})"
        for each in furthest.values()
    ]
    number = count(len({each.title for each in tested}), "sweep")
    number += " that could be tested" if len({each.title for each in tested}) < len(titles) else ""
    tail = "differ significantly from the default after Holm's correction"
    if not parts:
        return [f"In none of {number} does a setting {tail}."]
    rest = len(parts) - NAMED
    listed = ", ".join([*parts[:NAMED], *([f"and {rest} more"] if rest > 0 else [])])
    some = tail.replace("differ ", "differs ", 1)
    return [f"In {len(parts)} of {number} some setting {some}; the furthest of each: {listed}."]


def _size(each: SweptValue) -> float:
    return abs(each.difference or 0.0)
