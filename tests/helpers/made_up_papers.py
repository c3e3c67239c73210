"""A made-up study of one paper: its data sets, losses and sweeps with scores near the published
ones."""

from __future__ import annotations

import pandas as pd
from made_up_inputs import inputs_of
from made_up_records import made_up_recipe
from made_up_results import made_up_block, made_up_runs, made_up_study

from benchmark.core.options import defaults_of
from benchmark.losses.catalogue import load_catalogue
from benchmark.papers.paper import paper_of
from benchmark.report.inputs import Inputs
from benchmark.study.model import Comparison, References, Variant

DATASETS = ("cub", "sop", "inaturalist")
COMPARED = ("fast_ap", "softbin_ap", "blackbox_ap", "smooth_ap", "sup_ap", "roadmap")
ABLATION = ("smooth_ap", "sup_ap", "roadmap")
RECIPE = made_up_recipe("resnet50.tv_in1k", 512)


def variant(label: str, name: str | None = None, **params) -> Variant:
    """Returns a loss with all its hyperparameters, of which ``params`` are the study's own."""
    name = name or label
    return Variant(
        label, name, {**defaults_of(load_catalogue()[name].config), **params}, tuple(params)
    )


def roadmap_study(seeds=(0, 1, 2), sizes=(32, 64, 128, 224, 384), datasets=DATASETS):
    """Returns a study of ROADMAP's tables 1, 3 and 6 and figures 4 and 13."""
    sweeps = [
        variant(f"roadmap_lambda_{value}", "roadmap", lambda_=value) for value in (0.0, 0.2, 0.8)
    ]
    slopes = [variant(f"sup_ap_rho_{value}", "sup_ap", rho=value) for value in (1.0, 10.0, 1000.0)]

    def block(name, names, losses, batch_sizes):
        return made_up_block(
            tuple(losses),
            batch_sizes,
            seeds,
            name=name,
            setting="resnet50",
            datasets=names,
            recipe=RECIPE,
        )

    return made_up_study(
        name="roadmap",
        title="ROADMAP and five other losses",
        seeds=seeds,
        blocks=(
            block("table1", datasets, map(variant, COMPARED), sizes[1:3]),
            block("table6", datasets, map(variant, ABLATION), sizes),
            block("figure4", datasets[-1:], [*sweeps, *slopes], (224,)),
        ),
        metrics=("recall_at_1", "map_at_r"),
        comparison=Comparison("smooth_ap", ABLATION, 0.05),
        references=References(("roadmap2021v2",), None),
    )


def paper_inputs(study, **options) -> Inputs:
    """Return the inputs of ``study`` with made-up runs (``options`` as made_up_runs takes them)."""
    runs = near_published(made_up_runs(study, **options), "roadmap2021v2")
    return inputs_of(study, runs, study.references.published)


def near_published(runs: pd.DataFrame, paper: str) -> pd.DataFrame:
    """Returns ``runs`` with each loss's scores on each data set moved near a value that the paper
    prints for it."""
    table1 = paper_of(paper).table("table1")
    level = {(each.dataset, each.loss, each.metric): each.points / 100 for each in table1}
    runs = runs.copy()
    keys = ["dataset", "base_loss", "metric"]
    ends = runs[runs["selection"] == "last"].groupby(keys)["value"].mean()
    shift = {key: level[key] - end for key, end in ends.items() if key in level}
    moved = runs[keys].apply(tuple, axis=1).map(shift).fillna(0.0)
    runs["value"] = (runs["value"] + moved).where(
        runs["selection"] == "cost", (runs["value"] + moved).clip(0, 1)
    )
    return runs
