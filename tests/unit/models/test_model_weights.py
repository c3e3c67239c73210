"""Weights from files, names that do not exist, and what is left out of a checkpoint."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from benchmark.core.errors import ConfigError, DataError
from benchmark.core.recipe import ModelConfig
from benchmark.models import create_model

DISTILLED = "deit_tiny_distilled_patch16_224"


def model_of(backbone: str = "resnet10t", seed: int = 0, **changes):
    return create_model(ModelConfig(backbone=backbone, **{"channels": 1, **changes}), seed)


def saved(path, content) -> str:
    torch.save(content, path)
    return str(path)


def assert_same_weights(found, expected):
    """Compare to the bit what both have by name."""
    for name, value in expected.items():
        assert torch.equal(found[name], value), name


@pytest.mark.parametrize(
    "wrap",
    [
        lambda state: state,
        lambda state: {"state_dict": state},
        lambda state: {"model": state},
    ],
    ids=["bare", "state_dict", "model"],
)
def test_a_checkpoint_replaces_the_random_weights(tmp_path, wrap):
    source = model_of(seed=7).backbone.state_dict()
    state = {f"module.{key}": value for key, value in source.items()}
    state["module.fc.weight"] = torch.zeros(10, 512)
    state["module.fc.bias"] = torch.zeros(10)
    path = saved(tmp_path / "weights.pt", wrap(state))
    got = model_of(checkpoint=path).backbone.state_dict()
    assert_same_weights(got, source)


def test_a_checkpoint_may_hold_the_weights_of_the_head(tmp_path):
    source = model_of(seed=7, embedding_dim=6)
    state = source.backbone.state_dict()
    state |= {f"embedding.{key}": value for key, value in source.head.state_dict().items()}
    path = saved(tmp_path / "weights.pt", state)
    images = torch.rand(2, 1, 64, 64, generator=torch.Generator().manual_seed(0))
    got = model_of(checkpoint=path, embedding_dim=6)
    assert torch.equal(got.eval()(images), source.eval()(images))
    for width in (5, None):
        with pytest.raises(ConfigError, match="set embedding_dim to the width of the file"):
            model_of(checkpoint=path, embedding_dim=width)


def test_a_file_of_safetensors_has_the_weights_and_may_lack_counters_of_batches(tmp_path):
    from safetensors.torch import save_file

    source = model_of(seed=7).backbone.state_dict()
    path = tmp_path / "weights.safetensors"
    save_file({key: value for key, value in source.items() if "num_batches" not in key}, path)
    got = model_of(checkpoint=str(path)).backbone.state_dict()
    assert_same_weights(got, source)


def test_colour_weights_are_summed_for_grey_images(tmp_path):
    state = model_of(seed=7, channels=3).backbone.state_dict()
    path = saved(tmp_path / "weights.pt", state)
    got = model_of(checkpoint=path, channels=1).backbone.state_dict()
    summed = state["conv1.0.weight"].sum(dim=1, keepdim=True)
    assert torch.allclose(got["conv1.0.weight"], summed)


def test_keys_and_shapes_that_do_not_fit_are_all_named(tmp_path):
    state = model_of(seed=7).backbone.state_dict()
    state["extra.weight"] = torch.zeros(2)
    state["bn1.bias"] = torch.zeros(3)
    del state["layer1.0.conv1.weight"]
    with pytest.raises(ConfigError) as caught:
        model_of(checkpoint=saved(tmp_path / "weights.pt", state))
    text = str(caught.value)
    assert 'Missing key(s) in state_dict: "layer1.0.conv1.weight"' in text
    assert 'Unexpected key(s) in state_dict: "extra.weight"' in text
    assert "size mismatch for bn1.bias" in text


FIRST = "conv1.0.weight"
ODD = {
    "no weights": (lambda state: {"epoch": 3}, "no state dict"),
    "a number as a name": (lambda state: {**state, 1: state[FIRST]}, "no state dict"),
    "nothing as a name": (lambda state: {**state, None: state[FIRST]}, "no state dict"),
    "sparse": (lambda state: {**state, FIRST: state[FIRST].to_sparse()}, "no state dict"),
    "without numbers": (lambda state: {**state, FIRST: state[FIRST].to("meta")}, "no state dict"),
    "repeated by a stride of 0": (
        lambda state: {**state, FIRST: torch.zeros(1).expand(10**5, 3, 99, 99)},
        "no state dict",
    ),
    "a distillation token": (
        lambda state: {**state, "dist_token": state[FIRST]},
        "Unexpected|Missing",
    ),
}


@pytest.mark.parametrize("case", ODD)
@pytest.mark.parametrize("channels", [1, 3])
def test_values_that_are_no_weights_are_named(tmp_path, case, channels):
    change, told = ODD[case]
    state = model_of(seed=7, channels=3).backbone.state_dict()
    if case == "a distillation token":
        state["extra"] = torch.zeros(1)
    path = saved(tmp_path / "weights.pt", change(state))
    with pytest.raises((ConfigError, DataError), match=told):
        model_of(checkpoint=path, channels=channels)


def test_a_checkpoint_in_the_layout_of_softbin_aps_authors_is_understood(tmp_path):
    made = model_of(seed=7, pooling="gem", embedding_dim=16)
    state = {f"module.{key}": value for key, value in made.backbone.state_dict().items()}
    state["module.adpool.p"] = torch.full((1,), 2.6)
    state["module.fc.weight"], state["module.fc.bias"] = torch.randn(16, 512), torch.randn(16)
    path = saved(tmp_path / "released.pth", {"epoch": 7, "state_dict": state})
    got = model_of(checkpoint=path, pooling="gem", embedding_dim=16).eval()
    made.pooling.power.data.fill_(2.6)
    made.head.weight.data, made.head.bias.data = state["module.fc.weight"], state["module.fc.bias"]
    images = torch.rand(2, 1, 64, 64, generator=torch.Generator().manual_seed(0))
    assert torch.equal(got(images), made.eval()(images))
    for changes, words in (
        ({"pooling": "avg", "embedding_dim": 16}, "set pooling: gem"),
        ({"pooling": "gem", "embedding_dim": None}, "set embedding_dim"),
    ):
        with pytest.raises(ConfigError, match=words):
            model_of(checkpoint=path, **changes)


def test_distilled_deit_loses_the_distillation_token_and_its_position(tmp_path):
    import timm

    distilled = timm.create_model(DISTILLED).state_dict()
    path = saved(tmp_path / "deit.pt", distilled)
    model = model_of(DISTILLED, checkpoint=path, channels=3, pooling="token")
    got = model.backbone.state_dict()
    assert "dist_token" not in got
    assert model.backbone.num_prefix_tokens == 1
    expected = torch.cat([distilled["pos_embed"][:, :1], distilled["pos_embed"][:, 2:]], dim=1)
    assert torch.equal(got["pos_embed"], expected)
    assert torch.equal(got["blocks.3.mlp.fc1.weight"], distilled["blocks.3.mlp.fc1.weight"])


def test_an_inner_norm_under_the_classifiers_name_is_kept(tmp_path):
    state = model_of("convnext_atto", seed=7).backbone.state_dict()
    got = model_of("convnext_atto", checkpoint=saved(tmp_path / "weights.pt", state))
    assert all(torch.equal(got.backbone.state_dict()[key], value) for key, value in state.items())


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"backbone": "resnet5O"}, "unknown backbone 'resnet5O'; did you mean .*resnet50"),
        (
            {"backbone": "resnet50.tv_in1"},
            "no weight tag 'tv_in1'; did you mean 'resnet50.tv_in1k'",
        ),
        ({"backbone": "resnet50", "pretrained": True}, "spelled out; known: .*tv_in1k"),
        ({"backbone": "resnet10t", "pooling": "token"}, "needs a backbone with a class token"),
        ({"backbone": "resnet10t", "checkpoint": "no/w.pt"}, r"no checkpoint file no/w\.pt"),
    ],
)
def test_names_that_do_not_exist_or_fit_are_an_error(config, message):
    with pytest.raises((ConfigError, DataError), match=message):
        create_model(ModelConfig(**config), 0)


def test_weights_that_cannot_be_fetched_point_to_the_checkpoint_option(monkeypatch):
    import timm

    create = timm.create_model

    def unreachable(name, pretrained=False, **options):
        if pretrained:
            raise ConnectionError("no route to host")
        return create(name, **options)

    monkeypatch.setattr(timm, "create_model", unreachable)
    with pytest.raises(DataError, match=r"resnet18\.tv_in1k.*no route to host.*model\.checkpoint"):
        create_model(ModelConfig(backbone="resnet18.tv_in1k", pretrained=True), 0)


def test_torchvision_imports_whether_or_not_its_operators_load():
    code = (
        "from benchmark.models.backbone import prepare_torchvision as prepare; prepare(); "
        "prepare(); import torchvision, torch; print(hasattr(torch.ops.torchvision, 'nms'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "True", done.stderr
