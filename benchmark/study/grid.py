"""Expand a study to the runs of its present look, each with a complete specification.

A look is an interim analysis. ``seeds`` of a study file lists all planned seeds. ``looks`` says
after how many seeds verdicts are read, for example 3, 5 and 10. ``add-seeds`` goes on to the next
look. A block with seeds of its own has all its seeds at every look.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmark.core.errors import RunError
from benchmark.core.records import Cell, RunSpec
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
    """Return a message for each pair of blocks that give one run different specifications."""
    messages: dict[tuple[str, str], str] = {}
    first: dict[tuple[Cell, int], tuple[Block, RunSpec]] = {}
    for block in blocks:
        specs = {(spec.dataset.label, spec.loss.label): spec for spec in block.specs()}
        for (dataset, loss), spec in specs.items():
            for size, seed in itertools.product(block.batch_sizes, block.seeds):
                cell = Cell(dataset, block.setting, loss, spec.loss.name, size)
                other, other_spec = first.setdefault((cell, seed), (block, spec))
                pair = (other.name, block.name)
                if spec is other_spec or pair in messages:
                    continue
                if differences := different_parts(spec, other_spec):
                    messages[pair] = (
                        f"'{other.name}' and '{block.name}' ask for the same run with different "
                        f"contents ({', '.join(differences)}); give one of them an option or "
                        f"another label (first: {cell.run_id(seed)})"
                    )
    return list(messages.values())


def different_parts(spec: RunSpec, other: RunSpec) -> list[str]:
    """Return the parts that differ, apart from batch size and seed: "loss", "recipe.training"."""
    mine = vars(spec.recipe)
    theirs = vars(other.recipe)
    names = [name for name in ("dataset", "loss") if getattr(spec, name) != getattr(other, name)]
    return names + [f"recipe.{name}" for name in mine if mine[name] != theirs[name]]


LOOKS = "looks.json"


def look_state(folder: Path) -> dict[str, Any]:
    """Return the looks that a study's folder records.

    ``look`` is the number of the present look, from 1. ``begun`` has the day (YYYY-MM-DD) on which
    each later look began. A study without the file is at its first look.
    """
    path = folder / LOOKS
    state: dict[str, Any] = {"look": 1, "begun": []}
    if path.is_file():
        state = json.loads(path.read_text("utf-8"))
    return state


def at_look(study: Study, look: int) -> Study:
    """Return the study with the seeds of a look; raise RunError for a look that is not planned."""
    if not study.looks and look == 1:
        return study
    if look > len(study.looks):
        raise RunError(
            f"study '{study.name}' is at look {look} by {LOOKS}, and plans {len(study.looks)}; put "
            f"the looks back into {study.path}, or delete the file"
        )
    planned = study.planned_seeds
    seeds = planned[: study.looks[look - 1]]
    digest = study.digest
    if look > 1:
        digest = hashlib.sha256(f"{digest} look {look}".encode()).hexdigest()[:16]
    blocks = []
    for block in study.blocks:
        if block.planned_seeds == planned:
            block = replace(block, seeds=seeds, all_seeds=planned)
        blocks.append(block)
    return replace(
        study, seeds=seeds, all_seeds=planned, blocks=tuple(blocks), look=look, digest=digest
    )
