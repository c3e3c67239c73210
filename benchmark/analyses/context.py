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
from benchmark.report.labels import dataset_name
from benchmark.report.numbers import listed
from benchmark.study.model import Block, Study, Variant


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
        ends = np.cumsum(self.sizes)
        for start, end in zip(ends - self.sizes, ends, strict=True):
            yield self.batches[start:end], self.batch_labels[start:end]


def recorded(spec: RunSpec, folder: Path, say: Callable[[str], None]) -> Recording:
    """Return the recording of ``spec`` from ``folder``, training it first where it is missing.

    The file is named by run, specification and code version; processes that train the same run at
    one time do double work, and each leaves a whole file.
    """
    version = re.sub(r"[^\w.]", "-", code_version())
    path = Path(folder) / f"{spec.run_id.replace('/', '__')}-{spec.digest}-{version}.npz"
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
    seen: deque[tuple[np.ndarray, np.ndarray]] = deque(
        maxlen=len(components.sampler.epoch(training.epochs - 1))
    )

    def note(module: Any, inputs: tuple) -> None:
        seen.append(tuple(tensor.detach().cpu().numpy().copy() for tensor in inputs[:2]))

    hook = components.loss.register_forward_pre_hook(note)
    try:
        with StopRequest() as stop, tempfile.TemporaryDirectory() as scratch:
            trainer = Trainer(components, Path(scratch), Progress(spec.run_id, training.epochs))
            embedded = trainer.run(stop).embedded
    except DivergedError as error:
        raise RunError(
            f"{spec.run_id} diverged ({error}), so its embeddings cannot be analysed"
        ) from error
    finally:
        hook.remove()
    item = next(iter(embedded.values()))
    gallery, gallery_labels = np.zeros((0, item.query.shape[1]), np.float32), np.zeros(0, np.int64)
    if item.gallery is not None and item.protocol.gallery is not None:
        gallery, gallery_labels = item.gallery, item.protocol.gallery.labels
    return Recording(
        batches=np.concatenate([rows for rows, _ in seen]).astype(np.float32),
        batch_labels=np.concatenate([labels for _, labels in seen]).astype(np.int64),
        sizes=np.array([len(labels) for _, labels in seen]),
        query=item.query,
        query_labels=item.protocol.query.labels,
        gallery=gallery,
        gallery_labels=gallery_labels,
    )


QUICK_DATASET = "glyphs_tiny"
DEFAULT_SEEDS = 3


@dataclass(frozen=True)
class Context:
    """The first block of a study (its first dataset and its recipe), seen by an analysis.

    seeds   each asks for a training of its own
    quick   the smallest dataset and one epoch: the numbers mean nothing, every step is taken
    say     prints one line of progress
    used    the runs that were asked for, filled on the way
    """

    study: Study
    results: Path
    seeds: tuple[int, ...]
    quick: bool = False
    say: Callable[[str], None] = print
    used: list[RunSpec] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        study: Study,
        results: Path,
        seeds: Sequence[int] = (),
        *,
        quick: bool = False,
        say: Callable = print,
    ) -> Context:
        """Return the context; ``seeds`` default to the study's first three, quick to its first."""
        default = study.seeds[: 1 if quick else DEFAULT_SEEDS]
        return cls(study, Path(results), tuple(seeds) or default, quick, say)

    @property
    def block(self) -> Block:
        """Return the block whose recipe is used."""
        return self.study.blocks[0]

    @property
    def dataset(self) -> str:
        """Return the label of the dataset."""
        return QUICK_DATASET if self.quick else self.block.datasets[0].label

    @property
    def batch_sizes(self) -> tuple[int, ...]:
        """Return the batch sizes of the block, smallest first; 16 and 32 when quick."""
        return (16, 32) if self.quick else tuple(sorted(self.block.batch_sizes))

    @property
    def description(self) -> str:
        """Return the dataset and the seeds in words: "Glyphs-1k, seeds 0, 1 and 2"."""
        kind = "seeds" if len(self.seeds) > 1 else "seed"
        return f"{dataset_name(self.dataset)}, {kind} {listed([*map(str, self.seeds)])}"

    def spec(self, loss: str, batch_size: int, seed: int, **params: Any) -> RunSpec:
        """Return the specification of a run: the study's own where it has it, else made like it.

        ``loss`` is a variant of the study or a registered loss with its defaults, apart from
        ``params``. A memory in the recipe is switched off: what is looked at are batches.
        """
        block = self.block
        chosen_loss = self._loss(loss)
        if changed := {
            key: value for key, value in params.items() if chosen_loss.params[key] != value
        }:
            label = "_".join([loss, *(f"{key}_{value:g}" for key, value in changed.items())])
            chosen_loss = replace(
                chosen_loss, label=label, params={**chosen_loss.params, **changed}
            )
        recipe = block.recipe_of(chosen_loss.name)
        recipe = replace(recipe, memory=replace(recipe.memory, size=None))
        dataset = block.datasets[0]
        if self.quick:
            dataset = DatasetChoice(QUICK_DATASET, QUICK_DATASET, {})
            recipe = replace(recipe, training=replace(recipe.training, epochs=1))
        return RunSpec(
            dataset=dataset,
            setting=block.setting,
            loss=chosen_loss,
            batch_size=batch_size,
            seed=seed,
            recipe=recipe,
        )

    def trained(self, loss: str, batch_size: int, seed: int, **params: Any) -> Recording:
        """Return what a training of this run left: kept, or trained now (seconds to hours)."""
        spec = self.spec(loss, batch_size, seed, **params)
        if spec.digest not in [known.digest for known in self.used]:
            self.used.append(spec)
        return recorded(spec, self.study.folder(self.results) / "analyses" / "embeddings", self.say)

    def _loss(self, label: str) -> LossChoice:
        variant = self._variant(label)
        if variant is not None:
            return variant.choice
        catalogue = load_catalogue()
        if label not in catalogue:
            raise ConfigError("analysis", [f"no loss '{label}' in the study or the registry"])
        return LossChoice(label, label, defaults_of(catalogue[label].schema))

    def _variant(self, label: str) -> Variant | None:
        """Return a loss of the study with the hyperparameters it has nearest to the block.

        They are those of the block's setting on its dataset, else of its recipe, else of any block.
        """
        setting, place, recipe = (
            self.block.setting,
            self.block.datasets[0].label,
            self.block.recipe_name,
        )
        here = [each for each in self.study.blocks if each.setting == setting]
        nearest = [each for each in here if any(choice.label == place for choice in each.datasets)]
        alike = [each for each in here if each.recipe_name == recipe]
        for block in (*nearest, *alike, *self.study.blocks):
            for variant in block.losses:
                if variant.label == label:
                    return variant
        return None


def on_dataset(study: Study, label: str) -> Study:
    """Return the study on dataset ``label`` alone, the first block that trains on it in front.

    Raises ConfigError when no block does.
    """
    for block in study.blocks:
        for choice in block.datasets:
            if choice.label == label:
                return replace(study, blocks=(replace(block, datasets=(choice,)), *study.blocks))
    known = dict.fromkeys(choice.label for block in study.blocks for choice in block.datasets)
    raise ConfigError(
        "analyse --dataset", [unknown_name(f"dataset of study '{study.name}'", label, known)]
    )


def doubled(sizes: Sequence[int]) -> list[int]:
    """Return the batch sizes from the smallest to twice the largest, each twice the one before."""
    found = [min(sizes)]
    while found[-1] < 2 * max(sizes):
        found.append(2 * found[-1])
    return found
