"""Everything that the verdict on one claim rests on, as text."""

from __future__ import annotations

from typing import Any

import pandas as pd

from benchmark.papers.claims.judge import READINGS
from benchmark.papers.verdicts.vocabulary import CLAIM_VERDICTS

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
