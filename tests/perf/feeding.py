"""Training from photographs on a disk, beside a bare loop of torchvision."""

import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import torch
from perf.losses import dense_smooth_ap
from perf.studies import CUDA, DEVICE, images_per_second, pictures
from perf.timing import Row, Target
from PIL import Image

from benchmark.core.interrupts import StopRequest
from benchmark.core.recipe import (
    EvaluationConfig,
    InputConfig,
    ModelConfig,
    OptimizerConfig,
    Recipe,
    SamplerConfig,
    TrainingConfig,
)
from benchmark.core.records import DatasetChoice, LossChoice, RunSpec, Setting
from benchmark.models import create_model
from benchmark.models.backbone import prepare_torchvision
from benchmark.training.components import build_components
from benchmark.training.loop import Trainer
from benchmark.training.numerics import prepare_numerics
from benchmark.training.progress import Progress

EPOCHS = 3
PER_CLASS = 4
RATE = 1e-5
TIMES_BARE = 1.5  # in the last epoch, when workers have started and nothing is hashed any more
TRAINED = "train"  # begins the names of the folders of classes to train on


def files(quick: bool) -> Iterator[Row]:
    """ResNet-50, float16, batch 128, 12 workers, from 6,000 made-up JPEGs of 500 x 375: images/s of
    each epoch with the suite's training and with a bare loop (ImageFolder, DataLoader with pinned
    memory and persistent workers), of the same network, loss, transforms and processor; then of the
    step alone, from one batch in memory.
    """
    size, workers = (8, 2) if quick else (128, 12)
    backbone = "test_resnet" if quick else "resnet50"
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "images"
        write_photographs(root, 4 if quick else 100, 8 if quick else 60, quick)
        spec = run_of(root, backbone, size, workers)
        theirs: dict[int, float] = {}
        for epoch, rate in bare(spec, root):
            theirs[epoch] = rate
            yield {"what": "bare loop", "epoch": epoch, "images_s": rate, "of_bare": None}
        ours, alone = train(spec, Path(folder) / "run")
        for epoch, rate in ours.items():
            ratio = rate / theirs[epoch]
            row = {"what": "ours", "epoch": epoch, "images_s": rate, "of_bare": ratio}
            bound = Target("training from files", ratio, TIMES_BARE, "x bare loop", True)
            yield {**row, "targets": [bound] if epoch == EPOCHS and not quick else []}
        yield {"what": "the step alone", "epoch": None, "images_s": alone, "of_bare": None}


def write_photographs(root: Path, classes: int, each: int, quick: bool) -> None:
    """Write JPEGs of ``classes`` to train on, and two images each of two classes to test with."""
    counts = {f"{TRAINED}{number:03d}": each for number in range(classes)}
    counts |= {"test0": 2, "test1": 2}
    lines = ["path,label,split"]
    for name, count in counts.items():
        split = "train" if name.startswith(TRAINED) else "test"
        lines += [f"{name}/{number}.jpg,{name},{split}" for number in range(count)]
    root.mkdir(parents=True)
    (root / "split.csv").write_text("\n".join(lines) + "\n")
    folders = [root / name for name in counts]
    with ProcessPoolExecutor(2 if quick else 16) as pool:
        list(pool.map(write_class, folders, counts.values()))


def write_class(folder: Path, count: int) -> None:
    """Write ``count`` photographs of smooth colours with grain."""
    seed = [*folder.name.encode()]
    generator = np.random.default_rng(seed)
    base = generator.integers(0, 255, (12, 16, 3))
    folder.mkdir()
    for number in range(count):
        colours = np.clip(base + generator.integers(-40, 40, base.shape), 0, 255)
        smooth = Image.fromarray(colours.astype(np.uint8)).resize((500, 375), Image.BICUBIC)
        grain = generator.integers(-12, 12, (375, 500, 3))
        pixels = np.clip(np.asarray(smooth) + grain, 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.jpg", quality=90)


def run_of(root: Path, backbone: str, size: int, workers: int) -> RunSpec:
    """Return the specification of the training on the photographs below ``root``."""
    params = {"root": str(root), "split_csv": str(root / "split.csv")}
    recipe = Recipe(
        model=ModelConfig(backbone=backbone, embedding_dim=512, freeze_batch_norm=True),
        sampler=SamplerConfig(name="m_per_class", params={"samples_per_class": PER_CLASS}),
        input=InputConfig(augmentation="crop_flip", resize=256, workers=workers),
        optimizer=OptimizerConfig(lr=RATE),
        training=TrainingConfig(
            epochs=EPOCHS, precision="float16", threads=torch.get_num_threads()
        ),
        evaluation=EvaluationConfig(every=EPOCHS, recall_at=[1]),
    )
    loss = LossChoice("smooth_ap", "smooth_ap", {})
    dataset = DatasetChoice("photographs", "folder", params)
    return RunSpec(dataset, Setting(backbone), loss, size, 0, recipe)


class Rates(Progress):
    """Notes the images per second of each epoch, from its first batch to the end of its steps."""

    def __init__(self, batch_size: int):
        super().__init__("files: ours", EPOCHS)
        self.batch_size = batch_size
        self.found: dict[int, float] = {}

    def start_epoch(self, epoch: int, steps: int, start: int) -> None:
        """Start the clock."""
        self._epoch = epoch + 1
        self._steps = steps
        self._done = 0
        synchronize()
        self._started = time.perf_counter()

    def step(self) -> None:
        """Stop it after the last step."""
        self._done += 1
        if self._done == self._steps:
            synchronize()
            seconds = time.perf_counter() - self._started
            self.found[self._epoch] = self._steps * self.batch_size / seconds
            self.say(f"epoch {self._epoch}, {self.found[self._epoch]:.0f} images/s")


def train(spec: RunSpec, folder: Path) -> tuple[dict[int, float], float]:
    """Train as ``python -m benchmark train`` does; return images/s by epoch, and of the step."""
    folder.mkdir()
    device = prepare_numerics(spec.recipe.training)
    rates = Rates(spec.batch_size)
    trainer = Trainer(build_components(spec, device, rates.say), folder, rates)
    with StopRequest() as stop:
        trainer.run(stop)
    trainer.components.model.train()
    images, labels = pictures(spec.batch_size, spec.recipe.input.image_size)
    return rates.found, images_per_second(trainer.stepper, images, labels, 20 if CUDA else 1)


def bare(spec: RunSpec, root: Path) -> Iterator[tuple[int, float]]:
    """Yield epoch and images/s of a loop that somebody would write without the suite."""
    prepare_torchvision()
    from torch.utils.data import DataLoader
    from torchvision import transforms
    from torchvision.datasets import ImageFolder

    recipe = spec.recipe
    torch.backends.cudnn.benchmark = True
    steps = [
        transforms.Resize(recipe.input.resize),
        transforms.RandomResizedCrop(recipe.input.image_size, scale=recipe.input.crop_area),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize(recipe.input.mean, recipe.input.std),
    ]
    folder = ImageFolder(str(root), transforms.Compose(steps))
    of_training = [n for n, (path, _) in enumerate(folder.samples) if f"/{TRAINED}" in path]
    groups = torch.tensor(of_training).view(-1, PER_CLASS)
    at_once = spec.batch_size // PER_CLASS

    class Batches:
        def __iter__(self) -> Iterator[list[int]]:
            order = torch.randperm(len(groups))[: len(self) * at_once]
            return iter(groups[order].view(len(self), -1).tolist())

        def __len__(self) -> int:
            return len(groups) // at_once

    loader = DataLoader(
        folder,
        batch_sampler=Batches(),
        num_workers=recipe.input.workers,
        pin_memory=CUDA,
        persistent_workers=True,
    )
    model = create_model(recipe.model, 0).to(DEVICE, memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    scaler = torch.amp.GradScaler(enabled=CUDA)
    for epoch in range(1, recipe.training.epochs + 1):
        synchronize()
        started = time.perf_counter()
        seen = 0
        for images, labels in loader:
            shown = images.to(DEVICE, non_blocking=True, memory_format=torch.channels_last)
            wanted = labels.to(DEVICE, non_blocking=True)
            with torch.autocast(DEVICE.type, torch.float16, enabled=CUDA):
                embeddings = model(shown)
            optimizer.zero_grad()
            scaler.scale(dense_smooth_ap(embeddings.float(), wanted)).backward()
            scaler.step(optimizer)
            scaler.update()
            seen += len(images)
        synchronize()
        yield epoch, seen / (time.perf_counter() - started)
    torch.backends.cudnn.benchmark = False


def synchronize() -> None:
    """Wait for the device."""
    if CUDA:
        torch.cuda.synchronize()
