"""How the time of a loss grows with its batch, and FastAP's with its bins.

Every loss and size is timed once in a round, in processor time. A power is of the times of one
round, so that what slows a machine for a while slows all of them alike.
"""

from collections.abc import Mapping
from time import process_time
from typing import Any

import numpy as np
import pandas as pd

from benchmark.analyses import ANALYSES
from benchmark.analyses.analysis import Analysis, Context, generator
from benchmark.analyses.worked_examples import loss_of
from benchmark.core.words import listed
from benchmark.report.drawing import DOUBLE, line, new_figure, styled
from benchmark.report.labels import loss_name

TIMED = ("blackbox_ap", "fast_ap", "smooth_ap")
SIZES = (256, 512, 1024, 2048)
BINS = (10, 20, 40, 80)
ROUNDS = 6  # the first one warms up
NEAR = 0.25  # a power as near to the middle of two decides neither way
BUSY = 0.5  # powers of rounds that differ by more were measured on a busy machine
EACH = 4  # images of a class, as in table S1
WIDTH = 64  # of an embedding


def milliseconds(name: str, size: int, params: Mapping[str, Any]) -> float:
    """Return the processor time of a loss and its gradient on a batch of so many images."""
    import torch

    rng = generator("timed batch", size)
    rows = torch.tensor(rng.normal(size=(size, WIDTH)), dtype=torch.float32)
    embeddings = torch.nn.functional.normalize(rows).requires_grad_()
    labels = torch.arange(size) // EACH
    loss = loss_of(name, **params)
    started = process_time()
    loss(embeddings, labels).backward()
    seconds = process_time() - started
    return 1000 * seconds


def rounds_of(sizes: tuple[int, ...]) -> dict[str, pd.DataFrame]:
    """Return the milliseconds by round and size of each loss, and of "bins" by FastAP's bins."""
    timed: list[tuple[str, int, str, int, dict[str, int]]] = []
    for size in sizes:
        timed += [(name, size, name, size, {}) for name in TIMED]
    timed += [("bins", bins, "fast_ap", sizes[-1], {"bins": bins}) for bins in BINS]
    rows = []
    for number in range(ROUNDS):
        for series, at, name, size, params in timed:
            time = milliseconds(name, size, params)
            rows.append((series, number, at, time))
    table = pd.DataFrame(rows, columns=["series", "round", "at", "ms"])
    warm = table[table["round"] > 0]
    rounds = {}
    for label, of_series in warm.groupby("series"):
        by_size = of_series.pivot(index="round", columns="at", values="ms")
        rounds[str(label)] = by_size
    return rounds


def powers(rounds: pd.DataFrame) -> np.ndarray:
    """Return the least-squares slope of log times over the log of their column, of each round."""
    sizes = np.log2(rounds.columns.to_numpy(float))
    times = np.log2(rounds.to_numpy())
    slopes, _ = np.polyfit(sizes, times.T, 1)
    return slopes


def beyond(values: np.ndarray, middle: float) -> bool | None:
    """Return whether the powers of rounds lie above the middle of two.

    None within a quarter of it, and where the rounds differ too much to tell.
    """
    if np.ptp(values) > BUSY:
        return None
    above = float(np.median(values)) - middle
    if abs(above) < NEAR:
        return None
    return above > 0


@ANALYSES.register(
    "complexity",
    display="Time of a loss by the size of its batch",
    places=("Smooth-AP Table S1", "FastAP Sec. 3.1"),
)
def complexity(context: Context) -> Analysis:
    """Return the time of each loss of Smooth-AP's table S1 by batch size, and FastAP's by bins."""
    sizes = tuple(size // 8 for size in SIZES) if context.quick else SIZES
    rounds = rounds_of(sizes)
    by_round = {series: powers(times) for series, times in rounds.items()}
    times = pd.DataFrame({name: rounds[name].median() for name in TIMED})
    by_bins = rounds["bins"].median()
    values = {
        "powers": {series: float(np.median(each)) for series, each in by_round.items()},
        "spread": max(float(np.ptp(each)) for each in by_round.values()),
        "rounds": ROUNDS - 1,
        "tried": listed(BINS),
        "each": EACH,
        "sizes": listed(sizes),
        "by_bins": listed(by_bins, ".1f"),
    }
    others = np.maximum(by_round["fast_ap"], by_round["blackbox_ap"])
    by_list = by_round["fast_ap"] - 1
    steepest = np.maximum(by_list, by_round["bins"])
    claims = {
        "smooth_ap_grows_faster": beyond(by_round["smooth_ap"] - others, 0.5),
        "fast_ap_is_linear": beyond(-steepest, -1.5),
    }
    rows = [("", row) for row in times.itertuples()]
    headers = ["batch size", *((loss_name(name), "ms") for name in TIMED)]
    with styled():
        figure, ((axes,),) = new_figure(DOUBLE / 2, 2.8)
        for name in TIMED:
            axes.plot(times[name], label=loss_name(name), **line(name))
        axes.set(xscale="log", yscale="log", xlabel="batch size", ylabel="loss and gradient (ms)")
        axes.legend()
    return Analysis(figure, times.reset_index(), headers, rows, values, claims)
