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
    (name, {"include_query": False})
    for name in ("smooth_ap", "sup_ap", "softbin_ap", "blackbox_ap", "recall_at_k", "sup_recall")
]
CASES += [
    ("softbin_ap", {"query_weights": "class"}),
    ("calibration", {"reduction": "nonzero"}),
    ("roadmap", {"reduction": "nonzero"}),
    ("blackbox_ap", {"margin": 0.0}),
]
BALANCED = [5] * 20
SKEWED = [110, 40, 9, 3, 2, 1, 1, 1]  # one class is counted by expansions, three have one image


def batch(classes, seed, dim=8):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.repeat_interleave(torch.arange(len(classes)), torch.tensor(classes))
    centers = torch.randn(len(classes), dim, generator=generator, dtype=torch.float64)
    noise = torch.randn(len(labels), dim, generator=generator, dtype=torch.float64)
    order = torch.randperm(len(labels), generator=generator)
    return normalize(centers[labels] + noise, dim=1)[order], labels[order]


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
        return value.detach(), free.grad, *([] if frozen else [others.grad])

    return call


def assert_equal(first, second):
    for one, other in zip(first, second, strict=True):
        # sums over tiles in another order
        assert torch.allclose(one, other, rtol=0, atol=1e-12)


@pytest.mark.parametrize("classes", [BALANCED, SKEWED], ids=["balanced", "skewed"])
@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_tiles_give_the_loss_and_gradient_of_the_whole_batch(name, options, classes):
    call = plain(*batch(classes, 1))
    whole = answers(name, options, None, call)
    assert whole[1].abs().max() > 0
    assert_equal(answers(name, options, 48, call), whole)  # the last tile has fewer rows


@pytest.mark.parametrize("classes", [BALANCED, SKEWED], ids=["balanced", "skewed"])
@pytest.mark.parametrize("method", ["memory", "references"])
@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_tiles_give_the_same_with_a_memory_and_with_references(name, options, method, classes):
    embeddings, labels = batch(classes, 2)
    for frozen in (False, True):
        call = with_others(embeddings, labels, 40, method, frozen)
        whole = answers(name, options, None, call)
        assert_equal(answers(name, options, 16, call), whole)


@pytest.mark.parametrize("name", ["smooth_ndcg", "sup_ndcg"])
def test_tiles_give_the_same_with_levels_of_relevance(name):
    embeddings, labels = batch(BALANCED, 3)
    call = plain(embeddings, torch.stack([labels, labels // 4], dim=1))
    assert_equal(answers(name, {}, 16, call), answers(name, {}, None, call))


@pytest.mark.parametrize("name", ["smooth_ap", "calibration"])
def test_a_number_that_is_not_finite_shows_in_the_value(name):
    embeddings, labels = batch(BALANCED, 4)
    embeddings[70, 1] = torch.nan
    value, _ = answers(name, {}, 16, plain(embeddings, labels))
    assert not value.isfinite()


def test_large_batches_are_tiled_by_themselves():
    assert row_tiles(4096, 4096, None) == [(0, 4096)]
    tiles = row_tiles(59551, 59551, None)
    assert tiles[0] == (0, 272)
    assert tiles[-1][1] == 59551
    assert all(stop - start <= 272 for start, stop in tiles)
    assert row_tiles(5, 7, 2) == [(0, 2), (2, 4), (4, 5)]


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_small_blocks_of_queries_do_not_change_the_result(name, options, monkeypatch):
    call = plain(*batch([20, 10, 6, 4], 1, 6))
    whole = answers(name, options, None, call)
    # small blocks, and negatives left out instead of overwritten
    for elements, many in ((100, 64), (2**19, 1), (100, 5)):
        monkeypatch.setattr("benchmark.losses.kernels.relation.CPU_ELEMENTS", elements)
        monkeypatch.setattr("benchmark.losses.kernels.relation.LEFT_OUT_FROM", many)
        assert_equal(answers(name, options, None, call), whole)
