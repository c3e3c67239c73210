"""How close SmoothAP's AP is to the AP in networks that were trained with it, one for each tau."""

import pandas as pd

from benchmark.analyses import ANALYSES
from benchmark.analyses.analysis import Analysis, cells, finding, listed, numeric, rising, shades
from benchmark.analyses.approximation_error import TAUS, TRAINED, errors_of
from benchmark.analyses.context import Context
from benchmark.report.drawing.drawing import Drawing, legend_below, new_figure
from benchmark.report.drawing.style import DOUBLE, STYLES, styled
from benchmark.report.records import Finding
from benchmark.report.render.table import Section, Table

TITLE = "AP approximation error, one training for each tau"
MARKERS = "osD^v"


@ANALYSES.register("trained_tau", display=TITLE, places=("Smooth-AP Eq. 8", "Smooth-AP Fig. 4"))
def build(context: Context) -> Analysis:
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
    return Analysis(_draw(data, means, runs), _table(means, runs), [_claim(data, means)])


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


def _table(means: pd.DataFrame, runs: str) -> Table:
    columns = [numeric("trained at tau"), *(numeric("evaluated at tau", f"{t:g}") for t in TAUS)]
    rows = [cells(tau, *row) for tau, row in zip(TAUS, means.to_numpy().tolist(), strict=True)]
    caption = (
        f"Mean |AP_pred - AP| of SmoothAP over the last epoch ({runs}): the tau of the training by "
        "row, that of the evaluation by column. On the diagonal both are the same."
    )
    return Table(TITLE, caption, columns, [Section("", rows)])


def _draw(data: pd.DataFrame, means: pd.DataFrame, runs: str) -> Drawing:
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
    return Drawing(TITLE, caption, alt, figure, data)
