"""Which runs a problem touches, counted from a block as it was written, sound or not."""

from __future__ import annotations

from typing import Any

from benchmark.core.cells import SEPARATOR, Cell, Setting


def listed(value: Any, kind: type | tuple[type, ...]) -> list[tuple[int, Any]]:
    """Returns (position, item) of the items of the right type; a value that is no list has none."""
    if not isinstance(value, list):
        return []
    return [
        (number, item)
        for number, item in enumerate(value)
        if isinstance(item, kind) and not (kind is int and isinstance(item, bool))
    ]


def dataset_label(entry: Any) -> str:
    """Returns the label of a dataset entry, which is a name or a mapping."""
    if isinstance(entry, dict):
        return str(entry.get("label") or entry.get("name") or "?")
    return str(entry)


def setting_of(recipe_label: str | None, block: dict[str, Any]) -> Setting:
    """Return the setting of a block: the backbone's label and the named options."""
    return Setting(recipe_label or "?", option_names(block))


def option_names(block: dict[str, Any]) -> tuple[str, ...]:
    """Return the named options of a block as written."""
    option = block.get("option")
    return tuple(option.split(SEPARATOR)) if isinstance(option, str) and option else ()


def touched(
    block: dict[str, Any],
    study_seeds: Any,
    recipe_label: str | None,
    *,
    dataset: str | None = None,
    loss: str | None = None,
    batch_size: int | None = None,
) -> str:
    """Returns "(24 runs, first: <run_id>)" for the cells of ``block`` with the given parts; "" for none."""
    datasets = [dataset_label(entry) for _, entry in listed(block.get("datasets"), (str, dict))]
    losses = [name for _, name in listed(block.get("losses"), str)]
    sizes = [size for _, size in listed(block.get("batch_sizes"), int)]
    own = block.get("seeds")
    seeds = [seed for _, seed in listed(study_seeds if own is None else own, int)]
    chosen = [
        [value for value in values if wanted is None or value == wanted]
        for values, wanted in ((datasets, dataset), (losses, loss), (sizes, batch_size))
    ]
    count = len(chosen[0]) * len(chosen[1]) * len(chosen[2]) * len(seeds)
    if not count:
        return ""
    loss_name = chosen[1][0]
    cell = Cell(chosen[0][0], setting_of(recipe_label, block), loss_name, loss_name, chosen[2][0])
    first = cell.run_id(seeds[0])
    return f" ({count} run{'s' if count != 1 else ''}, first: {first})"
