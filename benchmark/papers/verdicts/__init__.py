"""Verdicts: our results against published numbers and frozen runs; no torch here."""

from benchmark.papers.verdicts.judge import COLUMNS, References, judge
from benchmark.papers.verdicts.summary import drifted_messages, summary_text
from benchmark.papers.verdicts.vocabulary import CLAIM_VERDICTS, VERDICTS

__all__ = [
    "CLAIM_VERDICTS",
    "COLUMNS",
    "VERDICTS",
    "References",
    "drifted_messages",
    "judge",
    "summary_text",
]
