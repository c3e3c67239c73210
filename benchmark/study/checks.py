"""Everything that can be wrong with a study, found in one pass, and the study when nothing is."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict

from benchmark.core.errors import ConfigError, unknown_name
from benchmark.core.options import defaults_of
from benchmark.core.options import problems as schema_problems
from benchmark.core.records import RESERVED, RESERVED_START
from benchmark.study.blocks import BlockReader
from benchmark.study.cells import dataset_label, listed
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
    References,
    Resources,
    Study,
    Variant,
)
from benchmark.study.recipes import placed


class Checker(BlockReader):
    """Reads one study document; ``study()`` returns it or raises one ConfigError with every problem."""

    def __init__(self, document: Document, known: Known):
        super().__init__(document, known)
        self.problems += placed(document, schema_problems(study_schema(), self.data))

    def study(self) -> Study:
        """Returns the validated study; raises ConfigError naming all problems."""
        stem = self.document.path.stem
        if isinstance(self.data.get("study"), str) and self.data["study"] != stem:
            self.add("study", f"'{self.data['study']}' must equal the file name, '{stem}'")
        if stem.lower() in RESERVED or stem.lower().startswith(RESERVED_START):
            self.add(
                "study",
                f"'{stem}' is the name of something else in the folder of results; choose another "
                f"(not allowed: {', '.join(RESERVED)}, {RESERVED_START}...)",
            )
        variants = self.variants()
        blocks = [
            found
            for number, block in self.written_blocks()
            for found in self.blocks(number, block, variants)
        ]
        self.recipe_problems()
        self.block_names()
        self.comparison()
        self.names_of("tables", "table")
        self.names_of("figures", "figure")
        self.published()
        for message in conflicts(blocks):
            self.add("blocks", message)
        if self.problems:
            raise ConfigError(str(self.document.path), self.problems)
        return self.build(blocks)

    def asked_losses(self) -> list[str]:
        """Returns every loss label that some block asks for."""
        return [
            name
            for _, block in self.written_blocks()
            for _, name in listed(block.get("losses"), str)
        ]

    def variants(self) -> dict[str, Variant]:
        """Returns the study's named losses that are sound, and every registered loss at its defaults."""
        schemas = self.known.losses
        result = {
            name: Variant(name, name, defaults_of(schema)) for name, schema in schemas.items()
        }
        written = self.data.get("losses")
        asked = set(self.asked_losses())
        for label, entry in (written if isinstance(written, dict) else {}).items():
            place = f"losses.{label}"
            name = entry.get("loss") if isinstance(entry, dict) else None
            if label in schemas:
                self.add(
                    place, "is the name of a registered loss; give the variant a label of its own"
                )
            elif label not in asked:
                self.add(
                    place, "is defined, but no block asks for it; name it in a block or remove it"
                )
            if not isinstance(name, str):
                continue
            if name not in schemas:
                self.add(
                    f"{place}.loss",
                    unknown_name("loss", name, schemas) + self.touched_by_loss(label),
                )
                continue
            params = {key: value for key, value in entry.items() if key != "loss"}
            found = placed(self.document, schema_problems(schemas[name], params, place))
            self.problems += [line + self.touched_by_loss(label) for line in found]
            if not found and label not in schemas:
                result[str(label)] = Variant(
                    str(label), name, {**defaults_of(schemas[name]), **params}, tuple(params)
                )
        return result

    def touched_by_loss(self, label: str) -> str:
        """Returns the words naming the runs of a loss in the first block that asks for it."""
        words = (self.touched(number, loss=label) for number, _ in self.written_blocks())
        return next((word for word in words if word), "")

    def recipe_problems(self) -> None:
        """Reports each broken or missing recipe once, where it is first asked for."""
        reported = set()
        for number, block in self.written_blocks():
            for name, _ in self.recipe_names(number, block):
                if name not in reported:
                    reported.add(name)
                    for problem in self.recipe(name).problems:
                        self.add(f"blocks.{number}.recipe", problem + self.touched(number))

    def block_names(self) -> None:
        """Checks that no two blocks share a name, and no two datasets of a block a label."""
        seen = set()
        for number, block in self.written_blocks():
            if block.get("name") in seen:
                self.add(
                    f"blocks.{number}.name",
                    f"'{block['name']}' is used twice; block names are distinct",
                )
            seen.add(block.get("name"))
            labels = set()
            for position, entry in listed(block.get("datasets"), (str, dict)):
                label = dataset_label(entry)
                if label in labels:
                    place = f"blocks.{number}.datasets.{position}"
                    self.add(
                        place, f"label '{label}' is used twice; give one of them another label"
                    )
                labels.add(label)

    def comparison(self) -> None:
        """Checks that the losses to be compared are losses that some block asks for."""
        comparison = self.data.get("comparison")
        asked = sorted(set(self.asked_losses()))
        if not isinstance(comparison, dict):
            return
        baseline = comparison.get("baseline")
        named = [("baseline", baseline)] if isinstance(baseline, str) else []
        named += [
            (f"ablation.{number}", name) for number, name in listed(comparison.get("ablation"), str)
        ]
        for place, name in named:
            if name not in asked:
                words = unknown_name("loss", name, asked)
                self.add(
                    f"comparison.{place}",
                    f"{words} (only losses of this study's blocks can be compared)",
                )

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
        content = json.dumps(
            [
                data,
                [
                    [
                        asdict(block.recipe),
                        [vars(loss) for loss in block.losses],
                        *filter(None, [block.loss_precision]),
                    ]
                    for block in blocks
                ],
            ],
            sort_keys=True,
            default=str,
        )
        return Study(
            name=data["study"],
            path=self.document.path,
            title=data["title"],
            question=data.get("question", ""),
            seeds=tuple(data["seeds"]),
            blocks=tuple(blocks),
            metrics=tuple(data["metrics"]),
            comparison=Comparison(
                comparison.baseline, tuple(comparison.ablation), comparison.alpha
            ),
            tables=None if tables is None else tuple(tables),
            figures=None if figures is None else tuple(figures),
            references=References(tuple(references.published), references.frozen),
            resources=Resources(resources.gpus, resources.mem_mb, resources.minutes),
            digest=hashlib.sha256(content.encode()).hexdigest()[:16],
        )
