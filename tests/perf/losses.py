"""Forward and backward of the losses beside the library's, dense formulas and the bare products."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from perf.timing import Row, Target, measure_methods, peak_of_process
from torch import Tensor
from torch.nn.functional import normalize

from benchmark.losses import create_loss
from benchmark.losses.conformance.suite import tensor_bytes
from benchmark.losses.kernels.fused import row_tiles
from benchmark.report import drawing

Method = Callable[[Tensor, Tensor], Tensor]  # embeddings (B, D), labels (B,) -> scalar loss
FLOOR = "score matrix (floor)"
LIBRARY = "PML SmoothAP"
BATCH_SIZES = (32, 64, 128, 256, 384, 512, 1024, 2048, 4096)
QUICK_BATCH_SIZES = (128, 384, 1024)
LARGE_CLASSES = (1024, 2048, 4096)
# The dense formulas hold five tensors of batch^3 numbers: 2.5 GiB at this size, 20 at twice it.
LARGEST_CUBIC = 512
DIMENSION = 512
# Multiples of the floor from JUDGED_FROM on, and times faster than the library at JUDGED_FROM.
FLOOR_BOUNDS = dict.fromkeys(
    ("roadmap", "fast_ap", "softbin_ap", "recall_at_k", "smooth_recall", "sup_recall",
     "smooth_ndcg", "sup_ndcg", "approx_ndcg", "pnp"), 4
) | {"smooth_ap": 3, "sup_ap": 3, "blackbox_ap": 6}  # fmt: skip
LIBRARY_BOUNDS = {"smooth_ap": 150, "sup_ap": 100}
JUDGED_FROM = 384
LARGEST = 4096
MAX_SECONDS = 10
MAX_GIB = 4
OURS = (*FLOOR_BOUNDS, "calibration")
# Of large_batch; the bounds are times the floor, GiB, and tiles against all scores at once.
TILED = ("smooth_ap", "sup_ap", "roadmap")
TILED_FLOOR = "tiled products (floor)"
DENSE = "smooth_ap, all scores"
TILED_SIZES = (256, 1024, 4096, 16384, 59551)
QUICK_TILED_SIZES = (256, 1024)
REPEATED_TO = 16384
DENSE_TO = 4096
MAX_TIMES_FLOOR = 3
MAX_TILED_GIB = 1.5
MAX_TIMES_DENSE = 1.3


def losses(quick: bool) -> Iterator[Row]:
    """512-d float32 rows, four images a class, or one class with a quarter of the batch.

    ``times_floor``: multiples of the score matrix and its backward pass. ``times_faster``: than PML
    SmoothAP, which computes another function (docs/background/conformance.md). ``peak_mb``: tensors
    alive at once beyond inputs and gradient.
    """
    repeats, seconds = (5, 1.0) if quick else (15, 4.0)
    for size in QUICK_BATCH_SIZES if quick else BATCH_SIZES:
        yield from beside_library(size, repeats, seconds)
    for size in LARGE_CLASSES[: 1 if quick else None]:
        yield from beside_library(size, 3, 1.0 if quick else 10.0, classes="quarter")


def large_batch(quick: bool) -> Iterator[Row]:
    """Losses whose scores are held some rows at a time, up to all training images of SOP at once:
    512-d float32 rows, five per class. ``times_floor``: multiples of the three products of each
    tile. ``peak_mb``: as for ``losses``; of the largest batch, growth of the process.
    """
    for size in QUICK_TILED_SIZES if quick else TILED_SIZES:
        tile = min(row_tiles(10**6, size, None)[0].stop, max(1, size // 4))
        methods = {TILED_FLOOR: products(tile), **{name: in_tiles(name, tile) for name in TILED}}
        if size <= DENSE_TO:
            methods[DENSE] = in_tiles("smooth_ap", size)
        once = size > REPEATED_TO  # the allocator's events of more would fill the memory
        settings = {"repeats": 1 if once else 5, "count_first": once, "floor": TILED_FLOOR}
        peak = peak_of_process if once else peak_of_tensors
        rows = measure(methods, *batch(size, per_class=5), peak, **settings)
        dense = {row["method"]: row["milliseconds"] for row in rows}.get(DENSE)
        for row in rows:
            what = f"tiled losses, batch {size:,}"
            targets = []
            if row["method"] in TILED and size == TILED_SIZES[-1]:
                cost = row["times_floor"]
                memory = row["peak_mb"] / 1024
                targets.append(Target(f"{what}, cost", cost, MAX_TIMES_FLOOR, "x floor"))
                targets.append(Target(f"{what}, memory", memory, MAX_TILED_GIB, "GiB"))
            if row["method"] == "smooth_ap" and size == DENSE_TO:
                what = "tiles against all scores"
                ratio = row["milliseconds"] / dense
                targets.append(Target(what, ratio, MAX_TIMES_DENSE, "x all scores"))
            yield {"batch_size": size, "rows_per_tile": tile, **row, "targets": targets}


def batch(size: int, dimension: int = DIMENSION, per_class: int = 4) -> tuple[Tensor, Tensor]:
    """Return random unit rows (size, dimension), which want a gradient, and their labels."""
    free = torch.randn(size, dimension, generator=torch.Generator().manual_seed(0))
    return normalize(free, dim=1).requires_grad_(), torch.arange(size) // per_class


def step(method: Method, embeddings: Tensor, labels: Tensor) -> None:
    """Pass forward and backward; each call makes its own gradient, whose bytes are known."""
    method(embeddings, labels).backward()
    embeddings.grad = None
    if embeddings.is_cuda:
        torch.cuda.synchronize()


def peak_of_tensors(call: Callable[[], object]) -> int:
    """Return the most bytes of CPU tensors that ``call`` holds at once."""
    return tensor_bytes(call)[0]


def measure(
    methods: dict[str, Method],
    embeddings: Tensor,
    labels: Tensor,
    peak: Callable[[Callable[[], object]], int] = peak_of_tensors,
    **settings: Any,
) -> list[Row]:
    """Return a row for each method on one batch."""
    calls = {name: partial(step, method, embeddings, labels) for name, method in methods.items()}
    rows = measure_methods(calls, peak, **settings)
    gradient = embeddings.nbytes / 2**20
    return [{**row, "peak_mb": max(0.0, row["peak_mb"] - gradient)} for row in rows]


def beside_library(
    size: int, repeats: int, most: float, classes: str = "balanced"
) -> Iterator[Row]:
    """Give a row for each method at one batch size; ``classes``: "balanced" or "quarter"."""
    from pytorch_metric_learning import losses as library

    embeddings, labels = batch(size)
    methods = {FLOOR: products(size)}
    for name in OURS:
        methods[name] = partial(create_loss(name), generator=torch.Generator().manual_seed(0))
    methods["PML FastAP"] = library.FastAPLoss()
    if classes == "quarter":
        labels[: size // 4] = 0
    elif size <= LARGEST_CUBIC:
        methods[LIBRARY] = library.SmoothAPLoss()  # which needs balanced classes
        methods |= {"dense SmoothAP": dense_smooth_ap, "dense SupAP": dense_sup_ap}
    settings = {"floor": FLOOR, "library": LIBRARY, "repeats": repeats, "seconds": most}
    for row in measure(methods, embeddings, labels, **settings):
        name = row["method"]
        balanced = classes == "balanced"
        targets = []
        bound = FLOOR_BOUNDS.get(name)
        faster = LIBRARY_BOUNDS.get(name)
        if bound and balanced and size >= JUDGED_FROM:
            targets.append(Target(f"{name}, cost", row["times_floor"], bound, "x floor"))
        if faster and balanced and size == JUDGED_FROM:
            speed = row["times_faster"]
            targets.append(Target(f"{name}, speed", speed, faster, f"x {LIBRARY}", at_least=True))
        if bound and size == LARGEST:
            what = f"every AP loss, batch {size:,}, {classes}"
            seconds = row["milliseconds"] / 1000
            targets.append(Target(f"{what}, time", seconds, MAX_SECONDS, "s"))
            targets.append(Target(f"{what}, memory", row["peak_mb"] / 1024, MAX_GIB, "GiB"))
        yield {"batch_size": size, "classes": classes, **row, "targets": targets}


def in_tiles(name: str, rows: int) -> Any:
    """Return a loss that holds some rows of scores at a time."""
    loss = create_loss(name)
    loss.rows_per_tile = rows
    return loss


def products(rows: int) -> Method:
    """Return the cheapest step that a loss of scores could be, some rows of them at a time."""
    return lambda embeddings, labels: Products.apply(embeddings, rows)


class Products(torch.autograd.Function):
    """The scores E E^T, and the two products of a gradient with them."""

    @staticmethod
    def forward(ctx: Any, embeddings: Tensor, rows: int) -> Tensor:
        gradient = torch.zeros_like(embeddings)
        for tile in row_tiles(len(embeddings), len(embeddings), rows):
            queries = embeddings[tile]
            scores = queries @ embeddings.T
            gradient.addmm_(scores.T, queries)
            gradient[tile].addmm_(scores, embeddings)
        ctx.save_for_backward(gradient)
        return gradient.new_zeros(())

    @staticmethod
    def backward(ctx: Any, _: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        return ctx.saved_tensors[0], None


def over_all_triples(steps: Callable[[Tensor], tuple[Tensor, Tensor]]) -> Method:
    """Return 1 - AP as its formulas read, for all triples at once: time and memory O(B^3).

    ``steps``: what an item adds to the rank of a positive that it leads by a gap, when it is a
    positive itself and when not.
    """

    def loss(embeddings: Tensor, labels: Tensor) -> Tensor:
        scores = embeddings @ embeddings.T
        among, beyond = steps(scores.unsqueeze(1) - scores.unsqueeze(2))  # s_qj - s_qk at [q, k, j]
        targets = (labels.unsqueeze(1) == labels).to(scores)  # on its device
        positive = targets.unsqueeze(1)
        others = 1 - torch.eye(len(labels), device=scores.device)
        rank_positive = 1 + (among * others * positive).sum(2)
        rank = rank_positive + (beyond * (1 - positive)).sum(2)
        return 1 - ((rank_positive / rank * targets).sum(1) / targets.sum(1)).mean()

    return loss


def _smooth(gaps: Tensor, tau: float = 0.01) -> tuple[Tensor, Tensor]:
    steps = torch.sigmoid(gaps / tau)
    return steps, steps


def _bounded(
    gaps: Tensor, tau: float = 0.01, rho: float = 100.0, delta: float = 0.05
) -> tuple[Tensor, Tensor]:
    curve = torch.sigmoid(gaps / tau) + 0.5 * (gaps >= 0)
    top = torch.sigmoid(torch.tensor(delta / tau)) + 0.5
    return gaps >= 0, torch.where(gaps > delta, rho * (gaps - delta) + top, curve)


dense_smooth_ap = over_all_triples(_smooth)  # Smooth-AP Eq. 5 to 7
dense_sup_ap = over_all_triples(_bounded)  # ROADMAP Eq. 3 to 5


def draw_losses(table: pd.DataFrame, out: Path) -> None:
    """Draw ``loss_time``: time and memory against batch size; alternatives are grey."""
    data = table[table["classes"] == "balanced"]
    grey = {"color": drawing.FAINT, "linestyle": "--", "markerfacecolor": "white"}
    labels = {"milliseconds": "forward + backward (ms)", "peak_mb": "peak memory of tensors (MiB)"}
    with drawing.styled():
        figure, axes = drawing.new_figure(drawing.DOUBLE, 3.9, 1, 2)
        for axis, (column, label) in zip(axes[0], labels.items(), strict=True):
            marks = iter("os^DvP")
            for name, points in data.groupby("method", sort=False):
                if name == FLOOR:
                    style = {"color": drawing.INK, "linewidth": 1.6}
                else:
                    style = drawing.line(name) if name in OURS else grey | {"marker": next(marks)}
                axis.plot(points["batch_size"], points[column], label=name, **style)
            axis.set_xscale("log", base=2)
            axis.set(yscale="log", xlabel="batch size", ylabel=label)
        drawing.legend_below(figure)
    words = "Time and peak memory of one forward and backward pass against batch size; log axes."
    figure = drawing.Drawing(words, words, figure, data)
    drawing.save(figure, out, "loss_time", "Cost of the losses")
