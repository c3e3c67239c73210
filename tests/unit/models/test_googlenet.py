"""GoogLeNet from torchvision behaves like a backbone of timm."""

from __future__ import annotations

import pytest
import torch

from benchmark.core.errors import ConfigError
from benchmark.core.recipe import ModelConfig
from benchmark.models import create_model
from benchmark.models.backbone import MEAN, STD, GoogLeNet


def test_features_are_those_of_torchvisions_own_network():
    from torchvision.models import googlenet

    ours = GoogLeNet().eval()
    theirs = googlenet(
        weights=None, aux_logits=False, init_weights=False, transform_input=True
    ).eval()
    theirs.load_state_dict(ours.state_dict(), strict=False)
    theirs.fc = torch.nn.Identity()
    images = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert torch.allclose(ours.forward_features(images).mean((2, 3)), theirs(images), atol=1e-5)


def test_inputs_reach_it_between_minus_one_and_one():
    pixels = torch.tensor([0.0, 1.0]).view(2, 1, 1, 1).expand(2, 3, 1, 1)
    normalised = (pixels - torch.tensor(MEAN).view(3, 1, 1)) / torch.tensor(STD).view(3, 1, 1)
    assert torch.allclose(GoogLeNet().rescale(normalised), 2 * pixels - 1, atol=1e-6)


def test_its_own_weights_load_from_a_file(tmp_path):
    config = {"backbone": "googlenet", "embedding_dim": None}
    first = create_model(ModelConfig(**config), seed=0)
    path = tmp_path / "weights.pt"
    torch.save(first.backbone.state_dict(), path)
    again = create_model(ModelConfig(**config, pretrained=True, checkpoint=str(path)), seed=1)
    for key, value in first.backbone.state_dict().items():
        assert torch.equal(again.backbone.state_dict()[key], value), key


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"backbone": "googlenet.tv2_in1k"}, "has no weight tag 'tv2_in1k'"),
        ({"pretrained": True}, "needs its weight tag spelled out; known: tv_in1k"),
        ({"channels": 1}, "takes 3, not 1"),
    ],
)
def test_what_it_cannot_do_is_said(changes, words):
    with pytest.raises(ConfigError) as caught:
        create_model(ModelConfig(**{"backbone": "googlenet", **changes}), seed=0)
    assert words in str(caught.value)
