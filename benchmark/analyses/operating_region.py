"""How much of the difference matrix the sigmoid of SmoothAP still gives a gradient."""

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd

from benchmark.analyses import ANALYSES
from benchmark.analyses.analysis import Analysis, cells, decided, finding, listed, numeric, rising
from benchmark.analyses.context import Context, doubled
from benchmark.report.drawing import DOUBLE, SERIES, Drawing, legend_below, line, new_figure, styled
from benchmark.report.panels import Series, by_batch_size
from benchmark.report.records import Finding
from benchmark.report.table import Section, Table, grouped
from benchmark.stats.intervals import t_interval

TITLE = "Operating region of the sigmoid"
TRAINED = "smooth_ap"
NEGLIGIBLE = 0.005  # derivative of the sigmoid with respect to the score difference, per cosine
KINDS = {
    "printed": "all entries, as Eq. 1 prints it",
    "off_diagonal": "without an item's difference to itself",
    "mixed": "a positive against a negative",
}
FROZEN = "same embeddings, cut smaller"
HEADINGS = {
    "trained": "Trained at this batch size",
    FROZEN: "Largest batches, cut to this size",
}


def half_width(tau: float, negligible: float = NEGLIGIBLE) -> float:
    """Return the score difference up to which the slope of sigmoid(x / tau) exceeds ``negligible``.

    The derivative is p (1 - p) / tau at p = sigmoid(x / tau): a quadratic equation for p. 0 when it
    never does.
    """
    level = negligible * tau
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
    scores = rows @ rows.T
    size, inside, mixed = len(labels), [], []
    for query, row in enumerate(scores):
        ordered = np.sort(row)
        inside.append(_within(ordered, row, width).sum())
        positive = labels == labels[query]
        negatives = np.sort(row[~positive])
        positive[query] = False
        if positive.any() and len(negatives):
            mixed.append(_within(negatives, row[positive], width).mean() / len(negatives))
    counted = np.mean(inside)
    return {
        "printed": float(counted / size**2),
        "off_diagonal": float((counted - size) / (size**2 - size)),
        "mixed": float(np.mean(mixed)) if mixed else math.nan,
        "entries": float(counted),
    }


def _within(ordered: np.ndarray, values: np.ndarray, width: float) -> np.ndarray:
    below = np.searchsorted(ordered, values - width, side="right")
    return np.searchsorted(ordered, values + width, side="left") - below


def cut(
    embeddings: np.ndarray, labels: np.ndarray, size: int
) -> Iterable[tuple[np.ndarray, np.ndarray]]:
    """Yield parts of a batch that keep its classes together, ``size`` images each."""
    order = np.argsort(labels, kind="stable")
    for start in range(0, len(order) - size + 1, size):
        part = order[start : start + size]
        yield embeddings[part], labels[part]


def measure(context: Context, width: float) -> pd.DataFrame:
    """Return the mean shares by seed and batch size; ``source`` is "trained" or, cut, FROZEN."""
    sizes = doubled(context.batch_sizes)
    rows = []
    for seed in context.seeds:
        for size in sizes:
            steps = list(context.trained(TRAINED, size, seed).steps())
            rows.append({"source": "trained", "seed": seed, "batch_size": size})
            rows[-1] |= _mean(steps, width)
        for size in sizes:  # after the loop, ``steps`` are those of the largest batches
            parts = [part for step in steps for part in cut(*step, size)]
            rows.append({"source": FROZEN, "seed": seed, "batch_size": size} | _mean(parts, width))
    return pd.DataFrame(rows)


def _mean(steps: Iterable[tuple[np.ndarray, np.ndarray]], width: float) -> dict[str, float]:
    means = pd.DataFrame([shares(rows, labels, width) for rows, labels in steps]).mean()
    return {str(name): float(value) for name, value in means.items()}


@ANALYSES.register(
    "operating_region",
    display=TITLE,
    places=("Smooth-AP supplement 3, Eq. 1", "Smooth-AP Fig. S7"),
)
def build(context: Context) -> Analysis:
    """Return the share of the difference matrix with a gradient, by SmoothAP's batch size."""
    spec = context.spec(TRAINED, context.batch_sizes[0], context.seeds[0])
    width = half_width(spec.loss.params["tau"])
    data = measure(context, width)
    runs = context.description
    claims = [_claim(data, kind, words) for kind, words in KINDS.items()]
    return Analysis(_draw(data, runs), _table(data, runs, width), claims, _notes(data, width))


def _claim(data: pd.DataFrame, kind: str, words: str) -> Finding:
    trained = data[data["source"] == "trained"]
    trained = trained.pivot(index="seed", columns="batch_size", values=kind)
    means = trained.mean()
    change = t_interval(trained[means.index[-1]] - trained[means.index[0]])
    monotonic = rising(list(means)) or rising(list(-means))
    interval = (
        f" (95% interval {100 * change.low:+.2f} to {100 * change.high:+.2f})"
        if change.n > 1
        else ""
    )
    return finding(
        kind,
        "Smooth-AP Fig. S7(a)",
        f"the share in the operating region rises with the batch size ({words})",
        f"The share ({words}) is {listed([f'{100 * value:.2f}%' for value in means], '')} at batch "
        f"sizes {listed(means.index)}, a change of {100 * change.mean:+.2f} points{interval}.",
        decided(change.low, change.high, change.n) if monotonic else None,
    )


def _notes(data: pd.DataFrame, width: float) -> list[str]:
    entries = data[data["source"] == "trained"].groupby("batch_size")["entries"].mean()
    frozen = 100 * data[data["source"] == FROZEN].groupby("batch_size")["off_diagonal"].mean()
    return [
        f"The region is a score difference within {width:.3f}; it holds "
        f"{listed([f'{n:.0f}' for n in entries], '')} entries per query at batch sizes "
        f"{listed(entries.index)}, so their number rises in any case.",
        "Cutting the largest batches of one trained network smaller leaves the share without the "
        f"diagonal at {frozen.min():.2f}% to {frozen.max():.2f}%.",
    ]


def _table(data: pd.DataFrame, runs: str, width: float) -> Table:
    columns = [numeric("batch size"), *(numeric("share", words) for words in KINDS.values())]
    means = data.groupby(["source", "batch_size"], sort=False)[[*KINDS, "entries"]].mean()
    sections: list[Section] = grouped(
        (
            HEADINGS[source],
            [
                *cells(row["batch_size"], digits=6),
                *cells(*(row[kind] for kind in KINDS)),
                *cells(row["entries"], digits=4),
            ],
        )
        for source in HEADINGS
        for row in means.loc[source].reset_index().to_dict("records")
    )
    caption = (
        f"Share of the difference matrix whose sigmoid has a derivative above {NEGLIGIBLE:g}, that "
        f"is, differences within {width:.3f}; mean over the last epoch of SmoothAP trainings "
        f"({runs})."
    )
    return Table(TITLE, caption, [*columns, numeric("entries per query")], sections)


def _draw(data: pd.DataFrame, runs: str) -> Drawing:
    sizes = sorted(data["batch_size"].unique())
    with styled():
        figure, grid = new_figure(DOUBLE, 2.9, 1, 2)
        left, right = grid[0]
        for axes, source, title in (
            (left, "trained", "Trained at this batch size"),
            (right, FROZEN, "One network, its batches cut smaller"),
        ):
            shown = data[data["source"] == source].groupby("batch_size")
            series = []
            for (kind, words), style in zip(KINDS.items(), SERIES, strict=False):
                points = 100 * shown[kind].agg(["mean", "min", "max"])
                points = points.rename(columns={"min": "low", "max": "high"}).reset_index()
                marks = line(style)
                if source == FROZEN:
                    marks["markerfacecolor"] = "none"
                    points[["low", "high"]] = math.nan
                series.append(Series(words, marks, points))
            by_batch_size(axes, sizes, series, width=0.16)
            axes.set_title(title, loc="left")
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
    printed = data[data["source"] == "trained"].groupby("batch_size")["printed"].mean()
    told = ", ".join(f"{100 * value:.2f}% at {size}" for size, value in printed.items())
    alt = f"Lines of the share against batch size; all entries: {told}."
    return Drawing(TITLE, caption, alt, figure, data)
