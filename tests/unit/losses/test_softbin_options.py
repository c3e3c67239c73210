"""The options of SoftBinAP: class-weighted queries, tie-aware precision, range of the bins."""

from __future__ import annotations

from collections import Counter

import losses_formulas as formulas
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmark.core.errors import ConfigError
from benchmark.losses import create_loss
from benchmark.losses.kernels.relation import Positives

torch.set_num_threads(1)
OPTIONS = [
    {"query_weights": "class"},
    {"ties": "aware"},
    {"query_weights": "class", "ties": "aware", "bins": 5},
    {"query_weights": "class", "ties": "aware", "include_query": False},
    {"bins": 25, "lowest": 0.0},
    {"query_weights": "class", "ties": "aware", "bins": 7, "lowest": -0.25},
]
LABELS = torch.tensor([0, 0, 1, 1, 1, 2, 2, 2, 2, 3])


def tie_aware_ap(scores, targets, centers, lowest=-1.0):
    """1 - AP with the precision of Eq. 13, one bin and one item at a time."""
    width = (1 - lowest) / (centers - 1)
    inside = scores.clamp(lowest, 1)
    share = [
        [max(1 - abs(score - (1 - m * width)) / width, 0 * score) for score in inside]
        for m in range(centers)
    ]
    total = 0
    for m in range(centers):
        own = sum(s for s, hit in zip(share[m], targets, strict=True) if hit)
        above = (
            1
            + own
            + 2 * sum(s for row in share[:m] for s, hit in zip(row, targets, strict=True) if hit)
        )
        below = 1 + sum(share[m]) + 2 * sum(sum(row) for row in share[:m])
        total = total + own * above / below
    return 1 - total / int(targets.sum())


def expected(
    embeddings,
    labels,
    pool=None,
    pool_labels=None,
    *,
    query_weights="uniform",
    ties="ignore",
    **rest,
):
    """The loss written out: 1 - AP of each query that has a positive, then the mean of means or the
    mean."""
    own = pool is None
    pool, pool_labels = (embeddings, labels) if own else (pool, pool_labels)
    centers, include_query = rest.get("bins", 20), rest.get("include_query", True)
    formula = tie_aware_ap if ties == "aware" else formulas.soft_binned_ap
    lowest = rest.get("lowest", -1.0)
    by_class = {}
    for i, label in enumerate(labels.tolist()):
        targets = pool_labels == label
        if targets.sum() < 1 + own:
            continue
        keep = [j for j in range(len(pool)) if not own or include_query or j != i]
        by_class.setdefault(label, []).append(
            formula((pool @ embeddings[i])[keep], targets[keep], centers, lowest)
        )
    if query_weights == "class":
        return sum(sum(values) / len(values) for values in by_class.values()) / len(by_class)
    values = [value for values in by_class.values() for value in values]
    return sum(values) / len(values)


def unit(count, width, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.nn.functional.normalize(
        torch.randn(count, width, generator=generator, dtype=torch.float64), dim=1
    )


@st.composite
def batches(draw):
    """Random rows with unequal classes, and references of their own; the first query has a positive
    in both."""
    size, pool = draw(st.integers(3, 12)), draw(st.integers(1, 9))
    width, seed = draw(st.integers(2, 6)), draw(st.integers(0, 10**6))
    labels = torch.tensor(draw(st.lists(st.integers(0, 3), min_size=size, max_size=size)))
    pool_labels = torch.tensor(draw(st.lists(st.integers(0, 4), min_size=pool, max_size=pool)))
    labels[1] = pool_labels[-1] = labels[0]
    rows = unit(size + pool, width, seed)
    return rows[:size], labels, rows[size:], pool_labels


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@settings(max_examples=25, deadline=None)
@given(batch=batches())
def test_options_equal_their_formulas(options, batch):
    rows, labels, pool, pool_labels = batch
    loss = create_loss("softbin_ap", **options)
    assert loss(rows, labels).item() == pytest.approx(
        float(expected(rows, labels, **options)), rel=1e-9, abs=1e-12
    )
    with_references = expected(rows, labels, pool, pool_labels, **options)
    assert loss(rows, labels, pool, pool_labels).item() == pytest.approx(
        float(with_references), rel=1e-9, abs=1e-12
    )


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_gradients_equal_those_of_the_formulas(options):
    gradients = []
    for function in (create_loss("softbin_ap", **options), lambda e, y: expected(e, y, **options)):
        free = unit(10, 4, 3).requires_grad_()
        function(torch.nn.functional.normalize(free, dim=1), LABELS).backward()
        gradients.append(free.grad)
    assert gradients[0].norm() > 0.01
    assert torch.allclose(*gradients, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_gradcheck_of_the_batch_and_of_references(options):
    loss, rows = create_loss("softbin_ap", **options), unit(10, 4, 5) * 0.97
    assert torch.autograd.gradcheck(lambda e: loss(e, LABELS), rows.clone().requires_grad_())
    references = rows.flip(0)[:8].clone().requires_grad_()
    pool_labels = LABELS.flip(0)[:8]
    assert torch.autograd.gradcheck(
        lambda e, r: loss(e, LABELS, r, pool_labels), (rows.clone().requires_grad_(), references)
    )


def test_scores_below_the_lowest_bin_are_alike_and_get_no_gradient():
    rows = unit(10, 4, 5)
    loss = create_loss("softbin_ap", bins=25, lowest=0.0)
    scores = (rows @ rows.T).requires_grad_()
    loss.query_losses(scores, LABELS[:, None] == LABELS).sum().backward()
    assert (scores < 0).sum() > 10
    assert scores.grad[scores < 0].abs().max() == 0
    assert scores.grad[scores > 0].abs().max() > 0


def test_tie_aware_value_per_query_worked_out_by_hand():
    # three bins with centers 1, 0, -1: the positives lie in the first two, the negatives in the
    # last two
    scores = torch.tensor([[1.0, 0.0, 0.0, -1.0]], dtype=torch.float64)
    targets = torch.tensor([[True, True, False, False]])
    values = create_loss("softbin_ap", bins=3, ties="aware").query_losses(scores, targets)
    assert values.item() == pytest.approx(1 - (2 / 2 + (1 + 1 + 2) / (1 + 2 + 2)) / 2)
    values = create_loss("softbin_ap", bins=3).query_losses(scores, targets)
    assert values.item() == pytest.approx(1 - (1 / 1 + 2 / 3) / 2)


def test_tie_aware_ap_lies_between_zero_and_one_which_is_a_perfect_ranking():
    scores = (
        torch.rand(30, 40, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 2 - 1
    )
    targets = torch.zeros(30, 40, dtype=torch.bool)
    targets[:, :12] = True
    aware, plain = (
        create_loss("softbin_ap", ties=ties).query_losses(scores, targets)
        for ties in ("aware", "ignore")
    )
    assert ((aware >= 0) & (aware <= 1)).all() and not torch.allclose(aware, plain, atol=1e-3)
    perfect = torch.where(targets, 0.9, -0.9).double()
    assert create_loss("softbin_ap", ties="aware").query_losses(perfect, targets) == pytest.approx(
        0.0, abs=1e-12
    )


def test_every_class_has_the_same_share_of_the_weights():
    labels = torch.tensor([5, 3, 5, 3, 3, 9, 5, 5, 7, 7, 5])
    positives = Positives.from_labels(labels, None, torch.device("cpu"), own=True)
    weights = positives.rows(0, len(labels)).class_weights
    counts = Counter(labels.tolist())
    assert weights.tolist() == pytest.approx(
        [0 if y == 9 else 1 / (3 * counts[y]) for y in labels.tolist()]
    )
    assert weights.sum().item() == pytest.approx(1)


def test_class_weights_count_queries_and_not_references():
    labels, pool = torch.tensor([0, 0, 0, 1, 2]), torch.tensor([1, 1, 1, 1, 0, 4])
    positives = Positives.from_labels(labels, pool, torch.device("cpu"), own=False)
    weights = positives.rows(0, len(labels)).class_weights
    assert weights.tolist() == pytest.approx([1 / 6, 1 / 6, 1 / 6, 1 / 2, 0])


def test_class_weights_change_nothing_where_classes_are_equally_large():
    rows, labels = unit(12, 5, 1), torch.arange(12) % 4
    values = [
        create_loss("softbin_ap", query_weights=weights)(rows, labels)
        for weights in ("uniform", "class")
    ]
    assert torch.allclose(*values, rtol=1e-12)
    assert torch.allclose(values[0], create_loss("softbin_ap")(rows, labels), rtol=0, atol=0)


def test_unknown_choices_are_refused_with_what_is_allowed():
    with pytest.raises(ConfigError, match="'class'") as caught:
        create_loss("softbin_ap", query_weights="classes", ties="yes")
    assert "ties" in str(caught.value) and "aware" in str(caught.value)


def test_class_weights_are_those_of_the_batch_when_it_queries_a_memory_too():
    labels, memory = torch.tensor([2, 0, 0, 5, 1]), torch.tensor([1, 0, 4, 0, 1])
    positives = Positives.from_labels(labels, memory, torch.device("cpu"), own=True)
    weights = positives.rows(0, len(labels)).class_weights
    assert weights.tolist() == pytest.approx([0, 1 / 4, 1 / 4, 0, 1 / 2])
    rows = unit(10, 4, 2)
    loss = create_loss("softbin_ap", query_weights="class")
    values = create_loss("softbin_ap").query_losses(
        rows[:5] @ rows.T, torch.cat([labels, memory]) == labels.unsqueeze(1)
    )
    expected = (values[1] + values[2]) / 4 + values[4] / 2
    assert loss.with_memory(rows[:5], labels, rows[5:], memory).item() == pytest.approx(
        expected.item(), rel=1e-12
    )
