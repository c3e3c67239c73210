"""The models of study and recipe files, and of a study after loading.

``python -m benchmark validate --write-schemas`` writes the JSON Schemas of both files to
``workflow/schemas``, for editors. An explicit ``null`` in YAML is kept as None, and a missing key
gets its default. So None always means that the author wrote it, or that the default is null.
"""

import itertools
import json
import math
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, WithJsonSchema

from benchmark.core.errors import Problem, unknown
from benchmark.core.options import distinct, option, problems, schema_of, without_added
from benchmark.core.recipe import UNTRAINED, MemoryConfig, Precision, Recipe, SeedsConfig
from benchmark.core.records import SEPARATOR, DatasetChoice, LossChoice, RunSpec, Setting
from benchmark.losses.catalogue import load_catalogue
from benchmark.metrics.metric import check_metric

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = ROOT / "workflow" / "schemas"
# Labels become folder names. "~" separates options, and "/" separates folders.
LABEL = "^[A-Za-z0-9][A-Za-z0-9_.+-]{0,79}$"
OPTIONS = "^[A-Za-z0-9][A-Za-z0-9_.+-]*(~[A-Za-z0-9][A-Za-z0-9_.+-]*)*$"
Label = Annotated[str, Field(pattern=LABEL)]
Names = Annotated[tuple[str, ...], AfterValidator(distinct)]
Seeds = Annotated[tuple[Annotated[int, Field(ge=0, le=2**32 - 1)], ...], AfterValidator(distinct)]
Size = Annotated[int, Field(ge=2, le=1_000_000)] | Literal["all"]


@dataclass(frozen=True, kw_only=True)
class DatasetFile:
    """A dataset with parameters."""

    name: str = option(help="registry name")
    label: Label | None = option(None, help="name in paths and tables; null: the registry's")
    params: dict[str, Any] = option({}, help="parameters of the dataset")


@dataclass(frozen=True)
class Resources:
    """What the scheduler reserves for one run. The specification of the run does not contain it."""

    gpus: int = option(0, at_least=0, at_most=1, help="GPUs")
    mem_mb: int = option(2000, at_least=1, at_most=10**9, help="memory, MB")
    minutes: int = option(60, at_least=1, at_most=10**7, help="longest run time, minutes")
    gpu_mem_mb: int = option(0, at_least=0, at_most=10**9, help="GPU memory, MB; 0: not counted")


def _partial(values: dict[str, int]) -> dict[str, int]:
    if wrong := problems(Resources, values):
        raise ValueError("; ".join(map(str, wrong)))
    return values


SomeResources = Annotated[
    dict[str, int], AfterValidator(_partial), WithJsonSchema(schema_of(Resources))
]


@dataclass(frozen=True, kw_only=True)
class BlockFile:
    """One block: the product of datasets, losses, batch sizes and seeds, under one recipe."""

    name: Label = option(help="name of the block")
    datasets: tuple[str | DatasetFile, ...] = option(
        min_length=1, help="registry names, or {name, label, params}"
    )
    recipe: Label | Annotated[dict[str, Label], Field(min_length=1)] = option(
        help="name of a file in recipes/, or {dataset label: name}"
    )
    losses: Names = option(min_length=1, help="registry names or labels of variants")
    batch_sizes: Annotated[tuple[Size, ...], AfterValidator(distinct)] = option(
        min_length=1, help="batch sizes, or all"
    )
    seeds: Seeds | None = option(None, min_length=1, help="instead of the study's")
    metrics: Names | None = option(
        None, min_length=1, help="which of the study's metrics this block gives; null: all"
    )
    resources: SomeResources = option(
        {}, help="what one run needs, where it differs from the study's"
    )
    override: dict[str, Any] = option(
        {}, help="partial recipe laid over the block's; needs an option"
    )
    noise_square: int | None = option(
        None, at_least=3, at_most=100, help="k: k x k runs that cross sources of noise, not seeds"
    )
    # last, because it hides the function of the same name
    option: str | None = option(
        None,
        pattern=OPTIONS,
        max_length=120,
        help="option of the recipe, or a name for the override; becomes '~name' in the setting; "
        "join several by ~",
    )

    @property
    def option_names(self) -> tuple[str, ...]:
        """The named options, one by one."""
        return tuple(self.option.split(SEPARATOR)) if self.option else ()

    @property
    def choices(self) -> tuple[DatasetChoice, ...]:
        """The datasets, each with label, name and parameters."""
        choices = []
        for dataset in self.datasets:
            if isinstance(dataset, str):
                dataset = DatasetFile(name=dataset)
            label = dataset.label or dataset.name
            choices.append(DatasetChoice(label, dataset.name, dataset.params))
        return tuple(choices)

    @property
    def recipes(self) -> dict[str, str]:
        """The recipe of each dataset, by its label."""
        if isinstance(self.recipe, str):
            return {dataset.label: self.recipe for dataset in self.choices}
        return self.recipe

    @property
    def datasets_of_recipes(self) -> dict[str, list[DatasetChoice]]:
        """The datasets of each recipe."""
        by_recipe: dict[str, list[DatasetChoice]] = {}
        for dataset in self.choices:
            if dataset.label in self.recipes:
                by_recipe.setdefault(self.recipes[dataset.label], []).append(dataset)
        return by_recipe

    def count(self, seeds: Sequence[int]) -> int:
        """Return the number of runs in a study of these seeds."""
        square = range((self.noise_square or 0) ** 2)
        parts = (self.datasets, self.losses, self.batch_sizes, square or self.seeds or seeds)
        return math.prod(map(len, parts))

    def problems(self, metrics: Sequence[str]) -> Iterator[Problem]:
        """Yield the problems across fields of the block, in a study with these metrics."""
        labels = [dataset.label for dataset in self.choices]
        for number, label in enumerate(labels):
            if label in labels[:number]:
                message = f"label '{label}' is used twice; give one of them another label"
                yield Problem(message, f"datasets.{number}", code="used_twice")
            if label not in self.recipes:
                message = f"names no recipe for dataset '{label}'; add one"
                yield Problem(message, "recipe", code="missing")
        for label in self.recipes:
            yield from unknown("recipe", "dataset of this block", [label], labels)
        yield from unknowns("metrics", "metric of this study", self.metrics or (), metrics)


@dataclass(frozen=True)
class Comparison:
    """The comparisons fixed before the runs."""

    baseline: str = option(help="the loss every other is tested against")
    ablation: Names = option((), help="losses of the ablation, from simplest to complete")
    # far below 0.001, the search for the smallest visible drift takes minutes
    alpha: float = option(0.05, at_least=0.001, at_most=0.5, help="family-wise error rate")


@dataclass(frozen=True)
class References:
    """What results are compared with."""

    published: Names = option((), help="published tables")
    frozen: str | None = option(None, help="path of frozen raw runs, from the repository root")
    trials: Label | None = option(None, help="study whose trials chose these settings")
    field: str | None = option(
        None, help="folder of frozen trials and final runs of other losses, which join the tables"
    )

    def problems(self, study: str) -> Iterator[Problem]:
        """Yield the problem of the path of a study's frozen runs."""
        frozen = self.frozen or ""
        problem = ""
        if os.path.isabs(frozen) or ".." in Path(frozen).parts:
            problem = "must be a path below the working directory"
        elif frozen and (frozen.endswith("/") or os.path.isdir(frozen)):
            problem = f"'{frozen}' is a folder, not the file that 'freeze' writes"
        if problem:
            message = f"{problem}; write a path such as results/reference/{study}.csv, or null"
            yield Problem(message, "frozen", code="wrong_path")


@dataclass(frozen=True, kw_only=True)
class Rules:
    """Equal chances: every loss gets the same number of trials, then runs with its best setting."""

    trials: Annotated[tuple[Annotated[int, Field(ge=1, le=99)], ...], AfterValidator(distinct)] = (
        option(
            min_length=1,
            help="numbers of trials: the largest is made; the best of the first 1, 4, ... runs "
            "again",
        )
    )
    folds: int = option(
        2,
        at_least=2,
        at_most=20,
        help="parts of the training classes, each left out of training in turn",
    )
    final_seeds: int = option(
        5, at_least=2, at_most=1000, help="seeds of the final runs, other than those of the trials"
    )
    instead: dict[str, Label] = option(
        {}, help="dataset that may take the place of the study's (--config dataset=) -> its recipe"
    )
    instead_resources: SomeResources = option({}, help="what one run needs there, where it differs")


@dataclass(frozen=True, kw_only=True)
class StudyFile:
    """The top level of ``workflow/config/<study>.yaml``."""

    name: Label = option(alias="study", help="name of the study; equals the file name")
    title: str = option(help="one line")
    question: str = option("", help="what the study is to answer")
    seeds: Seeds = option(min_length=1, help="seeds of every block that names none of its own")
    looks: Annotated[tuple[Annotated[int, Field(ge=2)], ...], AfterValidator(distinct)] = option(
        (),
        help="numbers of seeds after which verdicts are read, rising to all seeds; 'add-seeds' "
        "goes on to the next; none means one look at all of them",
    )
    variants: dict[Label, dict[str, Any]] = option(
        {},
        alias="losses",
        help="named variants: label -> {loss: registry name, hyperparameters}",
    )
    entries: tuple[BlockFile, ...] = option(alias="blocks", min_length=1, help="parts of the grid")
    metrics: Names = option(min_length=1, help="metrics of the tables, the headline metric first")
    comparison: Comparison = option(help="what is tested against what")
    tables: Names | None = option(None, help="names of tables; null means all")
    figures: Names | None = option(None, help="names of figures; null means all")
    references: References = option(References(), help="what the results are judged against")
    rules: Rules | None = option(
        None, help="the same number of trials for every loss; null: as the recipes say"
    )
    resources: Resources = option(Resources(), help="what one run needs")

    @property
    def asked_losses(self) -> set[str]:
        """The losses and variants that some block names."""
        return {name for block in self.entries for name in block.losses}

    def problems(self) -> Iterator[Problem]:
        """Yield the problems across fields of the file.

        These checks are not pydantic validators, because a failed validator would hide the problems
        of recipes and datasets.
        """
        for number, metric in enumerate(self.metrics):
            if message := check_metric(metric):
                yield Problem(message, f"metrics.{number}", code="unknown_name")
        names = [entry.name for entry in self.entries]
        for number, entry in enumerate(self.entries):
            key = f"blocks.{number}"
            if entry.name in names[:number]:
                message = f"'{entry.name}' is used twice; block names are distinct"
                yield Problem(message, f"{key}.name", code="used_twice")
            for problem in entry.problems(self.metrics):
                yield problem.below(key)
        compared = self.comparison
        noun = "loss of this study"
        yield from unknown("comparison.baseline", noun, [compared.baseline], self.asked_losses)
        yield from unknowns("comparison.ablation", noun, compared.ablation, self.asked_losses)
        yield from self.looks_problems()
        for problem in self.references.problems(self.name):
            yield problem.below("references")

    def looks_problems(self) -> Iterator[Problem]:
        """Yield the problem of ``looks``, the numbers of seeds after which verdicts are read."""
        seeds = len(self.seeds)
        rising = list(self.looks) == sorted(set(self.looks))
        if self.looks and not (rising and self.looks[-1] == seeds):
            message = (
                f"must rise from at least 2 to the number of seeds, {seeds}, such as "
                f"{sorted({min(3, seeds), seeds})}; 'seeds' lists all that are planned"
            )
            yield Problem(message, "looks", code="wrong_looks")
        elif self.looks and self.rules:
            message = "a study with rules takes one look: its settings are chosen once"
            yield Problem(message, "looks", code="has_rules")


@dataclass(frozen=True, kw_only=True)
class RecipeFile(Recipe):
    """A recipe file: the sections of a recipe, and further facts."""

    label: Label = option(help="backbone label of paths and tables")
    extends: Label | None = option(None, help="name of the recipe that this one is laid over")
    source: str = option("", help="where the settings come from")
    repository: str = option(
        "", help="owner and name of the authors' code that it follows: Andrew-Brown1/Smooth_AP"
    )
    sources: dict[str, Annotated[str, Field(min_length=1)]] = option(
        {},
        help="place in the recipe (optimizer.lr, or a whole section) -> where its value comes from",
    )
    resources: SomeResources = option(
        {}, help="what one run needs, where it differs from the study's"
    )
    losses: dict[str, dict[str, Any]] = option(
        {},
        help="hyperparameters of losses under this recipe: {registry name: {hyperparameter: "
        "value}}",
    )
    loss_precision: dict[str, Precision] = option(
        {}, help="losses that train in a precision of their own: {registry name: precision}"
    )
    options: dict[Label, dict[str, Any]] = option(
        {}, help="named partial recipes that a block selects with 'option'"
    )


def unknowns(
    key: str, kind: str, names: Iterable[str], known: Collection[str]
) -> Iterator[Problem]:
    """Yield a problem for each unknown name of the list at ``key``."""
    for number, name in enumerate(names):
        yield from unknown(f"{key}.{number}", kind, [name], known)


JOINT = "-on-"  # between the name of a study and the other dataset that it runs on


def name_on(study: str | Path, dataset: str) -> str:
    """Return the name or path of ``study`` on another dataset."""
    stem = re.sub(r"\.ya?ml$", "", str(study))
    suffix = str(study).removeprefix(stem)
    return f"{stem}{JOINT}{dataset}{suffix}"


def base_of(name: str) -> str:
    """Return the study in a name or path that ``name_on`` made; "" for any other name."""
    match = re.fullmatch(rf"(.+){JOINT}[^/]*?(\.ya?ml)?", name)
    return "".join(match.groups("")) if match else ""


def schema_files() -> dict[Path, str]:
    """Return the text of each committed schema by its path."""
    kinds = {"study": StudyFile, "recipe": RecipeFile}
    return {
        SCHEMAS / f"{name}.schema.json": json.dumps(schema_of(kind), indent=2) + "\n"
        for name, kind in kinds.items()
    }


@dataclass(frozen=True)
class Variant(LossChoice):
    """A loss of a study.

    own     names of the hyperparameters that the study file sets
    recipe  hyperparameters that the recipe sets
    """

    own: tuple[str, ...] = ()
    recipe: dict[str, Any] = field(default_factory=dict)

    @property
    def choice(self) -> LossChoice:
        """The loss as a specification names it."""
        facts = load_catalogue().get(self.name)
        params = without_added(facts.config, self.params) if facts else self.params
        return LossChoice(self.label, self.name, params)


@dataclass(frozen=True)
class Block:
    """A part of the grid: the product of datasets, losses, batch sizes and seeds under one recipe.

    A block of the file whose datasets have different recipes becomes several blocks of one name,
    one for each recipe.

    overrides       what was laid over the recipe file
    resources       None: the resources of the study
    file            the recipe file; ``sources`` and ``loss_precision`` are parts of it
    sources         key of the recipe -> where its value comes from
    loss_precision  registry name of a loss -> the precision in which it trains; ``recipe_of``
                    returns the recipe of a loss
    all_seeds       the seeds of all looks, if the study plans looks
    noise_square    k: the seeds 0 to k^2 - 1 number the runs of a Latin square, with initial
                    weights s // k and batch order s % k
    metrics         the metrics of the study that these runs give; None: all
    """

    name: str
    setting: Setting
    datasets: tuple[DatasetChoice, ...]
    losses: tuple[Variant, ...]
    batch_sizes: tuple[int, ...]
    seeds: tuple[int, ...]
    recipe: Recipe
    overrides: dict[str, Any] = field(default_factory=dict)
    resources: Resources | None = None
    recipe_name: str = ""
    # no repr of file and metrics: they change no number, and digests are made of a block's text
    file: RecipeFile | None = field(default=None, repr=False)
    sources: dict[str, str] = field(default_factory=dict)
    loss_precision: dict[str, Precision] = field(default_factory=dict)
    all_seeds: tuple[int, ...] = ()
    noise_square: int | None = None
    metrics: tuple[str, ...] | None = field(default=None, repr=False)

    @property
    def planned_seeds(self) -> tuple[int, ...]:
        """The seeds of every planned look."""
        return self.all_seeds or self.seeds

    def specs(self) -> Iterator[RunSpec]:
        """Yield the specification of every run."""
        for dataset, loss in itertools.product(self.datasets, self.losses):
            recipe = self.recipe_of(loss.name)
            for size, seed in itertools.product(self.batch_sizes, self.seeds):
                if self.noise_square:
                    recipe = replace(recipe, seeds=square_seeds(seed, self.noise_square))
                yield RunSpec(dataset, self.setting, loss.choice, size, seed, recipe)

    def recipe_of(self, loss: str) -> Recipe:
        """Return the recipe of a loss (registry name), with the precision of that loss.

        The recipe of ``untrained`` has no epochs and no memory.
        """
        if loss == UNTRAINED:
            training = replace(self.recipe.training, epochs=0)
            return replace(self.recipe, training=training, memory=MemoryConfig())
        if loss not in self.loss_precision:
            return self.recipe
        training = replace(self.recipe.training, precision=self.loss_precision[loss])
        return replace(self.recipe, training=training)


def square_seeds(number: int, size: int) -> SeedsConfig:
    """Return the seeds of run ``number`` of a Latin square of ``size``.

    Each augmentation meets each initial weights and each batch order once.
    """
    weights, order = divmod(number, size)
    return SeedsConfig(weights=weights, order=order, augmentation=(weights + order) % size)


@dataclass(frozen=True)
class Trials:
    """The rules of a study whose blocks are trials.

    budgets      numbers of trials whose best settings are compared, rising; the last number of
                 trials is run
    final_seeds  seeds of the final runs; no trial has them
    blocks       the blocks as they were written, with the published settings
    """

    budgets: tuple[int, ...]
    folds: int
    final_seeds: tuple[int, ...]
    blocks: tuple[Block, ...]

    @property
    def choices(self) -> list[tuple[Block, str, int, str, int]]:
        """All (block, dataset, batch size, loss, trials) to choose for; 0 trials: as published."""
        return [
            (block, dataset.label, size, loss.label, trials)
            for block in self.blocks
            for dataset, size, loss in itertools.product(
                block.datasets, block.batch_sizes, block.losses
            )
            for trials in (0, *self.budgets)
        ]

    @property
    def final_runs(self) -> int:
        """The number of final runs, known before their settings."""
        return len(self.choices) * len(self.final_seeds)


@dataclass(frozen=True, kw_only=True)
class Study(StudyFile):
    """A study without problems. ``tables`` and ``figures`` are None when all are wanted."""

    path: Path
    blocks: tuple[Block, ...]
    digest: str = ""  # of the file and its recipes: derived files follow it
    trials: Trials | None = None  # the rules, where the blocks are trials
    # Planned looks (``benchmark.study.grid``): the present one, and the seeds of all of them.
    look: int = 1
    all_seeds: tuple[int, ...] = ()

    @property
    def planned_seeds(self) -> tuple[int, ...]:
        """The seeds of every planned look."""
        return self.all_seeds or self.seeds

    @property
    def losses(self) -> dict[str, Variant]:
        """The variants that some block asks for, by label, in the order of the file."""
        return {variant.label: variant for block in self.blocks for variant in block.losses}

    def folder(self, results: Path) -> Path:
        """Return the folder of everything derived for this study."""
        return Path(results) / self.name
