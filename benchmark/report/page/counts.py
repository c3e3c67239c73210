"""What a reader sees before the tables: the counts of runs, of verdicts and of judged claims."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import pandas as pd

from benchmark.papers.library import THIS_SUITE
from benchmark.papers.verdicts.vocabulary import CLAIM_VERDICTS, NOT_RUN, VERDICTS
from benchmark.report.inputs import Inputs
from benchmark.report.numbers import words_of
from benchmark.report.tones import TONES

STATUSES = ("ok", "diverged", "failed", "stale", "missing")


class Count(NamedTuple):
    """How often a word occurs, and what it means."""

    name: str
    number: int
    tone: str
    meaning: str = ""


def run_counts(inputs: Inputs) -> list[Count]:
    """Return the number of runs by status; that of finished runs is always there."""
    counts = inputs.runs["status"].value_counts()
    found = [status for status in STATUSES if status in counts or status == "ok"]
    return [Count(status, int(counts.get(status, 0)), TONES[status]) for status in found]


def verdict_counts(inputs: Inputs) -> list[Count]:
    """Return the number of reference numbers by verdict; none without references."""
    return [] if inputs.verdicts.empty else _counts(inputs.verdicts["verdict"], VERDICTS)


def claim_counts(inputs: Inputs) -> list[Count]:
    """Return the number of the papers' claims by verdict; none when the study has none."""
    table = inputs.claims
    if table.empty:
        return []
    return _counts(table.loc[table["reading"] == claims_reading(inputs), "verdict"], CLAIM_VERDICTS)


def claims_heading(inputs: Inputs) -> str:
    """Return which question the counts of claims answer; empty without claims."""
    if inputs.claims.empty:
        return ""
    whose = "Claims of the papers"
    if inputs.claims["paper"].str.startswith(THIS_SUITE).any():
        whose += " and of this study"
    if claims_reading(inputs) == "published":
        return f"{whose}, under their own conditions"
    return f"{whose}, asked of what was run here"


def claims_reading(inputs: Inputs) -> str:
    """Return the reading of the claims that counts: "published" or "here".

    It is "here" on stand-in data, and where no claim could be tested under its paper's conditions.
    """
    published = inputs.claims.loc[inputs.claims["reading"] == "published", "verdict"]
    return "here" if inputs.study.stand_in or (published == NOT_RUN).all() else "published"


def _counts(verdicts: pd.Series, meanings: Mapping[str, str]) -> list[Count]:
    counts = verdicts.value_counts()
    return [
        Count(words_of(word), int(counts.get(word, 0)), TONES[word], meaning)
        for word, meaning in meanings.items()
    ]
