"""Every reason for caution that a reader must know before the tables."""

import pandas as pd

from benchmark.papers.verdicts import NOT_RUN
from benchmark.report.inputs import Inputs
from benchmark.report.labels import dataset_name, loss_label, metric_label
from benchmark.report.numbers import count, listed

SHOWN = 12  # changes of the analysis that are named
UNFINISHED = ("missing", "failed", "stale")


def notices(inputs: Inputs) -> list[str]:
    """Return the reasons, the gravest first; none when the study is complete and uniform."""
    runs = inputs.runs
    if runs.empty:
        first = [
            "No run is recorded for this study: its grid is empty, or nothing was collected yet."
        ]
    else:
        first = _unfinished(inputs, runs)
    finished = runs[runs["status"] == "ok"]
    found = [*first, *_without_metric(inputs, finished)]
    seeds = finished.groupby(["dataset", "setting", "loss", "batch_size"])["seed"].nunique()
    if len(seeds) and seeds.max() == 1:
        found.append(
            "One seed only: there is no spread, no interval and no test, so no difference can be "
            "judged."
        )
    recorded = [*inputs.provenance.get("errors", []), *inputs.provenance.get("warnings", [])]
    found += [f"{text[:1].upper()}{text[1:]}." for text in recorded]
    if not recorded:
        for column, what in (("code_version", "code versions"), ("platform", "platforms")):
            versions = sorted({str(value) for value in finished[column] if value})
            if len(versions) > 1:
                found.append(f"Runs of different {what}: {', '.join(versions)}.")
    return found + _stand_in(inputs) + _interim(inputs) + _changed(inputs)


def _unfinished(inputs: Inputs, runs: pd.DataFrame) -> list[str]:
    found = []
    if unfinished := int(runs["status"].isin(UNFINISHED).sum()):
        found.append(
            f"Partial results: {unfinished} of {count(len(runs), 'run')} have no usable result. "
            "Means, tests and figures use the finished runs only and can change."
        )
    if diverged := int((runs["status"] == "diverged").sum()):
        found.append(
            f"{count(diverged, 'run')} diverged. They are results, listed below, and enter no mean."
        )
    if diverging := sorted(inputs.diverging):
        names = [
            f"{loss_label(loss, inputs.study)} ({dataset_name(dataset)}, batch size {size})"
            for dataset, _, size, loss in diverging
        ]
        found.append(
            f"Losses that diverge in significantly more than one run of ten: {listed(names)}. They "
            "lose their comparisons, whatever their other runs score."
        )
    return found


def _without_metric(inputs: Inputs, finished: pd.DataFrame) -> list[str]:
    """Return a line for each metric of the study that some finished runs lack.

    A dataset and setting may give none of a metric, as a block of a study may ask for fewer.
    """
    cell = ["dataset", "setting"]
    runs = finished.groupby(cell)["run_id"].nunique()
    found = []
    for metric in inputs.study.metrics if len(finished) else ():
        scores = inputs.scores[inputs.scores["metric"] == metric]
        having = scores.groupby(cell)["run_id"].nunique()
        if having.empty:
            found.append(f"No finished run has {metric_label(metric)}, which the study needs.")
        elif lacking := int((runs.reindex(having.index) - having).sum()):
            found.append(
                f"{count(lacking, 'finished run')} without a value of {metric_label(metric)}: its "
                "means, tests and figures are those of the others."
            )
    return found


def _interim(inputs: Inputs) -> list[str]:
    number = 0 if inputs.verdicts.empty else int(inputs.verdicts["interim"].sum())
    words = "Interim: not all seeds of this look have ended, so nothing is final for"
    return [f"{words} {count(number, 'reference number')}."] if number else []


def _changed(inputs: Inputs) -> list[str]:
    """Return what has changed since the analysis was registered."""
    state = inputs.registered
    if state is None or not state.changes:
        return []
    shown = [*state.changes[:SHOWN], *["and more"] * (len(state.changes) > SHOWN)]
    return [f"{state.words} {'; '.join(shown)}."]


def _stand_in(inputs: Inputs) -> list[str]:
    """Return a note where no published number was measured under its own conditions."""
    verdicts = inputs.verdicts
    published = verdicts if verdicts.empty else verdicts[verdicts["source"] != "frozen"]
    if published.empty or not (published["verdict"] == NOT_RUN).all():
        return []
    datasets = [dataset_name(label) for label in sorted(inputs.runs["dataset"].unique())]
    return [
        "Stand-in data: none of the published numbers was measured here, because their datasets "
        f"were not run. What {listed(datasets) if datasets else 'this study'} shows answers the "
        "same questions on other data and is no reproduction."
    ]
