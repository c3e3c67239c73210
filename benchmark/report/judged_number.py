"""The answer to "is my score that of the paper?" in words: templates/judgement.txt.j2."""

from collections.abc import Mapping
from typing import Any

from benchmark.core.words import count
from benchmark.report.render import TEMPLATES
from benchmark.stats.judgement import GIVEN, OWN, PUBLISHED
from benchmark.stats.reproduction import (
    ALPHA,
    DRIFTED,
    REPRODUCED,
    STANDING,
    UNDECIDED,
    UNTESTED,
)

MEANINGS = {
    REPRODUCED: "the difference is smaller than the margin",
    DRIFTED: "the difference is larger than the margin",
    UNDECIDED: "the difference may be smaller or larger than the margin",
    UNTESTED: "nothing is known of the spread between runs: give --spread or several --ours",
}
ORIGINS = {
    GIVEN: "as given, and taken as known",
    OWN: "from the runs given",
    PUBLISHED: "as published, also for ours",
}


def as_text(found: Mapping[str, Any]) -> str:
    """Return the whole answer of ``judge`` in words."""
    template = TEMPLATES.overlay(autoescape=False).get_template("judgement.txt.j2")
    text = template.render(
        found,
        count=count,
        meanings=MEANINGS,
        origins=ORIGINS,
        alpha=ALPHA,
        standing=STANDING,
        limited=REPRODUCED if found["largest_spread"][DRIFTED] == 0 else DRIFTED,
    )
    return text.rstrip()
