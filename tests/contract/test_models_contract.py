"""Every family of backbones gives an embedding network that keeps the same promises."""

from __future__ import annotations

import pytest
import torch
from torch.nn.modules.batchnorm import _BatchNorm

from benchmark.core.recipe import ModelConfig
from benchmark.models import create_model

# backbone, image side, channels, pooling
FAMILIES = {
    "resnet10t": (32, 1, "avg"),
    "resnet18": (32, 3, "gem"),
    "resnet50": (32, 3, "max"),
    "inception_v3": (96, 3, "avg"),
    "googlenet": (64, 3, "avg"),
    "efficientnet_lite0": (32, 3, "avg"),
    "deit_small_distilled_patch16_224": (32, 3, "token"),
    "vit_tiny_patch16_224": (48, 3, "avg"),
    "convnext_atto": (32, 3, "max"),
}


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def build(backbone: str, seed: int = 0, **changes):
    _, channels, pooling = FAMILIES[backbone]
    config = {"channels": channels, "pooling": pooling, "embedding_dim": 24, **changes}
    return create_model(ModelConfig(backbone=backbone, **config), seed)


def images(backbone: str) -> torch.Tensor:
    side, channels, _ = FAMILIES[backbone]
    return torch.randn(4, channels, side, side, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("backbone", FAMILIES)
def test_embeddings_have_unit_length_and_gradients_reach_backbone_and_head(backbone):
    model = build(backbone)
    embeddings = model(images(backbone))
    assert embeddings.shape == (4, 24)
    assert model.embedding_dim == 24
    assert torch.allclose(embeddings.norm(dim=1), torch.ones(4), atol=1e-5)
    direction = torch.randn(4, 24, generator=torch.Generator().manual_seed(2))
    (embeddings * direction).sum().backward()
    groups = model.parameter_groups(head_lr_multiplier=3.0)
    assert [group["lr_multiplier"] for group in groups] == [1.0, 3.0]
    for group in groups:
        # timm's own classifier head is no part of the features; ConvNeXt keeps a norm there
        unused = {
            id(parameter)
            for name, parameter in model.backbone.named_parameters()
            if name.startswith("head.")
        }
        assert all(
            parameter.grad is not None or id(parameter) in unused for parameter in group["params"]
        )
        # only the first: timm starts residual branches at zero, which holds back gradients further
        # in
        assert group["params"][0].grad.abs().sum() > 0
    listed = [id(p) for group in groups for p in group["params"]]
    assert sorted(listed) == sorted(id(p) for p in model.parameters())


@pytest.mark.parametrize("backbone", FAMILIES)
def test_without_a_head_the_width_is_the_backbones(backbone):
    model = build(backbone, embedding_dim=None).eval()
    with torch.no_grad():
        assert model(images(backbone)).shape == (4, model.embedding_dim)
    assert model.embedding_dim == model.backbone.num_features


@pytest.mark.parametrize(
    "backbone", ["resnet10t", "efficientnet_lite0", "deit_small_distilled_patch16_224"]
)
def test_first_weights_follow_from_the_seed_alone(backbone):
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first = build(backbone, seed=1).state_dict()
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(6)
    again = build(backbone, seed=1)
    other = build(backbone, seed=2)
    assert all(torch.equal(first[key], value) for key, value in again.state_dict().items())
    assert not torch.equal(first["head.weight"], other.state_dict()["head.weight"])
    assert again.provenance() != other.provenance()


@pytest.mark.parametrize("backbone", ["resnet18", "efficientnet_lite0", "inception_v3"])
def test_frozen_batch_norm_keeps_its_statistics_and_trains_weight_and_bias(backbone):
    model = build(backbone, freeze_batch_norm=True)
    layers = [layer for layer in model.modules() if isinstance(layer, _BatchNorm)]
    before = [
        {name: value.clone() for name, value in layer.state_dict().items()} for layer in layers
    ]
    model.eval()
    model.train()
    optimizer = torch.optim.SGD(model.parameter_groups(1.0), lr=0.1)
    model(images(backbone))[:, 0].sum().backward()
    optimizer.step()
    assert model.training
    assert layers
    assert not any(layer.training for layer in layers)
    moved = [
        {name for name, value in layer.state_dict().items() if not torch.equal(value, old[name])}
        for layer, old in zip(layers, before, strict=True)
    ]
    assert set.union(*moved) == {"weight", "bias"}


def test_batch_norm_learns_unless_frozen():
    model = build("resnet18")
    mean = model.backbone.bn1.running_mean.clone()
    model(images("resnet18"))
    assert not torch.equal(mean, model.backbone.bn1.running_mean)
