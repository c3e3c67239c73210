"""Where a claim's numbers are found in the long table: one value per seed for an arm at a place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from benchmark.metrics.expansion import SPLIT_SUFFIX
from benchmark.papers.claims.model import Arm, Claim
from benchmark.papers.verdicts.cells import Cells
from benchmark.papers.verdicts.matching import Facts, match_published
from benchmark.stats.runs import CELL, scores

COST_SPLIT = "train"
NOTHING = pd.Series(dtype=float)


@dataclass(frozen=True)
class Place:
    """One dataset, protocol and backbone ("": open), and the batch sizes at which the claim is asked there."""

    dataset: str
    protocol: str = ""
    backbone: str = ""
    batch_sizes: tuple[int, ...] = ()

    def sizes(self, arms: Sequence[Arm]) -> tuple[int | None, ...]:
        """Returns the batch sizes to go through; (None,) when every arm brings its own."""
        return (None,) if all(arm.batch_size for arm in arms) else self.batch_sizes


@dataclass(frozen=True)
class Found:
    """Values indexed by seed, or none and the reason; ``source`` is the cell and split that they come from, ``name``
    the arm in the words of the alternative that it meets."""

    values: pd.Series = field(default_factory=lambda: NOTHING)
    note: str = ""
    source: tuple | None = None
    name: str = ""


class Series:
    """The headline scores and the costs of a long table, by cell, split and metric."""

    def __init__(self, runs: pd.DataFrame, facts: Facts):
        self.cells = Cells(runs)
        self.facts = facts
        self.by_dataset: dict[str, list[tuple]] = {}
        for cell in self.cells.all:
            self.by_dataset.setdefault(cell[0], []).append(cell)
        costs = _costs(runs)
        rows = pd.concat([scores(runs), costs]) if len(costs) else scores(runs)
        self.values = {
            key: group.set_index("seed")["value"].sort_index()
            for key, group in rows.groupby([*CELL, "split", "metric"])
        }
        self.cost_metrics = set(costs["metric"])
        self._found: dict[tuple, Found] = {}

    def find(self, arm: Arm, place: Place, batch_size: int | None, metric: str) -> Found:
        """Returns the values of the cell that belongs to ``arm``: the first of its conditions that has one."""
        key = (arm, place.dataset, place.protocol, place.backbone, batch_size, metric)
        if key not in self._found:
            self._found[key] = self._find(arm, place, batch_size, metric)
        return self._found[key]

    def _find(self, arm: Arm, place: Place, batch_size: int | None, metric: str) -> Found:
        cells = self.by_dataset.get(place.dataset, self.cells.all)
        row = {
            "dataset": place.dataset,
            "protocol": place.protocol,
            "backbone": arm.backbone or place.backbone,
            "loss": arm.loss,
            "embedding_dim": arm.embedding_dim,
            "batch_size": arm.batch_size or (np.nan if batch_size is None else batch_size),
            "metric": metric,
        }
        note = ""
        for condition in arm.conditions:
            match = match_published(
                {**row, "condition": condition}, cells, self.cells.splits, self.facts
            )
            note = note or match.reason
            if match.cell is not None:
                split = COST_SPLIT if metric in self.cost_metrics else match.split
                values = self.values.get((*match.cell, split, metric), NOTHING)
                why = "" if len(values) else self._why(match.cell, metric)
                return Found(values, why, (*match.cell, split), arm.found_as(condition))
        return Found(note=note, name=arm.name)

    def _why(self, cell: tuple, metric: str) -> str:
        statuses = self.cells.statuses[cell]
        if statuses.get("ok"):
            return f"the runs of {cell[2]} have no {metric}"
        return f"no finished run of {cell[2]} ({', '.join(f'{n} {s}' for s, n in sorted(statuses.items()))})"

    def published(self, claim: Claim) -> list[Place]:
        """Returns the places of the paper; where it states no batch size, those at which the arms were run."""
        return [
            replace(place, batch_sizes=condition.batch_sizes or self._sizes(claim, place))
            for condition in claim.published
            for place in (
                Place(name, condition.protocol, condition.backbone) for name in condition.datasets
            )
        ]

    def here(self, claim: Claim, every_size: bool = False) -> list[Place]:
        """Returns every place of the long table, whatever the paper's condition was.

        Batch sizes are those that the paper states as far as they were run, else (or with ``every_size``) all.
        Backbones are gone through one by one, unless the claim compares them. Expanded queries are an arm, not a
        place.
        """
        stated = (
            set() if every_size else {size for each in claim.published for size in each.batch_sizes}
        )
        own = any(arm.backbone for arm in claim.arms)
        costs = set(claim.metrics) <= self.cost_metrics  # are the same for every protocol of a run
        keys = dict.fromkeys(
            (cell[0], split, "" if own else self.backbone(cell))
            for cell in self.cells.all
            for split in self._plain_splits(cell)[: 1 if costs else None]
        )
        places = []
        for dataset, split, backbone in keys:
            place = Place(dataset, split, backbone)
            sizes = self._sizes(claim, place)
            places.append(
                replace(place, batch_sizes=tuple(s for s in sizes if s in stated) or sizes)
            )
        return places

    def _plain_splits(self, cell: tuple) -> list[str]:
        return sorted(
            split for split in self.cells.splits.get(cell, ()) if not split.endswith(SPLIT_SUFFIX)
        )

    def backbone(self, cell: tuple) -> str:
        """Returns the backbone of a cell: its setting's label, unless the study says otherwise."""
        return self.facts.get((cell[0], cell[1]), {}).get("backbone", cell[1].split("~")[0])

    def _sizes(self, claim: Claim, place: Place) -> tuple[int, ...]:
        losses = {arm.loss for arm in claim.arms}
        fitting = (
            cell[4]
            for cell in self.by_dataset.get(place.dataset, ())
            if cell[3] in losses and place.backbone in ("", self.backbone(cell))
        )
        return tuple(sorted(set(fitting)))


def _costs(runs: pd.DataFrame) -> pd.DataFrame:
    """Returns the cost rows of finished runs, with training seconds per epoch added."""
    costs = runs[
        (runs["status"] == "ok") & (runs["selection"] == "cost") & np.isfinite(runs["value"])
    ]
    epochs = runs[runs["selection"] == "last"].groupby("run_id")["epoch"].max()
    seconds = costs[costs["metric"] == "train_seconds"]
    per_epoch = seconds["value"] / seconds["run_id"].map(epochs).astype(float)
    per_epoch = seconds.assign(metric="seconds_per_epoch", value=per_epoch)
    return pd.concat([costs, per_epoch[np.isfinite(per_epoch["value"])]])
