"""How the time of a loss grows with its batch, and FastAP's with its bins."""

import time
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
REPEATS = 5
EACH = 4  # images of a class, as in table S1
WIDTH = 64  # of an embedding


def milliseconds(name: str, size: int, **params: Any) -> float:
    """Return the shortest time of a loss and its gradient on a batch of so many images."""
    import torch

    rng = generator("timed batch", size)
    rows = torch.tensor(rng.normal(size=(size, WIDTH)), dtype=torch.float32)
    embeddings = torch.nn.functional.normalize(rows).requires_grad_()
    labels = torch.arange(size) // EACH
    loss = loss_of(name, **params)
    seconds = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        loss(embeddings, labels).backward()
        seconds.append(time.perf_counter() - started)
    return 1000 * min(seconds)


def power(times: pd.Series) -> float:
    """Return the least-squares slope of log times over the logarithm of their index."""
    return float(np.polyfit(np.log2(times.index), np.log2(times), 1)[0])


def beyond(value: float, middle: float) -> bool | None:
    """Return whether a power lies above the middle of two; None within a quarter of it."""
    if abs(value - middle) < 0.25:
        return None
    return value > middle


@ANALYSES.register(
    "complexity",
    display="Time of a loss by the size of its batch",
    places=("Smooth-AP Table S1", "FastAP Sec. 3.1"),
)
def complexity(context: Context) -> Analysis:
    """Return the time of each loss of Smooth-AP's table S1 by batch size, and FastAP's by bins."""
    sizes = [size // 8 for size in SIZES] if context.quick else SIZES
    by_loss = {}
    for name in TIMED:
        by_loss[name] = {size: milliseconds(name, size) for size in sizes}
    times = pd.DataFrame(by_loss)
    by_bins = pd.Series({bins: milliseconds("fast_ap", sizes[-1], bins=bins) for bins in BINS})
    powers = times.apply(power)
    bins = power(by_bins)
    values = {
        "powers": powers,
        "bins": bins,
        "tried": listed(BINS),
        "each": EACH,
        "sizes": listed(sizes),
        "by_bins": listed(by_bins, ".1f"),
    }
    others = powers.drop("smooth_ap").max()
    claims = {
        "smooth_ap_grows_faster": beyond(powers["smooth_ap"] - others, 0.5),
        "fast_ap_is_linear": beyond(-max(powers["fast_ap"] - 1, bins), -1.5),
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
