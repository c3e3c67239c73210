"""What a budget of trials buys on the test classes: scores with intervals against the budget."""

from __future__ import annotations

from benchmark.report.drawing.budget_panels import draw_budgets
from benchmark.report.drawing.drawing import Drawing
from benchmark.report.figures import FIGURES
from benchmark.report.inputs import Inputs
from benchmark.report.labels import confidence, metric_label

TITLE = "Scores against the budget of trials"


@FIGURES.register("score_by_budget", display=TITLE, of_trials=True)
def build(inputs: Inputs) -> Drawing:
    """Return a row of panels per dataset, one for each kind of loss."""
    ranks = inputs.budget("budget_ranks")
    metric = metric_label(inputs.headline)
    figure, losses = draw_budgets(inputs, ranks, f"test {metric} (%)", bars=True)
    caption = (
        f"Test {metric} of the setting that is best after so many trials: mean and "
        f"{confidence(inputs.study)} t interval over fresh seeds. “A” is the setting as published, "
        "which no trial chose. Losses stand in three panels by what they compare, on one scale."
    )
    top = ranks[ranks["trials"] == ranks["trials"].max()].sort_values("mean").iloc[-1]
    alt = (
        f"Lines of {losses} losses over the number of trials; the best at the largest budget "
        f"reaches {100 * top['mean']:.1f} percent."
    )
    return Drawing(TITLE, caption, alt, figure, ranks)
