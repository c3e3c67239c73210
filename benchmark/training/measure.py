"""What the embeddings of one protocol are worth: its metrics, and the neighbours that a gallery shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmark.core.recipe import EvaluationConfig
from benchmark.datasets.base import Protocol
from benchmark.metrics import expand_queries, landmark_map, nearest_neighbours, retrieval_metrics
from benchmark.metrics.checks import unit_rows
from benchmark.metrics.expansion import SPLIT_SUFFIX
from benchmark.metrics.ranks import ClassIndex
from benchmark.metrics.rows import rank_rows


@dataclass(frozen=True)
class EmbeddedProtocol:
    """Embeddings of one protocol: (Q, D) queries and (G, D) gallery, or None when the set queries itself."""

    protocol: Protocol
    query: np.ndarray
    gallery: np.ndarray | None

    @property
    def finite(self) -> bool:
        """Whether every embedding is a number."""
        parts = [self.query] if self.gallery is None else [self.query, self.gallery]
        return all(np.isfinite(part).all() for part in parts)

    def measure(
        self, name: str, config: EvaluationConfig, device: str | None = None
    ) -> dict[str, dict[str, float]]:
        """Returns {split: {metric: value in [0, 1]}}: the split ``name``, and ``name+aqe`` where the protocol
        judges by lists and the recipe expands queries.

        ``device``: a torch device ("cuda") that ranks by labels instead of the processor; lists are ranked by
        the processor always.
        """
        judgements, expansion = self.protocol.judgements, config.query_expansion
        if judgements is None:
            return {name: self._by_labels(tuple(config.recall_at), device)}
        found = {name: {"map": landmark_map(self.query, self.gallery, judgements)}}
        if expansion is not None:
            expanded = expand_queries(self.query, self.gallery, expansion.alpha, expansion.k)
            found[name + SPLIT_SUFFIX] = {"map": landmark_map(expanded, self.gallery, judgements)}
        return found

    def _by_labels(self, recall_at: tuple[int, ...], device: str | None) -> dict[str, float]:
        labels, gallery = self.protocol.query.labels, self.protocol.gallery
        if not self.protocol.repeats:
            items = None if gallery is None else gallery.labels
            return retrieval_metrics(
                self.query, labels, self.gallery, items, recall_at, device=device
            )
        rows = self.query
        repeats = [
            retrieval_metrics(
                rows[ask], labels[ask], rows[answer], labels[answer], recall_at, device=device
            )
            for ask, answer in self.protocol.repeats
        ]
        return {
            metric: float(np.mean([found[metric] for found in repeats])) for metric in repeats[0]
        }

    def nearest(
        self, queries: np.ndarray, neighbours: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns indices int64, cosine similarities float32 and whether it is a match, each (n, K), of the
        nearest items to the queries (n,), best first, without those that a query's judgements ignore.

        K is ``neighbours``, or as many as every query has.
        """
        judgements = self.protocol.judgements
        if judgements is None:
            items, scores = nearest_neighbours(self.query, queries, neighbours, self.gallery)
            labels = self.protocol.query.labels
            of_items = labels if self.protocol.gallery is None else self.protocol.gallery.labels
            return items, scores, of_items[items] == labels[queries][:, None]
        ignored = [judgements.ignored[query] for query in queries]
        reach = neighbours + max(map(len, ignored), default=0)
        items, scores = nearest_neighbours(self.query, queries, reach, self.gallery)
        kept = [
            np.flatnonzero(~np.isin(row, junk))[:neighbours]
            for row, junk in zip(items, ignored, strict=True)
        ]
        width = min(map(len, kept), default=0)
        places = np.array([row[:width] for row in kept], dtype=np.int64).reshape(
            len(queries), width
        )
        items, scores = (np.take_along_axis(values, places, axis=1) for values in (items, scores))
        matches = [
            np.isin(row, judgements.relevant[query])
            for row, query in zip(items, queries, strict=True)
        ]
        return items, scores, np.array(matches, dtype=bool).reshape(items.shape)

    def positive_ranks(self, queries: np.ndarray) -> list[np.ndarray]:
        """Returns for each of the queries (n,) the ranks int64 (P,) of all that it is to find, ascending, 1 = nearest.

        The ranking is that of ``nearest``: the whole of it, so that average precision and the precision-recall
        curve of the query follow exactly.
        """
        scores = unit_rows(self.query, "query")[queries] @ unit_rows(self._items, "gallery").T
        if self.protocol.judgements is None:
            gallery = self.protocol.gallery
            labels = self.protocol.query.labels
            own = queries if gallery is None else None
            if own is not None:
                scores[np.arange(len(queries)), own] = -np.inf
            index = ClassIndex(labels if gallery is None else gallery.labels)
            counts, positives = index.positives(labels[queries], own)
        else:
            for row, query in zip(scores, queries, strict=True):
                row[self.protocol.judgements.ignored[query]] = -np.inf
            relevant = [
                np.asarray(self.protocol.judgements.relevant[query], dtype=np.int64)
                for query in queries
            ]
            counts = np.array([len(found) for found in relevant], dtype=np.int64)
            positives = np.concatenate([*relevant, np.empty(0, np.int64)])
        return (
            np.split(rank_rows(scores, counts, positives), np.cumsum(counts)[:-1])
            if len(queries)
            else []
        )

    @property
    def _items(self) -> np.ndarray:
        return self.query if self.gallery is None else self.gallery
