"""Before the runs: what will the planned seeds say of each printed table?"""

import math
from collections import Counter, defaultdict
from dataclasses import replace

import pandas as pd

from benchmark.core.records import Cell
from benchmark.metrics.metric import display_name
from benchmark.published.loading import load_papers
from benchmark.published.schema import PublishedNumber
from benchmark.published.vocabulary import margin_of
from benchmark.stats import planning
from benchmark.study import Study
from benchmark.study.data_files import published_names
from benchmark.study.grid import expand
from benchmark.verdicts.matching import StudyGrid, reached_numbers

Group = tuple[str, str, str, str]  # source, table, dataset, metric
DRIFTS = (1.0, 2.0, LARGE := 3.0)
CHOICES = (5, 10)  # numbers of seeds beside those of a study
ASSUMED_SPREAD = 0.5  # points: the largest that a paper prints for R@1
RARELY = 0.1  # of the cases: an equal number that is confirmed no more often is not worth a run
NOTE = """
confirmed: how often an equal number will be called reproduced. drift: the smallest, in points, \
that so many seeds call in {power:.0%} of cases at this family size, by a one-sided test at \
{level:g}% after Holm. to stand: seeds that call a drift of so many points under all marks, too.
spread: the largest that a paper prints for the dataset and metric; ? where none does. none: one \
printed value is too uncertain, or the drift is inside the margin. h: GPU-hours of the row's \
cells, which other rows may share. no number of seeds decides: {most} seeds still confirm an equal \
number in under {rarely:.0%} of cases, and do not call a drift of {large:g} points."""


def printed_spreads() -> dict[tuple[str, str], float]:
    """Return the largest spread that a paper prints for each dataset and metric, in points.

    A printed spread of 0.0 was rounded away and does not count.
    """
    spreads: dict[tuple[str, str], float] = {}
    for number in load_papers().asked(published_names()):
        if number.is_score and number.sd_points:
            place = (number.dataset, number.metric)
            spreads[place] = max(number.sd_points, spreads.get(place, 0.0))
    return spreads


def designs(grid: StudyGrid) -> dict[Group, tuple[planning.Design, list[Cell]]]:
    """Return the planned tests by (source, table, dataset, metric), and the cells of their numbers.

    A table is a family.
    """
    study = grid.study
    seeds = Counter(run.spec.cell for run in expand(study).values())
    settings = Counter((cell.dataset, cell.setting.label) for cell in seeds)
    spreads = printed_spreads()
    groups: dict[Group, list[tuple[PublishedNumber, Cell]]] = defaultdict(list)
    families: Counter[tuple[str, str]] = Counter()
    for number, cell in reached_numbers(grid):
        group = (number.source, number.table, number.dataset, number.metric)
        groups[group].append((number, cell))
        families[number.source, number.table] += 1
    planned = {}
    for (source, table, dataset, metric), members in groups.items():
        cells = [cell for _, cell in members]
        design = planning.Design(
            seeds=min(seeds[cell] for cell in cells),
            spread=spreads.get((dataset, metric), math.nan),
            family=families[source, table],
            sisters=settings[cells[0].dataset, cells[0].setting.label] - 1,
            reference_runs=min(number.n_runs or 1 for number, _ in members),
            margin=min(margin_of(metric, number.points) for number, _ in members),
            alpha=planning.level_of(study),
            slack=max(number.rounding for number, _ in members),
        )
        planned[source, table, dataset, metric] = (design, cells)
    return planned


def undecidable(grid: StudyGrid) -> dict[Group, int]:
    """Return how many numbers of each group no number of seeds decides (NOTE)."""
    counts = {}
    for group, (design, cells) in designs(grid).items():
        spread = ASSUMED_SPREAD if math.isnan(design.spread) else design.spread
        most = replace(design, spread=spread, seeds=planning.MOST_SEEDS)
        drift_is_called = planning.power(most, LARGE) >= planning.POWER
        if not drift_is_called and planning.chance_to_confirm(most) < RARELY:
            counts[group] = len(cells)
    return counts


def gpu_hours(study: Study) -> tuple[dict[Cell, float], dict[int, float]]:
    """Return the GPU-hours of a seed of each cell, and of the study by number of seeds, at most.

    The numbers of seeds are the planned looks. Without looks they are the study's and ``CHOICES``.
    """
    prices: dict[Cell, float] = {}
    planned: Counter[Cell] = Counter()
    for block in study.blocks:
        resources = block.resources or study.resources
        hours = resources.gpus * resources.minutes / 60
        for cell in {spec.cell for spec in block.specs()}:
            prices.setdefault(cell, hours)
            planned[cell] = max(planned[cell], len(block.planned_seeds))
    now = len(study.seeds)
    numbers = study.looks or (now, *(more for more in CHOICES if more > now))
    most = planned if study.looks else dict.fromkeys(prices, math.inf)
    whole = {}
    for n in numbers:
        costs = [price * min(n, most[cell]) for cell, price in prices.items()]
        whole[n] = sum(costs)
    return prices, whole


def as_text(grid: StudyGrid) -> str:
    """Return the forecasts as a table for a terminal; "" for a study without published tables."""
    study = grid.study
    prices, whole = gpu_hours(study)
    rows = []
    for (source, table, dataset, metric), (design, cells) in designs(grid).items():
        mark = ""
        if math.isnan(design.spread):
            design = replace(design, spread=ASSUMED_SPREAD)
            mark = "?"
        standing = planning.seeds_needed(design, LARGE, planning.chance_to_stand)
        hours = sum(prices[cell] for cell in set(cells))
        row = {
            "table": f"{source} {table}",
            "dataset": dataset,
            "metric": display_name(metric),
            "numbers": len(cells),
            "family": design.family,
            "seeds": design.seeds,
            "spread": f"{design.spread:g}{mark}",
            "margin": f"{design.margin:g}",
            "confirmed": f"{planning.chance_to_confirm(design):.0%}",
        }
        for n in whole:
            drift = planning.smallest_drift(replace(design, seeds=n))
            row[f"drift, {n} seeds"] = f"{drift:.1f}" if drift > 0 else "none"
        for drift in DRIFTS:
            needed = planning.seeds_needed(design, drift)
            price = f" ({needed * hours:,.0f} h)" if needed and hours else ""
            row[f"seeds for {drift:g}"] = f"{needed or 'none'}{price}"
        row[f"to stand for {LARGE:g}"] = f"{standing or 'none'}"
        rows.append(row)
    if not rows:
        return ""
    shown = pd.DataFrame(rows).T.reset_index().T.astype(str)
    widths = shown.map(len).max()
    lines = ["  ".join(map(str.ljust, texts, widths)).rstrip() for texts in shown.values]
    note = NOTE.format(
        power=planning.POWER,
        level=100 * planning.level_of(study),
        most=planning.MOST_SEEDS,
        rarely=RARELY,
        large=LARGE,
    )
    lines.append(note)
    if any(whole.values()):
        words = ", ".join(f"{n} seeds {price:,.0f}" for n, price in whole.items())
        lines.append(f"GPU-hours of the whole study, at most: {words}.")
    return "\n".join(lines)
