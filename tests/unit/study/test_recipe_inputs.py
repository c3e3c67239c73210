"""Inputs that pretrained weights do not know are refused before anything starts."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from benchmark.core.recipe import ModelConfig
from benchmark.models.backbone import _create, prepare_torchvision, weight_facts
from benchmark.models.embedding import NativePooling
from benchmark.study import load_study
from benchmark.study.recipes import input_problems

NETWORKS = ("dinov2_vits14", "dinov3_vits16", "siglip2_vitb16", "clip_vitb16", "convnext_tiny")
CLIP = {"backbone": "vit_base_patch16_clip_224.openai", "pretrained": True}
CLIP_PIXELS = {
    "mean": [0.48145466, 0.4578275, 0.40821073],
    "std": [0.26862954, 0.26130258, 0.27577711],
}


@pytest.fixture(scope="module")
def timm():
    """Return timm, which imports torchvision."""
    prepare_torchvision()
    return pytest.importorskip("timm")


@pytest.fixture(scope="module")
def networks():
    """Return {(recipe, option): a block of the study of networks}."""
    return {
        (block.recipe_name, "".join(block.setting.options)): block
        for block in load_study("networks").blocks
    }


@pytest.fixture
def load(study_data, recipe_data, write_study):
    """Return a function that loads a study of a network with these inputs."""

    def of(model, pixels):
        recipe_data["model"] = model
        recipe_data["input"] = pixels
        return load_study(write_study(study_data))

    return of


def test_every_network_is_there_in_three_ways(networks):
    assert set(networks) == {(n, way) for n in NETWORKS for way in ("", "frozen", "zero_shot")}
    for (_, way), block in networks.items():
        frozen = block.recipe.model.freeze_backbone
        epochs = block.recipe.training.epochs
        decay = block.recipe.optimizer.layer_decay
        warm_up = block.recipe.schedule.warmup_epochs
        assert (frozen, epochs > 0) == (way != "", way != "zero_shot")
        assert way or (decay < 1 and warm_up > 0)


@pytest.mark.parametrize("name", NETWORKS)
def test_inputs_of_each_recipe_are_those_of_timms_tag(networks, timm, name):
    for way in ("", "frozen", "zero_shot"):
        recipe = networks[name, way].recipe
        known = timm.get_pretrained_cfg(recipe.model.backbone)
        for given, wanted in ((recipe.input.mean, known.mean), (recipe.input.std, known.std)):
            assert given * (3 // len(given)) == pytest.approx(wanted, abs=1e-9)
        assert input_problems(recipe) == []


@pytest.mark.parametrize("name", NETWORKS)
def test_each_network_takes_the_side_of_its_recipe(networks, timm, name):
    recipe = networks[name, ""].recipe
    model = replace(recipe.model, pretrained=False)
    with torch.device("meta"):
        backbone = _create(timm, model.backbone, model, pretrained=False).eval()
        images = torch.zeros(2, 3, recipe.input.image_size, recipe.input.image_size)
        features = NativePooling(backbone)(backbone.forward_features(images))
    assert features.shape == (2, backbone.head_hidden_size)


@pytest.mark.parametrize(
    ("model", "pixels"),
    [
        (CLIP, {**CLIP_PIXELS, "mean": [0.485, 0.456, 0.406]}),
        (CLIP, {**CLIP_PIXELS, "std": [0.5]}),
        (CLIP, {**CLIP_PIXELS, "image_size": 200}),
        (
            {"backbone": "swin_tiny_patch4_window7_224.ms_in1k", "pretrained": True},
            {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225], "image_size": 256},
        ),
    ],
    ids=["mean", "std", "patches", "fixed side"],
)
def test_other_inputs_than_the_tags_are_refused(load, model, pixels, messages):
    with messages.raised(("", "blocks.0.recipe")):
        load(model, {"image_size": 224, **pixels})


@pytest.mark.parametrize(
    ("model", "pixels"),
    [
        (CLIP, {"image_size": 224, "mean": [0.5], "std": [0.5], "own_normalisation": True}),
        (CLIP, {"image_size": 336, **CLIP_PIXELS}),
        ({**CLIP, "pretrained": False}, {"image_size": 224, "mean": [0.5], "std": [0.5]}),
        ({**CLIP, "checkpoint": "own.pth"}, {"image_size": 224, "mean": [0.5], "std": [0.5]}),
    ],
    ids=["on purpose", "another multiple of the patch", "from scratch", "weights of a file"],
)
def test_what_is_meant_is_accepted(load, model, pixels):
    assert load(model, pixels).blocks


def test_facts_follow_the_tag_and_not_the_architecture():
    def facts(tag):
        return weight_facts(ModelConfig(backbone=f"vit_small_patch16_224.{tag}", pretrained=True))

    assert math.isclose(facts("dino").mean[0], 0.485)
    assert facts("augreg_in1k").mean[0] == 0.5


SOUND = [
    {"backbone": "resnet50.tv_in1k", "pretrained": True},
    {"backbone": "deit_small_distilled_patch16_224.fb_in1k", "pretrained": True},
    {"backbone": "googlenet.tv_in1k", "pretrained": True, "channels": 3},
    {"backbone": "tf_efficientnet_lite0", "pretrained": False},
]


@pytest.mark.parametrize("model", SOUND, ids=[model["backbone"] for model in SOUND])
def test_a_sound_backbone_is_accepted(model, study_data, recipe_data, write_study):
    recipe_data["model"] = model
    load_study(write_study(study_data))


@pytest.mark.parametrize(
    "model",
    [
        {"backbone": "resnet5O"},
        {"backbone": "register_model"},
        {"backbone": "resnet50.tv_in2k", "pretrained": True},
        {"backbone": "resnet50", "pretrained": True},
        {"backbone": "googlenet.in1k", "pretrained": True},
    ],
    ids=["architecture", "not an architecture", "tag", "no tag", "GoogLeNet's tag"],
)
def test_another_one_is_named_with_its_place_and_what_there_is(
    model, study_data, recipe_data, problems_of
):
    recipe_data["model"] = model
    assert problems_of(study_data) == [("", "blocks.0.recipe")]


def test_reading_the_studies_imports_neither_torch_nor_timm():
    lines = [
        "import sys",
        "from benchmark.study import load_study",
        "for name in ('embedded', 'fast_ap', 'roadmap', 'smooth_ap', 'listwise'): load_study(name)",
        "print(sorted({'torch', 'timm'} & set(sys.modules)))",
    ]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_unsound_input_of_a_recipe_is_named_with_its_file(study_data, recipe_data, problems_of):
    recipe_data["input"] = {"image_size": 32, "resize": 24, "scale": [2.0, 1.0]}
    assert problems_of(study_data) == [("", "blocks.0.recipe")] * 2


def test_unsound_input_of_an_override_is_named_at_the_override(study_data, problems_of):
    study_data["blocks"][0] |= {"option": "large", "override": {"input": {"resize": 100}}}
    assert problems_of(study_data) == [("", "blocks.0.override.input.resize")]


@pytest.mark.parametrize(
    ("key", "value"),
    [("std", each) for each in (0.0, -1.0, 1e-320, 1e-4, 1e300, float("inf"), float("nan"))]
    + [("mean", each) for each in (1e300, float("-inf"), float("nan"))],
)
def test_a_normalisation_that_makes_no_numbers_is_no_recipe(
    key, value, study_data, recipe_data, problems_of
):
    """The runs ended as diverged, which was counted as a result of the loss."""
    recipe_data["input"] = {"image_size": 32, "resize": 32, key: [value]}
    ((_, place),) = problems_of(study_data)
    assert place == "blocks.0.recipe"
