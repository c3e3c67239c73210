"""Losses of pytorch-metric-learning under names of their own, with the settings of their papers.

They are data: ``pml_named.yaml`` gives class, miner, options and their source for each name.
"""

from dataclasses import make_dataclass
from pathlib import Path
from typing import Any, cast

import yaml

from benchmark.core.options import option
from benchmark.losses import LOSSES
from benchmark.losses.pml import LibraryLoss

FILE = Path(__file__).with_name("pml_named.yaml")


def register_all() -> None:
    """Register every entry of the file."""
    for name, entry in yaml.safe_load(FILE.read_text(encoding="utf-8")).items():
        facts = {key: entry[key] for key in ("display", "paper")}
        LOSSES.register(
            name,
            kind=entry.get("kind", "pair"),
            stochastic=entry.get("stochastic", False),
            accepts_references=entry.get("references", True),
            **facts,
        )(named_loss(entry))


def named_loss(entry: dict[str, Any]) -> type[LibraryLoss]:
    """Return the class of an entry, whose hyperparameters are its options."""
    fields = [
        (name, type(setting["default"]), option(**setting))
        for name, setting in entry.get("options", {}).items()
    ]

    bases = (LibraryLoss.Config,)
    made = make_dataclass("Config", fields, bases=bases, frozen=True, kw_only=True)

    class NamedLoss(LibraryLoss):
        Config = cast(type[LibraryLoss.Config], made)
        needs_positives = entry.get("needs_positives", False)
        draws = entry.get("stochastic", False)

        def parts(self):
            values = vars(self.config)
            miner = _part("miners", entry["miner"], values) if "miner" in entry else None
            return _part("losses", entry, values), miner

    NamedLoss.__doc__ = entry["source"]
    return NamedLoss


def _part(module: str, part: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """Return ``{class, params}``, the options that the class takes; classes may share some."""
    from benchmark.losses import pml_signatures as library

    taken = library.parameters_of(library.classes(module)[part["class"]])
    options = {name: value for name, value in values.items() if name in taken}
    return {"class": part["class"], "params": part.get("params", {}) | options}


register_all()
