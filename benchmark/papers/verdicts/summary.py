"""The table of verdicts as people read it: counts first, then every drifted number."""

from __future__ import annotations

from typing import Any

import pandas as pd

from benchmark.papers.verdicts.vocabulary import DRIFTED, NOT_ASKED, shown
from benchmark.papers.verdicts.words import rule


def counts(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Return the number of references by source, table (rows) and verdict (columns)."""
    table = pd.crosstab([verdicts["source"], verdicts["table"]], verdicts["verdict"])
    return table.reindex(columns=list(shown(verdicts["verdict"])), fill_value=0)


def drifted_messages(verdicts: pd.DataFrame) -> list[str]:
    """Return one message per drifted number: cell, both values, difference and why."""
    return [message(row) for row in verdicts[verdicts["verdict"] == DRIFTED].to_dict("records")]


def message(row: dict[Any, Any]) -> str:
    """Return a verdict in one line: cell, ours, reference, difference, verdict and reason."""
    cell = f"{row['dataset']}/{row['setting']}/{row['loss']}/bs{row['batch_size']:.0f}"
    source = row["source"] if row["source"] == row["table"] else f"{row['source']} {row['table']}"
    stated = pd.notna(row["reference_n"])
    theirs = score(row["reference_mean"], row["reference_sd"], row["reference_n"] if stated else 1)
    parts = [
        f"{cell} {row['split']} {row['metric']}",
        f"ours {score(row['ours_mean'], row['ours_sd'], row['ours_n'])}",
        f"{source} {theirs}{'' if stated else ', stated as one value'}",
        f"difference {row['difference']:+.2f}" if pd.notna(row["difference"]) else "",
        f"{row['verdict']} {row['direction']}".strip() + f": {row['reason']}",
    ]
    return "  ".join(filter(None, parts))


def score(mean: float, sd: float, n: float) -> str:
    """Return "85.20 (sd 0.31, n 5)" in percentage points."""
    spread = f"sd {sd:.2f}, " if pd.notna(sd) else ""
    return f"{mean:.2f} ({spread}n {n:.0f})" if pd.notna(mean) else f"no score (n {n:.0f})"


def summary_text(verdicts: pd.DataFrame) -> str:
    """Return the counts per table, every drifted number and the rule, as text for a terminal."""
    if verdicts.empty:
        return "no references: name published tables or frozen runs in the study's 'references'"
    lines = [f"{len(verdicts)} reference numbers"]
    lines += [
        f"  {(verdicts['verdict'] == word).sum():4d} {word}: {meaning}"
        for word, meaning in shown(verdicts["verdict"]).items()
    ]
    lines += ["", counts(verdicts).to_string()]
    if verdicts["verdict"].ne(NOT_ASKED).any():
        lines += ["", f"rule: {rule(verdicts['level'].min())}"]
    if interim := int(verdicts["interim"].sum()):
        lines.append(f"interim: {interim} of them, whose runs have not all ended: nothing is final")
    drifted = [f"drifted: {line}" for line in drifted_messages(verdicts)]
    return "\n".join([*lines, *([""] if drifted else []), *drifted])
