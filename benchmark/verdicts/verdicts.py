"""The table of verdicts: its words, the reasons, and ``VERDICT``, which declares every column.

``benchmark.verdicts.judging`` makes its rows; everything else reads them by the names of columns. A
new column is one more entry of ``VERDICT``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import NamedTuple

import pandas as pd

from benchmark.published.vocabulary import load_vocabulary
from benchmark.stats.reproduction import DRIFTED, REPRODUCED, UNDECIDED
from benchmark.verdicts.pairs import (
    FIRST,
    PAIR,
    FrameColumn,
    Pair,
    count,
    number,
    points,
    text,
    yes,
)

FROZEN = "frozen"
INCONCLUSIVE = UNDECIDED
NOT_RUN = "not_run"
NOT_ASKED = "not_asked"
SUPPORTED = "supported"
CONTRADICTED = "contradicted"
# direction of a drift: ours below or above the reference
LOW = "low"
HIGH = "high"

# In the order in which they are counted and shown.
VERDICTS: dict[str, str] = {
    REPRODUCED: "the interval of ours minus reference lies inside the margin",
    DRIFTED: "the difference is beyond the margin, by a test after Holm over the table",
    INCONCLUSIVE: "the runs at hand decide neither way",
    NOT_RUN: "no run of a study belongs to this reference",
}
# The words for our own frozen runs: nobody shall take them for numbers of papers.
IDENTICAL = "identical"
OF_FROZEN = dict(zip(VERDICTS, ("agree", "differ", "undecided", NOT_RUN), strict=True))
FROZEN_VERDICTS = {IDENTICAL: "the scores are the same under every common seed"} | {
    OF_FROZEN[word]: meaning for word, meaning in VERDICTS.items()
}
CLAIM_VERDICTS: dict[str, str] = {
    SUPPORTED: "the test that stands for the sentence agrees with it",
    CONTRADICTED: "the test that stands for the sentence shows the opposite",
    INCONCLUSIVE: "the runs at hand decide neither way",
    NOT_RUN: "the runs that the sentence needs are not there",
    NOT_ASKED: "the runs have another dataset or backbone than the paper: they cannot answer",
}
PRINT_IN_CLAIMS = (
    "A claim takes a printed number as exact; a verdict counts its uncertainty, too. So a claim "
    "can be contradicted where the verdict on the same number is inconclusive."
)
# The rules by which the epoch of a run is chosen, in words.
EPOCHS = {
    "last": "at the last epoch",
    "best": "at the best test epoch of each metric",
    "one_best": "at the one test epoch with the best mAP@R",
    "best_recall_at_1": "at the one test epoch with the best R@1",
}
PAPERS = "paper"
OTHER = "other"
RULES = (PAPERS, OTHER, *EPOCHS)


class JudgedPair(NamedTuple):
    """A pair with what its test found, as the sentence of its verdict needs it.

    case  index into ``STANDARD_ERRORS``
    """

    pair: Pair
    why: Reasons
    difference: float
    case: int
    ci_low: float
    ci_high: float
    p_holm: float
    family_size: int
    seeds_to_decide: float
    interim: bool

    @property
    def span(self) -> str:
        """The interval of the difference."""
        return f"[{self.ci_low:.2f}, {self.ci_high:.2f}]"

    @property
    def margin(self) -> str:
        """The margin on both sides."""
        return f"±{self.pair.margin:g} points"

    @property
    def holm(self) -> str:
        """The corrected p of a drift."""
        tests = "1 test" if self.family_size == 1 else f"{self.family_size} tests"
        return f"Holm p = {self.p_holm:.2g} of {tests}"


def _diverged(row: JudgedPair) -> str:
    beside = f", {row.pair.before} of the frozen ones" if row.pair.then else ""
    return f"{row.pair.now} of ours diverged{beside}"


def _beyond(row: JudgedPair) -> str:
    return f"beyond {row.margin}, {row.holm}"


def _not_finished(row: JudgedPair) -> str:
    counted = [f"{runs} {status}" for status, runs in sorted(row.pair.statuses.items())]
    return f"no finished run ({', '.join(counted)})"


class Reasons(Enum):
    """Why verdicts are what they are: the word, the sentence, and the direction of a drift."""

    def __init__(self, word: str, sentence: Callable[[JudgedPair], str], direction: str = ""):
        self.word = word
        self.sentence = sentence
        self.direction = direction


class Reason(Reasons):
    """The reasons of the equivalence test, of which the first that applies counts."""

    NOT_MATCHED = NOT_RUN, lambda row: row.pair.note
    BOTH_DIVERGE = REPRODUCED, lambda row: f"{_diverged(row)}: no score on either side"
    OURS_DIVERGE = DRIFTED, _diverged, LOW
    THEIRS_DIVERGED = DRIFTED, _diverged, HIGH
    PERHAPS_DIVERGED = INCONCLUSIVE, _diverged
    TOO_FEW = INCONCLUSIVE, lambda row: f"{row.pair.now} diverged: too few to tell"
    NO_METRIC = (
        NOT_RUN,
        lambda row: f"the runs have no {row.pair.metric} on split {row.pair.split}",
    )
    NOT_FINISHED = NOT_RUN, _not_finished
    INSIDE = REPRODUCED, lambda row: f"{row.span} lies inside {row.margin}"
    BELOW = DRIFTED, _beyond, LOW
    ABOVE = DRIFTED, _beyond, HIGH
    BEYOND_ALONE = INCONCLUSIVE, lambda row: f"{row.span} lies beyond {row.margin}, but {row.holm}"
    TOO_WIDE = INCONCLUSIVE, lambda row: f"{row.span} contains {row.margin} and more"
    ON_THE_EDGE = INCONCLUSIVE, lambda row: f"{row.span} crosses the edge of {row.margin}"
    ONE_RUN = (
        INCONCLUSIVE,
        lambda row: "one run, and no spread on either side to judge it by: run at least 2 seeds",
    )
    NO_SPREAD = (
        INCONCLUSIVE,
        lambda row: (
            "all runs are equal, and so are those of all sister cells: no spread to judge by. Only "
            "runs with the same seeds and the same scores are equal without a test"
        ),
    )


OPEN = (Reason.BEYOND_ALONE, Reason.TOO_WIDE, Reason.ON_THE_EDGE)
BY_TEST = (Reason.INSIDE, Reason.BELOW, Reason.ABOVE, *OPEN)
REMARKED = (*BY_TEST, Reason.ONE_RUN, Reason.NO_SPREAD)


# The columns of verdicts, in the order of ``verdicts.csv``.
VERDICT: dict[str, FrameColumn] = {
    **FIRST,
    "difference": points("ours - reference"),
    "se": points("standard error of the difference; 0: identical runs"),
    "df": number("degrees of freedom of `se`"),
    "ci_low": points("lower end of the interval of the difference"),
    "ci_high": points("upper end of the interval of the difference"),
    "margin": PAIR["margin"],
    "rounding": PAIR["rounding"],
    "p_equivalence": number("p of the hypothesis that the difference is beyond the margin"),
    "p_drift": number("p of the hypothesis that it is inside the margin"),
    "p_holm": number("`p_drift` after Holm over the table"),
    "family_size": count("tests", "tests that are planned for the table"),
    "level": number("level of each test; below 0.05 where looks are planned"),
    "verdict": text("the word"),
    "interim": yes("whether runs of this look are still to come"),
    "direction": text("of a drift: `low` or `high`"),
    "stands": FrameColumn(
        "yes, no or neither", "", "whether the verdict is the same in other laboratories"
    ),
    "changes_under": text("marks under which it is another"),
    "tip_laboratory": points("largest spread between laboratories under which it stays"),
    "tip_ratio": FrameColumn(
        "number", "times ours", "largest published spread under which it stays"
    ),
    "reason": text("why, in a sentence"),
    "seeds_to_decide": count("seeds", "of ours that would decide, if difference and spread stay"),
    "line": PAIR["line"],
    "why": FrameColumn("reason", "", "member of `Reason` whose sentence is `reason`", filed=False),
    "assumed": yes(
        "whether it rests on what the paper leaves open",
        lambda rows: ~rows["frozen"] & rows["remark"].ne("") & rows["why"].isin(REMARKED),
        filed=False,
    ),
}
FILED = [name for name, column in VERDICT.items() if column.filed]
UNFILED = [name for name in VERDICT if name not in FILED]


def is_score(numbers: pd.DataFrame) -> pd.Series:
    """Return for each row whether it is a score: times and counts get no verdict."""
    return numbers["metric"].map(lambda name: load_vocabulary().kind_of(name).judged).astype(bool)


def is_close(numbers: pd.DataFrame) -> pd.Series:
    """Return for each row whether the difference is at most the margin."""
    return numbers["difference"].abs() <= numbers["margin"]


def by_source(verdicts: pd.DataFrame) -> list[tuple[str, pd.Series, Mapping[str, str]]]:
    """Return (heading, words, meanings) of the papers' scores and of our own frozen runs."""
    is_frozen = verdicts["source"] == FROZEN
    verdict = verdicts["verdict"]
    scores = verdict[~is_frozen & is_score(verdicts)]
    # only identical runs have no standard error
    identical = verdicts["se"].eq(0) & verdict.eq(REPRODUCED)
    frozen = verdict[is_frozen].map(OF_FROZEN).mask(identical, IDENTICAL)
    heading = f"Scores of papers: {scores.ne(NOT_RUN).sum()} of {len(scores)} run"
    ours_again = "Our own frozen runs, made again here: are the scores the same?"
    sources = [(heading, scores, VERDICTS), (ours_again, frozen, FROZEN_VERDICTS)]
    return [source for source in sources if len(source[1])]
