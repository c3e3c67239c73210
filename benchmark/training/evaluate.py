"""Embed a dataset's evaluation images, measure retrieval, and find neighbours to show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

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
from benchmark.metrics.ranks import ClassIndex, rank_rows
from benchmark.metrics.retrieval import judged_ranks
from benchmark.metrics.search import SPLIT_SUFFIX, nearest_in_blocks
from benchmark.metrics.sets import similarities, unit_sets
from benchmark.models import EmbeddingModel

# Training images that whitening is learnt on: about ten for each dimension of wide embeddings.
WHITENING_IMAGES = 20_000


@dataclass(frozen=True)
class EmbeddedProtocol:
    """Queries (Q, D) and gallery (G, D) of one protocol; None if the set queries itself.

    Distractors (N, D), if any, are searched after the gallery; their indices follow those of the
    gallery.
    """

    protocol: Protocol
    query: np.ndarray
    gallery: np.ndarray | None = None
    distractors: np.ndarray | None = None

    @classmethod
    def of(cls, protocol: Protocol, rows: Mapping[int, np.ndarray]) -> EmbeddedProtocol:
        """Return a protocol with the rows (N, D) of its image sets, which are keyed by ``id``.

        The query of an instance is the mean of its images at unit length, with the label and the
        picture of the first image.
        """
        query = rows[id(protocol.query)]
        if protocol.instances is not None:
            order = np.argsort(protocol.instances, kind="stable")
            starts = np.unique(protocol.instances[order], return_index=True)[1]
            sums = np.add.reduceat(query[order], starts, axis=0)  # with the direction of the mean
            lengths = np.linalg.norm(sums, axis=1, keepdims=True)
            query = sums / np.where(lengths > 0, lengths, 1)
            protocol = replace(protocol, query=protocol.query.part(order[starts]), instances=None)
        gallery = rows.get(id(protocol.gallery))  # None has no rows
        distractors = rows.get(id(protocol.distractors))
        return cls(protocol, query, gallery, distractors)

    @property
    def items(self) -> np.ndarray:
        """The rows that are searched, without distractors."""
        return self.query if self.gallery is None else self.gallery

    @property
    def images(self) -> ImageSet:
        """The images of ``items``."""
        return self.protocol.query if self.protocol.gallery is None else self.protocol.gallery

    @property
    def finite(self) -> bool:
        """Whether every embedding is a number."""
        if self.distractors is not None and not np.isfinite(self.distractors.sum(axis=1)).all():
            return False
        return bool(np.isfinite(self.query).all() and np.isfinite(self.items).all())

    def nearest(
        self, queries: np.ndarray, neighbours: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the nearest items to the queries (n,), best first, without ignored items.

        Return indices int64, cosine similarities float32 and whether each item is a match, all
        (n, K). K is ``neighbours``, or less if a query has fewer items.
        """
        judgements = self.protocol.judgements
        ignored: list[Any] = [()] * len(queries)
        if judgements is not None:
            ignored = [judgements.ignored[query] for query in queries]
        reach = neighbours + max(map(len, ignored), default=0)
        if self.distractors is None:
            items, scores = nearest_neighbours(self.query, queries, reach, self.gallery)
        else:
            sets = (self.items, self.distractors)
            items, scores = nearest_in_blocks(self.query, queries, reach, sets)
        # a stable sort puts ignored items last
        junk = among(items, ignored)
        width = min(neighbours, items.shape[1] - junk.sum(1).max(initial=0))
        order = np.argsort(junk, axis=1, kind="stable")[:, :width]
        items = np.take_along_axis(items, order, axis=1)
        scores = np.take_along_axis(scores, order, axis=1)
        if judgements is not None:
            return items, scores, among(items, [judgements.relevant[query] for query in queries])
        labels = self.protocol.query.labels[queries]
        return items, scores, self.images.labels[items] == labels[:, None]

    def positive_ranks(self, queries: np.ndarray) -> list[np.ndarray]:
        """Return the ranks int64 (P,) of all matches of each of the queries (n,), 1 = nearest.

        The ranks ascend. They belong to the whole ranking of which ``nearest`` returns the
        beginning, so average precision and the precision-recall curve follow exactly.
        """
        if not len(queries):
            return []
        judgements = self.protocol.judgements
        every, items = unit_sets(self.query, self.items)
        rows = every[queries]
        scores = similarities(rows, items)
        if judgements is not None:
            return judged_ranks(rows, items, scores, judgements, queries, self.distractors)
        itself = queries if self.gallery is None else None
        if itself is not None:
            scores[np.arange(len(queries)), itself] = -np.inf
        labels = self.protocol.query.labels[queries]
        counts, positives = ClassIndex(self.images.labels).positives(labels, itself)
        return np.split(rank_rows(scores, counts, positives), np.cumsum(counts)[:-1])


def among(items: np.ndarray, lists: Sequence[np.ndarray]) -> np.ndarray:
    """Return whether each item (n, K) is in the list of its row, boolean (n, K)."""
    is_listed = [np.isin(row, listed) for row, listed in zip(items, lists, strict=True)]
    return np.array(is_listed, dtype=bool).reshape(items.shape)


@dataclass(frozen=True)
class Evaluation:
    """Scores of embeddings: metrics by split, and the scores of the queries."""

    embedded: Mapping[str, EmbeddedProtocol]
    scores: Scores = field(default_factory=dict)
    queries: dict[str, QueryScores] = field(default_factory=dict)


def measure(
    embedded: Mapping[str, EmbeddedProtocol], config: EvaluationConfig, device: torch.device
) -> Evaluation:
    """Return the metrics, in [0, 1], and the queries' scores; one split for each protocol.

    If the recipe expands queries, a protocol with lists has a second split ``name+aqe`` of expanded
    queries. A GPU ranks protocols with labels. The processor ranks protocols with lists.
    """
    result = Evaluation(embedded)
    expansion = config.query_expansion
    # counting ranks in numpy is faster on a CPU than sorting there
    ranker = str(device) if device.type == "cuda" else None
    rank = partial(evaluate_retrieval, recall_at=tuple(config.recall_at), device=ranker)
    for name, item in embedded.items():
        protocol = item.protocol
        rows = item.query
        labels = item.protocol.query.labels
        if protocol.judgements is not None:
            splits = {name: rows}
            if expansion is not None:
                settings = expansion.alpha, expansion.k, item.distractors
                splits[name + SPLIT_SUFFIX] = expand_queries(rows, item.items, *settings)
            searched = item.items, protocol.judgements, item.distractors
            for split, queries in splits.items():
                value, result.queries[split] = landmark_scores(queries, *searched, labels)
                result.scores[split] = {"map": value}
            continue
        if protocol.repeats:
            asked = [queries for queries, _ in protocol.repeats]
            repeats = [
                rank(rows[queries], labels[queries], rows[gallery], labels[gallery])
                for queries, gallery in protocol.repeats
            ]
        else:
            asked = [np.arange(len(rows))]
            items = None if item.gallery is None else item.images.labels
            repeats = [rank(rows, labels, item.gallery, items)]
        means = {}
        for metric in repeats[0].metrics:
            means[metric] = float(np.mean([repeat.metrics[metric] for repeat in repeats]))
        result.scores[name] = means
        numbers = [
            queries[repeat.scores.query] for queries, repeat in zip(asked, repeats, strict=True)
        ]
        result.queries[name] = joined([repeat.scores for repeat in repeats], numbers)
    return result


class Evaluator:
    """Embeds the evaluation images of one dataset; their tensors are prepared once."""

    def __init__(
        self,
        dataset: Dataset,
        make_input: Callable[[ImageSet], Input],
        config: EvaluationConfig,
        embedding_dim: int,
    ):
        """Raise ConfigError if whitening keeps more dimensions than the embeddings have."""
        self.protocols = dataset.protocols
        self.config = config
        self._make_input = make_input
        self._inputs: dict[int, Input] = {}
        self._sample: ImageSet | None = None
        if config.whitening is not None:
            if config.whitening > embedding_dim:
                problem = (
                    f"whitening  {config.whitening} dimensions are more than the {embedding_dim} "
                    f"of the embeddings; give at most {embedding_dim}, or null"
                )
                raise ConfigError("recipe section evaluation", [problem])
            self._sample = sample_of(dataset.train, WHITENING_IMAGES)

    def embed(self, model: EmbeddingModel, device: torch.device) -> dict[str, EmbeddedProtocol]:
        """Return the embeddings of every protocol in float32, whitened if the recipe says so."""
        sets = [images for item in self.protocols.values() for images in item.image_sets()]
        unique = {id(images): images for images in sets}
        rows = {key: self._embed(images, model, device) for key, images in unique.items()}
        sample = None if self._sample is None else self._embed(self._sample, model, device)
        if sample is not None and self.config.whitening is not None:
            whiten = learn_whitening(sample, self.config.whitening, self.config.whitening_power)
            # ``pop``: the memory holds one more copy of one set at a time
            rows = {key: whiten(rows.pop(key)) for key in list(rows)}
        return {name: EmbeddedProtocol.of(item, rows) for name, item in self.protocols.items()}

    def _embed(
        self, image_set: ImageSet, model: EmbeddingModel, device: torch.device
    ) -> np.ndarray:
        key = id(image_set)
        config = self.config
        if key not in self._inputs:
            self._inputs[key] = self._make_input(image_set)
        images = self._inputs[key]
        at_scale = partial(embed_images, model, images, len(image_set), config.batch_size, device)
        if config.scales is None:
            return at_scale()
        return pooled(map(at_scale, config.scales), config)


@torch.inference_mode()
def embed_images(
    model: torch.nn.Module,
    images: Input,
    count: int,
    batch_size: int,
    device: torch.device,
    scale: float = 1.0,
) -> np.ndarray:
    """Return the embeddings (count, D) float32 of all ``images`` as test images.

    The sides of the images are multiplied by ``scale``. The model keeps its mode (training or
    evaluation).
    """
    training = model.training
    model.eval()
    rows = np.empty((count, 0), np.float32)
    start = 0
    # filled in place, because the embeddings of a million images fit into memory only once
    for batch in images.eval_batches(batch_size, scale):
        shown = images.normalised(batch.to(device, non_blocking=True))
        embeddings = model(shown).float().cpu().numpy()
        if start == 0:
            rows = np.empty((count, embeddings.shape[1]), np.float32)
        rows[start : start + len(embeddings)] = embeddings
        start += len(embeddings)
    model.train(training)
    return rows


def pooled(scales: Iterable[np.ndarray], config: EvaluationConfig) -> np.ndarray:
    """Return the unit rows (N, D) of the mean over ``scales``, each (N, D), at ``scale_power``.

    The code of SoftBinAP's authors (naver/deep-image-retrieval) pools scales in this way, with
    power 3 by default. Power 1 is the plain mean.
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
    """Return ``count`` images of the set, always the same images; all images if fewer."""
    total = len(image_set)
    if total <= count:
        return image_set
    order = np.random.default_rng(derive(0, "whitening sample", total)).permutation(total)
    chosen = np.sort(order[:count])
    return image_set.part(chosen)
