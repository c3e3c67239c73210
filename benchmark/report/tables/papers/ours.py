"""Our side of the cells of a printed table: verdicts as they were judged, or what a stand-in measured."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from benchmark.core.errors import RunError
from benchmark.papers.references import asked_results, load_margins
from benchmark.papers.references.published import REPRODUCIBLE
from benchmark.papers.verdicts import References, judge
from benchmark.papers.verdicts.cells import Cells
from benchmark.papers.verdicts.facts import study_facts
from benchmark.papers.verdicts.matching import match_published
from benchmark.papers.verdicts.vocabulary import NOT_RUN
from benchmark.report.tables.numbers import known
from benchmark.report.tables.papers.costs import COSTS, Costs
from benchmark.report.tables.papers.gaps import COLUMNS as GAP_COLUMNS
from benchmark.report.tables.papers.gaps import GAP
from benchmark.report.tables.papers.stand_in import stand_in_cell
from benchmark.stats.runs import CELL

QUOTED, STAND_IN, TIME, NO_SCORE, OTHER_DATA = (
    "quoted",
    "stand_in",
    "time",
    "no_score",
    "other_data",
)
UNJUDGED = {
    QUOTED: "",
    STAND_IN: "stand-in, no verdict",
    TIME: "no verdict on times",
    NO_SCORE: "no score, no verdict",
    OTHER_DATA: "other training set, no verdict",
}


@dataclass(frozen=True)
class Ours:
    """What our runs say about one published value; percentage points, or the unit of the print for times.

    verdict  a word of the vocabulary, or one of ``UNJUDGED``
    best     mean under the best-epoch rule, with its own verdict in ``best_verdict``
    """

    mean: float | None = None
    sd: float | None = None
    n: int = 0
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    verdict: str = NOT_RUN
    direction: str = ""
    best: float | None = None
    best_verdict: str = ""


class Measured:
    """Everything that the printed tables of one study need from its results, computed once."""

    def __init__(self, runs: pd.DataFrame, stats: dict[str, pd.DataFrame], study: Any):
        self.runs, self.study = runs, study
        self.stand_in = getattr(study, "stand_in", None)
        self.verdicts = stats.get("verdicts", pd.DataFrame())
        self.gaps = stats.get(GAP, pd.DataFrame(columns=list(GAP_COLUMNS)))
        self._costs = Costs(runs)

    def rows(self, paper: str, table: str, published: pd.DataFrame) -> list[Ours]:
        """Returns one ``Ours`` per row of ``published``, the rows of one printed table in its order."""
        judged = self._in_order(self.verdicts, paper, table, published)
        best = None if self.stand_in else self._in_order(self._best, paper, table, published)
        found = []
        for row in published.to_dict("records"):
            if row["provenance"] not in REPRODUCIBLE:
                found.append(Ours(verdict=QUOTED))
            elif row["metric"] in COSTS:
                found.append(self._cost(row))
            elif row["metric"] == GAP:
                found.append(self._gap(row))
            elif self.stand_in and row["score"]:
                found.append(self._of_stand_in(row))
            elif row["line"] in judged and judged[row["line"]]["verdict"] != NOT_RUN:
                found.append(_judged(judged[row["line"]], (best or {}).get(row["line"], {})))
            else:
                found.append(self._trained_elsewhere(row))
        return found

    def _in_order(
        self, verdicts: pd.DataFrame, paper: str, table: str, published: pd.DataFrame
    ) -> dict[int, dict]:
        """Returns {line: verdict}. Verdicts keep the order of the published rows, which is checked here."""
        if verdicts.empty:
            return {}
        found = verdicts[(verdicts["source"] == paper) & (verdicts["table"] == table)]
        asked = published[published["provenance"].isin(REPRODUCIBLE)]
        labels = [found[name].fillna("").astype(str).tolist() for name in ("row_label", "metric")]
        if len(found) and labels != [
            asked[name].astype(str).tolist() for name in ("row_label", "metric")
        ]:
            raise RunError(
                f"{self.study.name}/verdicts.csv does not fit the published numbers of {paper}/{table}; "
                f"write it again with 'python -m benchmark verdicts {self.study.name}'"
            )
        return dict(zip(asked["line"], found.to_dict("records"), strict=False))

    @functools.cached_property
    def _best(self) -> pd.DataFrame:
        """Returns the verdicts under the papers' own selection rule."""
        published = asked_results(self.study.references.published)
        wanted = self.runs[(self.runs["selection"] == "best") | (self.runs["status"] != "ok")]
        if published.empty or wanted.empty:
            return pd.DataFrame()
        return judge(
            wanted, References(published), load_margins(), selection="best", facts=self._facts
        )

    @functools.cached_property
    def _cells(self) -> Cells:
        words = self.runs.select_dtypes("category").columns
        return Cells(self.runs[self.runs["selection"] != "curve"].astype(dict.fromkeys(words, str)))

    @functools.cached_property
    def _asked(self) -> list[tuple]:
        """Returns every cell of the study that has runs, finished or not."""
        return list(self.runs[CELL].drop_duplicates().itertuples(index=False, name=None))

    @functools.cached_property
    def _facts(self) -> dict:
        return study_facts(self.study)

    def _match(self, row: dict) -> tuple | None:
        """Returns the cell of our runs that belongs to a published row."""
        if self.stand_in:
            return stand_in_cell(row, self.stand_in, self._asked, self._facts)
        return match_published(row, self._asked, {}, self._facts).cell

    def _trained_elsewhere(self, row: dict) -> Ours:
        """Returns our score for a row whose training set is not at hand, from runs that equal it in all else."""
        if not row["score"] or "training=" not in row["implied"]:
            return Ours()
        match = match_published({**row, "implied": ""}, self._asked, {}, self._facts)
        side = self._cells.side(match.cell, match.split, row["metric"]) if match.cell else None
        if side is None or not side.n:
            return Ours()
        return Ours(known(side.mean), known(side.sd), side.n, verdict=OTHER_DATA)

    def _of_stand_in(self, row: dict) -> Ours:
        cell = self._match(row)
        side = self._cells.side(cell, "test", row["metric"]) if cell else None
        if side is None or not side.n:
            return Ours()
        return Ours(known(side.mean), known(side.sd), side.n, verdict=STAND_IN)

    def _cost(self, row: dict) -> Ours:
        cell = self._match(row)
        return self._unjudged(self._costs.of(cell, row["metric"]) if cell else np.empty(0), TIME)

    def _gap(self, row: dict) -> Ours:
        """Returns the mean decrease over seeds; none from several batch sizes, of which the print names none."""
        place = self.stand_in or row["dataset"]
        found = self.gaps[self.gaps["dataset"] == place]
        found = found if found["batch_size"].nunique() == 1 else found.iloc[:0]
        return self._unjudged(found["decrease"].to_numpy(float), NO_SCORE)

    def _unjudged(self, values: np.ndarray, verdict: str) -> Ours:
        if not len(values):
            return Ours()
        sd = float(values.std(ddof=1)) if len(values) > 1 else None
        return Ours(
            float(values.mean()), sd, len(values), verdict=STAND_IN if self.stand_in else verdict
        )


def _judged(row: dict, best: dict) -> Ours:
    return Ours(
        mean=known(row["ours_mean"]),
        sd=known(row["ours_sd"]),
        n=int(known(row["ours_n"]) or 0),
        difference=known(row["difference"]),
        low=known(row["ci90_low"]),
        high=known(row["ci90_high"]),
        verdict=str(row["verdict"]),
        direction=_word(row.get("direction")),
        best=known(best.get("ours_mean")),
        best_verdict=" ".join(
            filter(None, (_word(best.get("verdict")), _word(best.get("direction"))))
        ),
    )


def _word(value: Any) -> str:
    return value if isinstance(value, str) else ""
