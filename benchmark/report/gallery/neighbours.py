"""What a run kept of some of its queries: the nearest items, and the ranks of everything that was to be found."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmark.core.errors import RunError

_NEEDED = (
    "queries",
    "scores",
    "matches",
    "query_names",
    "neighbour_names",
    "query_images",
    "neighbour_images",
)


@dataclass(frozen=True)
class Neighbours:
    """Of Q queries, the K nearest items each, best first.

    queries      int64 (Q,): numbers of the queries in their image set
    names        (Q,) and ``found_names`` (Q, K): paths or descriptions
    scores       float32 (Q, K), ``matches`` bool (Q, K)
    images       uint8 (Q, S, S, 3) and ``found_images`` (Q, K, S, S, 3): thumbnails
    ranks        per query the ranks of all its positives, ascending; None in files that do not have them
    categories   int64 (Q,), -1 where none is known
    """

    queries: np.ndarray
    names: np.ndarray
    found_names: np.ndarray
    scores: np.ndarray
    matches: np.ndarray
    images: np.ndarray
    found_images: np.ndarray
    ranks: list[np.ndarray] | None
    categories: np.ndarray

    def quality(self) -> np.ndarray:
        """Returns (Q,): average precision where the ranks are known, else the share of matches among the K nearest.

        A query without anything to find has no average precision: NaN.
        """
        if self.ranks is None:
            return (
                self.matches.mean(axis=1)
                if self.matches.shape[1]
                else np.full(len(self.queries), np.nan)
            )
        return np.array([average_precision(ranks) for ranks in self.ranks])

    def curve(self, row: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns (x, precision) of one query: over recall where the ranks are known, else over the first k."""
        if self.ranks is None:
            k = np.arange(1, self.matches.shape[1] + 1)
            return k.astype(float), np.cumsum(self.matches[row]) / k
        ranks = self.ranks[row]
        found = np.arange(1, len(ranks) + 1)
        return found / max(len(ranks), 1), found / ranks


def average_precision(ranks: np.ndarray) -> float:
    """Returns the mean over the positives of i / r_i, r_1 < r_2 < ... their ranks; NaN without any."""
    return float(np.mean(np.arange(1, len(ranks) + 1) / ranks)) if len(ranks) else float("nan")


def load_neighbours(path: Path) -> Neighbours:
    """Returns the content of a run's ``neighbours.npz``; raises RunError when it is absent or broken."""
    try:
        with np.load(path, allow_pickle=False) as content:
            arrays = {name: content[name] for name in content.files}
    except FileNotFoundError as error:
        raise RunError(f"{path} does not exist; train the run again, which writes it") from error
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise RunError(
            f"{path} cannot be read ({error}); delete the run's result.json and train it again"
        ) from error
    absent = [name for name in _NEEDED if name not in arrays]
    if absent:
        raise RunError(
            f"{path} lacks {', '.join(absent)}; delete the run's result.json and train it again"
        )
    count, width = arrays["matches"].shape
    found = arrays["neighbour_images"]
    ranks = None
    if "positive_ranks" in arrays:
        ranks = (
            np.split(arrays["positive_ranks"], np.cumsum(arrays["positives"])[:-1]) if count else []
        )
    return Neighbours(
        queries=arrays["queries"],
        names=arrays["query_names"],
        found_names=arrays["neighbour_names"],
        scores=arrays["scores"],
        matches=arrays["matches"],
        images=arrays["query_images"],
        found_images=found.reshape(count, width, *found.shape[1:]),
        ranks=ranks,
        categories=arrays.get("query_categories", np.full(count, -1)),
    )
