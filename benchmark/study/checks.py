"""Everything that can be wrong with a study, found in one pass, and the study when nothing is."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from benchmark.errors import ConfigError, unknown_name
from benchmark.options import defaults_of
from benchmark.options import problems as schema_problems
from benchmark.study.cells import dataset_label, listed, setting_of, touched
from benchmark.study.conflicts import conflicts
from benchmark.study.documents import Document
from benchmark.study.format import (
    ComparisonFile,
    ReferencesFile,
    ResourcesFile,
    study_schema,
)
from benchmark.study.known import Known
from benchmark.study.model import (
    Block,
    Comparison,
    DatasetChoice,
    References,
    Resources,
    Study,
    Variant,
)
from benchmark.study.recipes import RecipeFile, overlay, placed, read_recipe


class Checker:
    """Reads one study document; ``study()`` returns it or raises one ConfigError with every problem."""

    def __init__(self, document: Document, known: Known):
        self.document = document
        self.data: dict[str, Any] = document.data
        self.known = known
        self.problems = [
            *document.problems,
            *placed(document, schema_problems(study_schema(), self.data)),
        ]
        self.recipes: dict[str, RecipeFile] = {}

    def study(self) -> Study:
        """Returns the validated study; raises ConfigError naming all problems."""
        stem = self.document.path.stem
        if isinstance(self.data.get("study"), str) and self.data["study"] != stem:
            self.add("study", f"'{self.data['study']}' must equal the file name, '{stem}'")
        variants = self.variants()
        blocks = [self.block(number, block, variants) for number, block in self.written_blocks()]
        self.recipe_problems()
        self.block_names()
        self.comparison()
        self.names_of("tables", "table")
        self.names_of("figures", "figure")
        self.published()
        for message in conflicts([block for block in blocks if block is not None]):
            self.add("blocks", message)
        if self.problems:
            raise ConfigError(str(self.document.path), self.problems)
        return self.build([block for block in blocks if block is not None])

    def add(self, place: str, message: str) -> None:
        """Files one problem under ``place`` and its line."""
        self.problems.append(f"{self.document.where(place)}  {message}")

    def written_blocks(self) -> list[tuple[int, dict[str, Any]]]:
        """Returns the blocks that are mappings, with their positions."""
        return listed(self.data.get("blocks"), dict)

    def asked_losses(self) -> list[str]:
        """Returns every loss label that some block asks for."""
        return [name for _, block in self.written_blocks() for _, name in listed(block.get("losses"), str)]

    def touched(self, number: int, **parts: Any) -> str:
        """Returns the words naming the runs of block ``number`` that have the given parts."""
        block = dict(self.written_blocks())[number]
        recipe = self.recipe(block.get("recipe"))
        return touched(block, self.data.get("seeds"), recipe.label if recipe else None, **parts)

    def recipe(self, name: Any) -> RecipeFile | None:
        """Returns the recipe file called ``name``, read once."""
        if not isinstance(name, str):
            return None
        if name not in self.recipes:
            self.recipes[name] = read_recipe(name, self.document.path)
        return self.recipes[name]

    def variants(self) -> dict[str, Variant]:
        """Returns the study's named losses that are sound, and every registered loss at its defaults."""
        schemas = self.known.losses
        result = {name: Variant(name, name, defaults_of(schema)) for name, schema in schemas.items()}
        written = self.data.get("losses")
        asked = set(self.asked_losses())
        for label, entry in (written if isinstance(written, dict) else {}).items():
            place = f"losses.{label}"
            name = entry.get("loss") if isinstance(entry, dict) else None
            if label in schemas:
                self.add(place, "is the name of a registered loss; give the variant a label of its own")
            elif label not in asked:
                self.add(place, "is defined, but no block asks for it; name it in a block or remove it")
            if not isinstance(name, str):
                continue
            if name not in schemas:
                self.add(f"{place}.loss", unknown_name("loss", name, schemas) + self.touched_by_loss(label))
                continue
            params = {key: value for key, value in entry.items() if key != "loss"}
            found = placed(self.document, schema_problems(schemas[name], params, place))
            self.problems += [line + self.touched_by_loss(label) for line in found]
            if not found and label not in schemas:
                result[str(label)] = Variant(str(label), name, {**defaults_of(schemas[name]), **params})
        return result

    def touched_by_loss(self, label: str) -> str:
        """Returns the words naming the runs of a loss in the first block that asks for it."""
        words = (self.touched(number, loss=label) for number, _ in self.written_blocks())
        return next((word for word in words if word), "")

    def block(self, number: int, block: dict[str, Any], variants: dict[str, Variant]) -> Block | None:
        """Returns one resolved block, or None when something in it is wrong."""
        before = len(self.problems)
        place = f"blocks.{number}"
        recipe = self.block_recipe(place, block)
        datasets = [
            self.dataset(number, position, entry) for position, entry in listed(block.get("datasets"), (str, dict))
        ]
        written = self.data.get("losses")
        defined = set(written) if isinstance(written, dict) else set()
        losses = []
        for position, label in listed(block.get("losses"), str):
            if label in variants:
                losses.append(variants[label])
            elif label not in defined:
                known = {*variants, *defined}
                message = unknown_name("loss", label, known) + self.touched(number, loss=label)
                self.add(f"{place}.losses.{position}", message)
        sizes = [size for _, size in listed(block.get("batch_sizes"), int)]
        if recipe is not None:
            self.sampler(number, recipe, sizes)
            self.metrics(number, recipe, [choice for choice in datasets if choice])
        own = block.get("seeds")
        seeds = [seed for _, seed in listed(self.data.get("seeds") if own is None else own, int)]
        if len(self.problems) > before or recipe is None or not all((datasets, losses, sizes, seeds)):
            return None
        setting = setting_of(self.recipe(block["recipe"]).label, block.get("option"))
        return Block(
            str(block.get("name")),
            setting,
            tuple(choice for choice in datasets if choice),
            tuple(losses),
            tuple(sizes),
            tuple(seeds),
            recipe,
        )

    def block_recipe(self, place: str, block: dict[str, Any]) -> dict[str, Any] | None:
        """Returns the complete recipe of a block: its file with the override laid over it."""
        override = block.get("override")
        override = override if isinstance(override, dict) else {}
        if override and not block.get("option"):
            self.add(
                f"{place}.override",
                "needs an 'option': a name that keeps these runs apart from the plain ones",
            )
        if block.get("option") and not override:
            self.add(f"{place}.option", "needs an 'override': without one the runs equal the plain ones")
        file = self.recipe(block.get("recipe"))
        if file is None or file.sections is None:
            return None
        recipe, found = overlay(file.sections, override)
        lines = [f"{place}.override.{line}" for line in found]
        self.problems += placed(self.document, lines)
        return recipe

    def dataset(self, number: int, position: int, entry: str | dict[str, Any]) -> DatasetChoice | None:
        """Returns one dataset choice, or None when its name or parameters are wrong."""
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
        found = self.known.dataset_problems(name, params)
        for problem in found:
            self.add(f"{place}.params", problem.removeprefix("value  ") + words)
        return None if found else DatasetChoice(label, name, params)

    def sampler(self, number: int, recipe: dict[str, Any], sizes: list[int]) -> None:
        """Checks the sampler's name and parameters, and each batch size against them."""
        name, params = recipe["sampler"]["name"], recipe["sampler"]["params"]
        if name not in self.known.samplers:
            words = unknown_name("sampler", name, self.known.samplers)
            self.add(f"blocks.{number}.recipe", f"sampler.name: {words}{self.touched(number)}")
            return
        for size in sizes:
            for problem in self.known.sampler_problems(name, params, size):
                words = self.touched(number, batch_size=size)
                self.add(f"blocks.{number}.batch_sizes", f"{problem}{words}")

    def metrics(self, number: int, recipe: dict[str, Any], datasets: list[DatasetChoice]) -> None:
        """Checks that every metric is known, measured by the recipe and given by the datasets."""
        recall_at = recipe["evaluation"]["recall_at"]
        for position, metric in listed(self.data.get("metrics"), str):
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

    def recipe_problems(self) -> None:
        """Reports each broken or missing recipe once, where it is first asked for."""
        reported = set()
        for number, block in self.written_blocks():
            file = self.recipe(block.get("recipe"))
            if file is None or block["recipe"] in reported:
                continue
            reported.add(block["recipe"])
            for problem in file.problems:
                self.add(f"blocks.{number}.recipe", problem + self.touched(number))

    def block_names(self) -> None:
        """Checks that no two blocks share a name, and no two datasets of a block a label."""
        seen = set()
        for number, block in self.written_blocks():
            if block.get("name") in seen:
                self.add(f"blocks.{number}.name", f"'{block['name']}' is used twice; block names are distinct")
            seen.add(block.get("name"))
            labels = set()
            for position, entry in listed(block.get("datasets"), (str, dict)):
                label = dataset_label(entry)
                if label in labels:
                    place = f"blocks.{number}.datasets.{position}"
                    self.add(place, f"label '{label}' is used twice; give one of them another label")
                labels.add(label)

    def comparison(self) -> None:
        """Checks that the losses to be compared are losses that some block asks for."""
        comparison = self.data.get("comparison")
        asked = sorted(set(self.asked_losses()))
        if not isinstance(comparison, dict):
            return
        baseline = comparison.get("baseline")
        named = [("baseline", baseline)] if isinstance(baseline, str) else []
        named += [(f"ablation.{number}", name) for number, name in listed(comparison.get("ablation"), str)]
        for place, name in named:
            if name not in asked:
                words = unknown_name("loss", name, asked)
                self.add(f"comparison.{place}", f"{words} (only losses of this study's blocks can be compared)")

    def names_of(self, key: str, kind: str) -> None:
        """Checks a list of names against what is known under ``key``."""
        for number, name in listed(self.data.get(key), str):
            known = getattr(self.known, key)
            if name not in known:
                self.add(f"{key}.{number}", unknown_name(kind, name, known))

    def published(self) -> None:
        """Checks the names of published tables."""
        references = self.data.get("references")
        if isinstance(references, dict):
            for number, name in listed(references.get("published"), str):
                if name not in self.known.published:
                    place = f"references.published.{number}"
                    self.add(place, unknown_name("published table", name, self.known.published))

    def build(self, blocks: list[Block]) -> Study:
        """Returns the study from data that has passed every check."""
        data = self.data
        comparison = ComparisonFile(**data["comparison"])
        references = ReferencesFile(**data.get("references", {}))
        resources = ResourcesFile(**data.get("resources", {}))
        tables, figures = data.get("tables"), data.get("figures")
        content = json.dumps([data, [block.recipe for block in blocks]], sort_keys=True, default=str)
        return Study(
            name=data["study"],
            path=self.document.path,
            title=data["title"],
            question=data.get("question", ""),
            seeds=tuple(data["seeds"]),
            blocks=tuple(blocks),
            metrics=tuple(data["metrics"]),
            comparison=Comparison(comparison.baseline, tuple(comparison.ablation), comparison.alpha),
            tables=None if tables is None else tuple(tables),
            figures=None if figures is None else tuple(figures),
            references=References(tuple(references.published), references.frozen),
            resources=Resources(resources.gpus, resources.mem_mb, resources.minutes),
            digest=hashlib.sha256(content.encode()).hexdigest()[:16],
        )
