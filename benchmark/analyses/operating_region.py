"""How much of the difference matrix the sigmoid of SmoothAP still gives a gradient."""

import math
from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd

from benchmark.analyses import ANALYSES
from benchmark.analyses.analysis import (
    Analysis,
    Claim,
    Context,
    doubled,
    judged,
    listed,
    rising,
    table,
)
from benchmark.report.drawing import (
    DOUBLE,
    SERIES,
    Drawing,
    Series,
    by_batch_size,
    legend_below,
    line,
    new_figure,
    styled,
)

TITLE = "Operating region of the sigmoid"
TRAINED = "smooth_ap"
NEGLIGIBLE = 0.005  # derivative of the sigmoid with respect to the score difference, per cosine
KINDS = {
    "printed": "all entries, as Eq. 1 prints it",
    "off_diagonal": "without an item's difference to itself",
    "mixed": "a positive against a negative",
}
FROZEN = "same embeddings, cut smaller"
# source -> its section of the table, its panel
SOURCES = {
    "trained": ("Trained at this batch size", "Trained at this batch size"),
    FROZEN: ("Largest batches, cut to this size", "One network, its batches cut smaller"),
}
Batches = Iterable[tuple[np.ndarray, np.ndarray]]  # embeddings (B, D), labels (B,)


def half_width(tau: float) -> float:
    """Return the score difference up to which the slope of sigmoid(x / tau) is not negligible.

    The derivative is p (1 - p) / tau at p = sigmoid(x / tau): a quadratic equation for p. 0 when it
    always is.
    """
    level = NEGLIGIBLE * tau
    if level >= 0.25:
        return 0.0
    tail = 2 * level / (1 + math.sqrt(1 - 4 * level))  # the smaller root, without cancellation
    return tau * math.log((1 - tail) / tail)


def shares(embeddings: np.ndarray, labels: np.ndarray, width: float) -> dict[str, float]:
    """Return the share of differences s_i - s_j within ``width``, mean over the queries of a batch.

    Embeddings are (B, D), labels (B,). ``printed`` counts all B x B entries of a query's matrix,
    the query and the diagonal among them; ``off_diagonal`` leaves i = j out; ``mixed`` takes pairs
    of a positive i and a negative j only, without the query.
    """
    rows = embeddings.astype(np.float64)
    size, inside, mixed = len(labels), [], []
    for query, row in enumerate(rows @ rows.T):
        inside.append(_within(row, row, width).sum())
        positive = labels == labels[query]
        negatives = row[~positive]
        positive[query] = False
        if positive.any() and len(negatives):
            mixed.append(_within(negatives, row[positive], width).mean() / len(negatives))
    counted = float(np.mean(inside))
    return {
        "printed": counted / size**2,
        "off_diagonal": (counted - size) / (size**2 - size),
        "mixed": float(np.mean(mixed)) if mixed else math.nan,
        "entries": counted,
    }


def _within(row: np.ndarray, values: np.ndarray, width: float) -> np.ndarray:
    """Return how many of a row lie within ``width`` of each of the values."""
    ordered = np.sort(row)
    below = np.searchsorted(ordered, values - width, side="right")
    return np.searchsorted(ordered, values + width, side="left") - below


def cut(embeddings: np.ndarray, labels: np.ndarray, size: int) -> Batches:
    """Yield parts of a batch that keep its classes together, ``size`` images each."""
    order = np.argsort(labels, kind="stable")
    for start in range(0, len(order) - size + 1, size):
        part = order[start : start + size]
        yield embeddings[part], labels[part]


def _batches(context: Context) -> Iterator[tuple[str, int, int, Batches]]:
    """Yield source, seed, batch size and batches; FROZEN are those of the largest, cut."""
    sizes = doubled(context.block.batch_sizes)
    for seed in context.seeds:
        for size in sizes:
            steps = list(context.trained(TRAINED, size, seed).steps())
            yield "trained", seed, size, steps
        for size in sizes:
            yield FROZEN, seed, size, [part for step in steps for part in cut(*step, size)]


@ANALYSES.register(
    "operating_region", display=TITLE, places=("Smooth-AP supplement 3, Eq. 1", "Smooth-AP Fig. S7")
)
def build(context: Context) -> Analysis:
    """Return the share of the difference matrix with a gradient, by SmoothAP's batch size."""
    runs = context.description
    spec = context.spec(TRAINED, context.block.batch_sizes[0], context.seeds[0])
    width = half_width(spec.loss.params["tau"])
    rows = []
    for source, seed, size, batches in _batches(context):
        mean = pd.DataFrame([shares(*batch, width) for batch in batches]).mean()
        rows.append({"source": source, "seed": seed, "batch_size": size, **mean})
    data = pd.DataFrame(rows)
    means = data.groupby(["source", "batch_size"], sort=False)[[*KINDS, "entries"]].mean()
    entries, frozen = means.loc["trained"]["entries"], 100 * means.loc[FROZEN]["off_diagonal"]
    notes = [
        f"Entries per query in the region: {listed(entries, '.0f')}; their number rises anyhow.",
        f"Cutting the largest batches smaller leaves the share without the diagonal at "
        f"{frozen.min():.2f}% to {frozen.max():.2f}%.",
    ]
    caption = (
        f"Share of the difference matrix whose sigmoid has a derivative above {NEGLIGIBLE:g}: "
        f"differences within {width:.3f}; mean over the last epoch of SmoothAP ({runs})."
    )
    headers = ["batch size", *(("share", words) for words in KINDS.values()), "entries per query"]
    lines = [
        (words, row) for key, (words, _) in SOURCES.items() for row in means.loc[key].itertuples()
    ]
    return Analysis(
        _draw(data, means.loc["trained"]["printed"], runs),
        table(TITLE, caption, headers, lines, digits=4),
        [_claim(data, kind, words) for kind, words in KINDS.items()],
        notes,
    )


def _claim(data: pd.DataFrame, kind: str, words: str) -> Claim:
    trained = data[data["source"] == "trained"]
    by_size = 100 * trained.pivot(index="seed", columns="batch_size", values=kind)
    means = by_size.mean()
    change, holds = judged(by_size[means.index[-1]] - by_size[means.index[0]], "+.2f")
    return (
        kind,
        "Smooth-AP Fig. S7(a)",
        f"the share in the operating region rises with the batch size ({words})",
        f"The share ({words}) is {listed(means, '.2f')} percent at batch sizes "
        f"{listed(means.index)}, a change in points of {change}.",
        holds if rising(list(means)) or rising(list(-means)) else None,
    )


def _draw(data: pd.DataFrame, printed: pd.Series, runs: str) -> Drawing:
    sizes = sorted(data["batch_size"].unique())
    with styled():
        figure, ((left, right),) = new_figure(DOUBLE, 2.9, 1, 2)
        for axes, (source, (_, title)) in zip((left, right), SOURCES.items(), strict=True):
            shown = data[data["source"] == source].groupby("batch_size")
            series = []
            for (kind, words), style in zip(KINDS.items(), SERIES, strict=False):
                points = 100 * shown[kind].agg(mean="mean", low="min", high="max")
                marks = line(style)
                if source == FROZEN:
                    marks["markerfacecolor"] = "none"
                    points[["low", "high"]] = math.nan
                series.append(Series(words, marks, points.reset_index()))
            by_batch_size(axes, sizes, series, width=0.16)
            axes.set_title(title)
        left.set_ylabel("share with a gradient (%)")
        top = 1.05 * max(left.get_ylim()[1], right.get_ylim()[1])
        for axes in (left, right):
            axes.set_ylim(0, top)
        legend_below(figure, columns=3)
    caption = (
        "Share of the difference matrix in the operating region of SmoothAP's sigmoid (derivative "
        f"above {NEGLIGIBLE:g}), mean over the last epoch ({runs}). Left: networks trained at each "
        "batch size, bars from the lowest to the highest seed. Right: the batches of the network "
        "trained at the largest size, cut smaller class by class."
    )
    told = ", ".join(f"{100 * value:.2f}% at {size}" for size, value in printed.items())
    alt = f"Lines of the share against batch size; all entries: {told}."
    return Drawing(TITLE, caption, alt, figure, data)
