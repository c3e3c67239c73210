"""From a study with rules to its trials: what they vary, the settings they draw, their blocks."""

from collections.abc import Iterator, Mapping, Sequence
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


def trial_blocks(block: Block, loss: Variant, config: type, trials: int) -> Iterator[Block]:
    """Yield the block of the published setting of one loss, and one for each trial."""
    varied = knobs(block, loss, config)
    yield _with(block, loss, 0, {})
    for number, point in enumerate(sobol(loss.label, len(varied), trials), 1):
        drawn: dict[str, dict[str, Any]] = {}
        for knob, share in zip(varied, point, strict=True):
            if "times" in knob.search and type(knob.published) not in (int, float):
                words = f"{knob.name} is {knob.published!r}; its range 'times' needs a number to"
                raise ConfigError(f"trials of loss '{loss.label}'", [f"{words} multiply"])
            value = value_at(knob.search, share, knob.published, knob.whole)
            drawn.setdefault(knob.section, {})[knob.name] = value
        yield _with(block, loss, number, drawn)


def trial_setting(setting: Setting, number: int) -> Setting:
    """Return the setting of a trial of runs under ``setting``."""
    return Setting(setting.backbone, (*setting.options, f"{TRIAL}{number:02d}"))


def _with(block: Block, loss: Variant, number: int, drawn: dict[str, dict[str, Any]]) -> Block:
    optimizer, sampler = block.recipe.optimizer, block.recipe.sampler
    own, params = drawn.get("losses", {}), drawn.get("sampler", {})
    override: dict[str, Any] = dict(drawn)  # what a study file would lay over the block's recipe
    override |= {"sampler": {"name": sampler.name, "params": params}} if params else {}
    override |= {"losses": {loss.name: own}} if own else {}
    return replace(
        block,
        setting=trial_setting(block.setting, number),
        losses=(replace(loss, params={**loss.params, **own}, recipe={**loss.recipe, **own}),),
        recipe=replace(
            block.recipe,
            optimizer=replace(optimizer, **drawn.get("optimizer", {})),
            sampler=SamplerConfig(name=sampler.name, params={**sampler.params, **params}),
        ),
        overrides=override,
    )


VIEW = "class_folds"
FOLD = ".fold"  # between the label of a dataset and the number of its fold


def with_trials(
    blocks: Sequence[Block], rules: Rules, losses: Mapping[str, LossFacts]
) -> tuple[list[Block], Trials]:
    """Return the blocks of all trials, and the rules with the blocks as they were written."""
    found: list[Block] = []
    for block in blocks:
        datasets = tuple(
            fold_of(dataset, fold, rules.folds)
            for dataset in block.datasets
            for fold in range(rules.folds)
        )
        on_folds = replace(block, datasets=datasets)
        for loss in block.losses:
            config = losses[loss.name].config
            found += trial_blocks(on_folds, loss, config, max(rules.trials))
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


def trial_problems(blocks: Sequence[Block], losses: Mapping[str, LossFacts]) -> list[str]:
    """Return one message for each option and each batch size whose draws no run could take."""
    from benchmark.input.samplers import check

    ranges: dict[tuple[str, str], str] = {}
    samplers: dict[str, None] = {}
    for block in blocks:
        sampler, (loss,) = block.recipe.sampler, block.losses
        for problem in losses[loss.name].problems(loss.params):
            words = f"a trial of '{loss.label}' draws {problem.key}: {problem.message}"
            ranges.setdefault((loss.label, problem.key), f"{words}; mend its range")
        for size in block.batch_sizes:
            for problem in check(sampler.name, sampler.params, size):
                samplers[f"a trial draws {sampler.params} at batch size {size}: {problem}"] = None
    return [*ranges.values(), *samplers]


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
