"""Verdicts as people read them: counts first, then every drifted number with what it rests on."""

from __future__ import annotations

import pandas as pd

from benchmark.papers.verdicts.rule import ALPHA
from benchmark.papers.verdicts.vocabulary import DRIFTED, VERDICTS

RULE = (
    "reproduced: 90% interval of ours - reference inside the margin; drifted: beyond the margin by a one-sided "
    f"test at {ALPHA:.0%} after Holm over the table; else inconclusive"
)


def counts(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Returns one row per source and table and one column per verdict, with the number of references."""
    if verdicts.empty:
        return pd.DataFrame(columns=list(VERDICTS), dtype=int)
    table = pd.crosstab([verdicts["source"], verdicts["table"]], verdicts["verdict"])
    return table.reindex(columns=list(VERDICTS), fill_value=0)


def drifted_messages(verdicts: pd.DataFrame) -> list[str]:
    """Returns one message per drifted number: the cell, both values with n, the difference and why."""
    return [message(row) for row in verdicts[verdicts["verdict"] == DRIFTED].to_dict("records")]


def message(row: dict) -> str:
    """Returns a verdict in one line: cell, metric, ours, reference, difference, verdict and reason."""
    cell = f"{row['dataset']}/{row['setting']}/{row['loss']}/bs{row['batch_size']} {row['split']} {row['metric']}"
    reference = (
        row["source"] if row["source"] == row["table"] else f"{row['source']} {row['table']}"
    )
    stated = "" if pd.notna(row["reference_n"]) else ", stated as one value"
    ours = side(row["ours_mean"], row["ours_sd"], row["ours_n"])
    theirs = (
        side(row["reference_mean"], row["reference_sd"], row["reference_n"] if not stated else 1)
        + stated
    )
    difference = f"  difference {row['difference']:+.2f}" if pd.notna(row["difference"]) else ""
    direction = f" {row['direction']}" if row["direction"] else ""
    return f"{cell}  ours {ours}  {reference} {theirs}{difference}  {row['verdict']}{direction}: {row['reason']}"


def side(mean: float, sd: float, n: float) -> str:
    """Returns "85.20 (sd 0.31, n 5)" in percentage points."""
    spread = f"sd {sd:.2f}, " if pd.notna(sd) else ""
    return f"{mean:.2f} ({spread}n {n:.0f})" if pd.notna(mean) else f"no score (n {n:.0f})"


def summary_text(verdicts: pd.DataFrame) -> str:
    """Returns the counts per table, every drifted number and the rule, as text for a terminal."""
    if verdicts.empty:
        return "no references: name published tables or frozen runs in the study's 'references'"
    lines = [f"{len(verdicts)} reference numbers"]
    lines += [
        f"  {(verdicts['verdict'] == word).sum():4d} {word}: {meaning}"
        for word, meaning in VERDICTS.items()
    ]
    lines += ["", counts(verdicts).to_string(), "", f"rule: {RULE}"]
    found = drifted_messages(verdicts)
    lines += ["", *(f"drifted: {line}" for line in found)] if found else []
    return "\n".join(lines)
