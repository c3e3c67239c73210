"""What a study knows about its settings that matching published rows needs."""

from __future__ import annotations

from typing import Any

from benchmark.study import Study


def study_facts(study: Study) -> dict[tuple[str, str], dict[str, Any]]:
    """Returns {(dataset label, setting): {"embedding_dim"}} from the recipes; the backbone is the setting's label.

    A recipe without a head has the width of its backbone, which no recipe states: it is left out.
    """
    facts: dict[tuple[str, str], dict[str, Any]] = {}
    for block in study.blocks:
        dim = block.recipe.get("model", {}).get("embedding_dim")
        for dataset in block.datasets:
            facts[dataset.label, block.setting] = {} if dim is None else {"embedding_dim": dim}
    return facts
