"""The verdict on one reference number, which is a row of ``verdicts.csv``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from decimal import Decimal

import numpy as np
import pandas as pd

from benchmark.core.records import Cell
from benchmark.stats.reproduction import TestResult
from benchmark.stats.samples import NO_RUNS, UNKNOWN_SPREAD, Sample, Spread

FROZEN = "frozen"


@dataclass(frozen=True)
class Verdict:
    """A reference number beside our runs: first the columns of the file, then what is behind them.

    Scores, spreads and differences are in percentage points; NaN stands for what is not known.

    cell           of our runs, or of the frozen ones; None when no run belongs to the number
    then           the frozen runs
    spread         of one run of ours, moderated with its sister cells; that of the reference with
                   those of the table, or of the other frozen cells
    paired         differences ours - reference by seed; without any, the sides are two groups
    identical      all scores of the two cells are equal under every common seed
    statuses       number of our runs by status
    planned        whether the study tests this number once all of its runs are there
    note           why there is nothing to compare, or ""
    remark         what differs between the sides besides the scores
    test           None where nothing could be tested
    plain          the same test with each cell's own spread; None where that is not known
    marks          by name of ``benchmark.stats.sensitivity.MARKS``: the test if that assumption
                   fails; none where the verdict does not follow from a test
    """

    source: str = FROZEN  # the paper's version, or "frozen"
    table: str = FROZEN  # the paper's table, or "frozen"
    row_label: str = ""  # as printed, or the frozen cell
    provenance: str = FROZEN
    dataset: str = ""
    setting: str = ""
    backbone: str = ""  # as the reference states it
    embedding_dim: str | None = None
    loss: str = ""  # of our variant, or the reference's where no run belongs to it
    batch_size: int | None = None
    split: str = ""
    metric: str = ""
    published_value: Decimal | None = None  # as printed, in published_unit
    published_unit: str | None = None
    reference_mean: float = np.nan
    reference_sd: float = np.nan
    reference_n: float = np.nan  # not stated: counts as one draw
    ours_mean: float = np.nan
    ours_sd: float = np.nan
    ours_n: int = 0
    ours_spread: float = np.nan  # moderated with sister cells
    n_diverged: int = 0
    selection: str = "last"
    paired_n: float = np.nan  # seeds compared one by one
    difference: float = np.nan  # ours - reference
    se: float = np.nan
    df: float = np.nan
    ci_low: float = np.nan
    ci_high: float = np.nan
    margin: float = np.nan
    rounding: float = np.nan
    p_equivalence: float = np.nan
    p_drift: float = np.nan
    p_holm: float = np.nan
    family_size: int = 0  # tests that the plan has for the table
    level: float = np.nan  # of each test; below 0.05 where looks are planned
    verdict: str = ""
    interim: bool = False  # runs of this look are still to come that may change the verdict
    direction: str = ""  # of a drift: low or high
    stands: bool | None = None
    changes_under: str = ""  # names of MARKS
    reason: str = ""
    seeds_to_decide: float = np.nan  # of ours, if difference and spread stay
    line: int | None = None  # in the paper's results.csv

    cell: Cell | None = None
    ours: Sample = NO_RUNS
    then: Sample | None = None
    spread: Spread = UNKNOWN_SPREAD
    reference_spread: Spread = UNKNOWN_SPREAD
    paired: Mapping[int, float] = field(default_factory=dict)
    paired_spread: Spread = UNKNOWN_SPREAD
    identical: bool = False
    statuses: Mapping[str, int] = field(default_factory=dict)
    planned: bool = False
    note: str = ""
    remark: str = ""
    test: TestResult | None = None
    plain: TestResult | None = None
    marks: Mapping[str, TestResult] = field(default_factory=dict)

    @property
    def diverged(self) -> tuple[int, int]:
        """Our diverged runs, and all that ended."""
        return self.n_diverged, self.n_diverged + self.statuses.get("ok", 0)

    @property
    def reference_diverged(self) -> tuple[int, int]:
        """The reference's diverged runs, and all of them; a printed score has none."""
        then = self.then
        return (then.diverged, then.diverged + then.n) if then else (0, 1)


_NAMES = [item.name for item in fields(Verdict)]
COLUMNS = _NAMES[: _NAMES.index("line") + 1]


def table_of(verdicts: Iterable[Verdict]) -> pd.DataFrame:
    """Return verdicts as the table of ``verdicts.csv``."""
    rows = [[getattr(each, name) for name in COLUMNS] for each in verdicts]
    return pd.DataFrame(rows, columns=COLUMNS)
