"""A part of a study as a study of its own, and a study as the text of its file."""

import itertools
import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import yaml

from benchmark.core.records import Cell
from benchmark.study.model import Block, Study


def part_of(study: Study, seeds: Mapping[Cell, int]) -> Study:
    """Return the first ``seeds`` of some cells of a study, as blocks of one cell each."""
    blocks: dict[Cell, Block] = {}
    for block in study.blocks:
        grid = itertools.product(block.datasets, block.losses, block.batch_sizes)
        for dataset, loss, size in grid:
            cell = Cell(dataset.label, block.setting, loss.label, loss.name, size)
            n = seeds.get(cell, 0)
            if cell not in blocks and 0 < n <= len(block.seeds):
                blocks[cell] = replace(
                    block,
                    name=f"{block.name}-{len(blocks)}",
                    datasets=(dataset,),
                    losses=(loss,),
                    batch_sizes=(size,),
                    seeds=block.seeds[:n],
                )
    part = replace(study, blocks=tuple(blocks.values()))
    compared = study.comparison
    ablation = tuple(loss for loss in compared.ablation if loss in part.losses)
    baseline = min(part.losses, key=compared.baseline.__ne__, default="")  # else the first loss
    return replace(part, comparison=replace(compared, baseline=baseline, ablation=ablation))


def study_text(study: Study) -> str:
    """Return the study file whose blocks are those of ``study``."""
    content = {
        "study": study.name,
        "title": study.title,
        "question": study.question,
        "seeds": study.seeds,
        "losses": {
            label: {"loss": loss.name, **{name: loss.params[name] for name in loss.own}}
            for label, loss in study.losses.items()
            if label != loss.name
        },
        "blocks": [_entry(study, block) for block in study.blocks],
        "metrics": study.metrics,
        "comparison": asdict(study.comparison),
        "tables": study.tables,
        "figures": study.figures,
        "references": asdict(study.references),
        "resources": asdict(study.resources),
    }
    return yaml.safe_dump(json.loads(json.dumps(content)), sort_keys=False, width=100)


def _entry(study: Study, block: Block) -> dict[str, Any]:
    entry = {
        "name": block.name,
        "datasets": [asdict(dataset) for dataset in block.datasets],
        "recipe": block.recipe_name,
        "losses": [loss.label for loss in block.losses],
        "batch_sizes": block.batch_sizes,
        "seeds": block.seeds,
        "metrics": block.metrics,
        "resources": asdict(block.resources or study.resources),
    }
    if block.setting.options:
        entry["option"] = "~".join(block.setting.options)
        entry["override"] = block.overrides
    return entry
