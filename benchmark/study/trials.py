"""Equal chances: every loss gets the same number of trials, then runs again with its best setting.

The trials are fixed before the first run, so they are runs of an ordinary grid. The best settings
(``selection.json``) become a second, ordinary study file.

Trials draw values from ranges that are declared beside the options::

    {"linear": [0.0, 0.5]}    from low to high
    {"log": [0.001, 0.1]}     from low to high, on a log scale
    {"times": [0.1, 10.0]}    low to high times the published value, on a log scale
    {"among": [2, 4, 8]}      one of these
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from benchmark.core.errors import ConfigError
from benchmark.core.files import begin_folder, copy_file, read_record, write_json, write_text
from benchmark.core.options import defaults_of, hints_of, options_of
from benchmark.core.recipe import OptimizerConfig
from benchmark.core.records import SCHEMA, DatasetChoice, RunSpec, Setting
from benchmark.core.seeding import derive
from benchmark.input.samplers import SAMPLERS, check
from benchmark.losses.catalogue import LossFacts
from benchmark.study.model import Block, References, Rules, Study, Trials, Variant
from benchmark.study.part import study_text
from benchmark.study.recipes import recipes_beside

TRIAL = "trial"  # "trial00" is the published setting, "trial01" the first drawn
DIGITS = 3  # of a drawn value: readable, and the same on every machine
SEED = 0
VIEW = "class_folds"
FOLD = ".fold"  # between the label of a dataset and the number of its fold
FILE = "selection.json"
SUFFIX = "-selected"
# options of the final runs: "authors", "equal16"
AUTHORS = "authors"
EQUAL = "equal"


def value_at(search: Mapping[str, Any], share: float, published: Any, whole: bool = False) -> Any:
    """Return the value at ``share`` in [0, 1) of a range; round it if ``whole``."""
    ((scale, values),) = search.items()
    if scale == "among":
        return values[int(share * len(values))]
    low, high = values
    if scale == "linear":
        value = low + share * (high - low)
    elif scale == "log":
        value = low * (high / low) ** share
    else:
        value = low * (high / low) ** share * published
    if whole:
        return round(value)
    return float(f"{value:.{DIGITS}g}")


def sobol(name: str, dimensions: int, points: int) -> list[list[float]]:
    """Return the first ``points`` of the scrambled Sobol sequence of ``name``, in [0, 1).

    The scrambling (Owen's, by scipy) is seeded by the name, so every loss has different points. The
    points of a small budget are the first points of a larger budget.
    """
    from scipy.stats import qmc

    if not dimensions:
        return [[] for _ in range(points)]
    sequence = qmc.Sobol(dimensions, scramble=True, rng=derive(SEED, "trials", name))
    return sequence.random_base2((points - 1).bit_length()).tolist()[:points]


class VariedOption(NamedTuple):
    """An option that trials draw from a range."""

    section: str  # of the recipe
    name: str
    search: Mapping[str, Any]
    published: Any
    is_whole: bool


def varied_options(block: Block, loss: Variant, config: type) -> list[VariedOption]:
    """Return the options of optimizer, sampler and loss that have a range.

    A hyperparameter of the loss (of ``config``) that the study itself sets is not varied. With a
    frozen backbone the head's multiplier is not varied, because there is one learning rate.
    """
    recipe = block.recipe_of(loss.name)
    sampler = SAMPLERS[recipe.sampler.name].target.Config
    sections = (
        ("optimizer", OptimizerConfig, asdict(recipe.optimizer)),
        ("sampler", sampler, {**defaults_of(sampler), **recipe.sampler.params}),
        ("losses", config, loss.params),
    )
    varied = []
    for section, kind, values in sections:
        for name, item in options_of(kind).items():
            search = item.metadata.get("search")
            is_set = section == "losses" and name in loss.own
            has_one_rate = name == "head_lr_multiplier" and recipe.model.freeze_backbone
            if search is None or is_set or has_one_rate:
                continue
            published = values.get(name)
            if "times" in search and type(published) not in (int, float):
                message = f"{name} is {published!r}; its range 'times' needs a number to multiply"
                raise ConfigError(f"trials of loss '{loss.label}'", [message])
            is_whole = hints_of(kind)[item.name] is int
            varied.append(VariedOption(section, name, search, published, is_whole))
    return varied


def trial_blocks(block: Block, loss: Variant, config: type, trials: int) -> Iterator[Block]:
    """Yield the block of the published setting of one loss, and one block for each trial.

    ``config`` has the hyperparameters of the loss.
    """
    sampler = block.recipe.sampler
    varied = varied_options(block, loss, config)
    published: list[float] = []
    for number, point in enumerate([published, *sobol(loss.label, len(varied), trials)]):
        drawn: dict[str, dict[str, Any]] = {"optimizer": {}, "sampler": {}, "losses": {}}
        for option, share in zip(varied, point, strict=False):
            value = value_at(option.search, share, option.published, option.is_whole)
            drawn[option.section][option.name] = value
        override: dict[str, Any] = {}  # what a study file would lay over the recipe
        if drawn["optimizer"]:
            override["optimizer"] = drawn["optimizer"]
        if drawn["sampler"]:
            override["sampler"] = {"name": sampler.name, "params": drawn["sampler"]}
        if drawn["losses"]:
            override["losses"] = {loss.name: drawn["losses"]}
        variant = replace(
            loss,
            params={**loss.params, **drawn["losses"]},
            recipe={**loss.recipe, **drawn["losses"]},
        )
        recipe = replace(
            block.recipe,
            optimizer=replace(block.recipe.optimizer, **drawn["optimizer"]),
            sampler=replace(sampler, params={**sampler.params, **drawn["sampler"]}),
        )
        yield replace(
            block,
            setting=trial_setting(block.setting, number),
            losses=(variant,),
            recipe=recipe,
            overrides=override,
        )


def trial_setting(setting: Setting, number: int) -> Setting:
    """Return the setting of a trial of runs under ``setting``."""
    return Setting(setting.backbone, (*setting.options, f"{TRIAL}{number:02d}"))


def trial_columns(spec: RunSpec) -> dict[str, Any]:
    """Return what a trial is of, as columns of ``runs.csv``.

    ``trials.dataset`` and ``trials.setting`` are the labels of the block as it was written,
    ``trials.fold`` and ``trials.trial`` the numbers of the fold and of the trial.
    """
    *options, trial = spec.setting.options
    fold = spec.dataset.params["fold"]
    return {
        "trials.dataset": spec.dataset.label.removesuffix(f"{FOLD}{fold}"),
        "trials.setting": Setting(spec.setting.backbone, tuple(options)).label,
        "trials.fold": fold,
        "trials.trial": int(trial.removeprefix(TRIAL)),
    }


def final_columns(spec: RunSpec) -> dict[str, Any]:
    """Return which trials chose the setting of a final run, as columns of ``runs.csv``.

    ``trials.dataset`` and ``trials.setting`` are the labels of the block as it was written,
    ``trials.budget`` is the number of trials (0: the published setting). Return nothing for a run
    that ``select`` did not write.
    """
    *options, rules = spec.setting.options or ("",)
    by_select = re.fullmatch(rf"{AUTHORS}|{EQUAL}(\d\d?)", rules)
    if not by_select:
        return {}
    return {
        "trials.dataset": spec.dataset.label,
        "trials.setting": Setting(spec.setting.backbone, tuple(options)).label,
        "trials.budget": int(by_select[1] or 0),
    }


def is_chosen(setting: Setting) -> bool:
    """Return whether trials chose this setting of final runs."""
    return any(option.startswith(EQUAL) for option in setting.options)


def with_trials(
    blocks: Sequence[Block], rules: Rules, losses: Mapping[str, LossFacts]
) -> tuple[list[Block], Trials]:
    """Return the blocks of all trials, and the rules with the blocks as they were written.

    A trial runs on views of its dataset. Each view holds out one fold of the training classes.
    """
    trials: list[Block] = []
    for block in blocks:
        views = []
        for dataset in block.datasets:
            for fold in range(rules.folds):
                params = {"of": dataset.name, "folds": rules.folds, "fold": fold}
                if dataset.params:
                    params["params"] = dataset.params
                views.append(DatasetChoice(f"{dataset.label}{FOLD}{fold}", VIEW, params))
        on_views = replace(block, datasets=tuple(views))
        for loss in block.losses:
            trials += trial_blocks(on_views, loss, losses[loss.name].config, max(rules.trials))
    taken = {seed for block in blocks for seed in block.seeds}
    fresh = [seed for seed in range(len(taken) + rules.final_seeds) if seed not in taken]
    seeds = tuple(fresh[: rules.final_seeds])
    budgets = tuple(sorted(rules.trials))
    return trials, Trials(budgets, rules.folds, seeds, tuple(blocks))


def trial_problems(blocks: Sequence[Block], losses: Mapping[str, LossFacts]) -> list[str]:
    """Return one message for each option and each batch size whose draws no run could take."""
    ranges: dict[tuple[str, str], str] = {}
    samplers = []
    for block in blocks:
        sampler = block.recipe.sampler
        (loss,) = block.losses
        for problem in losses[loss.name].problems(loss.params):
            message = f"a trial of '{loss.label}' draws {problem.key}: {problem.message}"
            ranges.setdefault((loss.label, problem.key), f"{message}; mend its range")
        for size in block.batch_sizes:
            for problem in check(sampler.name, sampler.params, size):
                samplers.append(f"a trial draws {sampler.params} at batch size {size}: {problem}")
    return [*ranges.values(), *dict.fromkeys(samplers)]


@dataclass(frozen=True)
class Choice:
    """The best setting of one loss on one dataset after a number of trials.

    block       name of the block in the study file
    trials      number of trials; 0: the published setting
    trial       number of the best trial
    score       mean over folds of the study's first metric, on held-out training classes; None
                if the trial has no score
    override    the partial recipe of the setting
    """

    block: str
    dataset: str
    batch_size: int
    loss: str
    trials: int
    trial: int
    score: float | None
    override: dict[str, Any]

    @property
    def option(self) -> str:
        """The option that names these final runs: "authors", or "equal" with the trials."""
        return f"{EQUAL}{self.trials}" if self.trials else AUTHORS


def selected_path(study: Study, results: Path) -> Path:
    """Return the path of the study file of the final runs."""
    return study.folder(results) / f"{study.name}{SUFFIX}.yaml"


def write_selected(study: Study, choices: list[Choice], results: Path) -> list[Path]:
    """Write the selection, and the study file of the final runs beside it; return their paths.

    Recipes that lie beside the study are copied, because the new file needs them.
    """
    path = selected_path(study, results)
    recipes = _recipes(study)
    target = path.parent / "recipes"
    if all(recipe.parent.resolve() != target.resolve() for recipe in recipes):
        begin_folder(target)  # an old recipe here would hide the repository's
    for recipe in recipes:
        copy_file(recipe, target / recipe.name)
    content = {"schema": SCHEMA, "study": study.name, "metric": study.metrics[0]}
    write_json(path.parent / FILE, content | {"choices": list(map(asdict, choices))})
    write_text(path, _written(study, choices))
    return [path.parent / FILE, path]


def read_choices(path: Path) -> list[Choice]:
    """Return the choices in a selection; raise RunError if it cannot be read."""
    return read_record(
        list[Choice],
        path,
        "a selection of settings",
        parse=lambda data: json.loads(data)["choices"],
    )


def is_current(study: Study, results: Path) -> bool:
    """Return whether the study file of the final runs belongs to this study and its selection."""
    path = selected_path(study, results)
    if not (study.trials and path.is_file() and (path.parent / FILE).is_file()):
        return False
    choices = read_choices(path.parent / FILE)
    chosen = [(of.block, of.dataset, of.batch_size, of.loss, of.trials) for of in choices]
    if chosen != [(block.name, *rest) for block, *rest in study.trials.choices]:
        return False
    if _contents(path.parent.glob("recipes/*.yaml")) != _contents(_recipes(study)):
        return False
    # compared as values: the order of keys in an override may differ
    return bool(yaml.safe_load(path.read_bytes()) == yaml.safe_load(_written(study, choices)))


def _contents(paths: Iterable[Path]) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in paths}


def _recipes(study: Study) -> list[Path]:
    assert study.trials is not None
    return recipes_beside({block.recipe_name for block in study.trials.blocks}, study.path)


def _written(study: Study, choices: list[Choice]) -> str:
    """Return the study file of the final runs."""
    trials = study.trials
    assert trials is not None
    blocks = []
    for block in trials.blocks:
        datasets = {dataset.label: dataset for dataset in block.datasets}
        losses = {loss.label: loss for loss in block.losses}
        for choice in choices:
            if choice.block != block.name or choice.dataset not in datasets:
                continue
            optimizer = {"lr": block.recipe.optimizer.lr, **choice.override.get("optimizer", {})}
            final = replace(
                block,
                name=f"{choice.dataset}.{choice.loss}.bs{choice.batch_size}.{choice.option}",
                setting=replace(block.setting, options=(*block.setting.options, choice.option)),
                datasets=(datasets[choice.dataset],),
                losses=(losses[choice.loss],),
                batch_sizes=(choice.batch_size,),
                seeds=trials.final_seeds,
                overrides={**choice.override, "optimizer": optimizer},
            )
            blocks.append(final)
    selected = replace(
        study,
        name=f"{study.name}{SUFFIX}",
        seeds=trials.final_seeds,
        blocks=tuple(blocks),
        comparison=replace(study.comparison, ablation=()),
        references=References(trials=study.name, field=study.references.field),
    )
    return f"# Final runs with the settings of {FILE}; written by 'select'.\n{study_text(selected)}"
