"""What papers say of their losses, at the values that their code trains with."""

from __future__ import annotations

import pytest
import torch

from benchmark.losses import create_loss

EACH = 4
SIZE = 64
CODE = {"offset": 1.44, "start": 0.5, "delta": 0.05}
INATURALIST = {"offset": 1.0, "start": 0.0, "delta": 0.05}
TEXT = {"offset": None, "start": 0.5, "delta": 0.04595}


def batch(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return unit rows in loose groups of four, which are nearly in the right order."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(SIZE) // EACH
    centers = torch.randn(SIZE // EACH, 16, generator=generator, dtype=torch.float64)
    rows = 2 * centers[labels] + torch.randn(SIZE, 16, generator=generator, dtype=torch.float64)
    return torch.nn.functional.normalize(rows), labels


def exact_loss(embeddings, labels) -> float:
    """Return 1 - mean AP, the query a positive of its own: ranks count what scores as high."""
    scores = embeddings @ embeddings.T
    same = labels == labels.unsqueeze(1)
    above = scores.unsqueeze(1) >= scores.unsqueeze(2)  # (query, item, other)
    rank = above.sum(2)
    among_positives = (above & same.unsqueeze(1)).sum(2)
    precision = torch.where(same, among_positives / rank, 0.0)
    return 1 - float((precision.sum(1) / same.sum(1)).mean())


def times_below(batches: int, **params) -> int:
    loss = create_loss("sup_ap", tau=0.01, rho=100.0, **params)
    batches = map(batch, range(batches))
    return sum(float(loss(*rows)) < exact_loss(*rows) - 1e-12 for rows in batches)


@pytest.mark.parametrize("params", [CODE, TEXT], ids=["code", "text"])
def test_sup_ap_is_an_upper_bound_as_on_sop_and_cub_and_in_the_text(params):
    assert times_below(100, **params) == 0


def test_sup_ap_as_trained_on_inaturalist_is_no_upper_bound():
    assert times_below(400, **INATURALIST) == pytest.approx(17, abs=1)


def test_fast_ap_has_a_center_more_than_bins():
    """FastAP C.1 names as many centers as bins, the authors' code has one more."""
    embeddings, labels = batch(0)
    values = [float(create_loss("fast_ap", bins=bins)(embeddings, labels)) for bins in (10, 9)]
    assert values == pytest.approx([0.0443, 0.0587], abs=1e-4)
