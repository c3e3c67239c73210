"""Everything that the verdict on one claim rests on, as text."""

from __future__ import annotations

from typing import Any

import pandas as pd

from benchmark.papers.claims.judge import READINGS
from benchmark.papers.verdicts.vocabulary import CLAIM_VERDICTS

SHOWN = 40  # parts of one reading


def explain_claim(name: str, verdicts: pd.DataFrame, parts: pd.DataFrame) -> str:
    """Returns the sentence and, per reading, every part with its estimate, interval, range and both p-values."""
    rows = verdicts[verdicts["claim"] == name].to_dict("records")
    first = rows[0]
    lines = [f"{name} ({first['paper']}, {first['place']})", f"  {first['sentence']}"]
    for row in rows:
        lines += [
            "",
            f"{row['reading']}: {READINGS[row['reading']]}",
            f"  where: {row['condition'] or 'nowhere'}",
        ]
        found = parts[(parts["claim"] == name) & (parts["reading"] == row["reading"])].to_dict(
            "records"
        )
        lines += [f"  {_part(part)}" for part in found[:SHOWN]]
        lines += (
            [f"  and {len(found) - SHOWN} more in claims_parts.csv"] if len(found) > SHOWN else []
        )
        verdict = str(row["verdict"])
        held = (
            f"{row['parts_holding']:.0f} of {row['parts']:.0f} parts hold at p <= {row['alpha']:g}"
        )
        lines.append(f"  {held}; {row['parts_run']:.0f} have runs")
        lines.append(f"  verdict: {verdict.replace('_', ' ')} ({CLAIM_VERDICTS[verdict]})")
        lines.append(f"    {row['reason']}")
    return "\n".join(lines)


def _part(part: dict[str, Any]) -> str:
    label = part["part"] or "no part"
    if not part["n"]:
        return f"{label}: not run ({part['note']})"
    low, high = (f"{part[end]:g}" if pd.notna(part[end]) else "any" for end in ("low", "high"))
    text = (
        f"{label}: {part['estimate']:.3f} {part['unit']}, n {part['n']:.0f}, says {low} to {high}"
    )
    if pd.isna(part["p"]):
        return f"{text}; no test ({part['note'] or 'one seed or no spread'})"
    interval = f"[{part['ci_low']:.3f}, {part['ci_high']:.3f}]"
    return f"{text}; interval {interval}, p {part['p']:.3g} that it fails, {part['p_against']:.3g} that it holds"
