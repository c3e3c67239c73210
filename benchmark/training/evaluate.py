"""Embed a dataset's evaluation images, measure retrieval, and find neighbours to show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import torch

from benchmark.core.errors import ConfigError
from benchmark.core.recipe import EvaluationConfig
from benchmark.core.results import QueryScores, Scores, joined
from benchmark.core.seeding import derive
from benchmark.datasets.base import Dataset, ImageSet, Protocol
from benchmark.input.tensors import Input
from benchmark.metrics import (
    evaluate_retrieval,
    expand_queries,
    landmark_scores,
    learn_whitening,
    nearest_neighbours,
)
from benchmark.metrics.ranks import ClassIndex, rank_rows, unit_rows
from benchmark.metrics.retrieval import Retrieval
from benchmark.metrics.search import SPLIT_SUFFIX, nearest_in_blocks, ranks_behind
from benchmark.models import EmbeddingModel

# Training images that whitening is learnt on: some ten per dimension of the widest embeddings.
WHITENING_IMAGES = 20_000


@dataclass(frozen=True)
class Measured:
    """The metrics by split, and the scores of the queries behind them."""

    scores: Scores = field(default_factory=dict)
    queries: dict[str, QueryScores] = field(default_factory=dict)


@dataclass(frozen=True)
class EmbeddedProtocol:
    """Queries (Q, D) and gallery (G, D) of one protocol; None when the set queries itself.

    Distractors (N, D), if any, are searched with the gallery; their indices go on behind its own.
    """

    protocol: Protocol
    query: np.ndarray
    gallery: np.ndarray | None
    distractors: np.ndarray | None = None

    @classmethod
    def of(cls, protocol: Protocol, rows: Mapping[int, np.ndarray]) -> EmbeddedProtocol:
        """Return a protocol with the rows (N, D) of its image sets, which are keyed by ``id``."""
        gallery, distractors = protocol.gallery, protocol.distractors
        query = rows[id(protocol.query)]
        if protocol.instances is not None:
            protocol, query = averaged(protocol, protocol.instances, query)
        return cls(
            protocol,
            query,
            None if gallery is None else rows[id(gallery)],
            None if distractors is None else rows[id(distractors)],
        )

    @property
    def finite(self) -> bool:
        """Whether every embedding is a number."""
        if self.distractors is not None and not np.isfinite(self.distractors.sum(axis=1)).all():
            return False
        return bool(np.isfinite(self.query).all() and np.isfinite(self._items).all())

    def measure(self, name: str, config: EvaluationConfig, device: str | None = None) -> Measured:
        """Return the metrics and the scores of the queries of the split ``name``.

        A second split ``name+aqe`` has expanded queries, where the protocol judges by lists and the
        recipe expands them. ``device``: a torch device ("cuda") that ranks by labels instead of the
        processor; lists are always ranked by the processor.
        """
        judgements, expansion = self.protocol.judgements, config.query_expansion
        if judgements is None:
            recall_at = tuple(config.recall_at)
            rank = partial(evaluate_retrieval, recall_at=recall_at, device=device)
            return self._by_labels(name, rank)
        queries = {name: self.query}
        if expansion is not None:
            alpha, k = expansion.alpha, expansion.k
            expanded = expand_queries(self.query, self._items, alpha, k, self.distractors)
            queries[name + SPLIT_SUFFIX] = expanded
        measured, labels = Measured(), self.protocol.query.labels
        for split, rows in queries.items():
            searched = (self._items, judgements, self.distractors)
            value, measured.queries[split] = landmark_scores(rows, *searched, labels)
            measured.scores[split] = {"map": value}
        return measured

    def _by_labels(self, name: str, rank: Callable[..., Retrieval]) -> Measured:
        rows, labels, gallery = self.query, self.protocol.query.labels, self.protocol.gallery
        if not self.protocol.repeats:
            items = None if gallery is None else gallery.labels
            found = rank(rows, labels, self.gallery, items)
            return Measured({name: found.metrics}, {name: found.scores})
        repeats = [
            rank(rows[ask], labels[ask], rows[answer], labels[answer])
            for ask, answer in self.protocol.repeats
        ]
        means = {
            metric: float(np.mean([one.metrics[metric] for one in repeats]))
            for metric in repeats[0].metrics
        }
        asked = [
            ask[one.scores.query]
            for one, (ask, _) in zip(repeats, self.protocol.repeats, strict=True)
        ]
        return Measured({name: means}, {name: joined([one.scores for one in repeats], asked)})

    def nearest(
        self, queries: np.ndarray, neighbours: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the nearest items to the queries (n,), best first, without those they ignore.

        That is their indices int64, cosine similarities float32 and whether each is a match, all
        (n, K). K is ``neighbours``, or as many as every query has.
        """
        judgements = self.protocol.judgements
        if judgements is None:
            items, scores = nearest_neighbours(self.query, queries, neighbours, self.gallery)
            matches = self._labels[items] == self.protocol.query.labels[queries][:, None]
            return items, scores, matches
        ignored = [judgements.ignored[query] for query in queries]
        reach = neighbours + max(map(len, ignored), default=0)
        if self.distractors is None:
            items, scores = nearest_neighbours(self.query, queries, reach, self.gallery)
        else:
            parts = (self._items, self.distractors)
            items, scores = nearest_in_blocks(self.query, queries, reach, parts)
        # a stable sort puts what a query ignores last
        junk = np.zeros(items.shape, dtype=bool)
        for row, found, some in zip(junk, items, ignored, strict=True):
            row[:] = np.isin(found, some)
        width = min(neighbours, items.shape[1] - junk.sum(1).max(initial=0))
        order = np.argsort(junk, axis=1, kind="stable")[:, :width]
        items, scores = (np.take_along_axis(values, order, axis=1) for values in (items, scores))
        matches = np.zeros(items.shape, dtype=bool)
        for row, found, query in zip(matches, items, queries, strict=True):
            row[:] = np.isin(found, judgements.relevant[query])
        return items, scores, matches

    def positive_ranks(self, queries: np.ndarray) -> list[np.ndarray]:
        """Return the ranks int64 (P,) of all that each of the queries (n,) is to find, 1 = nearest.

        They ascend. The ranking is the whole of that of ``nearest``, so that average precision and
        the precision-recall curve of the query follow exactly.
        """
        if not len(queries):
            return []
        judgements = self.protocol.judgements
        rows = unit_rows(self.query)[queries]
        scores = rows @ unit_rows(self._items).T
        if judgements is None:
            own = queries if self.gallery is None else None
            if own is not None:
                scores[np.arange(len(queries)), own] = -np.inf
            labels = self.protocol.query.labels[queries]
            counts, positives = ClassIndex(self._labels).positives(labels, own)
        else:
            for row, query in zip(scores, queries, strict=True):
                row[judgements.ignored[query]] = -np.inf
            relevant = [judgements.relevant[query] for query in queries]
            counts = np.array([len(some) for some in relevant], dtype=np.int64)
            positives = np.concatenate(relevant).astype(np.int64)
        ranks = np.split(rank_rows(scores, counts, positives), np.cumsum(counts)[:-1])
        if self.distractors is None or judgements is None:
            return ranks
        return ranks_behind(rows, self.distractors, scores, relevant, ranks)

    @property
    def _items(self) -> np.ndarray:
        return self.query if self.gallery is None else self.gallery

    @property
    def _labels(self) -> np.ndarray:
        gallery = self.protocol.gallery
        return self.protocol.query.labels if gallery is None else gallery.labels


def averaged(
    protocol: Protocol, instances: np.ndarray, rows: np.ndarray
) -> tuple[Protocol, np.ndarray]:
    """Return the protocol of the instances (N,) and their mean rows (M, D) at unit length.

    The first image of an instance stands for it.
    """
    order = np.argsort(instances, kind="stable")
    _, starts = np.unique(instances[order], return_index=True)
    means = np.add.reduceat(rows[order], starts, axis=0)  # sums, whose directions are the means'
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    shown = protocol.query.part(order[starts])
    return replace(protocol, query=shown, instances=None), means / np.where(lengths > 0, lengths, 1)


class Evaluator:
    """Evaluation of one dataset, whose image tensors are prepared once."""

    def __init__(
        self,
        dataset: Dataset,
        make_input: Callable[[ImageSet], Input],
        config: EvaluationConfig,
        embedding_dim: int,
    ):
        """Raise ConfigError when whitening is to keep more dimensions than the embeddings have."""
        self.dataset, self.config, self._make_input = dataset, config, make_input
        self._inputs: dict[int, Input] = {}
        self._sample: ImageSet | None = None
        if config.whitening is None:
            return
        if config.whitening > embedding_dim:
            problem = (
                f"whitening  {config.whitening} dimensions are more than the {embedding_dim} of "
                f"the embeddings; give at most {embedding_dim}, or null"
            )
            raise ConfigError("recipe section evaluation", [problem])
        self._sample = sample_of(dataset.train, WHITENING_IMAGES)

    def embed(self, model: EmbeddingModel, device: torch.device) -> dict[str, EmbeddedProtocol]:
        """Return the embeddings of every protocol, whitened if the recipe says so.

        They are float32. The model is left in its mode.
        """
        protocols = self.dataset.protocols
        unique = {id(part): part for item in protocols.values() for part in item.image_sets()}
        training = model.training
        model.eval()
        try:
            rows = {key: self._embed(part, model, device) for key, part in unique.items()}
            sample = None if self._sample is None else self._embed(self._sample, model, device)
        finally:
            model.train(training)
        if sample is not None and self.config.whitening is not None:
            whiten = learn_whitening(sample, self.config.whitening, self.config.whitening_power)
            # one copy at a time
            rows = {key: whiten(rows.pop(key)) for key in list(rows)}
        return {name: EmbeddedProtocol.of(item, rows) for name, item in protocols.items()}

    def measure(self, embedded: dict[str, EmbeddedProtocol], device: torch.device) -> Measured:
        """Return the metrics, in [0, 1], and the queries' scores; a split for each protocol.

        Those that judge by lists have a second one of expanded queries if the recipe expands them.
        """
        # counting ranks in numpy is faster on a CPU than sorting there
        ranker = str(device) if device.type == "cuda" else None
        found = Measured()
        for name, item in embedded.items():
            measured = item.measure(name, self.config, ranker)
            found.scores.update(measured.scores)
            found.queries.update(measured.queries)
        return found

    def _embed(
        self, image_set: ImageSet, model: EmbeddingModel, device: torch.device
    ) -> np.ndarray:
        if id(image_set) not in self._inputs:
            self._inputs[id(image_set)] = self._make_input(image_set)
        images, config = self._inputs[id(image_set)], self.config

        def seen(scale: float = 1.0) -> np.ndarray:
            size, count = config.batch_size, len(image_set)
            return embed_images(model, images, count, size, device, scale)

        return seen() if config.scales is None else pooled(map(seen, config.scales), config)


@torch.inference_mode()
def embed_images(
    model: torch.nn.Module,
    images: Input,
    count: int,
    batch_size: int,
    device: torch.device,
    scale: float = 1.0,
) -> np.ndarray:
    """Return the embeddings (count, D) float32 of all ``images``, seen as test images.

    ``scale``: of their sides.
    """
    rows, start = np.empty((count, 0), np.float32), 0
    # filled in place: a million images fit once
    for batch in images.eval_batches(batch_size, scale):
        part = model(batch.to(device)).float().cpu().numpy()
        if start == 0:
            rows = np.empty((count, part.shape[1]), np.float32)
        rows[start : start + len(part)] = part
        start += len(part)
    return rows


def pooled(scales: Iterable[np.ndarray], config: EvaluationConfig) -> np.ndarray:
    """Return the unit rows (N, D) of the mean over ``scales``, each (N, D), at ``scale_power``.

    The code of SoftBinAP's authors (naver/deep-image-retrieval) pools scales so, at power 3 unless
    told otherwise; power 1 is the plain mean.
    """
    power = config.scale_power
    total: np.ndarray | None = None
    for rows in scales:
        powered = rows if power == 1 else np.copysign(np.abs(rows) ** power, rows)
        total = powered if total is None else total + powered
    assert total is not None
    mean = total / np.float32(len(config.scales or ()))
    if power != 1:
        mean = np.copysign(np.abs(mean) ** (1 / power), mean)
    return mean / np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), np.float32(1e-12))


def sample_of(image_set: ImageSet, count: int) -> ImageSet:
    """Return ``count`` images of the set in their order, always the same ones; all if fewer."""
    total = len(image_set)
    if total <= count:
        return image_set
    order = np.random.default_rng(derive(0, "whitening sample", total)).permutation(total)
    chosen = np.sort(order[:count])
    return image_set.part(chosen)
