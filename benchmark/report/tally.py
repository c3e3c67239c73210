"""How many numbers and claims got which verdict, in the sentences and tiles that open the page.

The claims that are counted are always those of the study's own papers, and of the study itself.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import pandas as pd

from benchmark.core.words import count, listed, words_of
from benchmark.published.paper import THIS_SUITE
from benchmark.report.study_results import StudyResults, rows_of
from benchmark.report.table import TONES
from benchmark.verdicts.verdicts import (
    CLAIM_VERDICTS,
    INCONCLUSIVE,
    NOT_ASKED,
    NOT_RUN,
    VERDICTS,
    by_source,
    is_close,
    is_score,
)

UNFINISHED = ("failed", "stale", "missing")


class Count(NamedTuple):
    """How often a word occurs, and what it means."""

    name: str
    number: int
    tone: str
    meaning: str = ""


def judged(table: pd.DataFrame) -> bool:
    """Return whether a verdict of a table, of numbers or claims, says anything."""
    return not table.empty and not table["verdict"].isin([NOT_RUN, NOT_ASKED]).all()


def published_of(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Return the verdicts on numbers of papers, not on frozen runs of our own."""
    return verdicts if verdicts.empty else verdicts[verdicts["source"] != "frozen"]


def claims_reading(claims: pd.DataFrame) -> str:
    """Return the reading that counts: "here" where no claim could be tested as published."""
    published = claims.loc[claims["reading"] == "published", "verdict"]
    return "here" if (published == NOT_RUN).all() else "published"


def of_own_papers(inputs: StudyResults) -> pd.DataFrame:
    """Return the claims of the papers that the study refers to, and those of the study itself.

    A study that refers to no paper is asked all of them.
    """
    claims = inputs.claims
    papers = {name.partition("/")[0] for name in inputs.study.references.published}
    if claims.empty or not papers:
        return claims
    of_papers = claims["paper"].isin(papers)
    return claims[of_papers | claims["paper"].str.startswith(THIS_SUITE)]


def published_numbers(verdicts: pd.DataFrame) -> str:
    """Return a sentence that counts the verdicts on published scores, "" if none was judged."""
    rows = published_of(verdicts)
    if not judged(rows):
        return ""
    scores = rows[is_score(rows)]
    undecided = rows_of(scores, verdict=INCONCLUSIVE)
    close = is_close(undecided).sum()
    where = f" ({close} close, {len(undecided) - close} far)"
    found = f"Of {count(len(scores), 'published score')}: {_by_verdict(scores, VERDICTS, where)}."
    others = len(rows) - len(scores)
    if not others:
        return found
    beside = "1 more number is no score" if others == 1 else f"{others} more numbers are no scores"
    return f"{found} {beside}."


def claims_in_words(claims: pd.DataFrame) -> str:
    """Return a sentence that counts the verdicts on claims, "" if none was judged."""
    reading = "" if claims.empty else claims_reading(claims)
    rows = rows_of(claims, reading=reading)
    if not judged(rows):
        return ""
    number = count(len(rows), "claim")
    verdicts = _by_verdict(rows, CLAIM_VERDICTS)
    if reading == "here":
        return f"Of {number} tested on what was run here: {verdicts}."
    outside = rows["outside"].ne("").sum()
    never = f" ({outside} of them outside of every study)" if outside else ""
    return f"Of {number}: {verdicts}{never}."


def _by_verdict(table: pd.DataFrame, words: Iterable[str], undecided: str = "") -> str:
    found = table["verdict"].value_counts()
    parts = {word: f"{found[word]} {words_of(word)}" for word in words if word in found}
    if INCONCLUSIVE in parts:
        parts[INCONCLUSIVE] += undecided
    return ", ".join(parts.values())


def counts(inputs: StudyResults) -> list[tuple[str, str, list[Count]]]:
    """Return (heading, label, counts) of runs by status, and of judged numbers and claims."""
    found = inputs.runs["status"].value_counts()
    runs = []
    for status in ("ok", "diverged", *UNFINISHED):
        number = found.get(status, 0)
        if number or status == "ok":
            name = "finished" if status == "ok" else status
            noun = "run" if number == 1 else "runs"
            runs.append(Count(f"{name} {noun}", number, TONES[status]))
    shown = [("Runs", "Runs by status", runs)]
    if not inputs.verdicts.empty:
        for heading, words, meanings in by_source(inputs.verdicts):
            shown.append((heading, heading, _counts(words, meanings)))
    claims = of_own_papers(inputs)
    if judged(claims):
        reading = claims_reading(claims)
        own = claims["paper"].str.startswith(THIS_SUITE)
        names = [f"of {inputs.papers.name(paper)}" for paper in claims.loc[~own, "paper"].unique()]
        if own.any():
            names.append("of this study")
        how = "tested on what was run here"
        if reading == "published":
            how = "under their own conditions"
        heading = f"Claims {listed(names)}, {how}"
        rows = claims.loc[claims["reading"] == reading, "verdict"]
        shown.append((heading, heading, _counts(rows, CLAIM_VERDICTS)))
    return shown


def _counts(words: pd.Series, meanings: Mapping[str, str]) -> list[Count]:
    found = words.value_counts()
    shown = []
    for word, meaning in meanings.items():
        number = found.get(word, 0)
        shown.append(Count(words_of(word), number, TONES[word] if number else "muted", meaning))
    return shown
