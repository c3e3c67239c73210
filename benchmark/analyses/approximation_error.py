"""How far each AP loss is from the AP it stands for, along an epoch and against its smoothing."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from benchmark.analyses import ANALYSES
from benchmark.analyses.analysis import Analysis, cells, finding, listed, numeric, rising, shades
from benchmark.analyses.context import Context
from benchmark.analyses.gap import batch_ap
from benchmark.core.seeding import derive
from benchmark.report.drawing import DOUBLE, STYLES, Drawing, legend_below, line, new_figure, styled
from benchmark.report.labels import loss_name
from benchmark.report.records import Finding
from benchmark.report.table import Section, Table, text_column

TITLE = "AP approximation error"
TRAINED = "smooth_ap"
TAUS = (0.001, 0.005, 0.01, 0.05, 0.1)
BINS = (160, 80, 40, 20, 10)
MARGINS = (0.001, 0.005, 0.02, 0.05, 0.1)
# Loss -> width of its smoothing at its defaults, cosine units.
DEFAULTS = {
    "smooth_ap": 0.01,
    "sup_ap": 0.01,
    "fast_ap": 2 / 10,
    "softbin_ap": 2 / 19,
    "blackbox_ap": 0.02,
}


def settings(name: str) -> list[tuple[float, str, dict[str, Any]]]:
    """Return (width in cosine units, words, hyperparameters) of a loss's smoothing, sorted.

    The width is tau, the distance of two bin centers, or the scale of BlackBoxAP's noise. SupAP's
    delta follows tau, as in ROADMAP's supplement A.3.
    """
    if name == "smooth_ap":
        return [(tau, f"tau = {tau:g}", {"tau": tau}) for tau in TAUS]
    if name == "sup_ap":
        return [(tau, f"tau = {tau:g}", {"tau": tau, "delta": 5 * tau}) for tau in TAUS]
    if name == "fast_ap":
        return [(2 / bins, f"{bins} bins", {"bins": bins}) for bins in BINS]
    if name == "softbin_ap":
        return [(2 / (bins - 1), f"{bins} bins", {"bins": bins}) for bins in BINS]
    return [(margin, f"margin = {margin:g}", {"margin": margin}) for margin in MARGINS]


def errors_of(
    steps: list[tuple[np.ndarray, np.ndarray]], names: Iterable[str] = tuple(DEFAULTS)
) -> pd.DataFrame:
    """Return AP_pred and AP of the losses at each setting on every batch, means over the queries.

    Columns: loss, setting, width, step, error (mean |AP_pred - AP|), signed (mean AP_pred - AP) and
    over (share of queries with AP_pred above AP). A query ranks only the others, in the losses as
    in the exact AP (Smooth-AP Eq. 8).
    """
    import torch

    from benchmark.losses import create_loss
    from benchmark.losses.base import RankingLoss

    prepared = []
    for embeddings, labels in steps:
        rows = embeddings.astype(np.float64)
        products = rows @ rows.T
        prepared.append((torch.from_numpy(products), labels, batch_ap(products, labels)))
    errors = []
    for name in names:
        own = {} if name == "fast_ap" else {"include_query": False}
        for width, words, params in settings(name):
            loss = create_loss(name, **params, **own)
            assert isinstance(loss, RankingLoss)
            for step, (scores, labels, exact) in enumerate(prepared):
                generator = torch.Generator().manual_seed(derive(0, "analysis noise", step))
                targets = torch.from_numpy(labels[:, None] == labels[None])
                values = loss.query_losses(scores, targets, self_pairs=True, generator=generator)
                difference = 1 - values.numpy() - exact
                errors.append(
                    {
                        "loss": name,
                        "setting": words,
                        "width": width,
                        "step": step + 1,
                        "error": np.nanmean(np.abs(difference)),
                        "signed": np.nanmean(difference),
                        "over": np.nanmean(difference[np.isfinite(difference)] > 1e-9),
                    }
                )
    return pd.DataFrame(errors)


@ANALYSES.register(
    "approximation_error", display=TITLE, places=("Smooth-AP Eq. 8", "Smooth-AP Fig. 4")
)
def build(context: Context) -> Analysis:
    """Return |AP_pred - AP| over the last epoch of a SmoothAP training, for every AP loss."""
    batch_size = context.batch_sizes[-1]
    parts = [
        errors_of(list(context.trained(TRAINED, batch_size, seed).steps())).assign(seed=seed)
        for seed in context.seeds
    ]
    data = pd.concat(parts, ignore_index=True)
    groups = data.groupby(["loss", "setting", "width"], sort=False)
    means = groups[["error", "signed", "over"]].mean().reset_index()
    runs = f"{context.description}, batch size {batch_size}"
    return Analysis(
        _draw(data, means, runs), _table(means, runs), _claims(data, means), _notes(means)
    )


def _claims(data: pd.DataFrame, means: pd.DataFrame) -> list[Finding]:
    smooth = means[means["loss"] == "smooth_ap"].sort_values("width")
    steps = data[data["loss"] == "smooth_ap"]
    per_step = steps.pivot_table(index=["seed", "step"], columns="width", values="error")
    always = float((per_step.diff(axis=1).iloc[:, 1:] > 0).all(axis=1).mean())
    sup = means[means["loss"] == "sup_ap"]
    return [
        finding(
            "smaller_tau_is_tighter",
            "Smooth-AP Fig. 4",
            "a smaller tau gives a smaller approximation error",
            f"SmoothAP's mean error is {listed([f'{value:.4f}' for value in smooth['error']], '')} "
            f"at tau = {listed(smooth['width'])}; the order holds in {100 * always:.0f}% of the "
            "steps.",
            rising(list(smooth["error"])),
        ),
        finding(
            "sup_ap_is_an_upper_bound",
            "ROADMAP Sec. 3.1, property 1",
            "SupAP's loss is never below the AP loss",
            f"SupAP's AP is above the true AP for {100 * sup['over'].max():.3g}% of the queries at "
            f"any tau; its mean difference is {sup['signed'].min():+.4f} to "
            f"{sup['signed'].max():+.4f}.",
            bool(sup["over"].max() == 0),
        ),
    ]


def _notes(means: pd.DataFrame) -> list[str]:
    at_default = (means["width"] - means["loss"].map(DEFAULTS)).abs() < 1e-9
    words = ", ".join(
        f"{loss_name(row['loss'])} {row['error']:.4f} ({row['setting']})"
        for row in means[at_default].sort_values("error").to_dict("records")
    )
    return [f"Mean error at each loss's default smoothing, from the tightest: {words}."]


def _table(means: pd.DataFrame, runs: str) -> Table:
    numbers = (
        "width (cosine)", "mean |AP_pred - AP|", "mean AP_pred - AP",
        "share of queries with AP_pred > AP",
    )  # fmt: skip
    shown = ("setting", "width", "error", "signed", "over")
    rows = [
        cells(loss_name(row["loss"]), *(row[column] for column in shown))
        for row in means.to_dict("records")
    ]
    caption = (
        f"AP approximation error over the last training epoch of SmoothAP ({runs}). Every loss is "
        "evaluated on the same batches; the query is no item of its own ranking."
    )
    columns = [text_column("loss"), text_column("smoothing"), *map(numeric, numbers)]
    return Table(TITLE, caption, columns, [Section("", rows)])


def _draw(data: pd.DataFrame, means: pd.DataFrame, runs: str) -> Drawing:
    with styled():
        figure, grid = new_figure(DOUBLE, 3.0, 1, 2)
        left, right = grid[0]
        smooth = data[data["loss"] == "smooth_ap"].groupby(["width", "step"])["error"].mean()
        beside = {"textcoords": "offset points"}
        for tone, tau in zip(shades(STYLES["smooth_ap"].colour, len(TAUS)), TAUS, strict=True):
            curve = smooth.loc[tau]
            left.plot(curve.index, curve, color=tone)
            end = (curve.index[-1], curve.iloc[-1])
            left.annotate(f"{tau:g}", end, xytext=(4, 0), va="center", **beside)
        left.annotate("tau", (1, 1), xycoords="axes fraction", xytext=(4, 2), ha="left", **beside)
        left.set_yscale("log")
        left.set_xlabel("step of the last epoch")
        left.set_ylabel("|AP_pred - AP|, mean over queries")
        left.set_title("SmoothAP along the epoch", loc="left")
        for name in DEFAULTS:
            points = means[means["loss"] == name].sort_values("width")
            right.plot(points["width"], points["error"], label=loss_name(name), **line(name))
        right.set_xscale("log")
        right.set_yscale("log")
        right.xaxis.set_major_formatter("{x:g}")
        right.set_xlabel("width of the smoothing (cosine)")
        right.set_title("Mean over the epoch, every AP loss", loc="left")
        legend_below(figure, columns=5)
    caption = (
        "Distance between the AP that a loss computes and the true AP, over the last epoch of a "
        f"SmoothAP training ({runs}). Left: SmoothAP at several tau, mean over seeds. Right: every "
        "AP loss against the width of its smoothing: tau (SmoothAP, SupAP with delta = 5 tau), "
        "distance of bin centers (FastAP, SoftBinAP), scale of the noise (BlackBoxAP, exact "
        "without it). Logarithmic axes."
    )
    low, high = means["error"].min(), means["error"].max()
    alt = (
        f"Lines of the approximation error, from {low:.2g} to {high:.2g}, against training step "
        "and smoothing width."
    )
    return Drawing(TITLE, caption, alt, figure, data)


TAU_TITLE = "AP approximation error, one training for each tau"
MARKERS = "osD^v"


@ANALYSES.register("trained_tau", display=TAU_TITLE, places=("Smooth-AP Eq. 8", "Smooth-AP Fig. 4"))
def trained_tau(context: Context) -> Analysis:
    """Return |AP_pred - AP| over the last epoch of a SmoothAP training at each tau."""
    batch_size = context.batch_sizes[-1]
    parts = []
    for tau in TAUS:
        for seed in context.seeds:
            steps = list(context.trained(TRAINED, batch_size, seed, tau=tau).steps())
            parts.append(errors_of(steps, [TRAINED]).assign(trained=tau, seed=seed))
    data = pd.concat(parts, ignore_index=True)
    means = data.pivot_table(index="trained", columns="width", values="error")
    runs = f"{context.description}, batch size {batch_size}"
    return Analysis(_draw_taus(data, means, runs), _tau_table(means, runs), [_claim(data, means)])


def _own(data: pd.DataFrame) -> pd.DataFrame:
    """Return the errors at the tau that the network was trained with."""
    return data[data["trained"] == data["width"]]


def _claim(data: pd.DataFrame, means: pd.DataFrame) -> Finding:
    own = means.to_numpy().diagonal().tolist()
    by_seed = _own(data).pivot_table(index="seed", columns="trained", values="error")
    always = sum(rising(list(row)) for row in by_seed.to_numpy())
    return finding(
        "smaller_tau_is_tighter_in_its_own_training",
        "Smooth-AP Fig. 4",
        "a training with a smaller tau has a smaller approximation error",
        f"The mean error is {listed([f'{value:.4f}' for value in own], '')} in trainings at tau = "
        f"{listed(TAUS)}; the order holds for {always} of {len(by_seed)} seeds.",
        rising(own),
    )


def _tau_table(means: pd.DataFrame, runs: str) -> Table:
    columns = [numeric("trained at tau"), *(numeric("evaluated at tau", f"{t:g}") for t in TAUS)]
    rows = [cells(tau, *row) for tau, row in zip(TAUS, means.to_numpy().tolist(), strict=True)]
    caption = (
        f"Mean |AP_pred - AP| of SmoothAP over the last epoch ({runs}): the tau of the training by "
        "row, that of the evaluation by column. On the diagonal both are the same."
    )
    return Table(TAU_TITLE, caption, columns, [Section("", rows)])


def _draw_taus(data: pd.DataFrame, means: pd.DataFrame, runs: str) -> Drawing:
    along = _own(data).groupby(["trained", "step"])["error"].mean()
    with styled():
        figure, grid = new_figure(DOUBLE, 3.0, 1, 2)
        left, right = grid[0]
        tones = shades(STYLES[TRAINED].colour, len(TAUS))
        for tau, tone, marker in zip(TAUS, tones, MARKERS, strict=True):
            curve, row = along.loc[tau], means.loc[tau]
            look = {"color": tone, "marker": marker, "markersize": 4}
            sparse = {"markevery": max(1, len(curve) // 8)}
            left.plot(curve.index, curve, label=f"trained at tau = {tau:g}", **look, **sparse)
            right.plot(row.index, row, markerfacecolor="none", **look)
            right.plot([tau], [row[tau]], linestyle="none", **look)
        left.set_xlabel("step of the last epoch")
        left.set_ylabel("|AP_pred - AP|, mean over queries")
        left.set_title("At the tau of the training", loc="left")
        right.set_xscale("log")
        right.xaxis.set_major_formatter("{x:g}")
        right.set_xlabel("tau of the evaluation (cosine)")
        right.set_title("Mean over the epoch, at every tau", loc="left")
        for axes in (left, right):
            axes.set_yscale("log")
        legend_below(figure, columns=3)
    caption = (
        "Distance between SmoothAP's AP and the true AP over the last epoch of a training at each "
        f"tau ({runs}), means over seeds. Left: at the tau of the training, as in Smooth-AP's "
        "figure 4. Right: each network at every tau; filled where it is that of its training. "
        "Logarithmic axes."
    )
    told = ", ".join(f"{along.loc[tau].mean():.2g} at {tau:g}" for tau in TAUS)
    alt = f"Lines of the approximation error by tau of the training: {told}."
    return Drawing(TAU_TITLE, caption, alt, figure, data)
