"""Before the runs: what will the planned seeds say of each printed table?"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

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


@dataclass(frozen=True)
class Forecast:
    """What the tests of one metric on one dataset of a printed table will see.

    design    of its numbers; their family is the whole table
    origin    where the expected spread comes from
    smallest  drift in points that is called with probability 0.8
    needed    by drift in points: the seeds that call it; None: no number of seeds does
    with_seeds  the smallest drift by number of seeds: those of each look, or a few choices
    hours     GPU-hours that one seed of its cells asks for at most
    """

    source: str
    table: str
    dataset: str
    metric: str
    numbers: int
    design: Design
    origin: str
    smallest: float
    needed: Mapping[float, int | None]
    with_seeds: Mapping[int, float] = field(default_factory=dict)
    hours: float = 0.0

    def price(self, seeds: int | None) -> str:
        """Return a number of seeds with what its runs may cost: "4 (120 h)"."""
        if seeds is None:
            return "none"
        return f"{seeds} ({seeds * self.hours:,.0f} h)" if self.hours else str(seeds)


def forecasts(study: Study) -> list[Forecast]:
    """Return the forecasts of all published tables that the study's runs will reach."""
    runs = list(expand(study).values())
    seeds = Counter(run.spec.cell for run in runs)
    hours = {run.spec.cell: run.resources.gpus * run.resources.minutes / 60 for run in runs}
    level = level_of(study)
    places = Counter((cell.dataset, cell.setting.label) for cell in seeds)
    groups: dict[tuple[str, str, str, str], list[tuple[PublishedNumber, Cell]]] = defaultdict(list)
    for number, cell in reached_numbers(study):
        groups[number.source, number.table, number.dataset, number.metric].append((number, cell))
    families: Counter[tuple[str, str]] = Counter()
    for (source, table, *_), members in groups.items():
        families[source, table] += len(members)
    spreads = printed_spreads(asked_numbers(published_names()))
    found_forecasts = []
    for (source, table, dataset, metric), members in groups.items():
        numbers, cells = zip(*members, strict=True)
        spread = spreads.get((dataset, metric))
        place = (cells[0].dataset, cells[0].setting.label)
        margin = min(_margin(number) for number in numbers)
        design = Design(
            seeds=min(seeds[cell] for cell in cells),
            spread=UNKNOWN_SPREAD if spread is None else spread,
            family=families[source, table],
            sisters=places[place] - 1,
            reference_runs=min(number.n_runs or 1 for number in numbers),
            margin=margin,
            alpha=level,
        )
        origin = "assumed" if spread is None else "largest printed"
        found_forecasts.append(
            Forecast(
                source,
                table,
                dataset,
                metric,
                len(members),
                design,
                origin,
                smallest_drift(design),
                {drift: seeds_needed(design, drift) for drift in DRIFTS},
                {n: smallest_drift(replace(design, seeds=n)) for n in choices(study)},
                sum(hours[cell] for cell in set(cells)),
            )
        )
    return found_forecasts


def choices(study: Study) -> tuple[int, ...]:
    """Return the numbers of seeds to choose from: the planned looks, else the seeds and more."""
    now = len(study.seeds)
    return study.looks or tuple(sorted({now, *(more for more in CHOICES if more > now)}))


def reached_numbers(study: Study) -> list[tuple[PublishedNumber, Cell]]:
    """Return the published numbers that the study's runs will reach, each with its cell."""
    grid = candidates(study)
    found = []
    for number in asked_numbers(study.references.published):
        if number.is_score:
            fit = match(stated_by(number, vocabulary_of(number.source)), grid.values())
            if fit.candidate is not None:
                found.append((number, fit.candidate.cell))
    return found


def printed_spreads(numbers: Iterable[PublishedNumber]) -> dict[tuple[str, str], float]:
    """Return the largest printed spread of each dataset and metric, in points.

    A spread of 0.0 is one that was rounded away, and says nothing.
    """
    largest: dict[tuple[str, str], float] = {}
    for number in numbers:
        if number.is_score and number.sd_points:
            key = (number.dataset, number.metric)
            largest[key] = max(largest.get(key, 0.0), number.sd_points)
    return largest


def _margin(number: PublishedNumber) -> float:
    margin = margin_of(number.metric, load_margins(), number.points)
    return math.inf if margin is None else margin


def gpu_hours(study: Study) -> dict[int, float]:
    """Return the GPU-hours that the whole study asks for at most, by number of seeds."""
    asked: dict[Cell, tuple[float, int]] = {}
    for block in study.blocks:
        resources = block.resources or study.resources
        price = resources.gpus * resources.minutes / 60
        for spec in block.specs():
            planned = max(asked.get(spec.cell, (price, 0))[1], len(block.planned_seeds))
            asked[spec.cell] = (price, planned)
    found = {
        n: sum(price * (min(n, planned) if study.looks else n) for price, planned in asked.values())
        for n in choices(study)
    }
    return found if any(found.values()) else {}


def as_text(found: Sequence[Forecast], hours: Mapping[int, float] | None = None) -> str:
    """Return the forecasts as a table for a terminal; "" for a study without published tables.

    ``hours`` are the GPU-hours of the whole study by number of seeds.
    """
    if not found:
        return ""
    head = ["table", "dataset", "metric", "numbers", "family", "seeds", "spread", "margin"]
    drifts = [f"drift, {n} seeds" for n in found[0].with_seeds]
    lines = [[*head, "confirmed", *drifts, *(f"seeds for {drift:g}" for drift in DRIFTS)]]
    for each in found:
        design = each.design
        spread = f"{design.spread:g}" + ("?" if each.origin == "assumed" else "")
        words = [f"{each.source} {each.table}", each.dataset, display_name(each.metric)]
        counts = [each.numbers, design.family, design.seeds, spread, f"{design.margin:g}"]
        smallest = ["none" if math.isnan(x) else f"{x:.1f}" for x in each.with_seeds.values()]
        needed = [each.price(seeds) for seeds in each.needed.values()]
        confirmed = f"{chance_to_confirm(design):.0%}"
        lines.append([*words, *map(str, counts), confirmed, *smallest, *needed])
    widths = np.array([[len(cell) for cell in line] for line in lines]).max(axis=0)
    text = ["  ".join(map(str.ljust, line, map(int, widths))).rstrip() for line in lines]
    text += [
        "",
        "confirmed: how often an equal number will be called reproduced. drift: the smallest, in "
        f"points, that so many seeds call in {POWER:.0%} of cases at this family size, by a "
        f"one-sided test at {100 * found[0].design.alpha:g}% after Holm.",
        "spread: the largest that a paper prints for the dataset and metric; ? where none does. "
        "none: one printed value is too uncertain, or the drift is inside the margin. h: "
        "GPU-hours of the row's cells, which other rows may share.",
    ]
    if hours:
        told = ", ".join(f"{n} seeds {price:,.0f}" for n, price in hours.items())
        text.append(f"GPU-hours of the whole study, at most: {told}.")
    return "\n".join(text)
