"""Test images shown at several scales: the mean of their embeddings, as SoftBinAP's code pools."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from benchmark.core.options import build, stated
from benchmark.core.recipe import EvaluationConfig, InputConfig, ModelConfig, Recipe, check_recipe
from benchmark.datasets import load_dataset
from benchmark.input.tensors import create_input
from benchmark.models import create_model
from benchmark.study import load_study
from benchmark.study.recipes import input_problems
from benchmark.training.evaluate import Evaluator

CPU = torch.device("cpu")
SHOWN = InputConfig(augmentation="affine_noise", image_size=32, mean=[0.5], std=[0.5])
SCALES = [0.5, 1.0, 1.5]


@pytest.fixture(scope="module")
def embed():
    """Return a function that embeds a small test set under an evaluation."""
    torch.use_deterministic_algorithms(True)
    model = create_model(ModelConfig(backbone="test_resnet", channels=1, embedding_dim=8), seed=3)
    dataset = load_dataset("glyphs_tiny", {})
    make = partial(create_input, config=SHOWN, channels=1)

    def of(**options) -> np.ndarray:
        evaluator = Evaluator(dataset, make, EvaluationConfig(**options), 8)
        return evaluator.embed(model, CPU)["test"].query

    return of


def pooled_by_hand(views: list[np.ndarray], power: float) -> torch.Tensor:
    stack = torch.from_numpy(np.stack(views)).double()
    mean = (stack.sign() * stack.abs().pow(power)).mean(0)
    return F.normalize(mean.sign() * mean.abs().pow(1 / power), dim=1)


@pytest.mark.parametrize("power", [1.0, 3.0])
def test_an_embedding_is_the_unit_mean_of_those_at_each_scale(embed, power):
    found = embed(scales=SCALES, scale_power=power)
    expected = pooled_by_hand([embed(scales=[scale]) for scale in SCALES], power)
    assert np.abs(found - expected.numpy()).max() < 1e-6
    assert np.abs(found - embed()).max() > 1e-3
    assert np.abs(embed(scales=[1.0]) - embed()).max() < 1e-6


def test_specifications_from_before_scales_stay_as_they_are():
    assert not {"scales", "scale_power"} & set(stated(EvaluationConfig()))
    assert stated(EvaluationConfig(scales=SCALES))["scales"] == SCALES


def test_features_of_a_frozen_backbone_have_one_scale():
    recipe = build(
        Recipe,
        {
            "model": {"backbone": "test_resnet", "freeze_backbone": True, "embedding_dim": 8},
            "sampler": {"name": "random"},
            "evaluation": {"scales": SCALES},
        },
        "recipe",
    )
    assert "evaluation.scales" in [problem.key for problem in check_recipe(recipe)]


def test_a_network_of_patches_takes_scales_that_end_at_whole_ones():
    block = next(each for each in load_study("networks").blocks if "dino" in each.recipe_name)
    recipe = block.recipe  # 224 pixels, patches of 14
    keys = {}
    for scales in ([0.5, 1.5], [0.7071, 1.0]):
        evaluation = replace(recipe.evaluation, scales=scales)
        keys[scales[0]] = [
            each.key for each in input_problems(replace(recipe, evaluation=evaluation))
        ]
    assert keys == {0.5: [], 0.7071: ["evaluation.scales"]}


def test_softbin_ap_is_tested_at_three_scales_beside_one():
    blocks = {block.name: block for block in load_study("listwise").blocks}
    several = blocks["multi-scale"].recipe
    one = blocks["figure5"].recipe
    assert several.evaluation.scales
    assert one.evaluation.scales is None
    assert replace(several, evaluation=one.evaluation) == one
