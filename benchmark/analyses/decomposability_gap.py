"""How much better the AP looks in batches than over the whole test set, by loss."""

from collections.abc import Iterator, Sequence
from itertools import permutations, product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmark.analyses import ANALYSES
from benchmark.analyses.analysis import Analysis, Context, Recording, doubled, judged, rising
from benchmark.core.seeding import derive
from benchmark.papers.loading import load_papers
from benchmark.papers.quantities import CALIBRATED, GAP, PLAIN
from benchmark.report import drawing
from benchmark.report.drawing import DOUBLE, FAINT, Series, line, new_figure, styled
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
    own = np.sort(-positive)
    others = np.sort(-negative)
    # In ascending negated scores, what lies left of a score or on it ranks at or above it.
    rank_positive = np.searchsorted(own, own, side="right")
    rank_negative = np.searchsorted(others, own, side="right")
    return float(np.mean(rank_positive / (rank_positive + rank_negative)))


def ap_loss(scores: np.ndarray, positive: np.ndarray) -> float:
    """Return 1 - AP of scores (R,) of which those of ``positive`` (R,) are relevant."""
    return 1 - average_precision(scores[positive], scores[~positive])


def value_and_gradient(loss: Any, scores: np.ndarray, positive: np.ndarray) -> tuple[Any, Any]:
    """Return 1 - AP (...,) of scores (..., R) as a loss has it, and its gradient (..., R)."""
    import torch

    leaf = torch.tensor(scores, dtype=torch.float64, requires_grad=True)
    rows = torch.atleast_2d(leaf)
    values = loss.query_losses(rows, torch.tensor(positive).expand(len(rows), -1))
    values.sum().backward()
    assert leaf.grad is not None
    return values.detach().numpy().reshape(leaf.shape[:-1])[()], leaf.grad.numpy()


def batch_ap(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the AP (B,) of every row of (B, B) scores over the other rows; NaN if no positive."""
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
        return bool(self.positive.min() > self.negative.max())


def mean_ap(batches: Sequence[Batch]) -> float:
    """Return the mean AP of the query over the batches."""
    return float(np.mean([average_precision(*batch) for batch in batches]))


def gap(batches: Sequence[Batch]) -> float:
    """Return Eq. 6: the mean AP over the batches minus the AP over all of them together."""
    return mean_ap(batches) - average_precision(*map(np.concatenate, zip(*batches, strict=True)))


def plain_bound(batches: Sequence[Batch]) -> float:
    """Return Eq. 8: the gap of perfect batches, each ranked below the one before."""
    total = 0.0
    positives = 0
    negatives = 0
    for batch in batches:
        ranks = np.arange(1, len(batch.positive) + 1) + positives
        total += float(np.sum(ranks / (ranks + negatives)))
        positives += len(batch.positive)
        negatives += len(batch.negative)
    return 1.0 - total / positives


def calibrated_bounds(batches: Sequence[Batch], alpha: float, beta: float) -> tuple[float, float]:
    """Return Eq. 9 for the batches in the order given, and for the worst of all their orders.

    It counts positives at or above ``alpha`` and negatives above ``beta``, and depends on the
    order of the batches, which the paper leaves open.
    """
    counts = [
        (int(np.sum(own >= alpha)), len(own), int(np.sum(others > beta)), len(others))
        for own, others in batches
    ]
    bounds = []
    # batches with equal counts may change places: few orders differ
    for order in dict.fromkeys(permutations(counts)):
        # of the batches before
        total = 0.0
        good = 0
        positives = 0
        bad = 0
        negatives = 0
        for here_good, here_positives, here_bad, here_negatives in order:
            for rank in range(1, here_good + 1):
                total += (rank + good) / (rank + good + bad)
            for rank in range(here_good + 1, here_positives + 1):
                total += (rank + positives) / (rank + positives + negatives)
            good = good + here_good
            positives = positives + here_positives
            bad = bad + here_bad
            negatives = negatives + here_negatives
        bounds.append(1.0 - total / positives)
    return bounds[0], max(bounds)


def draw_batches(rng: np.random.Generator, scores: Batch, size: int, each: int) -> list[Batch]:
    """Return up to ``BATCHES`` disjoint batches of ``size`` scores with ``each`` positives.

    Return none when not even two fit.
    """
    parts = list(zip(scores, (each, size - each), strict=True))
    count = min(BATCHES, *(len(row) // part for row, part in parts))
    if count < 2:
        return []
    drawn = (rng.permutation(row)[: count * part].reshape(count, part) for row, part in parts)
    return [Batch(*pair) for pair in zip(*drawn, strict=True)]


def measure(
    recording: Recording, sizes: list[int], each: int, alpha: float, beta: float
) -> pd.DataFrame:
    """Return one row per query and batch size, on batches drawn from the query's gallery.

    Each batch has ``each`` positives, as a training batch has, and negatives up to its size.
    Columns: gap (mean AP over the batches minus AP over the whole gallery), and of the batches
    alone: own_gap (Eq. 6), perfect (every batch ranked perfectly), plain (Eq. 8), calibrated (Eq. 9
    in the order drawn), worst (Eq. 9).
    """
    gallery = recording.gallery
    gallery_labels = recording.gallery_labels
    if own := not len(gallery):
        gallery = recording.query
        gallery_labels = recording.query_labels
    total = len(recording.query)
    order = np.random.default_rng(derive(0, "gap queries", total)).permutation(total)
    rows = []
    for query in np.sort(order[:QUERIES]).tolist():
        scores = gallery @ recording.query[query]
        same = gallery_labels == recording.query_labels[query]
        negative = scores[~same]
        if own:
            same[query] = False
        whole = Batch(scores[same], negative)
        for size in sizes:
            rng = np.random.default_rng(derive(0, "gap batches", query, size))
            if batches := draw_batches(rng, whole, size, each):
                perfect = all(batch.perfect for batch in batches)
                gap_to_gallery = mean_ap(batches) - mean_ap([whole])
                own_gap = gap(batches)
                plain = plain_bound(batches)
                drawn, worst = calibrated_bounds(batches, alpha, beta)
                row = (query, size, gap_to_gallery, own_gap, perfect, plain, drawn, worst)
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
    edges = [context.spec(CALIBRATED, sizes[0], 0).loss.params[end] for end in ("alpha", "beta")]
    for trained_at, loss, seed in product(context.block.batch_sizes, LOSSES, context.seeds):
        found = measure(context.trained(loss, trained_at, seed), sizes, each, *edges)
        parts.append(found.assign(loss=loss, trained_at=trained_at, seed=seed))
    data = pd.concat(parts, ignore_index=True)
    means = data.groupby(["trained_at", "loss", "seed", "measured_at"])["gap"].mean().reset_index()
    bounds = data[data["perfect"]]
    sizes = sorted(means["measured_at"].unique())
    curves = 100 * means.groupby(["trained_at", "loss", "measured_at"])["gap"].mean().unstack()
    low = curves[sizes[0]]
    high = curves[sizes[-1]]
    falls = [rising(-curve) for curve in curves.to_numpy()]
    share = 100 * data.groupby("loss")["perfect"].mean()
    ends = "; ".join(
        f"{loss_name(loss)} trained at {size}: {low[size, loss]:.1f} to {high[size, loss]:.1f}"
        for size, loss in product(sorted(means["trained_at"].unique()), LOSSES)
    )
    values: dict[str, Any] = {
        "runs": context.description,
        "first": sizes[0],
        "last": sizes[-1],
        "low": f"{low.min():.1f} - {low.max():.1f}",
        "falls": sum(falls),
        "networks": len(falls),
        "high": f"{high.min():.1f} - {high.max():.1f}",
        "ends": ends,
        "taken": 2 * each,
        "queries": data.groupby(["loss", "trained_at", "seed"])["query"].nunique().min(),
        "plain_share": share[PLAIN],
        "calibrated_share": share[CALIBRATED],
        "beyond": 100 * float((data["own_gap"] > data["plain"] + ROUNDING).mean()),
    }
    claims: dict[str, Any] = {
        "larger_batches": all(falls) or (None if any(falls) else False),
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
    table10 = [each for each in load_papers()["roadmap2021"].table("table10") if each.metric == GAP]
    printed = " and ".join(f"{each.text}% ({each.row_label})" for each in table10)
    for size, part in means[means["trained_at"] == means["measured_at"]].groupby("trained_at"):
        gaps = 100 * part.pivot(index="seed", columns="loss", values="gap")
        decrease, holds = judged(100 * (1 - gaps[CALIBRATED] / gaps[PLAIN]), "+.1f")
        own = {"size": size, "plain": gaps[PLAIN].mean(), "calibrated": gaps[CALIBRATED].mean()}
        yield holds, own | {"decrease": decrease, "printed": printed}


def _bounds(bounds: pd.DataFrame) -> tuple[dict[str, Any], dict[str, bool | None]]:
    own = bounds["own_gap"]
    less = bounds["plain"] - bounds["worst"]
    over, drawn, worst = (
        int((own > bounds[key] + ROUNDING).sum()) for key in ("plain", "calibrated", "worst")
    )
    negative = int((own < -ROUNDING).sum())
    tighter = float((less > ROUNDING).mean())
    looser = float((less < -ROUNDING).mean())
    values: dict[str, Any] = {
        "perfect": len(bounds),
        "negative": negative,
        "over_plain": over,
        "over_drawn": drawn,
        "over_worst": worst,
        "tighter": 100 * tighter,
        "looser": 100 * looser,
        "worst": bounds["worst"].mean(),
        "plain": bounds["plain"].mean(),
    }
    return values, {
        "eq8_holds": not negative and not over,
        "eq9_holds": not drawn and not worst,
        "eq9_is_tighter": looser == 0 if looser or tighter else None,
    }


def _rows(
    means: pd.DataFrame, bounds: pd.DataFrame, sizes: list[int]
) -> Iterator[tuple[str, list[str | float]]]:
    for trained_at, part in means.groupby("trained_at"):
        title = f"Gap, trained at batch size {trained_at}"
        gaps = part.groupby(["loss", "measured_at"])["gap"].mean().unstack()
        for loss in LOSSES:
            yield title, [loss_name(loss), *gaps.loc[loss]]
        yield title, ["relative decrease", *(1 - gaps.loc[CALIBRATED] / gaps.loc[PLAIN])]
    for name, part in bounds.groupby("loss"):
        title = f"Bounds where all batches are ranked perfectly, {loss_name(str(name))}"
        by_size = part.groupby("measured_at")[[*BOUNDS]].mean().reindex(sizes)
        for key, words in BOUNDS.items():
            yield title, [words, *by_size[key]]


def _draw(means: pd.DataFrame, bounds: pd.DataFrame, sizes: list[int]) -> tuple[Any, pd.DataFrame]:
    """Return one panel per training batch size (first and last of many) and one of the bounds."""
    trained = sorted(means["trained_at"].unique())
    shown = trained if len(trained) < 3 else [trained[0], trained[-1]]
    bound_means = bounds.groupby(["loss", "measured_at"])[[*BOUNDS]].mean().reset_index()
    with styled():
        figure, grid = new_figure(DOUBLE, 2.8, 1, len(shown) + 1)
        *panels, last = grid[0]
        for axes, trained_at in zip(panels, shown, strict=True):
            series = []
            for loss in LOSSES:
                part = means[(means["trained_at"] == trained_at) & (means["loss"] == loss)]
                by_size = part.groupby("measured_at")["gap"]
                found = [{"batch_size": at, **t_interval(100 * x)._asdict()} for at, x in by_size]
                series.append(Series(loss_name(loss), line(loss), pd.DataFrame(found)))
            drawing.by_batch_size(axes, sizes, series, width=0.12)
            axes.set(title=f"Trained at {trained_at}", xlabel=MEASURED)
        panels[0].set_ylabel("decomposability gap (points of AP)")
        top = max(axes.get_ylim()[1] for axes in panels)
        for axes in panels:
            axes.set_ylim(0, top)
        for loss, offset in zip(LOSSES, (-0.06, 0.06), strict=True):
            part = bound_means[bound_means["loss"] == loss]
            where = [sizes.index(size) + offset for size in part["measured_at"]]
            last.plot(where, 100 * part["own_gap"], **line(loss))
            last.plot(where, 100 * part["worst"], **(line(loss) | {"markerfacecolor": "none"}))
        plain = 100 * bounds.groupby("measured_at")["plain"].mean()
        plain.index = [sizes.index(size) for size in plain.index]
        last.plot(plain, linestyle=":", color=FAINT)
        for start in plain.head(1).items():
            last.annotate("Eq. 8", start, xytext=(0, 4), textcoords="offset points")
        drawing.batch_axis(last, sizes)
        last.set(title="Bounds", xlabel=MEASURED, ylabel="points of AP", yscale="log")
        last.yaxis.set_major_formatter("{x:g}")
        drawing.legend_below(figure, columns=2)
    parts = [means.assign(kind="gap"), bound_means.assign(kind="bounds")]
    return figure, pd.concat(parts, ignore_index=True)
