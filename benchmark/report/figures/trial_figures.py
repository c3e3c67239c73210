"""Losses by the number of trials that chose their setting."""

from typing import Any

import pandas as pd

from benchmark.losses.catalogue import load_catalogue
from benchmark.report.drawing import DOUBLE, INK, MOVED, Drawing, bars, dodge, new_figure, styled
from benchmark.report.figures import FIGURES
from benchmark.report.figures.panels import ENDS, in_percent, loss_line
from benchmark.report.labels import dataset_label, metric_label
from benchmark.report.study_results import StudyResults, rows_of
from benchmark.report.table import NothingToShow

KINDS = {"ranking": "ranking losses", "pair": "pairs and triplets", "proxy": "proxies"}
PLACE = ["dataset", "setting", "batch_size"]


def _trial_panels(
    inputs: StudyResults, table: pd.DataFrame, label: str, *, categories: bool
) -> Any:
    """Return a row of panels per dataset, one for each kind of loss, and the scores by trials.

    The numbers of trials are ``categories`` with bars, or an axis with curves and bands.
    """
    kinds = {name: facts.kind for name, facts in load_catalogue().items()}
    kind_of = {
        loss: kinds.get(inputs.base_losses.get(loss, loss), "pair") for loss in table["loss"]
    }
    shown = [kind for kind in KINDS if kind in kind_of.values()]
    # A challenger has the colour of the text, which no loss of the field has.
    challenger = inputs.study.comparison.baseline if inputs.study.references.field else None
    places = in_percent(table.rename(columns=ENDS)).groupby(PLACE, sort=False)
    figure, grid = new_figure(DOUBLE, 3.6 * len(places), len(places), len(shown), sharey="row")
    for row, (place, here) in zip(grid, places, strict=True):
        trials = sorted(here["trials"].unique())
        for axes, kind in zip(row, shown, strict=True):
            losses = [loss for loss in inputs.losses(here["loss"]) if kind_of[loss] == kind]
            for loss, offset in zip(losses, dodge(len(losses), 0.4), strict=True):
                points = rows_of(here, loss=loss)
                style = loss_line(inputs, loss)
                if loss == challenger:
                    style |= {"color": INK, "markerfacecolor": INK, "markeredgecolor": INK}
                points = points.sort_values("trials")
                if not categories:
                    axes.plot(points["trials"], points["mean"], **style | {"marker": ""})
                    band = {"color": style["color"], "alpha": 0.12, "linewidth": 0}
                    axes.fill_between(points["trials"], points["low"], points["high"], **band)
                    continue
                chosen = points["trials"] > 0
                # no line leads from the published setting, which no trial chose
                for part, name in ((points[chosen], style.pop("label")), (points[~chosen], None)):
                    at = [trials.index(each) + offset for each in part["trials"]]
                    axes.errorbar(at, part["mean"], yerr=bars(part), **style, label=name)
            if categories:
                axes.set_xticks(range(len(trials)), [str(each) if each else "A" for each in trials])
                axes.grid(axis="x", visible=False)
            else:
                axes.set_xscale("log", base=2)
                ticks = [each for each in (1, 2, 4, 8, 16, 32, 64) if each <= max(trials)]
                axes.set_xticks(ticks, [str(each) for each in ticks])
            axes.set(title=KINDS[kind], xlabel="trials")
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22))
        row[0].set_ylabel(f"{dataset_label(str(place[0]))}\n{label}")
    return figure


@FIGURES.register(
    "expected_best", display="Expected best score against the number of trials", of_trials=True
)
@styled()
def expected_best(inputs: StudyResults) -> Drawing:
    """Return a row of panels per dataset, one for each kind of loss."""
    curves = inputs.some("budget_curves")
    metric = metric_label(inputs.headline)
    if curves["trials"].max() < 2:
        raise NothingToShow("one trial makes no curve over the number of trials")
    figure = _trial_panels(inputs, curves, f"held-out {metric} (%)", categories=False)
    caption = (
        f"Expected best {metric} on held-out training classes of so many trials drawn without "
        f"replacement from those made, with a {inputs.confidence} bootstrap band over "
        "trials and folds. These scores chose the settings; they are no test scores."
    )
    losses = curves["loss"].nunique()
    most = curves["trials"].max()
    alt = f"Rising curves with bands for {losses} losses over 1 to {most} trials."
    return Drawing(caption, alt, figure, curves)


@FIGURES.register("score_by_budget", display="Scores against the budget of trials", of_trials=True)
@styled()
def score_by_budget(inputs: StudyResults) -> Drawing:
    """Return a row of panels per dataset, one for each kind of loss."""
    ranks = inputs.some("budget_ranks")
    metric = metric_label(inputs.headline)
    figure = _trial_panels(inputs, ranks, f"test {metric} (%)", categories=True)
    caption = (
        f"Test {metric} of the setting that is best after so many trials: mean and "
        f"{inputs.confidence} t interval over fresh seeds. “A” is the setting as published, "
        "which no trial chose. Losses stand in three panels by what they compare, on one scale. "
        f"{MOVED}"
    )
    top = ranks[ranks["trials"] == ranks["trials"].max()].sort_values("mean").iloc[-1]
    alt = (
        f"Lines of {ranks['loss'].nunique()} losses over the number of trials; the best at the "
        f"largest budget reaches {100 * top['mean']:.1f} percent."
    )
    return Drawing(caption, alt, figure, ranks)
