"""Scores against the number of trials: a row of panels per dataset, a column per kind of loss."""

from typing import Any

import pandas as pd

from benchmark.losses.catalogue import load_catalogue
from benchmark.report.drawing import (
    DOUBLE,
    Drawing,
    dodge,
    errorbars,
    loss_line,
    new_figure,
    rows_of,
    styled,
)
from benchmark.report.figures import FIGURES
from benchmark.report.inputs import Inputs
from benchmark.report.labels import confidence, dataset_label, loss_order, metric_label

KINDS = {"ranking": "ranking losses", "pair": "pairs and triplets", "proxy": "proxies"}
WHERE = ["dataset", "setting", "batch_size"]
EXPECTED_BEST = "Expected best score against the number of trials"
SCORE_BY_BUDGET = "Scores against the budget of trials"


def _panels(inputs: Inputs, table: pd.DataFrame, label: str, *, bars: bool) -> Any:
    """Return the figure of ``table``; with ``bars`` the numbers of trials are categories."""
    kinds = {name: facts.kind for name, facts in load_catalogue().items()}
    kind_of = {
        loss: kinds.get(inputs.base_losses.get(loss, loss), "pair") for loss in table["loss"]
    }
    shown = [kind for kind in KINDS if kind in kind_of.values()]
    places = list(table[WHERE].drop_duplicates().itertuples(index=False, name=None))
    scaled = table.rename(columns={"ci_low": "low", "ci_high": "high"})
    scaled[["mean", "low", "high"]] *= 100
    draw = _draw_bars if bars else _draw_bands
    with styled():
        figure, grid = new_figure(DOUBLE, 3.6 * len(places), len(places), len(shown), sharey="row")
        for row, place in zip(grid, places, strict=True):
            here = rows_of(scaled, **dict(zip(WHERE, place, strict=True)))
            for axes, kind in zip(row, shown, strict=True):
                losses = [loss for loss in here["loss"].unique() if kind_of[loss] == kind]
                draw(axes, here, loss_order(losses, inputs.study), inputs)
                axes.set_title(KINDS[kind])
                axes.set_xlabel("trials")
                axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22))
            row[0].set_ylabel(f"{dataset_label(place[0])}\n{label}")
    return figure


def _draw_bars(axes: Any, table: pd.DataFrame, losses: list[str], inputs: Inputs) -> None:
    budgets = sorted(table["trials"].unique())
    for loss, offset in zip(losses, dodge(len(losses), 0.4), strict=True):
        points = rows_of(table, loss=loss).sort_values("trials")
        chosen = points["trials"] > 0
        style = loss_line(inputs, loss)
        # no line leads from the published setting, which no trial chose
        for part, label in ((points[chosen], style.pop("label")), (points[~chosen], None)):
            places = [budgets.index(trials) + offset for trials in part["trials"]]
            errorbars(axes, places, part, style, label=label)
    axes.set_xticks(range(len(budgets)), [str(each) if each else "A" for each in budgets])
    axes.grid(axis="x", visible=False)


def _draw_bands(axes: Any, table: pd.DataFrame, losses: list[str], inputs: Inputs) -> None:
    for loss in losses:
        points = rows_of(table, loss=loss).sort_values("trials")
        style = loss_line(inputs, loss, marker="")
        axes.plot(points["trials"], points["mean"], **style)
        band = {"color": style["color"], "alpha": 0.12, "linewidth": 0}
        axes.fill_between(points["trials"], points["low"], points["high"], **band)
    axes.set_xscale("log", base=2)
    ticks = [each for each in (1, 2, 4, 8, 16, 32, 64) if each <= table["trials"].max()]
    axes.set_xticks(ticks, [str(each) for each in ticks])


@FIGURES.register("expected_best", display=EXPECTED_BEST, of_trials=True)
def expected_best(inputs: Inputs) -> Drawing:
    """Return a row of panels per dataset, one for each kind of loss."""
    curves = inputs.some("budget_curves")
    metric = metric_label(inputs.headline)
    figure = _panels(inputs, curves, f"held-out {metric} (%)", bars=False)
    caption = (
        f"Expected best {metric} on held-out training classes of so many trials drawn without "
        f"replacement from those made, with a {confidence(inputs.study)} bootstrap band over "
        "trials and folds. These scores chose the settings; they are no test scores."
    )
    losses, most = curves["loss"].nunique(), curves["trials"].max()
    alt = f"Rising curves with bands for {losses} losses over 1 to {most} trials."
    return Drawing(EXPECTED_BEST, caption, alt, figure, curves)


@FIGURES.register("score_by_budget", display=SCORE_BY_BUDGET, of_trials=True)
def score_by_budget(inputs: Inputs) -> Drawing:
    """Return a row of panels per dataset, one for each kind of loss."""
    ranks = inputs.some("budget_ranks")
    metric = metric_label(inputs.headline)
    figure = _panels(inputs, ranks, f"test {metric} (%)", bars=True)
    caption = (
        f"Test {metric} of the setting that is best after so many trials: mean and "
        f"{confidence(inputs.study)} t interval over fresh seeds. “A” is the setting as published, "
        "which no trial chose. Losses stand in three panels by what they compare, on one scale."
    )
    top = ranks[ranks["trials"] == ranks["trials"].max()].sort_values("mean").iloc[-1]
    alt = (
        f"Lines of {ranks['loss'].nunique()} losses over the number of trials; the best at the "
        f"largest budget reaches {100 * top['mean']:.1f} percent."
    )
    return Drawing(SCORE_BY_BUDGET, caption, alt, figure, ranks)
