"""Equal chances: every loss gets the same number of trials, then runs again with its best setting.

The trials are fixed before the first run, so that they are runs of an ordinary grid; what follows
from them (``selection.json``) is a second, ordinary study file.

Trials draw values from ranges declared beside the options, each one word and its values: ``{"log":
[0.001, 0.1]}`` and ``{"linear": [0.0, 0.5]}`` from low to high, ``{"times": [0.1, 10.0]}`` from low
to high times the published value, on a log scale, and ``{"among": [2, 4, 8]}`` one of these.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from benchmark.core.errors import ConfigError
from benchmark.core.files import begin_folder, copy_file, read_record, write_json, write_text
from benchmark.core.options import defaults_of, hints_of, options_of
from benchmark.core.recipe import OptimizerConfig, SamplerConfig
from benchmark.core.records import SCHEMA, DatasetChoice, Setting
from benchmark.core.seeding import derive
from benchmark.input.samplers import SAMPLERS, check
from benchmark.losses.catalogue import LossFacts
from benchmark.study.model import Block, Rules, Study, Trials, Variant
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
    """Return the value at ``share`` in [0, 1) of a range; a ``whole`` one is rounded."""
    ((scale, values),) = search.items()
    if scale == "among":
        return values[int(share * len(values))]
    low, high = values
    value = low + share * (high - low) if scale == "linear" else low * (high / low) ** share
    if scale == "times":
        value *= published
    return round(value) if whole else float(f"{value:.{DIGITS}g}")


def sobol(name: str, dimensions: int, points: int) -> list[list[float]]:
    """Return the first ``points`` of the scrambled Sobol sequence of ``name``, in [0, 1).

    The scrambling (Owen's, by scipy) is seeded by the name: every loss has points of its own, and
    those of a small budget are the first of a larger one.
    """
    from scipy.stats import qmc

    if not dimensions:
        return [[] for _ in range(points)]
    sequence = qmc.Sobol(dimensions, scramble=True, rng=derive(SEED, "trials", name))
    return sequence.random_base2((points - 1).bit_length()).tolist()[:points]


def trial_blocks(block: Block, loss: Variant, config: type, trials: int) -> Iterator[Block]:
    """Yield the block of the published setting of one loss, and one for each trial.

    Trials vary all options with a range of optimizer, sampler and loss (hyperparameters
    ``config``), but for the hyperparameters that the study itself sets, and for the head's
    multiplier where a frozen backbone leaves one rate.
    """
    recipe = block.recipe_of(loss.name)
    sampler = recipe.sampler
    of_sampler = SAMPLERS[recipe.sampler.name].target.Config
    varied = [
        (section, name, item.metadata["search"], values.get(name), hints_of(kind)[item.name] is int)
        for section, kind, values in (
            ("optimizer", OptimizerConfig, asdict(recipe.optimizer)),
            ("sampler", of_sampler, {**defaults_of(of_sampler), **sampler.params}),
            ("losses", config, loss.params),
        )
        for name, item in options_of(kind).items()
        if "search" in item.metadata
        and not (section == "losses" and name in loss.own)
        and not (name == "head_lr_multiplier" and recipe.model.freeze_backbone)
    ]
    for number, point in enumerate([[], *sobol(loss.label, len(varied), trials)]):
        drawn: dict[str, dict[str, Any]] = {}
        for (section, name, search, published, whole), share in zip(varied, point, strict=False):
            if "times" in search and type(published) not in (int, float):
                words = f"{name} is {published!r}; its range 'times' needs a number to multiply"
                raise ConfigError(f"trials of loss '{loss.label}'", [words])
            drawn.setdefault(section, {})[name] = value_at(search, share, published, whole)
        own = drawn.get("losses", {})
        params = drawn.get("sampler", {})
        override: dict[str, Any] = dict(drawn)  # what a study file would lay over the recipe
        override |= {"sampler": {"name": sampler.name, "params": params}} if params else {}
        override |= {"losses": {loss.name: own}} if own else {}
        yield replace(
            block,
            setting=trial_setting(block.setting, number),
            losses=(replace(loss, params={**loss.params, **own}, recipe={**loss.recipe, **own}),),
            recipe=replace(
                block.recipe,
                optimizer=replace(block.recipe.optimizer, **drawn.get("optimizer", {})),
                sampler=SamplerConfig(name=sampler.name, params={**sampler.params, **params}),
            ),
            overrides=override,
        )


def trial_setting(setting: Setting, number: int) -> Setting:
    """Return the setting of a trial of runs under ``setting``."""
    return Setting(setting.backbone, (*setting.options, f"{TRIAL}{number:02d}"))


def with_trials(
    blocks: Sequence[Block], rules: Rules, losses: Mapping[str, LossFacts]
) -> tuple[list[Block], Trials]:
    """Return the blocks of all trials, and the rules with the blocks as they were written.

    A trial sees the views of a dataset that each hold out one fold of its training classes.
    """
    found: list[Block] = []
    for block in blocks:
        datasets = tuple(
            DatasetChoice(
                f"{each.label}{FOLD}{fold}",
                VIEW,
                {"of": each.name, "folds": rules.folds, "fold": fold}
                | ({"params": each.params} if each.params else {}),
            )
            for each in block.datasets
            for fold in range(rules.folds)
        )
        for loss in block.losses:
            config = losses[loss.name].config
            on_folds = replace(block, datasets=datasets)
            found += trial_blocks(on_folds, loss, config, max(rules.trials))
    taken = {seed for block in blocks for seed in block.seeds}
    fresh = [seed for seed in range(len(taken) + rules.final_seeds) if seed not in taken]
    seeds = tuple(fresh[: rules.final_seeds])
    budgets = tuple(sorted(rules.trials))
    return found, Trials(budgets, rules.folds, seeds, tuple(blocks))


def trial_problems(blocks: Sequence[Block], losses: Mapping[str, LossFacts]) -> list[str]:
    """Return one message for each option and each batch size whose draws no run could take."""
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


@dataclass(frozen=True)
class Choice:
    """The setting of one loss on one dataset that is best after so many trials.

    block       name of the block in the study file
    trials      number of trials it was chosen from; 0 is the published setting, chosen from none
    trial       number of the chosen one
    score       mean over folds of the study's first metric, on held-out training classes; None
                where the trial has no score
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
        """The option of the final runs: the rule set, with its number of trials."""
        return f"{EQUAL}{self.trials}" if self.trials else AUTHORS


def selected_path(study: Study, results: Path) -> Path:
    """Return where the study file of the final runs lies; its name is the study's with a suffix."""
    return study.folder(results) / f"{study.name}{SUFFIX}.yaml"


def write_selected(study: Study, choices: list[Choice], results: Path) -> list[Path]:
    """Write the selection, and the study file of the final runs beside it; return their paths.

    Its recipes that lie beside the study are copied, so that the file stands by itself.
    """
    path = selected_path(study, results)
    recipes = _recipes(study)
    target = path.parent / "recipes"
    if all(recipe.parent.resolve() != target.resolve() for recipe in recipes):
        begin_folder(target)  # what else lies there would take the place of the repository's
    for recipe in recipes:
        copy_file(recipe, target / recipe.name)
    content = {"schema": SCHEMA, "study": study.name, "metric": study.metrics[0]}
    write_json(path.parent / FILE, content | {"choices": list(map(asdict, choices))})
    write_text(path, _written(study, choices))
    return [path.parent / FILE, path]


def read_choices(path: Path) -> list[Choice]:
    """Return the choices in a selection; raise RunError where it cannot be read."""
    return read_record(
        list[Choice],
        path,
        "a selection of settings",
        parse=lambda data: json.loads(data)["choices"],
    )


def is_current(study: Study, results: Path) -> bool:
    """Say whether the study of the final runs is the one that follows from study and selection."""
    path = selected_path(study, results)
    if not (study.trials and path.is_file() and (path.parent / FILE).is_file()):
        return False
    choices = read_choices(path.parent / FILE)
    chosen = [(of.block, of.dataset, of.batch_size, of.loss, of.trials) for of in choices]
    copied = {each.name: each.read_bytes() for each in path.parent.glob("recipes/*.yaml")}
    return (
        chosen == [(block.name, *rest) for block, *rest in study.trials.choices]
        and copied == {each.name: each.read_bytes() for each in _recipes(study)}
        # the order of an override's keys is that of a file with sorted ones
        and yaml.safe_load(path.read_bytes()) == yaml.safe_load(_written(study, choices))
    )


def _recipes(study: Study) -> list[Path]:
    assert study.trials is not None
    return recipes_beside({block.recipe_name for block in study.trials.blocks}, study.path)


def _written(study: Study, choices: list[Choice]) -> str:
    """Return the study file of the final runs."""
    trials = study.trials
    assert trials is not None
    variants = {
        loss.label: {"loss": loss.name, **{key: loss.params[key] for key in loss.own}}
        for block in trials.blocks
        for loss in block.losses
        if loss.label != loss.name
    }
    blocks = []
    for block in trials.blocks:
        datasets = {dataset.label: dataset for dataset in block.datasets}
        for choice in choices:
            if choice.block != block.name or choice.dataset not in datasets:
                continue
            optimizer = {"lr": block.recipe.optimizer.lr, **choice.override.get("optimizer", {})}
            entry = {
                "name": f"{choice.dataset}.{choice.loss}.bs{choice.batch_size}.{choice.option}",
                "datasets": [asdict(datasets[choice.dataset])],
                "recipe": block.recipe_name,
                "losses": [choice.loss],
                "batch_sizes": [choice.batch_size],
                "option": "~".join((*block.setting.options, choice.option)),
                "override": {**choice.override, "optimizer": optimizer},
            }
            blocks.append(
                entry | ({"resources": asdict(block.resources)} if block.resources else {})
            )
    content = {
        "study": f"{study.name}{SUFFIX}",
        "title": study.title,
        "question": study.question,
        "seeds": list(trials.final_seeds),
        "losses": variants,
        "blocks": blocks,
        "metrics": list(study.metrics),
        "comparison": asdict(study.comparison) | {"ablation": []},
        "tables": study.tables and list(study.tables),
        "figures": study.figures and list(study.figures),
        "references": {"trials": study.name, "field": study.references.field},
        "resources": asdict(study.resources),
    }
    text = yaml.safe_dump(content, sort_keys=False, width=100)
    return f"# Final runs with the settings of {FILE}; written by 'select'.\n{text}"
