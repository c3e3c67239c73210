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


def test_class_weights_count_queries_and_not_references():
    labels = torch.tensor([0, 0, 0, 1, 2])
    pool = torch.tensor([1, 1, 1, 1, 0, 4])
    positives = Positives.from_labels(labels, pool, labels.device, own=False)
    weights = positives.rows(slice(0, len(labels))).class_weights
    assert weights.tolist() == pytest.approx([1 / 6, 1 / 6, 1 / 6, 1 / 2, 0])


def test_unknown_choices_are_refused_with_what_is_allowed():
    with pytest.raises(ConfigError, match=r"'class'(.|\n)*ties(.|\n)*aware"):
        create_loss("softbin_ap", query_weights="classes", ties="yes")
