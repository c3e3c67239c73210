"""Blocks of one study that ask for the same run with different contents."""

from __future__ import annotations

from benchmark.core.cells import Cell, Setting
from benchmark.core.records import RunSpec
from benchmark.study.model import Block


def conflicts(blocks: list[Block]) -> list[str]:
    """Return one message for each pair of blocks whose runs share an identity but not a
    specification."""
    messages = []
    seen: dict[tuple[str, Setting, str], list[tuple[Block, RunSpec]]] = {}
    for block in blocks:
        firsts = {(spec.dataset.label, spec.loss.label): spec for spec in block.specs()}
        for (dataset, loss), spec in firsts.items():
            before = seen.setdefault((dataset, block.setting, loss), [])
            for other, other_spec in before:
                sizes = sorted(set(block.batch_sizes) & set(other.batch_sizes))
                seeds = sorted(set(block.seeds) & set(other.seeds))
                parts = different_parts(spec, other_spec)
                if sizes and seeds and parts:
                    cell = Cell(dataset, block.setting, loss, spec.loss.name, sizes[0])
                    messages.append(
                        f"'{other.name}' and '{block.name}' ask for the same run with different "
                        f"contents ({', '.join(parts)}); give one of them an option or another "
                        f"label (first: {cell.run_id(seeds[0])})"
                    )
            before.append((block, spec))
    return messages


def different_parts(one: RunSpec, other: RunSpec) -> list[str]:
    """Return the parts that differ, apart from batch size and seed: "loss", "recipe.training"."""
    recipes = vars(one.recipe), vars(other.recipe)
    return [name for name in ("dataset", "loss") if getattr(one, name) != getattr(other, name)] + [
        f"recipe.{name}" for name in recipes[0] if recipes[0][name] != recipes[1][name]
    ]
