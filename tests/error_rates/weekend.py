"""What ``plan --within`` forecasts, against made-up worlds that the suite's own rule judges.

``main`` writes the curves of the four papers and these worlds into docs/background/weekend.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd

from benchmark.claims.claim_tests import Measurements
from benchmark.claims.claim_verdicts import decide, parts_under
from benchmark.claims.expected import LEVEL
from benchmark.claims.weekend import Weekend, choose_runs, expected
from benchmark.core.records import Cell
from benchmark.core.seeding import derive
from benchmark.published.loading import load_papers
from benchmark.published.schema import SCORE_UNITS
from benchmark.report.within_hours import curve_of
from benchmark.stats.reproduction import DRIFTED, REPRODUCED, compare
from benchmark.stats.samples import Sample, Samples, Score, with_spreads
from benchmark.study import load_study
from benchmark.study.part import part_of
from benchmark.verdicts.forecast import ASSUMED_SPREAD, printed_spreads
from benchmark.verdicts.judging import pairs_of_numbers
from benchmark.verdicts.matching import StudyGrid, match, reached_numbers, stated_by
from benchmark.verdicts.pair_tests.equivalence import evidence_of
from benchmark.verdicts.pairs import frame_of
from benchmark.verdicts.verdicts import CONTRADICTED, SUPPORTED

PAPERS = ("roadmap", "smooth_ap", "fast_ap", "listwise")
HOURS = 24.0
TRUE = {0.0: 0.8, 3.0: 0.2}
PAGE = Path(__file__).resolve().parents[2] / "docs" / "background" / "weekend.md"


@dataclass(frozen=True)
class Truth:
    """How runs spread: ``times`` the assumed spread, and laboratories by ``laboratory`` points."""

    times: float = 1.0
    heavy_tails: bool = False
    laboratory: float = 0.0


TRUTHS = {
    "as assumed": Truth(),
    "spread twice": Truth(times=2.0),
    "heavy tails": Truth(heavy_tails=True),
    "laboratories differ by 0.5": Truth(laboratory=0.5),
}


class MadeUp(Samples):
    """Scores of the runs of a study, as they were drawn."""

    def __init__(self, seeds: Mapping[Cell, int], scores: Mapping[Score, Sample]):
        self.selection = "last"
        self.statuses = {cell: Counter(ok=n) for cell, n in seeds.items()}
        self.splits = {}
        self.metrics = set()
        self._samples = dict(scores)


class World:
    """Draws worlds of the runs that a plan has chosen."""

    def __init__(self, plan: Weekend, truth: Truth, within: float = HOURS):
        self.seeds = plan.chosen[within]
        self.study = part_of(plan.study, self.seeds)
        self.grid = StudyGrid.of(self.study)
        self.truth = truth
        self.true = plan.true
        self.spreads = printed_spreads()

    def noise(self, rng: np.random.Generator, size: int) -> np.ndarray:
        if self.truth.heavy_tails:
            return self.truth.times * rng.standard_t(3, size) / math.sqrt(3)
        return self.truth.times * rng.standard_normal(size)

    def spread(self, dataset: str, metric: str) -> float:
        return self.spreads.get((dataset, metric), ASSUMED_SPREAD)

    def differences(self, rng: np.random.Generator, size: int) -> np.ndarray:
        return rng.choice([*self.true], size, p=[*self.true.values()])

    def sample(self, rng: np.random.Generator, dataset: str, metric: str, n: int) -> Sample:
        scores = LEVEL + self.spread(dataset, metric) * self.noise(rng, n)
        return Sample(dict(enumerate(scores)), {})


def right_numbers(world: World, worlds: int) -> np.ndarray:
    """Return how many printed numbers get the right verdict in each world (worlds,)."""
    reached = [number for number, _ in reached_numbers(world.grid)]
    asked = {}
    for number in reached:
        found = match(stated_by(number), world.grid.candidates.values())
        asked[found.candidate.cell.dataset, found.split, number.metric] = number.dataset
    counts = []
    for seed in range(worlds):
        rng = np.random.default_rng(derive(seed, "worlds of numbers", repr(world.truth)))
        scores = {}
        for (on, split, metric), dataset in asked.items():
            for cell, n in world.seeds.items():
                if cell.dataset == on:
                    scores[cell, split, metric] = world.sample(rng, dataset, metric, n)
        samples = MadeUp(world.seeds, with_spreads(scores))
        differences = world.differences(rng, len(reached))
        numbers = []
        for number, difference in zip(reached, differences, strict=True):
            runs = number.n_runs or 1
            noise = world.spread(number.dataset, number.metric) * world.noise(rng, runs)
            offset = world.truth.laboratory * rng.standard_normal()
            printed = LEVEL - difference + offset + noise.mean()
            std = None
            if number.sd_points and runs > 1:
                std = float(noise.std(ddof=1)) / SCORE_UNITS[number.unit]
            value = round(printed / SCORE_UNITS[number.unit], number.digits)
            numbers.append(replace(number, value=Decimal(str(value)), std=std))
        rows = frame_of(pairs_of_numbers(numbers, samples, world.grid.candidates))
        rows["difference_here"] = differences
        right = 0
        for _, family in rows.groupby(["source", "table"], sort=False):
            verdict = compare(evidence_of(family), planned=int(family["planned"].sum())).verdict
            equal = family["difference_here"].abs() < family["margin"]
            right += int((verdict == np.where(equal, REPRODUCED, DRIFTED)).sum())
        counts.append(right)
    return np.array(counts)


class Drawing(Samples):
    """Scores of a world that are drawn when they are asked for; without noise: all equal."""

    def __init__(self, world: World, rng: np.random.Generator | None):
        self.world = world
        self.rng = rng
        self.statuses = {cell: Counter(ok=n) for cell, n in world.seeds.items()}
        self.splits = {}
        self.drawn: dict[Score, Sample] = {}

    def sample(self, cell: Cell, split: str, metric: str) -> Sample:
        key = (cell, split, metric)
        n = self.world.seeds[cell]
        if self.rng is None:
            return Sample(dict.fromkeys(range(n), LEVEL), {})
        if key not in self.drawn:
            self.drawn[key] = self.world.sample(self.rng, cell.dataset, metric, n)
        return self.drawn[key]


def right_claims(world: World, plan: Weekend, worlds: int) -> np.ndarray:
    """Return how many claims get the right verdict in each world (worlds,)."""
    names = []
    still = Measurements(world.grid, Drawing(world, None), {})
    for claim in load_papers().claims(""):
        conditions = () if claim.outside else still.published(claim)
        parts = parts_under(conditions, claim, still)
        if parts and all(len(part.values) for part in parts):
            names.append((claim, conditions, parts))
    counts = []
    for seed in range(worlds):
        rng = np.random.default_rng(derive(seed, "worlds of claims", repr(world.truth)))
        measurements = Measurements(world.grid, Drawing(world, rng), {})
        right = 0
        for (claim, conditions, centres), difference in zip(
            names, world.differences(rng, len(names)), strict=True
        ):
            parts = []
            inside = []
            for part, centre in zip(
                parts_under(conditions, claim, measurements),
                centres,
                strict=True,
            ):
                is_open = math.isinf(part.high)
                target = (part.low if is_open else (part.low + part.high) / 2) + difference
                values = part.values - centre.values.mean() + target
                parts.append(replace(part, values=values))
                inside.append(min(target - part.low, part.high - target))
            verdict = decide(parts, claim.alpha, enough=claim.enough).verdict
            is_true = min(inside) > 0
            is_false = min(inside) < -1e-9
            right += (is_true and verdict == SUPPORTED) or (is_false and verdict == CONTRADICTED)
        counts.append(right)
    return np.array(counts)


def against_worlds(plan: Weekend, worlds: int, within: float = HOURS) -> pd.DataFrame:
    """Return a row for each kind and truth: forecast and simulated number, and standard error."""
    forecast = expected(plan.alone(within), plan.chosen[within], plan.true)
    totals = Counter(item.kind for item in plan.alone(within))
    rows = []
    for name, truth in TRUTHS.items():
        world = World(plan, truth, within)
        kinds = {"numbers": right_numbers(world, worlds)}
        if totals["claims"]:
            kinds["claims"] = right_claims(world, plan, worlds)
        for kind, counts in kinds.items():
            error = counts.std(ddof=1) / math.sqrt(worlds)
            rows.append(
                (
                    name,
                    kind,
                    totals[kind],
                    forecast[kind],
                    counts.mean(),
                    error,
                )
            )
    columns = [
        "worlds",
        "kind",
        "with runs",
        "forecast",
        "simulated",
        "error",
    ]
    return pd.DataFrame(rows, columns=columns)


def plan_of(study: str) -> Weekend:
    return choose_runs(load_study(study), Path("no results"), HOURS, TRUE)


def curve_rows(study: str, plan: Weekend) -> list[str]:
    """Return the rows of a study in the table of curves: one for each kind."""
    curve = curve_of(plan)
    hours = sum(float(of_cell[-1]) for of_cell in plan.hours.values())
    everything = expected(
        plan.items,
        {cell: len(each) for cell, each in plan.hours.items()},
        TRUE,
    )
    rows = []
    for kind, total in plan.totals.items():
        shown = [f"{value:.1f}" for value in curve[kind]]
        shown += [f"{everything[kind]:.1f} in {hours:,.0f} h", str(total)]
        rows.append(f"| `{study}` | {kind} | {' | '.join(shown)} |")
    return rows


def main(worlds: int = 200) -> None:
    """Write the page."""
    curves = []
    simulated = []
    for study in PAPERS:
        plan = plan_of(study)
        curves += curve_rows(study, plan)
        for row in against_worlds(plan, worlds).itertuples(index=False):
            name, kind, _, forecast, mean, error = row
            shown = f"{forecast:.1f} | {mean:.1f} ± {error:.1f} of {plan.totals[kind]}"
            simulated.append(f"| `{study}` | {kind} | {name} | {shown} |")
    text = Path(__file__).with_name("weekend.md").read_text(encoding="utf-8")
    text = text.replace("{curves}", "\n".join(curves)).replace("{worlds}", "\n".join(simulated))
    PAGE.write_text(text.replace("{count}", str(worlds)), encoding="utf-8")


if __name__ == "__main__":
    main()
