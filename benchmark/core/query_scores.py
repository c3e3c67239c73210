"""``queries.npz``: the scores of every query after the last epoch, for intervals over queries.

A few numbers a query, from which its recall at any K and its average precision follow. The file is
younger than results that remain valid: a run without it, or whose file is empty, counts, and has no
intervals over queries.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.core.files import replacing
from benchmark.core.records import QUERIES, SPEC_DIGEST

Array = NDArray[Any]
RECALL = "recall_at_"
_WHOLE = ("query", "label", "nearest")
_AVERAGES = ("map", "map_at_r")


@dataclass(frozen=True)
class QueryScores:
    """The scores of the queries of one split; all arrays are (Q,).

    query      int32: its number among the protocol's; more than once where a protocol has repeats
    label      int32: its class
    nearest    int32: rank of the first match, 1 = nearest
    averages   float32 in [0, 1]: average precision "map" and, but for judged lists, "map_at_r"

    Queries without a match to find are left out.
    """

    query: Array
    label: Array
    nearest: Array
    averages: Mapping[str, Array]

    def of(self, metric: str) -> NDArray[np.float64] | None:
        """Return each query's score (Q,), whose mean is the metric; None for one not kept."""
        if metric.startswith(RECALL):
            return (self.nearest <= int(metric.removeprefix(RECALL))).astype(float)
        kept = self.averages.get(metric)
        return None if kept is None else kept.astype(float)


def joined(parts: Sequence[QueryScores], numbers: Sequence[Array]) -> QueryScores:
    """Return the scores of several evaluations as one; ``numbers`` are those of the queries."""
    label, nearest = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("label", "nearest")
    )
    names = parts[0].averages
    averages = {name: np.concatenate([part.averages[name] for part in parts]) for name in names}
    return QueryScores(np.concatenate(numbers), label, nearest, averages)


def write_query_scores(folder: Path, digest: str, splits: Mapping[str, QueryScores]) -> None:
    """Write the file of a run with this digest of its specification, atomically."""
    arrays: dict[str, Array] = {SPEC_DIGEST: np.array(digest)}
    for split, scores in splits.items():
        arrays |= {f"{split}/{name}": getattr(scores, name).astype(np.int32) for name in _WHOLE}
        kept = scores.averages.items()
        arrays |= {f"{split}/{name}": values.astype(np.float32) for name, values in kept}
    with replacing(folder / QUERIES) as temporary, open(temporary, "wb") as stream:
        np.savez_compressed(stream, allow_pickle=False, **arrays)


def read_query_scores(folder: Path, digest: str) -> dict[str, QueryScores] | None:
    """Return the scores by split of the run with this digest of its specification.

    None where there is no file, an empty one, or that of another specification.
    """
    path = folder / QUERIES
    if not path.exists() or not path.stat().st_size:
        return None
    with np.load(path) as arrays:
        if str(arrays[SPEC_DIGEST]) != digest:
            return None
        found: dict[str, dict[str, Array]] = {}
        for name in arrays.files:
            split, _, part = name.rpartition("/")
            if split:
                found.setdefault(split, {})[part] = arrays[name]
    return {
        split: QueryScores(
            parts["query"],
            parts["label"],
            parts["nearest"],
            {name: parts[name] for name in _AVERAGES if name in parts},
        )
        for split, parts in found.items()
    }
