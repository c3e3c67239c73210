"""What a run recorded of some of its queries: the nearest items, and the ranks of all positives."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmark.core.errors import RunError
from benchmark.core.records import SPEC_DIGEST


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

    Raise RunError if it is absent or of another specification.
    """
    if not path.is_file():
        raise RunError(f"{path} does not exist; train the run again, which writes it")
    with np.load(path) as stored:
        arrays = dict(stored)
    if (own := str(arrays[SPEC_DIGEST])) != digest:
        cure = "delete the run's result.json and train it again"
        raise RunError(f"{path} is of specification {own}, the run of {digest}; {cure}")
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
