"""The losses equal the authors' published code in value and gradient."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from benchmark.losses import create_loss

DATA = np.load(Path(__file__).parent / "official_losses.npz")
BATCHES = ["balanced32/10", "imbalanced48/10", "random96/10"]
CASES = {
    "smoothap": ("smooth_ap", {}),
    "smoothap_tau05": ("smooth_ap", {"tau": 0.05}),
    "supap_paper": ("sup_ap", {}),
    "supap_official_offset": ("sup_ap", {"offset": 1.44}),
    "softbin20": ("softbin_ap", {}),
    "fastap10": ("fast_ap", {}),
    "blackbox_nomargin": ("blackbox_ap", {"margin": 0.0}),
    "calibration_pml": ("calibration", {"reduction": "nonzero"}),
}


def run(batch, name, hyperparameters):
    embeddings = torch.tensor(DATA[f"{batch}/embeddings"], requires_grad=True)
    loss = create_loss(name, **hyperparameters)(embeddings, torch.tensor(DATA[f"{batch}/labels"]))
    loss.backward()
    return loss.item(), embeddings.grad, embeddings.detach()


def along_the_sphere(gradient, embeddings):
    return gradient - (gradient * embeddings).sum(1, keepdim=True) * embeddings


def relative(ours, theirs):
    return ((ours - theirs).norm() / theirs.norm()).item()


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("case", CASES)
def test_value_and_gradient_equal_published_code(batch, case):
    value, gradient, embeddings = run(batch, *CASES[case])
    expected = torch.tensor(DATA[f"{batch}/{case}/grad"])
    tolerance = 1e-9
    if case == "blackbox_nomargin":  # the published code adds 1e-5 to the number of positives
        # 1 - AP itself may be small, so the tolerance is that of AP
        assert 1 - value == pytest.approx(1 - DATA[f"{batch}/{case}/loss"].item(), rel=1e-5)
        assert relative(gradient, expected) < 1e-5
        return
    if case == "softbin20":
        gradient, expected = (along_the_sphere(part, embeddings) for part in (gradient, expected))
    assert value == pytest.approx(DATA[f"{batch}/{case}/loss"].item(), rel=tolerance)
    assert relative(gradient, expected) < tolerance


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("weights", [None, [1.0, 1.0]])
def test_roadmap_equals_weighted_published_parts(batch, weights):
    value, gradient, _ = run(batch, "roadmap", {"reduction": "nonzero", "weights": weights})
    first, second = weights or [0.5, 0.5]
    parts = [(first, "supap_paper"), (second, "calibration_pml")]
    assert value == pytest.approx(
        sum(w * DATA[f"{batch}/{c}/loss"].item() for w, c in parts), rel=1e-9
    )
    expected = sum(w * torch.tensor(DATA[f"{batch}/{c}/grad"]) for w, c in parts)
    assert relative(gradient, expected) < 1e-9


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("case", CASES)
def test_float32_stays_close_to_published_float64(batch, case):
    name, hyperparameters = CASES[case]
    embeddings = torch.tensor(DATA[f"{batch}/embeddings"]).float().requires_grad_()
    loss = create_loss(name, **hyperparameters)(embeddings, torch.tensor(DATA[f"{batch}/labels"]))
    loss.backward()
    unit = embeddings.detach().double()
    ours = along_the_sphere(embeddings.grad.double(), unit)
    theirs = along_the_sphere(torch.tensor(DATA[f"{batch}/{case}/grad"]), unit)
    # tau 0.01 magnifies the rounding of a score (6e-8) a hundred times; the sums average it out
    assert loss.item() == pytest.approx(DATA[f"{batch}/{case}/loss"].item(), rel=1e-4)
    assert relative(ours, theirs) < 1e-3
