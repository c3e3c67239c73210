"""Blocks of one study that ask for the same run with different contents."""

from __future__ import annotations

import itertools

from benchmark.core.cells import Cell
from benchmark.core.records import RunSpec
from benchmark.study.model import Block


def conflicts(blocks: list[Block]) -> list[str]:
    """Return one message for each pair of a block and the first that asks for the same run with
    another specification."""
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
