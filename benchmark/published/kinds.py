"""The kinds of printed numbers: which they are, how runs measure them, what stands for a verdict.

An entry of ``KINDS`` is a kind. A printed table names its kinds in ``tables.yaml``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from benchmark.core.records import Cell
from benchmark.metrics.metric import metric_of
from benchmark.published.quantities import COUNTS, GAP, PLAIN, TIMES, Costs, GapDecrease
from benchmark.published.vocabulary import margin_of
from benchmark.stats.samples import Sample, Samples, Score, differences_by_seed, with_spreads

# Factor from the printed unit to percentage points. Numbers with other units are not scores.
SCORE_UNITS = {"percent": 1.0, "fraction": 100.0}
GAIN = "_relative_increase"  # of a metric, over the same loss without its calibration


class Measured(NamedTuple):
    """What a study measured: the scores and costs of its runs, and the gaps of an analysis."""

    samples: Samples
    costs: Costs
    gaps: Sequence[GapDecrease]


class Place(NamedTuple):
    """Where a number is measured. ``cell``: of the runs that belong to it, or None."""

    dataset: str
    metric: str
    cell: Cell | None
    split: str


@dataclass(frozen=True, kw_only=True)
class TableKind:
    """A kind of printed numbers.

    name      in ``tables.yaml``
    takes     whether a metric of ``results.csv`` is of the kind
    units     that such numbers may have; none: any unit
    judged    whether verdicts judge it
    compared  our values of a judged number and their margin; None: the scores and their margin
    measured  our values of a number without a verdict, in the unit of the print; None: there are
              none
    free      conditions in which the runs of a judged number without a verdict may differ
    word      stands for the verdict in the CSV file of a table
    says      stands for the verdict in a cell of the page
    note      is said below a table with such numbers
    """

    name: str
    takes: Callable[[str], bool]
    units: tuple[str, ...] = ()
    judged: bool = False
    compared: Callable[[Samples, Score], tuple[Sample, float]] | None = None
    measured: Callable[[Measured, Place], Iterable[float]] | None = None
    free: tuple[str, ...] = ()
    word: str = "no_score"
    says: str = "no score, no verdict"
    note: str = ""


def _scores(ours: Measured, place: Place) -> Iterable[float]:
    if place.cell is None:
        return ()
    return ours.samples.sample(place.cell, place.split, place.metric).by_seed.values()


def _costs(ours: Measured, place: Place) -> Iterable[float]:
    if place.cell is None:
        return ()
    return ours.costs.get((place.cell, place.metric), {}).values()


def _gaps(ours: Measured, place: Place) -> Iterable[float]:
    """Return nothing if our gaps come from several batch sizes: the paper prints one number."""
    gaps = [gap for gap in ours.gaps if gap.dataset == place.dataset]
    sizes = {gap.batch_size for gap in gaps}
    return [gap.decrease for gap in gaps if len(sizes) == 1]


def _gains(samples: Samples, score: Score) -> tuple[Sample, float]:
    """Return by how many percent a loss is above SupAP by seed, and the margin in such percent."""
    cell, split, name = score
    metric = name.removesuffix(GAIN)
    plain = samples.sample(replace(cell, loss=PLAIN, base_loss=PLAIN), split, metric)
    gaps = differences_by_seed(samples.sample(cell, split, metric), plain)
    gains = {seed: 100 * gap / plain.by_seed[seed] for seed, gap in gaps.items()}
    margin = 100 * margin_of(metric, plain.mean) / plain.mean
    return with_spreads({score: Sample(gains, {})})[score], margin


# The first kind that takes a metric has it. Literature values are quoted, whatever their metric.
QUOTED = TableKind(
    name="quoted",
    takes=lambda metric: False,
    word="quoted",
    says="",
    note="Quoted rows are literature values as the paper prints them.",
)
_ALL = (
    QUOTED,
    TableKind(
        name="scores",
        takes=lambda metric: metric_of(metric) is not None,
        units=tuple(SCORE_UNITS),
        judged=True,
        measured=_scores,
        free=("training",),
        word="other_data",
        says="other training set, no verdict",
    ),
    TableKind(
        name="gains",
        takes=lambda metric: metric.endswith(GAIN),
        units=("percent",),
        judged=True,
        compared=_gains,
    ),
    TableKind(
        name="times",
        takes=lambda metric: metric in TIMES,
        measured=_costs,
        word="time",
        says="no verdict on times",
        note="Times belong to the machine that took them and get no verdict.",
    ),
    TableKind(
        name="counts",
        takes=lambda metric: metric in COUNTS,
        measured=_costs,
    ),
    TableKind(
        name="gaps",
        takes=lambda metric: metric == GAP,
        measured=_gaps,
        note=(
            "Our values come from 'analyse decomposability_gap' on each dataset, once it has been "
            "made."
        ),
    ),
    UNMEASURED := TableKind(name="unmeasured", takes=lambda metric: True),
)
KINDS = {kind.name: kind for kind in _ALL}


def kind_of(metric: str, names: Iterable[str] = ()) -> TableKind:
    """Return the first kind that takes a metric: of the named ones, else of all."""
    kinds = (KINDS[name] for name in (*names, *KINDS))
    return next(kind for kind in kinds if kind.takes(metric))
