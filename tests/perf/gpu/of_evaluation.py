"""Evaluation on the GPU: test images that query each other, and a gallery of a million."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmark.metrics import retrieval_metrics
from perf.gpu.measuring import Place, Row


def evaluation(place: Place) -> Iterator[Row]:
    """Give the seconds of Recall@K, mAP@R and mAP, and whether they are those of the CPU."""
    yield place.tried({"queries": 400, "gallery": 400}, partial(_off_the_cpu, place))
    sizes = ((400, None), (50, 600)) if place.small else ((60_502, None), (1_000, 1_000_000))
    for queries, gallery in sizes:
        row = {"queries": queries, "gallery": gallery or queries}
        yield place.tried(row, partial(_timed, place, queries, gallery))


def _off_the_cpu(place: Place) -> Row:
    rows, labels = _rows(place, 400)
    here, cpu = (retrieval_metrics(rows, labels, device=each) for each in (_device(place), None))
    off = max(abs(here[name] - cpu[name]) for name in here)
    return {"off_the_cpu": off, "within": off < 1e-4}


def _timed(place: Place, queries: int, gallery: int | None) -> Row:
    rows, labels = _rows(place, queries)
    others, other_labels = (None, None) if gallery is None else _rows(place, gallery)
    start = time.perf_counter()
    scores = retrieval_metrics(rows, labels, others, other_labels, device=_device(place))
    seconds = time.perf_counter() - start
    return {"seconds": seconds, **{name: scores[name] for name in ("recall_at_1", "map_at_r")}}


def _device(place: Place) -> str | None:
    return "cuda" if place.device.type == "cuda" else None


def _rows(place: Place, count: int) -> tuple[np.ndarray, np.ndarray]:
    return place.batch(count, 64 if place.small else 512).cpu().numpy(), np.arange(count) // 4
