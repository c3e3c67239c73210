"""The check of a GPU: ``PYTHONPATH=.:tests python -m perf.gpu --out DIR``; a CPU in miniature.

It needs torch, timm, numpy and pandas: what a machine with a GPU and no network may have.
"""

from __future__ import annotations

import argparse
import io
import itertools
import json
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.benchmark import Timer

from benchmark.core.code_version import code_version
from benchmark.core.recipe import ModelConfig, TrainingConfig
from benchmark.losses import LOSSES, create_loss
from benchmark.losses.base import ScoreLoss
from benchmark.metrics import retrieval_metrics
from benchmark.models import create_model
from benchmark.training.numerics import autocast
from benchmark.training.step import Stepper
from perf import alternatives

CUDA = torch.cuda.is_available()
DEVICE, SMALL = torch.device("cuda" if CUDA else "cpu"), not CUDA
# Where a score lies near a step of the loss, the last bit of it decides.
TOLERANCES = {"float32": 2e-4, "autocast": 5e-2}
FLOOR, SHARE_OF_BARE_LOOP = "score matrix", 0.97
Row = dict[str, Any]


def main(out: Path) -> int:
    """Measure every part and write ``gpu.json``; return 1 when one failed or missed a bound."""
    out.mkdir(parents=True, exist_ok=True)
    torch.set_float32_matmul_precision("highest")
    name = torch.cuda.get_device_name() if CUDA else "CPU, in miniature: no GPU was measured"
    report: Row = {"device": name, "torch": torch.__version__, "code_version": code_version()}
    wrong = False
    for title, (seconds, measure) in PARTS.items():
        rows, start = report.setdefault(title, []), time.monotonic()
        print(f"{title} ...")
        try:
            for row in measure():
                rows.append(row)
                print(f"  {row}", flush=True)
                if time.monotonic() - start > seconds:
                    rows.append({"cut": f"out of its {seconds} s"})
                    break
        except Exception as error:
            traceback.print_exc()
            rows.append({"within": False, "failed": f"{type(error).__name__}: {error}"})
        wrong |= any(row.get("within") is False for row in rows)
        # an interruption loses the rest alone
        (out / "gpu.json").write_text(json.dumps(report, indent=1) + "\n")
    print(f"written: {out / 'gpu.json'}")
    return int(wrong)


def wait() -> float:
    """Wait for the device and return the time in milliseconds."""
    if CUDA:
        torch.cuda.synchronize()
    return 1000 * time.perf_counter()


def milliseconds(work: Callable[[], object], repeats: int = 7) -> float:
    """Return the mean time of ``work``, after one call that is not timed."""
    return 1000 * Timer("work()", globals={"work": work}).timeit(2 if SMALL else repeats).mean


def peak_mb(work: Callable[[], object]) -> float | None:
    """Return the memory of tensors that ``work`` adds at its peak; None on a CPU."""
    if not CUDA:
        return None
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    work()
    wait()
    return (torch.cuda.max_memory_allocated() - before) / 2**20


def batch(size: int, width: int = 512) -> tuple[Tensor, Tensor]:
    """Return unit rows (size, width) that lie near those of their class, and their labels."""
    generator, labels = torch.Generator().manual_seed(0), torch.arange(size) // 4
    rows = torch.randn(-(-size // 4), width, generator=generator)[labels]
    rows = rows + torch.randn(size, width, generator=generator)
    return torch.nn.functional.normalize(rows, dim=1).to(DEVICE), labels


def own_losses() -> list[str]:
    """Return the names of the losses of scores, whose kernels are the suite's."""
    return [entry.name for entry in LOSSES if issubclass(entry.target, ScoreLoss)]


def backward(loss: Any, embeddings: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the value and the gradient of the embeddings."""
    rows = embeddings.detach().requires_grad_()
    value = loss(rows, labels)
    value.backward()
    return value.detach(), rows.grad


def values() -> Iterator[Row]:
    """Compare values and gradients with those of the CPU in float64, per loss and precision."""
    rows, labels = batch(32 if SMALL else 384, 64)
    for name, precision in itertools.product(own_losses(), TOLERANCES):
        loss = create_loss(name, **({"margin": 0.0} if name == "blackbox_ap" else {}))
        wanted, slope = backward(loss.double(), rows.cpu().double(), labels)
        with torch.autocast(DEVICE.type, torch.bfloat16, enabled=precision == "autocast"):
            torch.manual_seed(0)
            value, gradient = backward(loss.float(), rows, labels)
        off = float((value.cpu().double() - wanted).abs() / wanted.abs().clamp(min=1e-3))
        slope_off = float((gradient.cpu().double() - slope).norm() / slope.norm().clamp(min=1e-9))
        good = off < TOLERANCES[precision] and slope_off < 10 * TOLERANCES[precision]
        row = {"loss": name, "precision": precision, "value": off, "gradient": slope_off}
        yield {**row, "within": good}


def times() -> Iterator[Row]:
    """Time forward + backward of each loss, the score matrix, the dense formula, compiled too."""
    sizes = (32, 64) if SMALL else (128, 384, 1024, 4096, 16_384, 30_000, 60_000)
    for size in sizes:
        rows, labels = batch(size)
        methods: dict[str, Any] = {FLOOR: alternatives.floor(size)} if size <= 16_384 else {}
        methods |= {name: create_loss(name) for name in own_losses()}
        if size <= 384:
            there = labels.to(DEVICE)
            dense = lambda rows, _, there=there: alternatives.dense_smooth_ap(rows, there)  # noqa: E731
            compiler = "eager" if SMALL else "inductor"  # which needs a compiler of C++ on a CPU
            methods["dense SmoothAP"] = dense
            methods["dense SmoothAP, torch.compile"] = torch.compile(dense, backend=compiler)
        floor = None
        for name, method in methods.items():
            work = partial(backward, method, rows, labels)
            typical = milliseconds(work, 3 if size > 16_384 else 7)
            floor = typical if name == FLOOR else floor
            row = {"batch_size": size, "method": name, "milliseconds": typical}
            yield {**row, "times_floor": floor and typical / floor, "peak_mb": peak_mb(work)}


def stepper(backbone: str, loss: str = "smooth_ap", **training: Any) -> Stepper:
    """Return a stepper as a run has it, of an untrained network."""
    config = ModelConfig(backbone=backbone, embedding_dim=64, freeze_batch_norm=True)
    model = create_model(config, 0).to(DEVICE, memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-5, fused=True)
    settings = TrainingConfig(**{"precision": "bfloat16", **training})
    scaler = torch.amp.GradScaler(enabled=False)
    return Stepper(model, create_loss(loss), optimizer, scaler, settings, DEVICE, 0)


def pictures(size: int, side: int) -> tuple[Tensor, Tensor]:
    """Return random images and their labels."""
    images = torch.randn(size, 3, side, side, generator=torch.Generator().manual_seed(0))
    images = images.contiguous(memory_format=torch.channels_last)
    return images.pin_memory() if CUDA else images, torch.arange(size) // 4


def share() -> Iterator[Row]:
    """Give the share of the loss in a training step, and the step beside a bare loop's."""
    networks = ("test_resnet",) if SMALL else ("resnet50", "deit_small_patch16_224")
    for backbone, size in itertools.product(networks, (8,) if SMALL else (128, 384)):
        step, (images, labels) = stepper(backbone), pictures(size, 64 if SMALL else 224)

        def bare(step=step, images=images, labels=labels) -> None:
            step.optimizer.zero_grad(set_to_none=True)
            with autocast(step.config, DEVICE):
                embeddings = step.model(images.to(DEVICE, non_blocking=True))
            step.loss(embeddings, labels).backward()
            step.optimizer.step()

        ours = milliseconds(partial(step, images, labels, 0), 9)
        step.stopwatch.drain()
        for number in range(5):
            step(images, labels, number)
        loss_ms = 1000 * step.stopwatch.drain() / 5
        of_bare = milliseconds(bare, 9) / ours
        row = {"network": backbone, "batch_size": size, "step_ms": ours, "loss_ms": loss_ms}
        within = SMALL or of_bare >= SHARE_OF_BARE_LOOP
        yield {**row, "loss_share": loss_ms / ours, "of_bare_loop": of_bare, "within": within}


def evaluation() -> Iterator[Row]:
    """Give the seconds of Recall@K, mAP@R and mAP, and whether they are those of the CPU."""
    device, width = "cuda" if CUDA else None, 64 if SMALL else 512
    rows, labels = (each.cpu().numpy() for each in batch(400, width))
    here, cpu = (retrieval_metrics(rows, labels, device=each) for each in (device, None))
    off = max(abs(here[name] - cpu[name]) for name in here)
    yield {"queries": 400, "gallery": 400, "off_the_cpu": off, "within": off < 1e-4}
    for sizes in ((400,), (50, 600)) if SMALL else ((60_502,), (1_000, 1_000_000)):
        sets = [each.cpu().numpy() for size in sizes for each in batch(size, width)]
        start = wait()
        retrieval_metrics(*sets, device=device)
        seconds = (wait() - start) / 1000
        yield {"queries": sizes[0], "gallery": sizes[-1], "seconds": seconds}


def resuming() -> Iterator[Row]:
    """Say whether steps after a saved and loaded state end in the same bits."""
    backbone, side = ("test_resnet", 64) if SMALL else ("resnet50", 224)
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
        yield {"loss": loss, "within": all(torch.equal(one[name], other[name]) for name in one)}


# Title -> seconds after which no further row begins, and the rows.
PARTS: dict[str, tuple[int, Callable[[], Iterator[Row]]]] = {
    "Losses: GPU against CPU": (50, values),
    "Losses: time and memory": (150, times),
    "Share of the loss, and a bare loop": (90, share),
    "Evaluation": (60, evaluation),
    "Resuming": (30, resuming),
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("results/bench-gpu"))
    sys.exit(main(parser.parse_args().out))
