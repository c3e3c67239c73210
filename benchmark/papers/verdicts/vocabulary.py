"""The words for outcomes, in one place, each with the line that explains it to a reader."""

from __future__ import annotations

REPRODUCED = "reproduced"
DRIFTED = "drifted"
INCONCLUSIVE = "inconclusive"
NOT_RUN = "not_run"
NOT_ASKED = "not_asked"

# In the order in which they are counted and shown.
VERDICTS: dict[str, str] = {
    REPRODUCED: "the interval of ours minus reference lies inside the margin",
    DRIFTED: "the difference is beyond the margin, by a test after Holm over the table",
    INCONCLUSIVE: "the runs at hand decide neither way",
    NOT_RUN: "no run of a study belongs to this reference",
}

# The rules by which the epoch of a run is chosen, in words.
EPOCHS = {
    "last": "at the last epoch",
    "best": "at the best test epoch of each metric",
    "one_best": "at the one test epoch with the best mAP@R",
}

LOW, HIGH = "low", "high"  # direction of a drift: ours below or above the reference

SUPPORTED = "supported"
CONTRADICTED = "contradicted"

CLAIM_VERDICTS: dict[str, str] = {
    SUPPORTED: "the test that stands for the sentence agrees with it",
    CONTRADICTED: "the test that stands for the sentence shows the opposite",
    INCONCLUSIVE: "the runs at hand decide neither way",
    NOT_RUN: "the runs that the sentence needs are not there",
    NOT_ASKED: "the runs have another dataset or backbone than the paper: they cannot answer",
}
