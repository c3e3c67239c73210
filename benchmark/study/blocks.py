"""The blocks of a study file: each part checked, and resolved when nothing in it is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from benchmark.core.errors import unknown_name
from benchmark.core.options import defaults_of, schema_of
from benchmark.core.options import problems as schema_problems
from benchmark.core.recipe import Recipe, memory_problem
from benchmark.study.cells import dataset_label, listed, option_names, setting_of, touched
from benchmark.study.documents import Document
from benchmark.study.format import ResourcesFile
from benchmark.study.known import Known
from benchmark.study.model import Block, DatasetChoice, Resources, Variant
from benchmark.study.recipes import RecipeFile, merge, overlay, placed, read_recipe


class BlockReader:
    """Reads the blocks of one study document; ``problems`` collects what is wrong with them."""

    def __init__(self, document: Document, known: Known):
        self.document = document
        self.data: dict[str, Any] = document.data
        self.known = known
        self.problems: list[str] = list(document.problems)
        self.recipes: dict[str, RecipeFile] = {}

    def add(self, place: str, message: str) -> None:
        """Files one problem under ``place`` and its line."""
        self.problems.append(f"{self.document.where(place)}  {message}")

    def written_blocks(self) -> list[tuple[int, dict[str, Any]]]:
        """Returns the blocks that are mappings, with their positions."""
        return listed(self.data.get("blocks"), dict)

    def touched(self, number: int, **parts: Any) -> str:
        """Returns the words naming the runs of block ``number`` that have the given parts."""
        block = dict(self.written_blocks())[number]
        recipe = next((self.recipe(name) for name, _ in self.recipe_names(number, block)), None)
        return touched(block, self.data.get("seeds"), recipe.label if recipe else None, **parts)

    def recipe(self, name: Any) -> RecipeFile | None:
        """Returns the recipe file called ``name``, read once and checked against what is registered."""
        if not isinstance(name, str):
            return None
        if name not in self.recipes:
            file = read_recipe(name, self.document.path)
            self.recipes[name] = replace(file, problems=(*file.problems, *self.loss_problems(file)))
        return self.recipes[name]

    def loss_problems(self, file: RecipeFile) -> list[str]:
        """Returns what is wrong with the hyperparameters that a recipe gives to losses."""
        found = []
        places = {"losses": file.losses}
        places["loss_precision"] = {name: {} for name in file.loss_precision}
        places |= {
            f"options.{name}.losses": partial.get("losses", {})
            for name, partial in file.options.items()
        }
        for place, losses in places.items():
            for name, params in losses.items():
                if name not in self.known.losses:
                    found.append(
                        f"{file.name}.yaml: {place}  {unknown_name('loss', name, self.known.losses)}"
                    )
                else:
                    lines = schema_problems(self.known.losses[name], params, f"{place}.{name}")
                    found += [f"{file.name}.yaml: {line}" for line in lines]
        return found

    def recipe_names(
        self, number: int, block: dict[str, Any]
    ) -> list[tuple[str, list[str | dict[str, Any]]]]:
        """Returns the recipes of a block with the dataset entries that each is for."""
        entries = [entry for _, entry in listed(block.get("datasets"), (str, dict))]
        written = block.get("recipe")
        if isinstance(written, str):
            return [(written, entries)]
        if not isinstance(written, dict):
            return []
        groups: dict[str, list[str | dict[str, Any]]] = {}
        for entry in entries:
            name = written.get(dataset_label(entry))
            if isinstance(name, str):
                groups.setdefault(name, []).append(entry)
        return list(groups.items())

    def blocks(
        self, number: int, block: dict[str, Any], variants: Mapping[str, Variant]
    ) -> list[Block]:
        """Returns block ``number`` resolved, one for each of its recipes; what is wrong with it is left out."""
        self.check_recipe_map(number, block)
        losses = self.block_losses(number, block, variants)
        result = []
        for name, entries in self.recipe_names(number, block):
            found = self.block(number, block, name, entries, losses)
            result += [found] if found else []
        return result

    def check_recipe_map(self, number: int, block: dict[str, Any]) -> None:
        """Checks that a mapping of recipes names every dataset of the block, and no other."""
        written = block.get("recipe")
        if not isinstance(written, dict):
            return
        labels = [dataset_label(entry) for _, entry in listed(block.get("datasets"), (str, dict))]
        for label in labels:
            if label not in written:
                self.add(
                    f"blocks.{number}.recipe", f"names no recipe for dataset '{label}'; add one"
                )
        for label in written:
            if label not in labels:
                self.add(
                    f"blocks.{number}.recipe",
                    unknown_name("dataset of this block", str(label), labels),
                )

    def block_losses(
        self, number: int, block: dict[str, Any], variants: Mapping[str, Variant]
    ) -> list[Variant]:
        """Returns the sound losses of a block, before its recipes set any hyperparameter."""
        written = self.data.get("losses")
        defined = set(written) if isinstance(written, dict) else set()
        losses = []
        for position, label in listed(block.get("losses"), str):
            if label in variants:
                losses.append(variants[label])
            elif label not in defined:
                message = unknown_name("loss", label, {*variants, *defined}) + self.touched(
                    number, loss=label
                )
                self.add(f"blocks.{number}.losses.{position}", message)
        return losses

    def block(
        self,
        number: int,
        block: dict[str, Any],
        recipe_name: str,
        entries: list[str | dict[str, Any]],
        losses: list[Variant],
    ) -> Block | None:
        """Returns one resolved block, or None when something in it is wrong."""
        before = len(self.problems)
        file = self.recipe(recipe_name)
        overrides = self.overrides(f"blocks.{number}", block, file)
        recipe = None
        if file.sections is not None:
            recipe, found = overlay(
                file.sections, {key: part for key, part in overrides.items() if key != "losses"}
            )
            self.problems += placed(
                self.document, [f"blocks.{number}.override.{line}" for line in found]
            )
        datasets = [self.dataset(number, entry) for entry in entries]
        sizes = [size for _, size in listed(block.get("batch_sizes"), int)]
        if recipe is not None:
            self.sampler(number, recipe, sizes)
            self.memory(number, recipe, losses)
            self.metrics(number, block, recipe, [choice for choice in datasets if choice])
        own = block.get("seeds")
        seeds = [seed for _, seed in listed(self.data.get("seeds") if own is None else own, int)]
        if (
            len(self.problems) > before
            or recipe is None
            or not all((datasets, losses, sizes, seeds))
        ):
            return None
        given = merge(file.losses, overrides.get("losses", {}))
        return Block(
            str(block.get("name")),
            setting_of(file.label, block),
            tuple(choice for choice in datasets if choice),
            tuple(with_recipe(variant, given.get(variant.name, {})) for variant in losses),
            tuple(sizes),
            tuple(seeds),
            recipe,
            overrides,
            file.stand_in,
            self.resources(block, file),
            recipe_name,
            file.sources,
            file.loss_precision,
        )

    def resources(self, block: dict[str, Any], file: RecipeFile) -> Resources | None:
        """Returns what a run needs: the study's, under the recipe's, under the block's; None for the study's alone."""
        parts = [self.data.get("resources"), file.resources, block.get("resources")]
        if not any(parts[1:]):
            return None
        result = defaults_of(schema_of(ResourcesFile))
        for (
            part
        ) in parts:  # what is no mapping or no resource has been reported as a break of the format
            result |= {
                name: part[name] for name in result if isinstance(part, dict) and name in part
            }
        return Resources(**result)

    def overrides(self, place: str, block: dict[str, Any], file: RecipeFile) -> dict[str, Any]:
        """Returns what is laid over the recipe: the parts of its named options, then the block's own."""
        written = block.get("override")
        written = written if isinstance(written, dict) else {}
        names = option_names(block)
        if written and not names:
            self.add(
                f"{place}.override",
                "needs an 'option': a name that keeps these runs apart from the plain ones",
            )
        known = [name for name in names if name in file.options]
        if names and not known and not written and not file.problems:
            offered = (
                f"; options of recipe '{file.name}': {', '.join(file.options)}"
                if file.options
                else ""
            )
            self.add(
                f"{place}.option",
                f"needs an 'override': without one the runs equal the plain ones{offered}",
            )
        result: dict[str, Any] = {}
        for name in known:
            result = merge(result, file.options[name])
        return merge(result, written)

    def dataset(self, number: int, entry: str | dict[str, Any]) -> DatasetChoice | None:
        """Returns one dataset choice, or None when its name or parameters are wrong."""
        written = dict(self.written_blocks())[number].get("datasets")
        position = next(at for at, other in listed(written, (str, dict)) if other == entry)
        place = f"blocks.{number}.datasets.{position}"
        label = dataset_label(entry)
        name = entry.get("name") if isinstance(entry, dict) else entry
        params = entry.get("params", {}) if isinstance(entry, dict) else {}
        if not isinstance(name, str) or not isinstance(params, dict):
            return None
        words = self.touched(number, dataset=label)
        if name not in self.known.datasets:
            self.add(place, unknown_name("dataset", name, self.known.datasets) + words)
            return None
        untrained = self.known.training_problem(name)
        if untrained:
            self.add(place, untrained + words)
            return None
        found = self.known.dataset_problems(name, params)
        for problem in found:
            self.add(f"{place}.params", problem.removeprefix("value  ") + words)
        return None if found else DatasetChoice(label, name, params)

    def sampler(self, number: int, recipe: Recipe, sizes: list[int]) -> None:
        """Checks the sampler's name and parameters, and each batch size against them."""
        name, params = recipe.sampler.name, recipe.sampler.params
        if name not in self.known.samplers:
            words = unknown_name("sampler", name, self.known.samplers)
            self.add(f"blocks.{number}.recipe", f"sampler.name: {words}{self.touched(number)}")
            return
        for size in sizes:
            for problem in self.known.sampler_problems(name, params, size):
                words = self.touched(number, batch_size=size)
                self.add(f"blocks.{number}.batch_sizes", f"{problem}{words}")

    def memory(self, number: int, recipe: Recipe, losses: list[Variant]) -> None:
        """Checks that every loss of the block can rank the memory that the recipe asks for."""
        for loss in losses:
            problem = memory_problem(
                recipe, loss.name, loss.name not in self.known.without_references
            )
            if problem:
                self.add(f"blocks.{number}.losses", problem + self.touched(number, loss=loss.label))

    def metrics(
        self,
        number: int,
        block: dict[str, Any],
        recipe: Recipe,
        datasets: list[DatasetChoice],
    ) -> None:
        """Checks that every metric is known, measured by the recipe and given by the datasets."""
        study = [metric for _, metric in listed(self.data.get("metrics"), str)]
        own = block.get("metrics")
        for position, metric in listed(own, str):
            if metric not in study:
                self.add(
                    f"blocks.{number}.metrics.{position}",
                    unknown_name("metric of this study", metric, study),
                )
        recall_at = recipe.evaluation.recall_at
        for position, metric in enumerate(study):
            if own is not None and metric not in own:
                continue
            place = f"metrics.{position}"
            problem = self.known.metric_problem(metric, recall_at)
            if problem:
                self.add(place, problem + self.touched(number))
                continue
            for choice in datasets:
                if not self.known.gives(choice.name, metric):
                    families = ", ".join(self.known.datasets[choice.name])
                    words = f"dataset '{choice.label}' cannot give '{metric}'; it gives: {families}"
                    self.add(place, words + self.touched(number, dataset=choice.label))


def with_recipe(variant: Variant, given: dict[str, Any]) -> Variant:
    """Returns ``variant`` with the recipe's hyperparameters wherever it names none of its own."""
    taken = {key: value for key, value in given.items() if key not in variant.own}
    return replace(variant, params={**variant.params, **taken}, recipe=taken)
