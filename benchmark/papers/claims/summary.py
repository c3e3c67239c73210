"""Claims as people read them in a terminal."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from benchmark.papers.claims.judge import PUBLISHED, READINGS
from benchmark.papers.claims.model import Claim
from benchmark.papers.verdicts.vocabulary import CLAIM_VERDICTS, NOT_RUN


def summary_text(verdicts: pd.DataFrame) -> str:
    """Returns the counts of each reading and every verdict with its reason; of ``not_run`` a count, and the reasons
    of those that no run can decide."""
    lines = []
    for reading, meaning in READINGS.items():
        rows = verdicts[verdicts["reading"] == reading]
        counts = ", ".join(f"{(rows['verdict'] == word).sum()} {word}" for word in CLAIM_VERDICTS)
        lines += [f"{reading} ({meaning}): {counts}"]
        lines += [
            f"  {row['verdict']:12s} {row['claim']}: {row['reason']}"
            for row in rows[rows["verdict"] != NOT_RUN].to_dict("records")
        ]
        never = (
            rows[(rows["verdict"] == NOT_RUN) & (rows["outside"] != "")]
            if reading == PUBLISHED
            else rows.iloc[:0]
        )
        lines += [
            f"  {'outside':12s} {row['claim']}: {row['outside']}"
            for row in never.to_dict("records")
        ]
    return "\n".join(lines)


def list_text(claims: Iterable[Claim]) -> str:
    """Returns the claims with their places, conditions and kinds of test."""
    lines = []
    for claim in claims:
        lines += [f"{claim.name}  ({claim.paper}, {claim.place})", f"  {claim.sentence}"]
        lines += [f"  {claim.kind}, {', '.join(claim.metrics)}; {claim.condition}"]
        lines += [f"  not decided as published: {claim.outside}"] if claim.outside else []
        lines.append("")
    return "\n".join(lines).rstrip()
