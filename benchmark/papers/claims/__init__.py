"""Claims: sentences of the papers as tests on results; no torch here."""

from benchmark.papers.claims.judge import COLUMNS, PART_COLUMNS, judge_claims
from benchmark.papers.claims.load import load_claims
from benchmark.papers.claims.model import Claim
from benchmark.papers.claims.summary import list_text, summary_text

__all__ = [
    "COLUMNS",
    "PART_COLUMNS",
    "Claim",
    "judge_claims",
    "list_text",
    "load_claims",
    "summary_text",
]
