"""A study by its name or path: everything that can be wrong with it, and itself if nothing is.

All problems of single fields come at once, and without any, all problems across fields.
"""

import difflib
import hashlib
import json
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import reduce
from math import inf
from pathlib import Path
from typing import Any

from benchmark.core.documents import Document, nearest_file, read_document
from benchmark.core.errors import ConfigError, Problem, unknown, unknown_name
from benchmark.core.options import build, defaults_of, options_of
from benchmark.core.recipe import UNTRAINED, Recipe, memory_problem
from benchmark.core.records import RESERVED, RESERVED_START, DatasetChoice, Setting
from benchmark.core.registry import names_of_parts
from benchmark.datasets import DATASETS, check_dataset_params, training_images
from benchmark.input import samplers
from benchmark.losses.catalogue import load_catalogue
from benchmark.metrics.metric import check_metric, k_of, metric_of
from benchmark.study.data_files import FINAL, TRIALS, field_folder, published_names
from benchmark.study.grid import at_look, conflicts, look_state
from benchmark.study.model import (
    JOINT,
    ROOT,
    Block,
    BlockFile,
    RecipeFile,
    Study,
    StudyFile,
    Trials,
    Variant,
    base_of,
    name_on,
    unknowns,
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
    document = read_document(Path(base_of(str(path))))
    dataset = path.stem.rpartition(JOINT)[2]
    rules = Checker(document).study().rules
    data = document.data
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
    """Reads a study document; ``study()`` returns it, or raises all problems as a ConfigError.

    What the file alone can tell is told by its models (``StudyFile.problems``); what recipes,
    datasets, losses and other files tell, here.
    """

    def __init__(self, document: Document):
        self.document = document
        self.losses = load_catalogue()
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

    def add_all(self, found: Iterable[Problem], above: str = "") -> bool:
        """Note problems of values below ``above``, each once; say whether there are any."""
        located = [self.document.locate(problem, above) for problem in found]
        self.problems += [problem for problem in located if problem not in self.problems]
        return bool(located)

    def add(self, key: str, code: str, message: str) -> None:
        """Note a problem of the value at ``key``."""
        self.add_all([Problem(message, key, code=code)])

    def named(self, key: str, kind: str, name: str, known: Collection[str]) -> bool:
        """Say whether a name is known, and note where it is not."""
        return not self.add_all(unknown(key, kind, [name], known))

    def study(self) -> Study:
        """Return the validated study; raise ConfigError naming all problems."""
        file = self.file
        path = self.document.path
        trials = None
        self.add_all(name_problems(file.name, path.stem))
        blocks = self.blocks()
        self.add_all(file.problems())
        self.add_all(self.names_of_others())
        self.add_all(overlaps(blocks))
        if file.rules is not None:
            for dataset, recipe in file.rules.instead.items():
                key = f"rules.instead.{dataset}"
                self.named(key, "dataset", dataset, DATASETS.names())
                self.recipe(recipe, key)
            self.raise_problems()
            blocks, trials = with_trials(blocks, file.rules, self.losses)
            for words in trial_problems(blocks, self.losses):
                self.add("rules.trials", "wrong_trial", words)
        self.raise_problems()
        digest = digest_of(self.document, blocks, trials)
        return Study(**vars(file), path=path, blocks=tuple(blocks), trials=trials, digest=digest)

    def variants(self) -> dict[str, Variant]:
        """Return the study's valid losses, and every registered loss at its defaults."""
        result = {
            name: Variant(name, name, defaults_of(facts.config))
            for name, facts in self.losses.items()
        }
        for label, entry in self.file.variants.items():
            key = f"losses.{label}"
            name = entry.get("loss", "")
            if label in self.losses:
                words = "is the name of a registered loss; give the variant a label of its own"
                self.add(key, "taken", words)
            elif label not in self.file.asked_losses:
                words = "is defined, but no block uses it; name it in a block or remove it"
                self.add(key, "unused", words)
            if not self.named(f"{key}.loss", "loss", name, self.losses):
                continue
            own = {option: value for option, value in entry.items() if option != "loss"}
            if not self.add_all(self.losses[name].problems(own, key)) and label not in self.losses:
                params = {**defaults_of(self.losses[name].config), **own}
                result[label] = Variant(label, name, params, tuple(own))
        return result

    def names_of_others(self) -> Iterator[Problem]:
        """Yield the tables, figures, published tables and frozen runs that are not there."""
        file = self.file
        if file.tables:
            yield from unknowns("tables", "table", file.tables, names_of_parts("table"))
        if file.figures:
            yield from unknowns("figures", "figure", file.figures, names_of_parts("figure"))
        published = file.references.published
        if published:
            key = "references.published"
            yield from unknowns(key, "published table", published, published_names())
        field = file.references.field
        if field is not None:
            kinds = (TRIALS, FINAL) if file.rules else (FINAL,)
            tables = [field_folder(field, kind) / TABLE for kind in kinds]
            missing = [table for table in tables if not os.path.isfile(table)]
            if missing:
                yield Problem(
                    f"'{field}' has no frozen runs: {missing[0]} is not there; name a folder that "
                    "'python -m benchmark freeze STUDY --out FOLDER' wrote of a study with rules, "
                    "such as results/reference/reality_check, or null",
                    "references.field",
                    code="missing_file",
                )

    def recipe(self, name: str, key: str) -> RecipeFile | None:
        """Return the recipe ``name``; None, and its problems at ``key``, where it is unsound."""
        if name in self.recipes:
            return self.recipes[name]
        self.recipes[name] = None
        try:
            file = read_recipe(name, self.document.path)
            if found := [*self.losses_of(file)]:
                raise ConfigError(f"{name}.yaml", found)
            self.recipes[name] = file
        except ConfigError as error:
            for problem in error.problems:
                self.add(key, problem.code, f"{error.source}: {problem}")
        return self.recipes[name]

    def losses_of(self, file: RecipeFile) -> Iterator[Problem]:
        """Yield what is wrong with the losses that a recipe and its options name."""
        given: dict[str, dict[str, dict[str, Any]]] = {
            "losses": file.losses,
            "loss_precision": {loss: {} for loss in file.loss_precision},
        }
        for option, part in file.options.items():
            given[f"options.{option}.losses"] = part.get("losses", {})
        for place, losses in given.items():
            for loss, params in losses.items():
                if loss in self.losses:
                    yield from self.losses[loss].problems(params, f"{place}.{loss}")
                else:
                    yield from unknown(place, "loss", [loss], self.losses)

    def blocks(self) -> list[Block]:
        """Return the blocks of the file, each once for each of its recipes, without wrong ones."""
        found = []
        variants = self.variants()
        known = {**variants, **self.file.variants}
        for place, entry in enumerate(self.file.entries):
            key = f"blocks.{place}"
            self.add_all(unknowns(f"{key}.losses", "loss", entry.losses, known))
            losses = [variants[label] for label in entry.losses if label in variants]
            for recipe, datasets in entry.datasets_of_recipes.items():
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
            self.add_all(error.problems, f"{key}.override")
            return None
        given = merge(file.losses, overrides.get("losses", {}))
        completed = []
        for loss in losses:  # the recipe's hyperparameters wherever the study sets none
            more = {k: v for k, v in given.get(loss.name, {}).items() if k not in loss.own}
            completed.append(replace(loss, params={**loss.params, **more}, recipe=more))
        sizes = self.sizes(key, entry, datasets)
        self.check_packed(key, entry, recipe, datasets)
        self.check_recipe(key, entry, recipe, completed)
        self.check_metrics(entry, recipe, datasets)
        square = entry.noise_square
        if square and entry.seeds:
            words = "has seeds of its own, the numbers of its runs; leave them out"
            self.add(f"{key}.noise_square", "has_seeds", words)
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
        for number, size in enumerate(entry.batch_sizes):
            if size == "all":
                counts = {training_images(each.name, each.params) for each in datasets}
                size = (counts.pop() if len(counts) == 1 else None) or 0
            sizes[size] = None
            if not size:
                labels = " and ".join(each.label for each in datasets)
                words = (
                    "'all' needs datasets of one published number of training images, and "
                    f"{labels} give none: name one dataset in the block, or give the number"
                )
                self.add(f"{key}.batch_sizes.{number}", "unknown_size", words)
        return list(sizes)

    def overrides(self, key: str, entry: BlockFile, file: RecipeFile) -> dict[str, Any]:
        """Return what is laid over the recipe: its named options, then the block's own part."""
        names = entry.option_names
        chosen = [file.options[name] for name in names if name in file.options]
        own = "override" if entry.override else "noise_square" if entry.noise_square else ""
        if own and not names:
            words = "needs an 'option': a name that keeps these runs apart from the plain ones"
            self.add(f"{key}.{own}", "no_option", words)
        if names and not chosen and not own:
            words = "needs an 'override': without one the runs equal the plain ones"
            if file.options:
                words += f"; options of recipe '{entry.recipe}': {', '.join(file.options)}"
            self.add(f"{key}.option", "no_override", words)
        return reduce(merge, (*chosen, entry.override), {})

    def check_datasets(self, key: str, entry: BlockFile, datasets: Sequence[DatasetChoice]) -> None:
        """Check that the runs can use, and train on, the datasets with these parameters."""
        for each in datasets:
            place = f"{key}.datasets.{entry.choices.index(each)}"
            if not self.named(place, "dataset", each.name, DATASETS.names()):
                continue
            if entry.losses != (UNTRAINED,) and not DATASETS[each.name].target.trains:
                words = (
                    f"'{each.name}' has no training images; name the dataset to train on (sfm120k "
                    f"is evaluated on landmark sets), or the only loss '{UNTRAINED}'"
                )
                self.add(place, "not_trained_on", words)
            for problem in check_dataset_params(each.name, each.params):
                words = f"{problem.key}  {problem.message}".strip()
                self.add(f"{place}.params", problem.code, words)

    def check_packed(
        self, key: str, entry: BlockFile, recipe: Recipe, datasets: Sequence[DatasetChoice]
    ) -> None:
        """Check that no packed copy changes what training crops are taken from."""
        for each in datasets if recipe.input.train_resize == "none" else ():
            side = each.params.get("packed")
            largest = DATASETS[each.name].target.largest_side
            if side is not None and side < (largest or inf):
                give = f"at least {largest}, or null" if largest else "null"
                words = (
                    f"{side} would change the crops of the recipe, which takes them from the "
                    f"original images (input.train_resize: none); give {give}"
                )
                place = f"{key}.datasets.{entry.choices.index(each)}.params.packed"
                self.add(place, "too_small", words)

    def check_recipe(
        self, key: str, entry: BlockFile, recipe: Recipe, losses: Sequence[Variant]
    ) -> None:
        """Check the sampler at each batch size, and that each loss gets what it needs."""
        name = recipe.sampler.name
        if self.named(f"{key}.recipe", "sampler", name, samplers.SAMPLERS.names()):
            for size in entry.batch_sizes:
                # all images leave the sampler nothing to choose
                if size != "all":
                    for problem in samplers.check(name, recipe.sampler.params, size):
                        code = problem.code or "wrong_batch_size"
                        self.add(f"{key}.batch_sizes", code, str(problem))
        place = f"{key}.losses"
        for loss in losses:
            facts = self.losses[loss.name]
            takes_references = facts.takes_references(loss.params)
            if words := memory_problem(recipe, loss.name, takes_references):
                self.add(place, "no_references", words)
            if facts.kind == "triplets" and name != TRIPLETS:
                words = f"'{loss.name}' needs the sampler '{TRIPLETS}', not '{name}'"
                self.add(place, "wrong_sampler", words)
            for option in options_of(facts.config):
                if option not in loss.params:
                    words = (
                        f"'{loss.label}' needs the option '{option}', which has no default; give "
                        "it with the loss under 'losses' of the study, or of the recipe"
                    )
                    self.add(place, "missing", words)

    def check_metrics(
        self, entry: BlockFile, recipe: Recipe, datasets: Sequence[DatasetChoice]
    ) -> None:
        """Check that every metric is measured by the recipe and given by the datasets."""
        measured = recipe.evaluation.recall_at
        for number, metric in enumerate(self.file.metrics):
            if check_metric(metric) or (entry.metrics is not None and metric not in entry.metrics):
                continue
            place = f"metrics.{number}"
            if (k := k_of(metric)) and k not in measured:
                words = (
                    f"'{metric}' is not measured in block '{entry.name}': the "
                    f"evaluation.recall_at of its recipe is {measured}"
                )
                self.add(place, "not_measured", words)
                continue
            for choice in datasets:
                families = DATASETS[choice.name].target.metrics
                asked = metric_of(metric)
                if asked is None or asked.family not in families:
                    words = f"dataset '{choice.label}' cannot give '{metric}'; it gives: "
                    self.add(place, "not_given", words + ", ".join(families))


def name_problems(name: str, stem: str) -> Iterator[Problem]:
    """Yield what is wrong with the name of a study in a file whose name is ``stem``."""
    if name != stem:
        words = f"'{name}' must equal the file name, '{stem}'"
        yield Problem(words, "study", code="other_name")
    if stem.lower() in RESERVED or stem.lower().startswith(RESERVED_START):
        words = (
            f"'{stem}' is the name of something else in the folder of results; choose another "
            f"(not allowed: {', '.join(RESERVED)}, {RESERVED_START}...)"
        )
        yield Problem(words, "study", code="reserved_name")


def overlaps(blocks: list[Block]) -> Iterator[Problem]:
    """Yield which blocks ask for one run with different contents, or that there are too many."""
    runs = sum(block.count for block in blocks)
    if runs > MAX_RUNS:
        words = f"ask for {runs:,} runs (allowed: {MAX_RUNS:,}); divide the study"
        yield Problem(words, "blocks", code="too_many")
        return
    for words in conflicts(blocks):
        yield Problem(words, "blocks", code="conflict")


def digest_of(document: Document, blocks: list[Block], trials: Trials | None) -> str:
    """Return the digest of a study: of its file, and of its recipes as they are for each block."""
    resolved: list[Any] = []
    for block in trials.blocks if trials else blocks:
        parts: list[Any] = [asdict(block.recipe), [vars(loss) for loss in block.losses]]
        if block.loss_precision:
            parts.append(block.loss_precision)
        resolved.append(parts)
    if trials:
        resolved.append([block.overrides for block in blocks])
    content = json.dumps([document.data, resolved], sort_keys=True, default=str)
    return hashlib.sha256(content.encode()).hexdigest()[:16]
