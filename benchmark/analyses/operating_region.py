"""How much of the difference matrix the sigmoid of SmoothAP still gives a gradient (Smooth-AP supplement 3)."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd

from benchmark.analyses import ANALYSES
from benchmark.analyses.analysis import Analysis, Claim, judged
from benchmark.analyses.context import Context, doubled
from benchmark.analyses.shown import listed, number, numeric, rising
from benchmark.report.figures.drawing import Drawing, legend_below, new_figure
from benchmark.report.figures.panels import batch_axis, dodge
from benchmark.report.figures.style import DOUBLE, styled
from benchmark.report.tables.table import Cell, Section, Table
from benchmark.stats.intervals import t_interval

TRAINED = "smooth_ap"
NEGLIGIBLE = 0.005  # derivative of the sigmoid by the score difference, per unit of cosine
KINDS = {
    "printed": "all entries, as Eq. 1 prints it",
    "off_diagonal": "without an item's difference to itself",
    "mixed": "a positive against a negative",
}
# Series are kinds of entries, not losses.
SERIES = (("#2F77A8", "o", "-"), ("#A0436B", "s", "--"), ("#4C7A34", "^", "-."))
FROZEN = "same embeddings, cut smaller"


def half_width(tau: float, negligible: float = NEGLIGIBLE) -> float:
    """Returns the score difference up to which the derivative of sigmoid(x / tau) exceeds ``negligible``.

    The derivative is p (1 - p) / tau at p = sigmoid(x / tau): a quadratic equation for p. 0 when it never does.
    """
    level = negligible * tau
    if level >= 0.25:
        return 0.0
    tail = 2 * level / (1 + math.sqrt(1 - 4 * level))  # the smaller root, without cancellation
    return tau * math.log((1 - tail) / tail)


def shares(embeddings: np.ndarray, labels: np.ndarray, width: float) -> dict[str, float]:
    """Returns the share of differences s_i - s_j within ``width``, mean over the queries of a batch (B, D), (B,).

    ``printed`` counts all B x B entries of a query's matrix, the query and the diagonal among them; ``off_diagonal``
    leaves i = j out; ``mixed`` takes pairs of a positive i and a negative j only, without the query.
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
    """Yields parts of a batch that keep its classes together, ``size`` images each."""
    order = np.argsort(labels, kind="stable")
    for start in range(0, len(order) - size + 1, size):
        part = order[start : start + size]
        yield embeddings[part], labels[part]


def measure(context: Context) -> pd.DataFrame:
    """Returns the mean shares by seed and batch size; ``source`` is "trained", or FROZEN for the control."""
    sizes = doubled(context.batch_sizes)
    rows = []
    for seed in context.seeds:
        for size in sizes:
            spec = context.spec(TRAINED, size, seed)
            width = half_width(spec.loss.params["tau"])
            steps = list(context.trained(TRAINED, size, seed).steps())
            rows.append(
                {"source": "trained", "seed": seed, "batch_size": size} | _mean(steps, width)
            )
        for size in sizes:  # after the loop, ``steps`` are those of the largest batches
            parts = [part for step in steps for part in cut(*step, size)]
            rows.append({"source": FROZEN, "seed": seed, "batch_size": size} | _mean(parts, width))
    return pd.DataFrame(rows)


def _mean(steps: Iterable[tuple[np.ndarray, np.ndarray]], width: float) -> dict[str, float]:
    return pd.DataFrame([shares(rows, labels, width) for rows, labels in steps]).mean().to_dict()


@ANALYSES.register(
    "operating_region",
    display="Operating region of the sigmoid",
    places=("Smooth-AP supplement 3, Eq. 1", "Smooth-AP Fig. S7"),
)
def build(context: Context) -> Analysis:
    """Returns the share of the difference matrix with a gradient, by the batch size that SmoothAP is trained with."""
    data = measure(context)
    spec = context.used[0]
    runs = f"{context.dataset}, {'seeds' if len(context.seeds) > 1 else 'seed'} {listed(context.seeds)}"
    width = half_width(spec.loss.params["tau"])
    claims = [_claim(data, kind, words) for kind, words in KINDS.items()]
    return Analysis(_draw(data, runs), _table(data, runs, width), claims, _notes(data, width))


def _claim(data: pd.DataFrame, kind: str, words: str) -> Claim:
    trained = data[data["source"] == "trained"].pivot(
        index="seed", columns="batch_size", values=kind
    )
    means = trained.mean()
    change = t_interval(trained[means.index[-1]] - trained[means.index[0]])
    up, down = rising(list(means)), rising(list(-means))
    holds = None
    if change.n > 1 and (change.low > 0 or change.high < 0):
        holds = change.low > 0 if up or down else None
    interval = (
        f" (95% interval {100 * change.low:+.2f} to {100 * change.high:+.2f})"
        if change.n > 1
        else ""
    )
    return Claim(
        kind,
        "Smooth-AP Fig. S7(a)",
        f"the share in the operating region rises with the batch size ({words})",
        f"The share ({words}) is {listed([f'{100 * value:.2f}%' for value in means], '')} at batch sizes "
        f"{listed(means.index)}, a change of {100 * change.mean:+.2f} points{interval}.",
        judged(holds),
    )


def _notes(data: pd.DataFrame, width: float) -> list[str]:
    entries = data[data["source"] == "trained"].groupby("batch_size")["entries"].mean()
    frozen = data[data["source"] == FROZEN].groupby("batch_size")["off_diagonal"].mean()
    return [
        f"The region is a score difference within {width:.3f}; it holds {listed([f'{n:.0f}' for n in entries], '')} "
        f"entries per query at batch sizes {listed(entries.index)}, so their number rises in any case.",
        "Cutting the largest batches of one trained network smaller leaves the share without the diagonal at "
        f"{100 * frozen.min():.2f}% to {100 * frozen.max():.2f}%.",
    ]


def _table(data: pd.DataFrame, runs: str, width: float) -> Table:
    columns = [numeric("batch size"), *(numeric("share", words) for words in KINDS.values())]
    columns += [numeric("entries per query")]
    sections = []
    for source, title in (
        ("trained", "Trained at this batch size"),
        (FROZEN, "Largest batches, cut to this size"),
    ):
        means = data[data["source"] == source].groupby("batch_size")[[*KINDS, "entries"]].mean()
        rows = [
            [
                Cell(str(size), numbers=(size,)),
                *map(number, row[list(KINDS)]),
                number(row["entries"], 4),
            ]
            for size, row in means.iterrows()
        ]
        sections.append(Section(title, rows))
    caption = (
        f"Share of the difference matrix whose sigmoid has a derivative above {NEGLIGIBLE:g}, that is, differences "
        f"within {width:.3f}; mean over the last epoch of SmoothAP trainings ({runs})."
    )
    return Table("Operating region of the sigmoid", caption, columns, sections)


def _draw(data: pd.DataFrame, runs: str) -> Drawing:
    sizes = sorted(data["batch_size"].unique())
    handles = {}
    with styled():
        figure, grid = new_figure(DOUBLE, 2.9, 1, 2)
        left, right = grid[0]
        for (kind, words), (colour, marker, dash), offset in zip(
            KINDS.items(), SERIES, dodge(3, 0.16), strict=True
        ):
            trained = data[data["source"] == "trained"]
            means = trained.groupby("batch_size")[kind].mean() * 100
            spans = trained.groupby("batch_size")[kind].agg(["min", "max"]) * 100
            bars = [means - spans["min"], spans["max"] - means]
            where = np.arange(len(sizes)) + offset
            handles[words] = left.errorbar(
                where, means, yerr=bars, color=colour, marker=marker, linestyle=dash
            )
            frozen = data[data["source"] == FROZEN].groupby("batch_size")[kind].mean() * 100
            right.plot(
                where, frozen, color=colour, marker=marker, linestyle=dash, markerfacecolor="none"
            )
        for axes, title in (
            (left, "Trained at this batch size"),
            (right, "One network, its batches cut smaller"),
        ):
            batch_axis(axes, sizes)
            axes.set_title(title, loc="left")
        left.set_ylabel("share with a gradient (%)")
        top = 1.05 * max(left.get_ylim()[1], right.get_ylim()[1])
        for axes in (left, right):
            axes.set_ylim(0, top)
        legend_below(figure, handles, columns=3)
    caption = (
        "Share of the difference matrix in the operating region of SmoothAP's sigmoid (derivative above "
        f"{NEGLIGIBLE:g}), mean over the last epoch ({runs}). Left: networks trained at each batch size, bars from the "
        "lowest to the highest seed. Right: the batches of the network trained at the largest size, cut smaller class "
        "by class."
    )
    printed = data[data["source"] == "trained"].groupby("batch_size")["printed"].mean()
    alt = "Lines of the share against batch size; all entries: " + ", ".join(
        f"{100 * value:.2f}% at {size}" for size, value in printed.items()
    )
    return Drawing("Operating region of the sigmoid", caption, f"{alt}.", figure, data)
