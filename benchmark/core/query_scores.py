"""``queries.npz``: the scores of every query after the last epoch, for intervals over queries.

A few numbers a query, from which its recall at any K and its average precision follow. The file is
younger than results that remain valid: a run without it counts, and has no intervals over queries.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.core.array_file import read_arrays
from benchmark.core.errors import RunError
from benchmark.core.files import replacing, require_folder
from benchmark.core.records import QUERIES, SPEC_DIGEST
from benchmark.core.results import Scores

Array = NDArray[Any]
RECALL = "recall_at_"
_WHOLE = ("query", "label", "nearest")
_AVERAGES = ("map", "map_at_r")
_LARGEST_ERROR = 1e-5  # of a mean of numbers kept as float32
_CURE = (
    "delete it to do without intervals over queries, or delete result.json beside it to train the "
    "run again"
)


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
    require_folder(folder)
    with replacing(folder / QUERIES) as temporary, open(temporary, "wb") as stream:
        np.savez_compressed(stream, allow_pickle=False, **arrays)


def read_query_scores(folder: Path, digest: str, last: Scores) -> dict[str, QueryScores] | None:
    """Return the scores by split of a run; None where there is no file.

    ``digest`` is that of its specification, ``last`` its metrics after the last epoch. Raise
    RunError for a damaged file, for one of another specification, and for one whose means are not
    those metrics.
    """
    path = folder / QUERIES
    if not path.exists():
        return None
    wanted: dict[str, tuple[str, int]] = {SPEC_DIGEST: ("U", 0)}
    for split, metrics in last.items():
        wanted |= {f"{split}/{name}": ("i", 1) for name in _WHOLE}
        wanted |= {f"{split}/{name}": ("f", 1) for name in _AVERAGES if name in metrics}
    try:
        return _checked(read_arrays(path, wanted), digest, last)
    except (OSError, ValueError, MemoryError) as error:
        raise RunError(f"{path} cannot be read as scores of queries ({error}); {_CURE}") from error


def _checked(arrays: Mapping[str, Array], digest: str, last: Scores) -> dict[str, QueryScores]:
    """Return the scores of the splits of ``last``; raise ValueError with what is wrong."""
    if (own := str(arrays[SPEC_DIGEST])) != digest:
        raise ValueError(f"of specification {own}, the result is of {digest}")
    found = {split: _split(arrays, split) for split in last}
    for split, scores in found.items():
        for metric, value in last[split].items():
            kept = scores.of(metric)
            # the mean over repeats is not the mean over queries where repeats differ in size
            if kept is None or len(np.unique(scores.query)) < len(scores.query):
                continue
            if not abs(kept.mean() - value) <= _LARGEST_ERROR:
                words = f"mean {metric} of '{split}' is {kept.mean():.6f}, the result's {value:.6f}"
                raise ValueError(words)
    return found


def _split(arrays: Mapping[str, Array], split: str) -> QueryScores:
    query, label, nearest = (arrays[f"{split}/{name}"] for name in _WHOLE)
    averages = {
        name: arrays[f"{split}/{name}"] for name in _AVERAGES if f"{split}/{name}" in arrays
    }
    if len({len(values) for values in (query, label, nearest, *averages.values())}) != 1 or not len(
        query
    ):
        raise ValueError(f"arrays of '{split}' differ in length, or are empty")
    if not all(((values >= 0) & (values <= 1)).all() for values in averages.values()):
        raise ValueError(f"an average precision of '{split}' is not in [0, 1]")
    return QueryScores(query, label, nearest, averages)
