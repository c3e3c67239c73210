"""The ranks that a run keeps of its shown queries are those that its metrics rest on."""

from __future__ import annotations

import numpy as np
import pytest

from benchmark.datasets.base import ImageSet, Judgements, Protocol
from benchmark.metrics import retrieval_metrics
from benchmark.training.evaluate import EmbeddedProtocol

RNG = np.random.default_rng(0)


def image_set(labels: np.ndarray):
    count = len(labels)
    pixels = np.zeros((count, 2, 2, 1), np.uint8)
    return ImageSet(labels, list(map(str, range(count))), pixels=pixels)


def labelled(count: int):
    return image_set(np.arange(count) % 4)


def unit(count: int) -> np.ndarray:
    rows = RNG.normal(size=(count, 6)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def mean_ap(ranks: list[np.ndarray]) -> float:
    averages = [np.mean(np.arange(1, len(row) + 1) / row) for row in ranks]
    return np.mean(averages)


@pytest.mark.parametrize("with_gallery", [False, True])
def test_average_precision_of_the_kept_ranks_is_the_metric(with_gallery):
    query = labelled(21)
    rows = unit(21)
    gallery = None
    items = None
    labels = None
    if with_gallery:
        gallery = labelled(30)
        items = unit(30)
        labels = gallery.labels
    item = EmbeddedProtocol(Protocol(query, gallery), rows, items)
    found = item.positive_ranks(np.arange(21))
    expected = retrieval_metrics(rows, query.labels, items, labels)
    assert mean_ap(found) == pytest.approx(expected["map"], abs=1e-9)


def test_ranks_of_judged_queries_leave_out_what_is_ignored_and_agree_with_the_neighbours():
    query = labelled(3)
    gallery = labelled(20)
    orders = [RNG.permutation(20) for _ in range(3)]
    relevant = tuple(order[:4] for order in orders)
    ignored = tuple(order[4:9] for order in orders)
    item = EmbeddedProtocol(
        Protocol(query, gallery, Judgements(relevant, ignored)), unit(3), unit(20)
    )
    queries = np.array([2, 0])
    _, _, matches = item.nearest(queries, 15)
    for ranks, hits in zip(item.positive_ranks(queries), matches, strict=True):
        assert ranks.tolist() == (np.flatnonzero(hits) + 1).tolist()
    assert item.positive_ranks(np.array([], dtype=int)) == []


def test_a_query_that_has_nothing_to_find_has_no_ranks():
    query = image_set(np.array([0, 0, 1]))
    item = EmbeddedProtocol(Protocol(query), unit(3), None)
    ranks = item.positive_ranks(np.arange(3))
    assert [len(row) for row in ranks] == [1, 1, 0]
