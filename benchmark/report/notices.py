"""Reasons for caution, which stand beside the answer."""

from collections.abc import Iterator

from benchmark.core.code_version import mixed
from benchmark.core.options import options_of
from benchmark.core.words import count, listed
from benchmark.losses.catalogue import load_catalogue
from benchmark.report.labels import dataset_name, metric_label
from benchmark.report.study_results import DIVERGENCE_CELL, StudyResults, rows_of
from benchmark.report.tally import UNFINISHED, published_of
from benchmark.verdicts.verdicts import NOT_RUN

SHOWN = 12  # changes of the analysis that are named


def notices(inputs: StudyResults) -> list[str]:
    """Return every reason for caution, the gravest first; none for a complete, uniform study."""
    finished = rows_of(inputs.runs, status="ok")
    found = []
    if inputs.made_up:
        found.append(
            f"Made up: nothing was trained for {inputs.made_up} of {count(len(inputs.runs), 'run')}"
            ", whose scores were drawn. Nothing on this page says anything of a loss or a paper."
        )
    found += _unfinished(inputs)
    # a whole dataset and setting may lack a metric
    cell = ["dataset", "setting"]
    runs = finished.groupby(cell)["run_id"].nunique()
    for metric in inputs.study.metrics if len(finished) else ():
        having = rows_of(inputs.scores, metric=metric).groupby(cell)["run_id"].nunique()
        if having.empty:
            found.append(f"No finished run has {metric_label(metric)}, which the study needs.")
        elif lacking := (runs.reindex(having.index) - having).sum():
            found.append(
                f"{count(lacking, 'finished run')} without a value of {metric_label(metric)}: its "
                "means, tests and figures are those of the others."
            )
    seeds = finished.groupby([*DIVERGENCE_CELL])["seed"].nunique()
    if len(seeds) and seeds.max() == 1:
        found.append(
            "One seed only: there is no spread, no interval and no test, so no difference can be "
            "judged."
        )
    for label, data in inputs.provenance.get("datasets", {}).items():
        if which := data.get("which_counts"):
            found.append(f"{dataset_name(label)}: {which}.")
    recorded = [*inputs.provenance.get("errors", []), *inputs.provenance.get("warnings", [])]
    found += [f"{text[:1].upper()}{text[1:]}." for text in recorded]
    if not recorded:
        parts = {"code_version": "code versions", "platform": "platforms", "kernels": "kernels"}
        for column, what in parts.items():
            versions = sorted({str(value) for value in finished[column] if value})
            if mixed(versions):
                found.append(f"Runs of different {what}: {', '.join(versions)}.")
    return [*found, *_challenger(inputs), *_of_references(inputs)]


def _challenger(inputs: StudyResults) -> Iterator[str]:
    """Say of a challenger without ranges what its trials vary."""
    challenger = inputs.study.losses.get(inputs.study.comparison.baseline or "")
    if not inputs.study.references.field or challenger is None:
        return
    config = load_catalogue()[challenger.name].config
    if not any("search" in item.metadata for item in options_of(config).values()):
        yield (
            f"{inputs.label(challenger.label)} declares no 'search': its trials vary the learning "
            "rate, the weight decay and the images of each class, and none of its own options."
        )


def _unfinished(inputs: StudyResults) -> Iterator[str]:
    runs = inputs.runs
    if runs.empty:
        yield "No run is recorded for this study: its grid is empty, or nothing was collected yet."
        return
    if unfinished := runs["status"].isin(UNFINISHED).sum():
        yield (
            f"Partial results: {unfinished} of {count(len(runs), 'run')} have no usable result. "
            "Means, tests and figures use the finished runs only and can change."
        )
    if diverged := (runs["status"] == "diverged").sum():
        number = count(diverged, "run")
        yield f"{number} diverged. They are results, listed below, and enter no mean."
    if diverging := sorted(inputs.diverging):
        names = [
            f"{inputs.label(loss)} ({dataset_name(dataset)}, batch size {size})"
            for dataset, _, size, loss in diverging
        ]
        yield (
            f"Losses that diverge in significantly more than one run of ten: {listed(names)}. They "
            "lose their comparisons, whatever their other runs score."
        )


def _of_references(inputs: StudyResults) -> Iterator[str]:
    """Yield notes where no number was measured as published, and on looks and changes."""
    verdicts = inputs.verdicts
    state = inputs.registered
    published = published_of(verdicts)
    if len(published) and (published["verdict"] == NOT_RUN).all():
        datasets = [dataset_name(label) for label in sorted(inputs.runs["dataset"].unique())]
        yield (
            "Stand-in data: none of the published numbers was measured here, because their "
            f"datasets were not run. What {listed(datasets) if datasets else 'this study'} shows "
            "answers the same questions on other data and is no reproduction."
        )
    if not verdicts.empty and verdicts["interim"].any():
        number = count(int(verdicts["interim"].sum()), "reference number")
        yield f"Interim: not all seeds of this look have ended, so nothing is final for {number}."
    if state and state.changes:
        shown = [*state.changes[:SHOWN]]
        if len(state.changes) > SHOWN:
            shown.append("and more")
        yield f"{state.words} {'; '.join(shown)}."
