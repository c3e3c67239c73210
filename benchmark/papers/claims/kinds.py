"""What the kinds of claims test. Each turns a claim at one place into parts (``benchmark.papers.claims.parts``).

Everything is paired by seed: a contrast, slope or ratio is computed within a seed, and the seeds are the sample.
Batch sizes enter as their logarithm to base 2, so that slopes are per doubling.

| kind | one part per | number of a seed | agrees with the sentence |
|---|---|---|---|
| beats | first x second x batch size | first - second, points | above ``by`` (0) |
| monotone | step of the batch size; and the whole | difference of neighbours; slope | above -margin; above 0 |
| best_at | other level | best - other, points | above 0; above -margin for levels ``near`` the best |
| insensitive | pair of levels | difference, points | inside +-margin |
| grows, shrinks | first x second | slope of 100 (first - second) / second | above 0, below 0 |
| cost_ratio | first x second x batch size | log of first / second | inside ``between`` |
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping

import numpy as np

from benchmark.metrics.names import display_name
from benchmark.papers.claims.model import Arm, Claim
from benchmark.papers.claims.parts import RATIO, Part
from benchmark.papers.claims.series import Found, Place, Series
from benchmark.papers.references.margins import load_margins, margin_of

Kind = Callable[[Claim, Series, Place], list[Part]]


def beats(claim: Claim, series: Series, place: Place) -> list[Part]:
    """First better than second: paired differences at every batch size, each above ``by`` points."""
    low = float(claim.options.get("by", 0.0))
    return [
        _pair(first, second, series, place, size, metric, low=low)
        for size, metric in itertools.product(place.sizes(claim.arms), claim.metrics)
        for first, second in itertools.product(claim.first, claim.second)
    ]


def monotone(claim: Claim, series: Series, place: Place) -> list[Part]:
    """Rising with the batch size: the slope is above 0, and no step is a fall beyond the margin."""
    parts = []
    for arm, metric in itertools.product(claim.first, claim.metrics):
        found, parts_missing = _by_size(arm, series, place, metric)
        parts += parts_missing
        margin = _margin(claim, metric)
        for smaller, larger in itertools.pairwise(found):
            values = _common([found[larger], found[smaller]])
            label = f"{_where(place, None, metric)}: {arm.name} batch {larger} - {smaller}"
            parts.append(_part(label, 100 * (values[0] - values[1]), low=-margin))
        parts.append(_slope(f"{_where(place, None, metric)}: {arm.name} per doubling", found, 100))
    return parts


def best_at(claim: Claim, series: Series, place: Place) -> list[Part]:
    """One level is the best: it beats every other; those ``near`` it may be as good, within the margin."""
    best = claim.options["best"]
    parts = []
    for size, metric in itertools.product(place.sizes(claim.arms), claim.metrics):
        for level, arm in claim.levels.items():
            low = -_margin(claim, metric) if level in claim.options.get("near", ()) else 0.0
            if level != best:
                parts.append(_pair(claim.levels[best], arm, series, place, size, metric, low=low))
    return parts


def insensitive(claim: Claim, series: Series, place: Place) -> list[Part]:
    """The level does not matter: every pair of levels is equivalent within the margin (two one-sided tests)."""
    return [
        _pair(
            *pair,
            series,
            place,
            size,
            metric,
            low=-_margin(claim, metric),
            high=_margin(claim, metric),
        )
        for size, metric in itertools.product(place.sizes(claim.arms), claim.metrics)
        for pair in itertools.combinations(claim.levels.values(), 2)
    ]


def grows(claim: Claim, series: Series, place: Place, sign: int = 1) -> list[Part]:
    """The relative gain of first over second grows with the batch size: its slope is above 0."""
    parts, step = [], "doubling" if sign > 0 else "halving"
    for metric, first, second in itertools.product(claim.metrics, claim.first, claim.second):
        label = f"{_where(place, None, metric)}: gain of {first.name} over {second.name} per {step}"
        found, missing = _by_size(first, series, place, metric)
        against, also_missing = _by_size(second, series, place, metric)
        parts += {part.label: part for part in (*missing, *also_missing)}.values()
        gains = {}
        for size in sorted(found.keys() & against.keys()):
            gain = (
                found[size].values / against[size].values - 1
            )  # paired by the index, which is the seed
            gains[size] = Found(gain[np.isfinite(gain)])
        parts.append(_slope(label, gains, 100 * sign, unit="% of gain"))
    return parts


def shrinks(claim: Claim, series: Series, place: Place) -> list[Part]:
    """The relative gain of first over second shrinks as the batch grows: the slope over halvings is above 0."""
    return grows(claim, series, place, sign=-1)


def cost_ratio(claim: Claim, series: Series, place: Place) -> list[Part]:
    """First costs so many times what second costs: the ratio lies in ``between``."""
    low, high = (*map(np.log, claim.options["between"]), np.inf)[:2]
    parts = []
    for size, metric in itertools.product(place.sizes(claim.arms), claim.metrics):
        for first, second in itertools.product(claim.first, claim.second):
            a, b = (series.find(arm, place, size, metric) for arm in (first, second))
            label = f"{_where(place, size, metric)}: {a.name} / {b.name}"
            costs = np.log(_common([a, b]))
            parts.append(
                _part(
                    label,
                    costs[0] - costs[1],
                    low=low,
                    high=high,
                    unit=RATIO,
                    note=a.note or b.note,
                )
            )
    return parts


KINDS: Mapping[str, Kind] = {
    kind.__name__: kind
    for kind in (beats, monotone, best_at, insensitive, grows, shrinks, cost_ratio)
}


def _pair(
    first: Arm,
    second: Arm,
    series: Series,
    place: Place,
    size: int | None,
    metric: str,
    **ends: float,
) -> Part:
    a, b = series.find(first, place, size, metric), series.find(second, place, size, metric)
    label = f"{_where(place, size, metric)}: {a.name} - {b.name}"
    if a.source is not None and a.source == b.source:
        return Part(label, note="both sides are the same runs here")
    values = _common([a, b])
    return _part(label, 100 * (values[0] - values[1]), note=a.note or b.note, **ends)


def _by_size(
    arm: Arm, series: Series, place: Place, metric: str
) -> tuple[dict[int, Found], list[Part]]:
    """Returns what was found by batch size, smallest first, and a part without values for each missing size."""
    found = {size: series.find(arm, place, size, metric) for size in place.sizes((arm,))}
    missing = [
        Part(_where(place, size, metric), note=item.note)
        for size, item in found.items()
        if not len(item.values)
    ]
    return {size: item for size, item in found.items() if len(item.values)}, missing


def _slope(label: str, found: Mapping[int, Found], scale: float, unit: str = "points") -> Part:
    """Returns the part whose numbers are least-squares slopes over log2 of the batch size, one per seed."""
    if len(found) < 2:
        return Part(label, unit=unit, note="needs runs at 2 batch sizes or more")
    values = _common(list(found.values()))
    x = np.log2(list(found))
    x -= x.mean()
    return _part(label, scale * (x @ values) / (x @ x), unit=unit)


def _common(found: list[Found]) -> np.ndarray:
    """Returns the values over the seeds that all of them have, (found, seeds)."""
    seeds = found[0].values.index
    for item in found[1:]:
        seeds = seeds if item.values.index.equals(seeds) else seeds.intersection(item.values.index)
    return np.array([item.values.loc[seeds] for item in found], dtype=float)


def _part(label: str, values: np.ndarray, note: str = "", **rest: float | str) -> Part:
    return Part(label, values, note=note or ("" if len(values) else "no common seed"), **rest)


def _margin(claim: Claim, metric: str) -> float:
    return float(
        claim.options["margin"] if "margin" in claim.options else margin_of(metric, _margins())
    )


_margins = functools.cache(load_margins)


def _where(place: Place, size: int | None, metric: str) -> str:
    parts = [place.dataset, place.protocol if place.protocol != "test" else "", place.backbone]
    parts += [f"batch {size}" if size else "", display_name(metric).replace("_", " ")]
    return " ".join(filter(None, parts))
