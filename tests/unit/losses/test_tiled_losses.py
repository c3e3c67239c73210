"""Losses of some rows of scores at a time equal those of all rows at once."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import normalize

from benchmark.losses import LOSSES, create_loss
from benchmark.losses.base import ScoreLoss
from benchmark.losses.kernels.fused import row_tiles

torch.set_num_threads(1)
CASES = [
    (entry.name, {})
    for entry in LOSSES
    if issubclass(entry.target, ScoreLoss) and entry.target.__module__.startswith("benchmark.")
]
CASES += [
    ("smooth_ap", {"include_query": False}),
    ("sup_ap", {"include_query": False}),
    ("softbin_ap", {"include_query": False}),
    ("blackbox_ap", {"include_query": False}),
    ("recall_at_k", {"include_query": False}),
    ("sup_recall", {"include_query": False}),
    ("softbin_ap", {"query_weights": "class"}),
    ("calibration", {"reduction": "nonzero"}),
    ("roadmap", {"reduction": "nonzero"}),
    ("blackbox_ap", {"margin": 0.0}),
]
BALANCED = [5] * 20
SKEWED = [100, 9, 3, 2, 1, 1, 1]  # one class is counted by expansions, three have one image
SIZES = [
    pytest.param(BALANCED, id="balanced"),
    pytest.param(SKEWED, id="skewed"),
]


def batch(classes, seed, dim=8):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.repeat_interleave(torch.arange(len(classes)), torch.tensor(classes))
    centers = torch.randn(len(classes), dim, generator=generator, dtype=torch.float64)
    noise = torch.randn(len(labels), dim, generator=generator, dtype=torch.float64)
    rows = normalize(centers[labels] + noise, dim=1)
    order = torch.randperm(len(labels), generator=generator)
    return rows[order], labels[order]


def answers(name, options, rows, call):
    """Return the value and every gradient of ``call`` with a loss of so many rows a tile."""
    loss = create_loss(name, **options)
    loss.rows_per_tile = rows
    return call(loss)


def plain(embeddings, labels):
    def call(loss):
        free = embeddings.clone().requires_grad_()
        value = loss(free, labels, generator=torch.Generator().manual_seed(0))
        value.backward()
        return value.detach(), free.grad

    return call


def with_others(embeddings, labels, queries, method, frozen=False):
    def call(loss):
        free = embeddings[:queries].clone().requires_grad_()
        others = embeddings[queries:].clone().requires_grad_(not frozen)
        function = loss.with_memory if method == "memory" else loss
        generator = torch.Generator().manual_seed(0)
        value = function(free, labels[:queries], others, labels[queries:], generator=generator)
        value.backward()
        if frozen:
            return value.detach(), free.grad
        return value.detach(), free.grad, others.grad

    return call


def assert_equal(first, second):
    for one, other in zip(first, second, strict=True):
        # sums over tiles in another order
        assert torch.allclose(one, other, rtol=0, atol=1e-12)


@pytest.mark.parametrize("classes", SIZES)
@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_tiles_give_the_loss_and_gradient_of_the_whole_batch(name, options, classes):
    call = plain(*batch(classes, 1))
    whole = answers(name, options, None, call)
    _, gradient = whole
    assert gradient.abs().max() > 0
    tiled = answers(name, options, 48, call)  # the last tile has fewer rows
    assert_equal(tiled, whole)


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize(
    ("method", "classes"),
    [
        ("memory", BALANCED),
        ("references", BALANCED),
        ("references", SKEWED),
        pytest.param("memory", SKEWED, marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_tiles_give_the_same_with_a_memory_and_with_references(
    name, options, method, frozen, classes
):
    embeddings, labels = batch(classes, 2)
    call = with_others(embeddings, labels, 40, method, frozen)
    whole = answers(name, options, None, call)
    tiled = answers(name, options, 16, call)
    assert_equal(tiled, whole)


@pytest.mark.parametrize("name", ["smooth_ndcg", "sup_ndcg"])
def test_tiles_give_the_same_with_levels_of_relevance(name):
    embeddings, labels = batch(BALANCED, 3)
    call = plain(embeddings, torch.stack([labels, labels // 4], dim=1))
    whole = answers(name, {}, None, call)
    tiled = answers(name, {}, 16, call)
    assert_equal(tiled, whole)


@pytest.mark.parametrize("name", ["smooth_ap", "calibration"])
def test_a_number_that_is_not_finite_shows_in_the_value(name):
    embeddings, labels = batch(BALANCED, 4)
    embeddings[70, 1] = torch.nan
    value, _ = answers(name, {}, 16, plain(embeddings, labels))
    assert not value.isfinite()


def test_large_batches_are_tiled_by_themselves():
    assert row_tiles(4096, 4096, None) == [slice(0, 4096)]
    assert row_tiles(5, 7, 2) == [slice(0, 2), slice(2, 4), slice(4, 5)]
    tiles = row_tiles(59551, 59551, None)
    assert tiles[0] == slice(0, 272)
    assert tiles[-1].stop == 59551
    assert max(tile.stop - tile.start for tile in tiles) == 272


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_small_blocks_of_queries_do_not_change_the_result(name, options, monkeypatch):
    call = plain(*batch([20, 10, 6, 4], 1, 6))
    whole = answers(name, options, None, call)
    # small blocks, and negatives left out instead of overwritten
    for elements, many in (
        (100, 64),
        (2**19, 1),
        (100, 5),
    ):
        monkeypatch.setattr("benchmark.losses.kernels.relation.CPU_ELEMENTS", elements)
        monkeypatch.setattr("benchmark.losses.kernels.relation.LEFT_OUT_FROM", many)
        in_blocks = answers(name, options, None, call)
        assert_equal(in_blocks, whole)
