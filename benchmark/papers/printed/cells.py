"""Our side of the cells of printed tables: verdicts, or what else the runs measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from benchmark.papers.candidates import Candidates
from benchmark.papers.costs import COUNTS, TIMES, costs_of
from benchmark.papers.library import arranged_tables, vocabulary_of
from benchmark.papers.matching import match, stated_by
from benchmark.papers.numbers import PublishedNumber
from benchmark.papers.printed.gap import GAP, GapDecrease
from benchmark.papers.verdicts.vocabulary import NOT_RUN
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


class TableCells:
    """The cells of the printed tables of a study, from its runs and verdicts."""

    def __init__(
        self,
        study: Study,
        table: RunTable,
        candidates: Candidates,
        verdicts: pd.DataFrame,
        other: pd.DataFrame,
        gaps: Sequence[GapDecrease],
    ):
        self.published = study.references.published
        self.gaps = gaps
        self._samples = Samples(table)
        self._candidates = [
            each for cell, each in candidates.items() if cell in self._samples.statuses
        ]
        self._verdicts, self._other = _by_line(verdicts), _by_line(other)
        self._costs = costs_of(table)

    def all(self) -> list[PrintedCell]:
        """Return the cells of all printed tables that the study's references name."""
        return [
            self.cell(number)
            for paper, name in arranged_tables(self.published)
            for number in paper.table(name)
        ]

    def cell(self, number: PublishedNumber) -> PrintedCell:
        """Return the cell of one published number."""
        empty = PrintedCell(number.source, number.table, number.line)
        if not number.reproducible:
            return replace(empty, verdict=QUOTED)
        if number.is_score:
            place = (number.source, number.line)
            judged, other = (found.get(place, {}) for found in (self._verdicts, self._other))
            if judged.get("verdict", NOT_RUN) != NOT_RUN:
                return _judged(empty, judged, other)
        values, word = self._measured(number)
        if not values:
            return empty
        sd = spread(np.array(values)) if len(values) > 1 else None
        return replace(empty, mean=float(np.mean(values)), sd=sd, n=len(values), verdict=word)

    def _measured(self, number: PublishedNumber) -> tuple[list[float], str]:
        """Return what runs measured of a number without a verdict, and the word for that.

        Of a score it is that of runs on another training set that equal the print in all else. Gaps
        of several batch sizes are none.
        """
        if number.metric == GAP:
            here = [each for each in self.gaps if each.dataset == number.dataset]
            one = len({each.batch_size for each in here}) == 1
            return [each.decrease for each in here] if one else [], NO_SCORE
        stated = stated_by(number, vocabulary_of(number.source))
        if number.is_score and "training" not in number.means:
            return [], OTHER_DATA
        if number.is_score:
            stated = stated.without("training")
        found = match(stated, self._candidates, self._samples.splits)
        if found.candidate is None:
            return [], NOT_RUN
        cell, metric = found.candidate.cell, number.metric
        if number.is_score:
            sample = self._samples.sample(cell, found.split, metric)
            return list(sample.by_seed.values()), OTHER_DATA
        costs = self._costs.get((cell, metric), {}) if metric in (*TIMES, *COUNTS) else {}
        return list(costs.values()), TIME if metric in TIMES else NO_SCORE


def _judged(empty: PrintedCell, row: Mapping[str, Any], other: Mapping[str, Any]) -> PrintedCell:
    other_verdict = " ".join(
        str(other[key]) for key in ("verdict", "direction") if _known(other.get(key))
    )
    return replace(
        empty,
        verdict=str(row["verdict"]),
        direction=_known(row["direction"]),
        mean=_known(row["ours_mean"]),
        sd=_known(row["ours_sd"]),
        n=int(row["ours_n"]),
        difference=_known(row["difference"]),
        low=_known(row["ci_low"]),
        high=_known(row["ci_high"]),
        rule=str(row["selection"]),
        other=_known(other.get("ours_mean")),
        other_verdict=other_verdict or None,
    )


def _known(value: Any) -> Any:
    """Return a value of a table, or None for a missing one."""
    return None if value is None or value == "" or value != value else value


def _by_line(verdicts: pd.DataFrame) -> dict[tuple[str, int], Mapping[str, Any]]:
    rows = verdicts[verdicts["line"].notna()].to_dict("records") if len(verdicts) else []
    return {
        (str(row["source"]), int(row["line"])): {str(k): v for k, v in row.items()} for row in rows
    }
