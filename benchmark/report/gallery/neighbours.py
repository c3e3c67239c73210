"""What a run recorded of some of its queries: the nearest items, and the ranks of all positives."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmark.core.array_file import read_arrays
from benchmark.core.errors import RunError
from benchmark.core.records import SPEC_DIGEST

_ARRAYS = {
    SPEC_DIGEST: ("U", 0),
    "queries": ("iu", 1),
    "matches": ("b", 2),
    "query_names": ("U", 1),
    "neighbour_names": ("U", 2),
    "query_images": ("u", 4),
    "neighbour_images": ("u", 4),
    "positives": ("iu", 1),
    "positive_ranks": ("iu", 1),
    "query_categories": ("iu", 1),
}


@dataclass(frozen=True)
class Neighbours:
    """Of Q queries, the K nearest items each, best first.

    queries      int64 (Q,): numbers of the queries in their image set
    names        (Q,) and ``neighbour_names`` (Q, K): paths or descriptions
    matches      bool (Q, K)
    images       uint8 (Q, S, S, 3) and ``neighbour_images`` (Q, K, S, S, 3): thumbnails
    ranks        per query the ranks of all its positives, ascending
    categories   int64 (Q,), -1 where a dataset has none
    """

    queries: np.ndarray
    names: np.ndarray
    neighbour_names: np.ndarray
    matches: np.ndarray
    images: np.ndarray
    neighbour_images: np.ndarray
    ranks: list[np.ndarray]
    categories: np.ndarray

    def average_precisions(self) -> np.ndarray:
        """Return the AP (Q,) of each query; NaN for one without a positive."""
        return np.array([average_precision(ranks) for ranks in self.ranks])

    def curve(self, row: int) -> tuple[np.ndarray, np.ndarray]:
        """Return (recall, precision) of one query at the rank of each of its positives."""
        ranks = self.ranks[row]
        retrieved = np.arange(1, len(ranks) + 1)
        return retrieved / max(len(ranks), 1), retrieved / ranks


def average_precision(ranks: np.ndarray) -> float:
    """Return the mean of i / r_i over the ascending ranks r_i of the positives; NaN without any."""
    return float(np.mean(np.arange(1, len(ranks) + 1) / ranks)) if len(ranks) else float("nan")


def load_neighbours(path: Path, digest: str) -> Neighbours:
    """Return the content of a ``neighbours.npz`` of a run with this digest of its specification.

    Raise RunError if it is absent, broken or of another specification.
    """
    try:
        arrays = read_arrays(path, _ARRAYS)
        if (own := str(arrays[SPEC_DIGEST])) != digest:
            raise ValueError(f"it is of specification {own:.80}, the run of {digest}")
        _check(arrays)
    except FileNotFoundError as error:
        raise RunError(f"{path} does not exist; train the run again, which writes it") from error
    except (OSError, ValueError) as error:
        cure = "delete the run's result.json and train it again"
        raise RunError(f"{path} cannot be read ({error}); {cure}") from error
    images = arrays["neighbour_images"]
    return Neighbours(
        queries=arrays["queries"],
        names=arrays["query_names"],
        neighbour_names=arrays["neighbour_names"],
        matches=arrays["matches"],
        images=arrays["query_images"],
        neighbour_images=images.reshape(*arrays["matches"].shape, *images.shape[1:]),
        ranks=np.split(arrays["positive_ranks"], np.cumsum(arrays["positives"])[:-1]),
        categories=arrays["query_categories"],
    )


def _check(arrays: dict[str, np.ndarray]) -> None:
    """Raise ValueError when the arrays do not belong together."""
    queries, shown = arrays["matches"].shape
    picture = arrays["query_images"].shape[1:]
    expected = {
        "queries": (queries,),
        "query_names": (queries,),
        "query_categories": (queries,),
        "positives": (queries,),
        "neighbour_names": (queries, shown),
        "query_images": (queries, *picture),
        "neighbour_images": (queries * shown, *picture),
        "positive_ranks": (int(arrays["positives"].sum()),),
    }
    for name, shape in expected.items():
        if arrays[name].shape != shape:
            raise ValueError(f"{name} has the shape {arrays[name].shape}, expected {shape}")
    if picture[2] != 3 or 0 in picture or arrays["query_images"].dtype != np.uint8:
        raise ValueError(f"its pictures have the shape {picture} instead of (side, side, 3)")
    if arrays["neighbour_images"].dtype != np.uint8:
        raise ValueError("its pictures are not of bytes")
    positives, ranks = arrays["positives"].astype(np.int64), arrays["positive_ranks"]
    if (positives < 0).any() or not queries:
        raise ValueError("it has no queries, or a negative number of positives")
    owner = np.repeat(np.arange(queries), positives)
    rising = np.diff(ranks.astype(np.int64)) > 0
    if (ranks < 1).any() or not (rising | (np.diff(owner) > 0)).all():
        raise ValueError("the ranks of a query's positives do not rise from 1 or later")
