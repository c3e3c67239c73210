"""How much better the AP looks in batches than over the whole test set, by loss."""

from typing import Any

import numpy as np
import pandas as pd

from benchmark.analyses import ANALYSES
from benchmark.analyses.analysis import Analysis, decided, finding, rising
from benchmark.analyses.context import Context, Recording, doubled
from benchmark.analyses.gap import (
    average_precision,
    calibrated_bound,
    draw_batches,
    gap,
    plain_bound,
    worst_calibrated_bound,
)
from benchmark.analyses.gap_report import CALIBRATED, LOSSES, PLAIN, TITLE, gap_figure, gap_table
from benchmark.core.seeding import derive
from benchmark.papers.paper import load_papers
from benchmark.papers.printed.gap import GAP
from benchmark.report.records import Finding
from benchmark.stats.intervals import t_interval

QUERIES = 800  # a fixed sample of the test set
BATCHES = 4  # of one query at most: Eq. 9 is evaluated in all their orders
ROUNDING = 1e-12


def measure(
    recording: Recording, sizes: list[int], each: int, alpha: float, beta: float
) -> pd.DataFrame:
    """Return one row per query and batch size, on batches drawn from the query's gallery.

    Each batch has ``each`` positives, as a training batch has, and negatives up to its size.
    Columns: gap (mean AP over the batches minus AP over the whole gallery), and of the batches
    alone: own_gap (Eq. 6), perfect (every batch ranked perfectly), plain (Eq. 8), calibrated (Eq. 9
    in the order drawn), worst (Eq. 9).
    """
    own = not len(recording.gallery)
    gallery = recording.query if own else recording.gallery
    gallery_labels = recording.query_labels if own else recording.gallery_labels
    total = len(recording.query)
    order = np.random.default_rng(derive(0, "gap queries", total)).permutation(total)
    rows: list[dict[str, Any]] = []
    for query in np.sort(order[:QUERIES]):
        scores = gallery @ recording.query[query]
        same = gallery_labels == recording.query_labels[query]
        negative = scores[~same]
        if own:
            same[query] = False
        positive = scores[same]
        for size in sizes:
            rng = np.random.default_rng(derive(0, "gap batches", int(query), size))
            batches = draw_batches(rng, positive, negative, size, each, BATCHES)
            if not batches:
                continue
            within = np.mean([batch.average_precision for batch in batches])
            rows.append(
                {
                    "query": int(query),
                    "measured_at": size,
                    "gap": within - average_precision(positive, negative),
                    "own_gap": gap(batches),
                    "perfect": all(batch.perfect for batch in batches),
                    "plain": plain_bound(batches),
                    "calibrated": calibrated_bound(batches, alpha, beta),
                    "worst": worst_calibrated_bound(batches, alpha, beta),
                }
            )
    return pd.DataFrame(rows)


@ANALYSES.register(
    "decomposability_gap",
    display=TITLE,
    places=("ROADMAP Eq. 6, 8 and 9", "ROADMAP v2 Table 10"),
    papers=("roadmap2021",),
)
def build(context: Context) -> Analysis:
    """Return the gap of SupAP and ROADMAP by training and measuring batch size, and its bounds."""
    sampler = context.block.recipe.sampler.params
    each = max(1, sampler.get("samples_per_class", 2) - 1)
    sizes = doubled(context.batch_sizes)
    calibration = context.spec(CALIBRATED, sizes[0], 0).loss.params
    parts = []
    for batch_size in context.batch_sizes:
        for loss in LOSSES:
            for seed in context.seeds:
                recording = context.trained(loss, batch_size, seed)
                found = measure(recording, sizes, each, calibration["alpha"], calibration["beta"])
                parts.append(found.assign(loss=loss, trained_at=batch_size, seed=seed))
    data = pd.concat(parts, ignore_index=True)
    means = data.groupby(["trained_at", "loss", "seed", "measured_at"])["gap"].mean().reset_index()
    bounds = data[data["perfect"]]
    shown = (means, bounds, context.description)
    claims = [_by_batch_size(means), *_decreases(means), *_bound_claims(bounds)]
    return Analysis(gap_figure(*shown), gap_table(*shown), claims, _notes(data, each))


def _by_batch_size(means: pd.DataFrame) -> Finding:
    curves = means.groupby(["trained_at", "loss", "measured_at"])["gap"].mean().unstack()
    falls = [rising(list(-curve)) for curve in curves.to_numpy()]
    first, last = curves.columns[0], curves.columns[-1]
    low, high = 100 * curves[first], 100 * curves[last]
    return finding(
        "larger_batches",
        "ROADMAP Sec. 4, ablation study",
        "the gap is larger, the smaller the batches are against the dataset",
        f"From batches of {first} to batches of {last} the gap falls from {low.min():.1f} - "
        f"{low.max():.1f} to {high.min():.1f} - {high.max():.1f} points of AP; it falls at every "
        f"step for {sum(falls)} of {len(falls)} networks.",
        all(falls) or (None if any(falls) else False),
    )


def _decreases(means: pd.DataFrame) -> list[Finding]:
    table10 = [each for each in load_papers()["roadmap2021"].table("table10") if each.metric == GAP]
    printed = " and ".join(f"{each.text}% ({each.row_label})" for each in table10)
    findings = []
    for size in sorted(means["trained_at"].unique()):
        part = means[(means["trained_at"] == size) & (means["measured_at"] == size)]
        gaps = part.pivot(index="seed", columns="loss", values="gap")
        decrease = t_interval(100 * (1 - gaps[CALIBRATED] / gaps[PLAIN]))
        interval = (
            f" (95% interval {decrease.low:+.1f} to {decrease.high:+.1f}%)"
            if decrease.n > 1
            else " (one seed)"
        )
        findings.append(
            finding(
                f"decrease_at_{size}",
                "ROADMAP v2 Table 10",
                "adding calibration to SupAP decreases the gap",
                f"Trained and measured at batch size {size}, the gap is "
                f"{100 * gaps[PLAIN].mean():.2f} points for SupAP and "
                f"{100 * gaps[CALIBRATED].mean():.2f} for ROADMAP, a relative decrease of "
                f"{decrease.mean:+.1f}%{interval}; the paper prints {printed}.",
                decided(decrease.low, decrease.high, decrease.n),
            )
        )
    return findings


def _bound_claims(bounds: pd.DataFrame) -> list[Finding]:
    if bounds.empty:
        return []
    beyond = {
        key: int((bounds["own_gap"] > bounds[key] + ROUNDING).sum())
        for key in ("plain", "calibrated", "worst")
    }
    negative = int((bounds["own_gap"] < -ROUNDING).sum())
    tighter, looser = (
        float(np.mean(sign * (bounds["plain"] - bounds["worst"]) > ROUNDING)) for sign in (1, -1)
    )
    return [
        finding(
            "eq8_holds",
            "ROADMAP Eq. 8",
            "the gap lies between 0 and the bound of Eq. 8",
            f"Of {len(bounds)} draws whose batches are all ranked perfectly, {negative} have a gap "
            f"below 0 and {beyond['plain']} a gap above the bound of Eq. 8.",
            not negative and not beyond["plain"],
        ),
        finding(
            "eq9_holds",
            "ROADMAP Eq. 9",
            "the gap lies below the bound of Eq. 9",
            f"Of the same draws {beyond['calibrated']} exceed Eq. 9 with the batches in the order "
            f"drawn, and {beyond['worst']} exceed it with the batches in their worst order.",
            not beyond["calibrated"] and not beyond["worst"],
        ),
        finding(
            "eq9_is_tighter",
            "ROADMAP Sec. 3.2",
            "the bound of Eq. 9 is tighter than that of Eq. 8",
            f"In its worst order Eq. 9 is below Eq. 8 in {100 * tighter:.1f}% of the draws and "
            f"above it in {100 * looser:.1f}%; means {bounds['worst'].mean():.4f} and "
            f"{bounds['plain'].mean():.4f}.",
            looser == 0 if looser or tighter else None,
        ),
    ]


def _notes(data: pd.DataFrame, each: int) -> list[str]:
    share = 100 * data.groupby("loss")["perfect"].mean()
    beyond = 100 * float((data["own_gap"] > data["plain"] + ROUNDING).mean())
    queries = data.groupby(["loss", "trained_at", "seed"])["query"].nunique().min()
    notes = [
        f"{queries} queries have the {2 * each} positives or more that two batches take; the "
        "others are left out.",
        f"All batches of a query are ranked perfectly in {share[PLAIN]:.0f}% of the draws for "
        f"SupAP and {share[CALIBRATED]:.0f}% for ROADMAP; without that condition {beyond:.2f}% of "
        "all draws exceed Eq. 8.",
    ]
    if not data["perfect"].any():
        notes.append("No draw meets the condition of the bounds, so neither could be checked.")
    return notes
