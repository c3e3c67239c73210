"""Networks: their own pooling and GeM, GoogLeNet beside timm's, rates that fall by layer."""

from __future__ import annotations

import pytest
import torch
from tiny_runs import tiny_spec, write_spec_in

from benchmark.core.errors import ConfigError
from benchmark.core.recipe import ModelConfig
from benchmark.models import create_model
from benchmark.models.backbone import MEAN, STD, GoogLeNet, weight_facts
from benchmark.models.embedding import Pooling
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
    assert any(name.startswith("head.norm") for name in found)
    torch.testing.assert_close(found, source.state_dict(), rtol=0, atol=0)


def contains(group, parameter):
    return any(each is parameter for each in group["params"])


@pytest.mark.parametrize("backbone", ["test_vit", "test_convnext", "test_resnet"])
def test_rates_fall_from_the_last_layers_to_the_first(backbone):
    network = model(backbone, embedding_dim=8)
    *layers, head = network.parameter_groups(10.0, layer_decay=0.5)
    rates = [group["lr_multiplier"] for group in layers]
    assert rates == [0.5**below for below in reversed(range(len(layers)))]
    assert len(layers) > 2
    assert head["lr_multiplier"] == 10.0
    first = next(network.backbone.parameters())
    assert contains(layers[0], first)
    grouped = []
    for group in (*layers, head):
        grouped += map(id, group["params"])
    assert sorted(grouped) == sorted(map(id, network.parameters()))


def test_without_decay_the_backbone_is_one_group():
    backbone, head = model("test_vit", embedding_dim=8).parameter_groups(3.0)
    assert backbone["lr_multiplier"] == 1.0
    assert head["lr_multiplier"] == 3.0


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
    assert facts.mean[0] == mean
    assert facts.fixed_side == side


def test_a_head_starts_with_hes_normal_weights_where_that_is_asked():
    uniform = model("test_resnet", embedding_dim=512, head_init="uniform").head
    he_normal = model("test_resnet", embedding_dim=512, head_init="he_normal").head
    sd_of_uniform = uniform.weight.std().item()
    sd_of_he = he_normal.weight.std().item()
    # sqrt(2 / n) against 1 / sqrt(3 n); 30,000 draws and more give 1% of it
    assert sd_of_he == pytest.approx((2 / uniform.in_features) ** 0.5, rel=0.02)
    assert sd_of_he / sd_of_uniform == pytest.approx(6**0.5, rel=0.03)
    assert he_normal.bias.abs().max() == 0
    plain = model("test_resnet", embedding_dim=512).head
    assert torch.equal(plain.weight, uniform.weight)


def gem(power: float) -> Pooling:
    pooling = Pooling("gem")
    torch.nn.init.constant_(pooling.power, power)
    return pooling


@pytest.fixture
def maps():
    return torch.rand(2, 5, 4, 4, generator=torch.Generator().manual_seed(0)) + 0.1


def test_the_power_starts_at_three_and_learns_at_the_rate_of_the_head():
    network = model("resnet10t", channels=1, pooling="gem", embedding_dim=8)
    power = network.pooling.power
    assert power.item() == 3.0
    backbone, head = network.parameter_groups(10.0)
    assert contains(head, power)
    assert not contains(backbone, power)
    rows = network(torch.rand(4, 1, 32, 32, generator=torch.Generator().manual_seed(0)))
    rows[:, 0].sum().backward()
    assert power.grad.abs() > 0


def test_value_and_gradients_equal_the_formula(maps):
    pooling = gem(2.5).double()
    double = maps.double().requires_grad_()
    expected = maps.double().pow(2.5).mean(dim=(2, 3)).pow(0.4)
    assert torch.allclose(pooling(double), expected)

    def of_power(maps, power):
        return torch.func.functional_call(pooling, {"power": power}, maps)

    assert torch.autograd.gradcheck(of_power, (double, pooling.power))


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_maps_without_activation_are_raised_to_the_floor_and_give_finite_gradients(value):
    pooling = gem(3.0)
    maps = torch.full((1, 2, 3, 3), value, requires_grad=True)
    pooled = pooling(maps)
    assert pooled.tolist() == [[pytest.approx(1e-6, rel=1e-3)] * 2]
    pooled.sum().backward()
    assert torch.isfinite(maps.grad).all()
    assert torch.isfinite(pooling.power.grad)


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [
        ("avg", 2.0),
        ("max", 3.0),
        ("gem", ((1 + 27) / 2) ** (1 / 3)),
    ],
)
def test_pooling_leaves_out_the_class_token(pooling, expected):
    tokens = torch.tensor([[[100.0], [1.0], [3.0]]])
    maps = torch.tensor([[[[1.0, 3.0]]]])
    of_tokens = Pooling(pooling, prefix=1)(tokens)
    of_maps = Pooling(pooling)(maps)
    of_channels_last = Pooling(pooling, channels_last=True)(maps.permute(0, 2, 3, 1))
    assert of_tokens.item() == pytest.approx(expected, rel=1e-5)
    assert of_maps.item() == pytest.approx(expected, rel=1e-5)
    assert of_channels_last.item() == pytest.approx(expected, rel=1e-5)


def test_layer_norm_standardises_what_reaches_the_head():
    seen = []
    network = model("resnet10t", channels=1, layer_norm=True, embedding_dim=8)
    network.head.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    network(torch.randn(4, 1, 32, 32, generator=torch.Generator().manual_seed(0)))
    (features,) = seen
    assert features.mean(dim=1).abs().max() < 1e-5
    assert torch.allclose(features.std(dim=1, correction=0), torch.ones(4), atol=1e-2)


def test_features_are_those_of_torchvisions_own_network():
    from torchvision.models import googlenet

    ours = GoogLeNet().eval()
    theirs = googlenet(aux_logits=False, init_weights=False, transform_input=True).eval()
    theirs.load_state_dict(ours.state_dict(), strict=False)
    theirs.fc = torch.nn.Identity()
    images = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        features = ours.forward_features(images).mean((2, 3))
        assert torch.allclose(features, theirs(images), atol=1e-5)


def test_inputs_reach_it_between_minus_one_and_one():
    pixels = torch.tensor([0.0, 1.0]).view(2, 1, 1, 1).expand(2, 3, 1, 1)
    mean = torch.tensor(MEAN).view(3, 1, 1)
    std = torch.tensor(STD).view(3, 1, 1)
    rescaled = GoogLeNet().rescale((pixels - mean) / std)
    assert torch.allclose(rescaled, 2 * pixels - 1, atol=1e-6)


def test_its_own_weights_load_from_a_file(tmp_path):
    config = {"backbone": "googlenet", "embedding_dim": None}
    first = create_model(ModelConfig(**config), seed=0)
    path = tmp_path / "weights.pt"
    torch.save(first.backbone.state_dict(), path)
    again = create_model(ModelConfig(**config, pretrained=True, checkpoint=str(path)), seed=1)
    saved = first.backbone.state_dict()
    torch.testing.assert_close(again.backbone.state_dict(), saved, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"pooling": "native"}, "'native' needs a network of timm"),
        ({"backbone": "googlenet.tv2_in1k"}, "has no weight tag 'tv2_in1k'"),
        ({"pretrained": True}, "needs its weight tag spelled out; known: tv_in1k"),
        ({"channels": 1}, "takes 3, not 1"),
    ],
)
def test_what_it_cannot_do_is_said(changes, words):
    with pytest.raises(ConfigError) as caught:
        create_model(ModelConfig(**{"backbone": "googlenet", **changes}), seed=0)
    assert words in str(caught.value)


def test_positions_are_fitted_once_and_keep_what_the_network_gives():
    import timm.models.vision_transformer as transformers

    network = model("test_vit", embedding_dim=8)
    images = torch.rand(2, 3, 96, 96)
    before = network(images)
    whole = network.backbone.pos_embed.shape
    network.fit_positions(96)
    assert network.backbone.pos_embed.shape != whole
    assert torch.equal(network(images), before)
    resized = []
    original = transformers.resample_abs_pos_embed

    def watched(positions, *arguments, **options):
        found = original(positions, *arguments, **options)
        resized.append(found is not positions)
        return found

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(transformers, "resample_abs_pos_embed", watched)
        network(images).sum().backward()
        network(torch.rand(2, 3, 64, 64))
    assert resized == [False, True]


def test_networks_without_learned_positions_stay_as_they_are():
    network = model("test_resnet", embedding_dim=8)
    before = network(IMAGES)
    network.fit_positions(64)
    assert torch.equal(network(IMAGES), before)
