"""The answer to "is my score that of the paper?" in words: templates/judgement*.txt.j2."""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmark.core.words import count
from benchmark.report.render import TEMPLATES
from benchmark.stats.reproduction import ALPHA, DRIFTED, REPRODUCED, STANDING

PLAIN = TEMPLATES.overlay(autoescape=False)


def as_text(found: Mapping[str, Any]) -> str:
    """Return the whole answer of ``judge`` in words."""
    text = PLAIN.get_template("judgement.txt.j2").render(
        found,
        count=count,
        alpha=ALPHA,
        standing=STANDING,
        limited=REPRODUCED if found["largest_spread"][DRIFTED] == 0 else DRIFTED,
    )
    return text.rstrip()


def as_table(answers: Sequence[Mapping[str, Any]]) -> str:
    """Return the answers of ``judge_table`` as a table with a line each."""
    template = PLAIN.get_template("judgements.txt.j2")
    return template.render(answers=answers, count=count, alpha=ALPHA).rstrip()
