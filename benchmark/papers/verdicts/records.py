"""What a verdict rests on, and the verdict: from the evidence to a row of ``verdicts.csv``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from benchmark.core.cells import Cell
from benchmark.papers.numbers import PublishedNumber
from benchmark.papers.verdicts.vocabulary import NOT_ASKED, NOT_RUN
from benchmark.stats.reproduction import ALPHA, TestResult
from benchmark.stats.samples import NO_RUNS, UNKNOWN_SPREAD, Sample, Spread
from benchmark.stats.sensitivity import Mark

FROZEN = "frozen"


@dataclass(frozen=True)
class Reference:
    """What ours are compared with, in percentage points; NaN for what is not known.

    ``number`` is the published number, or ``sample`` the frozen runs. ``spread`` is ``sd``
    moderated with those of the table, or of the other frozen cells.
    """

    mean: float = np.nan
    sd: float = np.nan
    n: float = np.nan
    spread: Spread = UNKNOWN_SPREAD
    rounding: float = np.nan
    number: PublishedNumber | None = None
    sample: Sample | None = None


@dataclass(frozen=True)
class Paired:
    """Differences ours - reference by seed; without any, the sides are two groups.

    ``identical``: all scores of the two cells are equal under every common seed.
    """

    by_seed: Mapping[int, float] = field(default_factory=dict)
    spread: Spread = UNKNOWN_SPREAD
    identical: bool = False

    @property
    def n(self) -> int:
        """The number of pairs."""
        return len(self.by_seed)

    @property
    def mean(self) -> float:
        """The mean difference; NaN without any pair."""
        return float(np.mean(list(self.by_seed.values()))) if self.by_seed else np.nan


@dataclass(frozen=True)
class Comparison:
    """The evidence for one verdict.

    cell      of our runs, or of the frozen ones; None when no run belongs to the number
    spread    of one run of ours, moderated with its sister cells
    statuses  number of our runs by status
    planned   whether the study tests this number once all of its runs are there
    note      why there is nothing to compare, or ""
    remark    what differs between the sides besides the scores
    """

    reference: Reference
    cell: Cell | None
    split: str
    metric: str
    selection: str
    margin: float
    ours: Sample = NO_RUNS
    spread: Spread = UNKNOWN_SPREAD
    paired: Paired = field(default_factory=Paired)
    statuses: Mapping[str, int] = field(default_factory=dict)
    planned: bool = False
    note: str = ""
    remark: str = ""

    @property
    def family(self) -> tuple[str, str]:
        """The source and table, whose numbers are corrected together."""
        number = self.reference.number
        return (number.source, number.table) if number else (FROZEN, FROZEN)

    @property
    def is_paired(self) -> bool:
        """Whether the sides are compared seed by seed."""
        return self.paired.n > 0

    @property
    def diverged(self) -> tuple[int, int]:
        """Our diverged runs, and all that ended."""
        gone = self.statuses.get("diverged", 0)
        return gone, gone + self.statuses.get("ok", 0)

    @property
    def interim(self) -> bool:
        """Whether further runs of the cell, at this look, are still to come."""
        return 0 < self.diverged[1] < sum(self.statuses.values())

    @property
    def reference_diverged(self) -> tuple[int, int]:
        """The reference's diverged runs, and all of them; a printed score has none."""
        then = self.reference.sample
        return (then.diverged, then.diverged + then.n) if then else (0, 1)

    @property
    def row_label(self) -> str:
        """The row as printed, or the frozen cell."""
        if self.reference.number:
            return self.reference.number.row_label
        return f"{self.cell.dataset}/{self.cell.setting}/{self.cell.loss}" if self.cell else ""


@dataclass(frozen=True)
class Outcome:
    """The verdict in words.

    seeds   of ours that would decide, if difference and spread stay
    tested  whether it follows from the tests of the scores
    """

    verdict: str
    reason: str
    direction: str = ""
    seeds: float = np.nan
    tested: bool = False


@dataclass(frozen=True)
class Verdict:
    """The verdict on one reference number. ``test`` is None where nothing could be tested.

    plain        the same test with each cell's own spread; None where that is not known
    sensitivity  by name of ``benchmark.stats.sensitivity.MARKS``: the test if that assumption fails
    level        of each test; the interval has confidence 1 - 2 level
    """

    comparison: Comparison
    test: TestResult | None
    plain: TestResult | None
    sensitivity: Mapping[str, Mark]
    difference: float
    p_holm: float
    family_size: int
    outcome: Outcome
    level: float = ALPHA

    @property
    def changes_under(self) -> list[str]:
        """The assumptions without which the verdict would be another."""
        return [name for name, mark in self.sensitivity.items() if not mark.stands]

    @property
    def interim(self) -> bool:
        """Whether runs of this look are still to come that may change the verdict."""
        return self.comparison.interim and self.outcome.verdict not in (NOT_RUN, NOT_ASKED)

    def row(self) -> dict[str, Any]:
        """Return the row of ``verdicts.csv``."""
        return {name: value(self) for name, value in COLUMNS.items()}


def _of_test(name: str) -> Callable[[Verdict], Any]:
    return lambda each: None if each.test is None else float(getattr(each.test, name))


def _of_cell(name: str) -> Callable[[Verdict], Any]:
    """Return what reads a fact of our cell, or of the number where no run belongs to it."""
    return lambda each: getattr(each.comparison.cell or each.comparison.reference.number, name)


def _of_number(name: str, frozen: Any = None) -> Callable[[Verdict], Any]:
    """Return what reads a fact of the published number; frozen runs have ``frozen`` instead."""

    def read(each: Verdict) -> Any:
        number = each.comparison.reference.number
        return getattr(number, name) if number else frozen

    return read


def _network(each: Verdict) -> str:
    number, cell = each.comparison.reference.number, each.comparison.cell
    return number.backbone if number else cell.setting.backbone if cell else ""


# The columns of verdicts.csv. Scores, spreads and differences are in percentage points.
COLUMNS: dict[str, Callable[[Verdict], Any]] = {
    "source": lambda each: each.comparison.family[0],  # the paper's version, or "frozen"
    "table": lambda each: each.comparison.family[1],  # the paper's table, or "frozen"
    "row_label": lambda each: each.comparison.row_label,  # as printed
    "provenance": _of_number("provenance", FROZEN),
    "dataset": lambda each: _of_number("dataset")(each) or _of_cell("dataset")(each),
    "setting": lambda each: str(each.comparison.cell.setting) if each.comparison.cell else "",
    "backbone": _network,  # as the reference states it
    "embedding_dim": _of_number("embedding_dim"),
    "loss": _of_cell("loss"),  # of our variant, or the reference's where no run belongs to it
    "batch_size": _of_cell("batch_size"),
    "split": lambda each: each.comparison.split,
    "metric": lambda each: each.comparison.metric,
    "published_value": _of_number("value"),  # as printed, in published_unit
    "published_unit": _of_number("unit"),
    "reference_mean": lambda each: each.comparison.reference.mean,
    "reference_sd": lambda each: each.comparison.reference.sd,
    "reference_n": lambda each: each.comparison.reference.n,  # not stated: counts as one draw
    "ours_mean": lambda each: each.comparison.ours.mean,
    "ours_sd": lambda each: each.comparison.ours.sd,
    "ours_n": lambda each: each.comparison.ours.n,
    "ours_spread": lambda each: each.comparison.spread.sd,  # moderated with sister cells
    "n_diverged": lambda each: each.comparison.statuses.get("diverged", 0),
    "selection": lambda each: each.comparison.selection,
    "paired_n": lambda each: each.comparison.paired.n or np.nan,  # seeds compared one by one
    "difference": lambda each: each.difference,  # ours - reference
    "se": _of_test("se"),
    "df": _of_test("df"),
    "ci_low": _of_test("low"),
    "ci_high": _of_test("high"),
    "margin": lambda each: each.comparison.margin,
    "rounding": lambda each: each.comparison.reference.rounding,
    "p_equivalence": _of_test("p_equivalence"),
    "p_drift": _of_test("p_drift"),
    "p_holm": lambda each: each.p_holm,
    "family_size": lambda each: each.family_size,  # tests that the plan has for the table
    "level": lambda each: each.level,  # of each test; below 0.05 where looks are planned
    "verdict": lambda each: each.outcome.verdict,
    "interim": lambda each: each.interim,  # runs of this look are still to come
    "direction": lambda each: each.outcome.direction,  # of a drift: low or high
    "stands": lambda each: not each.changes_under if each.sensitivity else None,
    "changes_under": lambda each: " ".join(each.changes_under),  # names of MARKS
    "reason": lambda each: each.outcome.reason,
    "seeds_to_decide": lambda each: each.outcome.seeds,
    "line": _of_number("line"),  # in the paper's results.csv
}


def table_of(verdicts: Iterable[Verdict]) -> pd.DataFrame:
    """Return verdicts as the table of ``verdicts.csv``."""
    return pd.DataFrame([each.row() for each in verdicts], columns=list(COLUMNS))
