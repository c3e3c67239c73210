"""How much better the AP looks in batches than over the whole test set, by loss."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from benchmark.analyses import ANALYSES
from benchmark.analyses.analysis import Analysis, cells, decided, finding, numeric, rising
from benchmark.analyses.context import Context, Recording, doubled
from benchmark.analyses.gap import (
    average_precision,
    calibrated_bound,
    draw_batches,
    gap,
    plain_bound,
    worst_calibrated_bound,
)
from benchmark.core.seeding import derive
from benchmark.papers.paper import load_papers
from benchmark.papers.printed.gap import GAP
from benchmark.report.drawing import DOUBLE, FAINT, Drawing, legend_below, line, new_figure, styled
from benchmark.report.labels import loss_name
from benchmark.report.panels import Series, batch_axis, by_batch_size
from benchmark.report.records import Finding
from benchmark.report.table import Table, TableCell, grouped, text_column
from benchmark.stats.intervals import t_interval

QUERIES = 800  # a fixed sample of the test set
BATCHES = 4  # of one query at most: Eq. 9 is evaluated in all their orders
ROUNDING = 1e-12
TITLE = "Decomposability gap"
PLAIN, CALIBRATED = "sup_ap", "roadmap"
LOSSES = (PLAIN, CALIBRATED)
MEASURED = "measured in batches of"
_BOUNDS = {"own_gap": "gap of the batches", "worst": "Eq. 9, worst order", "plain": "Eq. 8"}


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


def gap_table(means: pd.DataFrame, bounds: pd.DataFrame, runs: str) -> Table:
    """Return gaps by loss and measuring batch size, and the bounds of perfectly ranked draws."""
    sizes = sorted(means["measured_at"].unique())
    columns = [text_column("loss"), *(numeric("batch size", str(size)) for size in sizes)]
    caption = (
        "Mean AP in batches minus AP over the whole test set, by the size of the batches it is "
        f"measured in; and the gap of the batches themselves beside its bounds ({runs}). AP from 0 "
        "to 1."
    )
    return Table(TITLE, caption, columns, grouped(_rows(means, bounds, sizes)))


def _rows(
    means: pd.DataFrame, bounds: pd.DataFrame, sizes: list[int]
) -> Iterator[tuple[str, list[TableCell]]]:
    for trained_at, part in means.groupby("trained_at"):
        title = f"Gap, trained at batch size {trained_at}"
        gaps = part.groupby(["loss", "measured_at"])["gap"].mean().unstack()
        for loss in LOSSES:
            yield title, cells(loss_name(loss), *gaps.loc[loss])
        yield title, cells("relative decrease", *(1 - gaps.loc[CALIBRATED] / gaps.loc[PLAIN]))
    for name, part in bounds.groupby("loss"):
        title = f"Bounds where all batches are ranked perfectly, {loss_name(str(name))}"
        by_size = part.groupby("measured_at")[[*_BOUNDS]].mean().reindex(sizes)
        for key, words in _BOUNDS.items():
            yield title, cells(words, *by_size[key])


def gap_figure(means: pd.DataFrame, bounds: pd.DataFrame, runs: str) -> Drawing:
    """Return one panel per training batch size (first and last of many) and one of the bounds."""
    sizes = sorted(means["measured_at"].unique())
    trained = sorted(means["trained_at"].unique())
    shown = trained if len(trained) < 3 else [trained[0], trained[-1]]
    bound_means = bounds.groupby(["loss", "measured_at"])[[*_BOUNDS]].mean().reset_index()
    with styled():
        figure, grid = new_figure(DOUBLE, 2.8, 1, len(shown) + 1)
        panels = grid[0, : len(shown)]
        for axes, trained_at in zip(panels, shown, strict=True):
            part = means[means["trained_at"] == trained_at]
            series = [
                Series(loss_name(loss), line(loss), _intervals(part[part["loss"] == loss]))
                for loss in LOSSES
            ]
            by_batch_size(axes, sizes, series, width=0.12)
            axes.set_title(f"Trained at {trained_at}", loc="left")
            axes.set_xlabel(MEASURED)
        grid[0, 0].set_ylabel("decomposability gap (points of AP)")
        top = max(axes.get_ylim()[1] for axes in panels)
        for axes in panels:
            axes.set_ylim(0, top)
        _draw_bounds(grid[0, -1], bound_means, bounds, sizes)
        legend_below(figure, columns=2)
    caption = (
        f"Mean AP in batches minus AP over the whole test set ({runs}); bars: 95% t interval over "
        "seeds. Right: draws whose batches are all ranked perfectly: Eq. 8 (dotted, the same for "
        "both losses), Eq. 9 in its worst order (open marks), and the gap that the batches have "
        "(filled marks)."
    )
    ends = means.groupby(["trained_at", "loss", "measured_at"])["gap"].mean() * 100
    told = [
        f"{loss_name(loss)} trained at {size}: {ends[size, loss, sizes[0]]:.1f} to "
        f"{ends[size, loss, sizes[-1]]:.1f}"
        for size in trained
        for loss in LOSSES
    ]
    alt = (
        f"Gap in points of AP against measuring batch size, from {sizes[0]} to {sizes[-1]}. "
        f"{'; '.join(told)}."
    )
    parts = [means.assign(kind="gap"), bound_means.assign(kind="bounds")]
    return Drawing(TITLE, caption, alt, figure, pd.concat(parts, ignore_index=True))


def _intervals(part: pd.DataFrame) -> pd.DataFrame:
    """Return mean and t interval over seeds of the gap in points, by measuring batch size."""
    rows = []
    for size, gaps in part.groupby("measured_at")["gap"]:
        found = t_interval(100 * gaps)
        rows.append((size, found.mean, found.low, found.high))
    return pd.DataFrame(rows, columns=["batch_size", "mean", "low", "high"])


def _draw_bounds(axes: Any, means: pd.DataFrame, bounds: pd.DataFrame, sizes: list[int]) -> None:
    for loss, offset in zip(LOSSES, (-0.06, 0.06), strict=True):
        part = means[means["loss"] == loss]
        where = [sizes.index(size) + offset for size in part["measured_at"]]
        axes.plot(where, 100 * part["own_gap"], **line(loss))
        axes.plot(where, 100 * part["worst"], **(line(loss) | {"markerfacecolor": "none"}))
    plain = 100 * bounds.groupby("measured_at")["plain"].mean()
    middle = [sizes.index(size) for size in plain.index]
    axes.plot(middle, plain, linestyle=":", color=FAINT)
    if len(plain):
        start = (middle[0], plain.iloc[0])
        axes.annotate("Eq. 8", start, xytext=(0, 4), textcoords="offset points")
    axes.set_title("Bounds", loc="left")
    batch_axis(axes, sizes)
    axes.set_xlabel(MEASURED)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_ylabel("points of AP")
