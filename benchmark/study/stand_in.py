"""A study on a stand-in: its losses, options and batch sizes on a small dataset for everybody.

It shows what the study's tables and figures look like, and that everything runs, on a machine
without the archives or a GPU. Its numbers say nothing about the study's own datasets. What changes,
and nothing else:

- every dataset becomes the stand-in; of the datasets of one block the first is kept, since they
  would be equal
- a recipe becomes the one it names as ``stand_in``, with what the block's options say about the
  parts of a recipe that are the same at any size (``KEPT``)
- where blocks then differ in the hyperparameters of a loss, those of the first block that asks for
  it are used
- batch sizes above ``LARGEST_BATCH`` become that; three or more in one block that all lie above are
  a sweep, and stay one, which starts there and doubles: smaller batches of images at random often
  hold no two of a class
- labels of settings end with the study's name: studies of one results folder measure other recalls
  and have other losses, so that their runs must not meet
- at most ``SEEDS`` seeds and one look; no frozen reference; no GPU. Published numbers stay, to
  arrange tables: none is judged
"""

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmark.core.cells import Setting
from benchmark.core.errors import ConfigError, Problem
from benchmark.core.recipe import Recipe
from benchmark.study.grid import conflicts
from benchmark.study.known import Known
from benchmark.study.model import Block, DatasetChoice, Resources, Study, Variant
from benchmark.study.recipes import RecipeFile, overlay, read_recipe

JOINT = "-on-"
LARGEST_BATCH = 128
SEEDS = 2
RESOURCES = Resources(gpus=0, mem_mb=2000, minutes=30)
# Parts of an override that mean the same on small images: sections, or single keys of a section.
KEPT: dict[str, tuple[str, ...]] = {
    "model": ("embedding_dim", "pooling", "layer_norm"),
    "memory": ("size", "key"),
    "sampler": ("name", "params"),
    "evaluation": ("scales", "scale_power"),
}


def stand_in_name(study: str | Path, dataset: str) -> str:
    """Return the name or path under which ``study`` on ``dataset`` is loaded."""
    text = str(study)
    stem, suffix = (
        (text, "") if not text.endswith((".yaml", ".yml")) else (text.rpartition(".")[0], ".yaml")
    )
    return f"{stem}{JOINT}{dataset}{suffix}"


def base_of(name: str) -> str:
    """Return the study that a stand-in's name or path speaks of, "" for any other."""
    stem, joint, dataset = name.rpartition(JOINT)
    if not joint or not stem or "/" in dataset:
        return ""
    suffix = ".yaml" if dataset.endswith((".yaml", ".yml")) else ""
    return f"{stem}{suffix}"


def on_stand_in(study: Study, dataset: str, known: Known) -> Study:
    """Return ``study`` on ``dataset``; raise ConfigError without such a dataset or recipe."""
    choice = DatasetChoice(dataset, dataset, {})
    _check(study, choice, known)
    blocks: list[Block] = []
    losses: dict[tuple[Setting, str], Variant] = {}
    recipes: dict[str, RecipeFile] = {}
    for block in study.blocks:
        if any(block.name == other.name for other in blocks):
            continue
        name = block.stand_in or ""  # checked: no block is without
        if name not in recipes:
            recipes[name] = _recipe(study, name)
        found = _block(study, block, recipes[name], choice)
        sampler = found.recipe.sampler
        for size in found.batch_sizes:
            for problem in known.sampler_problems(sampler.name, sampler.params, size):
                where = f"block '{block.name}' on {dataset}"
                raise ConfigError(str(study.path), [Problem(str(problem), where)])
        chosen = tuple(
            losses.setdefault((found.setting, loss.label), loss) for loss in found.losses
        )
        blocks.append(replace(found, losses=chosen))
    clashes = conflicts(blocks)
    if clashes:
        raise ConfigError(f"{study.path} on {dataset}", clashes)
    name = stand_in_name(study.name, dataset)
    return replace(
        study,
        name=name,
        path=Path(stand_in_name(study.path, dataset)),
        title=f"{study.title} (on {dataset}, a stand-in)",
        seeds=study.seeds[:SEEDS],
        looks=(),
        all_seeds=(),
        blocks=tuple(blocks),
        references=replace(study.references, frozen=None),
        resources=RESOURCES,
        digest=hashlib.sha256(f"{study.digest} {name} {blocks}".encode()).hexdigest()[:16],
        stand_in=dataset,
    )


def _check(study: Study, choice: DatasetChoice, known: Known) -> None:
    found = known.dataset_problems(choice.name, {})
    if not found:
        missing = [known.missing_metric(choice, metric) for metric in study.metrics]
        found += [Problem(words) for words in missing if words]
    for block in study.blocks:
        if block.stand_in is None:
            words = (
                f"block '{block.name}': recipe '{block.recipe_name}' names no stand_in; add the "
                f"name of a recipe that trains on {choice.name}"
            )
            found.append(Problem(words))
    if found:
        raise ConfigError(f"{study.path} on {choice.name}", list(dict.fromkeys(found)))


def _recipe(study: Study, name: str) -> RecipeFile:
    file = read_recipe(name, study.path)
    if file.problems:
        raise ConfigError(
            str(study.path), [Problem(str(problem), "stand_in") for problem in file.problems]
        )
    return file


def _block(study: Study, block: Block, file: RecipeFile, choice: DatasetChoice) -> Block:
    laid = kept(block.overrides)
    recipe, found = overlay(file.sections or {}, laid)
    if recipe is None:
        raise ConfigError(
            str(study.path),
            [Problem(str(each), f"block '{block.name}' on {choice.name}") for each in found],
        )
    return replace(
        block,
        setting=Setting(f"{file.keys.label or '?'}_{study.name}", block.setting.options),
        datasets=(choice,),
        batch_sizes=capped(block.batch_sizes),
        seeds=block.seeds[:SEEDS],
        all_seeds=(),
        overrides={**laid, "losses": block.overrides.get("losses", {})},
        recipe=_measured(recipe, study),
        resources=None,
        recipe_name=file.name,
        sources=file.keys.sources,
        loss_precision=file.keys.loss_precision,
    )


def capped(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the batch sizes on a stand-in, each once."""
    if len(sizes) > 2 and min(sizes) > LARGEST_BATCH:
        rising = sorted(sizes)
        return tuple(LARGEST_BATCH << rising.index(size) for size in sizes)
    return tuple(dict.fromkeys(min(size, LARGEST_BATCH) for size in sizes))


def kept(overrides: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of an override that are laid over a stand-in's recipe as well."""
    parts = {
        section: {key: value for key, value in overrides.get(section, {}).items() if key in keys}
        for section, keys in KEPT.items()
    }
    return {section: part for section, part in parts.items() if part}


def _measured(recipe: Recipe, study: Study) -> Recipe:
    """Return the recipe, measuring recall at every K that some block or metric of the study names.

    All blocks measure the same, since on a stand-in they may share runs.
    """
    asked = {
        int(metric.removeprefix("recall_at_"))
        for metric in study.metrics
        if metric.startswith("recall_at_")
    }
    asked |= {k for block in study.blocks for k in block.recipe.evaluation.recall_at}
    evaluation = recipe.evaluation
    every = sorted({*evaluation.recall_at, *asked})
    return replace(recipe, evaluation=replace(evaluation, recall_at=every))
