"""How much higher the AP is in batches than over the whole test set, by loss."""

from collections.abc import Iterator, Sequence
from itertools import permutations, product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmark.analyses import ANALYSES
from benchmark.analyses.analysis import (
    Analysis,
    Context,
    Recording,
    doubled,
    generator,
    judged,
    rising,
)
from benchmark.published.loading import load_papers
from benchmark.published.quantities import CALIBRATED, GAP, PLAIN
from benchmark.report.drawing import (
    DOUBLE,
    FAINT,
    Series,
    batch_axis,
    by_batch_size,
    legend_below,
    line,
    new_figure,
    styled,
)
from benchmark.report.labels import loss_name
from benchmark.stats.intervals import t_interval

QUERIES = 800  # a fixed sample of the test set
BATCHES = 4  # of one query at most: Eq. 9 is evaluated in all their orders
ROUNDING = 1e-12
LOSSES = (PLAIN, CALIBRATED)
MEASURED = "measured in batches of"
COLUMNS = ["query", "measured_at", "gap", "own_gap", "perfect", "plain", "calibrated", "worst"]
BOUNDS = {"own_gap": "gap of the batches", "worst": "Eq. 9, worst order", "plain": "Eq. 8"}


def average_precision(positive: np.ndarray, negative: np.ndarray) -> float:
    """Return the AP of one query with scores (P,) of positives and (N,) of negatives: mean r+ / r.

    Ranks count the items at or above a score: tied items have the worst of their ranks, as in the
    losses.
    """
    positives = np.sort(-positive)
    negatives = np.sort(-negative)
    # In ascending negated scores, items left of a score or on it rank at or above it.
    rank_among_positives = np.searchsorted(positives, positives, side="right")
    negatives_above = np.searchsorted(negatives, positives, side="right")
    precision = rank_among_positives / (rank_among_positives + negatives_above)
    return precision.mean()


def ap_loss(scores: np.ndarray, positive: np.ndarray) -> float:
    """Return 1 - AP of scores (R,). The items of ``positive`` (R,) are relevant."""
    return 1 - average_precision(scores[positive], scores[~positive])


def value_and_gradient(loss: Any, scores: np.ndarray, positive: np.ndarray) -> tuple[Any, Any]:
    """Return 1 - AP (...,) of scores (..., R) as a loss computes it, and its gradient (..., R)."""
    import torch

    leaf = torch.tensor(scores, dtype=torch.float64, requires_grad=True)
    rows = torch.atleast_2d(leaf)
    targets = torch.tensor(positive).expand(len(rows), -1)
    values = loss.query_losses(rows, targets)
    values.sum().backward()
    assert leaf.grad is not None
    return values.detach().numpy().reshape(leaf.shape[:-1])[()], leaf.grad.numpy()


def batch_ap(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the AP (B,) of every row of (B, B) scores over the other rows; NaN: no positive."""
    result = np.full(len(labels), np.nan)
    for query, row in enumerate(scores):
        same = labels == labels[query]
        negative = row[~same]
        same[query] = False
        if same.any():
            result[query] = average_precision(row[same], negative)
    return result


class Batch(NamedTuple):
    """Scores of the positives (P,) and negatives (N,) that one query meets in one batch."""

    positive: np.ndarray
    negative: np.ndarray

    @property
    def perfect(self) -> bool:
        """Return whether the batch is ranked perfectly, which both bounds assume."""
        return self.positive.min() > self.negative.max()


def mean_ap(batches: Sequence[Batch]) -> float:
    """Return the mean AP of the query over the batches."""
    return np.array([average_precision(*batch) for batch in batches]).mean()


def gap(batches: Sequence[Batch]) -> float:
    """Return Eq. 6: the mean AP over the batches minus the AP over all of them together."""
    positives, negatives = map(np.concatenate, zip(*batches, strict=True))
    return mean_ap(batches) - average_precision(positives, negatives)


def plain_bound(batches: Sequence[Batch]) -> float:
    """Return Eq. 8: the gap of perfect batches, each ranked below the one before."""
    total = 0.0
    positives = 0
    negatives = 0
    for batch in batches:
        ranks = np.arange(1, len(batch.positive) + 1) + positives
        total += (ranks / (ranks + negatives)).sum()
        positives += len(batch.positive)
        negatives += len(batch.negative)
    return 1.0 - total / positives


def calibrated_bounds(batches: Sequence[Batch], alpha: float, beta: float) -> tuple[float, float]:
    """Return Eq. 9 for the batches in the order given, and for the worst of all their orders.

    Eq. 9 counts positives at or above ``alpha`` and negatives above ``beta``. It depends on the
    order of the batches, which the paper leaves open.
    """
    counts = []
    for positive, negative in batches:
        good = int(np.sum(positive >= alpha))
        bad = int(np.sum(negative > beta))
        counts.append((good, len(positive), bad, len(negative)))
    bounds = []
    # batches with equal counts may change places: few orders differ
    for order in dict.fromkeys(permutations(counts)):
        total = 0.0
        # counts of the batches before this one
        good = 0
        positives = 0
        bad = 0
        negatives = 0
        for more_good, more_positives, more_bad, more_negatives in order:
            for rank in range(1, more_good + 1):
                total += (rank + good) / (rank + good + bad)
            for rank in range(more_good + 1, more_positives + 1):
                total += (rank + positives) / (rank + positives + negatives)
            good += more_good
            positives += more_positives
            bad += more_bad
            negatives += more_negatives
        bounds.append(1.0 - total / positives)
    return bounds[0], max(bounds)


def draw_batches(rng: np.random.Generator, scores: Batch, size: int, each: int) -> list[Batch]:
    """Return up to ``BATCHES`` disjoint batches of ``size`` scores with ``each`` positives.

    Return no batch if fewer than two fit.
    """
    others = size - each
    count = min(BATCHES, len(scores.positive) // each, len(scores.negative) // others)
    if count < 2:
        return []
    positives = rng.permutation(scores.positive)[: count * each]
    negatives = rng.permutation(scores.negative)[: count * others]
    return list(map(Batch, np.split(positives, count), np.split(negatives, count)))


def measure(
    recording: Recording, sizes: list[int], each: int, alpha: float, beta: float
) -> pd.DataFrame:
    """Return one row per query and batch size, on batches drawn from the query's gallery.

    Each batch has ``each`` positives, as a training batch has, and negatives up to its size. The
    column gap is the mean AP over the batches minus the AP over the whole gallery. The other
    columns are of the batches alone: own_gap (Eq. 6), perfect (every batch is ranked perfectly),
    plain (Eq. 8), calibrated (Eq. 9 in the order drawn), worst (Eq. 9).
    """
    gallery = recording.gallery
    gallery_labels = recording.gallery_labels
    is_own = not len(gallery)
    if is_own:
        gallery = recording.query
        gallery_labels = recording.query_labels
    total = len(recording.query)
    order = generator("gap queries", total).permutation(total)
    rows = []
    for query in np.sort(order[:QUERIES]).tolist():
        scores = gallery @ recording.query[query]
        same = gallery_labels == recording.query_labels[query]
        negative = scores[~same]
        if is_own:
            same[query] = False
        whole = Batch(scores[same], negative)
        for size in sizes:
            rng = generator("gap batches", query, size)
            batches = draw_batches(rng, whole, size, each)
            if batches:
                drawn, worst = calibrated_bounds(batches, alpha, beta)
                row = {
                    "query": query,
                    "measured_at": size,
                    "gap": mean_ap(batches) - mean_ap([whole]),
                    "own_gap": gap(batches),
                    "perfect": all(batch.perfect for batch in batches),
                    "plain": plain_bound(batches),
                    "calibrated": drawn,
                    "worst": worst,
                }
                rows.append(row)
    return pd.DataFrame(rows, columns=COLUMNS)


@ANALYSES.register(
    "decomposability_gap",
    display="Decomposability gap",
    places=("ROADMAP Eq. 6, 8 and 9", "ROADMAP v2 Table 10"),
    papers=("roadmap2021",),
)
def build(context: Context) -> Analysis:
    """Return the gap of SupAP and ROADMAP by training and measuring batch size, and its bounds."""
    each = max(1, context.block.recipe.sampler.params.get("samples_per_class", 2) - 1)
    sizes = doubled(context.block.batch_sizes)
    parts = []
    params = context.spec(CALIBRATED, sizes[0], 0).loss.params
    for trained_at, loss, seed in product(context.block.batch_sizes, LOSSES, context.seeds):
        recording = context.trained(loss, trained_at, seed)
        gaps = measure(recording, sizes, each, params["alpha"], params["beta"])
        parts.append(gaps.assign(loss=loss, trained_at=trained_at, seed=seed))
    data = pd.concat(parts, ignore_index=True)
    networks = data.groupby(["trained_at", "loss", "seed", "measured_at"])
    means = networks["gap"].mean().reset_index()
    bounds = data[data["perfect"]]
    sizes = sorted(means["measured_at"].unique())
    by_size = means.groupby(["trained_at", "loss", "measured_at"])["gap"]
    curves = 100 * by_size.mean().unstack()
    low = curves[sizes[0]]
    high = curves[sizes[-1]]
    falls = [rising(-curve) for curve in curves.to_numpy()]
    ends = []
    for size, loss in product(sorted(means["trained_at"].unique()), LOSSES):
        span = f"{low[size, loss]:.1f} to {high[size, loss]:.1f}"
        ends.append(f"{loss_name(loss)} trained at {size}: {span}")
    all_larger: bool | None = all(falls)
    if any(falls) and not all_larger:
        all_larger = None
    values = {
        "runs": context.description,
        "first": sizes[0],
        "last": sizes[-1],
        "low": f"{low.min():.1f} - {low.max():.1f}",
        "falls": sum(falls),
        "networks": len(falls),
        "high": f"{high.min():.1f} - {high.max():.1f}",
        "ends": "; ".join(ends),
        "taken": 2 * each,
        "queries": data.groupby(["loss", "trained_at", "seed"])["query"].nunique().min(),
        "share": data.groupby("loss")["perfect"].mean(),
        "beyond": (data["own_gap"] > data["plain"] + ROUNDING).mean(),
    }
    claims: dict[str, Any] = {
        "larger_batches": all_larger,
        "decrease_at_{size}": list(_decreases(means)),
    }
    if len(bounds):
        more, held = _bounds(bounds)
        values = values | more
        claims = claims | held
    headers = ["loss", *(("batch size", str(size)) for size in sizes)]
    drawn = _draw(means, bounds, sizes)
    return Analysis(*drawn, headers, _rows(means, bounds, sizes), values, claims)


def _decreases(means: pd.DataFrame) -> Iterator[tuple[bool | None, dict[str, Any]]]:
    """Yield whether the gap of ROADMAP is smaller than that of SupAP, by batch size."""
    printed = []
    for number in load_papers()["roadmap2021"].table("table10"):
        if number.metric == GAP:
            printed.append(f"{number.text}% ({number.row_label})")
    same_size = means[means["trained_at"] == means["measured_at"]]
    for size, at_size in same_size.groupby("trained_at"):
        gaps = 100 * at_size.pivot(index="seed", columns="loss", values="gap")
        decrease, holds = judged(100 * (1 - gaps[CALIBRATED] / gaps[PLAIN]), "+.1f")
        values = {
            "size": size,
            "plain": gaps[PLAIN].mean(),
            "calibrated": gaps[CALIBRATED].mean(),
            "decrease": decrease,
            "printed": " and ".join(printed),
        }
        yield holds, values


def _bounds(bounds: pd.DataFrame) -> tuple[dict[str, Any], dict[str, bool | None]]:
    """Return how often Eq. 8 and 9 bound the gap, and whether the claims about them hold."""
    by_bound = bounds[["plain", "calibrated", "worst"]]
    beyond = by_bound.add(ROUNDING).lt(bounds["own_gap"], axis="index").sum()
    less = bounds["plain"] - bounds["worst"]
    negative = (bounds["own_gap"] < -ROUNDING).sum()
    tighter = (less > ROUNDING).mean()
    looser = (less < -ROUNDING).mean()
    values = {
        "perfect": len(bounds),
        "negative": negative,
        "beyond_bound": beyond,
        "tighter": tighter,
        "looser": looser,
        "means": by_bound.mean(),
    }
    return values, {
        "eq8_holds": not negative and not beyond["plain"],
        "eq9_holds": not beyond["calibrated"] and not beyond["worst"],
        "eq9_is_tighter": looser == 0 if looser or tighter else None,
    }


def _rows(
    means: pd.DataFrame, bounds: pd.DataFrame, sizes: list[int]
) -> Iterator[tuple[str, list[str | float]]]:
    for trained_at, gaps_of_networks in means.groupby("trained_at"):
        title = f"Gap, trained at batch size {trained_at}"
        gaps = gaps_of_networks.groupby(["loss", "measured_at"])["gap"].mean().unstack()
        for loss in LOSSES:
            yield title, [loss_name(loss), *gaps.loc[loss]]
        yield title, ["relative decrease", *(1 - gaps.loc[CALIBRATED] / gaps.loc[PLAIN])]
    for name, bounds_of_loss in bounds.groupby("loss"):
        title = f"Bounds where all batches are ranked perfectly, {loss_name(str(name))}"
        by_size = bounds_of_loss.groupby("measured_at")[[*BOUNDS]].mean().reindex(sizes)
        for key, words in BOUNDS.items():
            yield title, [words, *by_size[key]]


def _draw(means: pd.DataFrame, bounds: pd.DataFrame, sizes: list[int]) -> tuple[Any, pd.DataFrame]:
    """Return a panel per training batch size (of many the first and last) and one of the bounds."""
    trained = sorted(means["trained_at"].unique())
    shown = trained if len(trained) < 3 else [trained[0], trained[-1]]
    bound_means = bounds.groupby(["loss", "measured_at"])[[*BOUNDS]].mean().reset_index()
    with styled():
        figure, grid = new_figure(DOUBLE, 2.8, 1, len(shown) + 1)
        *panels, last = grid[0]
        for axes, trained_at in zip(panels, shown, strict=True):
            series = []
            for loss in LOSSES:
                shown_means = means[(means["trained_at"] == trained_at) & (means["loss"] == loss)]
                points = []
                for size, gaps in shown_means.groupby("measured_at")["gap"]:
                    points.append({"batch_size": size, **t_interval(100 * gaps)._asdict()})
                series.append(Series(loss_name(loss), line(loss), pd.DataFrame(points)))
            by_batch_size(axes, sizes, series, width=0.12)
            axes.set(title=f"Trained at {trained_at}", xlabel=MEASURED)
        panels[0].set_ylabel("decomposability gap (points of AP)")
        top = max(axes.get_ylim()[1] for axes in panels)
        for axes in panels:
            axes.set_ylim(0, top)
        for loss, offset in zip(LOSSES, (-0.06, 0.06), strict=True):
            of_loss = bound_means[bound_means["loss"] == loss]
            x = [sizes.index(size) + offset for size in of_loss["measured_at"]]
            last.plot(x, 100 * of_loss["own_gap"], **line(loss))
            last.plot(x, 100 * of_loss["worst"], **(line(loss) | {"markerfacecolor": "none"}))
        plain = 100 * bounds.groupby("measured_at")["plain"].mean()
        plain.index = [sizes.index(size) for size in plain.index]
        last.plot(plain, linestyle=":", color=FAINT)
        for start in plain.head(1).items():
            last.annotate("Eq. 8", start, xytext=(0, 4), textcoords="offset points")
        batch_axis(last, sizes)
        last.set(title="Bounds", xlabel=MEASURED, ylabel="points of AP", yscale="log")
        last.yaxis.set_major_formatter("{x:g}")
        legend_below(figure, columns=2)
    parts = [means.assign(kind="gap"), bound_means.assign(kind="bounds")]
    return figure, pd.concat(parts, ignore_index=True)
