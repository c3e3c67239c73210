"""Networks of today: their own pooling, rates that fall by layer, weights from a local file."""

from __future__ import annotations

import pytest
import torch
from tiny_runs import tiny_spec, write_spec_in

from benchmark.core.errors import ConfigError
from benchmark.core.recipe import ModelConfig
from benchmark.models import create_model
from benchmark.models.backbone import weight_facts
from benchmark.training.run import train

IMAGES = torch.rand(2, 3, 64, 64)


def model(backbone, **config):
    return create_model(ModelConfig(backbone=backbone, **config), 0).eval()


@pytest.mark.parametrize("backbone", ["test_vit", "test_convnext", "test_efficientnet"])
def test_native_pooling_is_that_of_the_network_with_its_classifier(backbone):
    network = model(backbone, pooling="native")
    with torch.inference_mode():
        expected = network.backbone(IMAGES)  # without a classifier: what it would be given
        assert torch.equal(network(IMAGES), torch.nn.functional.normalize(expected))
    names = [name for name, _ in network.named_parameters()]
    assert len(names) == len({id(p) for p in network.parameters()}) > 0


def test_native_pooling_takes_its_weights_from_a_local_file(tmp_path):
    import timm

    source = timm.create_model("test_convnext", num_classes=0)  # a LayerNorm behind its pooling
    torch.save(source.state_dict(), tmp_path / "weights.pth")
    path = str(tmp_path / "weights.pth")
    loaded = model("test_convnext", pretrained=True, checkpoint=path, pooling="native")
    found = loaded.backbone.state_dict()
    assert [name for name in found if name.startswith("head.norm")]
    assert all(torch.equal(found[name], value) for name, value in source.state_dict().items())


def test_native_pooling_needs_a_network_of_timm():
    with pytest.raises(ConfigError, match="'native' needs a network of timm"):
        model("googlenet", pooling="native")


@pytest.mark.parametrize("backbone", ["test_vit", "test_convnext", "test_resnet"])
def test_rates_fall_from_the_last_layers_to_the_first(backbone):
    network = model(backbone, embedding_dim=8)
    *layers, head = network.parameter_groups(10.0, layer_decay=0.5)
    rates = [group["lr_multiplier"] for group in layers]
    assert rates == [0.5 ** (len(layers) - 1 - place) for place in range(len(layers))]
    assert len(layers) > 2 and head["lr_multiplier"] == 10.0
    first = next(network.backbone.parameters())
    assert any(parameter is first for parameter in layers[0]["params"])
    grouped = [id(p) for group in (*layers, head) for p in group["params"]]
    assert sorted(grouped) == sorted(id(p) for p in network.parameters())


def test_without_decay_the_backbone_is_one_group():
    (backbone, head) = model("test_vit", embedding_dim=8).parameter_groups(3.0)
    assert (backbone["lr_multiplier"], head["lr_multiplier"]) == (1.0, 3.0)


def test_a_run_with_falling_rates_and_warm_up_trains(tmp_path):
    spec = tiny_spec(
        model={"backbone": "test_vit", "channels": 1, "pooling": "native", "embedding_dim": 8},
        optimizer={"layer_decay": 0.75},
        schedule={"name": "constant", "warmup_epochs": 0.5},
        training={"epochs": 1},
    )
    assert train(write_spec_in(tmp_path, spec)).status == "ok"


@pytest.mark.parametrize(
    ("backbone", "mean", "side"),
    [
        ("vit_small_patch14_dinov2.lvd142m", 0.485, 518),
        ("vit_small_patch16_dinov3.lvd1689m", 0.485, 256),
        ("vit_base_patch16_siglip_224.v2_webli", 0.5, 224),
        ("vit_base_patch16_clip_224.openai", 0.48145466, 224),
        ("convnext_tiny.fb_in1k", 0.485, None),
    ],
)
def test_facts_of_tags_are_known_without_their_weights(backbone, mean, side):
    facts = weight_facts(ModelConfig(backbone=backbone, pretrained=True))
    assert facts.mean[0] == mean and facts.fixed_side == side
