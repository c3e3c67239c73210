"""The numbers behind a panel: our runs at each x with their interval, and the published values beside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from benchmark.papers.verdicts.facts import study_facts
from benchmark.report.figures.papers.arrangement import OPTION, Panel, Place
from benchmark.report.tables.numbers import known
from benchmark.report.tables.papers.arrangement import results
from benchmark.report.tables.papers.stand_in import same_kind
from benchmark.stats.intervals import t_interval
from benchmark.study.model import Variant
from benchmark.study.stand_in import LARGEST_BATCH

MARKS = ["panel", "series", "side", "x", "value", "low", "high", "n"]


@dataclass(frozen=True)
class Asked:
    """One cell that the study asks for."""

    dataset: str
    setting: str
    batch_size: int
    variant: Variant


class Points:
    """The cells of a study and their scores, as panels ask for them. Scores are in percent here."""

    def __init__(self, runs: pd.DataFrame, study: Any):
        self.study = study
        self.stand_in = getattr(study, "stand_in", None)
        self.alpha = study.comparison.alpha
        self._facts = study_facts(study)
        # Blocks share cells; each is kept once.
        asked = {
            (dataset.label, block.setting.label, size, variant.label): Asked(
                dataset.label, block.setting.label, size, variant
            )
            for block in study.blocks
            for dataset in block.datasets
            for variant in block.losses
            for size in block.batch_sizes
        }
        self.asked = list(asked.values())
        done = runs[(runs["status"] == "ok") & (runs["split"] != "train") & runs["value"].notna()]
        keys = ["dataset", "setting", "loss", "batch_size", "selection", "metric"]
        self._values = dict(
            iter(done[done["selection"].isin(["last", "curve"])].groupby(keys, observed=True))
        )

    def cells(
        self,
        panel: Panel,
        place: Place,
        loss: str,
        *,
        any_size: bool = False,
        any_option: bool = False,
    ) -> list[Asked]:
        """Returns the asked cells of one loss at a place; a stand-in has its own backbone and largest batch."""
        found = [
            each
            for each in self.asked
            if each.variant.name == loss and self._here(each, panel, place, any_option)
        ]
        if any_size or panel.batch_size is None:
            return found
        size = min(panel.batch_size, LARGEST_BATCH) if self.stand_in else panel.batch_size
        return [each for each in found if each.batch_size == size]

    def _here(self, cell: Asked, panel: Panel, place: Place, any_option: bool) -> bool:
        label, *options = cell.setting.split("~")
        if cell.dataset != place.dataset or (options and not any_option):
            return False
        if self.stand_in:
            return same_kind(panel.backbone, cell.setting)
        return (
            self._facts.get((cell.dataset, cell.setting), {}).get("backbone", label)
            == panel.backbone
        )

    def values(
        self, cell: Asked, place: Place, metric: str, selection: str = "last"
    ) -> pd.DataFrame:
        """Returns the rows of one cell under one selection; empty when none finished."""
        key = (cell.dataset, cell.setting, cell.variant.label, cell.batch_size, selection, metric)
        rows = self._values.get(key)
        if rows is None:
            return pd.DataFrame(columns=["seed", "epoch", "value", "split"])
        splits = sorted(set(rows["split"].astype(str)))
        wanted = place.split or ("test" if "test" in splits else splits[0])
        return rows[rows["split"] == wanted]

    def by_x(
        self, panel: Panel, place: Place, loss: str, x_of: Callable[[Asked], float | None]
    ) -> list[dict]:
        """Returns one mark per x that has finished runs, in order of x."""
        found = self.rows_by_x(panel, place, loss, x_of)
        return [{"x": x, **self.summary(100 * rows["value"])} for x, rows in found.items()]

    def rows_by_x(
        self, panel: Panel, place: Place, loss: str, x_of: Callable[[Asked], float | None]
    ) -> dict[float, pd.DataFrame]:
        """Returns the finished runs of the first cell at each x that has any, in order of x."""
        found: dict[float, pd.DataFrame] = {}
        free = {"any_size": panel.x == "batch_size", "any_option": panel.x == OPTION}
        for cell in self.cells(panel, place, loss, **free):
            x = x_of(cell)
            rows = self.values(cell, place, panel.metric)
            if x is not None and len(rows) and x not in found:
                found[x] = rows
        return {x: found[x] for x in sorted(found)}

    def plain_x(
        self, panel: Panel, place: Place, x_of: Callable[[Asked], float | None]
    ) -> float | None:
        """Returns the x of the setting that the others are compared with: the panel's ``default``, else where the loss
        and the recipe stand as they are; None when nothing stands there."""
        if panel.default is not None:
            options = [name for name, _ in panel.options]
            return options.index(panel.default) if in_words(panel) else panel.default
        free = {"any_size": panel.x == "batch_size", "any_option": panel.x == OPTION}
        cells = self.cells(panel, place, panel.loss, **free)
        plain = [x_of(cell) for cell in cells if not cell.variant.own and "~" not in cell.setting]
        return plain[0] if plain else None

    def summary(self, values: pd.Series) -> dict[str, float | None]:
        """Returns value (the mean), low, high and n over seeds."""
        found = t_interval(values, 1 - self.alpha)
        return {
            "value": found.mean,
            "low": known(found.low),
            "high": known(found.high),
            "n": found.n,
        }

    def effect(self, panel: Panel, place: Place) -> dict | None:
        """Returns the mean paired difference in points of the two settings of one hyperparameter."""
        sides = []
        for wanted in (panel.first, panel.second):
            # The setting itself may be an option of the recipe; of several that have it, the plainest is meant.
            cells = self.cells(panel, place, panel.loss, any_option=True)
            for cell in sorted(cells, key=lambda each: each.setting.count("~")):
                if (
                    not set(cell.variant.own) - {panel.parameter}
                    and cell.variant.params.get(panel.parameter) == wanted
                ):
                    sides.append(self.values(cell, place, panel.metric).set_index("seed")["value"])
                    break
        if len(sides) < 2:
            return None
        gaps = (100 * (sides[0] - sides[1])).dropna()
        return self.summary(gaps) if len(gaps) else None


def x_of(panel: Panel) -> Callable[[Asked], float | None]:
    """Returns the function that reads a panel's x off a cell; None for cells that vary something else."""
    if panel.x == "batch_size":
        return lambda cell: None if cell.variant.own else cell.batch_size
    if panel.x == OPTION:
        places = (
            {name: place for place, (name, _) in enumerate(panel.options)}
            if in_words(panel)
            else panel.options
        )
        return lambda cell: (
            None if cell.variant.own else dict(places).get("~".join(cell.setting.split("~")[1:]))
        )
    names = panel.x.split(" - ")
    meant = {*names, *panel.along}

    def read(cell: Asked) -> float | None:
        params = cell.variant.params
        if set(cell.variant.own) - meant or any(known(params.get(name)) is None for name in names):
            return None
        return round(params[names[0]] - sum(params[name] for name in names[1:]), 10)

    return read


def in_words(panel: Panel) -> bool:
    """Returns whether the x axis has words on it instead of numbers."""
    return any(isinstance(place, str) for _, place in panel.options)


def published_points(panel: Panel, place: Place, paper: str, loss: str) -> list[dict]:
    """Returns the printed values that stand beside a series, with the x where they belong."""
    if panel.published is None:
        return []
    rows = results()
    rows = rows[(rows["paper"] == paper) & (rows["table"] == panel.published["table"])]
    rows = rows[(rows["dataset"] == (place.printed or place.dataset)) & (rows["loss"] == loss)]
    rows = rows[(rows["protocol"] == place.protocol) & rows["backbone"].isin(["", panel.backbone])]
    if rows["score"].any():
        rows = rows[rows["metric"] == panel.metric]
    by_size = panel.x in ("batch_size", "")
    rows = rows[
        rows["batch_size"].notna() if by_size else rows["batch_size"].fillna(-1) == panel.batch_size
    ]
    return [
        {
            "x": int(row["batch_size"]) if by_size else panel.published["at"],
            "value": float(row["points"] if row["score"] else row["value"]),
        }
        for row in rows.to_dict("records")
    ]
