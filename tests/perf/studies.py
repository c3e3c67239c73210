"""What shipped studies ask of a device: each loss with its options, each network at its sizes."""

import io
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import torch
from helpers.gpu_memory import counted_mb
from perf.timing import Row, Target, seconds_of
from torch import Tensor

from benchmark.core.recipe import (
    UNTRAINED,
    MemoryConfig,
    ModelConfig,
    OptimizerConfig,
    TrainingConfig,
)
from benchmark.core.records import RunSpec
from benchmark.losses import LOSSES, create_loss
from benchmark.models import create_model
from benchmark.study.grid import expand
from benchmark.study.load import load_study, study_names
from benchmark.training.numerics import create_optimizer, grad_scaler, prepare_numerics
from benchmark.training.step import Memory, Stepper

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
# Of the catalogue: 24 images of 8 classes, three of each, in parts of 12 where a study has parts.
IMAGES = 24
PER_CLASS = 3
SIDE = 64
PART = 12
SMALL = ModelConfig(backbone="test_resnet", embedding_dim=64, freeze_batch_norm=True)
STEPS = 3
SAVED_AFTER = 1
# Micro-batches of a measured step: more of them take more time, and no more memory.
PARTS_OF_STEP = 4
PRECISIONS = ("float32", "tf32", "bfloat16", "float16")
Case = tuple[str, dict[str, Any], TrainingConfig, MemoryConfig]


def pictures(size: int, side: int, channels: int = 3) -> tuple[Tensor, Tensor]:
    """Return random images (size, channels, side, side) and their labels, four of each."""
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(size, channels, side, side, generator=generator)
    images = images.contiguous(memory_format=torch.channels_last)
    return images.pin_memory() if CUDA else images, torch.arange(size) // 4


def stepper(
    config: ModelConfig,
    loss: str,
    settings: TrainingConfig,
    options: dict[str, Any] | None = None,
    memory: MemoryConfig | None = None,
    labels: Tensor | None = None,
    side: int | None = None,
) -> Stepper:
    """Return what takes the steps of a run, with an untrained network on the device.

    labels    of the training images, for proxies and memory
    side      of the images that a network with learned positions is trained on, pixels
    """
    bare = replace(config, pretrained=False, checkpoint=None)
    model = create_model(bare, 0)
    if side is not None:
        model.fit_positions(side)
    model.to(DEVICE, memory_format=torch.channels_last)
    width = model.embedding_dim
    classes = 1 if labels is None else len(labels.unique())
    made = create_loss(loss, embedding_dim=width, num_classes=classes, **(options or {}))
    made = made.to(DEVICE)
    remembered = None
    if memory is not None and memory.size is not None:
        remembered = Memory(memory, labels, width, DEVICE)
    optimizer = create_optimizer(OptimizerConfig(), model, made)
    scaler = grad_scaler(settings, DEVICE)
    return Stepper(model, made, optimizer, scaler, settings, DEVICE, 0, remembered)


@cache
def shipped_specs() -> tuple[tuple[str, RunSpec, int], ...]:
    """Return study, specification and number of GPUs of every run of the shipped studies."""
    return tuple(
        (name, run.spec, run.resources.gpus)
        for name in study_names()
        for run in expand(load_study(name)).values()
    )


def cases() -> list[Case]:
    """Return each loss as it is, then as studies train it.

    Trials draw numbers from ranges: of a number it counts whether it is 0.
    """
    plain = TrainingConfig(), MemoryConfig()
    found: dict[str, Case] = {entry.name: (entry.name, {}, *plain) for entry in LOSSES}
    for _, spec, _ in shipped_specs():
        name = spec.loss.name
        options = spec.loss.params
        recipe = spec.recipe
        training = recipe.training
        memory = recipe.memory
        part = None if training.micro_batch is None else PART
        settings = TrainingConfig(
            precision=training.precision, micro_batch=part, staged=training.staged
        )
        chosen = {
            key: value != 0 if isinstance(value, float) else value for key, value in options.items()
        }
        found.setdefault(repr((name, chosen, settings, memory)), (name, options, settings, memory))
    return [case for case in found.values() if case[0] != UNTRAINED]


def catalogue(quick: bool) -> Iterator[Row]:
    """Three deterministic steps of a small network for each loss, and for each option, miner,
    precision, division of the batch and memory that shipped studies train it with; then the same
    from a state saved after the first one. ``same_bits``: the share of tensors that end equal.
    """
    chosen = cases()
    for name, options, settings, memory in chosen[::50] if quick else chosen:
        row: Row = {
            "loss": name,
            "options": ", ".join(f"{key} {value}" for key, value in options.items()),
            "precision": settings.precision,
            "parts": {None: "none"}.get(
                settings.micro_batch, "staged" * settings.staged or "parts"
            ),
            "memory": "none" if memory.size is None else f"{memory.key} {memory.size}",
        }
        try:
            result = step_and_resume(name, options, settings, memory)
        except Exception as error:
            result = {"same_bits": 0.0, "finite": 0.0, "error": f"{type(error).__name__}: {error}"}
        equal = Target("resuming with any loss", result["same_bits"], 1, "of the tensors", True)
        finite = Target("steps with a finite loss", result["finite"], 1, "of them", True)
        yield {**row, **result, "targets": [equal, finite]}


def step_and_resume(
    name: str, options: dict[str, Any], settings: TrainingConfig, memory: MemoryConfig
) -> Row:
    """Take the steps of a case, once in one piece and once from a saved state."""
    prepare_numerics(replace(settings, threads=torch.get_num_threads()))
    labels = torch.arange(IMAGES) // PER_CLASS
    images = pictures(IMAGES, SIDE)[0]
    if LOSSES[name].facts["kind"] == "triplets":
        # anchor, positive, negative: the last image of each class belongs to the next one
        labels = labels.clone()
        labels[2::PER_CLASS] = (labels[2::PER_CLASS] + 1) % len(labels.unique())
    shades = torch.rand(IMAGES, 3, generator=torch.Generator().manual_seed(1))
    images += 4 * shades[labels].view(IMAGES, 3, 1, 1)  # images of a class are alike
    if getattr(LOSSES[name].target, "hierarchical", False):
        labels = torch.stack([labels, labels // 2], dim=1)
    numbers = None if memory.size is None else np.arange(IMAGES)
    made = (SMALL, name, settings, options, memory, labels)

    def step(taken: Stepper, number: int) -> None:
        taken(images, labels, number, numbers, reads=number > 0)

    whole = stepper(*made)
    saved = io.BytesIO()
    for number in range(STEPS):
        step(whole, number)
        if number + 1 == SAVED_AFTER:
            torch.save(whole.state_dict(), saved)
    saved.seek(0)
    again = stepper(*made)
    again.load_state_dict(torch.load(saved, map_location="cpu", weights_only=True))
    for number in range(SAVED_AFTER, STEPS):
        step(again, number)
    pairs = [
        (value, other)
        for one, two in ((whole.model, again.model), (whole.loss, again.loss))
        for value, other in zip(one.state_dict().values(), two.state_dict().values(), strict=True)
    ]
    same = sum(torch.equal(value, other) for value, other in pairs) / len(pairs)
    values = whole.drain()
    finite = float(np.isfinite(values).mean())
    return {"same_bits": same, "finite": finite, "loss_of_last": values[-1], "error": ""}


def network_of(spec: RunSpec) -> tuple[str, RunSpec]:
    """Return the name of what a step of a run costs, and the run with the images of such a step."""
    recipe = spec.recipe
    size = spec.batch_size
    model = recipe.model
    training = recipe.training
    parts = training.micro_batch
    words = []
    if parts is not None:
        words = [f"{'staged' if training.staged else 'parts'} of {parts}"]
        if not training.staged:
            size = min(size, parts * PARTS_OF_STEP)
    words += ["layer norm"] * model.layer_norm + ["fixed batch norm"] * model.freeze_batch_norm
    name = (model.backbone, model.pooling, recipe.input.image_size, training.precision, size)
    return " ".join(map(str, (*name, *words))), replace(spec, batch_size=size)


def networks(quick: bool, earlier: list[Row]) -> Iterator[Row]:
    """Steps of each network, precision and batch size of the shipped studies with GPUs, from images
    in memory, deterministic; and the float32 forward pass of an evaluation. Frozen backbones cost
    that pass alone. A batch in parts takes four of them. ``counted_mb``: counted beforehand. A
    call goes on after the rows that are written.
    """
    found: dict[str, tuple[str, RunSpec]] = {}
    for study, spec, gpus in shipped_specs():
        if gpus and not spec.recipe.model.freeze_backbone:
            name, measured = network_of(spec)
            found.setdefault(name, (study, measured))
    done = {row["network"] for row in earlier if not row["error"]}
    left = [name for name in found if name not in done]
    for number, name in enumerate(left[:1] if quick else left, 1):
        study, spec = found[name]
        row: Row = {"network": name, "study": study, "batch_size": spec.batch_size}
        result = {"images_s": None, "peak_mb": None, "counted_mb": None, "of_counted": None}
        result |= {"evaluation_images_s": None}
        try:
            result |= {**steps_of_network(spec, quick), "error": ""}
        except Exception as error:
            result |= {"error": f"{type(error).__name__}: {error}"}
        runs = float(not result["error"])
        bound = Target("networks that train", runs, 1, "of them", at_least=True)
        yield {**row, **result, "left": len(left) - number, "targets": [bound]}


def steps_of_network(spec: RunSpec, quick: bool) -> Row:
    """Measure a run's training steps and its evaluation's forward pass."""
    recipe = spec.recipe
    prepare_numerics(replace(recipe.training, threads=torch.get_num_threads()))
    size, side = (8, 64) if quick else (spec.batch_size, recipe.input.image_size)
    model = SMALL if quick else recipe.model
    settings = recipe.training
    if quick:
        settings = replace(settings, micro_batch=None, staged=False)
    step = stepper(model, "smooth_ap", settings, side=side)
    images, labels = pictures(size, side, model.channels)
    if CUDA:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    rate = images_per_second(step, images, labels, repeats=1 if quick else 4)
    peak = torch.cuda.max_memory_allocated() / 2**20 if CUDA else None
    counted = None if quick else counted_mb(spec)
    step.optimizer.zero_grad(set_to_none=True)
    step.model.eval()
    several = images[: 1 if recipe.input.native_size else recipe.evaluation.batch_size]

    def embed() -> None:
        with torch.inference_mode():
            step.model(several.to(DEVICE, non_blocking=True)).cpu()

    embed()
    seconds = seconds_of(lambda: [embed() for _ in range(1 if quick else 4)])
    shown = len(several) * (1 if quick else 4)
    return {
        "images_s": rate,
        "peak_mb": peak,
        "counted_mb": counted,
        "of_counted": peak / counted if peak and counted else None,
        "evaluation_images_s": shown / seconds,
    }


def images_per_second(step: Stepper, images: Tensor, labels: Tensor, repeats: int) -> float:
    """Return the rate of training steps on one batch, after two that are not timed."""

    def work(times: int) -> None:
        for number in range(times):
            step(images, labels, number)
        step.drain()  # which waits for the device

    work(2)
    return repeats * len(images) / seconds_of(lambda: work(repeats))


def precision(quick: bool) -> Iterator[Row]:
    """Steps of ResNet-50, 224 pixels, batch 128, from images in memory, in each precision."""
    model = SMALL if quick else replace(SMALL, backbone="resnet50", embedding_dim=512)
    images, labels = pictures(8 if quick else 128, 64 if quick else 224)
    plain = False, ("float32", "tf32", "float16")
    for deterministic, names in ((True, PRECISIONS), plain):
        for name in names:
            settings = TrainingConfig(
                precision=name, deterministic=deterministic, threads=torch.get_num_threads()
            )
            torch.use_deterministic_algorithms(False)
            prepare_numerics(settings)
            step = stepper(model, "roadmap", settings)
            rate = images_per_second(step, images, labels, repeats=1 if quick else 8)
            yield {"precision": name, "deterministic": deterministic, "images_s": rate}
