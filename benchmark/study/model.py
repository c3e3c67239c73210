"""A validated study: what the steps after loading work with. None is never an accident here."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmark.core.cells import Setting
from benchmark.core.recipe import (
    UNTRAINED,
    Precision,
    Recipe,
    SeedsConfig,
    recipe_without_training,
)
from benchmark.core.records import DatasetChoice, LossChoice, RunSpec
from benchmark.study.format import Comparison, References, Resources

__all__ = [
    "Block",
    "Comparison",
    "DatasetChoice",
    "References",
    "Resources",
    "Study",
    "Variant",
]


@dataclass(frozen=True)
class Variant(LossChoice):
    """A loss of a study.

    ``own`` names the hyperparameters that the study file sets; ``recipe`` holds those that the
    recipe sets.
    """

    own: tuple[str, ...] = ()
    recipe: dict[str, Any] = field(default_factory=dict)

    @property
    def choice(self) -> LossChoice:
        """The loss as a specification names it."""
        return LossChoice(self.label, self.name, self.params)


@dataclass(frozen=True)
class Block:
    """A part of the grid: the product of datasets, losses, batch sizes and seeds under one recipe.

    A block of the file whose datasets have different recipes becomes one of these for each, under
    one name. ``overrides`` is what was laid over the recipe file. ``resources`` is None where the
    study's hold.
    ``loss_precision`` names the losses, by registry name, that train in another precision than the
    recipe's: ``recipe_of`` gives the recipe of a loss. With ``noise_square`` k the seeds 0 to
    k^2 - 1 number the runs of a Latin square: initial weights s // k, batch order s % k.
    ``metrics`` names those of the study's that its runs give, None all of them.
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
    # place in the recipe -> where its value comes from
    sources: dict[str, str] = field(default_factory=dict)
    loss_precision: dict[str, Precision] = field(default_factory=dict)
    all_seeds: tuple[int, ...] = ()  # where looks are planned: also those of later looks
    noise_square: int | None = None
    # decides no number: digests of blocks are made of their text
    metrics: tuple[str, ...] | None = field(default=None, repr=False)

    @property
    def planned_seeds(self) -> tuple[int, ...]:
        """The seeds of every planned look."""
        return self.all_seeds or self.seeds

    @property
    def count(self) -> int:
        """The number of runs."""
        return math.prod(map(len, (self.datasets, self.losses, self.batch_sizes, self.seeds)))

    def specs(self) -> Iterator[RunSpec]:
        """Yield the specification of every run."""
        for dataset, loss in itertools.product(self.datasets, self.losses):
            recipe = self.recipe_of(loss.name)
            for size, seed in itertools.product(self.batch_sizes, self.seeds):
                own = recipe
                if self.noise_square:
                    own = replace(recipe, seeds=square_seeds(seed, self.noise_square))
                yield RunSpec(dataset, self.setting, loss.choice, size, seed, own)

    def recipe_of(self, loss: str) -> Recipe:
        """Return what trains a loss (registry name): the recipe, in the precision of that loss.

        ``untrained`` has no epochs.
        """
        if loss == UNTRAINED:
            return recipe_without_training(self.recipe)
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

    budgets      numbers of trials whose best settings are compared, rising; the last was made
    final_seeds  seeds of the final runs, which no trial has
    blocks       the blocks as they were written, with the published settings
    """

    budgets: tuple[int, ...]
    folds: int
    final_seeds: tuple[int, ...]
    blocks: tuple[Block, ...]

    @property
    def choices(self) -> list[tuple[Block, str, int, str, int]]:
        """What is chosen: (block, dataset, batch size, loss, trials), of 0 trials as published."""
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
        """The number of final runs, before it is known which they are."""
        return len(self.choices) * len(self.final_seeds)


@dataclass(frozen=True)
class Study:
    """A study without problems. ``tables`` and ``figures`` are None when all are wanted."""

    name: str
    path: Path
    title: str
    question: str
    seeds: tuple[int, ...]
    blocks: tuple[Block, ...]
    metrics: tuple[str, ...]
    comparison: Comparison
    tables: tuple[str, ...] | None
    figures: tuple[str, ...] | None
    references: References
    resources: Resources
    digest: str = ""  # of the file and its recipes: derived files follow it
    trials: Trials | None = None  # the rules, where the blocks are trials
    instead: dict[str, str] = field(default_factory=dict)  # dataset -> recipe that trains on it
    # Planned looks (``benchmark.study.looks``): seeds of each, the present one, and all seeds.
    looks: tuple[int, ...] = ()
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
