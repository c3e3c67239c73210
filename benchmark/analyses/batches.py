"""What lies in the batches of a training.

The analyses show how far each loss is from the AP that it stands for, along an epoch and against
its smoothing; how much of the difference matrix has a gradient from the sigmoid of SmoothAP; and
how many neighbours, hard negatives and easy negatives hard and random sampling put into a batch.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from benchmark.analyses import ANALYSES
from benchmark.analyses.analysis import Analysis, Context, doubled, judged, rising, shades
from benchmark.analyses.decomposability_gap import batch_ap
from benchmark.core.errors import ConfigError, Problem
from benchmark.core.seeding import derive
from benchmark.core.words import listed
from benchmark.report.drawing import (
    COLOURS,
    DOUBLE,
    FAINT,
    INK,
    SERIES,
    STYLES,
    Series,
    by_batch_size,
    legend_below,
    line,
    new_figure,
    styled,
)
from benchmark.report.labels import loss_name

PLACES = ("Smooth-AP Eq. 8", "Smooth-AP Fig. 4")
TRAINED = "smooth_ap"
TAUS = (0.001, 0.005, 0.01, 0.05, 0.1)
BINS = (160, 80, 40, 20, 10)
# By loss: width of the smoothing in cosine units, words, hyperparameters. SupAP's delta follows
# tau, as in ROADMAP's supplement A.3.
SETTINGS: dict[str, list[tuple[float, str, dict[str, Any]]]] = {
    "smooth_ap": [(tau, f"tau = {tau:g}", {"tau": tau}) for tau in TAUS],
    "sup_ap": [(tau, f"tau = {tau:g}", {"tau": tau, "delta": 5 * tau}) for tau in TAUS],
    "fast_ap": [(2 / bins, f"{bins} bins", {"bins": bins}) for bins in BINS],
    "softbin_ap": [(2 / (bins - 1), f"{bins} bins", {"bins": bins}) for bins in BINS],
    "blackbox_ap": [
        (margin, f"margin = {margin:g}", {"margin": margin})
        for margin in (0.001, 0.005, 0.02, 0.05, 0.1)
    ],
}
# The papers' values, at which SmoothAP is compared with the losses that its paper calls less tight.
PUBLISHED = {
    "smooth_ap": "tau = 0.01",
    "fast_ap": "10 bins",
    "softbin_ap": "20 bins",
    "blackbox_ap": "margin = 0.02",
}
# ROADMAP says that these losses do not bound the AP.
UNBOUNDED = ("smooth_ap", "fast_ap", "softbin_ap")
BINNED = ("fast_ap", "softbin_ap")


def errors_of(
    steps: Iterable[tuple[np.ndarray, np.ndarray]], names: Iterable[str] = SETTINGS
) -> pd.DataFrame:
    """Return how far the losses are from the AP at each setting on every batch.

    Columns: loss, setting, width, step, error (mean |AP_pred - AP| over the queries), signed (mean
    AP_pred - AP) and over (share of queries with AP_pred above AP). A query does not rank itself,
    neither in the losses nor in the exact AP (Smooth-AP Eq. 8).
    """
    import torch

    from benchmark.losses import create_loss

    prepared = []
    for embeddings, labels in steps:
        rows = embeddings.astype(np.float64)
        products = rows @ rows.T
        prepared.append((torch.from_numpy(products), labels, batch_ap(products, labels)))
    errors = []
    for name in names:
        fixed = {} if name == "fast_ap" else {"include_query": False}
        for width, words, params in SETTINGS[name]:
            loss: Any = create_loss(name, **params, **fixed)
            for step, (scores, labels, exact) in enumerate(prepared):
                generator = torch.Generator().manual_seed(derive(0, "analysis noise", step))
                targets = torch.from_numpy(labels[:, None] == labels[None])
                values = loss.query_losses(scores, targets, self_pairs=True, generator=generator)
                difference = 1 - values.numpy() - exact
                row = {
                    "loss": name,
                    "setting": words,
                    "width": width,
                    "step": step + 1,
                    "error": np.nanmean(np.abs(difference)),
                    "signed": np.nanmean(difference),
                    "over": np.nanmean(difference[np.isfinite(difference)] > 1e-9),
                }
                errors.append(row)
    return pd.DataFrame(errors)


@ANALYSES.register("approximation_error", display="AP approximation error", places=PLACES)
def approximation_error(context: Context) -> Analysis:
    """Return |AP_pred - AP| over the last epoch of a SmoothAP training, for every AP loss."""
    size = context.block.batch_sizes[-1]
    recordings = {seed: context.trained(TRAINED, size, seed) for seed in context.seeds}
    parts = []
    for seed, recording in recordings.items():
        parts.append(errors_of(recording.steps()).assign(seed=seed))
    data = pd.concat(parts, ignore_index=True)
    settings = data.groupby(["loss", "setting", "width"], sort=False)
    means = settings[["error", "signed", "over"]].mean().reset_index()
    smooth = means[means["loss"] == TRAINED]
    sup = means[means["loss"] == "sup_ap"]
    steps = data[data["loss"] == TRAINED]
    per_step = steps.pivot_table(index=["seed", "step"], columns="width", values="error")
    grows = per_step.diff(axis=1).iloc[:, 1:] > 0
    values = {
        "runs": f"{context.description}, batch size {size}",
        "errors": listed(smooth["error"], ".4f"),
        "taus": listed(smooth["width"]),
        "over": 100 * sup["over"].max(),
        "signed": listed(sup["signed"], "+.4f"),
        "low": means["error"].min(),
        "high": means["error"].max(),
        "always": grows.all(axis=1).mean(),
    }
    claims = {
        "smaller_tau_is_tighter": rising(smooth["error"]),
        "sup_ap_is_an_upper_bound": sup["over"].max() == 0,
        "tighter_than_{loss}": list(_tighter(data)),
        "{loss}_is_no_upper_bound": list(_unbounded(means)),
        "more_bins_are_closer_for_{loss}": list(_bins(means)),
    }
    headers = [
        "loss",
        "smoothing",
        "width (cosine)",
        "mean |AP_pred - AP|",
        "mean AP_pred - AP",
        "share of queries with AP_pred > AP",
    ]
    rows = [("", [loss_name(loss), *rest]) for loss, *rest in means.itertuples(index=False)]
    titles = ("SmoothAP along the epoch", "Mean over the epoch, every AP loss")
    along = steps.groupby(["width", "step"])["error"].mean()
    with styled():
        figure, left, right = _panels(*titles, "width of the smoothing (cosine)")
        beside: dict[str, Any] = {"textcoords": "offset points"}
        for tone, tau in zip(shades(STYLES[TRAINED].colour, len(TAUS)), TAUS, strict=True):
            curve = along.loc[tau]
            left.plot(curve, color=tone)
            end = (curve.index[-1], curve.iloc[-1])
            left.annotate(f"{tau:g}", end, xytext=(4, 0), va="center", **beside)
        left.annotate("tau", (1, 1), xycoords="axes fraction", xytext=(4, 2), ha="left", **beside)
        for name in SETTINGS:
            points = means[means["loss"] == name].sort_values("width")
            right.plot(points["width"], points["error"], label=loss_name(name), **line(name))
        legend_below(figure, columns=5)
    return Analysis(figure, data, headers, rows, values, claims)


def _tighter(data: pd.DataFrame) -> Iterator[tuple[bool | None, dict[str, Any]]]:
    """Yield whether SmoothAP is closer to the AP than each rival, both at the papers' values."""
    errors = {}
    for loss, setting in PUBLISHED.items():
        rows = data[(data["loss"] == loss) & (data["setting"] == setting)]
        errors[loss] = rows.groupby("seed")["error"].mean()
    error_of_smooth_ap = errors.pop(TRAINED)
    for loss, error in errors.items():
        change, holds = judged(error - error_of_smooth_ap, "+.4f")
        values = {
            "loss": loss,
            "name": loss_name(loss),
            "at": PUBLISHED[loss],
            "change": change,
            "own": error_of_smooth_ap.mean(),
            "error": error.mean(),
        }
        yield holds, values


def _unbounded(means: pd.DataFrame) -> Iterator[tuple[bool, dict[str, Any]]]:
    """Yield whether a loss is below the AP loss for some queries, at the papers' values."""
    for loss in UNBOUNDED:
        setting = PUBLISHED[loss]
        rows = means[(means["loss"] == loss) & (means["setting"] == setting)]
        share = rows["over"].iloc[0]
        values = {"loss": loss, "name": loss_name(loss), "at": setting, "share": 100 * share}
        yield share > 0, values


def _bins(means: pd.DataFrame) -> Iterator[tuple[bool, dict[str, Any]]]:
    """Yield whether each doubling of the bins brings a loss closer to the AP."""
    for loss in BINNED:
        errors = means[means["loss"] == loss].sort_values("width")["error"]
        values = {
            "loss": loss,
            "name": loss_name(loss),
            "bins": listed(BINS),
            "bin_errors": listed(errors, ".4f"),
        }
        yield rising(errors), values


def _panels(along: str, over: str, width: str) -> tuple[Any, Any, Any]:
    """Return a figure and its panels of the error: by step, and by width of the smoothing."""
    figure, ((left, right),) = new_figure(DOUBLE, 3.0, 1, 2)
    left.set(title=along, xlabel="step of the last epoch", yscale="log")
    left.set_ylabel("|AP_pred - AP|, mean over queries")
    right.set(title=over, xlabel=width, xscale="log", yscale="log")
    right.xaxis.set_major_formatter("{x:g}")
    return figure, left, right


TAU_TITLE = "AP approximation error, one training for each tau"


@ANALYSES.register("trained_tau", display=TAU_TITLE, places=PLACES)
def trained_tau(context: Context) -> Analysis:
    """Return |AP_pred - AP| over the last epoch of a SmoothAP training at each tau."""
    size = context.block.batch_sizes[-1]
    parts = []
    for tau, seed in product(TAUS, context.seeds):
        steps = context.trained(TRAINED, size, seed, tau=tau).steps()
        parts.append(errors_of(steps, [TRAINED]).assign(trained=tau, seed=seed))
    data = pd.concat(parts, ignore_index=True)
    means = data.pivot_table(index="trained", columns="width", values="error")
    at_its_tau = data[data["trained"] == data["width"]]  # evaluated at the tau of the training
    errors = at_its_tau.pivot_table(index="seed", columns="trained", values="error")
    by_seed = errors.to_numpy()
    diagonal = means.to_numpy().diagonal().tolist()
    along = at_its_tau.groupby(["trained", "step"])["error"].mean()
    lines = ", ".join(f"{along.loc[tau].mean():.2g} at {tau:g}" for tau in TAUS)
    values = {
        "runs": f"{context.description}, batch size {size}",
        "lines": lines,
        "errors": listed(diagonal, ".4f"),
        "taus": listed(TAUS),
        "always": sum(map(rising, by_seed)),
        "seeds": len(by_seed),
    }
    claims = {"smaller_tau_is_tighter_in_its_own_training": rising(diagonal)}
    headers = ["trained at tau", *(("evaluated at tau", f"{tau:g}") for tau in TAUS)]
    titles = ("At the tau of the training", "Mean over the epoch, at every tau")
    with styled():
        figure, left, right = _panels(*titles, "tau of the evaluation (cosine)")
        tones = shades(STYLES[TRAINED].colour, len(TAUS))
        for tau, tone, marker in zip(TAUS, tones, "osD^v", strict=True):
            curve = along.loc[tau]
            row = means.loc[tau]
            style: dict[str, Any] = {"color": tone, "marker": marker, "markersize": 4}
            every = max(1, len(curve) // 8)
            left.plot(curve, label=f"trained at tau = {tau:g}", markevery=every, **style)
            right.plot(row, markerfacecolor="none", **style)
            right.plot([tau], [row[tau]], linestyle="none", **style)
        legend_below(figure, columns=3)
    rows = [("", row) for row in means.itertuples()]
    return Analysis(figure, data, headers, rows, values, claims)


NEGLIGIBLE = 0.005  # derivative of the sigmoid with respect to the score difference, per cosine
SHARES = {
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


def half_width(tau: float) -> float:
    """Return the score difference up to which the slope of sigmoid(x / tau) is not negligible.

    The derivative is p (1 - p) / tau at p = sigmoid(x / tau), which is a quadratic equation for p.
    The result is 0 if the slope is negligible everywhere.
    """
    level = NEGLIGIBLE * tau
    if level >= 0.25:
        return 0.0
    tail = 2 * level / (1 + math.sqrt(1 - 4 * level))  # the smaller root, without cancellation
    return tau * math.log((1 - tail) / tail)


def shares(embeddings: np.ndarray, labels: np.ndarray, width: float) -> dict[str, float]:
    """Return the share of differences s_i - s_j within ``width``, mean over the queries of a batch.

    Embeddings are (B, D), labels (B,). ``printed`` counts all B x B entries of a query's matrix,
    with the query and the diagonal. ``off_diagonal`` leaves i = j out. ``mixed`` takes only pairs
    of a positive i and a negative j, without the query.
    """

    def within(row: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return how many of a row lie within the width of each of the values."""
        ordered = np.sort(row)
        below = np.searchsorted(ordered, values - width, side="right")
        not_above = np.searchsorted(ordered, values + width, side="left")
        return not_above - below

    rows = embeddings.astype(np.float64)
    size = len(labels)
    inside = []
    mixed = []
    for query, row in enumerate(rows @ rows.T):
        inside.append(within(row, row).sum())
        positive = labels == labels[query]
        negatives = row[~positive]
        positive[query] = False
        if positive.any() and len(negatives):
            counts = within(negatives, row[positive])
            mixed.append(counts.mean() / len(negatives))
    entries = np.mean(inside)
    all_entries = size**2
    return {
        "printed": entries / all_entries,
        "off_diagonal": (entries - size) / (all_entries - size),
        "mixed": np.mean(mixed) if mixed else math.nan,
        "entries": entries,
    }


def cut(
    embeddings: np.ndarray, labels: np.ndarray, size: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield parts of a batch that keep its classes together, ``size`` images each."""
    order = np.argsort(labels, kind="stable")
    for start in range(0, len(order) - size + 1, size):
        chosen = order[start : start + size]
        yield embeddings[chosen], labels[chosen]


@ANALYSES.register(
    "operating_region",
    display="Operating region of the sigmoid",
    places=("Smooth-AP supplement 3, Eq. 1", "Smooth-AP Fig. S7"),
)
def operating_region(context: Context) -> Analysis:
    """Return the share of the difference matrix with a gradient, by SmoothAP's batch size."""
    sizes = doubled(context.block.batch_sizes)
    spec = context.spec(TRAINED, context.block.batch_sizes[0], context.seeds[0])
    width = half_width(spec.loss.params["tau"])
    rows = []
    for seed in context.seeds:
        trained_batches = {
            size: list(context.trained(TRAINED, size, seed).steps()) for size in sizes
        }
        largest = trained_batches[sizes[-1]]
        smaller_batches = {}
        for size in sizes:
            smaller_batches[size] = [piece for batch in largest for piece in cut(*batch, size)]
        for source, batches_of in (("trained", trained_batches), (FROZEN, smaller_batches)):
            for size, batches in batches_of.items():
                of_batches = [shares(*batch, width) for batch in batches]
                mean = pd.DataFrame(of_batches).mean()
                rows.append({"source": source, "seed": seed, "batch_size": size, **mean})
    data = pd.DataFrame(rows)
    means = data.groupby(["source", "batch_size"], sort=False)[[*SHARES, "entries"]].mean()
    frozen = 100 * means.loc[FROZEN]["off_diagonal"]
    printed = 100 * means.loc["trained"]["printed"]
    trained = data[data["source"] == "trained"]
    claims = []
    for kind, words in SHARES.items():
        by_size = 100 * trained.pivot(index="seed", columns="batch_size", values=kind)
        by_kind = by_size.mean()
        smallest, *_, largest_size = by_kind.index
        change, holds = judged(by_size[largest_size] - by_size[smallest], "+.2f")
        steady = rising(by_kind) or rising(-by_kind)
        numbers = {
            "kind": kind,
            "words": words,
            "change": change,
            "means": listed(by_kind, ".2f"),
            "sizes": listed(by_kind.index),
        }
        claims.append((holds if steady else None, numbers))
    shown = ", ".join(f"{value:.2f}% at {size}" for size, value in printed.items())
    values = {
        "runs": context.description,
        "negligible": NEGLIGIBLE,
        "width": width,
        "low": frozen.min(),
        "high": frozen.max(),
        "printed": shown,
        "entries": listed(means.loc["trained"]["entries"], ".0f"),
    }
    headers = ["batch size", *(("share", words) for words in SHARES.values()), "entries per query"]
    lines = []
    for source, (section, _) in SOURCES.items():
        for row in means.loc[source].itertuples():
            lines.append((section, row))
    figure = _draw_region(data, sizes)
    return Analysis(figure, data, headers, lines, values, {"{kind}": claims}, digits=4)


def _draw_region(data: pd.DataFrame, sizes: list[int]) -> Any:
    with styled():
        figure, ((left, right),) = new_figure(DOUBLE, 2.9, 1, 2)
        for axes, (source, (_, title)) in zip((left, right), SOURCES.items(), strict=True):
            shown = data[data["source"] == source].groupby("batch_size")
            series = []
            for (kind, words), style in zip(SHARES.items(), SERIES, strict=False):
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


# FastAP's two strategies (supplement A); the study's own sampler comes after them. As many
# categories as SOP and In-Shop have, all of them there: the pairs of more make long epochs.
STRATEGIES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "hard": ("category_windows", {"batches_per_pair": 1, "largest": 24}),
    "random": ("class_windows", {}),
}
# what an image is to the query -> pictures of it in a row, and their frame
KINDS = {
    "query": (1, INK, "-"),
    "neighbour": (2, COLOURS["good"], "-"),
    "hard negative": (3, COLOURS["bad"], "--"),
    "easy negative": (4, FAINT, ":"),
}
COLUMNS = 10  # pictures of a row
CLASSES = 3  # examples of classes
SIDE = 64  # pixels of a picture


def kinds_of(query: int, labels: np.ndarray, categories: np.ndarray) -> np.ndarray:
    """Return the kind of each image of a batch (B,) for image ``query`` of it: a key of KINDS."""
    kinds = np.where(categories == categories[query], "hard negative", "easy negative")
    kinds[labels == labels[query]] = "neighbour"
    kinds[query] = "query"
    return kinds


def composition(labels: np.ndarray, categories: np.ndarray) -> pd.DataFrame:
    """Return the number of images of each of KINDS, for every query of a batch (B,)."""
    counts = []
    for query in range(len(labels)):
        kinds = kinds_of(query, labels, categories)
        counts.append({kind: (kinds == kind).sum() for kind in KINDS})
    return pd.DataFrame(counts)


@ANALYSES.register(
    "batch_composition",
    display="What a batch contains",
    places=("FastAP supplement A", "FastAP Fig. 5", "FastAP Fig. 6"),
)
def batch_composition(context: Context) -> Analysis:
    """Return the counts over an epoch by sampler, and one query's batch; nothing is trained."""
    from benchmark.datasets import load_dataset
    from benchmark.input.samplers import create_sampler

    size = context.block.batch_sizes[-1]
    seed = context.seeds[0]
    spec = context.spec("fast_ap", size, seed)
    train = load_dataset(spec.dataset.name, spec.dataset.params).train
    if train.categories is None:
        words = f"{spec.dataset.label} has no categories; choose another with --dataset"
        raise ConfigError("analysis 'batch_composition'", [Problem(words)])
    facts = {"labels": train.labels, "categories": train.categories}
    sampler = spec.recipe.sampler
    strategies = {**STRATEGIES, "this study": (sampler.name, sampler.params)}
    counts = []
    first = {}
    for strategy, (name, params) in strategies.items():
        epoch = create_sampler(name, params, **facts, batch_size=size, seed=seed).epoch(0)
        first[strategy] = epoch[0]
        for batch in epoch:
            counted = composition(train.labels[batch], train.categories[batch])
            counts.append(counted.assign(strategy=strategy, sampler=name))
    data = pd.concat(counts, ignore_index=True)
    hard = data[data["strategy"] == "hard"]
    random = data[data["strategy"] == "random"]
    many = hard["hard negative"].mean()
    few = random["hard negative"].mean()
    halves = (hard["easy negative"] == size // 2).mean()
    shown = [kind for kind in KINDS if kind != "query"]
    groups = data.groupby(["strategy", "sampler"], sort=False)[shown].agg(["mean", "min", "max"])
    parts = [(f"{kind}s", part) for kind in shown for part in ("mean", "fewest", "most")]
    rows = []
    for names, row in zip(groups.index, groups.to_numpy(), strict=True):
        rows.append(("", [*names, *row]))
    pictures = dict(_rows(train, first))
    values = {
        "place": f"{context.place}, batches of {size}",
        "size": size,
        "rows": ", ".join(pictures),
        "halves": halves,
        "hard": many,
        "random": few,
    }
    claims = {
        "random_batches_have_fewer_hard_negatives": few < many / 2,
        "every_hard_batch_has_one_structure": halves == 1,
    }
    headers = ["sampling", "sampler", *parts]
    return Analysis(*_draw_pictures(train, pictures), headers, rows, values, claims)


def _rows(train: Any, first: Mapping[str, np.ndarray]) -> Iterator[tuple[str, list]]:
    """Yield (words, [(kind, number of the image)]) of each row of pictures."""
    sizes = pd.Series(train.labels).value_counts(sort=False)
    step = max(1, len(sizes) // CLASSES)
    classes = sizes[sizes > 1].index[::step]
    for number, label in enumerate(classes[:CLASSES], 1):
        members = np.flatnonzero(train.labels == label)[:COLUMNS]
        yield f"class {number}", [("", image) for image in members.tolist()]
    for strategy, batch in first.items():
        labels = train.labels[batch]
        with_neighbour = pd.Series(labels).duplicated(keep=False).to_numpy()
        query = int(with_neighbour.argmax())  # the first one, or the first image without any
        kinds = kinds_of(query, labels, train.categories[batch])
        chosen = []
        for kind, (most, *_) in KINDS.items():
            for image in batch[kinds == kind][:most].tolist():
                chosen.append((kind, image))
        yield strategy, chosen


def _draw_pictures(train: Any, rows: Mapping[str, list]) -> tuple[Any, pd.DataFrame]:
    marks = []
    with styled():
        figure, grid = new_figure(DOUBLE, 0.85 * len(rows), len(rows), COLUMNS)
        for axes in grid.flat:
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_visible(False)
        for (words, pictures), row in zip(rows.items(), grid, strict=True):
            row[0].set_ylabel(words)
            for axes, (kind, number) in zip(row, pictures, strict=False):
                image = train.image(number).convert("RGB")
                image.thumbnail((SIDE, SIDE))
                axes.imshow(np.asarray(image))
                if kind:
                    _, colour, dash = KINDS[kind]
                    axes.spines[:].set(visible=True, color=colour, linestyle=dash, linewidth=1.5)
                    axes.set_xlabel(kind.replace(" ", "\n"))
                marks.append({"row": words, "kind": kind, "image": train.names[number]})
    return figure, pd.DataFrame(marks)
