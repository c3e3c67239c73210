"""How much of the difference matrix the sigmoid of SmoothAP still gives a gradient."""

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from benchmark.analyses import ANALYSES
from benchmark.analyses.analysis import Analysis, Context, doubled, judged, listed, rising, worded
from benchmark.report.drawing import (
    DOUBLE,
    SERIES,
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
    spec = context.spec(TRAINED, context.block.batch_sizes[0], context.seeds[0])
    width = half_width(spec.loss.params["tau"])
    rows = []
    for source, seed, size, batches in _batches(context):
        mean = pd.DataFrame([shares(*batch, width) for batch in batches]).mean()
        rows.append({"source": source, "seed": seed, "batch_size": size, **mean})
    data = pd.DataFrame(rows)
    means = data.groupby(["source", "batch_size"], sort=False)[[*KINDS, "entries"]].mean()
    entries, frozen = means.loc["trained"]["entries"], 100 * means.loc[FROZEN]["off_diagonal"]
    trained, claims = data[data["source"] == "trained"], []
    for kind, words in KINDS.items():
        by_size = 100 * trained.pivot(index="seed", columns="batch_size", values=kind)
        by_kind = by_size.mean()
        change, holds = judged(by_size[by_kind.index[-1]] - by_size[by_kind.index[0]], "+.2f")
        steady = rising(by_kind) or rising(-by_kind)
        own = {"kind": kind, "words": words, "change": change}
        own |= {"means": listed(by_kind, ".2f"), "sizes": listed(by_kind.index)}
        claims.append((holds if steady else None, own))
    printed = means.loc["trained"]["printed"]
    values = {
        "runs": context.description,
        "negligible": NEGLIGIBLE,
        "width": width,
        "entries": listed(entries, ".0f"),
        "low": frozen.min(),
        "high": frozen.max(),
        "printed": ", ".join(f"{100 * value:.2f}% at {size}" for size, value in printed.items()),
    }
    headers = ["batch size", *(("share", words) for words in KINDS.values()), "entries per query"]
    lines = [
        (words, row) for key, (words, _) in SOURCES.items() for row in means.loc[key].itertuples()
    ]
    found = {"{kind}": claims}
    return worded("operating_region", _draw(data), data, headers, lines, values, found, digits=4)


def _draw(data: pd.DataFrame) -> Any:
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
    return figure
