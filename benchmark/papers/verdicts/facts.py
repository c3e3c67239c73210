"""What a study knows about its settings that matching published rows needs."""

from __future__ import annotations

from typing import Any

from benchmark.core.options import defaults_of, schema_of
from benchmark.datasets import DATASETS
from benchmark.study import Study
from benchmark.study.model import Block, DatasetChoice

# The papers' names of architectures, where they are not timm's.
BACKBONES = {"deit_small_distilled_patch16_224": "deit_s"}
# Widths of the networks that the papers use without a head.
WIDTHS = {"resnet18": 512, "resnet50": 2048, "resnet101": 2048, "deit_s": 384}
# Samplers that draw what the papers call hard batches.
HARD_SAMPLERS = ("category_pairs", "category_and_rest")


def study_facts(study: Study) -> dict[tuple[str, str], dict[str, Any]]:
    """Returns what is known of each (dataset label, setting):

    ``backbone``       in the papers' words
    ``embedding_dim``  of the head, or of a known network without one; absent when unknown
    ``conditions``     facts a row may state or mean: p (images of a class in a batch), sampling, training
    ``evaluates``      datasets that protocols are named after, where they are not the training set (landmarks)
    ``recall_at``      the K that are measured
    """
    return {
        (dataset.label, block.setting.label): _facts(block, dataset)
        for block in study.blocks
        for dataset in block.datasets
    }


def _facts(block: Block, dataset: DatasetChoice) -> dict[str, Any]:
    model, sampler = block.recipe.model, block.recipe.sampler
    facts: dict[str, Any] = {"conditions": {"training": dataset.name}}
    architecture = model.backbone.partition(".")[0]
    if architecture:
        facts["backbone"] = BACKBONES.get(architecture, architecture)
    dim = model.embedding_dim or WIDTHS.get(facts.get("backbone"))
    if dim is not None:
        facts["embedding_dim"] = dim
    if "samples_per_class" in sampler.params:
        facts["conditions"]["p"] = str(sampler.params["samples_per_class"])
    if sampler.name in HARD_SAMPLERS:
        facts["conditions"]["sampling"] = "hard"
    facts["evaluates"] = tuple(_landmarks(dataset))
    facts["recall_at"] = tuple(block.recipe.evaluation.recall_at)
    return facts


def _landmarks(dataset: DatasetChoice) -> list[str]:
    if dataset.name not in DATASETS.names():
        return []
    defaults = defaults_of(schema_of(DATASETS[dataset.name].target.Config))
    return {**defaults, **dataset.params}.get("landmarks", [])
