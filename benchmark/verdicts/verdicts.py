"""The table of verdicts: its words, the reasons, and ``VERDICT``, which declares every column.

``benchmark.verdicts.judging`` makes its rows; everything else reads them by the names of columns. A
new column is one more entry of ``VERDICT``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from benchmark.published.vocabulary import load_vocabulary
from benchmark.stats.reproduction import DRIFTED, REPRODUCED, UNDECIDED

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

_SPAN = "[{ci_low:.2f}, {ci_high:.2f}]"
_HOLM = "Holm p = {p_holm:.2g} of {tests}"
_DIVERGED = "{now} of ours diverged{beside}"


class Reason(Enum):
    """Why a verdict is what it is: its word, the sentence, and the direction of a drift.

    The sentence has the columns of a row in braces. The first reason that applies counts.
    """

    NOT_MATCHED = NOT_RUN, "{note}"
    BOTH_DIVERGE = REPRODUCED, f"{_DIVERGED}: no score on either side"
    OURS_DIVERGE = DRIFTED, _DIVERGED, LOW
    THEIRS_DIVERGED = DRIFTED, _DIVERGED, HIGH
    PERHAPS_DIVERGED = INCONCLUSIVE, _DIVERGED
    TOO_FEW = INCONCLUSIVE, "{now} diverged: too few to tell"
    NO_METRIC = NOT_RUN, "the runs have no {metric} on split {split}"
    NOT_FINISHED = NOT_RUN, "no finished run ({statuses})"
    INSIDE = REPRODUCED, f"{_SPAN} lies inside ±{{margin:g}} points"
    BELOW = DRIFTED, f"beyond ±{{margin:g}} points, {_HOLM}", LOW
    ABOVE = DRIFTED, f"beyond ±{{margin:g}} points, {_HOLM}", HIGH
    BEYOND_ALONE = INCONCLUSIVE, f"{_SPAN} lies beyond ±{{margin:g}} points, but {_HOLM}"
    TOO_WIDE = INCONCLUSIVE, f"{_SPAN} contains ±{{margin:g}} points and more"
    ON_THE_EDGE = INCONCLUSIVE, f"{_SPAN} crosses the edge of ±{{margin:g}} points"
    ONE_RUN = (
        INCONCLUSIVE,
        "one run, and no spread on either side to judge it by: run at least 2 seeds",
    )
    NO_SPREAD = (
        INCONCLUSIVE,
        "all runs are equal, and so are those of all sister cells: no spread to judge by. Only "
        "runs with the same seeds and the same scores are equal without a test",
    )

    def __init__(self, word: str, sentence: str, direction: str = ""):
        self.word = word
        self.sentence = sentence
        self.direction = direction


OPEN = (Reason.BEYOND_ALONE, Reason.TOO_WIDE, Reason.ON_THE_EDGE)
BY_TEST = (Reason.INSIDE, Reason.BELOW, Reason.ABOVE, *OPEN)
REMARKED = (*BY_TEST, Reason.ONE_RUN, Reason.NO_SPREAD)


class VerdictColumn(NamedTuple):
    """A column of the verdicts: a kind of ``KINDS``, its unit, what it means.

    of     makes it of the columns of ``frame_of`` and ``_family``; None: it is one of them
    filed  whether ``verdicts.csv`` has it
    """

    kind: str
    unit: str
    meaning: str
    of: Callable[[pd.DataFrame], Any] | None = None
    filed: bool = True


# Types in memory. A number or count that is not known is NaN, a text that is not there is "".
KINDS = {
    "text": "str",
    "number": "float64",
    "count": "float64",
    "yes or no": "bool",
    "yes, no or neither": "object",
    "reason": "object",
}
text = partial(VerdictColumn, "text", "")
points = partial(VerdictColumn, "number", "points")
number = partial(VerdictColumn, "number", "")
count = partial(VerdictColumn, "count")
# The columns of verdicts, in the order of ``verdicts.csv``.
VERDICT: dict[str, VerdictColumn] = {
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
    "published_value": VerdictColumn("text", "as printed", "value with its printed digits"),
    "published_unit": text("unit of the print"),
    "reference_mean": points("mean of the reference"),
    "reference_sd": points("its standard deviation over runs"),
    "reference_n": count("runs", "runs behind it; empty counts as one"),
    "ours_mean": points("mean of our runs"),
    "ours_sd": points("their standard deviation"),
    "ours_n": count("runs", "our runs with a score"),
    "ours_spread": points("`ours_sd`, shared with sister cells"),
    "n_diverged": count("runs", "our runs that diverged"),
    "selection": text("rule that chooses the epoch of our runs"),
    "paired_n": count("seeds", "seeds compared one by one; empty: two groups"),
    "difference": points("ours - reference"),
    "se": points("standard error of the difference; 0: identical runs"),
    "df": number("degrees of freedom of `se`"),
    "ci_low": points("lower end of the interval of the difference"),
    "ci_high": points("upper end of the interval of the difference"),
    "margin": points("largest difference that has no consequence"),
    "rounding": points("half a unit of the last printed digit"),
    "p_equivalence": number("p of the hypothesis that the difference is beyond the margin"),
    "p_drift": number("p of the hypothesis that it is inside the margin"),
    "p_holm": number("`p_drift` after Holm over the table"),
    "family_size": count("tests", "tests that are planned for the table"),
    "level": number("level of each test; below 0.05 where looks are planned"),
    "verdict": text("the word"),
    "interim": VerdictColumn("yes or no", "", "whether runs of this look are still to come"),
    "direction": text("of a drift: `low` or `high`"),
    "stands": VerdictColumn(
        "yes, no or neither", "", "whether the verdict is the same in other laboratories"
    ),
    "changes_under": text("marks under which it is another"),
    "tip_laboratory": points("largest spread between laboratories under which it stays"),
    "tip_ratio": VerdictColumn(
        "number", "times ours", "largest published spread under which it stays"
    ),
    "reason": text("why, in a sentence"),
    "seeds_to_decide": count("seeds", "of ours that would decide, if difference and spread stay"),
    "line": count("", "line of `results.csv` of the paper"),
    "why": VerdictColumn(
        "reason", "", "member of `Reason` whose sentence is `reason`", filed=False
    ),
    "assumed": VerdictColumn(
        "yes or no",
        "",
        "whether it rests on what the paper leaves open",
        lambda rows: ~rows["frozen"] & rows["remark"].ne("") & rows["why"].isin(REMARKED),
        filed=False,
    ),
}
FILED = [name for name, column in VERDICT.items() if column.filed]


def typed(columns: Mapping[str, Any]) -> pd.DataFrame:
    """Return the table of verdicts of these columns; those of ``VERDICT`` that lack are empty."""
    return pd.DataFrame(
        {
            name: pd.Series(columns.get(name, ()), dtype=KINDS[column.kind])
            for name, column in VERDICT.items()
        }
    )


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


def read_verdicts(path: Path) -> pd.DataFrame:
    """Return the verdicts in a file that ``write_verdicts`` wrote, without what it leaves out."""
    types = {name: KINDS[VERDICT[name].kind] for name in FILED}
    numbers = [name for name, type_of in types.items() if type_of == "float64"]
    answers = {"True": True, "False": False, "": None}
    standing = types.pop("stands")
    verdicts = pd.read_csv(
        path,
        dtype=types,
        converters={"stands": answers.get},
        keep_default_na=False,
        na_values={name: [""] for name in numbers},
    )
    return verdicts.astype({"stands": standing})
