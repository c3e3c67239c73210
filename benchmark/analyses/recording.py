"""Embeddings of a run: the batches of its last epoch and the test set after it, kept on disk.

Runs leave no weights behind, so an analysis trains what it looks at, once per specification and
code version.
"""

import contextlib
import re
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.core.array_file import read_arrays
from benchmark.core.code_version import code_version
from benchmark.core.errors import RunError
from benchmark.core.files import replacing
from benchmark.core.records import RunSpec

ARRAYS = {
    "batches": ("f", 2),
    "batch_labels": ("i", 1),
    "sizes": ("i", 1),
    "query": ("f", 2),
    "query_labels": ("i", 1),
    "gallery": ("f", 2),
    "gallery_labels": ("i", 1),
}


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

    def __post_init__(self) -> None:
        """Raise ValueError for arrays that do not fit each other: they may come from a file."""
        parts = ("batch", self.batches, self.batch_labels), ("query", self.query, self.query_labels)
        for name, rows, labels in (*parts, ("gallery", self.gallery, self.gallery_labels)):
            if len(rows) != len(labels) or not np.isfinite(rows).all():
                raise ValueError(f"the {name} has {rows.shape} numbers for {len(labels)} labels")
        sizes = self.sizes
        if not len(sizes) or sizes.min() < 1 or sizes.sum() != len(self.batches):
            raise ValueError(f"sizes of {sizes.sum()} images in all for {len(self.batches)}")
        shapes = self.query.shape, self.gallery.shape
        if not len(self.query) or (len(self.gallery) and shapes[0][1:] != shapes[1][1:]):
            raise ValueError(f"queries {shapes[0]} and a gallery {shapes[1]}")

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
        with contextlib.suppress(OSError, ValueError):  # a damaged one is made again
            return Recording(**read_arrays(path, ARRAYS))
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
