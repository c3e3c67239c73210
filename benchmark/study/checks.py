"""Everything that can be wrong with a study, found in one pass, and the study when nothing is."""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from benchmark.core.errors import ConfigError, Problem, unknown_name
from benchmark.core.options import defaults_of, make, problems, sound_part
from benchmark.core.recipe import UNTRAINED, Recipe, memory_problem
from benchmark.core.records import RESERVED, RESERVED_START
from benchmark.metrics.names import check_metric
from benchmark.study.data_files import FINAL, TRIALS, field_folder
from benchmark.study.documents import Document
from benchmark.study.format import BlockFile, DatasetFile, Resources, StudyFile, study_schema
from benchmark.study.grid import conflicts, runs_of, setting_of, written
from benchmark.study.known import Known
from benchmark.study.looks import looks_problem
from benchmark.study.model import Block, DatasetChoice, Study, Trials, Variant
from benchmark.study.recipes import RecipeFile, merge, overlay, read_recipe, without_losses
from benchmark.study.trials.grid import range_problems, sampler_problems, with_trials

ALL = "all"  # the batch size of a batch that holds each training image once
TRIPLETS = "mined_triplets"  # the sampler of batches that are laid out as triplets
TABLE = "runs.csv"  # of frozen runs, beside their scores
MAX_RUNS = 100_000


class Checker:
    """Reads a study document; ``study()`` returns it, or raises all problems as a ConfigError.

    ``problems`` collects what is wrong. ``file`` is the document with "", None or nothing in the
    place of a wrong value, so that the checks go on.
    """

    def __init__(self, document: Document, known: Known):
        schema = study_schema()
        self.document = document
        self.known = known
        self.file: StudyFile = make(StudyFile, sound_part(schema, document.data))
        self.problems = list(document.problems)
        self.problems += [document.locate(each) for each in problems(schema, document.data)]
        self.recipes: dict[str, RecipeFile] = {}

    def add(self, key: str, message: str, runs: str = "") -> None:
        """Note a problem of the value at ``key``."""
        self.problems.append(self.document.locate(Problem(message, key, runs=runs)))

    def runs_of(self, block: BlockFile, **parts: Any) -> str:
        """Return the words that name the runs of a block with the given parts."""
        first = next(iter(block.recipes()), None)
        label = "" if first is None else self.recipe(first).keys.label
        return runs_of(block, self.file.seeds, label, **parts)

    def study(self) -> Study:
        """Return the validated study; raise ConfigError naming all problems."""
        self.check_name()
        variants = self.variants()
        blocks = [
            block
            for number in range(len(self.file.blocks))
            for block in self.blocks(number, variants)
        ]
        self.check_recipes()
        self.check_labels()
        self.check_comparison()
        looks = written(self.file.looks)
        if problem := looks_problem(looks, len(written(self.file.seeds))):
            self.add("looks", problem)
        elif looks and self.file.rules:
            self.add("looks", "a study with rules takes one look: its settings are chosen once")
        self.check_unmeasured()
        self.check_names("tables", self.file.tables, "table")
        self.check_names("figures", self.file.figures, "figure")
        self.check_frozen()
        self.check_field()
        self.check_names("published", self.file.references.published, "published table")
        runs = sum(block.count for block in blocks)
        if runs > MAX_RUNS:
            self.add("blocks", f"ask for {runs:,} runs (allowed: {MAX_RUNS:,}); divide the study")
        else:
            for message in conflicts(blocks):
                self.add("blocks", message)
        trials = None
        self.check_instead(self.file.rules.instead if self.file.rules else {})
        if (rules := self.file.rules) is not None and rules.trials and not self.problems:
            blocks, trials = with_trials(blocks, rules, self.known)
            self.check_trials(blocks)
        if self.problems:
            raise ConfigError(str(self.document.path), self.problems)
        return self.build(blocks, trials)

    def check_name(self) -> None:
        """Check that the study's name is that of its file, and free in the folder of results."""
        stem = self.document.path.stem
        if self.file.study and self.file.study != stem:
            self.add("study", f"'{self.file.study}' must equal the file name, '{stem}'")
        if stem.lower() in RESERVED or stem.lower().startswith(RESERVED_START):
            self.add(
                "study",
                f"'{stem}' is the name of something else in the folder of results; choose another "
                f"(not allowed: {', '.join(RESERVED)}, {RESERVED_START}...)",
            )

    def asked_losses(self) -> set[str]:
        """Return every loss label that some block asks for."""
        return {name for block in self.file.blocks for name in block.losses if name}

    def variants(self) -> dict[str, Variant]:
        """Return the study's sound losses, and every registered loss at its defaults."""
        schemas = self.known.losses
        result = {
            name: Variant(name, name, defaults_of(schema)) for name, schema in schemas.items()
        }
        for label, entry in self.file.losses.items():
            variant = self.variant(label, entry)
            if variant is not None and label not in schemas:
                result[label] = variant
        return result

    def variant(self, label: str, entry: dict[str, Any]) -> Variant | None:
        """Return one named loss of the study; None when its name or a hyperparameter is wrong."""
        key, schemas = f"losses.{label}", self.known.losses
        if label in schemas:
            self.add(key, "is the name of a registered loss; give the variant a label of its own")
        elif label not in self.asked_losses():
            self.add(key, "is defined, but no block asks for it; name it in a block or remove it")
        name = entry.get("loss", "")
        runs = next(
            (words for each in self.file.blocks if (words := self.runs_of(each, loss=label))), ""
        )
        if name not in schemas:
            if isinstance(name, str) and name:
                self.add(f"{key}.loss", unknown_name("loss", name, schemas), runs)
            return None
        params = {key: value for key, value in entry.items() if key != "loss"}
        found = problems(schemas[name], params, key)
        for problem in found:
            self.add(problem.key, problem.message, runs)
        if found:
            return None
        return Variant(label, name, {**defaults_of(schemas[name]), **params}, tuple(params))

    def check_recipes(self) -> None:
        """Report each broken or missing recipe once, where it is first asked for."""
        reported = set()
        for number, block in enumerate(self.file.blocks):
            for name in block.recipes():
                if name not in reported:
                    reported.add(name)
                    for problem in self.recipe(name).problems:
                        self.add(f"blocks.{number}.recipe", str(problem), self.runs_of(block))

    def check_labels(self) -> None:
        """Check that no two blocks share a name, and no two datasets of a block a label."""
        names: set[str] = set()
        for number, block in enumerate(self.file.blocks):
            if block.name and block.name in names:
                words = f"'{block.name}' is used twice; block names are distinct"
                self.add(f"blocks.{number}.name", words)
            names.add(block.name)
            labels: set[str] = set()
            for position, label in enumerate(block.labels):
                if label and label in labels:
                    words = f"label '{label}' is used twice; give one of them another label"
                    self.add(f"blocks.{number}.datasets.{position}", words)
                labels.add(label)

    def check_unmeasured(self) -> None:
        """Check the names of metrics that no block measures; blocks check those of their own."""
        if all(block.metrics is not None for block in self.file.blocks):
            measured = {name for block in self.file.blocks for name in block.metrics or ()}
            for position, metric in enumerate(self.file.metrics):
                if metric and metric not in measured and (problem := check_metric(metric)):
                    self.add(f"metrics.{position}", problem)

    def check_comparison(self) -> None:
        """Check that the losses to be compared are losses that some block asks for."""
        comparison, asked = self.file.comparison, self.asked_losses()
        named = {"baseline": comparison.baseline}
        named |= {f"ablation.{number}": name for number, name in enumerate(comparison.ablation)}
        for key, name in named.items():
            if name and name not in asked:
                words = "only losses of this study's blocks can be compared"
                self.add(f"comparison.{key}", f"{unknown_name('loss', name, asked)} ({words})")

    def check_names(self, kind: str, names: Iterable[str] | None, word: str) -> None:
        """Check names against those that ``known`` has of their kind."""
        above = "references.published" if kind == "published" else kind
        for number, name in enumerate(names or ()):
            known: tuple[str, ...] = getattr(self.known, kind)
            if name and name not in known:
                self.add(f"{above}.{number}", unknown_name(word, name, known))

    def check_frozen(self) -> None:
        """Check that frozen runs can be a file, which 'freeze' writes, where the study says."""
        frozen = self.file.references.frozen
        if not frozen:
            return
        if os.path.isabs(frozen) or ".." in Path(frozen).parts:
            problem = "must be a path below the working directory"
        elif frozen.endswith("/") or os.path.isdir(frozen):
            problem = f"'{frozen}' is a folder, not the file that 'freeze' writes"
        else:
            return
        example = f"results/reference/{self.file.study}.csv"
        self.add("references.frozen", f"{problem}; write a path such as {example}, or null")

    def check_field(self) -> None:
        """Check that the frozen runs are there that are to join the tables."""
        field = self.file.references.field
        if field is None:
            return
        kinds = (TRIALS, FINAL) if self.file.rules else (FINAL,)
        tables = [field_folder(field, kind) / TABLE for kind in kinds]
        absent = [table for table in tables if not os.path.isfile(table)]
        if absent:
            self.add(
                "references.field",
                f"'{field}' holds no frozen runs: {absent[0]} is not there; name a folder "
                "that 'python -m benchmark freeze STUDY --out FOLDER' wrote of a study with rules, "
                "such as results/reference/reality_check, or null",
            )

    def check_instead(self, instead: dict[str, str]) -> None:
        """Check the datasets that may take the place of the study's, and their recipes."""
        for dataset, name in instead.items():
            key = f"rules.instead.{dataset}"
            if dataset not in self.known.datasets:
                self.add(key, unknown_name("dataset", dataset, self.known.datasets))
            for problem in self.recipe(name).problems:
                self.add(key, str(problem))

    def check_trials(self, blocks: list[Block]) -> None:
        """Check that every trial can fill its batches, and that its loss takes what it draws."""
        found = range_problems(blocks, self.known) + sampler_problems(blocks, self.known)
        for problem in found:
            self.add("rules.trials", problem)

    def build(self, blocks: list[Block], trials: Trials | None) -> Study:
        """Return the study from a file that has passed every check."""
        file = self.file
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
        return Study(
            name=file.study,
            path=self.document.path,
            title=file.title,
            question=file.question,
            seeds=file.seeds,
            blocks=tuple(blocks),
            metrics=file.metrics,
            comparison=file.comparison,
            tables=file.tables,
            figures=file.figures,
            references=file.references,
            resources=file.resources,
            trials=trials,
            instead=file.rules.instead if file.rules else {},
            digest=hashlib.sha256(content.encode()).hexdigest()[:16],
            looks=file.looks,
        )

    def recipe(self, name: str) -> RecipeFile:
        """Return the recipe file ``name``, read once and checked against the registered losses."""
        if name not in self.recipes:
            file = read_recipe(name, self.document.path)
            self.recipes[name] = replace(file, problems=(*file.problems, *self.loss_problems(file)))
        return self.recipes[name]

    def loss_problems(self, file: RecipeFile) -> list[Problem]:
        """Return what is wrong with the hyperparameters that a recipe gives to losses."""
        given = {"losses": file.keys.losses}
        given["loss_precision"] = {name: {} for name in file.keys.loss_precision}
        for option, partial in file.keys.options.items():
            given[f"options.{option}.losses"] = partial.get("losses", {})
        found = []
        for key, losses in given.items():
            for name, params in losses.items():
                if name not in self.known.losses:
                    found.append(Problem(unknown_name("loss", name, self.known.losses), key))
                else:
                    found += problems(self.known.losses[name], params, f"{key}.{name}")
        return [replace(problem, file=f"{file.name}.yaml") for problem in found]

    def blocks(self, number: int, variants: Mapping[str, Variant]) -> list[Block]:
        """Return block ``number``, one for each of its recipes; leave out what is wrong."""
        written_block = self.file.blocks[number]
        self.check_recipe_map(number, written_block)
        losses = self.block_losses(number, written_block, variants)
        resolved = [
            self.block(number, written_block, name, entries, losses)
            for name, entries in written_block.recipes().items()
        ]
        return [block for block in resolved if block is not None]

    def check_recipe_map(self, number: int, block: BlockFile) -> None:
        """Check that a mapping of recipes names every dataset of the block, and no other."""
        if isinstance(block.recipe, str):
            return
        key = f"blocks.{number}.recipe"
        for label in written(block.labels):
            if label not in block.recipe:
                self.add(key, f"names no recipe for dataset '{label}'; add one")
        for label in block.recipe:
            if label not in block.labels:
                self.add(key, unknown_name("dataset of this block", label, block.labels))

    def block_losses(
        self, number: int, block: BlockFile, variants: Mapping[str, Variant]
    ) -> list[Variant]:
        """Return the sound losses of a block, before its recipes set any hyperparameter."""
        defined = {*variants, *self.file.losses}
        for position, label in enumerate(block.losses):
            if label and label not in defined:
                message = unknown_name("loss", label, defined)
                self.add(
                    f"blocks.{number}.losses.{position}", message, self.runs_of(block, loss=label)
                )
        return [variants[label] for label in block.losses if label in variants]

    def block(
        self,
        number: int,
        block: BlockFile,
        recipe_name: str,
        entries: Sequence[DatasetFile],
        losses: Sequence[Variant],
    ) -> Block | None:
        """Return one resolved block, or None when something in it is wrong."""
        before = len(self.problems)
        file = self.recipe(recipe_name)
        overrides = self.overrides(number, block, file)
        recipe = None
        if file.sections is not None:
            recipe, found = overlay(file.sections, without_losses(overrides))
            above = f"blocks.{number}.override"
            self.problems += [self.document.locate(problem, above) for problem in found]
        datasets = [choice for entry in entries if (choice := self.dataset(number, block, entry))]
        if recipe is not None:
            self.check_sampler(number, block, recipe)
            self.check_memory(number, block, recipe, losses)
            self.check_triplets(number, block, recipe, losses)
            self.check_metrics(number, block, recipe, datasets)
        given = merge(file.keys.losses, overrides.get("losses", {}))
        losses = [with_recipe(variant, given.get(variant.name, {})) for variant in losses]
        self.check_required(number, block, losses)
        sizes = self.sizes(number, block, datasets)
        seeds = written(self.file.seeds if block.seeds is None else block.seeds)
        if block.noise_square:
            seeds = list(range(block.noise_square**2))
            if block.seeds is not None:
                words = "has seeds of its own, the numbers of its runs; leave them out"
                self.add(f"blocks.{number}.noise_square", words)
        wrong = len(self.problems) > before or not all((datasets, losses, sizes, seeds))
        if recipe is None or wrong:
            return None
        return Block(
            name=block.name,
            setting=setting_of(file.keys.label, block),
            datasets=tuple(datasets),
            losses=tuple(losses),
            batch_sizes=tuple(sizes),
            seeds=tuple(seeds),
            recipe=recipe,
            overrides=overrides,
            resources=self.resources(block, file),
            recipe_name=recipe_name,
            sources=file.keys.sources,
            loss_precision=file.keys.loss_precision,
            noise_square=block.noise_square,
            metrics=block.metrics,
        )

    def sizes(self, number: int, block: BlockFile, datasets: Sequence[DatasetChoice]) -> list[int]:
        """Return the batch sizes as numbers: ``all`` is that of the block's training images."""
        sizes: dict[int, None] = {}
        for position, size in enumerate(written(block.batch_sizes)):
            if isinstance(size, int):
                sizes[size] = None
                continue
            found = {self.known.training_images(each.name, each.params) for each in datasets}
            images = found.pop() if len(found) == 1 and size == ALL else None
            if images is None and datasets and size == ALL:
                labels = " and ".join(each.label for each in datasets)
                words = f"'{ALL}' needs datasets of one published number of training images, and "
                words += f"{labels} give none: name one dataset in the block, or give the number"
                self.add(f"blocks.{number}.batch_sizes.{position}", words)
            sizes |= {} if images is None else {images: None}
        return list(sizes)

    def resources(self, block: BlockFile, file: RecipeFile) -> Resources | None:
        """Return what a run needs: the study's, under the recipe's, under the block's.

        None stands for the study's alone.
        """
        own = {**file.keys.resources, **block.resources}
        return replace(self.file.resources, **own) if own else None

    def overrides(self, number: int, block: BlockFile, file: RecipeFile) -> dict[str, Any]:
        """Return what is laid over the recipe: its named options, then the block's own part."""
        names, options = block.option_names, file.keys.options
        chosen = [options[name] for name in names if name in options]
        own = "override" if block.override else "noise_square" if block.noise_square else ""
        if own and not names:
            words = "needs an 'option': a name that keeps these runs apart from the plain ones"
            self.add(f"blocks.{number}.{own}", words)
        if names and not chosen and not own and not file.problems:
            words = "needs an 'override': without one the runs equal the plain ones"
            if options:
                words += f"; options of recipe '{file.name}': {', '.join(options)}"
            self.add(f"blocks.{number}.option", words)
        result: dict[str, Any] = {}
        for part in (*chosen, block.override):
            result = merge(result, part)
        return result

    def dataset(self, number: int, block: BlockFile, entry: DatasetFile) -> DatasetChoice | None:
        """Return one dataset choice, or None when its name or parameters are wrong."""
        if not entry.name:
            return None
        key = f"blocks.{number}.datasets.{block.entries.index(entry)}"
        trains = list(block.losses or ()) != [UNTRAINED]
        found = self.known.dataset_problems(entry.name, entry.params, trains)
        for problem in found:
            below = f"{key}.params" if problem.key else key
            words = self.runs_of(block, dataset=entry.key)
            self.add(below, f"{problem.key}  {problem.message}".strip(), words)
        return None if found else DatasetChoice(entry.key, entry.name, entry.params)

    def check_sampler(self, number: int, block: BlockFile, recipe: Recipe) -> None:
        """Check the sampler's name and parameters, and each batch size against them."""
        name, params = recipe.sampler.name, recipe.sampler.params
        if name not in self.known.samplers:
            words = f"sampler.name: {unknown_name('sampler', name, self.known.samplers)}"
            self.add(f"blocks.{number}.recipe", words, self.runs_of(block))
            return
        for size in written(block.batch_sizes):
            if isinstance(size, str):  # all: it leaves the sampler nothing to choose
                continue
            for problem in self.known.sampler_problems(name, params, size):
                runs = self.runs_of(block, batch_size=size)
                self.add(f"blocks.{number}.batch_sizes", str(problem), runs)

    def check_memory(
        self, number: int, block: BlockFile, recipe: Recipe, losses: Sequence[Variant]
    ) -> None:
        """Check that every loss of the block can rank the memory that the recipe asks for."""
        for loss in losses:
            ranks = self.known.takes_references(loss.name, loss.params)
            if problem := memory_problem(recipe, loss.name, ranks):
                key = f"blocks.{number}.losses"
                self.add(key, problem, self.runs_of(block, loss=loss.label))

    def check_required(self, number: int, block: BlockFile, losses: Sequence[Variant]) -> None:
        """Check that every option of a loss that has no default is given."""
        for loss in losses:
            for name in self.known.losses[loss.name].get("required", ()):
                if name not in loss.params:
                    words = f"'{loss.label}' needs the option '{name}', which has no default; give "
                    words += "it with the loss under 'losses' of the study, or of the recipe"
                    runs = self.runs_of(block, loss=loss.label)
                    self.add(f"blocks.{number}.losses", words, runs)

    def check_triplets(
        self, number: int, block: BlockFile, recipe: Recipe, losses: Sequence[Variant]
    ) -> None:
        """Check that losses of triplets get batches of triplets."""
        for loss in losses:
            if loss.name in self.known.of_triplets and recipe.sampler.name != TRIPLETS:
                words = f"'{loss.name}' needs the sampler '{TRIPLETS}', not '{recipe.sampler.name}'"
                self.add(f"blocks.{number}.losses", words, self.runs_of(block, loss=loss.label))

    def check_metrics(
        self, number: int, block: BlockFile, recipe: Recipe, datasets: Sequence[DatasetChoice]
    ) -> None:
        """Check that every metric is known, measured by the recipe and given by the datasets."""
        study = written(self.file.metrics)
        for position, metric in enumerate(block.metrics or ()):
            if metric and metric not in study:
                words = unknown_name("metric of this study", metric, study)
                self.add(f"blocks.{number}.metrics.{position}", words)
        for position, metric in enumerate(self.file.metrics):
            if not metric or (block.metrics is not None and metric not in block.metrics):
                continue
            key = f"metrics.{position}"
            if problem := self.known.metric_problem(metric, recipe.evaluation.recall_at):
                self.add(key, problem, self.runs_of(block))
                continue
            for choice in datasets:
                if problem := self.known.missing_metric(choice, metric):
                    self.add(key, problem, self.runs_of(block, dataset=choice.label))


def with_recipe(variant: Variant, given: dict[str, Any]) -> Variant:
    """Return ``variant`` with the recipe's hyperparameters wherever it sets none of its own."""
    taken = {key: value for key, value in given.items() if key not in variant.own}
    return replace(variant, params={**variant.params, **taken}, recipe=taken)
