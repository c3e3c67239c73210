"""What papers' tables and figures show of a study: verdicts, or what else the runs measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmark.core.files import write_json
from benchmark.papers.marks import FigureMarks, Grid, SweptValue, figure_marks, swept_values
from benchmark.papers.matching import Candidates, candidates, match, stated_by
from benchmark.papers.numbers import PublishedNumber
from benchmark.papers.paper import arranged_tables, vocabulary_of
from benchmark.papers.quantities import COUNTS, GAP, TIMES, GapDecrease, costs_of
from benchmark.papers.verdicts import NOT_RUN
from benchmark.runs.table import RunTable
from benchmark.stats.intervals import spread
from benchmark.stats.samples import Samples
from benchmark.study import Study

# Instead of a verdict: a quoted value, a time, a quantity, another training set.
QUOTED, TIME, NO_SCORE, OTHER_DATA = "quoted", "time", "no_score", "other_data"


@dataclass(frozen=True)
class PrintedCell:
    """What our runs say about one published number, in points, or the unit of the print for times.

    line     of the number in the paper's ``results.csv``
    verdict  a word of the vocabulary, or one of the four above
    rule     by which our epoch was chosen: "last" or "one_best"
    other    mean at the other reading, "last" or "best", with its own verdict in ``other_verdict``
    """

    source: str
    table: str
    line: int
    verdict: str = NOT_RUN
    direction: str | None = None
    mean: float | None = None
    sd: float | None = None
    n: int = 0
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    rule: str = "last"
    other: float | None = None
    other_verdict: str | None = None

    @property
    def other_rule(self) -> str:
        """The other reading of the epoch."""
        return "best" if self.rule == "last" else "last"


@dataclass(frozen=True)
class Printed:
    """The cells of printed tables, the marks of figures, and the values of sweeps."""

    cells: tuple[PrintedCell, ...] = ()
    figures: tuple[FigureMarks, ...] = ()
    sweeps: tuple[SweptValue, ...] = ()

    def write(self, folder: Path) -> None:
        """Write one file each below a study's results."""
        for name, records in zip(
            ("tables", "figures", "sweeps"), asdict(self).values(), strict=True
        ):
            write_json(folder / "papers" / f"{name}.json", records)


def printed_of(
    study: Study,
    table: RunTable,
    verdicts: pd.DataFrame,
    other: pd.DataFrame,
    gaps: Sequence[GapDecrease] = (),
) -> Printed:
    """Return them from runs, verdicts at both readings of the epoch, and analysed gaps."""
    found = candidates(study)
    grid, cells = Grid(study, table, found), _Cells(table, found, verdicts, other, gaps)
    numbers = [
        number
        for paper, name in arranged_tables(study.references.published)
        for number in paper.table(name)
    ]
    marks = tuple(figure_marks(grid))
    return Printed(tuple(map(cells.cell, numbers)), marks, tuple(swept_values(grid)))


class _Cells:
    """Our side of published numbers, from a study's runs and verdicts."""

    def __init__(
        self,
        table: RunTable,
        candidates: Candidates,
        verdicts: pd.DataFrame,
        other: pd.DataFrame,
        gaps: Sequence[GapDecrease],
    ):
        self.samples, self.costs, self.gaps = Samples(table), costs_of(table), gaps
        run = self.samples.statuses
        self.candidates = [each for cell, each in candidates.items() if cell in run]
        self.verdicts, self.other = (
            {
                (str(row["source"]), int(row["line"])): row
                for row in frame[frame["line"].notna()].to_dict("records")
            }
            for frame in (verdicts, other)
        )

    def cell(self, number: PublishedNumber) -> PrintedCell:
        """Return the cell of one published number."""
        empty = PrintedCell(number.source, number.table, number.line)
        if not number.reproducible:
            return replace(empty, verdict=QUOTED)
        place = (number.source, number.line)
        judged = self.verdicts.get(place, {}) if number.is_score else {}
        if judged.get("verdict", NOT_RUN) != NOT_RUN:
            return _judged(empty, judged, self.other.get(place, {}))
        values, word = self.measured(number)
        if not values:
            return empty
        sd = spread(np.array(values)) if len(values) > 1 else None
        return replace(empty, mean=float(np.mean(values)), sd=sd, n=len(values), verdict=word)

    def measured(self, number: PublishedNumber) -> tuple[list[float], str]:
        """Return what runs measured of a number without a verdict, and the word for that.

        Of a score it is that of runs on another training set that equal the print in all else. Gaps
        of several batch sizes are none.
        """
        metric = number.metric
        if metric == GAP:
            here = [each for each in self.gaps if each.dataset == number.dataset]
            one = len({each.batch_size for each in here}) == 1
            return [each.decrease for each in here] if one else [], NO_SCORE
        stated = stated_by(number, vocabulary_of(number.source))
        if number.is_score:
            if "training" not in number.means:
                return [], OTHER_DATA
            stated = stated.without("training")
        found = match(stated, self.candidates, self.samples.splits)
        if found.candidate is None:
            return [], NOT_RUN
        cell = found.candidate.cell
        if number.is_score:
            sample = self.samples.sample(cell, found.split, metric)
            return list(sample.by_seed.values()), OTHER_DATA
        costs = self.costs.get((cell, metric), {}) if metric in (*TIMES, *COUNTS) else {}
        return list(costs.values()), TIME if metric in TIMES else NO_SCORE


def _judged(empty: PrintedCell, row: Mapping[Any, Any], other: Mapping[Any, Any]) -> PrintedCell:
    def known(row: Mapping[Any, Any], key: str) -> Any:
        """Return a value, or None for a missing one."""
        value = row.get(key)
        return None if value is None or value == "" or value != value else value

    words = (known(other, key) for key in ("verdict", "direction"))
    return replace(
        empty,
        verdict=str(row["verdict"]),
        direction=known(row, "direction"),
        mean=known(row, "ours_mean"),
        sd=known(row, "ours_sd"),
        n=int(row["ours_n"]),
        difference=known(row, "difference"),
        low=known(row, "ci_low"),
        high=known(row, "ci_high"),
        rule=str(row["selection"]),
        other=known(other, "ours_mean"),
        other_verdict=" ".join(str(word) for word in words if word) or None,
    )
