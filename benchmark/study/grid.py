"""The grid: a study expands to its runs, each with a complete specification."""

from __future__ import annotations

from dataclasses import dataclass, replace

from benchmark.core.records import RunSpec
from benchmark.study.model import Resources, Study


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
        """CPU threads of the training: the recipe's for each of its processes."""
        return self.spec.recipe.training.threads * max(1, self.resources.gpus)


def expand(study: Study) -> dict[str, Run]:
    """Return ``{run_id: Run}`` in the order of the study file; a run shared by blocks appears
    once."""
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
