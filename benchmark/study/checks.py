"""Everything that can be wrong with a study, and the study when nothing is.

All problems of single fields come at once, and without any, all problems across fields.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmark.core.errors import ConfigError, Problem, unknown_name
from benchmark.core.options import build, defaults_of, options_of, problems
from benchmark.core.recipe import UNTRAINED, Recipe, memory_problem
from benchmark.core.records import RESERVED, RESERVED_START, DatasetChoice, Setting
from benchmark.core.registry import registered_names
from benchmark.datasets import DATASETS, check_dataset_params, training_images
from benchmark.input import samplers
from benchmark.losses import catalogue
from benchmark.losses.catalogue import LossFacts
from benchmark.metrics.names import check_metric, metric_of
from benchmark.study.data_files import FINAL, TRIALS, field_folder, published_names
from benchmark.study.documents import Document
from benchmark.study.grid import conflicts, looks_problem
from benchmark.study.model import (
    Block,
    BlockFile,
    RecipeFile,
    Study,
    StudyFile,
    Variant,
)
from benchmark.study.recipes import merge, overlay, read_recipe, without_losses
from benchmark.study.trials import trial_problems, with_trials

TRIPLETS = "mined_triplets"  # the sampler of batches that are laid out as triplets
TABLE = "runs.csv"  # of frozen runs, beside their scores
MAX_RUNS = 100_000
registered_tables = partial(registered_names, "TABLES", "report/tables")
registered_figures = partial(registered_names, "FIGURES", "report/figures")


@dataclass(frozen=True)
class Known:
    """What is registered in this installation, plugins included, without importing torch.

    losses    {registry name: its facts and hyperparameters}
    datasets  {registry name: metric families it can give}
    """

    losses: dict[str, LossFacts]
    datasets: dict[str, tuple[str, ...]]


def load_known() -> Known:
    """Return what a study may name."""
    datasets = {entry.name: entry.target.metrics for entry in DATASETS}
    return Known(catalogue.load_catalogue(), datasets)


class Checker:
    """Reads a study document; ``study()`` returns it, or raises all problems as a ConfigError."""

    def __init__(self, document: Document, known: Known):
        self.document = document
        self.known = known
        self.problems = [document.locate(each) for each in problems(StudyFile, document.data)]
        self.raise_problems()
        self.file = build(StudyFile, document.data, str(document.path))
        self.recipes: dict[str, RecipeFile | None] = {}

    def raise_problems(self) -> None:
        """Raise ConfigError where there are problems."""
        if self.problems:
            raise ConfigError(str(self.document.path), self.problems)

    def add(self, key: str, message: str) -> None:
        """Note a problem of the value at ``key``; two blocks may have the same."""
        problem = self.document.locate(Problem(message, key))
        if problem not in self.problems:
            self.problems.append(problem)

    def named(self, key: str, kind: str, name: str, known: Iterable[str], more: str = "") -> bool:
        """Say whether a name is known, and note where it is not."""
        known = tuple(known)
        if name not in known:
            self.add(key, unknown_name(kind, name, known) + more)
        return name in known

    def study(self) -> Study:
        """Return the validated study; raise ConfigError naming all problems."""
        file, asked = self.file, {name for block in self.file.entries for name in block.losses}
        self.check_name()
        for number, metric in enumerate(file.metrics):
            if words := check_metric(metric):
                self.add(f"metrics.{number}", words)
        variants = self.variants(asked)
        blocks = [
            block
            for number, entry in enumerate(file.entries)
            for block in self.blocks(f"blocks.{number}", entry, variants)
        ]
        compared = {"baseline": file.comparison.baseline}
        for number, name in enumerate(file.comparison.ablation):
            compared[f"ablation.{number}"] = name
        words = " (only losses of this study's blocks can be compared)"
        for key, name in compared.items():
            self.named(f"comparison.{key}", "loss", name, asked, words)
        if problem := looks_problem(file.looks, len(file.seeds)):
            self.add("looks", problem)
        elif file.looks and file.rules:
            self.add("looks", "a study with rules takes one look: its settings are chosen once")
        self.check_references()
        runs = sum(block.count for block in blocks)
        if runs > MAX_RUNS:
            self.add("blocks", f"ask for {runs:,} runs (allowed: {MAX_RUNS:,}); divide the study")
        else:
            for message in conflicts(blocks):
                self.add("blocks", message)
        trials = None
        if file.rules is not None:
            for dataset, recipe in file.rules.instead.items():
                key = f"rules.instead.{dataset}"
                self.named(key, "dataset", dataset, self.known.datasets)
                self.recipe(recipe, key)
            self.raise_problems()
            blocks, trials = with_trials(blocks, file.rules, self.known.losses)
            for problem in trial_problems(blocks, self.known.losses):
                self.add("rules.trials", problem)
        self.raise_problems()
        resolved = [
            [
                asdict(block.recipe),
                [vars(loss) for loss in block.losses],
                *filter(None, [block.loss_precision]),
            ]
            for block in (trials.blocks if trials else blocks)
        ]
        resolved += [[block.overrides for block in blocks]] if trials else []
        content = json.dumps([self.document.data, resolved], sort_keys=True, default=str)
        digest = hashlib.sha256(content.encode()).hexdigest()[:16]
        path = self.document.path
        return Study(**vars(file), path=path, blocks=tuple(blocks), trials=trials, digest=digest)

    def check_name(self) -> None:
        """Check that the study's name is that of its file, and free in the folder of results."""
        stem = self.document.path.stem
        if self.file.name != stem:
            self.add("study", f"'{self.file.name}' must equal the file name, '{stem}'")
        if stem.lower() in RESERVED or stem.lower().startswith(RESERVED_START):
            self.add(
                "study",
                f"'{stem}' is the name of something else in the folder of results; choose another "
                f"(not allowed: {', '.join(RESERVED)}, {RESERVED_START}...)",
            )

    def variants(self, asked: set[str]) -> dict[str, Variant]:
        """Return the study's sound losses, and every registered loss at its defaults."""
        losses = self.known.losses
        result = {
            name: Variant(name, name, defaults_of(facts.config)) for name, facts in losses.items()
        }
        for label, entry in self.file.variants.items():
            key = f"losses.{label}"
            if label in losses:
                words = "is the name of a registered loss; give the variant a label of its own"
                self.add(key, words)
            elif label not in asked:
                words = "is defined, but no block asks for it; name it in a block or remove it"
                self.add(key, words)
            name = entry.get("loss", "")
            if not self.named(f"{key}.loss", "loss", name, losses):
                continue
            params = {key: value for key, value in entry.items() if key != "loss"}
            found = losses[name].problems(params, key)
            for problem in found:
                self.add(problem.key, problem.message)
            if not found and label not in losses:
                params = {**defaults_of(losses[name].config), **params}
                own = tuple(key for key in entry if key != "loss")
                result[label] = Variant(label, name, params, own)
        return result

    def check_references(self) -> None:
        """Check what the study refers to: tables, figures, published tables and frozen runs."""
        file, references = self.file, self.file.references
        for key, kind, names, known in (
            ("tables", "table", file.tables, registered_tables),
            ("figures", "figure", file.figures, registered_figures),
            ("references.published", "published table", references.published, published_names),
        ):
            for number, name in enumerate(names or ()):
                self.named(f"{key}.{number}", kind, name, known())
        problem, frozen = "", references.frozen or ""
        if os.path.isabs(frozen) or ".." in Path(frozen).parts:
            problem = "must be a path below the working directory"
        elif frozen and (frozen.endswith("/") or os.path.isdir(frozen)):
            problem = f"'{frozen}' is a folder, not the file that 'freeze' writes"
        if problem:
            example = f"results/reference/{file.name}.csv"
            self.add("references.frozen", f"{problem}; write a path such as {example}, or null")
        if references.field is not None:
            kinds = (TRIALS, FINAL) if file.rules else (FINAL,)
            tables = [field_folder(references.field, kind) / TABLE for kind in kinds]
            absent = [table for table in tables if not os.path.isfile(table)]
            if absent:
                self.add(
                    "references.field",
                    f"'{references.field}' holds no frozen runs: {absent[0]} is not there; name a "
                    "folder that 'python -m benchmark freeze STUDY --out FOLDER' wrote of a study "
                    "with rules, such as results/reference/reality_check, or null",
                )

    def recipe(self, name: str, key: str) -> RecipeFile | None:
        """Return the recipe ``name``; None, and its problems at ``key``, where it is unsound."""
        if name not in self.recipes:
            self.recipes[name] = None
            try:
                file = read_recipe(name, self.document.path)
                if found := self.loss_problems(file):
                    raise ConfigError(f"{name}.yaml", found)
                self.recipes[name] = file
            except ConfigError as error:
                for problem in error.problems:
                    self.add(key, f"{error.source}: {problem}")
        return self.recipes[name]

    def loss_problems(self, file: RecipeFile) -> list[Problem]:
        """Return what is wrong with the hyperparameters that a recipe gives to losses."""
        given: dict[str, dict[str, dict[str, Any]]] = {"losses": file.losses}
        given["loss_precision"] = {name: {} for name in file.loss_precision}
        for option, part in file.options.items():
            given[f"options.{option}.losses"] = part.get("losses", {})
        known, found = self.known.losses, []
        for key, losses in given.items():
            for name, params in losses.items():
                if name not in known:
                    found.append(Problem(unknown_name("loss", name, known), key))
                else:
                    found += known[name].problems(params, f"{key}.{name}")
        return found

    def blocks(self, key: str, entry: BlockFile, variants: Mapping[str, Variant]) -> list[Block]:
        """Return a block of the file, one for each of its recipes; leave out what is wrong."""
        earlier = self.file.entries[: int(key.rpartition(".")[2])]
        if entry.name in {each.name for each in earlier}:
            self.add(f"{key}.name", f"'{entry.name}' is used twice; block names are distinct")
        labels = [each.label for each in entry.choices]
        for number, label in enumerate(labels):
            if label in labels[:number]:
                words = f"label '{label}' is used twice; give one of them another label"
                self.add(f"{key}.datasets.{number}", words)
        if not isinstance(entry.recipe, str):
            for label in labels:
                if label not in entry.recipe:
                    self.add(f"{key}.recipe", f"names no recipe for dataset '{label}'; add one")
            for label in entry.recipe:
                self.named(f"{key}.recipe", "dataset of this block", label, labels)
        for number, label in enumerate(entry.losses):
            known = {**variants, **self.file.variants}
            self.named(f"{key}.losses.{number}", "loss", label, known)
        for number, metric in enumerate(entry.metrics or ()):
            self.named(f"{key}.metrics.{number}", "metric of this study", metric, self.file.metrics)
        losses = [variants[label] for label in entry.losses if label in variants]
        resolved = [
            self.block(key, entry, name, datasets, losses)
            for name, datasets in entry.recipes().items()
        ]
        return [block for block in resolved if block is not None]

    def block(
        self,
        key: str,
        entry: BlockFile,
        recipe_name: str,
        datasets: Sequence[DatasetChoice],
        losses: Sequence[Variant],
    ) -> Block | None:
        """Return one resolved block, or None when something in it is wrong."""
        before = len(self.problems)
        self.check_datasets(key, entry, datasets)
        file = self.recipe(recipe_name, f"{key}.recipe")
        if file is None or len(self.problems) > before:
            return None
        overrides = self.overrides(key, entry, file)
        try:
            recipe = overlay(file, without_losses(overrides))
        except ConfigError as error:
            above = f"{key}.override"
            self.problems += [self.document.locate(each, above) for each in error.problems]
            return None
        given = merge(file.losses, overrides.get("losses", {}))
        losses = [with_recipe(variant, given.get(variant.name, {})) for variant in losses]
        sizes = self.sizes(key, entry, datasets)
        self.check_sampler(key, recipe, entry)
        self.check_losses(key, recipe, losses)
        self.check_metrics(entry, recipe, datasets)
        seeds = self.file.seeds if entry.seeds is None else entry.seeds
        if entry.noise_square:
            seeds = tuple(range(entry.noise_square**2))
            if entry.seeds is not None:
                words = "has seeds of its own, the numbers of its runs; leave them out"
                self.add(f"{key}.noise_square", words)
        if len(self.problems) > before:
            return None
        own = {**file.resources, **entry.resources}
        return Block(
            name=entry.name,
            setting=Setting(file.label, entry.option_names),
            datasets=tuple(datasets),
            losses=tuple(losses),
            batch_sizes=tuple(sizes),
            seeds=seeds,
            recipe=recipe,
            overrides=overrides,
            resources=replace(self.file.resources, **own) if own else None,
            recipe_name=recipe_name,
            sources=file.sources,
            loss_precision=file.loss_precision,
            noise_square=entry.noise_square,
            metrics=entry.metrics,
        )

    def sizes(self, key: str, entry: BlockFile, datasets: Sequence[DatasetChoice]) -> list[int]:
        """Return the batch sizes as numbers: ``all`` is that of the block's training images."""
        sizes: dict[int, None] = {}
        for number, size in enumerate(entry.batch_sizes):
            if size == "all":
                found = {training_images(each.name, each.params) for each in datasets}
                images = found.pop() if len(found) == 1 else None
                if images is None:
                    labels = " and ".join(each.label for each in datasets)
                    self.add(
                        f"{key}.batch_sizes.{number}",
                        "'all' needs datasets of one published number of training images, and "
                        f"{labels} give none: name one dataset in the block, or give the number",
                    )
                    continue
                size = images
            sizes[size] = None
        return list(sizes)

    def overrides(self, key: str, entry: BlockFile, file: RecipeFile) -> dict[str, Any]:
        """Return what is laid over the recipe: its named options, then the block's own part."""
        names = entry.option_names
        chosen = [file.options[name] for name in names if name in file.options]
        own = "override" if entry.override else "noise_square" if entry.noise_square else ""
        if own and not names:
            words = "needs an 'option': a name that keeps these runs apart from the plain ones"
            self.add(f"{key}.{own}", words)
        if names and not chosen and not own:
            words = "needs an 'override': without one the runs equal the plain ones"
            if file.options:
                words += f"; options of recipe '{entry.recipe}': {', '.join(file.options)}"
            self.add(f"{key}.option", words)
        result: dict[str, Any] = {}
        for part in (*chosen, entry.override):
            result = merge(result, part)
        return result

    def check_datasets(self, key: str, entry: BlockFile, datasets: Sequence[DatasetChoice]) -> None:
        """Check that the runs can use, and train on, the datasets with these parameters."""
        for each in datasets:
            place = f"{key}.datasets.{entry.choices.index(each)}"
            if not self.named(place, "dataset", each.name, self.known.datasets):
                continue
            if entry.losses != (UNTRAINED,) and not DATASETS[each.name].target.trains:
                self.add(
                    place,
                    f"'{each.name}' has no training images; name the dataset to train on (sfm120k "
                    f"is evaluated on landmark sets), or the only loss '{UNTRAINED}'",
                )
            for problem in check_dataset_params(each.name, each.params):
                self.add(f"{place}.params", f"{problem.key}  {problem.message}".strip())

    def check_sampler(self, key: str, recipe: Recipe, entry: BlockFile) -> None:
        """Check the sampler's name and parameters, and each batch size against them."""
        name, params = recipe.sampler.name, recipe.sampler.params
        if self.named(f"{key}.recipe", "sampler", name, samplers.SAMPLERS.names()):
            for size in entry.batch_sizes:
                if size == "all":  # it leaves the sampler nothing to choose
                    continue
                for problem in samplers.check(name, params, size):
                    self.add(f"{key}.batch_sizes", str(problem))

    def check_losses(self, key: str, recipe: Recipe, losses: Sequence[Variant]) -> None:
        """Check that each loss has its options, can rank the memory, and gets its batches."""
        for loss in losses:
            facts = self.known.losses[loss.name]
            ranks = facts.takes_references(loss.params)
            if words := memory_problem(recipe, loss.name, ranks):
                self.add(f"{key}.losses", words)
            if facts.kind == "triplets" and recipe.sampler.name != TRIPLETS:
                words = f"'{loss.name}' needs the sampler '{TRIPLETS}', not '{recipe.sampler.name}'"
                self.add(f"{key}.losses", words)
            for name in options_of(facts.config):
                if name not in loss.params:
                    words = f"'{loss.label}' needs the option '{name}', which has no default; give "
                    words += "it with the loss under 'losses' of the study, or of the recipe"
                    self.add(f"{key}.losses", words)

    def check_metrics(
        self, entry: BlockFile, recipe: Recipe, datasets: Sequence[DatasetChoice]
    ) -> None:
        """Check that every metric is measured by the recipe and given by the datasets."""
        for number, metric in enumerate(self.file.metrics):
            if check_metric(metric) or (entry.metrics is not None and metric not in entry.metrics):
                continue
            k = metric.removeprefix("recall_at_")
            if k != metric and int(k) not in recipe.evaluation.recall_at:
                words = f"the evaluation.recall_at of its recipe is {recipe.evaluation.recall_at}"
                words = f"'{metric}' is not measured in block '{entry.name}': {words}"
                self.add(f"metrics.{number}", words)
                continue
            for choice in datasets:
                families, measured = self.known.datasets[choice.name], metric_of(metric)
                if measured is None or measured.family not in families:
                    words = f"dataset '{choice.label}' cannot give '{metric}'; it gives: "
                    self.add(f"metrics.{number}", words + ", ".join(families))


def with_recipe(variant: Variant, given: dict[str, Any]) -> Variant:
    """Return ``variant`` with the recipe's hyperparameters wherever it sets none of its own."""
    taken = {key: value for key, value in given.items() if key not in variant.own}
    return replace(variant, params={**variant.params, **taken}, recipe=taken)
