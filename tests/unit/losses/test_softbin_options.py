"""The options of SoftBinAP: class-weighted queries, tie-aware precision, range of the bins."""

from __future__ import annotations

import pytest
import torch

from benchmark.core.errors import ConfigError
from benchmark.losses import create_loss
from benchmark.losses.kernels.relation import Positives

torch.set_num_threads(1)
LABELS = torch.tensor([0, 0, 1, 1, 1, 2, 2, 2, 2, 3])


def unit(count, width, seed):
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(count, width, generator=generator, dtype=torch.float64)
    return torch.nn.functional.normalize(rows, dim=1)


def class_weights(labels, pool=None, *, own):
    positives = Positives.from_labels(labels, pool, torch.device("cpu"), own=own)
    return positives.rows(0, len(labels)).class_weights


def test_scores_below_the_lowest_bin_are_alike_and_get_no_gradient():
    rows = unit(10, 4, 5)
    loss = create_loss("softbin_ap", bins=25, lowest=0.0)
    scores = (rows @ rows.T).requires_grad_()
    targets = LABELS[:, None] == LABELS
    loss.query_losses(scores, targets).sum().backward()
    below = scores < 0
    assert below.sum() > 10
    assert scores.grad[below].abs().max() == 0
    assert scores.grad[~below].abs().max() > 0


@pytest.mark.parametrize(
    ("ties", "of_first", "of_second"),
    [
        ("aware", 2 / 2, (1 + 1 + 2) / (1 + 2 + 2)),
        ("ignore", 1 / 1, 2 / 3),
    ],
)
def test_value_per_query_worked_out_by_hand(ties, of_first, of_second):
    # three bins with centers 1, 0, -1: the positives lie in the first two, the negatives in the
    # last two
    scores = torch.tensor([[1.0, 0.0, 0.0, -1.0]], dtype=torch.float64)
    targets = torch.tensor([[True, True, False, False]])
    values = create_loss("softbin_ap", bins=3, ties=ties).query_losses(scores, targets)
    assert values.item() == pytest.approx(1 - (of_first + of_second) / 2)


def test_every_class_has_the_same_share_of_the_weights():
    labels = torch.tensor([5, 3, 5, 3, 3, 9, 5, 5, 7, 7, 5])
    weights = class_weights(labels, own=True)
    for label, count in ((5, 5), (3, 3), (7, 2)):
        of_class = weights[labels == label]
        assert of_class.tolist() == pytest.approx([1 / (3 * count)] * count)
    assert weights[labels == 9].item() == 0


def test_class_weights_count_queries_and_not_references():
    labels = torch.tensor([0, 0, 0, 1, 2])
    pool = torch.tensor([1, 1, 1, 1, 0, 4])
    weights = class_weights(labels, pool, own=False)
    assert weights.tolist() == pytest.approx([1 / 6, 1 / 6, 1 / 6, 1 / 2, 0])


def test_unknown_choices_are_refused_with_what_is_allowed():
    with pytest.raises(ConfigError, match="'class'") as caught:
        create_loss("softbin_ap", query_weights="classes", ties="yes")
    assert "ties" in str(caught.value)
    assert "aware" in str(caught.value)


def test_class_weights_are_those_of_the_batch_when_it_queries_a_memory_too():
    labels = torch.tensor([2, 0, 0, 5, 1])
    memory = torch.tensor([1, 0, 4, 0, 1])
    weights = class_weights(labels, memory, own=True)
    assert weights.tolist() == pytest.approx([0, 1 / 4, 1 / 4, 0, 1 / 2])
    rows = unit(10, 4, 2)
    batch = rows[:5]
    loss = create_loss("softbin_ap", query_weights="class")
    value = loss.with_memory(batch, labels, rows[5:], memory)
    targets = torch.cat([labels, memory]) == labels.unsqueeze(1)
    values = create_loss("softbin_ap").query_losses(batch @ rows.T, targets)
    expected = (values[1] + values[2]) / 4 + values[4] / 2
    assert value.item() == pytest.approx(expected.item(), rel=1e-12)
