"""Labels and batches as Python users hand them to a loss: any whole numbers, each in its range."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from benchmark.core.errors import RunError
from benchmark.core.recipe import UNTRAINED
from benchmark.losses import LOSSES, create_loss

DRAWN = torch.randn(24, 16, generator=torch.Generator().manual_seed(0))
ROWS = torch.nn.functional.normalize(DRAWN, dim=1)
LABELS = torch.arange(6).repeat_interleave(4)
TRIPLES = torch.tensor([0, 0, 1]).repeat(8)
NAMES = [name for name in LOSSES.names() if name != UNTRAINED]
PROXIES = [name for name in NAMES if LOSSES[name].facts["kind"] == "proxy"]
KINDS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.uint16, torch.uint64]
DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")),
]


def made(name):
    return create_loss(name, embedding_dim=16, num_classes=6)


def value(name, labels):
    torch.manual_seed(0)
    return made(name)(ROWS, labels)


def labels_for(name):
    return TRIPLES if name == "triplet_mined" else LABELS


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_labels_of_any_type_of_whole_numbers_give_the_same_bits(name, kind):
    labels = labels_for(name)
    of_kind = value(name, labels.to(kind))
    assert torch.equal(of_kind, value(name, labels))


@pytest.mark.parametrize("name", NAMES)
def test_truth_values_are_the_classes_0_and_1(name):
    labels = labels_for(name) % 2
    of_truth_values = value(name, labels.bool())
    assert torch.equal(of_truth_values, value(name, labels))


@pytest.mark.parametrize(
    "given",
    [
        LABELS.tolist(),
        LABELS.numpy(),
        None,
        LABELS[:23],
        LABELS / 2,
    ],
)
@pytest.mark.parametrize("name", NAMES)
def test_labels_that_are_no_tensor_of_one_number_a_row_are_an_error(name, given):
    with pytest.raises(RunError, match="integer labels"):
        made(name)(ROWS, given)


@pytest.mark.parametrize(
    "rows",
    [
        ROWS.numpy(),
        ROWS[0],
        ROWS.tolist(),
        ROWS[None],
    ],
)
@pytest.mark.parametrize("name", NAMES)
def test_embeddings_that_are_no_tensor_of_rows_are_an_error(name, rows):
    with pytest.raises(RunError, match="takes embeddings"):
        made(name)(rows, labels_for(name))


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_batch_is_an_error(name):
    with pytest.raises(RunError, match="empty batch"):
        made(name)(ROWS[:0], LABELS[:0])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("shift", "named"),
    [
        (1, "6"),
        (-3, "-3"),
        (100, "100"),
        (2**40, "1099511627776"),
    ],
)
@pytest.mark.parametrize("name", PROXIES)
def test_a_label_without_a_proxy_is_an_error_that_names_the_range(name, shift, named, device):
    loss = made(name).to(device)
    labels = (LABELS + shift).to(device)
    with pytest.raises(RunError, match=f"got label {named}, but num_classes is 6.* 0 to 5"):
        loss(ROWS.to(device), labels)


@pytest.mark.parametrize("labels", [LABELS, LABELS.to(torch.uint8)])
@pytest.mark.parametrize("name", ["ProxyNCALoss", "SphereFaceLoss"])
def test_losses_of_the_library_by_class_check_their_range_too(name, labels):
    loss = create_loss("pml", embedding_dim=16, num_classes=6, **{"class": name})
    assert loss(ROWS, labels).isfinite()
    with pytest.raises(RunError, match="got label 6"):
        loss(ROWS, labels + 1)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in PROXIES])
def test_losses_without_proxies_take_any_whole_numbers(name):
    labels = labels_for(name)
    of_large_labels = value(name, labels * 1000 - 7)
    torch.testing.assert_close(of_large_labels, value(name, labels))


def test_labels_that_lie_on_another_device_are_looked_at_once():
    loss = made("proxy_nca_others")

    class Elsewhere(torch.Tensor):
        """Labels that say they are not on the CPU."""

        device = torch.device("meta")

    seen = []

    def compare(embeddings, labels, *_):
        seen.append(labels.tolist())
        return embeddings.sum()

    loss.compare = compare
    loss(ROWS, LABELS.as_subclass(Elsewhere))
    loss(ROWS, (LABELS + 1).as_subclass(Elsewhere))
    assert np.ptp(seen[1]) == 5
    assert max(seen[1]) == 6
    with pytest.raises(RunError, match="got label 6"):
        loss(ROWS, LABELS + 1)
