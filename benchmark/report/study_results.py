"""All that tables, figures and the page are made of: a study, its runs, and what they say."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Self, TypeVar, cast

import pandas as pd

from benchmark.core.options import defaults_of
from benchmark.core.paths import without_paths
from benchmark.losses.catalogue import load_catalogue
from benchmark.published.paper import Papers
from benchmark.report.labels import loss_name
from benchmark.report.row_types import DivergenceRow, RunRow
from benchmark.report.table import NothingToShow
from benchmark.runs.run_table import RunTable
from benchmark.study import Study
from benchmark.verdicts.matching import StudyGrid
from benchmark.verdicts.printed import Printed
from benchmark.verdicts.registration import RegistrationState

BUDGET = "budget_"  # begins the names of statistics on trials
TIMING = "timing"  # option of runs that were made to be timed: their scores are not compared
WHERE = ["dataset", "setting", "split"]
CONDITION = [*WHERE, "batch_size"]
MADE_UP = "made-up"  # platform of runs that tests/evidence draws, to look at a page
DIVERGENCE_CELL = ("dataset", "setting", "batch_size", "loss")
_UNMEASURED = "no finished run has a value of the study's metrics yet"
_UNCHOSEN = "no setting was chosen by trials: the study has no 'rules'"
Row = TypeVar("Row")
_NONE = pd.DataFrame()
_FEW = "ranks need three datasets on which the same losses have finished"
# Why there is nothing to show of a table that has no rows.
_REASONS = {
    "batch_sizes": "no loss has finished at two batch sizes of one dataset and setting",
    "best_epoch": _UNMEASURED,
    "curves": _UNMEASURED,
    "laboratories": "no other laboratory has finished a run of the study as it is now",
    "costs": "no finished run has recorded its cost yet",
    "noise": "no source of noise was varied apart: that needs a block with 'noise_square' whose "
    "runs have all finished",
    "profiles": _FEW,
    "ranks": _FEW,
    "verdicts": "there are no verdicts: the study names no references, or none have been judged "
    "yet",
}
_COMPARED = (
    "summary",
    "batch_sizes",
    "curves",
    "best_epoch",
    "differences",
    "divergence",
    "laboratories",
)


@dataclass(frozen=True)
class StudyResults:
    """The results of one study; a frame is empty where nothing was measured.

    ``scores`` has a row per finished run, test split and metric after the last epoch; frames have
    the names of files in stats/, ``budgets`` those of a study whose settings trials chose.
    """

    study: Study
    grid: StudyGrid
    runs: pd.DataFrame
    scores: pd.DataFrame
    summary: pd.DataFrame
    paired: pd.DataFrame
    ablation: pd.DataFrame
    batch_sizes: pd.DataFrame
    curves: pd.DataFrame
    best_epoch: pd.DataFrame
    differences: pd.DataFrame
    costs: pd.DataFrame
    divergence: pd.DataFrame
    noise: pd.DataFrame
    laboratories: pd.DataFrame
    ranks: pd.DataFrame
    rank_tests: pd.DataFrame
    profiles: pd.DataFrame
    verdicts: pd.DataFrame
    claims: pd.DataFrame
    printed: Printed
    provenance: Mapping[str, Any]
    budgets: Mapping[str, pd.DataFrame]
    registered: RegistrationState | None

    @classmethod
    def of(
        cls,
        grid: StudyGrid,
        table: RunTable,
        tables: Mapping[str, pd.DataFrame],
        printed: Printed,
        provenance: Mapping[str, Any],
        registered: RegistrationState | None = None,
    ) -> Self:
        """Return the inputs from the table of runs and the other tables by name."""
        runs = table.runs.assign(reason=table.runs["reason"].map(without_paths))
        timed = {run.setting for run in records(runs, RunRow) if TIMING in run.options}
        found = {name: tables.get(name, _NONE) for name in FRAMES} | {"runs": runs}
        found["scores"] = table.test_scores("last", grid.study.metrics)
        for name in ("scores", *_COMPARED):
            if not found[name].empty:
                found[name] = found[name][~found[name]["setting"].isin(timed)]
        return cls(
            grid.study,
            grid,
            **found,
            printed=printed,
            provenance=provenance,
            budgets={key: tables[key] for key in sorted(tables) if key.startswith(BUDGET)},
            registered=registered,
        )

    @property
    def papers(self) -> Papers:
        """All papers."""
        return self.grid.papers

    @property
    def made_up(self) -> int:
        """The number of runs whose scores were drawn, not trained: their platform says so."""
        return int((self.runs["platform"] == MADE_UP).sum())

    @property
    def base_losses(self) -> dict[str, str]:
        """Return the registry name of each loss label."""
        return dict(zip(self.runs["loss"], self.runs["base_loss"], strict=True))

    @property
    def diverging(self) -> set[tuple[str, str, int, str]]:
        """Return the dataset, setting, batch size and loss of the cells that diverge."""
        return {
            (row.dataset, row.setting, row.batch_size, row.loss)
            for row in records(self.divergence, DivergenceRow)
            if row.diverges
        }

    def diverges(self, table: pd.DataFrame) -> pd.Series:
        """Return for each row of a table whether its loss diverges there."""
        diverging = self.diverging
        cells = table[[*DIVERGENCE_CELL]].itertuples(index=False, name=None)
        return pd.Series([cell in diverging for cell in cells], table.index, bool)

    @property
    def confidence(self) -> str:
        """Return the confidence of the study's intervals: "95%"."""
        return f"{100 * (1 - self.study.comparison.alpha):g}%"

    def label(self, loss: str) -> str:
        """Return the display name of a variant: "SmoothAP", or "SmoothAP (tau=0.1)".

        Hyperparameters are named where they differ from the loss's defaults. A label that the study
        does not have (of a frozen or published row) is taken for the name of a loss.
        """
        variant = self.study.losses.get(loss)
        if variant is None or loss == variant.name:
            return loss_name(loss)
        defaults = defaults_of(load_catalogue()[variant.name].config)
        other = [
            f"{key.rstrip('_')}={value}"
            for key, value in variant.params.items()
            if value != defaults.get(key, object()) and key not in variant.recipe
        ]
        # Two variants with the same numbers still need two names.
        return f"{loss_name(variant.name)} ({', '.join(other) or loss})"

    def losses(self, labels: Iterable[str]) -> list[str]:
        """Return the labels in the study's order, others last in alphabetical order."""
        order = {label: index for index, label in enumerate(self.study.losses)}
        return sorted(set(labels), key=lambda label: (order.get(label, len(order)), label))

    def metrics(self, metrics: Iterable[str]) -> list[str]:
        """Return the study's metrics, in its order, as far as they are among ``metrics``."""
        present = set(metrics)
        return [metric for metric in self.study.metrics if metric in present]

    @property
    def headline(self) -> str:
        """Return the metric of the headline numbers: the study's first that has values."""
        measured = self.metrics(self.scores["metric"])
        if not measured:
            raise NothingToShow(_UNMEASURED)
        return measured[0]

    @property
    def last(self) -> pd.DataFrame:
        """Return the rows of ``summary`` after the last epoch; raise NothingToShow if none."""
        found = rows_of(self.summary, selection="last")
        if found.empty:
            raise NothingToShow(_UNMEASURED)
        return found

    def some(self, name: str) -> pd.DataFrame:
        """Return a frame, or a table of ``budgets``; raise NothingToShow where it has no rows."""
        table: pd.DataFrame = {**vars(self), **self.budgets}.get(name, _NONE)
        if table.empty:
            raise NothingToShow(_REASONS.get(name, _UNCHOSEN))
        return table

    def tests(self, kind: str) -> pd.DataFrame:
        """Return the tests of a kind: "baseline", "pairs" or "ablation"; NothingToShow if none."""
        name = "ablation" if kind == "ablation" else "paired"
        found = rows_of(getattr(self, name), kind=kind)
        if found.empty:
            raise NothingToShow(
                "no paired test yet: it needs two losses that finished with a common seed "
                f"(stats/{name}.csv)"
            )
        return found


# The frames: of runs, scores and statistics (files of stats/), and what was judged.
FRAMES = [each.name for each in fields(StudyResults) if each.type is pd.DataFrame]


def records(table: pd.DataFrame, row: type[Row]) -> Iterator[Row]:
    """Yield the rows of a table; its columns are the attributes of the class ``row``."""
    return cast(Iterator[Row], table.itertuples())


def rows_of(table: pd.DataFrame, **values: Any) -> pd.DataFrame:
    """Return the rows of a table whose columns have the given values."""
    keep = pd.Series(True, index=table.index)
    for column, value in values.items() if len(table) else ():
        keep &= table[column] == value
    return table[keep]
