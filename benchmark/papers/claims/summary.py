"""Claims as people read them in a terminal."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from benchmark.papers.claims.judge import FALSE_DISCOVERIES, PUBLISHED, READINGS
from benchmark.papers.claims.model import Claim
from benchmark.papers.claims.parts import AGAINST
from benchmark.papers.verdicts.vocabulary import CLAIM_VERDICTS, NOT_ASKED, NOT_RUN


def summary_text(verdicts: pd.DataFrame) -> str:
    """Return the counts of each reading and every verdict with its reason.

    Of ``not_run`` and ``not_asked`` it is a count, and the reasons of those that no run can decide.
    """
    lines = []
    for reading, meaning in READINGS.items():
        rows = verdicts[verdicts["reading"] == reading]
        counts = ", ".join(f"{(rows['verdict'] == word).sum()} {word}" for word in CLAIM_VERDICTS)
        lines.append(f"{reading} ({meaning}): {counts}")
        tested = int(rows["p_contradicted"].notna().sum())
        if tested:
            lines.append(f"  {luck(tested)}")
        for row in rows.to_dict("records"):
            if row["verdict"] not in (NOT_RUN, NOT_ASKED):
                lines.append(f"  {row['verdict']:12s} {row['claim']}: {row['reason']}")
        for row in rows.to_dict("records"):
            if row["verdict"] == NOT_RUN and row["outside"] and reading == PUBLISHED:
                lines.append(f"  {'outside':12s} {row['claim']}: {row['outside']}")
    return "\n".join(lines)


def luck(tested: int) -> str:
    """Return how many of ``tested`` claims luck alone would contradict, and what is done."""
    return (
        f"if all {tested} tested claims were true on their edge, luck alone would contradict "
        f"{AGAINST * tested:.1f}; at most {FALSE_DISCOVERIES:.0%} of those called contradicted are "
        "false on average"
    )


def list_text(claims: Iterable[Claim]) -> str:
    """Return the claims with where they are stated, their conditions and kinds of test."""
    lines = []
    for claim in claims:
        lines += [f"{claim.name}  ({claim.source}, {claim.stated_in})", f"  {claim.sentence}"]
        lines += [f"  {claim.kind}, {', '.join(claim.metrics)}; {claim.condition}"]
        lines += [f"  not decided as published: {claim.outside}"] if claim.outside else []
        lines.append("")
    return "\n".join(lines).rstrip()
