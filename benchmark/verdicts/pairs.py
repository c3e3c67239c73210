"""A printed number or a frozen cell beside our runs: ``Pair``, and its columns, ``PAIR``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import nan
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmark.core.records import Cell
from benchmark.stats.samples import NO_RUNS, UNKNOWN_SPREAD, BySeed, Sample, Spread

EQUAL = 1e-6  # points: what rounding alone can move


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A printed number or a frozen cell, and the runs on both sides of it.

    Fields that ``PAIR`` declares have their meaning there. NaN and "" are what is not known.

    cell              of our runs, or of the frozen runs; None when no run belongs to the number
    statuses          number of our runs by status
    then              the frozen runs; None for a printed number
    reference_spread  of one run, moderated with the spreads of the table or of other frozen cells
    paired            differences ours - reference by seed; empty: the sides are two groups
    """

    source: str
    table: str
    row_label: str
    provenance: str
    dataset: str
    backbone: str
    metric: str
    loss: str
    batch_size: float
    split: str
    selection: str
    setting: str = ""
    embedding_dim: str = ""
    published_value: str = ""
    published_unit: str = ""
    reference_mean: float = nan
    reference_sd: float = nan
    reference_n: float = nan
    rounding: float = nan
    margin: float = nan
    line: float = nan
    note: str = ""
    remark: str = ""
    planned: bool = False
    cell: Cell | None = None
    ours: Sample = NO_RUNS
    statuses: Mapping[str, int] = field(default_factory=dict)
    then: Sample | None = None
    reference_spread: Spread = UNKNOWN_SPREAD
    paired: BySeed = field(default_factory=dict)
    paired_spread: Spread = UNKNOWN_SPREAD

    @property
    def theirs(self) -> Sample:
        """The frozen runs; none for a printed number."""
        return self.then or NO_RUNS

    @property
    def n_ok(self) -> int:
        """The number of our runs that finished."""
        return self.statuses.get("ok", 0)

    @property
    def n_diverged(self) -> int:
        """The number of our runs that diverged."""
        return self.statuses.get("diverged", 0)

    @property
    def n_ended(self) -> int:
        """The number of our runs that finished or diverged."""
        return self.n_ok + self.n_diverged

    @property
    def n_runs(self) -> int:
        """The number of our runs, of any status."""
        return sum(self.statuses.values())

    @property
    def identical(self) -> bool:
        """Whether the scores are the same under every common seed."""
        return bool(self.paired) and max(map(abs, self.paired.values())) < EQUAL

    @property
    def now(self) -> str:
        """How many of our runs diverged: "2 of 3 runs"."""
        return _share(self.n_diverged, self.n_ended)

    @property
    def before(self) -> str:
        """How many of the frozen runs diverged."""
        return _share(self.theirs.diverged, self.theirs.diverged + self.theirs.n)


def _share(gone: int, runs: int) -> str:
    if gone == runs:
        return "the only run" if runs == 1 else f"all {runs} runs"
    return f"{gone} of {runs} runs"


class FrameColumn(NamedTuple):
    """A column of ``PAIR`` or ``VERDICT``: a kind of ``KINDS``, its unit, what it means.

    of     makes it of a pair, or of the columns that judging makes; None: it has this name there
    filed  whether ``verdicts.csv`` has it
    """

    kind: str
    unit: str
    meaning: str
    of: Callable[[Any], Any] | None = None
    filed: bool = True


# Types in memory. A number or count that is not known is NaN, a text that is not there is "".
KINDS = {
    "text": "str",
    "number": "float64",
    "count": "float64",
    "yes or no": "bool",
    "yes, no or neither": "object",
    "by seed": "object",
    "reason": "object",
}
text = partial(FrameColumn, "text", "")
points = partial(FrameColumn, "number", "points")
number = partial(FrameColumn, "number", "")
count = partial(FrameColumn, "count")
yes = partial(FrameColumn, "yes or no", "")
by_seed = partial(FrameColumn, "by seed", "points")
# The columns of pairs that begin ``verdicts.csv``, in its order.
FIRST: dict[str, FrameColumn] = {
    "source": text("version of the paper; `frozen`: our own frozen runs"),
    "table": text("table of the paper, or `frozen`"),
    "row_label": text("row as printed, or the frozen cell"),
    "provenance": text("who trained what is printed"),
    "dataset": text("dataset of the reference"),
    "setting": text("setting of our runs; empty without any"),
    "backbone": text("backbone that the reference states"),
    "embedding_dim": text("width of the embedding that the reference states"),
    "loss": text("loss of our runs, else that of the reference"),
    "batch_size": count("images", "of our runs, else that of the reference"),
    "split": text("split of our runs, else the protocol of the reference"),
    "metric": text("metric of both sides"),
    "published_value": FrameColumn("text", "as printed", "value with its printed digits"),
    "published_unit": text("unit of the print"),
    "reference_mean": points("mean of the reference"),
    "reference_sd": points("its standard deviation over runs"),
    "reference_n": count("runs", "runs behind it; empty counts as one"),
    "ours_mean": points("mean of our runs", lambda pair: pair.ours.mean),
    "ours_sd": points("their standard deviation", lambda pair: pair.ours.sd),
    "ours_n": count("runs", "our runs with a score", lambda pair: pair.ours.n),
    "ours_spread": points("`ours_sd`, shared with sister cells", lambda pair: pair.ours.spread.sd),
    "n_diverged": count("runs", "our runs that diverged"),
    "selection": text("rule that chooses the epoch of our runs"),
    "paired_n": count(
        "seeds",
        "seeds compared one by one; empty: two groups",
        lambda pair: len(pair.paired) or nan,
    ),
}


def _of_spread(side: str, whose: str, place: str) -> dict[str, FrameColumn]:
    return {
        f"{side}_spread": points(f"spread of {whose}, shared", attrgetter(f"{place}.sd")),
        f"{side}_df": number("its degrees of freedom", attrgetter(f"{place}.df")),
        f"{side}_own": points(f"spread of {whose} alone", attrgetter(f"{place}.own")),
        f"{side}_own_df": number("its degrees of freedom", attrgetter(f"{place}.own_df")),
    }


# What a test of a verdict is made of: a row a pair.
PAIR: dict[str, FrameColumn] = {
    **FIRST,
    "ours_by_seed": by_seed("our scores", lambda pair: pair.ours.by_seed),
    "theirs_by_seed": by_seed("scores of the frozen runs", lambda pair: pair.theirs.by_seed),
    "paired_mean": points(
        "mean of ours - reference over common seeds",
        lambda pair: float(np.mean([*pair.paired.values()])) if pair.paired else nan,
    ),
    "identical": yes("whether the scores are the same under every common seed"),
    "margin": points("largest difference that has no consequence"),
    "rounding": points("half a unit of the last printed digit"),
    "line": count("", "line of `results.csv` of the paper"),
    "note": text("why there is nothing to compare"),
    "remark": text("what differs between the sides besides the scores"),
    "planned": yes("whether the study tests it once all runs have ended"),
    "frozen": yes("whether the reference is our own frozen runs", lambda pair: bool(pair.then)),
    "n_ok": count("runs", "our runs that finished"),
    "n_ended": count("runs", "our runs that finished or diverged"),
    "n_runs": count("runs", "our runs, of any status"),
    "then_n": count("runs", "frozen runs with a score", lambda pair: pair.theirs.n),
    "then_diverged": count("runs", "those that diverged", lambda pair: pair.theirs.diverged),
    **_of_spread("ours", "one run of ours", "ours.spread"),
    **_of_spread("reference", "one run of the reference", "reference_spread"),
    **_of_spread("paired", "one difference by seed", "paired_spread"),
}


def typed(
    columns: Mapping[str, Any] | pd.DataFrame, declared: Mapping[str, FrameColumn]
) -> pd.DataFrame:
    """Return the table of these columns; those of ``declared`` that lack are empty."""
    return pd.DataFrame(
        {
            name: pd.Series(columns.get(name, ()), dtype=KINDS[column.kind])
            for name, column in declared.items()
        }
    )


def frame_of(pairs: Iterable[Pair]) -> pd.DataFrame:
    """Return a row for each pair, with the columns of ``PAIR``."""
    listed = list(pairs)
    columns = {}
    for name, column in PAIR.items():
        columns[name] = list(map(column.of or attrgetter(name), listed))
    return typed(columns, PAIR)
