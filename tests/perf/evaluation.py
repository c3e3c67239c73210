"""Time and memory of exact evaluation against its alternatives and the floor, the matrix product alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmark.metrics import retrieval_metrics
from benchmark.metrics.ranks import block_size
from benchmark.metrics.search import flat_index
from benchmark.report.figures.drawing import save
from perf.evaluation_memory import (
    DIMENSION,
    PER_CLASS,
    RECALL_AT,
    made_up,
    measured_apart,
)
from perf.figures import draw_evaluation
from perf.memory import peak_of_process
from perf.rates import machine_rates
from perf.sections import Row, Section, load
from perf.targets import Target, judgement
from perf.turns import medians, seconds_of, take_turns

FLOOR = "matrix product (floor)"
OURS, OURS_SHORT, OURS_APART = "ours", "ours, R@1 + mAP@R", "ours, own process"
RIVAL = "AccuracyCalculator"
ALL_METRICS, SHORT_METRICS = "R@1-1000, mAP@R, mAP", "R@1, mAP@R"
SIZES, QUICK_SIZES = (2_500, 5_000, 10_000, 20_000), (1_250, 2_500, 5_000)
# Beyond this size the library's full mAP, which keeps whole rankings, needs more memory than usual machines have.
CALCULATOR_LIMIT = 10_000
# Stanford Online Products and iNaturalist as evaluated, in a process each. Memory does not grow with the queries, time
# does: all of SOP's are made, unless it has to be quick, and some of iNaturalist's.
SOP, INATURALIST = 60_502, 136_093
QUICK_QUERIES, INATURALIST_QUERIES = 4_096, 20_000
MOST_FLOORS, MOST_GIB = 1.5, 4
JUDGED = 20_000  # items
SHOWN = (
    "method",
    "queries",
    "metrics",
    "seconds",
    "times_floor",
    "faster_than_rival",
    "peak_mb",
    "repeats",
)
SHOWN += ("target", "met")


def section(out: Path, *, quick: bool, show: Callable[[str], None]) -> Section:
    """Measures evaluation at several sizes; draws ``evaluation_time`` into ``out``."""
    begin, threads = load(), torch.get_num_threads()
    rows = measure_evaluation(QUICK_SIZES if quick else SIZES, repeats=2, show=show)
    if not quick:
        rows += measure_evaluation([SOP], repeats=1, show=show, names=(FLOOR, OURS))
    exponents = growth(rows)
    save(draw_evaluation(rows, (OURS, OURS_SHORT), exponents), Path(out), "evaluation_time")
    apart = {SOP: QUICK_QUERIES} if quick else {SOP: SOP, INATURALIST: INATURALIST_QUERIES}
    for items, queries in apart.items():
        rows.append(apart_row(items, queries, threads))
        show(
            f"  {items:>8,} items  {OURS_APART:<26}{rows[-1]['seconds']:9.2f} s, {queries:,} queries"
        )
    judged = [(row, targets_of(row)) for row in rows]
    rows = sorted(
        ({**row, **judgement(found)} for row, found in judged), key=lambda row: row["items"]
    )
    targets = sorted(
        (target for _, found in judged for target in found), key=lambda target: target.what
    )
    largest = max(row["items"] for row in rows if row["method"] == FLOOR)
    note = (
        f"Random unit rows, {DIMENSION}-d, {PER_CLASS} to a class; each of `queries` queries all others; {threads} "
        f"threads; medians of interleaved repeats. `faster_than_rival`: times faster than {RIVAL} with R@1 and mAP@R. "
        "`peak_mb`: growth of the process beyond the embeddings. Full mAP of AccuracyCalculator is left out above "
        f"{CALCULATOR_LIMIT:,} items: at {SOP:,} it would keep {12e-9 * SOP**2:.0f} GB of neighbours and distances. "
        "Growth with the number of items, fitted exponents: "
        f"{', '.join(f'{name} {value:.2f}' for name, value in exponents.items())}. Load {max(begin, load()):.1f}. "
        f"Physical limit at {largest:,} items, scores written and read once: "
        f"{machine_rates().limit(2 * largest**2 * DIMENSION, 8 * largest**2)}."
    )
    return Section("evaluation", "Evaluation", note, rows, "items", SHOWN, tuple(targets))


def targets_of(row: Row) -> list[Target]:
    """Returns the bounds that this row is to keep."""
    where, found = f"{row['items']:,} items", []
    if row["method"] == OURS and row["items"] >= JUDGED:
        found.append(
            Target("all metrics, cost", row["times_floor"], MOST_FLOORS, "x floor", where=where)
        )
    if row["method"] == OURS_SHORT and row["items"] >= JUDGED and row["faster_than_rival"]:
        faster = row["faster_than_rival"]
        found.append(
            Target("R@1 and mAP@R, speed", faster, 1, f"x {RIVAL}", least=True, where=where)
        )
    if row["method"] == OURS_APART and row["peak_mb"] is not None:
        found.append(
            Target("memory beyond embeddings", row["peak_mb"] / 1024, MOST_GIB, "GiB", where=where)
        )
    return found


def measure_evaluation(
    sizes: Sequence[int],
    dim: int = DIMENSION,
    repeats: int = 3,
    *,
    show: Callable[[str], None] = lambda text: None,
    names: Sequence[str] | None = None,
) -> list[Row]:
    """Returns a row per method (of ``names``, or all) and size.

    Methods take turns, so that a busy spell of the machine meets all of them. A method that is not installed or
    cannot hold the size in memory has no row.
    """
    rows = []
    for items in sizes:
        methods = {
            name: found
            for name, found in _methods(*made_up(items, dim)).items()
            if names is None or name in names
        }
        peaks: dict[str, int | None] = {}

        def measure(
            name: str, run: Callable[[], Any], peaks: dict[str, int | None] = peaks
        ) -> float:
            return seconds_of(lambda: peaks.setdefault(name, peak_of_process(run)))

        found = take_turns(
            {
                name: lambda name=name, run=run: measure(name, run)
                for name, (_, run) in methods.items()
            },
            repeats,
        )
        typical = medians(found)
        for name, (metrics, _) in methods.items():
            rows.append(
                {
                    "method": name,
                    "items": items,
                    "dim": dim,
                    "queries": items,
                    "metrics": metrics,
                    "seconds": typical[name],
                    "least": min(found[name]),
                    "most": max(found[name]),
                    "times_floor": typical[name] / typical[FLOOR],
                    "faster_than_rival": typical[RIVAL] / typical[name]
                    if RIVAL in typical
                    else None,
                    "peak_mb": None if peaks[name] is None else peaks[name] / 2**20,
                    "repeats": repeats,
                    "threads": torch.get_num_threads(),
                }
            )
            show(
                f"  {items:>8,} items  {name:<26}{typical[name]:9.2f} s  {rows[-1]['times_floor']:6.2f} x floor"
            )
    return rows


def apart_row(items: int, queries: int, threads: int) -> Row:
    """Returns the row of our metrics in a process of their own, measured once."""
    found = measured_apart(items, queries, threads)
    return {
        "method": OURS_APART,
        "items": items,
        "dim": DIMENSION,
        "queries": queries,
        "metrics": ALL_METRICS,
        "seconds": found["seconds"],
        "least": found["seconds"],
        "most": found["seconds"],
        "times_floor": None,
        "faster_than_rival": None,
        "peak_mb": found["peak_mb"],
        "repeats": 1,
        "threads": threads,
    }


def growth(rows: Sequence[Row]) -> dict[str, float]:
    """Returns for each method with three sizes or more the exponent b of seconds ~ items ** b, by least squares on
    logarithms."""
    found = {}
    for name in dict.fromkeys(row["method"] for row in rows):
        points = [(row["items"], row["seconds"]) for row in rows if row["method"] == name]
        if len(points) >= 3:
            sizes, seconds = np.log(np.array(points, dtype=float)).T
            found[name] = float(np.polyfit(sizes, seconds, 1)[0])
    return found


def _methods(
    embeddings: np.ndarray, labels: np.ndarray
) -> dict[str, tuple[str, Callable[[], Any]]]:
    """Returns {method: (what it computes, call)}."""
    items, threads = len(embeddings), torch.get_num_threads()

    def ours(*recall_at: int) -> Callable[[], Any]:
        return lambda: retrieval_metrics(embeddings, labels, recall_at=recall_at, threads=threads)

    def faiss(neighbours: int) -> Callable[[], Any]:
        return lambda: flat_index(embeddings).search(embeddings, min(neighbours, items))

    methods = {
        FLOOR: ("none", lambda: _matrix_product(embeddings)),
        OURS: (ALL_METRICS, ours(*RECALL_AT)),
        OURS_SHORT: (SHORT_METRICS, ours(1)),
        "faiss, 6 neighbours": ("none", faiss(6)),
        "faiss, 1001 neighbours": ("none", faiss(1001)),
    }
    try:
        from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator
    except ImportError:
        return methods
    short = AccuracyCalculator(
        include=("precision_at_1", "mean_average_precision_at_r"), k="max_bin_count"
    )
    methods[RIVAL] = (SHORT_METRICS, lambda: short.get_accuracy(embeddings, labels))
    if items <= CALCULATOR_LIMIT:
        full = AccuracyCalculator(include=("precision_at_1", "mean_average_precision"), k=None)
        methods[f"{RIVAL}, full"] = ("R@1, mAP", lambda: full.get_accuracy(embeddings, labels))
    return methods


def _matrix_product(embeddings: np.ndarray) -> None:
    """Computes all scores in the blocks that the metrics use, and nothing from them."""
    items = len(embeddings)
    size = min(block_size(items), items)
    scores = np.empty((size, items), dtype=np.float32)
    for start in range(0, items, size):
        part = embeddings[start : start + size]
        np.matmul(part, embeddings.T, out=scores[: len(part)])
