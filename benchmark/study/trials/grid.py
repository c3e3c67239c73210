"""From a study with rules to its trials: what they vary, the settings they draw, their blocks."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmark.core.cells import Setting
from benchmark.core.errors import ConfigError, unknown_name
from benchmark.core.options import defaults_of, hints_of, options_of
from benchmark.core.recipe import OptimizerConfig, SamplerConfig
from benchmark.core.records import DatasetChoice
from benchmark.core.search import sobol, value_at
from benchmark.losses.catalogue import LossFacts
from benchmark.study.documents import Document, name_on
from benchmark.study.model import Block, Rules, Trials, Variant

TRIAL = "trial"  # "trial00" is the published setting, "trial01" the first drawn


@dataclass(frozen=True)
class Knob:
    """One option that trials vary: its section, name, range and published value."""

    section: str
    name: str
    search: Mapping[str, Any]
    published: Any
    whole: bool


def knobs(block: Block, loss: Variant, config: type) -> list[Knob]:
    """Return what the trials of ``loss`` (hyperparameters ``config``) vary under a block's recipe.

    These are all options with a range, but for the hyperparameters that the study itself sets, and
    for the head's multiplier where a frozen backbone leaves one rate.
    """
    from benchmark.input.samplers import SAMPLERS

    recipe = block.recipe_of(loss.name)
    sampler = SAMPLERS[recipe.sampler.name].target.Config
    sections: dict[str, tuple[type, dict[str, Any]]] = {
        "optimizer": (OptimizerConfig, asdict(recipe.optimizer)),
        "sampler": (sampler, {**defaults_of(sampler), **recipe.sampler.params}),
        "losses": (config, loss.params),
    }
    return [
        Knob(section, name, search, values.get(name), hints_of(kind)[item.name] is int)
        for section, (kind, values) in sections.items()
        for name, item in options_of(kind).items()
        if (search := item.metadata.get("search"))
        and not (section == "losses" and name in loss.own)
        and not (name == "head_lr_multiplier" and recipe.model.freeze_backbone)
    ]


def trial_blocks(block: Block, loss: Variant, found: list[Knob], trials: int) -> list[Block]:
    """Return the block of the published setting of one loss, and one for each trial."""
    points = sobol(loss.label, len(found), trials)
    drawn: list[dict[str, Any]] = [{}]
    for point in points:
        override: dict[str, Any] = {}
        for knob, share in zip(found, point, strict=True):
            section = override.setdefault(knob.section, {})
            if "times" in knob.search and type(knob.published) not in (int, float):
                words = f"{knob.name} is {knob.published!r}; its range 'times' needs a number to"
                raise ConfigError(f"trials of loss '{loss.label}'", [f"{words} multiply"])
            section[knob.name] = value_at(knob.search, share, knob.published, knob.whole)
        drawn.append(override)
    return [_with(block, loss, number, override) for number, override in enumerate(drawn)]


def trial_setting(setting: Setting, number: int) -> Setting:
    """Return the setting of a trial of runs under ``setting``."""
    return Setting(setting.backbone, (*setting.options, f"{TRIAL}{number:02d}"))


def _with(block: Block, loss: Variant, number: int, drawn: Mapping[str, Any]) -> Block:
    recipe = block.recipe
    params = {**recipe.sampler.params, **drawn.get("sampler", {})}
    recipe = replace(
        recipe,
        optimizer=replace(recipe.optimizer, **drawn.get("optimizer", {})),
        sampler=SamplerConfig(name=recipe.sampler.name, params=params),
    )
    own = drawn.get("losses", {})
    variant = replace(loss, params={**loss.params, **own}, recipe={**loss.recipe, **own})
    return replace(
        block,
        setting=trial_setting(block.setting, number),
        losses=(variant,),
        recipe=recipe,
        overrides=_override(block, loss, drawn),
    )


def _override(block: Block, loss: Variant, drawn: Mapping[str, Any]) -> dict[str, Any]:
    """Return the partial recipe that a study file would lay over the block's for this setting."""
    override = dict(drawn)
    if "sampler" in drawn:
        name = block.recipe.sampler.name
        override["sampler"] = {"name": name, "params": drawn["sampler"]}
    if "losses" in drawn:
        override["losses"] = {loss.name: drawn["losses"]}
    return override


VIEW = "class_folds"
FOLD = ".fold"  # between the label of a dataset and the number of its fold


def with_trials(
    blocks: Sequence[Block], rules: Rules, losses: Mapping[str, LossFacts]
) -> tuple[list[Block], Trials]:
    """Return the blocks of all trials, and the rules with the blocks as they were written."""
    found = []
    for block in blocks:
        datasets = tuple(
            fold_of(dataset, fold, rules.folds)
            for dataset in block.datasets
            for fold in range(rules.folds)
        )
        for loss in block.losses:
            varied = knobs(block, loss, losses[loss.name].config)
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


def sampler_problems(blocks: Sequence[Block]) -> list[str]:
    """Return one message for each sampler and batch size of a trial that cannot run."""
    from benchmark.input.samplers import check

    found: dict[str, None] = {}
    for block in blocks:
        sampler = block.recipe.sampler
        for size in block.batch_sizes:
            for problem in check(sampler.name, sampler.params, size):
                found[f"a trial draws {sampler.params} at batch size {size}: {problem}"] = None
    return list(found)


def range_problems(blocks: Sequence[Block], losses: Mapping[str, LossFacts]) -> list[str]:
    """Return one message for each option whose range holds values that no run could take."""
    found: dict[tuple[str, str], str] = {}
    for block in blocks:
        for loss in block.losses:
            for problem in losses[loss.name].problems(loss.params):
                words = f"a trial of '{loss.label}' draws {problem.key}: {problem.message}"
                found.setdefault((loss.label, problem.key), f"{words}; mend its range")
    return list(found.values())


def on_other_dataset(document: Document, instead: Mapping[str, str], dataset: str) -> Document:
    """Return the document of a study with rules, on another of the datasets that it allows.

    All trials, folds and seeds stay; the recipe is the one that the study names for the dataset.
    """
    if dataset not in instead:
        words = unknown_name("dataset of rules.instead", dataset, instead)
        raise ConfigError(f"{document.path} on {dataset}", [words])
    recipe = {"datasets": [dataset], "recipe": instead[dataset]}
    name = name_on(document.data["study"], dataset)
    blocks = [{**block, **recipe} for block in document.data["blocks"]]
    path = Path(name_on(document.path, dataset))
    needed = document.data["rules"].get("instead_resources", {})
    resources = {**document.data.get("resources", {}), **needed}
    changed = {"study": name, "blocks": blocks, "resources": resources}
    return replace(document, path=path, data={**document.data, **changed})
