"""Blocks of one study that ask for the same run with different contents."""

from __future__ import annotations

from typing import Any

from benchmark.core.records import run_id
from benchmark.study.model import Block


def conflicts(blocks: list[Block]) -> list[str]:
    """Returns one message for each pair of blocks whose runs share an identity but not a specification."""
    messages = []
    seen: dict[tuple[str, str, str], list[tuple[Block, dict[str, Any]]]] = {}
    for block in blocks:
        for dataset in block.datasets:
            for loss in block.losses:
                key = (dataset.label, block.setting, loss.label)
                recipe = block.recipe_of(loss.name)
                content = {
                    "dataset": [dataset.name, dataset.params],
                    "loss": loss.params,
                    "recipe": recipe,
                }
                for other, other_content in seen.setdefault(key, []):
                    sizes = sorted(set(block.batch_sizes) & set(other.batch_sizes))
                    seeds = sorted(set(block.seeds) & set(other.seeds))
                    if sizes and seeds and content != other_content:
                        first = run_id(*key, sizes[0], seeds[0])
                        messages.append(_message(block, other, content, other_content, first))
                seen[key].append((block, content))
    return messages


def _message(block: Block, other: Block, content: dict, other_content: dict, first: str) -> str:
    different = [part for part in content if content[part] != other_content[part]]
    if "recipe" in different:
        pairs = content["recipe"].items()
        different.remove("recipe")
        different += [
            f"recipe.{name}" for name, section in pairs if section != other_content["recipe"][name]
        ]
    return (
        f"'{other.name}' and '{block.name}' ask for the same run with different contents "
        f"({', '.join(different)}); "
        f"give one of them an option or another label (first: {first})"
    )
