"""A study by its name or path: everything that can be wrong with it, and itself if nothing is.

All problems of single fields come at once, and without any, all problems across fields.
"""

import difflib
import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from functools import partial, reduce
from math import inf
from pathlib import Path
from typing import Any

from benchmark.core.documents import Document, nearest_file, read_document
from benchmark.core.errors import ConfigError, Problem, unknown_name
from benchmark.core.options import build, defaults_of, options_of
from benchmark.core.recipe import UNTRAINED, Recipe, memory_problem
from benchmark.core.records import RESERVED, RESERVED_START, DatasetChoice, Setting
from benchmark.core.registry import names_of_parts
from benchmark.datasets import DATASETS, check_dataset_params, training_images
from benchmark.input import samplers
from benchmark.losses.catalogue import load_catalogue
from benchmark.metrics.metric import check_metric, k_of, metric_of
from benchmark.study.data_files import FINAL, TRIALS, field_folder, published_names
from benchmark.study.grid import at_look, conflicts, look_state, looks_problem
from benchmark.study.model import (
    JOINT,
    ROOT,
    Block,
    BlockFile,
    RecipeFile,
    Study,
    StudyFile,
    Variant,
    base_of,
    name_on,
)
from benchmark.study.recipes import merge, overlay, read_recipe, without_losses
from benchmark.study.trials import trial_problems, with_trials

TRIPLETS = "mined_triplets"  # the sampler of batches that are laid out as triplets
TABLE = "runs.csv"  # of frozen runs, beside their scores
MAX_RUNS = 100_000


def config_folders() -> list[Path]:
    """Return where studies are found by name: below the current folder, then in the repository."""
    folders = [Path("workflow") / "config", ROOT / "workflow" / "config"]
    return folders[:1] if folders[0].resolve() == folders[1] else folders


def find_study(path_or_name: str | Path) -> Path:
    """Return the path of a study file; a name without folder or suffix is a shipped study.

    A study on another dataset (``reality_check-on-sop``) has no file: its path is that of its
    study, with its own name.
    """
    text = str(path_or_name)
    if text.endswith((".yaml", ".yml")) or "/" in text:
        if not Path(text).is_file() and not Path(base_of(text)).is_file():
            beside = [file.name for file in Path(text).parent.glob("*.y*ml")]
            close = difflib.get_close_matches(Path(text).name, beside, n=1, cutoff=0.5)
            hint = f"did you mean {Path(text).parent / close[0]}? Otherwise " if close else ""
            words = f"no such study file; {hint}give a path, or one of: {', '.join(study_names())}"
            raise ConfigError(text, [words])
        return Path(text)
    for name in filter(None, (text, base_of(text))):
        for folder in config_folders():
            if (folder / f"{name}.yaml").is_file():
                return folder / f"{text}.yaml"
    problem = nearest_file("study", text, config_folders())
    if Path(f"{text}.yaml").is_file():
        problem += f"; to use the file here, give its path: {text}.yaml"
    raise ConfigError("study", [problem])


def study_names() -> list[str]:
    """Return the names of the studies that can be asked for by name."""
    return sorted({path.stem for folder in config_folders() for path in folder.glob("*.yaml")})


def load_study(path_or_name: str | Path, results: Path | None = None) -> Study:
    """Return a validated study; raise one ConfigError with all its problems.

    A study that plans looks has the seeds of the look that its folder below ``results`` says, or
    of the first.

    ``NAME-on-DATASET`` is the study NAME on another dataset that its rules allow. Nothing here
    imports torch, unless a plugin does: losses are known through their Configs, the rest through
    registries.
    """
    path = find_study(path_or_name)
    if path.is_file():
        study = Checker(read_document(path)).study()
        return at_look(study, look_state(study.folder(results))["look"] if results else 1)
    document, dataset = read_document(Path(base_of(str(path)))), path.stem.rpartition(JOINT)[2]
    rules, data = Checker(document).study().rules, document.data
    instead = rules.instead if rules else {}
    if dataset not in instead:
        words = unknown_name("dataset of rules.instead", dataset, instead)
        raise ConfigError(f"{document.path} on {dataset}", [words])
    on_it = {"datasets": [dataset], "recipe": instead[dataset]}
    changed = {
        "study": name_on(data["study"], dataset),
        "blocks": [{**block, **on_it} for block in data["blocks"]],
        "resources": data.get("resources", {}) | data["rules"].get("instead_resources", {}),
    }
    path = Path(name_on(document.path, dataset))
    return Checker(replace(document, path=path, data=data | changed)).study()


class Checker:
    """Reads a study document; ``study()`` returns it, or raises all problems as a ConfigError."""

    def __init__(self, document: Document):
        self.document, self.losses = document, load_catalogue()
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

    def add(self, key: str, message: object) -> None:
        """Note a problem of the value at ``key``, once; a ``message`` that is no text is none."""
        problem = self.document.locate(Problem(str(message), key))
        if message and isinstance(message, str) and problem not in self.problems:
            self.problems.append(problem)

    def named(self, key: str, kind: str, name: str, known: Iterable[str]) -> bool:
        """Say whether a name is known, and note where it is not."""
        known = tuple(known)
        self.add(key, name not in known and unknown_name(kind, name, known))
        return name in known

    def study(self) -> Study:
        """Return the validated study; raise ConfigError naming all problems."""
        file, path = self.file, self.document.path
        stem, trials = path.stem, None
        self.add("study", file.name != stem and f"'{file.name}' must equal the file name, '{stem}'")
        self.add(
            "study",
            (stem.lower() in RESERVED or stem.lower().startswith(RESERVED_START))
            and f"'{stem}' is the name of something else in the folder of results; choose another "
            f"(not allowed: {', '.join(RESERVED)}, {RESERVED_START}...)",
        )
        for number, metric in enumerate(file.metrics):
            self.add(f"metrics.{number}", check_metric(metric))
        blocks = self.blocks()
        self.check_references()
        runs = sum(block.count for block in blocks)
        words = f"ask for {runs:,} runs (allowed: {MAX_RUNS:,}); divide the study"
        for message in conflicts(blocks) if runs <= MAX_RUNS else [words]:
            self.add("blocks", message)
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
        return Study(**vars(file), path=path, blocks=tuple(blocks), trials=trials, digest=digest)

    def variants(self, asked: set[str]) -> dict[str, Variant]:
        """Return the study's valid losses, and every registered loss at its defaults."""
        losses = self.losses
        result = {
            name: Variant(name, name, defaults_of(facts.config)) for name, facts in losses.items()
        }
        unused = "is defined, but no block uses it; name it in a block or remove it"
        taken = "is the name of a registered loss; give the variant a label of its own"
        for label, entry in self.file.variants.items():
            key, name = f"losses.{label}", entry.get("loss", "")
            self.add(key, taken if label in losses else label not in asked and unused)
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
        file, references, compared = self.file, self.file.references, self.file.comparison
        asked = {name for block in file.entries for name in block.losses}
        self.named("comparison.baseline", "loss of this study", compared.baseline, asked)
        for number, name in enumerate(compared.ablation):
            self.named(f"comparison.ablation.{number}", "loss of this study", name, asked)
        once = "a study with rules takes one look: its settings are chosen once"
        problem = looks_problem(file.looks, len(file.seeds))
        self.add("looks", problem or (file.looks and file.rules and once))
        for key, kind, names, known in (
            ("tables", "table", file.tables, partial(names_of_parts, "table")),
            ("figures", "figure", file.figures, partial(names_of_parts, "figure")),
            ("references.published", "published table", references.published, published_names),
        ):
            for number, name in enumerate(names or ()):
                self.named(f"{key}.{number}", kind, name, known())
        problem, frozen = "", references.frozen or ""
        if os.path.isabs(frozen) or ".." in Path(frozen).parts:
            problem = "must be a path below the working directory"
        elif frozen and (frozen.endswith("/") or os.path.isdir(frozen)):
            problem = f"'{frozen}' is a folder, not the file that 'freeze' writes"
        example = f"results/reference/{file.name}.csv"
        advice = f"{problem}; write a path such as {example}, or null"
        self.add("references.frozen", problem and advice)
        if references.field is not None:
            kinds = (TRIALS, FINAL) if file.rules else (FINAL,)
            tables = [field_folder(references.field, kind) / TABLE for kind in kinds]
            missing = [table for table in tables if not os.path.isfile(table)]
            self.add(
                "references.field",
                missing != []
                and f"'{references.field}' has no frozen runs: {missing[0]} is not there; name a "
                "folder that 'python -m benchmark freeze STUDY --out FOLDER' wrote of a study with "
                "rules, such as results/reference/reality_check, or null",
            )

    def recipe(self, name: str, key: str) -> RecipeFile | None:
        """Return the recipe ``name``; None, and its problems at ``key``, where it is unsound."""
        if name in self.recipes:
            return self.recipes[name]
        self.recipes[name] = None
        try:
            file, found = read_recipe(name, self.document.path), list[Problem]()
            given: dict[str, dict[str, dict[str, Any]]] = {
                "losses": file.losses,
                "loss_precision": {loss: {} for loss in file.loss_precision},
            }
            for option, part in file.options.items():
                given[f"options.{option}.losses"] = part.get("losses", {})
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
        file, names, found = self.file, [entry.name for entry in self.file.entries], []
        variants = self.variants({name for block in file.entries for name in block.losses})
        twice = "is used twice"
        for place, entry in enumerate(file.entries):
            key, labels = f"blocks.{place}", [each.label for each in entry.choices]
            again = entry.name in names[:place]
            self.add(f"{key}.name", again and f"'{entry.name}' {twice}; block names are distinct")
            for number, label in enumerate(labels):
                words = f"label '{label}' {twice}; give one of them another label"
                self.add(f"{key}.datasets.{number}", label in labels[:number] and words)
            recipes = entry.recipe
            recipes = dict.fromkeys(labels, recipes) if isinstance(recipes, str) else recipes
            for label in labels:
                words = f"names no recipe for dataset '{label}'; add one"
                self.add(f"{key}.recipe", label not in recipes and words)
            for label in recipes:
                self.named(f"{key}.recipe", "dataset of this block", label, labels)
            for number, label in enumerate(entry.losses):
                self.named(f"{key}.losses.{number}", "loss", label, {**variants, **file.variants})
            for number, metric in enumerate(entry.metrics or ()):
                self.named(f"{key}.metrics.{number}", "metric of this study", metric, file.metrics)
            losses = [variants[label] for label in entry.losses if label in variants]
            for recipe in dict.fromkeys(recipes[label] for label in labels if label in recipes):
                datasets = [each for each in entry.choices if recipes.get(each.label) == recipe]
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
        self.check_packed(key, entry, recipe, datasets)
        self.check_recipe(key, entry, recipe, completed)
        self.check_metrics(entry, recipe, datasets)
        square, words = entry.noise_square, "has seeds of its own, the numbers of its runs; "
        self.add(f"{key}.noise_square", square and entry.seeds and f"{words}leave them out")
        if len(self.problems) > before:
            return None
        own = {**file.resources, **entry.resources}
        return Block(
            name=entry.name,
            setting=Setting(file.label, entry.option_names),
            datasets=tuple(datasets),
            losses=tuple(completed),
            batch_sizes=tuple(sizes),
            seeds=tuple(range(square**2)) if square else entry.seeds or self.file.seeds,
            recipe=recipe,
            overrides=overrides,
            resources=replace(self.file.resources, **own) if own else None,
            recipe_name=recipe_name,
            file=file,
            sources=file.sources,
            loss_precision=file.loss_precision,
            noise_square=square,
            metrics=entry.metrics,
        )

    def sizes(self, key: str, entry: BlockFile, datasets: Sequence[DatasetChoice]) -> list[int]:
        """Return the batch sizes as numbers: ``all`` is that of the block's training images."""
        sizes: dict[int, None] = {}
        labels = " and ".join(each.label for each in datasets)
        for number, size in enumerate(entry.batch_sizes):
            if size == "all":
                counts = {training_images(each.name, each.params) for each in datasets}
                size = (counts.pop() if len(counts) == 1 else None) or 0
            sizes[size] = None
            self.add(
                f"{key}.batch_sizes.{number}",
                not size
                and "'all' needs datasets of one published number of training images, and "
                f"{labels} give none: name one dataset in the block, or give the number",
            )
        return list(sizes)

    def overrides(self, key: str, entry: BlockFile, file: RecipeFile) -> dict[str, Any]:
        """Return what is laid over the recipe: its named options, then the block's own part."""
        names = entry.option_names
        chosen = [file.options[name] for name in names if name in file.options]
        own = "override" if entry.override else "noise_square" if entry.noise_square else ""
        words = "needs an 'option': a name that keeps these runs apart from the plain ones"
        self.add(f"{key}.{own}", own and not names and words)
        words = "needs an 'override': without one the runs equal the plain ones"
        if file.options:
            words += f"; options of recipe '{entry.recipe}': {', '.join(file.options)}"
        self.add(f"{key}.option", names and not chosen and not own and words)
        return reduce(merge, (*chosen, entry.override), {})

    def check_datasets(self, key: str, entry: BlockFile, datasets: Sequence[DatasetChoice]) -> None:
        """Check that the runs can use, and train on, the datasets with these parameters."""
        for each in datasets:
            place = f"{key}.datasets.{entry.choices.index(each)}"
            if not self.named(place, "dataset", each.name, DATASETS.names()):
                continue
            self.add(
                place,
                entry.losses != (UNTRAINED,)
                and not DATASETS[each.name].target.trains
                and f"'{each.name}' has no training images; name the dataset to train on (sfm120k "
                f"is evaluated on landmark sets), or the only loss '{UNTRAINED}'",
            )
            for problem in check_dataset_params(each.name, each.params):
                self.add(f"{place}.params", f"{problem.key}  {problem.message}".strip())

    def check_packed(
        self, key: str, entry: BlockFile, recipe: Recipe, datasets: Sequence[DatasetChoice]
    ) -> None:
        """Check that no packed copy changes what training crops are taken from."""
        for each in datasets if recipe.input.train_resize == "none" else ():
            side, largest = each.params.get("packed"), DATASETS[each.name].target.largest_side
            give = f"at least {largest}, or null" if largest else "null"
            self.add(
                f"{key}.datasets.{entry.choices.index(each)}.params.packed",
                side is not None
                and side < (largest or inf)
                and f"{side} would change the crops of the recipe, which takes them from the "
                f"original images (input.train_resize: none); give {give}",
            )

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
            facts, place = self.losses[loss.name], f"{key}.losses"
            self.add(place, memory_problem(recipe, loss.name, facts.takes_references(loss.params)))
            words = f"'{loss.name}' needs the sampler '{TRIPLETS}', not '{name}'"
            self.add(place, facts.kind == "triplets" and name != TRIPLETS and words)
            for option in options_of(facts.config):
                words = f"'{loss.label}' needs the option '{option}', which has no default; give "
                words += "it with the loss under 'losses' of the study, or of the recipe"
                self.add(place, option not in loss.params and words)

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
