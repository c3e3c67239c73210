"""Properties that single losses promise beyond the common contract."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
import torch

from benchmark.core.errors import ConfigError, RunError
from benchmark.core.recipe import UNTRAINED
from benchmark.losses import create_loss


def unit_rows(count, dim=6, seed=0):
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(count, dim, generator=generator, dtype=torch.float64)
    return torch.nn.functional.normalize(rows, dim=1)


LABELS = torch.arange(24) // 4


def test_sup_ap_is_an_upper_bound_of_the_exact_loss_even_with_ties():
    exact = create_loss("blackbox_ap", margin=0.0)
    for seed in range(20):
        rows = unit_rows(24, seed=seed)
        rows[5] = rows[9]
        bound = create_loss("sup_ap")(rows, LABELS)
        assert bound >= exact(rows, LABELS) - 1e-12


def test_smooth_ap_tends_to_the_exact_loss_as_tau_shrinks():
    rows = unit_rows(24)
    exact = create_loss("blackbox_ap", margin=0.0)(rows, LABELS)
    errors = []
    for tau in (0.1, 0.01, 1e-6):
        smooth = create_loss("smooth_ap", tau=tau)(rows, LABELS)
        errors.append(abs(smooth - exact))
    assert sorted(errors, reverse=True) == errors
    assert errors[-1] < 1e-4


def test_offset_none_makes_sup_ap_continuous_where_the_line_begins():
    loss = create_loss("sup_ap", start=0.3)
    targets = torch.tensor([[True, False]])
    values = []
    for gap in (0.05 - 1e-9, 0.05 + 1e-9):
        scores = torch.tensor([[0.0, gap]], dtype=torch.float64)
        values.append(loss.query_losses(scores, targets).item())
    before, after = values
    assert before == pytest.approx(after, abs=1e-6)


def test_blackbox_without_generator_draws_from_torchs_own():
    values = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        value = create_loss("blackbox_ap")(unit_rows(24), LABELS)
        values.append(value.item())
    first, again, other = values
    assert first == again
    assert first != other


def test_blackbox_margin_makes_the_ranking_harder():
    rows = unit_rows(24)
    plain = create_loss("blackbox_ap", margin=0.0)(rows, LABELS)
    generator = torch.Generator().manual_seed(0)
    noisy = create_loss("blackbox_ap", margin=0.3)
    for _ in range(5):
        assert noisy(rows, LABELS, generator=generator) > plain


def test_roadmap_refuses_a_wrong_number_of_weights():
    with pytest.raises(ConfigError, match="two numbers"):
        create_loss("roadmap", weights=[1.0])


@pytest.mark.parametrize("name", ["proxy_nca", "normalized_softmax"])
def test_proxies_follow_the_seed_alone(name):
    proxies = []
    for seed in (1, 1, 2):
        torch.rand(3)  # moves the global generator
        (parameter,) = create_loss(name, embedding_dim=6, num_classes=5, seed=seed).parameters()
        assert parameter.requires_grad
        proxies.append(parameter.detach())
    first, again, other = proxies
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_own_losses_do_not_import_the_metric_learning_library():
    code = (
        "import sys; from benchmark.losses import create_loss; create_loss('roadmap'); "
        "assert 'pytorch_metric_learning' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_loss_of_untrained_networks_says_what_to_set_when_it_is_trained_with():
    with pytest.raises(RunError, match=r"is not a loss to train with; set training\.epochs to 0"):
        create_loss(UNTRAINED)(unit_rows(24), LABELS)


def test_contrastive_pushes_negatives_apart_where_there_is_no_positive_pair():
    rows = torch.tensor([[1.0, 0.0], [0.96, 0.28], [-1.0, 0.0]], requires_grad=True)
    value = create_loss("contrastive")(rows, torch.arange(3))
    value.backward()
    # of the three pairs one is closer than the margin of 0.5
    assert value.item() == pytest.approx(0.5 - math.hypot(0.04, 0.28), rel=1e-6)
    assert rows.grad[:2].norm(dim=1).min() > 0.1
