"""One run from its specification to the files that it leaves: ``python -m benchmark train``."""

from __future__ import annotations

import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmark.core import provenance
from benchmark.core.errors import RunError
from benchmark.core.files import replacing
from benchmark.core.interrupts import Interrupted, StopRequest
from benchmark.core.recipe import EvaluationConfig
from benchmark.core.records import (
    METRICS,
    NEIGHBOURS,
    PROVENANCE,
    QUERIES,
    RESULT,
    SPEC_DIGEST,
    RunSpec,
)
from benchmark.core.results import (
    BestScore,
    CurvePoint,
    DatasetContent,
    EpochRecord,
    MemoryUse,
    Metrics,
    Numerics,
    Provenance,
    Result,
    StaleError,
    Timing,
    read_own_result,
    write_query_scores,
)
from benchmark.core.seeding import derive
from benchmark.datasets.base import ImageSet, Protocol
from benchmark.training.components import Components, build_components
from benchmark.training.evaluate import EmbeddedProtocol
from benchmark.training.loop import Evaluated, Trainer
from benchmark.training.numerics import prepare_numerics
from benchmark.training.progress import Progress, logged_live
from benchmark.training.state import RunState, remove_checkpoint
from benchmark.training.step import DivergedError

THUMBNAIL = 64  # pixels


def train(spec_path: Path, out: Path | None = None, *, started: float | None = None) -> Result:
    """Return the result of the run described by ``spec_path``, after writing it into ``out``.

    out         folder of the results; by default the folder of the specification
    started     time.monotonic() at the start of the process, for the start-up time on record

    A finished result of the same specification is returned as it is. A checkpoint of the same
    specification, code version, data and platform is continued. A run whose loss or embeddings
    become non-finite ends with status ``diverged``. On a signal to stop the state is saved and
    ``Interrupted`` raised.
    """
    started = time.monotonic() if started is None else started
    spec = RunSpec.read(spec_path)
    folder = Path(out) if out is not None else Path(spec_path).parent
    progress = Progress(spec.run_id, spec.recipe.training.epochs)
    path = folder / RESULT
    if path.exists():
        try:
            finished = read_own_result(path, spec.digest)
            progress.say("already finished; delete result.json to train again")
            remove_checkpoint(folder)  # the last thing that a run does: it may not have come to it
            return finished
        except StaleError as error:  # a result of another specification is never overwritten
            words = f"{error}; move it away, or give another folder with --out"
            raise RunError(words) from error
        except RunError:
            pass  # damaged
    with StopRequest() as stop:

        def report(text: str) -> None:
            progress.say(text)
            if stop.requested:
                raise Interrupted("stopped on request; finished features are kept")

        device = prepare_numerics(spec.recipe.training)
        components = build_components(spec, device, report)
        startup = time.monotonic() - started
        trainer = Trainer(components, folder, progress)
        with logged_live(spec_path, folder):
            reason, last = "", None
            try:
                last = trainer.run(stop)
            except DivergedError as error:
                reason = str(error)
                progress.say(f"diverged: {reason}")
            finally:
                progress.close()
            result = write_outcome(trainer, last, startup, reason)
        remove_checkpoint(folder)
    return result


def write_outcome(trainer: Trainer, last: Evaluated | None, startup: float, reason: str) -> Result:
    """Write everything that a run leaves, last result.json, which says that it is finished."""
    folder, components, state = trainer.folder, trainer.components, trainer.state
    EpochRecord.write_all(folder / METRICS, state.records)
    if last is None:
        for name in (NEIGHBOURS, QUERIES):
            (folder / name).write_bytes(b"")
    else:
        digest = components.spec.digest
        write_neighbours(folder, digest, components.recipe.evaluation, last.embedded)
        write_query_scores(folder, digest, last.measured.queries)
    timing = state.timing(startup, trainer.total_seconds())
    make_provenance(components, state, timing).write(folder / PROVENANCE)
    result = make_result(components, state, reason)
    result.write(folder / RESULT)
    return result


def make_result(components: Components, state: RunState, reason: str) -> Result:
    """Return the result, which is the same bits for the same specification and code."""
    spec, dataset, identity = components.spec, components.dataset, components.identity()
    curve = [CurvePoint(item.epoch, item.loss, item.evaluation or {}) for item in state.records]
    last = state.records[-1].evaluation if state.records and not reason else None
    return Result(
        run_id=spec.run_id,
        spec_digest=identity.spec_digest,
        code_version=identity.code_version,
        status="diverged" if reason else "ok",
        reason=reason,
        epochs=state.epoch,
        steps=state.step,
        metrics=Metrics(last or {}, best_epochs(state.records)),
        curve=curve,
        batch_stream=state.batch_stream(),
        dataset=DatasetContent(spec.dataset.name, dataset.fingerprint, dataset.counts),
    )


def best_epochs(records: list[EpochRecord]) -> dict[str, dict[str, BestScore]]:
    """Return {split: {metric: best evaluation on the test set}}, the first one on ties."""
    best: dict[str, dict[str, BestScore]] = {}
    for record in records:
        for split, metrics in (record.evaluation or {}).items():
            for metric, value in metrics.items():
                before = best.setdefault(split, {}).get(metric)
                if before is None or value > before.value:
                    best[split][metric] = BestScore(value, record.epoch)
    return best


def make_provenance(components: Components, state: RunState, timing: Timing) -> Provenance:
    """Return who computed this and at what cost: what may differ between equal results."""
    on_gpu, identity = components.device.type == "cuda", components.identity()
    peak_gpu = torch.cuda.max_memory_allocated() if on_gpu else 0
    peak_rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return Provenance(
        run_id=components.spec.run_id,
        spec_digest=identity.spec_digest,
        code_version=identity.code_version,
        timing=timing,
        memory=MemoryUse(peak_rss_mb=peak_rss / 1024, peak_gpu_mb=peak_gpu / 2**20),
        platform=identity.platform,
        hardware=provenance.hardware(),
        machines=state.machines,
        packages=provenance.packages(),
        package_digests=state.package_digests,
        weights=components.model.provenance(),
        numerics=Numerics(
            device=components.device.type,
            precision=components.recipe.training.precision if on_gpu else "float32",
            threads=torch.get_num_threads(),
            instructions=provenance.instructions(),
            deterministic=torch.are_deterministic_algorithms_enabled(),
        ),
    )


def write_neighbours(
    folder: Path, digest: str, config: EvaluationConfig, embedded: dict[str, EmbeddedProtocol]
) -> None:
    """Write the nearest neighbours of a fixed sample of queries of the first protocol.

    ``digest`` is that of the run's specification. The sample depends on the number of queries only,
    so that all runs on a dataset show the same queries. Beside the neighbours stand
    ``positive_ranks``, the ranks of all that a query is to find (``positives`` of them each, query
    after query), thumbnails, and ``query_categories``, -1 where a dataset has none.
    """
    item = next(iter(embedded.values()))
    total = len(item.query)
    order = np.random.default_rng(derive(0, "neighbour queries", total)).permutation(total)
    queries = np.sort(order[: config.neighbour_queries])
    neighbours, scores, matches = item.nearest(queries, config.neighbours)
    ranks = item.positive_ranks(queries)
    query_set, gallery_set = item.protocol.query, _searched(item.protocol)
    categories = np.full(total, -1) if query_set.categories is None else query_set.categories
    names = [[gallery_set.names[i] for i in row] for row in neighbours]
    arrays: dict[str, Any] = {
        SPEC_DIGEST: np.array(digest),
        "queries": queries,
        "neighbours": neighbours,
        "scores": scores.astype(np.float32),
        "matches": matches,
        "positives": np.array([len(of_query) for of_query in ranks], dtype=np.int64),
        "positive_ranks": np.concatenate([*ranks, np.empty(0, np.int64)]),
        "query_categories": categories[queries].astype(np.int64),
        "query_names": np.array([query_set.names[i] for i in queries], dtype=np.str_),
        "neighbour_names": np.array(names, dtype=np.str_),
        "query_images": _thumbnails(query_set, queries),
        "neighbour_images": _thumbnails(gallery_set, neighbours.ravel()),
    }
    with replacing(folder / NEIGHBOURS) as temporary, open(temporary, "wb") as stream:
        np.savez_compressed(stream, **arrays)


def _searched(protocol: Protocol) -> ImageSet:
    """Return the images that neighbours are numbered by: the gallery, then the distractors."""
    images = protocol.query if protocol.gallery is None else protocol.gallery
    extra = protocol.distractors
    if extra is None:
        return images
    size = len(images)
    return ImageSet(
        np.concatenate([images.labels, extra.labels]),
        [*images.names, *extra.names],
        lambda index: images.image(index) if index < size else extra.image(index - size),
    )


def _thumbnails(image_set: ImageSet, indices: np.ndarray) -> np.ndarray:
    """Return (n, 64, 64, 3) uint8 pictures."""
    pictures = np.zeros((len(indices), THUMBNAIL, THUMBNAIL, 3), np.uint8)
    for index in np.unique(indices):
        picture = image_set.image(int(index)).convert("RGB").resize((THUMBNAIL, THUMBNAIL))
        pictures[indices == index] = np.asarray(picture)
    return pictures
