"""The check of a GPU: ``PYTHONPATH=.:tests python -m perf.gpu --out DIR``; a CPU in miniature.

It needs torch, timm, numpy and pandas: what a machine with a GPU and no network may have.
"""

import argparse
import io
import itertools
import math
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from perf import bench, losses
from perf.evaluation import made_up
from perf.timing import Row, Target, seconds_of
from torch import Tensor
from torch.nn.functional import normalize
from torch.utils.benchmark import Timer

from benchmark.core.recipe import ModelConfig, TrainingConfig
from benchmark.losses import LOSSES, create_loss
from benchmark.losses.base import ScoreLoss
from benchmark.metrics import retrieval_metrics
from benchmark.models import create_model
from benchmark.training.numerics import autocast
from benchmark.training.step import Stepper

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
# Seconds of a part after which no further row begins.
PARTS = {"values": 50, "times": 150, "share": 90, "ranking": 60, "resuming": 30}
# Where a score lies near a step of the loss, the last bit of it decides.
TOLERANCES = {"float32": 2e-4, "autocast": 5e-2}
SHARE_OF_BARE_LOOP = 0.97
# The losses of scores, whose kernels are the suite's.
OWN = [entry.name for entry in LOSSES if issubclass(entry.target, ScoreLoss)]


def main(out: Path) -> int:
    """Measure every part; return 1 when one failed or missed a bound."""
    torch.set_float32_matmul_precision("highest")
    threads, parts = torch.get_num_threads(), dict.fromkeys(PARTS, "gpu")
    return int(any(bench.run(parts, out, quick=not CUDA, threads=threads, seconds=PARTS)))


def backward(loss: Any, embeddings: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the value and the gradient of the embeddings."""
    rows = embeddings.detach().requires_grad_()
    value = loss(rows, labels)
    return value.detach(), *torch.autograd.grad(value, rows)


def values(quick: bool) -> Iterator[Row]:
    """Values and gradients beside those of the CPU in float64, per loss and precision."""
    rows, labels = losses.batch(32 if quick else 384, 64)
    rows = normalize(rows + rows[4 * labels], dim=1).detach()  # near those of their class
    for name, precision in itertools.product(OWN, TOLERANCES):
        loss = create_loss(name, **({"margin": 0.0} if name == "blackbox_ap" else {}))
        wanted = backward(loss.double(), rows.double(), labels)
        with torch.autocast(DEVICE.type, torch.bfloat16, enabled=precision == "autocast"):
            torch.manual_seed(0)
            found = backward(loss.float(), rows.to(DEVICE), labels)
        value, gradient = map(_off, found, wanted)
        bound, what = TOLERANCES[precision], f"off the CPU, {precision}"
        bounds = [Target(f"value {what}", value, bound, "of it")]
        bounds.append(Target(f"gradient {what}", gradient, 10 * bound, "of its norm"))
        row = {"loss": name, "precision": precision, "value": value, "gradient": gradient}
        yield {**row, "targets": bounds}


def _off(found: Tensor, wanted: Tensor) -> float:
    off = (found.cpu().double() - wanted).norm() / wanted.norm().clamp(min=1e-9)
    return float(off.nan_to_num(nan=math.inf))


def times(quick: bool) -> Iterator[Row]:
    """Forward + backward of each loss, the score matrix, the dense formula, compiled too."""
    compiler = "eager" if quick else "inductor"  # which needs a compiler of C++ on a CPU
    for size in (32, 64) if quick else (128, 384, 1024, 4096, 16_384, 30_000, 60_000):
        rows, labels = losses.batch(size)
        methods: dict[str, Any] = {name: create_loss(name) for name in OWN}
        if size <= 16_384:
            methods = {losses.FLOOR: losses.products(size)} | methods
        if size <= 384:
            dense = methods["dense SmoothAP"] = losses.dense_smooth_ap
            methods["dense SmoothAP, torch.compile"] = torch.compile(dense, backend=compiler)
        rows = rows.detach().to(DEVICE).requires_grad_()
        peak = peak_of_device if CUDA else losses.peak_of_tensors
        settings = {"floor": losses.FLOOR, "repeats": 3 if quick or size > 16_384 else 7}
        for row in losses.measure(methods, rows, labels, peak, **settings):
            yield {"batch_size": size, **row}


def peak_of_device(work: Callable[[], object]) -> int:
    """Return the bytes of the GPU's tensors that ``work`` adds at its peak."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    work()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def stepper(backbone: str, loss: str = "smooth_ap") -> Stepper:
    """Return a stepper as a run has it, of an untrained network."""
    config = ModelConfig(backbone=backbone, embedding_dim=64, freeze_batch_norm=True)
    model = create_model(config, 0).to(DEVICE, memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-5, fused=True)
    scaler, settings = torch.amp.GradScaler(enabled=False), TrainingConfig(precision="bfloat16")
    return Stepper(model, create_loss(loss), optimizer, scaler, settings, DEVICE, 0)


def pictures(size: int, side: int) -> tuple[Tensor, Tensor]:
    """Return random images and their labels."""
    images = torch.randn(size, 3, side, side, generator=torch.Generator().manual_seed(0))
    images = images.contiguous(memory_format=torch.channels_last)
    return images.pin_memory() if CUDA else images, torch.arange(size) // 4


def share(quick: bool) -> Iterator[Row]:
    """The share of the loss in a training step, and the step beside a bare loop's."""
    networks = ("test_resnet",) if quick else ("resnet50", "deit_small_patch16_224")
    for backbone, size in itertools.product(networks, (8,) if quick else (128, 384)):
        step, (images, labels) = stepper(backbone), pictures(size, 64 if quick else 224)

        def bare(step=step, images=images, labels=labels) -> None:
            step.optimizer.zero_grad(set_to_none=True)
            with autocast(step.config, DEVICE):
                embeddings = step.model(images.to(DEVICE, non_blocking=True))
            step.loss(embeddings, labels).backward()
            step.optimizer.step()

        # after one call that is not timed each
        both = (partial(step, images, labels, 0), bare)
        ours, theirs = (
            1000 * Timer("work()", globals={"work": work}).timeit(2 if quick else 9).mean
            for work in both
        )
        step.stopwatch.drain()
        for number in range(5):
            step(images, labels, number)
        loss_ms = 1000 * step.stopwatch.drain() / 5
        row = {"network": backbone, "batch_size": size, "step_ms": ours, "loss_ms": loss_ms}
        of_bare = Target("a step", theirs / ours, SHARE_OF_BARE_LOOP, "x bare loop", True)
        row |= {"loss_share": loss_ms / ours, "of_bare_loop": of_bare.value}
        yield {**row, "targets": [] if quick else [of_bare]}


def ranking(quick: bool) -> Iterator[Row]:
    """Seconds of Recall@K, mAP@R and mAP, and whether they are those of the CPU."""
    device, width = "cuda" if CUDA else None, 64 if quick else 512
    here, cpu = (retrieval_metrics(*made_up(400, width), device=each) for each in (device, None))
    off = max(abs(here[name] - cpu[name]) for name in here)
    row = {"queries": 400, "gallery": 400, "seconds": None, "off_the_cpu": off}
    yield {**row, "targets": [Target("evaluation off the CPU", off, 1e-4, "")]}
    for sizes in ((400,), (50, 600)) if quick else ((60_502,), (1_000, 1_000_000)):
        sets = [each for size in sizes for each in made_up(size, width)]
        seconds = seconds_of(partial(retrieval_metrics, *sets, device=device))
        row = {"queries": sizes[0], "gallery": sizes[-1], "seconds": seconds}
        yield {**row, "off_the_cpu": None}


def resuming(quick: bool) -> Iterator[Row]:
    """Whether steps after a saved and loaded state end in the same bits."""
    backbone, side = ("test_resnet", 64) if quick else ("resnet50", 224)
    for loss in ("smooth_ap", "roadmap", "blackbox_ap"):
        (images, labels), whole, saved = pictures(16, side), stepper(backbone, loss), io.BytesIO()
        for number in range(4):
            whole(images, labels, number)
            if number == 1:
                torch.save(whole.state_dict(), saved)
        saved.seek(0)
        again = stepper(backbone, loss)
        again.load_state_dict(torch.load(saved, map_location="cpu", weights_only=True))
        for number in (2, 3):
            again(images, labels, number)
        one, other = whole.model.state_dict(), again.model.state_dict()
        same = sum(torch.equal(one[name], other[name]) for name in one) / len(one)
        bound = Target("resuming in the same bits", same, 1, "of the tensors", at_least=True)
        yield {"loss": loss, "same_bits": same, "targets": [bound]}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("results/bench-gpu"))
    sys.exit(main(parser.parse_args().out))
