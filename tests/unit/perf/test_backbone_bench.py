"""Loss time beside network time, in the form of Smooth-AP's table S1."""

from __future__ import annotations

import pytest
import torch
from perf import backbone


@pytest.fixture
def small(monkeypatch):
    """A network and an image that take no time; the losses stay as they are."""

    def create_model(config, seed):
        assert (config.backbone, config.embedding_dim) == ("resnet50", backbone.DIMENSION)
        return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 8 * 8, 4))

    monkeypatch.setattr(backbone, "create_model", create_model)
    monkeypatch.setattr(backbone, "SIDE", 8)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


def test_section_gives_each_loss_its_share_of_the_network_beside_the_printed_times(small, tmp_path):
    shown = []
    section = backbone.section(tmp_path, quick=True, show=shown.append)
    assert len(shown) == len(section.rows) == len(backbone.COMPARED)
    for row in section.rows:
        share = 100 * row["loss_ms"] / row["backbone_ms"]
        assert row["loss_ms"] > 0 and row["loss_percent"] == pytest.approx(share)
    printed = {
        row["method"]: (row["published_backbone_ms"], row["published_loss_ms"])
        for row in section.rows
    }
    assert all(all(printed[name]) for name in ("BlackBoxAP", "FastAP", "SmoothAP"))
    assert printed["SupAP"] == (None, None)
    assert "GFLOP" in section.note or "TFLOP" in section.note


def test_time_of_the_network_is_scaled_to_the_images_asked_for(small, monkeypatch):
    passes = []
    monkeypatch.setattr(backbone, "seconds_of", lambda call, device: passes.append(call()) or 0.5)
    assert backbone.backbone_ms(56, torch.device("cpu")) == pytest.approx(2 * 500)
    assert len(passes) == 2
    assert backbone.backbone_ms(4, torch.device("cpu")) == pytest.approx(500)


def test_time_of_a_loss_is_the_median_without_the_first_pass(monkeypatch):
    times = iter([9.0, 0.003, 0.001, 0.002])
    monkeypatch.setattr(backbone, "seconds_of", lambda call, device: call() or next(times))
    assert backbone.loss_ms("smooth_ap", {}, torch.device("cpu"), repeats=3) == pytest.approx(2.0)
