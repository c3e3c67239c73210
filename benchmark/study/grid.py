"""The grid: a study expands to its runs, each with a complete specification."""

import itertools
from dataclasses import dataclass, replace

from benchmark.core.cells import Cell
from benchmark.core.records import RunSpec
from benchmark.study.model import Block, Resources, Study


@dataclass(frozen=True)
class Run:
    """One run of a study: its specification, the blocks that ask for it, and what it needs."""

    spec: RunSpec
    blocks: tuple[str, ...]
    resources: Resources

    @property
    def digest(self) -> str:
        """The digest of the specification."""
        return self.spec.digest

    @property
    def threads(self) -> int:
        """CPU threads of the training."""
        return self.spec.recipe.training.threads


def expand(study: Study) -> dict[str, Run]:
    """Return ``{run_id: Run}`` in the order of the study file; a shared run appears once."""
    runs: dict[str, Run] = {}
    for block in study.blocks:
        resources = block.resources or study.resources
        for spec in block.specs():
            earlier = runs.get(spec.run_id)
            if earlier is None:
                runs[spec.run_id] = Run(spec, (block.name,), resources)
            elif block.name not in earlier.blocks:
                runs[spec.run_id] = replace(earlier, blocks=(*earlier.blocks, block.name))
    return runs


def conflicts(blocks: list[Block]) -> list[str]:
    """Return a message for each two blocks that ask for one run with other specifications."""
    found: dict[tuple[str, str], str] = {}
    first: dict[tuple[Cell, int], tuple[Block, RunSpec]] = {}
    for block in blocks:
        specs = {(spec.dataset.label, spec.loss.label): spec for spec in block.specs()}
        for (dataset, loss), spec in specs.items():
            for size, seed in itertools.product(block.batch_sizes, block.seeds):
                cell = Cell(dataset, block.setting, loss, spec.loss.name, size)
                other, other_spec = first.setdefault((cell, seed), (block, spec))
                pair = (other.name, block.name)
                if spec is other_spec or pair in found:
                    continue
                if parts := different_parts(spec, other_spec):
                    found[pair] = (
                        f"'{other.name}' and '{block.name}' ask for the same run with different "
                        f"contents ({', '.join(parts)}); give one of them an option or another "
                        f"label (first: {cell.run_id(seed)})"
                    )
    return list(found.values())


def different_parts(one: RunSpec, other: RunSpec) -> list[str]:
    """Return the parts that differ, apart from batch size and seed: "loss", "recipe.training"."""
    recipes = vars(one.recipe), vars(other.recipe)
    return [name for name in ("dataset", "loss") if getattr(one, name) != getattr(other, name)] + [
        f"recipe.{name}" for name in recipes[0] if recipes[0][name] != recipes[1][name]
    ]
