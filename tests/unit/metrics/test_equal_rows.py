"""Equal embeddings have equal scores, whatever their place in a product, and rank by position.

Widths of 64 and 257 columns are those at which products of equal rows differ in their last bits.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmark.datasets.base import Judgements
from benchmark.metrics import (
    evaluate_retrieval,
    landmark_scores,
    nearest_neighbours,
    ranks,
    retrieval_metrics,
    score,
)
from benchmark.metrics.sets import DistinctRows, unit_rows

DEVICES = [
    None,
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")),
]
WIDTHS = [64, 257]


def drawn(count: int, distinct: int, width: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows (count, width) that repeat ``distinct`` ones, and which of them each repeats."""
    rng = np.random.default_rng(seed)
    rows = unit_rows(rng.standard_normal((distinct, width)))
    chosen = rng.permutation(np.arange(count) % distinct)
    return rows[chosen], chosen


def ranking(scores: np.ndarray, query: int | None) -> list[int]:
    """Return the items of a row of scores, best first, equal ones by position, without a query."""
    order = np.argsort(-scores, kind="stable").tolist()
    return [item for item in order if item != query]


def exact(rows: np.ndarray, chosen: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Return scores (Q, N) in float64 of each pair of distinct rows, copied to their repeats."""
    _, first = np.unique(chosen, return_index=True)
    wide = rows[first].astype(np.float64)
    products = wide @ wide.T
    return products[chosen[queries]][:, chosen]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("width", WIDTHS)
def test_a_collapsed_network_scores_what_the_order_of_the_items_gives(width, device):
    rows, _ = drawn(100, 1, width, seed=width)
    labels = np.arange(100) // 5
    got = retrieval_metrics(rows, labels, recall_at=(1,), device=device)
    # item 0 comes first for all others, so that four of the hundred begin with a match; item 0
    # itself begins with item 1, which makes five
    assert got["recall_at_1"] == 0.05
    axes = np.zeros((100, width), np.float32)
    axes[:, 0] = 1
    assert got == retrieval_metrics(axes, labels, recall_at=(1,), device=device)


@pytest.mark.parametrize("device", DEVICES)
@settings(max_examples=25, deadline=None)
@given(
    width=st.sampled_from(WIDTHS),
    distinct=st.integers(1, 70),
    rows_in_block=st.sampled_from([1, 7, 1000]),
    seed=st.integers(0, 2**32 - 1),
)
def test_sets_with_repeated_rows_rank_by_score_and_then_by_position(
    device, width, distinct, rows_in_block, seed
):
    count = 3 * distinct + 1
    rows, chosen = drawn(count, distinct, width, seed)
    labels = np.random.default_rng(seed).integers(0, 3, count)
    scores = exact(rows, chosen, np.arange(count))
    nearest = {}
    for query in range(count):
        order = ranking(scores[query], query)
        places = np.flatnonzero(labels[order] == labels[query])
        if len(places):
            nearest[query] = places[0] + 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranks, "BLOCK_BYTES", rows_in_block * 4 * count)
        found = evaluate_retrieval(rows, labels, device=device).scores
    assert found.query.tolist() == list(nearest)
    assert found.nearest.tolist() == list(nearest.values())


@settings(max_examples=25, deadline=None)
@given(
    width=st.sampled_from(WIDTHS),
    distinct=st.integers(1, 40),
    wanted=st.integers(1, 12),
    own=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_neighbours_among_repeated_rows_come_by_score_and_then_by_position(
    width, distinct, wanted, own, seed
):
    count = 3 * distinct + 1
    rows, chosen = drawn(count, distinct, width, seed)
    queries = np.random.default_rng(seed).permutation(count)[: 1 + count // 2]
    scores = exact(rows, chosen, queries)
    gallery = None if own else rows
    items, values = nearest_neighbours(rows, queries, wanted, gallery)
    for place, query in enumerate(queries.tolist()):
        order = ranking(scores[place], query if own else None)
        assert items[place].tolist() == order[:wanted]
        of_item = dict(zip(chosen[items[place]], values[place], strict=True))
        for other in np.flatnonzero(chosen[queries] == chosen[query]):
            for item, value in zip(chosen[items[other]], values[other], strict=True):
                assert of_item.get(item, value) == value


@pytest.mark.parametrize("width", WIDTHS)
def test_a_distractor_that_equals_a_relevant_item_comes_after_it(width):
    rows, _ = drawn(40, 40, width, seed=1)
    query = rows[:9] + np.float32(0.5) * rows[9:18]
    relevant = tuple(np.array([number]) for number in range(9))
    judgements = Judgements(relevant, (np.array([], dtype=int),) * 9)
    plain, _ = landmark_scores(query, rows, judgements)
    others, _ = drawn(17, 17, width, seed=2)
    distractors = np.concatenate([others, rows[:9], -rows])
    with_copies, found = landmark_scores(query, rows, judgements, distractors)
    assert with_copies == plain
    assert found.nearest.tolist() == [1] * 9


def test_rows_that_are_equal_as_numbers_are_one():
    rows = np.array(
        [
            [0.0, 1],
            [1, 0],
            [-0.0, 1],
            [1, -0.0],
            [0, -1],
        ],
        dtype=np.float32,
    )
    distinct = DistinctRows.of(rows)
    assert distinct.number.tolist() == [0, 1, 0, 1, 2]
    assert distinct.rows.tolist() == [[0, 1], [1, 0], [0, -1]]
    narrow = DistinctRows.of(np.array([[2.0], [0], [2], [-0.0]], dtype=np.float32))
    assert narrow.number.tolist() == [0, 1, 0, 1]


def test_a_set_without_repeated_rows_is_not_copied():
    rows, _ = drawn(50, 50, 8, seed=0)
    rows[:, :4] = rows[0, :4]
    distinct = DistinctRows.of(rows)
    assert distinct.rows is rows
    assert distinct.number.tolist() == list(range(50))


EINSUM = np.einsum


def same_prints(how, *given, **more):
    """Return zeros in place of the prints of rows, and all other sums as they are."""
    found = EINSUM(how, *given, **more)
    return np.zeros_like(found) if how == "nd,d->n" else found


def equal_to_an_earlier_one(rows, labels=None, **more):
    labels = np.arange(len(rows)) % 2 if labels is None else labels
    return score(rows, labels, **more).facts["rows equal to an earlier one"]


# Two sign codes that one sum of 64-bit weights does not tell apart.
FIRST = "0011000001101011000011111101010100100111001011100101101001100010"
SECOND = "0101000111010000101110010111001011001011111001101101100000110100"


@pytest.mark.parametrize("scale", [1, 0.125, 3])
def test_codes_that_a_fingerprint_takes_for_one_stay_two(scale):
    codes = np.array([[2.0 * int(bit) - 1 for bit in code] for code in (FIRST, SECOND)])
    rows = np.repeat(codes, 3, axis=0)
    rows[1::3, :3] *= -1
    rows[2::3, 3:6] *= -1
    found = score((scale * rows).astype(np.float32), [0, 0, 0, 1, 1, 1], recall_at=(1,))
    assert found.facts["rows equal to an earlier one"] == 0
    nearest = {each.protocol: each.value for each in found.records if each.metric == "recall_at_1"}
    assert nearest["others"] == 1
    # the same where every pair of rows is proposed
    copies = np.concatenate([rows, rows[::-1]])
    assert equal_to_an_earlier_one(copies) == 6


@settings(max_examples=50, deadline=None)
@given(
    kind=st.sampled_from([np.float16, np.float32, np.float64]),
    width=st.integers(1, 12),
    scale=st.sampled_from([1, 2.0**-20, 0.1]),
    all_share_a_print=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_rows_are_equal_if_all_their_numbers_are(kind, width, scale, all_share_a_print, seed):
    rng = np.random.default_rng(seed)
    rows = (scale * rng.integers(-1, 2, (80, width))).astype(kind)
    rows[rng.random(rows.shape) < 0.1] *= -1  # some zeros get a minus
    known = [tuple(row) for row in (rows + 0.0).tolist()]
    expected = len(known) - len(set(known))
    with pytest.MonkeyPatch.context() as patch:
        if all_share_a_print:
            patch.setattr("numpy.einsum", same_prints)
        assert equal_to_an_earlier_one(rows) == expected


def test_rows_that_differ_in_a_digit_beyond_float32_differ():
    rows = np.ones((4, 3))
    rows[2, 1] += 2.0**-50
    assert equal_to_an_earlier_one(rows) == 2
    assert equal_to_an_earlier_one(rows * 1e-50) == 2
    assert equal_to_an_earlier_one(rows.astype(np.float32)) == 3


def test_equal_rows_of_a_mapped_file_are_found_across_blocks(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((50, 8)).astype(np.float16)
    rows[40] = rows[3]
    rows[49] = rows[3]
    np.save(tmp_path / "rows.npy", rows)
    monkeypatch.setattr("benchmark.metrics.rows.BLOCK", 7)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    facts = score(mapped, np.arange(50) // 2, names=[f"{row}.png" for row in range(50)]).facts
    assert facts["rows equal to an earlier one"] == 2
    assert facts["the first of them"] == ["40.png", "49.png"]
