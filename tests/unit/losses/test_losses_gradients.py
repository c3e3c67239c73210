"""Hand-made gradients agree with finite differences."""

from __future__ import annotations

import pytest
import torch

from benchmark.losses import create_loss

CASES = [
    ("smooth_ap", {"tau": 0.1}),
    ("smooth_ap", {"tau": 0.1, "include_query": False}),
    ("sup_ap", {"tau": 0.1, "rho": 3.0, "delta": 0.2}),
    ("sup_ap", {"tau": 0.1, "rho": 3.0, "delta": 0.2, "offset": 1.3}),
    ("fast_ap", {"bins": 4}),
    ("softbin_ap", {"bins": 5, "include_query": False}),
    ("calibration", {}),
    ("calibration", {"reduction": "nonzero", "beta": -0.1}),
    ("roadmap", {"tau": 0.1, "rho": 3.0, "weights": [1.0, 0.3]}),
    ("recall_at_k", {"tau": 0.1}),
    ("recall_at_k", {"tau": 0.1, "include_query": False, "ks": [2]}),
    ("smooth_recall", {"tau": 0.1}),
    ("sup_recall", {"tau": 0.1, "rho": 3.0, "delta": 0.2}),
    ("smooth_ndcg", {"tau": 0.1}),
    ("sup_ndcg", {"tau": 0.1, "rho": 3.0, "delta": 0.2}),
    ("approx_ndcg", {"alpha": 10.0}),
    *(("pnp", {"tau": 0.1, "variant": name}) for name in ("D_s", "D_q", "I_u", "I_b", "O")),
]
LABELS = torch.tensor([0, 0, 1, 1, 1, 2, 2, 2, 2])


@pytest.mark.parametrize(("name", "hyperparameters"), CASES)
def test_gradcheck_of_the_batch_and_of_references(name, hyperparameters):
    generator = torch.Generator().manual_seed(2)
    rows = torch.randn(9, 4, generator=generator, dtype=torch.float64)
    # lengths other than 1 also check the part of the gradient along the rows
    rows = torch.nn.functional.normalize(rows, dim=1) * 0.97
    loss = create_loss(name, **hyperparameters)
    assert torch.autograd.gradcheck(lambda e: loss(e, LABELS), rows.clone().requires_grad_())
    references = rows.flip(0)[:7].clone().requires_grad_()
    pool_labels = LABELS.flip(0)[:7]
    assert torch.autograd.gradcheck(
        lambda e, r: loss(e, LABELS, r, pool_labels), (rows.clone().requires_grad_(), references)
    )


@pytest.mark.parametrize(
    ("name", "hyperparameters"), [c for c in CASES if c[0] not in ("calibration",)]
)
def test_gradcheck_of_per_query_values(name, hyperparameters):
    generator = torch.Generator().manual_seed(4)
    scores = torch.rand(3, 11, generator=generator, dtype=torch.float64) * 1.8 - 0.9
    targets = torch.zeros(3, 11, dtype=torch.bool)
    targets[0, [1, 4]] = targets[1, [0, 5, 9]] = True
    loss = create_loss(name, **hyperparameters)
    assert torch.autograd.gradcheck(
        lambda s: loss.query_losses(s, targets)[:2], scores.requires_grad_(), atol=1e-6
    )


def test_queries_without_positive_get_no_gradient_from_their_own_row():
    scores = torch.rand(
        3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    ).requires_grad_()
    targets = torch.zeros(3, 5, dtype=torch.bool)
    targets[0, 2] = True
    values = create_loss("smooth_ap", tau=0.1).query_losses(scores, targets)
    values.nansum().backward()
    assert values.isnan().tolist() == [False, True, True]
    assert scores.grad[0].abs().sum() > 0 and scores.grad[1:].abs().sum() == 0
