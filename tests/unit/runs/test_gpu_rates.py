"""GPU-hours follow from measured rates, from what samplers make and datasets have."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmark.core.options import build
from benchmark.core.records import DatasetChoice
from benchmark.input.samplers import SAMPLERS, create_sampler
from benchmark.runs.plan import plan_text
from benchmark.runs.rates import hours_of, images_of, rate_of, rates, tf32_gain
from benchmark.study import load_study

CLASSES = 24
IMAGES = 20
CATEGORIES = 4
SIZE = 16
MADE = [
    ("random", {}),
    ("m_per_class", {"samples_per_class": 4}),
    ("class_windows", {}),
    ("category_pairs", {"samples_per_class": 4, "batches_per_pair": 3}),
    ("category_pairs", {"samples_per_class": 4, "largest": 3}),
    ("category_windows", {"batches_per_pair": 2, "nb_categories": 1}),
    ("category_windows", {"batches_per_pair": 2, "nb_categories": 4}),
]


def spec_of(study: str, block: str, **changes):
    spec = next(next(each for each in load_study(study).blocks if each.name == block).specs())
    training = replace(spec.recipe.training, **changes.pop("training", {}))
    model = replace(spec.recipe.model, **changes.pop("model", {}))
    recipe = replace(spec.recipe, training=training, model=model)
    return replace(spec, recipe=recipe, **changes)


@pytest.mark.parametrize(("name", "params"), MADE)
def test_a_sampler_says_how_many_images_its_epochs_have(name, params):
    labels = np.repeat(np.arange(CLASSES), IMAGES)
    made = create_sampler(
        name, params, labels=labels, categories=labels % CATEGORIES, batch_size=SIZE, seed=0
    )
    target = SAMPLERS[name].target
    config = build(target.Config, params, name)
    said = target.images_of_epoch(config, SIZE, len(labels), CATEGORIES)
    assert said == pytest.approx(sum(map(len, made.epoch(1))), abs=SIZE)


def test_hours_are_images_over_rates():
    sop = next(
        s for b in load_study("roadmap").blocks for s in b.specs() if s.dataset.name == "sop"
    )
    spec = replace(sop, batch_size=128)
    row = rate_of(spec)
    assert (row.network, row.precision, row.image_size, row.at_once) == (
        "resnet50", "float16", 224, 128,
    )  # fmt: skip
    # 12 categories make 66 pairs of ten batches; tests after every fifth of 100 epochs
    assert images_of(spec) == (100 * 66 * 10 * 128, 20 * 60_502)
    hours = hours_of([spec, spec])
    assert hours.training == pytest.approx(2 * 100 * 66 * 10 * 128 / row.images_s / 3600)
    assert hours.evaluation == pytest.approx(2 * 20 * 60_502 / row.evaluation_images_s / 3600)
    assert not hours.guessed
    assert not hours.left_out
    assert not hours.by_tf32


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"batch_size": 96}, "resnet50 float16 224 pixels, 96 at once"),
        ({"training": {"precision": "bfloat16"}}, "resnet50 bfloat16 224 pixels, 224 at once"),
        ({"training": {"micro_batch": 16}}, "resnet50 float16 224 pixels, 16 at once parts"),
    ],
)
def test_what_no_row_has_is_guessed_from_the_nearest_and_named(changes, words):
    spec = spec_of("roadmap", "figure4", **changes)
    hours = hours_of([spec] * 3)
    assert dict(hours.guessed) == {words: 3}
    assert hours.training > 0


def test_what_is_not_known_is_left_out_and_named():
    whole = spec_of("roadmap", "figure4")
    specs = [
        replace(whole, dataset=DatasetChoice("mine", "folder", {"root": "photographs"})),
        spec_of("roadmap", "figure4", model={"backbone": "resnext50_32x4d.a1_in1k"}),
        spec_of("roadmap", "figure4", model={"freeze_backbone": True}),
    ]
    hours = hours_of(specs)
    assert not hours.training
    assert not hours.evaluation
    assert dict(hours.left_out) == {
        "no published number of training images of mine": 1,
        "no rate of resnext50_32x4d.a1_in1k": 1,
        "heads on frozen backbones": 1,
    }


def test_a_network_without_epochs_costs_one_evaluation():
    spec = spec_of("roadmap", "figure4", training={"epochs": 0})
    hours = hours_of([spec])
    assert hours.training == 0
    assert hours.evaluation == pytest.approx(136_093 / rate_of(spec).evaluation_images_s / 3600)


def test_tf32_saves_what_its_measured_gain_says():
    assert tf32_gain("resnet50") == pytest.approx(2035 / 720)
    assert tf32_gain("googlenet") == 1.0
    spec = spec_of("roadmap", "figure4", training={"precision": "float32"})
    hours = hours_of([spec])
    assert hours.by_tf32 == pytest.approx(hours.training * (1 - 720 / 2035))


def test_a_plan_has_the_hours_beside_those_that_are_asked_for(tmp_path):
    text = plan_text(load_study("roadmap"), tmp_path)
    for words in ("9,024 GPU-hours", "NVIDIA H200", "tf32", "at rates"):
        assert words in text
    assert "at rates" not in plan_text(load_study("smoke"), tmp_path)


def test_every_network_that_a_papers_study_trains_has_its_own_row():
    for study in ("roadmap", "smooth_ap", "fast_ap", "listwise"):
        specs = (spec for block in load_study(study).blocks for spec in block.specs())
        assert not hours_of(specs).guessed, study


def test_every_row_has_a_source_and_a_rate():
    assert all(row.source and row.images_s > 0 and row.evaluation_images_s > 0 for row in rates())
