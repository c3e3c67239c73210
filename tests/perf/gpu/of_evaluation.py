"""Evaluation on the GPU: test images that query each other, and a gallery of a million."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmark.metrics import retrieval_metrics
from perf.gpu.measuring import Place


def evaluation(place: Place) -> list[dict[str, Any]]:
    """Return the seconds of Recall@K, mAP@R and mAP, and whether they are those of the CPU."""
    found = []
    device = "cuda" if place.device.type == "cuda" else None
    sizes = ((400, None), (50, 600)) if place.small else ((60_502, None), (1_000, 1_000_000))
    for queries, gallery in sizes:
        row: dict[str, Any] = {"queries": queries, "gallery": gallery or queries}
        if place.over:
            found.append({**row, "skipped": "out of time"})
            continue
        rows, labels = _rows(place, queries)
        others, other_labels = (None, None) if gallery is None else _rows(place, gallery)
        start = time.perf_counter()
        scores = retrieval_metrics(rows, labels, others, other_labels, device=device)
        row["seconds"] = time.perf_counter() - start
        row |= {"recall_at_1": scores["recall_at_1"], "map_at_r": scores["map_at_r"]}
        found.append(row)
    small, labels = _rows(place, 400)
    one, other = (retrieval_metrics(small, labels, device=where) for where in (device, None))
    off = max(abs(one[name] - other[name]) for name in one)
    found.append({"queries": 400, "gallery": 400, "off_the_cpu": off, "within": off < 1e-4})
    return found


def _rows(place: Place, count: int) -> tuple[np.ndarray, np.ndarray]:
    return place.batch(count, 64 if place.small else 512).cpu().numpy(), np.arange(count) // 4
