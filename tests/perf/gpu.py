"""The check of a GPU: ``PYTHONPATH=.:tests python -m perf.gpu [PART ...] --out DIR``.

It needs torch, torchvision, timm, numpy, pandas, PyYAML, tqdm, filelock and pydantic with what that
needs, and for the catalogue pytorch-metric-learning; simplejpeg makes ``files`` faster. On a CPU it
runs in miniature. What is measured is in DIR at once: ``networks`` goes on where it stopped.
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
from perf.studies import CUDA, DEVICE, pictures
from perf.studies import stepper as stepper_of
from perf.timing import Row, Target, seconds_of
from torch import Tensor
from torch.nn.functional import normalize
from torch.utils.benchmark import Timer

from benchmark.core.recipe import ModelConfig, TrainingConfig
from benchmark.losses import LOSSES, create_loss
from benchmark.losses.base import ScoreLoss
from benchmark.metrics import retrieval_metrics
from benchmark.training.numerics import autocast
from benchmark.training.step import Stepper

# Part -> its module, and the seconds after which no row of it begins.
PARTS = {
    "values": ("gpu", 15),
    "times": ("gpu", 50),
    "share": ("gpu", 20),
    "ranking": ("gpu", 20),
    "resuming": ("gpu", 20),
    "precision": ("studies", 25),
    "files": ("feeding", 90),
    "catalogue": ("studies", 60),
    "networks": ("studies", 120),
}
GOING_ON = ("networks",)
# Of float32, and of embeddings in half precision under autocast, which a loss has to switch off.
TYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
# Where a score lies near a step of the loss, the last bit of it decides.
TOLERANCE = 2e-4
SCALE = 2.0**10  # of the value, as a run in float16 scales it, so that no gradient vanishes
SHARE_OF_BARE_LOOP = 0.97
# The losses of scores, whose kernels are the suite's.
OWN = [entry.name for entry in LOSSES if issubclass(entry.target, ScoreLoss)]


def main(out: Path, names: tuple[str, ...] = ()) -> int:
    """Measure the parts that are named, or all; return 1 when one failed or missed a bound."""
    torch.set_float32_matmul_precision("highest")
    chosen = {name: PARTS[name] for name in names or PARTS}
    modules = {name: module for name, (module, _) in chosen.items()}
    seconds = {name: limit for name, (_, limit) in chosen.items()}
    failed, missed = bench.run(
        modules,
        out,
        quick=not CUDA,
        threads=torch.get_num_threads(),
        seconds=seconds,
        going_on=GOING_ON,
    )
    return int(failed or missed)


def backward(
    loss: Any, embeddings: Tensor, labels: Tensor, scale: float = 1.0
) -> tuple[Tensor, Tensor]:
    """Return the value and the gradient of the embeddings, of ``scale`` times the value."""
    rows = embeddings.detach().requires_grad_()
    value = loss(rows, labels)
    return value.detach(), *torch.autograd.grad(scale * value, rows)


def values(quick: bool) -> Iterator[Row]:
    """Values and gradients beside those of the CPU in float64, per loss and type of embeddings;
    those in half precision stand under autocast, which a loss has to switch off.
    """
    free, labels = losses.batch(384, 64)
    near = normalize(free + free[4 * labels], dim=1).detach()  # near those of their class
    for name, (kind, number_type) in itertools.product(OWN, TYPES.items()):
        loss = create_loss(name, **({"margin": 0.0} if name == "blackbox_ap" else {}))
        rows = near.to(number_type)
        wanted = backward(loss.double(), rows.double(), labels, SCALE)
        half = number_type != torch.float32
        with torch.autocast(DEVICE.type, number_type if half else torch.bfloat16, enabled=half):
            torch.manual_seed(0)
            found = backward(loss.float(), rows.to(DEVICE), labels, SCALE)
        value, gradient = map(_off, found, wanted)
        what = f"off the CPU, {kind}"
        bounds = [Target(f"value {what}", value, TOLERANCE, "of it")]
        bounds.append(Target(f"gradient {what}", gradient, 10 * TOLERANCE, "of its norm"))
        row = {"loss": name, "embeddings": kind, "value": value, "gradient": gradient}
        yield {**row, "targets": bounds}


def _off(found: Tensor, wanted: Tensor) -> float:
    off = (found.cpu().double() - wanted).norm() / wanted.norm().clamp(min=1e-9)
    return float(off.nan_to_num(nan=math.inf))


def times(quick: bool) -> Iterator[Row]:
    """Forward + backward of each loss, the score matrix, the dense formula, compiled too; of the
    largest batches three losses, some rows of scores at a time.
    """
    compiler = "eager" if quick else "inductor"  # which needs a compiler of C++ on a CPU
    for size in (32, 64) if quick else (128, 384, 1024, 4096, 16_384, 60_000):
        rows, labels = losses.batch(size)
        chosen = OWN if size <= 4096 else losses.TILED
        methods: dict[str, Any] = {name: create_loss(name) for name in chosen}
        if size <= 16_384:
            methods = {losses.FLOOR: losses.products(size)} | methods
        if size <= 384:
            methods["dense SmoothAP"] = losses.dense_smooth_ap
        if size == (64 if quick else 384):
            compiled = torch.compile(losses.dense_smooth_ap, backend=compiler)
            methods["dense SmoothAP, torch.compile"] = compiled
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
    return stepper_of(config, loss, TrainingConfig(precision="bfloat16"))


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
    device = "cuda" if CUDA else None
    width = 64 if quick else 512
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
        one = whole.model.state_dict()
        other = again.model.state_dict()
        same = sum(torch.equal(one[name], other[name]) for name in one) / len(one)
        bound = Target("resuming in the same bits", same, 1, "of the tensors", at_least=True)
        yield {"loss": loss, "same_bits": same, "targets": [bound]}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--out", type=Path, default=Path("results/bench-gpu"))
    wanted = parser.parse_args()
    sys.exit(main(wanted.out, tuple(wanted.parts)))
