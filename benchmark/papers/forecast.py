"""Before the runs: what will the planned seeds say of each printed table?"""

import math
from collections import Counter, defaultdict
from dataclasses import replace

import pandas as pd

from benchmark.core.records import Cell
from benchmark.metrics.metric import display_name
from benchmark.papers.matching import reached_numbers
from benchmark.papers.paper import asked_numbers
from benchmark.papers.vocabulary import margin_of
from benchmark.stats import planning
from benchmark.study import Study
from benchmark.study.data_files import published_names
from benchmark.study.grid import expand

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


def designs(study: Study) -> dict[tuple[str, str, str, str], tuple[planning.Design, list[Cell]]]:
    """Return the tests by (source, table, dataset, metric), each with the cell of each number.

    A table is a family. A printed spread of 0.0 was rounded away, and says nothing.
    """
    seeds = Counter(run.spec.cell for run in expand(study).values())
    settings = Counter((cell.dataset, cell.setting.label) for cell in seeds)
    groups = defaultdict(list)
    spreads = defaultdict(list)
    reached = reached_numbers(study)
    for number, cell in reached:
        groups[number.source, number.table, number.dataset, number.metric].append((number, cell))
    families = Counter((number.source, number.table) for number, _ in reached)
    for number in asked_numbers(published_names()):
        if number.is_score and (sd := number.sd_points):
            spreads[number.dataset, number.metric].append(sd)
    found = {}
    for key, members in groups.items():
        numbers, cells = map(list, zip(*members, strict=True))
        margins = [margin_of(each.metric, each.points) for each in numbers]
        design = planning.Design(
            seeds=min(seeds[cell] for cell in cells),
            spread=max(spreads[key[2:]], default=math.nan),
            family=families[key[:2]],
            sisters=settings[cells[0].dataset, cells[0].setting.label] - 1,
            reference_runs=min(each.n_runs or 1 for each in numbers),
            margin=min((each for each in margins if each is not None), default=math.inf),
            alpha=planning.level_of(study),
        )
        found[key] = (design, cells)
    return found


def undecidable(study: Study) -> dict[tuple[str, str, str, str], int]:
    """Return (source, table, dataset, metric) of numbers that no number of seeds decides (NOTE).

    The value is how many numbers they are.
    """
    found = {}
    for group, (design, cells) in designs(study).items():
        spread = ASSUMED_SPREAD if math.isnan(design.spread) else design.spread
        most = replace(design, spread=spread, seeds=planning.MOST_SEEDS)
        drift_is_called = planning.power(most, LARGE) >= planning.POWER
        if not drift_is_called and planning.chance_to_confirm(most) < RARELY:
            found[group] = len(cells)
    return found


def gpu_hours(study: Study) -> tuple[dict[Cell, float], dict[int, float]]:
    """Return the GPU-hours of a seed of each cell, and of the study by number of seeds, at most.

    The numbers are the planned looks, else the seeds and more.
    """
    prices: dict[Cell, float] = {}
    planned: Counter[Cell] = Counter()
    for block in study.blocks:
        resources = block.resources or study.resources
        for cell in {spec.cell for spec in block.specs()}:
            prices.setdefault(cell, resources.gpus * resources.minutes / 60)
            planned[cell] = max(planned[cell], len(block.planned_seeds))
    now = len(study.seeds)
    numbers = study.looks or sorted({now, *(more for more in CHOICES if more > now)})
    most = planned if study.looks else dict.fromkeys(prices, math.inf)
    whole = {}
    for n in numbers:
        whole[n] = sum(price * min(n, most[cell]) for cell, price in prices.items())
    return prices, whole


def as_text(study: Study) -> str:
    """Return the forecasts as a table for a terminal; "" for a study without published tables."""
    prices, whole = gpu_hours(study)
    rows = []
    for (source, table, dataset, metric), (design, cells) in designs(study).items():
        mark = ""
        if math.isnan(design.spread):
            design = replace(design, spread=ASSUMED_SPREAD)
            mark = "?"
        drifts = {n: planning.smallest_drift(replace(design, seeds=n)) for n in whole}
        needed = {drift: planning.seeds_needed(design, drift) for drift in DRIFTS}
        standing = planning.seeds_needed(design, LARGE, planning.chance_to_stand)
        hours = sum(prices[cell] for cell in set(cells))
        prices_of = {n: f" ({n * hours:,.0f} h)" if n and hours else "" for n in needed.values()}
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
            **{f"drift, {n} seeds": f"{x:.1f}" if x > 0 else "none" for n, x in drifts.items()},
            **{f"seeds for {x:g}": f"{n or 'none'}{prices_of[n]}" for x, n in needed.items()},
            f"to stand for {LARGE:g}": f"{standing or 'none'}",
        }
        rows.append(row)
    if not rows:
        return ""
    shown = pd.DataFrame(rows).T.reset_index().T.astype(str)
    widths = shown.map(len).max()
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in shown.values]
    said = {"power": planning.POWER, "most": planning.MOST_SEEDS, "rarely": RARELY, "large": LARGE}
    lines.append(NOTE.format(level=100 * planning.level_of(study), **said))
    if any(whole.values()):
        words = ", ".join(f"{n} seeds {price:,.0f}" for n, price in whole.items())
        lines.append(f"GPU-hours of the whole study, at most: {words}.")
    return "\n".join(lines)
