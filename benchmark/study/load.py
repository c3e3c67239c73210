"""Find a study by its name or path, and check it.

All problems of single fields are told at once. Where there are none, all problems across fields
are told at once.
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
from benchmark.core.files import check_regular
from benchmark.core.options import build, defaults_of, options_of
from benchmark.core.recipe import UNTRAINED, Recipe
from benchmark.core.records import (
    RESERVED,
    RESERVED_START,
    DatasetChoice,
    Setting,
    without_keeping,
)
from benchmark.core.registry import names_of_parts
from benchmark.datasets import DATASETS, check_dataset_params, training_images
from benchmark.input import samplers
from benchmark.losses.catalogue import load_catalogue
from benchmark.metrics.metric import k_of, metric_of
from benchmark.study.data_files import MANIFEST, field_folder, published_names
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
MAX_RUNS = 100_000


def config_folders() -> list[Path]:
    """Return where studies are found by name: below the current folder, then in the repository."""
    folders = [Path("workflow") / "config", ROOT / "workflow" / "config"]
    return folders[:1] if folders[0].resolve() == folders[1] else folders


def find_study(path_or_name: str | Path) -> Path:
    """Return the path of a study file; a name without folder or suffix is a shipped study.

    A study on another dataset (``reality_check-on-sop``) has no file: its path is its name, in the
    folder of the study that it is made of.
    """
    text = str(path_or_name)
    if text.endswith((".yaml", ".yml")) or "/" in text:
        check_regular(text)
        if not Path(text).is_file() and not Path(base_of(text)).is_file():
            beside = [file.name for file in Path(text).parent.glob("*.y*ml")]
            close = difflib.get_close_matches(Path(text).name, beside, n=1, cutoff=0.5)
            hint = f"did you mean {Path(text).parent / close[0]}? Otherwise " if close else ""
            message = (
                f"no such study file; {hint}give a path, or one of: {', '.join(study_names())}"
            )
            raise ConfigError(text, [message])
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

    A study that plans looks has the seeds of its present look. The study's folder below ``results``
    names that look; without ``results`` it is the first.

    ``NAME-on-DATASET`` is the study NAME on another dataset that its rules allow. This function
    imports torch only if a plugin does.
    """
    path = find_study(path_or_name)
    if path.is_file():
        study = Checker(read_document(path)).study()
        look = 1
        if results:
            look = look_state(study.folder(results))["look"]
        return at_look(study, look)
    document = read_document(Path(base_of(str(path))))
    dataset = path.stem.rpartition(JOINT)[2]
    rules = Checker(document).study().rules
    data = document.data
    recipes = rules.instead if rules else {}
    if dataset not in recipes:
        message = unknown_name("dataset of rules.instead", dataset, recipes)
        raise ConfigError(f"{document.path} on {dataset}", [message])
    replaced = {"datasets": [dataset], "recipe": recipes[dataset]}
    changed = {
        "study": name_on(data["study"], dataset),
        "blocks": [{**block, **replaced} for block in data["blocks"]],
        "resources": data.get("resources", {}) | data["rules"].get("instead_resources", {}),
    }
    path = Path(name_on(document.path, dataset))
    return Checker(replace(document, path=path, data=data | changed)).study()


class Checker:
    """Checks a study document: ``study()`` returns the study, or raises all problems at once.

    ``StudyFile.problems`` checks the file alone. This class checks it against recipes, datasets,
    losses and other files.
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
        """Raise ConfigError if a problem was added."""
        if self.problems:
            raise ConfigError(str(self.document.path), self.problems)

    def add_all(self, problems: Iterable[Problem], above: str = "") -> bool:
        """Add problems of values below the key ``above``; return whether there are any.

        A problem that was added before is not added again.
        """
        located = [self.document.locate(problem, above) for problem in problems]
        self.problems += [problem for problem in located if problem not in self.problems]
        return bool(located)

    def add(self, key: str, code: str, message: str) -> None:
        """Add a problem of the value at ``key``."""
        self.add_all([Problem(message, key, code=code)])

    def is_known(self, key: str, kind: str, name: str, known: Collection[str]) -> bool:
        """Return whether a name is known; add a problem if it is not."""
        return not self.add_all(unknown(key, kind, [name], known))

    def study(self) -> Study:
        """Return the validated study; raise ConfigError naming all problems."""
        file = self.file
        path = self.document.path
        trials = None
        runs = sum(entry.count(file.seeds) for entry in file.entries)
        if runs > MAX_RUNS:  # to look at each of them would take minutes
            message = f"ask for {runs:,} runs (allowed: {MAX_RUNS:,}); divide the study"
            self.add("blocks", "too_many", message)
            self.raise_problems()
        self.add_all(name_problems(file.name, path.stem))
        blocks = self.blocks()
        self.add_all(file.problems())
        self.add_all(self.names_of_others())
        self.add_all(overlaps(blocks))
        if file.rules is not None:
            for dataset, recipe in file.rules.instead.items():
                key = f"rules.instead.{dataset}"
                self.is_known(key, "dataset", dataset, DATASETS.names())
                self.recipe(recipe, key)
            self.raise_problems()
            blocks, trials = with_trials(blocks, file.rules, self.losses)
            for message in trial_problems(blocks, self.losses):
                self.add("rules.trials", "wrong_trial", message)
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
                message = "is the name of a registered loss; give the variant a label of its own"
                self.add(key, "taken", message)
            elif label not in self.file.asked_losses:
                message = "is defined, but no block uses it; name it in a block or remove it"
                self.add(key, "unused", message)
            if not self.is_known(f"{key}.loss", "loss", name, self.losses):
                continue
            facts = self.losses[name]
            given = {option: value for option, value in entry.items() if option != "loss"}
            is_wrong = self.add_all(facts.problems(given, key))
            if not is_wrong and label not in self.losses:
                params = {**defaults_of(facts.config), **given}
                result[label] = Variant(label, name, params, tuple(given))
        return result

    def names_of_others(self) -> Iterator[Problem]:
        """Yield the tables, figures, published tables and frozen runs that do not exist."""
        file = self.file
        for kind, names in (("table", file.tables), ("figure", file.figures)):
            yield from unknowns(f"{kind}s", kind, names or (), names_of_parts(kind))
        published = file.references.published
        if published:
            key = "references.published"
            yield from unknowns(key, "published table", published, published_names())
        field = file.references.field
        if field is not None:
            manifest = field_folder(field) / MANIFEST
            if not os.path.isfile(manifest):
                yield Problem(
                    f"'{field}' is no field: {manifest} is not there; name a folder that "
                    "'python -m benchmark freeze STUDY --out FOLDER' wrote of a study with rules, "
                    "such as results/reference/reality_check, or null",
                    "references.field",
                    code="missing_file",
                )

    def recipe(self, name: str, key: str) -> RecipeFile | None:
        """Return the recipe ``name``; None, with its problems added at ``key``, if it is wrong."""
        if name in self.recipes:
            return self.recipes[name]
        self.recipes[name] = None
        try:
            file = read_recipe(name, self.document.path)
            problems = list(self.problems_of_losses(file))
            if problems:
                raise ConfigError(f"{name}.yaml", problems)
            self.recipes[name] = file
        except ConfigError as error:
            for problem in error.problems:
                self.add(key, problem.code, f"{error.source}: {problem}")
        return self.recipes[name]

    def problems_of_losses(self, file: RecipeFile) -> Iterator[Problem]:
        """Yield the problems of the losses that a recipe and its options name."""
        given: dict[str, dict[str, dict[str, Any]]] = {
            "losses": file.losses,
            "loss_precision": {loss: {} for loss in file.loss_precision},
        }
        for option, override in file.options.items():
            given[f"options.{option}.losses"] = override.get("losses", {})
        for key, losses in given.items():
            for loss, params in losses.items():
                if loss in self.losses:
                    yield from self.losses[loss].problems(params, f"{key}.{loss}")
                else:
                    yield from unknown(key, "loss", [loss], self.losses)

    def blocks(self) -> list[Block]:
        """Return the valid blocks of the file: of each block, one for each of its recipes."""
        blocks = []
        variants = self.variants()
        known = {**variants, **self.file.variants}
        for number, entry in enumerate(self.file.entries):
            key = f"blocks.{number}"
            self.add_all(unknowns(f"{key}.losses", "loss", entry.losses, known))
            losses = [variants[label] for label in entry.losses if label in variants]
            for recipe, datasets in entry.datasets_of_recipes.items():
                blocks.append(self.block(key, entry, recipe, datasets, losses))
        return [block for block in blocks if block is not None]

    def block(
        self,
        key: str,
        entry: BlockFile,
        recipe_name: str,
        datasets: Sequence[DatasetChoice],
        losses: Sequence[Variant],
    ) -> Block | None:
        """Return one resolved block, or None if something in it is wrong."""
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
            params = {k: v for k, v in given.get(loss.name, {}).items() if k not in loss.own}
            completed.append(replace(loss, params={**loss.params, **params}, recipe=params))
        sizes = self.sizes(key, entry, datasets)
        self.check_packed(key, entry, recipe, datasets)
        self.check_recipe(key, entry, recipe, completed)
        self.check_metrics(entry, recipe, datasets)
        seeds = entry.seeds or self.file.seeds
        if entry.noise_square:
            seeds = tuple(range(entry.noise_square**2))
            if entry.seeds:
                message = "has seeds of its own, the numbers of its runs; leave them out"
                self.add(f"{key}.noise_square", "has_seeds", message)
        if len(self.problems) > before:
            return None
        resources = None
        if given_resources := {**file.resources, **entry.resources}:
            resources = replace(self.file.resources, **given_resources)
        return Block(
            name=entry.name,
            setting=Setting(file.label, entry.option_names),
            datasets=tuple(datasets),
            losses=tuple(completed),
            batch_sizes=tuple(sizes),
            seeds=seeds,
            recipe=recipe,
            overrides=overrides,
            resources=resources,
            recipe_name=recipe_name,
            file=file,
            sources=file.sources,
            loss_precision=file.loss_precision,
            noise_square=entry.noise_square,
            metrics=entry.metrics,
        )

    def sizes(self, key: str, entry: BlockFile, datasets: Sequence[DatasetChoice]) -> list[int]:
        """Return the batch sizes as numbers: ``all`` is the number of training images."""
        sizes: dict[int, None] = {}
        for number, size in enumerate(entry.batch_sizes):
            if size != "all":
                sizes[size] = None
                continue
            counts = {training_images(dataset.name, dataset.params) for dataset in datasets}
            images = counts.pop()
            if images and not counts:
                sizes[images] = None
            else:
                labels = " and ".join(dataset.label for dataset in datasets)
                message = (
                    "'all' needs datasets of one published number of training images, and "
                    f"{labels} give none: name one dataset in the block, or give the number"
                )
                self.add(f"{key}.batch_sizes.{number}", "unknown_size", message)
        return list(sizes)

    def overrides(self, key: str, entry: BlockFile, file: RecipeFile) -> dict[str, Any]:
        """Return what is laid over the recipe: its named options, then the block's own part."""
        names = entry.option_names
        chosen = [file.options[name] for name in names if name in file.options]
        changing = [name for name in ("override", "noise_square") if getattr(entry, name)]
        if changing and not names:
            message = "needs an 'option': a name that keeps these runs apart from the plain ones"
            self.add(f"{key}.{changing[0]}", "no_option", message)
        if names and not chosen and not changing:
            message = "needs an 'override': without one the runs equal the plain ones"
            if file.options:
                message += f"; options of recipe '{entry.recipe}': {', '.join(file.options)}"
            self.add(f"{key}.option", "no_override", message)
        return reduce(merge, (*chosen, entry.override), {})

    def check_datasets(self, key: str, entry: BlockFile, datasets: Sequence[DatasetChoice]) -> None:
        """Add a problem for each dataset that does not exist, or that the runs cannot train on."""
        for dataset in datasets:
            dataset_key = f"{key}.datasets.{entry.choices.index(dataset)}"
            if not self.is_known(dataset_key, "dataset", dataset.name, DATASETS.names()):
                continue
            if entry.losses != (UNTRAINED,) and not DATASETS[dataset.name].target.trains:
                message = (
                    f"'{dataset.name}' has no training images; name the dataset to train on "
                    f"(sfm120k is evaluated on landmark sets), or the only loss '{UNTRAINED}'"
                )
                self.add(dataset_key, "not_trained_on", message)
            for problem in check_dataset_params(dataset.name, dataset.params):
                message = f"{problem.key}  {problem.message}".strip()
                self.add(f"{dataset_key}.params", problem.code, message)

    def check_packed(
        self, key: str, entry: BlockFile, recipe: Recipe, datasets: Sequence[DatasetChoice]
    ) -> None:
        """Add a problem for each packed copy that changes the images of training crops."""
        if recipe.input.train_resize != "none":
            return
        for dataset in datasets:
            side = dataset.params.get("packed")
            largest = DATASETS[dataset.name].target.largest_side
            if side is not None and side < (largest or inf):
                allowed = f"at least {largest}, or null" if largest else "null"
                message = (
                    f"{side} would change the crops of the recipe, which takes them from the "
                    f"original images (input.train_resize: none); give {allowed}"
                )
                packed_key = f"{key}.datasets.{entry.choices.index(dataset)}.params.packed"
                self.add(packed_key, "too_small", message)

    def check_recipe(
        self, key: str, entry: BlockFile, recipe: Recipe, losses: Sequence[Variant]
    ) -> None:
        """Check the sampler at each batch size, and that each loss gets what it needs."""
        name = recipe.sampler.name
        if self.is_known(f"{key}.recipe", "sampler", name, samplers.SAMPLERS.names()):
            for size in entry.batch_sizes:
                # with all images in a batch the sampler chooses nothing
                if size != "all":
                    for problem in samplers.check(name, recipe.sampler.params, size):
                        code = problem.code or "wrong_batch_size"
                        self.add(f"{key}.batch_sizes", code, str(problem))
        losses_key = f"{key}.losses"
        for loss in losses:
            facts = self.losses[loss.name]
            if recipe.memory.size is not None and not facts.takes_references(loss.params):
                message = (
                    f"'{loss.name}' takes no references, so a memory is of no use to it; set "
                    "memory.size to null or choose another loss"
                )
                self.add(losses_key, "no_references", message)
            if facts.kind == "triplets" and name != TRIPLETS:
                message = f"'{loss.name}' needs the sampler '{TRIPLETS}', not '{name}'"
                self.add(losses_key, "wrong_sampler", message)
            for option in options_of(facts.config):
                if option not in loss.params:
                    message = (
                        f"'{loss.label}' needs the option '{option}', which has no default; give "
                        "it with the loss under 'losses' of the study, or of the recipe"
                    )
                    self.add(losses_key, "missing", message)

    def check_metrics(
        self, entry: BlockFile, recipe: Recipe, datasets: Sequence[DatasetChoice]
    ) -> None:
        """Check that the recipe measures every metric, and that the datasets allow it."""
        measured = recipe.evaluation.recall_at
        for number, metric in enumerate(self.file.metrics):
            known = metric_of(metric)
            asked = entry.metrics is None or metric in entry.metrics
            if known is None or not asked:
                continue
            key = f"metrics.{number}"
            k = k_of(metric)
            if k and k not in measured:
                message = (
                    f"'{metric}' is not measured in block '{entry.name}': the "
                    f"evaluation.recall_at of its recipe is {measured}"
                )
                self.add(key, "not_measured", message)
                continue
            for choice in datasets:
                families = DATASETS[choice.name].target.metrics
                if known.family not in families:
                    message = f"dataset '{choice.label}' cannot give '{metric}'; it gives: "
                    self.add(key, "not_given", message + ", ".join(families))


def name_problems(name: str, stem: str) -> Iterator[Problem]:
    """Yield the problems of the name of a study in a file whose name is ``stem``."""
    if name != stem:
        message = f"'{name}' must equal the file name, '{stem}'"
        yield Problem(message, "study", code="other_name")
    if stem.lower() in RESERVED or stem.lower().startswith(RESERVED_START):
        message = (
            f"'{stem}' is the name of something else in the folder of results; choose another "
            f"(not allowed: {', '.join(RESERVED)}, {RESERVED_START}...)"
        )
        yield Problem(message, "study", code="reserved_name")


def overlaps(blocks: list[Block]) -> Iterator[Problem]:
    """Yield the blocks that ask for one run with different contents."""
    for message in conflicts(blocks):
        yield Problem(message, "blocks", code="conflict")


def digest_of(document: Document, blocks: list[Block], trials: Trials | None) -> str:
    """Return the digest of a study: of its file, and of the recipe of each block."""
    resolved: list[Any] = []
    written = trials.blocks if trials else blocks
    for block in written:
        of_block: list[Any] = [asdict(block.recipe), [vars(loss) for loss in block.losses]]
        if block.loss_precision:
            of_block.append(block.loss_precision)
        resolved.append(of_block)
    if trials:
        resolved.append([block.overrides for block in blocks])
    parts = without_keeping([document.data, resolved])
    content = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(content.encode()).hexdigest()[:16]
