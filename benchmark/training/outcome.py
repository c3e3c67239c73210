"""What a finished run leaves behind: result.json, provenance.json and neighbours.npz."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmark.core import provenance
from benchmark.core.files import replacing, require_folder, write_json
from benchmark.core.records import NEIGHBOURS, PROVENANCE, RESULT, SCHEMA
from benchmark.core.seeding import derive
from benchmark.training.measure import EmbeddedProtocol
from benchmark.training.parts import Parts
from benchmark.training.state import RunState

THUMBNAIL = 64  # pixels


def result_record(
    parts: Parts, state: RunState, identity: dict[str, str], reason: str
) -> dict[str, Any]:
    """Returns the content of result.json, which is the same bits for the same specification and code."""
    curve = [
        {"epoch": record["epoch"], "loss": record["loss"], **(record["evaluation"] or {})}
        for record in state.records
    ]
    finished = state.records[-1]["evaluation"] if state.records and not reason else None
    return {
        "schema": SCHEMA,
        "run_id": parts.spec.run_id,
        **identity,
        "status": "diverged" if reason else "ok",
        "reason": reason,
        "epochs": state.epoch,
        "steps": state.step,
        "metrics": {"last": finished or {}, "best": best_epochs(state.records)},
        "curve": curve,
        "batch_stream": state.batch_stream(),
        "dataset": {
            "name": parts.spec.dataset["name"],
            "fingerprint": parts.dataset.fingerprint,
            "counts": parts.dataset.counts,
        },
    }


def best_epochs(records: list[dict[str, Any]]) -> dict[str, dict[str, dict[str, float]]]:
    """Returns {split: {metric: {"value", "epoch"}}}: the best evaluation on the test set, first one on ties."""
    best: dict[str, dict[str, dict[str, float]]] = {}
    for record in records:
        for split, metrics in (record["evaluation"] or {}).items():
            for metric, value in metrics.items():
                known = best.setdefault(split, {}).get(metric)
                if known is None or value > known["value"]:
                    best[split][metric] = {"value": value, "epoch": record["epoch"]}
    return best


def write_outcome(
    folder: Path,
    parts: Parts,
    state: RunState,
    identity: dict[str, str],
    timing: dict[str, float],
    reason: str = "",
) -> dict[str, Any]:
    """Writes provenance.json, then result.json, whose presence says that the run is finished; returns the latter.

    Raises RunError when the folder is gone.
    """
    source = provenance_record(parts, state, identity, timing)
    result = result_record(parts, state, identity, reason)
    for name, content in ((PROVENANCE, source), (RESULT, result)):
        require_folder(folder)
        write_json(folder / name, content)
    return result


def provenance_record(
    parts: Parts, state: RunState, identity: dict[str, str], timing: dict[str, float]
) -> dict[str, Any]:
    """Returns who computed this and at what cost: everything that may differ between equal results."""
    peak_gpu = torch.cuda.max_memory_allocated() if parts.device.type == "cuda" else 0
    return {
        "schema": SCHEMA,
        "run_id": parts.spec.run_id,
        **identity,
        "timing": timing,
        "memory": {
            "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            "peak_gpu_mb": peak_gpu / 2**20,
        },
        "platform": provenance.platform_label(),
        "hardware": provenance.hardware(),
        "machines": state.machines,
        "packages": provenance.packages(),
        "package_digests": state.package_digests,
        "weights": parts.model.provenance(),
        "numerics": {
            "device": parts.device.type,
            "precision": parts.training.precision if parts.device.type == "cuda" else "float32",
            "threads": torch.get_num_threads(),
            "instructions": provenance.instructions(),
            "deterministic": torch.are_deterministic_algorithms_enabled(),
        },
    }


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
