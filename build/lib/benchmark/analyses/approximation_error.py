"""How far each AP loss is from the AP it stands for, along an epoch and against its smoothing."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from benchmark.analyses import ANALYSES
from benchmark.analyses.analysis import Analysis, Context, listed, rising, shades, worded
from benchmark.analyses.decomposability_gap import batch_ap
from benchmark.core.seeding import derive
from benchmark.report.drawing import DOUBLE, STYLES, legend_below, line, new_figure, styled
from benchmark.report.labels import loss_name

TITLE, TAU_TITLE = "AP approximation error", "AP approximation error, one training for each tau"
PLACES = ("Smooth-AP Eq. 8", "Smooth-AP Fig. 4")
TRAINED = "smooth_ap"
TAUS = (0.001, 0.005, 0.01, 0.05, 0.1)
BINS = (160, 80, 40, 20, 10)
# Of each loss: width of the smoothing in cosine units, words, hyperparameters. SupAP's delta
# follows tau, as in ROADMAP's supplement A.3.
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


def errors_of(
    steps: Iterable[tuple[np.ndarray, np.ndarray]], names: Iterable[str] = SETTINGS
) -> pd.DataFrame:
    """Return AP_pred and AP of the losses at each setting on every batch, means over the queries.

    Columns: loss, setting, width, step, error (mean |AP_pred - AP|), signed (mean AP_pred - AP) and
    over (share of queries with AP_pred above AP). A query ranks only the others, in the losses as
    in the exact AP (Smooth-AP Eq. 8).
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
        own = {} if name == "fast_ap" else {"include_query": False}
        for width, words, params in SETTINGS[name]:
            loss: Any = create_loss(name, **params, **own)
            for step, (scores, labels, exact) in enumerate(prepared):
                generator = torch.Generator().manual_seed(derive(0, "analysis noise", step))
                targets = torch.from_numpy(labels[:, None] == labels[None])
                values = loss.query_losses(scores, targets, self_pairs=True, generator=generator)
                difference = 1 - values.numpy() - exact
                row = {"loss": name, "setting": words, "width": width, "step": step + 1}
                row["error"] = np.nanmean(np.abs(difference))
                row["signed"] = np.nanmean(difference)
                row["over"] = np.nanmean(difference[np.isfinite(difference)] > 1e-9)
                errors.append(row)
    return pd.DataFrame(errors)


@ANALYSES.register("approximation_error", display=TITLE, places=PLACES)
def build(context: Context) -> Analysis:
    """Return |AP_pred - AP| over the last epoch of a SmoothAP training, for every AP loss."""
    size = context.block.batch_sizes[-1]
    runs = f"{context.description}, batch size {size}"
    recordings = [(seed, context.trained(TRAINED, size, seed)) for seed in context.seeds]
    parts = [errors_of(found.steps()).assign(seed=seed) for seed, found in recordings]
    data = pd.concat(parts, ignore_index=True)
    numbers = ["error", "signed", "over"]
    means = data.groupby(["loss", "setting", "width"], sort=False)[numbers].mean().reset_index()
    smooth, sup = (means[means["loss"] == name] for name in (TRAINED, "sup_ap"))
    steps = data[data["loss"] == TRAINED]
    per_step = steps.pivot_table(index=["seed", "step"], columns="width", values="error")
    always = float((per_step.diff(axis=1).iloc[:, 1:] > 0).all(axis=1).mean())
    headers = ["loss", "smoothing", "width (cosine)", "mean |AP_pred - AP|", "mean AP_pred - AP"]
    headers.append("share of queries with AP_pred > AP")
    rows = [("", [loss_name(loss), *rest]) for loss, *rest in means.itertuples(index=False)]
    values = {
        "runs": runs,
        "errors": listed(smooth["error"], ".4f"),
        "taus": listed(smooth["width"]),
        "always": 100 * always,
        "over": 100 * sup["over"].max(),
        "signed": listed(sup["signed"], "+.4f"),
        "low": means["error"].min(),
        "high": means["error"].max(),
    }
    claims = {
        "smaller_tau_is_tighter": rising(smooth["error"]),
        "sup_ap_is_an_upper_bound": bool(sup["over"].max() == 0),
    }
    figure = _draw(steps, means)
    return worded("approximation_error", figure, data, headers, rows, values, claims)


def _panels(along: str, over: str, width: str) -> tuple[Any, Any, Any]:
    """Return a figure and its panels of the error: by step, and by width of the smoothing."""
    figure, ((left, right),) = new_figure(DOUBLE, 3.0, 1, 2)
    left.set(title=along, xlabel="step of the last epoch", yscale="log")
    left.set_ylabel("|AP_pred - AP|, mean over queries")
    right.set(title=over, xlabel=width, xscale="log", yscale="log")
    right.xaxis.set_major_formatter("{x:g}")
    return figure, left, right


def _draw(steps: pd.DataFrame, means: pd.DataFrame) -> Any:
    smooth = steps.groupby(["width", "step"])["error"].mean()
    titles = ("SmoothAP along the epoch", "Mean over the epoch, every AP loss")
    with styled():
        figure, left, right = _panels(*titles, "width of the smoothing (cosine)")
        beside = {"textcoords": "offset points"}
        for tone, tau in zip(shades(STYLES[TRAINED].colour, len(TAUS)), TAUS, strict=True):
            curve = smooth.loc[tau]
            left.plot(curve, color=tone)
            end = (curve.index[-1], curve.iloc[-1])
            left.annotate(f"{tau:g}", end, xytext=(4, 0), va="center", **beside)
        left.annotate("tau", (1, 1), xycoords="axes fraction", xytext=(4, 2), ha="left", **beside)
        for name in SETTINGS:
            points = means[means["loss"] == name].sort_values("width")
            right.plot(points["width"], points["error"], label=loss_name(name), **line(name))
        legend_below(figure, columns=5)
    return figure


@ANALYSES.register("trained_tau", display=TAU_TITLE, places=PLACES)
def trained_tau(context: Context) -> Analysis:
    """Return |AP_pred - AP| over the last epoch of a SmoothAP training at each tau."""
    size = context.block.batch_sizes[-1]
    parts = []
    for tau in TAUS:
        for seed in context.seeds:
            steps = context.trained(TRAINED, size, seed, tau=tau).steps()
            parts.append(errors_of(steps, [TRAINED]).assign(trained=tau, seed=seed))
    data = pd.concat(parts, ignore_index=True)
    means = data.pivot_table(index="trained", columns="width", values="error")
    own = data[data["trained"] == data["width"]]  # evaluated at the tau of the training
    by_seed = own.pivot_table(index="seed", columns="trained", values="error").to_numpy()
    diagonal = means.to_numpy().diagonal().tolist()
    headers = ["trained at tau", *(("evaluated at tau", f"{tau:g}") for tau in TAUS)]
    along = own.groupby(["trained", "step"])["error"].mean()
    values = {
        "runs": f"{context.description}, batch size {size}",
        "errors": listed(diagonal, ".4f"),
        "taus": listed(TAUS),
        "always": sum(map(rising, by_seed)),
        "seeds": len(by_seed),
        "lines": ", ".join(f"{along.loc[tau].mean():.2g} at {tau:g}" for tau in TAUS),
    }
    claims = {"smaller_tau_is_tighter_in_its_own_training": rising(diagonal)}
    rows = [("", row) for row in means.itertuples()]
    return worded("trained_tau", _draw_taus(along, means), data, headers, rows, values, claims)


def _draw_taus(along: pd.Series, means: pd.DataFrame) -> Any:
    titles = ("At the tau of the training", "Mean over the epoch, at every tau")
    with styled():
        figure, left, right = _panels(*titles, "tau of the evaluation (cosine)")
        tones = shades(STYLES[TRAINED].colour, len(TAUS))
        for tau, tone, marker in zip(TAUS, tones, "osD^v", strict=True):
            curve, row = along.loc[tau], means.loc[tau]
            look = {"color": tone, "marker": marker, "markersize": 4}
            sparse = {"markevery": max(1, len(curve) // 8)}
            left.plot(curve, label=f"trained at tau = {tau:g}", **look, **sparse)
            right.plot(row, markerfacecolor="none", **look)
            right.plot([tau], [row[tau]], linestyle="none", **look)
        legend_below(figure, columns=3)
    return figure
