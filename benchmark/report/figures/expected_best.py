"""The expected best score on held-out training classes against the number of trials."""

from __future__ import annotations

from benchmark.report.drawing.budget_panels import draw_budgets
from benchmark.report.drawing.drawing import Drawing
from benchmark.report.figures import FIGURES
from benchmark.report.inputs import Inputs
from benchmark.report.labels import confidence, metric_label

TITLE = "Expected best score against the number of trials"


@FIGURES.register("expected_best", display=TITLE, of_trials=True)
def build(inputs: Inputs) -> Drawing:
    """Return a row of panels per dataset, one for each kind of loss."""
    curves = inputs.budget("budget_curves")
    metric = metric_label(inputs.headline)
    figure, losses = draw_budgets(inputs, curves, f"held-out {metric} (%)", bars=False)
    caption = (
        f"Expected best {metric} on held-out training classes of so many trials drawn without "
        f"replacement from those made, with a {confidence(inputs.study)} bootstrap band over "
        "trials and folds. These scores chose the settings; they are no test scores."
    )
    alt = f"Rising curves with bands for {losses} losses over 1 to {curves['trials'].max()} trials."
    return Drawing(TITLE, caption, alt, figure, curves)
