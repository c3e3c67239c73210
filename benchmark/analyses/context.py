"""What an analysis may ask for: the study, its seeds, and embeddings of runs trained as in it.

Runs leave no weights behind, so an analysis trains what it looks at, once per specification and
code version: the batches of the last epoch and the test set after it.
"""

from __future__ import annotations

import re
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.core.code_version import code_version
from benchmark.core.errors import ConfigError, RunError, unknown_name
from benchmark.core.files import replacing
from benchmark.core.options import defaults_of
from benchmark.core.records import DatasetChoice, LossChoice, RunSpec
from benchmark.losses.catalogue import load_catalogue
from benchmark.report.labels import dataset_name, listed
from benchmark.study.model import Block, Study


@dataclass(frozen=True)
class Recording:
    """Float32 embeddings with unit rows and int64 labels of one run.

    batches, batch_labels     (T, D), (T,): what the loss saw in the last epoch, batch after batch
    sizes                     (S,): images of each of the S batches, T in all
    query, query_labels       (Q, D), (Q,): the first protocol, after training
    gallery, gallery_labels   (G, D), (G,); empty when the queries are searched among themselves
    """

    batches: np.ndarray
    batch_labels: np.ndarray
    sizes: np.ndarray
    query: np.ndarray
    query_labels: np.ndarray
    gallery: np.ndarray
    gallery_labels: np.ndarray

    def steps(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield embeddings (B, D) and labels (B,) of each training step of the epoch, in order."""
        ends = np.cumsum(self.sizes)[:-1]
        return zip(np.split(self.batches, ends), np.split(self.batch_labels, ends), strict=True)


def recorded(spec: RunSpec, folder: Path, say: Callable[[str], None]) -> Recording:
    """Return the recording of ``spec`` from ``folder``, training it first where it is missing."""
    version = re.sub(r"[^\w.]", "-", code_version())
    path = folder / f"{spec.run_id.replace('/', '__')}-{spec.digest}-{version}.npz"
    if path.is_file():
        with np.load(path) as stored:
            return Recording(**stored)
    say(f"training {spec.run_id} ({spec.recipe.training.epochs} epochs) to look at its embeddings")
    recording = _train(spec)
    with replacing(path) as temporary, open(temporary, "wb") as stream:
        np.savez(stream, **vars(recording))
    return recording


def _train(spec: RunSpec) -> Recording:
    from benchmark.training.components import build_components
    from benchmark.training.interrupt import StopRequest
    from benchmark.training.loop import Trainer
    from benchmark.training.numerics import prepare_numerics
    from benchmark.training.progress import Progress
    from benchmark.training.step import DivergedError

    training = spec.recipe.training
    components = build_components(spec, prepare_numerics(training))
    seen: deque = deque(maxlen=len(components.sampler.epoch(training.epochs - 1)))

    def note(module: Any, inputs: tuple) -> None:
        seen.append([tensor.detach().cpu().numpy().copy() for tensor in inputs[:2]])

    hook = components.loss.register_forward_pre_hook(note)
    try:
        with StopRequest() as stop, tempfile.TemporaryDirectory() as scratch:
            trainer = Trainer(components, Path(scratch), Progress(spec.run_id, training.epochs))
            item = next(iter(trainer.run(stop).embedded.values()))
    except DivergedError as error:
        words = f"{spec.run_id} diverged ({error}), so its embeddings cannot be analysed"
        raise RunError(words) from error
    finally:
        hook.remove()
    rows, labels = zip(*seen, strict=True)
    query, gallery = item.protocol.query, item.protocol.gallery
    return Recording(
        batches=np.concatenate(rows).astype(np.float32),
        batch_labels=np.concatenate(labels).astype(np.int64),
        sizes=np.array([*map(len, labels)]),
        query=item.query,
        query_labels=query.labels,
        gallery=item.query[:0] if item.gallery is None else item.gallery,
        gallery_labels=query.labels[:0] if gallery is None else gallery.labels,
    )


QUICK_DATASET = "glyphs_tiny"


@dataclass
class Context:
    """The first block of a study (its first dataset and its recipe), seen by an analysis.

    seeds    each asks for a training of its own; by default the study's first three, quick one
    quick    the smallest dataset and one epoch: the numbers mean nothing, every step is taken
    say      prints one line of progress
    dataset  another of the study: the first block that has it, on it alone
    used     the runs that were asked for, filled on the way
    block    what is trained: without a memory, as what is looked at are batches
    """

    study: Study
    results: Path
    seeds: Sequence[int] = ()
    quick: bool = False
    say: Callable[[str], None] = print
    dataset: str | None = None
    used: list[RunSpec] = field(default_factory=list)
    block: Block = field(init=False)

    def __post_init__(self) -> None:
        self.seeds = tuple(self.seeds) or self.study.seeds[: 1 if self.quick else 3]
        block = self._first
        recipe = replace(block.recipe, memory=replace(block.recipe.memory, size=None))
        if self.quick:
            recipe = replace(recipe, training=replace(recipe.training, epochs=1))
            tiny = DatasetChoice(QUICK_DATASET, QUICK_DATASET, {})
            block = replace(block, datasets=(tiny,), batch_sizes=(16, 32))
        self.block = replace(block, recipe=recipe, batch_sizes=tuple(sorted(block.batch_sizes)))

    @property
    def _first(self) -> Block:
        if self.dataset is None:
            return self.study.blocks[0]
        places = [(choice, block) for block in self.study.blocks for choice in block.datasets]
        for choice, block in places:
            if choice.label == self.dataset:
                return replace(block, datasets=(choice,))
        what, known = f"dataset of study '{self.study.name}'", {each.label for each, _ in places}
        raise ConfigError("analyse --dataset", [unknown_name(what, self.dataset, known)])

    @property
    def place(self) -> str:
        """Return the dataset in words."""
        return dataset_name(self.block.datasets[0].label)

    @property
    def description(self) -> str:
        """Return the dataset and the seeds in words: "Glyphs-1k, seeds 0, 1 and 2"."""
        kind = "seeds" if len(self.seeds) > 1 else "seed"
        return f"{self.place}, {kind} {listed([*map(str, self.seeds)])}"

    def spec(self, loss: str, batch_size: int, seed: int, **params: Any) -> RunSpec:
        """Return the specification of a run: the study's own where it has it, else made like it.

        ``loss`` is a variant of the study, or a registered loss with its defaults.
        """
        chosen = self._loss(loss)
        if changed := {key: new for key, new in params.items() if chosen.params[key] != new}:
            label = "_".join([loss, *(f"{key}_{value:g}" for key, value in changed.items())])
            chosen = replace(chosen, label=label, params={**chosen.params, **changed})
        block = self.block
        recipe = block.recipe_of(chosen.name)
        return RunSpec(block.datasets[0], block.setting, chosen, batch_size, seed, recipe)

    def trained(self, loss: str, batch_size: int, seed: int, **params: Any) -> Recording:
        """Return what a training of this run left: kept, or trained now (seconds to hours)."""
        spec = self.spec(loss, batch_size, seed, **params)
        if spec not in self.used:
            self.used.append(spec)
        return recorded(spec, self.study.folder(self.results) / "analyses" / "embeddings", self.say)

    def _loss(self, label: str) -> LossChoice:
        """Return a loss with the hyperparameters that the study has nearest to the first block.

        They are those of the block's setting on its dataset, else of its recipe, else of any block.
        """
        first, blocks = self._first, self.study.blocks
        here = [each for each in blocks if each.setting == first.setting]
        place = first.datasets[0].label
        nearest = [each for each in here if place in [choice.label for choice in each.datasets]]
        alike = [each for each in here if each.recipe_name == first.recipe_name]
        for block in (first, *nearest, *alike, *blocks):
            for variant in block.losses:
                if variant.label == label:
                    return variant.choice
        return LossChoice(label, label, defaults_of(load_catalogue()[label].config))


def doubled(sizes: Sequence[int]) -> list[int]:
    """Return the batch sizes from the smallest to twice the largest, each twice the one before."""
    found = [min(sizes)]
    while found[-1] < 2 * max(sizes):
        found.append(2 * found[-1])
    return found
