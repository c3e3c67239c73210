"""Everything that can be wrong with a study, and the study when nothing is.

All problems of single fields come at once, and without any, all problems across fields.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmark.core.documents import Document
from benchmark.core.errors import ConfigError, Problem, unknown_name
from benchmark.core.options import build, defaults_of, options_of
from benchmark.core.recipe import UNTRAINED, Recipe, memory_problem
from benchmark.core.records import RESERVED, RESERVED_START, DatasetChoice, Setting
from benchmark.core.registry import registered_names
from benchmark.datasets import DATASETS, check_dataset_params, training_images
from benchmark.input import samplers
from benchmark.losses.catalogue import LossFacts
from benchmark.metrics.metric import check_metric, k_of, metric_of
from benchmark.study.data_files import FINAL, TRIALS, field_folder, published_names
from benchmark.study.grid import conflicts, looks_problem
from benchmark.study.model import Block, BlockFile, RecipeFile, Study, StudyFile, Variant
from benchmark.study.recipes import merge, overlay, read_recipe, without_losses
from benchmark.study.trials import trial_problems, with_trials

TRIPLETS = "mined_triplets"  # the sampler of batches that are laid out as triplets
TABLE = "runs.csv"  # of frozen runs, beside their scores
MAX_RUNS = 100_000


class Checker:
    """Reads a study document; ``study()`` returns it, or raises all problems as a ConfigError.

    ``losses`` are the facts of every registered loss, plugins included.
    """

    def __init__(self, document: Document, losses: Mapping[str, LossFacts]):
        self.document = document
        self.losses = losses
        self.problems: list[Problem] = []
        self.recipes: dict[str, RecipeFile | None] = {}
        try:
            self.file = build(StudyFile, document.data, str(document.path))
        except ConfigError as error:
            raise ConfigError(error.source, map(document.locate, error.problems)) from error

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
        file, stem = self.file, self.document.path.stem
        if file.name != stem:
            self.add("study", f"'{file.name}' must equal the file name, '{stem}'")
        if stem.lower() in RESERVED or stem.lower().startswith(RESERVED_START):
            self.add(
                "study",
                f"'{stem}' is the name of something else in the folder of results; choose another "
                f"(not allowed: {', '.join(RESERVED)}, {RESERVED_START}...)",
            )
        for number, metric in enumerate(file.metrics):
            if words := check_metric(metric):
                self.add(f"metrics.{number}", words)
        blocks = self.blocks()
        self.check_references()
        if sum(block.count for block in blocks) > MAX_RUNS:
            runs = sum(block.count for block in blocks)
            self.add("blocks", f"ask for {runs:,} runs (allowed: {MAX_RUNS:,}); divide the study")
        else:
            for message in conflicts(blocks):
                self.add("blocks", message)
        trials = None
        if file.rules is not None:
            for dataset, recipe in file.rules.instead.items():
                key = f"rules.instead.{dataset}"
                self.named(key, "dataset", dataset, DATASETS.names())
                self.recipe(recipe, key)
            self.raise_problems()
            blocks, trials = with_trials(blocks, file.rules, self.losses)
            for problem in trial_problems(blocks, self.losses):
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

    def variants(self, asked: set[str]) -> dict[str, Variant]:
        """Return the study's valid losses, and every registered loss at its defaults."""
        losses = self.losses
        result = {
            name: Variant(name, name, defaults_of(facts.config)) for name, facts in losses.items()
        }
        for label, entry in self.file.variants.items():
            key = f"losses.{label}"
            if label in losses:
                words = "is the name of a registered loss; give the variant a label of its own"
                self.add(key, words)
            elif label not in asked:
                words = "is defined, but no block uses it; name it in a block or remove it"
                self.add(key, words)
            name = entry.get("loss", "")
            if not self.named(f"{key}.loss", "loss", name, losses):
                continue
            own = {option: value for option, value in entry.items() if option != "loss"}
            found = losses[name].problems(own, key)
            for problem in found:
                self.add(problem.key, problem.message)
            if not found and label not in losses:
                params = {**defaults_of(losses[name].config), **own}
                result[label] = Variant(label, name, params, tuple(own))
        return result

    def check_references(self) -> None:
        """Check what the study compares, when it looks, and what it refers to."""
        file, references = self.file, self.file.references
        asked = {name for block in file.entries for name in block.losses}
        compared = {"baseline": file.comparison.baseline}
        compared |= {f"ablation.{n}": name for n, name in enumerate(file.comparison.ablation)}
        words = " (only losses of this study's blocks can be compared)"
        for key, name in compared.items():
            self.named(f"comparison.{key}", "loss", name, asked, words)
        if problem := looks_problem(file.looks, len(file.seeds)):
            self.add("looks", problem)
        elif file.looks and file.rules:
            self.add("looks", "a study with rules takes one look: its settings are chosen once")
        for key, kind, names, known in (
            ("tables", "table", file.tables, partial(registered_names, "TABLES")),
            ("figures", "figure", file.figures, partial(registered_names, "FIGURES")),
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
        kinds = (TRIALS, FINAL) if file.rules else (FINAL,)
        for kind in kinds if references.field is not None else ():
            table = field_folder(references.field, kind) / TABLE
            if not os.path.isfile(table):
                self.add(
                    "references.field",
                    f"'{references.field}' has no frozen runs: {table} is not there; name a "
                    "folder that 'python -m benchmark freeze STUDY --out FOLDER' wrote of a study "
                    "with rules, such as results/reference/reality_check, or null",
                )
                break

    def recipe(self, name: str, key: str) -> RecipeFile | None:
        """Return the recipe ``name``; None, and its problems at ``key``, where it is unsound."""
        if name in self.recipes:
            return self.recipes[name]
        self.recipes[name] = None
        try:
            file = read_recipe(name, self.document.path)
            given: dict[str, dict[str, dict[str, Any]]] = {"losses": file.losses}
            given["loss_precision"] = {loss: {} for loss in file.loss_precision}
            for option, part in file.options.items():
                given[f"options.{option}.losses"] = part.get("losses", {})
            found = []
            for place, losses in given.items():
                for loss, params in losses.items():
                    if loss in self.losses:
                        found += self.losses[loss].problems(params, f"{place}.{loss}")
                    else:
                        found.append(Problem(unknown_name("loss", loss, self.losses), place))
            if found:
                raise ConfigError(f"{name}.yaml", found)
            self.recipes[name] = file
        except ConfigError as error:
            for problem in error.problems:
                self.add(key, f"{error.source}: {problem}")
        return self.recipes[name]

    def blocks(self) -> list[Block]:
        """Return the blocks of the file, each once for each of its recipes, without wrong ones."""
        file, names, found = self.file, set[str](), []
        variants = self.variants({name for block in file.entries for name in block.losses})
        for place, entry in enumerate(file.entries):
            key = f"blocks.{place}"
            if entry.name in names:
                self.add(f"{key}.name", f"'{entry.name}' is used twice; block names are distinct")
            names.add(entry.name)
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
                self.named(f"{key}.losses.{number}", "loss", label, {**variants, **file.variants})
            for number, metric in enumerate(entry.metrics or ()):
                self.named(f"{key}.metrics.{number}", "metric of this study", metric, file.metrics)
            losses = [variants[label] for label in entry.losses if label in variants]
            for recipe, datasets in entry.recipes().items():
                found.append(self.block(key, entry, recipe, datasets, losses))
        return [block for block in found if block is not None]

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
        given, completed = merge(file.losses, overrides.get("losses", {})), []
        for loss in losses:  # the recipe's hyperparameters wherever the study sets none
            more = {k: v for k, v in given.get(loss.name, {}).items() if k not in loss.own}
            completed.append(replace(loss, params={**loss.params, **more}, recipe=more))
        sizes = self.sizes(key, entry, datasets)
        self.check_recipe(key, entry, recipe, completed)
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
            losses=tuple(completed),
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
            if not self.named(place, "dataset", each.name, DATASETS.names()):
                continue
            if entry.losses != (UNTRAINED,) and not DATASETS[each.name].target.trains:
                self.add(
                    place,
                    f"'{each.name}' has no training images; name the dataset to train on (sfm120k "
                    f"is evaluated on landmark sets), or the only loss '{UNTRAINED}'",
                )
            for problem in check_dataset_params(each.name, each.params):
                self.add(f"{place}.params", f"{problem.key}  {problem.message}".strip())

    def check_recipe(
        self, key: str, entry: BlockFile, recipe: Recipe, losses: Sequence[Variant]
    ) -> None:
        """Check the sampler at each batch size, and that each loss gets what it needs."""
        name, params = recipe.sampler.name, recipe.sampler.params
        if self.named(f"{key}.recipe", "sampler", name, samplers.SAMPLERS.names()):
            for size in entry.batch_sizes:
                # all images leave the sampler nothing to choose
                for problem in () if size == "all" else samplers.check(name, params, size):
                    self.add(f"{key}.batch_sizes", str(problem))
        for loss in losses:
            facts = self.losses[loss.name]
            if words := memory_problem(recipe, loss.name, facts.takes_references(loss.params)):
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
            if (k := k_of(metric)) and k not in recipe.evaluation.recall_at:
                words = f"the evaluation.recall_at of its recipe is {recipe.evaluation.recall_at}"
                words = f"'{metric}' is not measured in block '{entry.name}': {words}"
                self.add(f"metrics.{number}", words)
                continue
            for choice in datasets:
                families, measured = DATASETS[choice.name].target.metrics, metric_of(metric)
                if measured is None or measured.family not in families:
                    words = f"dataset '{choice.label}' cannot give '{metric}'; it gives: "
                    self.add(f"metrics.{number}", words + ", ".join(families))
