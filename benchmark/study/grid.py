"""The grid: a study expands to its runs, each with a complete specification."""

from __future__ import annotations

from dataclasses import dataclass

from benchmark.core.records import RunSpec, run_id
from benchmark.study.model import Resources, Study


@dataclass(frozen=True)
class Run:
    """One run of a study: its specification, the blocks that ask for it, and what it needs."""

    spec: RunSpec
    digest: str
    blocks: tuple[str, ...]
    resources: Resources
    threads: int


def expand(study: Study) -> dict[str, Run]:
    """Returns ``{run_id: Run}`` in the order of the study file; a run shared by blocks appears once."""
    runs: dict[str, Run] = {}
    for block in study.blocks:
        threads = block.recipe["training"]["threads"]
        for dataset in block.datasets:
            for loss in block.losses:
                for batch_size in block.batch_sizes:
                    for seed in block.seeds:
                        name = run_id(dataset.label, block.setting, loss.label, batch_size, seed)
                        known = runs.get(name)
                        if known is not None:
                            blocks = tuple(dict.fromkeys((*known.blocks, block.name)))
                            runs[name] = Run(
                                known.spec, known.digest, blocks, known.resources, known.threads
                            )
                            continue
                        spec = RunSpec(
                            run_id=name,
                            dataset={"name": dataset.name, "params": dataset.params},
                            setting=block.setting,
                            loss={"name": loss.name, "variant": loss.label, "params": loss.params},
                            batch_size=batch_size,
                            seed=seed,
                            recipe=block.recipe_of(loss.name),
                        )
                        runs[name] = Run(
                            spec,
                            spec.digest,
                            (block.name,),
                            block.resources or study.resources,
                            threads,
                        )
    return runs
