"""Replay optimisation steps of the ROADMAP authors' code with our recipes and our training loop.

``python tests/reference/replay_steps.py FILE`` reads a file in the layout of authors_steps.npz
(see README.md), trains each of its cases, prints the largest deviation of the losses and of the
probe embeddings, and exits 1 when one is above its tolerance, 2 for a file that cannot be read.
"""

from __future__ import annotations

import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
sys.path.insert(0, str(ROOT))

sys.path.insert(0, str(FOLDER))

from exit_status import end_with  # noqa: E402

from benchmark.core.interrupts import StopRequest  # noqa: E402
from benchmark.core.records import (  # noqa: E402
    DatasetChoice,
    LossChoice,
    RunSpec,
    Setting,
)
from benchmark.input.samplers import Sampler  # noqa: E402
from benchmark.losses import create_loss  # noqa: E402
from benchmark.models import EmbeddingModel, create_model  # noqa: E402
from benchmark.study.recipes import merge, overlay, read_recipe, without_losses  # noqa: E402
from benchmark.training.components import Components  # noqa: E402
from benchmark.training.loop import Trainer  # noqa: E402

LOSS_TOLERANCE = 1e-9
PROBE_TOLERANCE = 1e-8
# classes, and those of a batch with their images
CLASSES = 40
CHOSEN = 6
EACH = 4
SHAPE = (3, 32, 32)
KEYS_OF_A_CLASS = 10  # image keys are 10 y, 10 y + 1, ...
EPOCH = 2  # steps
PROBE_SEED = 99


@dataclass(frozen=True)
class Case:
    """A recipe of ours, its option, the loss, and what the authors' run made smaller or faster."""

    recipe: str
    loss: str
    option: str | None = None
    lr: float = 1e-3
    memory: int | None = None
    weight_decay: float | None = None


CASES = {
    "sop_resnet_roadmap": Case("roadmap_sop_resnet50", "roadmap"),
    "inaturalist_resnet_roadmap": Case("roadmap_inaturalist_resnet50", "roadmap"),
    "sop_resnet_smooth_ap": Case("roadmap_sop_resnet50", "smooth_ap"),
    "cub_resnet_max_ln_roadmap": Case("roadmap_cub_resnet50", "roadmap", "sota", lr=1e-4),
    "sop_xbm_pair": Case("roadmap_sop_resnet50", "cosine_contrastive", "xbm", memory=59_551),
    "inaturalist_xbm_pair_fifo": Case(  # on record with the weight decay of SOP
        "roadmap_inaturalist_resnet50", "cosine_contrastive", "xbm", memory=60, weight_decay=1e-4
    ),
}


@dataclass(frozen=True)
class Deviation:
    """The largest differences from the authors' losses and probe embeddings."""

    losses: float
    probe: float

    @property
    def within(self) -> bool:
        """Say whether both are within their tolerances; a NaN is not."""
        return self.losses <= LOSS_TOLERANCE and self.probe <= PROBE_TOLERANCE


class Batches(Sampler):
    """The authors' batches, as a sampler and as the input of training, of images by their keys."""

    def __init__(self, seed: int, steps: int):
        draw = np.random.default_rng(seed)
        self.labels = np.arange(CLASSES * KEYS_OF_A_CLASS) // KEYS_OF_A_CLASS
        centres = draw.standard_normal((CLASSES, *SHAPE))
        self.keys: list[np.ndarray] = []
        self.images: list[torch.Tensor] = []
        for _ in range(steps):
            labels = np.repeat(draw.choice(CLASSES, CHOSEN, replace=False), EACH)
            noise = draw.standard_normal((len(labels), *SHAPE))
            self.keys.append(KEYS_OF_A_CLASS * labels + np.tile(np.arange(EACH), CHOSEN))
            self.images.append(torch.from_numpy(centres[labels] + 0.7 * noise))

    def batches(self, generator: np.random.Generator) -> list[np.ndarray]:
        """Return no batches: the order of the authors' is on record, not drawn."""
        raise NotImplementedError

    def epoch(self, number: int) -> list[np.ndarray]:
        """Return the image keys of each batch of an epoch."""
        return self.keys[number * EPOCH : (number + 1) * EPOCH]

    def train_batches(
        self, batches: Sequence[np.ndarray], seed: int, epoch: int, start: int = 0, **_: object
    ) -> Iterator[torch.Tensor]:
        """Yield the images of an epoch's batches, whole for the one process."""
        yield from self.images[epoch * EPOCH :][start : len(batches)]

    def normalised(self, images: torch.Tensor) -> torch.Tensor:
        """Return the images as they are."""
        return images


def specification(case: Case, steps: int, width: int) -> RunSpec:
    """Return the run: our recipe, with the network, rates and lengths of the authors' record."""
    file = read_recipe(case.recipe, ROOT / "workflow" / "config" / "roadmap.yaml")
    option = file.options[case.option] if case.option else {}
    epochs = -(-steps // EPOCH)
    made_smaller: dict[str, Any] = {
        "model": {"backbone": "resnet18", "pretrained": False, "embedding_dim": width},
        "optimizer": {"lr": case.lr},
        "training": {"epochs": epochs, "precision": "float32"},
    }
    if file.schedule.name == "step":
        made_smaller["schedule"] = {"milestones": [1, 2]}
    if case.weight_decay is not None:
        made_smaller["optimizer"]["weight_decay"] = case.weight_decay
    if case.memory is not None:
        # from the second epoch on; a record of one epoch ends before
        made_smaller["memory"] = {"size": case.memory, "start_epoch": 1.0 if epochs > 1 else 0.9}
    recipe = overlay(file, merge(without_losses(option), made_smaller))
    params = merge(file.losses, option.get("losses", {})).get(case.loss, {})
    return RunSpec(
        DatasetChoice("made_up", "glyphs_tiny", {}),
        Setting("resnet18", (case.option,) if case.option else ()),
        LossChoice(case.loss, case.loss, params),
        CHOSEN * EACH,
        0,
        recipe,
    )


def made_up_weights(model: EmbeddingModel) -> None:
    """Give each parameter and buffer the made-up values of its name; see README.md."""
    for full_name, tensor in model.state_dict().items():
        name = full_name.removeprefix("backbone.")
        shape = tuple(tensor.shape)
        if not shape:
            continue  # the count of batches, which nothing reads
        values = np.random.default_rng(zlib.crc32(name.encode())).standard_normal(shape)
        if len(shape) > 1:
            values *= np.sqrt(2 / np.prod(shape[1:]))
        elif name.endswith("running_var"):
            values = np.exp(0.1 * values)
        elif name.endswith(("running_mean", "bias")):
            values *= 0.1
        else:
            values = 1 + 0.1 * values
        tensor.copy_(torch.from_numpy(values))


def replay(name: str, seed: int, losses: np.ndarray, probe: np.ndarray) -> Deviation:
    """Return how far our training is from the authors' losses (S,) and probe embeddings (P, D)."""
    our_losses, our_probe = trained(name, seed, len(losses), probe.shape)
    of_losses = np.abs(our_losses - losses).max()
    of_probe = np.abs(our_probe - probe).max()
    return Deviation(float(of_losses), float(of_probe))


def trained(
    name: str, seed: int, steps: int, shape: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Return our losses (S,) and the probe embeddings of ``shape`` (P, D) after the last step."""
    spec = specification(CASES[name], steps, shape[1])
    model = create_model(spec.recipe.model, spec.seed).double()
    made_up_weights(model)
    batches = Batches(seed, steps)
    components = Components(
        spec=spec,
        device=torch.device("cpu"),
        dataset=SimpleNamespace(fingerprint=""),  # type: ignore[arg-type]
        labels=torch.from_numpy(batches.labels),
        sampler=batches,
        train_input=batches,  # type: ignore[arg-type]
        model=model,
        loss=create_loss(spec.loss.name, **spec.loss.params),
        evaluator=SimpleNamespace(embed=lambda *_: {}),  # type: ignore[arg-type]
    )
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(components, Path(folder), _Silence())  # type: ignore[arg-type]
        ours = _noted(trainer)
        trainer.run(StopRequest())
    model.eval()
    images = np.random.default_rng(PROBE_SEED).standard_normal((shape[0], *SHAPE))
    with torch.no_grad():
        return np.array(ours), model(torch.from_numpy(images)).numpy()


def _noted(trainer: Trainer) -> list[float]:
    """Return a list that the losses of all steps are added to."""
    losses: list[float] = []
    drain = trainer.stepper.drain

    def noting() -> list[float]:
        values = drain()
        losses.extend(values)
        return values

    trainer.stepper.drain = noting  # type: ignore[method-assign]
    return losses


class _Silence:
    """A progress display that shows nothing."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


def read(path: Path) -> tuple[int, dict[str, tuple[np.ndarray, np.ndarray]]]:
    """Return the seed of a file, and the losses (S,) and probe embeddings (P, D) of each case."""
    if path.is_file() and not zipfile.is_zipfile(path):
        raise SystemExit(_unreadable(path, "it is no npz archive, or only a part of one"))
    try:
        with np.load(path, allow_pickle=False) as stored:
            content = {key: stored[key] for key in stored.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error, TypeError) as error:
        raise SystemExit(_unreadable(path, str(error))) from error
    seed = content.pop("seed", np.array(None))
    if seed.shape != () or not np.issubdtype(seed.dtype, np.integer):
        raise SystemExit(_unreadable(path, "its entry 'seed' is not one whole number"))
    names = sorted({key.partition("/")[0] for key in content})
    unknown = [name for name in names if name not in CASES]
    if unknown or not names:
        text = f"cases {unknown or 'none'}; it may have {', '.join(CASES)}"
        raise SystemExit(_unreadable(path, text))
    return int(seed), {name: _case(path, name, content) for name in names}


def _case(path: Path, name: str, content: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    found = []
    for part, axes in (("losses", 1), ("probe", 2)):
        values = content.get(f"{name}/{part}")
        if values is None or values.ndim != axes or not values.size or values.dtype.kind != "f":
            shape = "missing" if values is None else f"{values.dtype} {values.shape}"
            text = f"'{name}/{part}' is {shape}; it must be float64 with {axes} axes, not empty"
            raise SystemExit(_unreadable(path, text))
        found.append(values)
    return found[0], found[1]


def _unreadable(path: Path, reason: str) -> str:
    return f"{path} is no record of training steps: {reason}"


def main(path: Path) -> int:
    """Print the deviations of each case; return 1 when one is above its tolerance, else 0."""
    seed, cases = read(path)
    status = 0
    print(f"{'case':30}{'losses':>12}{'embeddings':>12}   tolerances 1e-9 and 1e-8")
    for name, (losses, probe) in cases.items():
        found = replay(name, seed, losses, probe)
        status |= not found.within
        off = "" if found.within else "   OFF"
        print(f"{name:30}{found.losses:12.1e}{found.probe:12.1e}{off}", flush=True)
    return status


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python tests/reference/replay_steps.py FILE")
    end_with(main, Path(sys.argv[1]))
