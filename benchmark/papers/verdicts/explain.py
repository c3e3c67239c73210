"""The whole calculation behind one verdict, as text: raw runs, reference, standard error, both tests, Holm, seeds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from benchmark.metrics.names import display_name
from benchmark.papers.verdicts.cells import Cells, Side
from benchmark.papers.verdicts.explain_pairs import frozen_lines, frozen_side, pair_lines
from benchmark.papers.verdicts.rule import ALPHA
from benchmark.papers.verdicts.vocabulary import VERDICTS
from benchmark.stats.runs import checked, scores

# The lines of the table in benchmark/papers/verdicts/rule.py, in its order.
_SE = (
    ("d² / n", "d is the spread of the differences by seed: both sides have the same seeds"),
    ("s² / n + r² / m", "spread and number of runs are known on both sides"),
    ("s² (1/n + 1/m)", "our spread stands for both sides, as the reference states none"),
    ("q² / n + r² / m", "our spread q is pooled over the sister cells of this one"),
    ("r² (1/n + 1/m)", "the reference's spread stands for both sides, as ours has one run"),
    ("q² (1/n + 1/m)", "a spread q pooled over our sister cells stands for both sides"),
)


def explain(
    row: dict[str, Any], table: pd.DataFrame, runs: pd.DataFrame, frozen: pd.DataFrame | None = None
) -> str:
    """Returns how the verdict in ``row`` came about.

    ``table`` holds all verdicts, ``runs`` is the long table, ``frozen`` the study's frozen runs.
    """
    then = frozen_side(row, frozen)
    lines = [*_head(row), "", *_ours(row, runs), "", *_reference(row, then)]
    if pd.notna(row["difference"]) and pd.notna(row["se"]):
        lines += ["", *_difference(row, Cells(checked(runs), str(row["selection"])), then)]
        lines += ["", *_tests(row), "", *_family(row, table)]
    return "\n".join([*lines, "", *_verdict(row)])


def _head(row: dict[str, Any]) -> list[str]:
    source = row["source"] if row["source"] == row["table"] else f"{row['source']} {row['table']}"
    facts = [row["dataset"], row["setting"] or row["backbone"], row["loss"]]
    facts += [f"batch size {row['batch_size']:.0f}"] if pd.notna(row["batch_size"]) else []
    name = display_name(str(row["metric"]))
    return [
        f"{source}, row '{row['row_label']}': {name} on split {row['split'] or 'test'}",
        "  " + ", ".join(facts),
    ]


def _ours(row: dict[str, Any], runs: pd.DataFrame) -> list[str]:
    lines = [
        f"1. Our runs, {'last epoch' if row['selection'] == 'last' else 'best epoch on the test set'}, in percent"
    ]
    if not row["setting"]:
        return [*lines, f"   none: {row['reason']}"]
    runs = checked(runs)
    here = runs[
        (runs["dataset"] == row["dataset"])
        & (runs["setting"] == row["setting"])
        & (runs["loss"] == row["loss"])
        & (runs["batch_size"] == row["batch_size"])
    ]
    found = scores(here, str(row["selection"]))
    found = found[
        (found["split"] == (row["split"] or "test")) & (found["metric"] == row["metric"])
    ].set_index("seed")
    for seed, run in here.drop_duplicates("seed").set_index("seed").sort_index().iterrows():
        value = (
            f"{100 * found['value'][seed]:.3f}"
            if seed in found.index
            else f"{run['status']} {run['reason']}"
        )
        lines.append(f"   seed {seed}: {value.strip()}   ({run['run_id']})")
    if row["ours_n"]:
        spread = (
            f", sd s = {row['ours_sd']:.3f}"
            if pd.notna(row["ours_sd"])
            else ", no spread from one run"
        )
        lines.append(f"   mean {row['ours_mean']:.3f}{spread}, n = {row['ours_n']:.0f}")
    return lines


def _reference(row: dict[str, Any], then: Side | None) -> list[str]:
    if row["source"] == row["table"]:
        lines = [
            "2. The reference: runs of this study, frozen earlier",
            *(frozen_lines(then) if then else []),
        ]
    else:
        printed = f"{row['published_value']:g}" if pd.notna(row["published_value"]) else "none"
        lines = [
            f"2. The reference: {printed} ({row['published_unit']}), printed in {row['source']} {row['table']}"
        ]
        lines.append(f"   row '{row['row_label']}', number of origin '{row['provenance']}'")
    if pd.isna(row["reference_mean"]):
        return [*lines, "   no number to compare with"]
    spread = (
        f"sd r = {row['reference_sd']:.3f}" if pd.notna(row["reference_sd"]) else "no spread stated"
    )
    number = (
        f"m = {row['reference_n']:.0f}"
        if pd.notna(row["reference_n"])
        else "no number of runs stated: m = 1"
    )
    lines.append(f"   {row['reference_mean']:.3f} percent, {spread}, {number}")
    if row["rounding"] > 0:
        lines.append(f"   rounded to ±{row['rounding']:g}, which both tests allow for")
    return lines


def _difference(row: dict[str, Any], cells: Cells, then: Side | None) -> list[str]:
    here = (row["dataset"], row["setting"], row["loss"], row["batch_size"])
    cell = next(key for key in cells.all if (*key[:3], key[4]) == here)
    pooled_sd, pooled_df = cells.pooled(cell, row["split"] or "test", row["metric"])
    formula, why = _SE[_case(row, pooled_sd > 0 and pooled_df >= 1)]
    lines = ["3. Difference and its standard error, in percentage points"]
    if then:
        lines += pair_lines(row, then, cells.side(cell, row["split"] or "test", row["metric"]))
    lines.append(f"   D = ours - reference = {row['difference']:+.3f}")
    used = (
        f"; q = {pooled_sd:.3f} with {pooled_df:.0f} degrees of freedom" if "q" in formula else ""
    )
    lines.append(
        f"   se = sqrt({formula}) = {row['se']:.3f}, {row['df']:.0f} degrees of freedom{used}"
    )
    return [*lines, f"   ({why})"]


def _case(row: dict[str, Any], pooled: bool) -> int:
    """Returns which line of the rule's table gave the standard error."""
    stated = row["reference_n"] >= 2 and np.isfinite(row["reference_sd"])
    paired = row.get("paired_n", np.nan) >= 2
    own = (
        row["ours_n"] >= 2
        and np.isfinite(row["ours_sd"])
        and not (row["ours_sd"] == 0 and not stated and pooled)
    )
    return next(
        case
        for case, holds in enumerate(
            [paired, own and stated, own, stated and pooled, stated, pooled]
        )
        if holds
    )


def _tests(row: dict[str, Any]) -> list[str]:
    margin, slack, se, df = (float(row[name]) for name in ("margin", "rounding", "se", "df"))
    difference = float(row["difference"])
    lines = [
        f"4. The same? Two one-sided tests of |true difference| >= {margin:g} points, each at {ALPHA:.0%}"
    ]
    if se > 0:
        for name, distance in (
            ("above", difference + margin - slack),
            ("below", margin - slack - difference),
        ):
            edge = -margin if name == "above" else margin
            p = special.stdtr(df, -distance / se)
            lines.append(
                f"   {name} {edge:+g}: t = {distance:.3f} / {se:.3f} = {distance / se:.2f}, p = {p:.3g}"
            )
    inside = row["p_equivalence"] <= ALPHA
    lines.append(
        f"   the larger p is {row['p_equivalence']:.3g}: {'the same' if inside else 'not shown to be the same'}"
    )
    where = "lies inside" if inside else "does not lie inside"
    lines.append(
        f"   90% interval [{row['ci90_low']:.3f}, {row['ci90_high']:.3f}] {where} ±{margin:g}"
    )
    lines += ["", f"5. Beyond the margin? One-sided test of |true difference| <= {margin:g} points"]
    if se > 0:
        beyond = abs(difference) - margin - slack
        lines.append(
            f"   t = (|D| - margin - rounding) / se = {beyond:.3f} / {se:.3f} = {beyond / se:.2f}"
        )
    return [*lines, f"   p = {row['p_drift']:.3g} (both edges of the margin counted)"]


def _family(row: dict[str, Any], table: pd.DataFrame) -> list[str]:
    family = table[
        (table["source"] == row["source"])
        & (table["table"] == row["table"])
        & table["p_drift"].notna()
    ]
    place = int((family["p_drift"] < row["p_drift"]).sum()) + 1
    lines = [
        f"6. Holm's correction over the {row['family_size']:.0f} numbers of this table that could be tested"
    ]
    lines.append(
        f"   rank {place} from the smallest p: p after Holm = {row['p_holm']:.3g}, compared with {ALPHA:g}"
    )
    return lines


def _verdict(row: dict[str, Any]) -> list[str]:
    verdict = str(row["verdict"])
    direction = (
        f" {row['direction']}" if isinstance(row["direction"], str) and row["direction"] else ""
    )
    lines = [
        f"Verdict: {verdict.replace('_', ' ')}{direction} ({VERDICTS[verdict]})",
        f"   {row['reason']}",
    ]
    if pd.notna(row["seeds_to_decide"]):
        lines.append(
            f"   seeds that would decide, if difference and spread stay: {row['seeds_to_decide']:.0f}"
        )
    return lines
