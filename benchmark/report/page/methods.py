"""How every number was made, in words that follow from the study itself."""

from __future__ import annotations

from typing import Any

import pandas as pd

from benchmark.metrics.names import metric_of
from benchmark.papers.verdicts.vocabulary import VERDICTS
from benchmark.report.tables.inputs import Inputs
from benchmark.report.tables.labels import confidence, loss_label, metric_label


def methods(inputs: Inputs) -> list[tuple[str, str]]:
    """Returns (term, explanation) pairs for the last section of the page."""
    study = inputs.study
    found = [(metric_label(name), _metric(name)) for name in study.metrics]
    found += [
        (
            "Selection rule",
            "The headline number of a run is its test score after the last epoch. The best test epoch is stored "
            "beside it and appears only where it is named.",
        ),
        (
            "Seeds and pairs",
            "Runs with the same seed share data split, initial weights, order of batches and augmentation, whatever "
            "the loss, so losses are compared seed by seed with a two-sided paired t-test.",
        ),
        (
            "Correction",
            f"p values are corrected by Holm's method at level {study.comparison.alpha:g}; a family is all tests of "
            "one kind on one dataset, split and metric, over settings and batch sizes. Families and sizes stand "
            "under each table.",
        ),
        (
            "Intervals",
            f"{confidence(study)} Student-t intervals over seeds. Standard deviations divide by n − 1.",
        ),
        (
            "Effect size and detectable difference",
            "Cohen's d_z is the mean difference over the standard deviation of the differences. The detectable "
            "difference is the smallest true one that the test would find with probability 0.8.",
        ),
        ("Verdicts", _verdicts(inputs.stats["verdicts"])),
        ("Baseline and ablation", _comparison(study)),
    ]
    return found


def _metric(name: str) -> str:
    metric = metric_of(name)
    if metric is None:
        return f"{name}, as the evaluation returned it."
    text = metric.description[0].upper() + metric.description[1:]
    return (
        f"{text}; mean over queries, in percent. The query itself is taken out of the ranking by its index; equal "
        "scores are ranked by index."
    )


def _verdicts(verdicts: pd.DataFrame) -> str:
    words = "; ".join(f"{name.replace('_', ' ')}: {meaning}" for name, meaning in VERDICTS.items())
    text = (
        f"The difference is ours minus the reference, and its standard error counts both sides. {words[0].upper()}"
        f"{words[1:]}. A reference that states no number of runs counts as one draw with our own spread."
    )
    if "margin" in verdicts and verdicts["margin"].notna().any():
        margins = ", ".join(f"{value:g}" for value in sorted(verdicts["margin"].dropna().unique()))
        text += f" Margins in use: {margins} percentage points."
    return text


def _comparison(study: Any) -> str:
    names = [loss_label(label, study) for label in study.comparison.ablation]
    text = (
        f"The baseline is {loss_label(study.comparison.baseline, study)}."
        if study.comparison.baseline
        else ""
    )
    return (
        f"{text} The ablation goes {' → '.join(names)}.".strip()
        if len(names) > 1
        else text or "None is set."
    )
