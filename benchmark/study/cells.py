"""Which runs a problem concerns, counted from a block as it was written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from benchmark.core.cells import Cell, Setting
from benchmark.study.format import BlockFile

T = TypeVar("T")


def setting_of(recipe_label: str, block: BlockFile) -> Setting:
    """Return the setting of a block: the backbone's label and the named options."""
    return Setting(recipe_label or "?", block.option_names)


def runs_of(
    block: BlockFile,
    study_seeds: tuple[int, ...],
    recipe_label: str,
    *,
    dataset: str | None = None,
    loss: str | None = None,
    batch_size: int | str | None = None,
) -> str:
    """Return "(24 runs, first: <run_id>)" for the runs of ``block`` with these parts; "" for
    none."""
    seeds = written(study_seeds if block.seeds is None else block.seeds)
    seeds = list(range(block.noise_square**2)) if block.noise_square else seeds
    datasets = [label for label in written(block.labels) if dataset in (None, label)]
    losses = [name for name in written(block.losses) if loss in (None, name)]
    sizes = [size for size in written(block.batch_sizes) if batch_size in (None, size)]
    count = len(datasets) * len(losses) * len(sizes) * len(seeds)
    if not count:
        return ""
    cell = Cell(datasets[0], setting_of(recipe_label, block), losses[0], losses[0], sizes[0])  # type: ignore[arg-type]
    return f"({count} run{'s' if count != 1 else ''}, first: {cell.run_id(seeds[0])})"


def written(values: Iterable[T]) -> list[T]:
    """Return the sound ones of ``values``: an unsound one was read as "" or None."""
    return [value for value in values if value not in ("", None)]
