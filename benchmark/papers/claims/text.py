"""Claims as people read them in a terminal, and everything that the verdict on one rests on."""

from collections.abc import Iterable
from typing import Any

import pandas as pd

from benchmark.papers.claims.judge import FALSE_DISCOVERIES, PUBLISHED, READINGS
from benchmark.papers.claims.model import Claim
from benchmark.papers.claims.parts import AGAINST
from benchmark.papers.verdicts.vocabulary import CLAIM_VERDICTS, NOT_ASKED, NOT_RUN


def summary_text(verdicts: pd.DataFrame) -> str:
    """Return the counts of each reading and every verdict with its reason.

    Of ``not_run`` and ``not_asked`` it is a count, and the reasons of those that no run can decide.
    """
    lines, verdicts = [], verdicts.fillna({"outside": ""})
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


SHOWN = 40  # parts of one reading


def explain_claim(verdicts: pd.DataFrame, parts: pd.DataFrame) -> str:
    """Return the sentence and, per reading, every part with estimate, interval and p-values.

    ``verdicts`` and ``parts`` are those of one claim.
    """
    rows = verdicts.to_dict("records")
    lines = [
        f"{rows[0]['claim']} ({rows[0]['paper']}, {rows[0]['stated_in']})",
        f"  {rows[0]['sentence']}",
    ]
    for row in rows:
        asked = parts[parts["reading"] == row["reading"]].to_dict("records")
        verdict = str(row["verdict"])
        lines += [
            "",
            f"{row['reading']}: {READINGS[row['reading']]}",
            f"  where: {row['condition'] or 'nowhere'}",
            *(f"  {_part(part)}" for part in asked[:SHOWN]),
            *([f"  and {len(asked) - SHOWN} more in claims_parts.csv"] if asked[SHOWN:] else []),
            f"  {row['parts_holding']:.0f} of {row['parts']:.0f} parts hold at p <= "
            f"{row['alpha']:g}; {row['parts_run']:.0f} have runs",
            f"  verdict: {verdict.replace('_', ' ')} ({CLAIM_VERDICTS[verdict]})",
            f"    {row['reason']}",
        ]
    return "\n".join(lines)


def _part(part: dict[Any, Any]) -> str:
    label = part["part"] or "no part"
    if not part["n"]:
        return f"{label}: not run ({part['note']})"
    low, high = (f"{part[end]:g}" if pd.notna(part[end]) else "any" for end in ("low", "high"))
    estimate = f"{part['estimate']:.3f} {part['unit']}, n {part['n']:.0f}"
    text = f"{label}: {estimate}, says {low} to {high}"
    if pd.isna(part["p"]):
        return f"{text}; no test ({part['note'] or 'one seed or no spread'})"
    interval = f"[{part['ci_low']:.3f}, {part['ci_high']:.3f}]"
    ps = f"p {part['p']:.3g} that it fails, {part['p_against']:.3g} that it holds"
    return f"{text}; interval {interval}, {ps}"
