"""Everything that can be wrong with a study, found in one pass, and the study when nothing is."""

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmark.core.errors import ConfigError, unknown_name
from benchmark.core.options import defaults_of, problems
from benchmark.core.records import RESERVED, RESERVED_START
from benchmark.metrics.names import check_metric
from benchmark.study.blocks import BlockReader
from benchmark.study.data_files import FINAL, TRIALS, field_folder
from benchmark.study.grid import conflicts, written
from benchmark.study.looks import looks_problem
from benchmark.study.model import Block, Study, Trials, Variant
from benchmark.study.trials.grid import range_problems, sampler_problems, with_trials

TABLE = "runs.csv"  # of frozen runs, beside their scores
MAX_RUNS = 100_000


class Checker(BlockReader):
    """Reads a study document; ``study()`` returns it, or raises all problems as a ConfigError."""

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
