"""Before the runs: what will the planned seeds say of each printed table?"""

import math
from collections import Counter, defaultdict
from dataclasses import replace

import pandas as pd

from benchmark.core.cells import Cell
from benchmark.metrics.names import display_name
from benchmark.papers.candidates import candidates
from benchmark.papers.library import asked_numbers, vocabulary_of
from benchmark.papers.margins import load_margins, margin_of
from benchmark.papers.matching import match, stated_by
from benchmark.papers.numbers import PublishedNumber
from benchmark.stats.looks import level_of
from benchmark.stats.planning import POWER, Design, chance_to_confirm, seeds_needed, smallest_drift
from benchmark.study import Study
from benchmark.study.data_files import published_names
from benchmark.study.grid import expand

DRIFTS = (1.0, 2.0, 3.0)
CHOICES = (5, 10)  # numbers of seeds beside those of a study
UNKNOWN_SPREAD = 0.5  # points: the largest that a paper prints for R@1
NOTE = """
confirmed: how often an equal number will be called reproduced. drift: the smallest, in points, \
that so many seeds call in {power:.0%} of cases at this family size, by a one-sided test at \
{level:g}% after Holm.
spread: the largest that a paper prints for the dataset and metric; ? where none does. none: one \
printed value is too uncertain, or the drift is inside the margin. h: GPU-hours of the row's \
cells, which other rows may share."""


def reached_numbers(study: Study) -> list[tuple[PublishedNumber, Cell]]:
    """Return the published numbers that the study's runs will reach, each with its cell."""
    grid = candidates(study).values()
    asked = [each for each in asked_numbers(study.references.published) if each.is_score]
    fits = [match(stated_by(each, vocabulary_of(each.source)), grid) for each in asked]
    return [
        (each, fit.candidate.cell) for each, fit in zip(asked, fits, strict=True) if fit.candidate
    ]


def designs(study: Study) -> dict[tuple[str, str, str, str], tuple[Design, list[Cell]]]:
    """Return the tests by (source, table, dataset, metric), each with the cell of each number.

    A table is a family. A printed spread of 0.0 was rounded away, and says nothing.
    """
    seeds = Counter(run.spec.cell for run in expand(study).values())
    places = Counter((cell.dataset, cell.setting.label) for cell in seeds)
    groups = defaultdict(list)
    for number, cell in reached_numbers(study):
        groups[number.source, number.table, number.dataset, number.metric].append((number, cell))
    families: Counter[tuple[str, ...]] = Counter()
    for key, members in groups.items():
        families[key[:2]] += len(members)
    spreads: dict[tuple[str, ...], float] = {}
    for number in asked_numbers(published_names()):
        if number.is_score and (sd := number.sd_points):
            where = (number.dataset, number.metric)
            spreads[where] = max(spreads.get(where, 0.0), sd)
    found = {}
    for key, members in groups.items():
        cells = [cell for _, cell in members]
        margins = [margin_of(each.metric, load_margins(), each.points) for each, _ in members]
        design = Design(
            seeds=min(seeds[cell] for cell in cells),
            spread=spreads.get(key[2:], math.nan),
            family=families[key[:2]],
            sisters=places[cells[0].dataset, cells[0].setting.label] - 1,
            reference_runs=min(each.n_runs or 1 for each, _ in members),
            margin=min(math.inf if margin is None else margin for margin in margins),
            alpha=level_of(study),
        )
        found[key] = (design, cells)
    return found


def choices(study: Study) -> tuple[int, ...]:
    """Return the numbers of seeds to choose from: the planned looks, else the seeds and more."""
    now = len(study.seeds)
    return study.looks or tuple(sorted({now, *(more for more in CHOICES if more > now)}))


def gpu_hours(study: Study) -> dict[int, float]:
    """Return the GPU-hours that the whole study asks for at most, by number of seeds."""
    prices = _prices(study).values()
    return {
        n: sum(price * (min(n, planned) if study.looks else n) for price, planned in prices)
        for n in choices(study)
    }


def _prices(study: Study) -> dict[Cell, tuple[float, int]]:
    """Return the GPU-hours of one seed of each cell at most, and its planned seeds."""
    found: dict[Cell, tuple[float, int]] = {}
    for block in study.blocks:
        resources = block.resources or study.resources
        price, planned = resources.gpus * resources.minutes / 60, len(block.planned_seeds)
        for cell in {spec.cell for spec in block.specs()}:
            before = found.get(cell, (price, 0))
            found[cell] = (before[0], max(before[1], planned))
    return found


def as_text(study: Study) -> str:
    """Return the forecasts as a table for a terminal; "" for a study without published tables."""
    prices, rows, design = _prices(study), [], Design(1, 1.0)
    for (source, place, dataset, metric), (design, cells) in designs(study).items():
        known = not math.isnan(design.spread)
        design = design if known else replace(design, spread=UNKNOWN_SPREAD)
        hours = sum(prices[cell][0] for cell in set(cells))
        drifts = {n: smallest_drift(replace(design, seeds=n)) for n in choices(study)}
        needed = {drift: seeds_needed(design, drift) for drift in DRIFTS}
        called = {n: "none" if math.isnan(x) else f"{x:.1f}" for n, x in drifts.items()}
        rows.append(
            {
                "table": f"{source} {place}",
                "dataset": dataset,
                "metric": display_name(metric),
                "numbers": f"{len(cells)}",
                "family": f"{design.family}",
                "seeds": f"{design.seeds}",
                "spread": f"{design.spread:g}" + ("" if known else "?"),
                "margin": f"{design.margin:g}",
                "confirmed": f"{chance_to_confirm(design):.0%}",
                **{f"drift, {n} seeds": drift for n, drift in called.items()},
                **{f"seeds for {drift:g}": _priced(n, hours) for drift, n in needed.items()},
            }
        )
    if not rows:
        return ""
    table = pd.DataFrame(rows).T.reset_index().T
    lines = ["  ".join(map(str.ljust, row, table.map(len).max())).rstrip() for row in table.values]
    lines.append(NOTE.format(power=POWER, level=100 * design.alpha))
    if any((whole := gpu_hours(study)).values()):
        words = ", ".join(f"{n} seeds {price:,.0f}" for n, price in whole.items())
        lines.append(f"GPU-hours of the whole study, at most: {words}.")
    return "\n".join(lines)


def _priced(seeds: int | None, hours: float) -> str:
    if seeds is None:
        return "none"
    return f"{seeds} ({seeds * hours:,.0f} h)" if hours else f"{seeds}"
