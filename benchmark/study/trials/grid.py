"""From a study with rules to its trials: folds for datasets, a block for each loss and setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmark.core.errors import ConfigError, unknown_name
from benchmark.study.documents import Document
from benchmark.study.format import Rules
from benchmark.study.known import Known
from benchmark.study.model import Block, DatasetChoice, Trials
from benchmark.study.stand_in import stand_in_name
from benchmark.study.trials.space import knobs, trial_blocks

VIEW = "class_folds"
FOLD = ".fold"  # between the label of a dataset and the number of its fold


def with_trials(blocks: Sequence[Block], rules: Rules, known: Known) -> tuple[list[Block], Trials]:
    """Return the blocks of all trials, and the rules with the blocks as they were written."""
    found = []
    for block in blocks:
        datasets = tuple(
            fold_of(dataset, fold, rules.folds)
            for dataset in block.datasets
            for fold in range(rules.folds)
        )
        for loss in block.losses:
            varied = knobs(block, loss, known.losses[loss.name])
            each = trial_blocks(replace(block, datasets=datasets), loss, varied, max(rules.trials))
            found += each
    taken = {seed for block in blocks for seed in block.seeds}
    fresh = [seed for seed in range(len(taken) + rules.final_seeds) if seed not in taken]
    seeds = tuple(fresh[: rules.final_seeds])
    budgets = tuple(sorted(rules.trials))
    return found, Trials(budgets, rules.folds, seeds, tuple(blocks))


def fold_of(dataset: DatasetChoice, fold: int, folds: int) -> DatasetChoice:
    """Return the view of a dataset that holds out one fold of its training classes."""
    params: dict[str, Any] = {"of": dataset.name, "folds": folds, "fold": fold}
    if dataset.params:
        params["params"] = dataset.params
    return DatasetChoice(f"{dataset.label}{FOLD}{fold}", VIEW, params)


def sampler_problems(blocks: Sequence[Block], known: Known) -> list[str]:
    """Return one message for each sampler and batch size of a trial that cannot run."""
    found: dict[str, None] = {}
    for block in blocks:
        sampler = block.recipe.sampler
        for size in block.batch_sizes:
            for problem in known.sampler_problems(sampler.name, sampler.params, size):
                found[f"a trial draws {sampler.params} at batch size {size}: {problem}"] = None
    return list(found)


def on_other_dataset(document: Document, instead: Mapping[str, str], dataset: str) -> Document:
    """Return the document of a study with rules, on another of the datasets that it allows.

    Unlike a stand-in it is no smaller: all trials, folds and seeds stay, and the recipe is the one
    that the study names for the dataset.
    """
    if dataset not in instead:
        words = unknown_name("dataset of rules.instead", dataset, instead)
        raise ConfigError(f"{document.path} on {dataset}", [words])
    recipe = {"datasets": [dataset], "recipe": instead[dataset]}
    name = stand_in_name(document.data["study"], dataset)
    blocks = [{**block, **recipe} for block in document.data["blocks"]]
    path = Path(stand_in_name(document.path, dataset))
    needed = document.data["rules"].get("instead_resources", {})
    resources = {**document.data.get("resources", {}), **needed}
    changed = {"study": name, "blocks": blocks, "resources": resources}
    return replace(document, path=path, data={**document.data, **changed})
