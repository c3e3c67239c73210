"""Train one run, from its specification to its files: ``python -m benchmark train``."""

from __future__ import annotations

import contextlib
import hashlib
import resource
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from PIL import Image

from benchmark.core import provenance
from benchmark.core.errors import RunError
from benchmark.core.files import replacing, write_text
from benchmark.core.interrupts import Interrupted, StopRequest
from benchmark.core.recipe import EvaluationConfig
from benchmark.core.records import (
    KEPT_ROWS,
    METRICS,
    NEIGHBOURS,
    PROVENANCE,
    QUERIES,
    RESULT,
    SPEC_DIGEST,
    STATE,
    RunSpec,
)
from benchmark.core.results import (
    BatchStream,
    BestScore,
    CurvePoint,
    DatasetContent,
    EpochRecord,
    MemoryUse,
    Metrics,
    Numerics,
    Provenance,
    Result,
    Timing,
    write_query_scores,
)
from benchmark.core.seeding import derive
from benchmark.datasets.base import ImageSet
from benchmark.training.components import Components, build_components, training_norms
from benchmark.training.evaluate import EmbeddedProtocol, Evaluation
from benchmark.training.loop import Trainer
from benchmark.training.numerics import prepare_numerics
from benchmark.training.progress import Progress, logged_live
from benchmark.training.state import remove_checkpoint
from benchmark.training.step import DivergedError

THUMBNAIL = 64  # pixels
NO_ROOM = f"{STATE}/gpu_memory.txt"  # why the run does not fit its GPU


def train(
    spec_path: Path,
    out: Path | None = None,
    *,
    started: float | None = None,
    attempt: int = 1,
    recorder: Callable[..., Any] | None = None,
) -> Result:
    """Return the result of the run described by ``spec_path``, after writing it into ``out``.

    out         folder of the results; by default the folder of the specification
    started     time.monotonic() at the start of the process, to record the start-up time
    attempt     number of this attempt in a workflow: if the first attempt did not fit the GPU, a
                further attempt raises the same error
    recorder    makes the recorder of a trace from model, optimizers and loss; it changes no bit

    A finished result of the same specification is returned as it is. A checkpoint of the same
    specification, code version, data, platform and kernels is continued. A run whose loss or
    embeddings become non-finite ends with status ``diverged``. At a signal to stop, the state is
    saved and ``Interrupted`` is raised.
    """
    started = time.monotonic() if started is None else started
    spec = RunSpec.read(spec_path)
    folder = Path(out) if out is not None else Path(spec_path).parent
    progress = Progress(spec.run_id, spec.recipe.training.epochs)
    path = folder / RESULT
    finished = None
    with contextlib.suppress(RunError):  # the result is absent or damaged
        finished = Result.read(path)
    if finished and finished.spec_digest == spec.digest:
        progress.say("already finished; delete result.json to train again")
        remove_checkpoint(folder)  # a run may have been killed before this last step
        return finished
    if finished:  # a result is never overwritten
        raise RunError(
            f"{path} was made from another specification (digest {finished.spec_digest}, now "
            f"{spec.digest}); move it away, or give another folder with --out"
        )
    no_room = folder / NO_ROOM
    if attempt > 1 and no_room.is_file():
        raise RunError(no_room.read_text("utf-8"))
    no_room.unlink(missing_ok=True)
    with StopRequest() as stop:

        def report(text: str) -> None:
            progress.say(text)
            if stop.requested:
                raise Interrupted("stopped on request; finished features are kept")

        device = prepare_numerics(spec.recipe.training)
        components = build_components(spec, device, report)
        startup = time.monotonic() - started
        trainer = Trainer(components, folder, progress)
        stepper = trainer.stepper
        if recorder is not None:
            stepper.recorder = recorder(
                model=components.model, optimizers=[stepper.optimizer], loss=components.loss
            )
        with logged_live(spec_path, folder):
            reason = ""
            last = None
            try:
                last = trainer.run(stop)
            except DivergedError as error:
                reason = str(error)
                progress.say(f"diverged: {reason}")
            except torch.cuda.OutOfMemoryError as error:
                reason = why_no_room(components, error)
                write_text(no_room, reason)
                raise RunError(reason) from error
            finally:
                progress.close()
                if recorder is not None:
                    stepper.recorder.close()
            result = write_outcome(trainer, last, startup, reason)
        remove_checkpoint(folder)
    return result


def why_no_room(components: Components, error: Exception) -> str:
    """Return why a run does not fit its GPU, and the option that makes it smaller."""
    training = components.recipe.training
    batch = components.spec.batch_size
    if not training_norms(components.model):
        size = min(training.micro_batch or batch, batch)
        change = f"training.micro_batch below {size}, which leaves the gradient as it is"
    else:
        half = ""
        if training.precision in ("float32", "tf32"):
            half = "training.precision: bfloat16, or "
        change = f"{half}a smaller input.image_size (batch norms that train need the whole batch)"
    return (
        f"the memory of the GPU is full; set {change}, or take a larger GPU; further attempts "
        f"of this call end here, a new call trains again ({str(error).splitlines()[0]})"
    )


def write_outcome(trainer: Trainer, last: Evaluation | None, startup: float, reason: str) -> Result:
    """Write the files of a run, at last result.json, which marks the run as finished.

    The result has the same bits for the same specification and code.
    """
    folder = trainer.folder
    components = trainer.components
    state = trainer.state
    spec = components.spec
    dataset = components.dataset
    records = state.records
    EpochRecord.write_all(folder / METRICS, records)
    for old in folder.glob(KEPT_ROWS.format("*")):
        old.unlink()
    if last is None:
        for name in (NEIGHBOURS, QUERIES):
            (folder / name).write_bytes(b"")
    else:
        write_neighbours(folder, spec.digest, components.recipe.evaluation, last.embedded)
        write_query_scores(folder, spec.digest, last.queries)
        if components.recipe.evaluation.keep_embeddings:
            write_embeddings(folder, last.embedded)
    make_provenance(trainer, startup).write(folder / PROVENANCE)
    best: dict[str, dict[str, BestScore]] = {}
    for record in records:  # of equal scores the first counts
        for split, metrics in (record.evaluation or {}).items():
            of_split = best.setdefault(split, {})
            for metric, value in metrics.items():
                if metric not in of_split or value > of_split[metric].value:
                    of_split[metric] = BestScore(value, record.epoch)
    final = None
    status: Literal["ok", "diverged"] = "diverged"
    if not reason:
        status = "ok"
        final = records[-1].evaluation
    batches = hashlib.sha256("".join(state.batch_digests).encode()).hexdigest()
    result = Result(
        run_id=spec.run_id,
        spec_digest=spec.digest,
        code_version=trainer.identity["code_version"],
        status=status,
        reason=reason,
        epochs=state.epoch,
        steps=state.step,
        metrics=Metrics(final or {}, best),
        curve=[CurvePoint(item.epoch, item.loss, item.evaluation or {}) for item in records],
        batch_stream=BatchStream(len(state.batch_digests), batches),
        dataset=DatasetContent(spec.dataset.name, dataset.fingerprint, dataset.counts),
    )
    result.write(folder / RESULT)
    return result


def make_provenance(trainer: Trainer, startup: float) -> Provenance:
    """Return what computed the result and at what cost; equal results may differ in this."""
    components = trainer.components
    state = trainer.state
    identity = trainer.identity
    records = state.records
    images = sum(record.images_per_second * record.seconds for record in records)
    seconds = sum(record.seconds for record in records)
    speed = images / seconds if seconds else 0.0
    precision = "float32"
    gpu_bytes = 0
    if components.device.type == "cuda":
        precision = components.recipe.training.precision
        gpu_bytes = torch.cuda.max_memory_allocated()
    return Provenance(
        run_id=components.spec.run_id,
        spec_digest=identity["spec_digest"],
        code_version=identity["code_version"],
        timing=Timing(
            startup_seconds=startup,
            train_seconds=state.train_seconds,
            eval_seconds=state.eval_seconds,
            total_seconds=startup + trainer.total_seconds(),
            images_per_second=speed,
            loss_ms=sum(record.loss_ms for record in records) / max(len(records), 1),
            resumed=state.resumed,
            updates=state.step,
            images_forward=state.images_forward,
            images_backward=state.images_backward,
        ),
        memory=MemoryUse(
            peak_rss_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            peak_gpu_mb=gpu_bytes / 2**20,
        ),
        platform=identity["platform"],
        hardware=provenance.hardware(),
        machines=state.machines,
        packages=provenance.packages(),
        package_digests=state.package_digests,
        weights=components.model.provenance(),
        numerics=Numerics(
            device=components.device.type,
            precision=precision,
            threads=torch.get_num_threads(),
            kernels=provenance.kernels(),
            deterministic=torch.are_deterministic_algorithms_enabled(),
        ),
    )


def write_neighbours(
    folder: Path, digest: str, config: EvaluationConfig, embedded: Mapping[str, EmbeddedProtocol]
) -> None:
    """Write the nearest neighbours of a fixed sample of queries of the first protocol.

    ``digest`` is the digest of the run's specification. The sample depends only on the number of
    queries, so all runs on a dataset show the same queries. The file also has thumbnails and

    positive_ranks    the ranks of all matches, query after query
    positives         the number of these ranks of each query
    query_categories  -1 if the dataset has no categories
    """
    first = next(iter(embedded.values()))
    total = len(first.query)
    order = np.random.default_rng(derive(0, "neighbour queries", total)).permutation(total)
    queries = np.sort(order[: config.neighbour_queries])
    neighbours, scores, matches = first.nearest(queries, config.neighbours)
    ranks = first.positive_ranks(queries)
    query_images = first.protocol.query
    searched = _searched_images(first)
    categories = query_images.categories
    if categories is None:
        categories = np.full(total, -1)
    names = []
    for row in neighbours:
        names.append([searched.names[number] for number in row])
    arrays: dict[str, Any] = {
        SPEC_DIGEST: np.array(digest),
        "queries": queries,
        "neighbours": neighbours,
        "scores": scores.astype(np.float32),
        "matches": matches,
        "positives": np.array([len(of_query) for of_query in ranks], dtype=np.int64),
        "positive_ranks": np.concatenate([*ranks, np.empty(0, np.int64)]),
        "query_categories": categories[queries].astype(np.int64),
        "query_names": np.array([query_images.names[i] for i in queries], dtype=np.str_),
        "neighbour_names": np.array(names, dtype=np.str_),
        "query_images": _thumbnails(query_images, queries),
        "neighbour_images": _thumbnails(searched, neighbours.ravel()),
    }
    with replacing(folder / NEIGHBOURS) as temporary, open(temporary, "wb") as stream:
        np.savez_compressed(stream, **arrays)


def write_embeddings(folder: Path, embedded: Mapping[str, EmbeddedProtocol]) -> None:
    """Write the embeddings of each split in float32, with the roles that 'score' reads.

    Splits of the same images share the file of the first. Judged lists have no labels.
    """
    written = []
    for split, item in embedded.items():
        images = item.protocol.image_sets()
        if (known := [*map(id, images)]) in written:
            continue
        written.append(known)
        sides = (item.query, item.gallery, item.distractors)
        rows = np.concatenate([side for side in sides if side is not None])
        roles = {"embeddings": rows}
        if item.gallery is not None:
            roles["query"], roles["gallery"] = np.split(np.arange(len(rows)), [len(item.query)])
        if item.protocol.judgements is None:
            roles["labels"] = np.concatenate([each.labels for each in images])
        path = folder / KEPT_ROWS.format(split)
        with replacing(path) as temporary, open(temporary, "wb") as stream:
            np.savez(stream, allow_pickle=False, **roles)


def _searched_images(embedded: EmbeddedProtocol) -> ImageSet:
    """Return the images that queries search: the gallery, followed by the distractors."""
    gallery = embedded.images
    distractors = embedded.protocol.distractors
    if distractors is None:
        return gallery
    size = len(gallery)

    def image(number: int) -> Image.Image:
        if number < size:
            return gallery.image(number)
        return distractors.image(number - size)

    labels = np.concatenate([gallery.labels, distractors.labels])
    return ImageSet(labels, [*gallery.names, *distractors.names], image)


def _thumbnails(image_set: ImageSet, indices: np.ndarray) -> np.ndarray:
    if image_set.features is not None:
        return np.zeros((len(indices), 0, 0, 3), np.uint8)
    pictures = np.zeros((len(indices), THUMBNAIL, THUMBNAIL, 3), np.uint8)
    for index in np.unique(indices):
        picture = image_set.image(int(index)).convert("RGB").resize((THUMBNAIL, THUMBNAIL))
        pictures[indices == index] = np.asarray(picture)
    return pictures
