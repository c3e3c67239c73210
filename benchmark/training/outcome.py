"""What a finished run leaves behind: result.json, provenance.json and neighbours.npz."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmark.core import provenance
from benchmark.core.files import replacing, require_folder
from benchmark.core.records import NEIGHBOURS, PROVENANCE, RESULT
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
    Timing,
)
from benchmark.core.seeding import derive
from benchmark.training.measure import EmbeddedProtocol
from benchmark.training.parts import Parts
from benchmark.training.state import RunState

THUMBNAIL = 64  # pixels


def make_result(parts: Parts, state: RunState, identity: dict[str, str], reason: str) -> Result:
    """Return the result, which is the same bits for the same specification and code."""
    curve = [CurvePoint(item.epoch, item.loss, item.evaluation or {}) for item in state.records]
    finished = state.records[-1].evaluation if state.records and not reason else None
    return Result(
        run_id=parts.spec.run_id,
        **identity,
        status="diverged" if reason else "ok",
        reason=reason,
        epochs=state.epoch,
        steps=state.step,
        metrics=Metrics(finished or {}, best_epochs(state.records)),
        curve=curve,
        batch_stream=state.batch_stream(),
        dataset=DatasetContent(
            parts.spec.dataset.name, parts.dataset.fingerprint, parts.dataset.counts
        ),
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


def write_outcome(
    folder: Path,
    parts: Parts,
    state: RunState,
    identity: dict[str, str],
    timing: Timing,
    reason: str = "",
) -> Result:
    """Write provenance.json, then result.json, whose presence says that the run is finished.

    Return the result. Raise RunError when the folder is gone.
    """
    source = make_provenance(parts, state, identity, timing)
    result = make_result(parts, state, identity, reason)
    require_folder(folder)
    source.write(folder / PROVENANCE)
    require_folder(folder)
    result.write(folder / RESULT)
    return result


def make_provenance(
    parts: Parts, state: RunState, identity: dict[str, str], timing: Timing
) -> Provenance:
    """Return who computed this and at what cost: what may differ between equal results."""
    on_gpu = parts.device.type == "cuda"
    peak_gpu = torch.cuda.max_memory_allocated() if on_gpu else 0
    peak_rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return Provenance(
        run_id=parts.spec.run_id,
        **identity,
        timing=timing,
        memory=MemoryUse(peak_rss_mb=peak_rss / 1024, peak_gpu_mb=peak_gpu / 2**20),
        platform=provenance.platform_label(),
        hardware=provenance.hardware(),
        machines=state.machines,
        packages=provenance.packages(),
        package_digests=state.package_digests,
        weights=parts.model.provenance(),
        numerics=Numerics(
            device=parts.device.type,
            precision=parts.training.precision if on_gpu else "float32",
            threads=torch.get_num_threads(),
            instructions=provenance.instructions(),
            deterministic=torch.are_deterministic_algorithms_enabled(),
        ),
    )


def write_neighbours(folder: Path, parts: Parts, embedded: dict[str, EmbeddedProtocol]) -> None:
    """Writes the nearest neighbours of a fixed sample of queries of the first protocol, with thumbnails.

    The sample depends on the number of queries only, so that all runs on a dataset show the same queries. Beside
    the neighbours stand ``positive_ranks``, the ranks of all that a query is to find (``positives`` of them each,
    query after query), and ``query_categories``, -1 where a dataset has none. Raises RunError when the folder is gone.
    """
    config = parts.evaluation
    item = next(iter(embedded.values()))
    total = len(item.query)
    count = min(config.neighbour_queries, total)
    order = np.random.default_rng(derive(0, "neighbour queries", total)).permutation(total)
    queries = np.sort(order[:count])
    neighbours, scores, matches = item.nearest(queries, config.neighbours)
    ranks = item.positive_ranks(queries)
    query_set = item.protocol.query
    gallery_set = query_set if item.protocol.gallery is None else item.protocol.gallery
    categories = np.full(total, -1) if query_set.categories is None else query_set.categories
    arrays = {
        "queries": queries,
        "neighbours": neighbours,
        "scores": scores.astype(np.float32),
        "matches": matches,
        "positives": np.array([len(found) for found in ranks], dtype=np.int64),
        "positive_ranks": np.concatenate([*ranks, np.empty(0, np.int64)]),
        "query_categories": categories[queries].astype(np.int64),
        "query_names": np.array([query_set.names[i] for i in queries], dtype=np.str_),
        "neighbour_names": np.array(
            [[gallery_set.names[i] for i in row] for row in neighbours], dtype=np.str_
        ),
        "query_images": _thumbnails(query_set, queries),
        "neighbour_images": _thumbnails(gallery_set, neighbours.ravel()),
    }
    require_folder(folder)
    with replacing(folder / NEIGHBOURS) as temporary, open(temporary, "wb") as stream:
        np.savez_compressed(stream, **arrays)


def _thumbnails(image_set: Any, indices: np.ndarray) -> np.ndarray:
    """Returns (n, 64, 64, 3) uint8 pictures."""
    size = (THUMBNAIL, THUMBNAIL)
    pictures = {
        int(i): np.asarray(image_set.image(int(i)).convert("RGB").resize(size))
        for i in np.unique(indices)
    }
    return (
        np.stack([pictures[int(i)] for i in indices])
        if len(indices)
        else np.zeros((0, *size, 3), np.uint8)
    )
