"""From evidence to words: applies the rule and Holm's correction, and gives every verdict its reason."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmark.papers.verdicts.rule import ALPHA, Evidence, judge_arrays, seeds_to_decide
from benchmark.papers.verdicts.vocabulary import (
    DRIFTED,
    HIGH,
    INCONCLUSIVE,
    LOW,
    NOT_RUN,
    REPRODUCED,
)
from benchmark.stats.multiple import holm_by_family

_NUMBERS = (
    "reference_mean", "reference_sd", "reference_n", "ours_mean", "ours_sd", "ours_n", "pooled_sd", "pooled_df",
    "paired_sd", "paired_n", "margin", "rounding",
)  # fmt: skip


def decide(rows: pd.DataFrame) -> pd.DataFrame:
    """Returns ``rows`` with test results and verdicts.

    The family of Holm's correction is the table: all numbers of one source and table that could be tested.
    Equivalence needs no correction: each number is called reproduced on its own evidence.
    """
    rows = rows.copy()
    for name in _NUMBERS:
        rows[name] = (
            pd.to_numeric(rows[name], errors="coerce").astype(float) if name in rows else np.nan
        )
    for name in ("note", "remark"):
        rows[name] = rows[name].fillna("") if name in rows else ""
    statuses = (
        rows["statuses"] if "statuses" in rows else pd.Series([None] * len(rows), index=rows.index)
    )
    rows["statuses"] = [value if isinstance(value, dict) else {} for value in statuses]
    rows["n_diverged"] = [value.get("diverged", 0) for value in rows["statuses"]]
    rows["ours_n"] = rows["ours_n"].fillna(0)
    judged = judge_arrays(
        Evidence(
            ours=rows["ours_mean"].where(rows["ours_n"] > 0),
            ours_sd=rows["ours_sd"],
            ours_n=rows["ours_n"].where(rows["ours_n"] > 0),
            reference=rows["reference_mean"],
            reference_sd=rows["reference_sd"],
            reference_n=rows["reference_n"],
            pooled_sd=rows["pooled_sd"],
            pooled_df=rows["pooled_df"],
            paired_sd=rows["paired_sd"],
            paired_n=rows["paired_n"],
            margin=rows["margin"],
            slack=rows["rounding"].fillna(0.0),
        )
    )
    rows["difference"], rows["se"], rows["df"] = judged.difference, judged.se, judged.df
    rows["ci90_low"], rows["ci90_high"] = judged.low, judged.high
    rows["p_equivalence"], rows["p_drift"] = judged.p_equivalence, judged.p_drift
    testable = rows["p_drift"].notna() & np.isfinite(rows["difference"])
    rows.loc[~testable, ["se", "df", "ci90_low", "ci90_high", "p_equivalence", "p_drift"]] = np.nan
    rows["family"] = rows["source"] + " " + rows["table"]
    rows["p_holm"], rows["family_size"] = holm_by_family(rows, p="p_drift")
    verdicts = [_verdict(row) for row in rows.to_dict("records")]
    for number, name in enumerate(("verdict", "direction", "reason", "seeds_to_decide")):
        rows[name] = [verdict[number] for verdict in verdicts]
    return rows


def _verdict(row: dict) -> tuple[str, str, str, float]:
    """Returns (verdict, direction, reason, seeds_to_decide) of one row."""
    nan = float("nan")
    if row["note"]:
        return NOT_RUN, "", row["note"], nan
    tried = sum(row["statuses"].values())
    diverged = row["n_diverged"]
    if row["ours_n"] == 0:
        if diverged and diverged == tried:
            if diverged > 1:
                return DRIFTED, LOW, f"all {diverged} runs diverged; the reference has a score", nan
            return INCONCLUSIVE, "", "the only run diverged", nan
        if row["statuses"].get("ok"):
            return NOT_RUN, "", f"the runs have no {row['metric']} on split {row['split']}", nan
        counts = ", ".join(f"{count} {status}" for status, count in sorted(row["statuses"].items()))
        return NOT_RUN, "", f"no finished run ({counts})", nan
    remarks = [row["remark"]] if row["remark"] else []
    if diverged:
        remarks.append(f"{diverged} of {tried} runs diverged and are left out")
    if np.isnan(row["margin"]):
        return INCONCLUSIVE, "", "; ".join(["the margins name none for this metric", *remarks]), nan
    if np.isnan(row["p_drift"]):
        why = "one run, and no spread on either side to judge it by: run at least 2 seeds"
        return INCONCLUSIVE, "", "; ".join([why, *remarks]), nan
    if row["se"] == 0:
        exact = (
            "every seed differs by the same"
            if row["paired_n"] >= 2
            else "no spread between the runs"
        )
        same = (
            "identical at every seed" if row["paired_n"] >= 2 and row["difference"] == 0 else exact
        )
        remarks.append(f"{same}: judged as an exact value")
    elif row["paired_n"] >= 2:
        remarks.append(f"paired by {row['paired_n']:.0f} seeds")
    if row["p_equivalence"] <= ALPHA:
        inside = (
            f"[{row['ci90_low']:.2f}, {row['ci90_high']:.2f}] lies inside ±{row['margin']:g} points"
        )
        return REPRODUCED, "", "; ".join([inside, *remarks]), nan
    if row["p_holm"] <= ALPHA:
        direction = HIGH if row["difference"] > 0 else LOW
        beyond = f"beyond ±{row['margin']:g} points, Holm p = {row['p_holm']:.2g} of {row['family_size']:.0f} tests"
        return DRIFTED, direction, "; ".join([beyond, *remarks]), nan
    seeds = _seeds(row)
    more = f"{seeds:.0f} seeds would decide if difference and spread stay" if np.isfinite(seeds) else (
        "no number of seeds would decide: the reference side alone is too uncertain"
    )  # fmt: skip
    across = (
        f"[{row['ci90_low']:.2f}, {row['ci90_high']:.2f}] crosses ±{row['margin']:g} points; {more}"
    )
    return INCONCLUSIVE, "", "; ".join([across, *remarks]), seeds


def _seeds(row: dict) -> float:
    paired = row["paired_n"] >= 2
    spreads = [row["paired_sd"]] if paired else []
    spreads += [
        row["ours_sd"] if row["ours_n"] > 1 else np.nan,
        row["reference_sd"],
        row["pooled_sd"],
    ]
    spread = next((value for value in spreads if np.isfinite(value) and value > 0), float("nan"))
    return seeds_to_decide(
        row["difference"],
        spread,
        row["reference_sd"],
        row["reference_n"],
        now=int(row["ours_n"]),
        margin=row["margin"],
        slack=0.0 if np.isnan(row["rounding"]) else row["rounding"],
        family=int(row["family_size"]),
        paired=paired,
    )
