"""Faults planted in a loop that is not ours are named, and a right loop is not accused."""

from __future__ import annotations

import pytest
from faults import FAULTS, TEMPERATURES
from planted import LOSSES, train

from benchmark.core.options import build, defaults_of
from benchmark.core.recipe import Recipe
from benchmark.core.records import LossChoice
from benchmark.losses.catalogue import load_catalogue
from benchmark.replay.comparison import against_recipe
from benchmark.replay.findings import CAUSES
from benchmark.replay.trace import read_trace

OF_OPTIMISER = ("backward", "update")  # parts whose faults are also planted in a hidden optimiser
NOT_PLANTED = {"other_images", "other_labels", "other_categories"}  # test_images_of_a_trace.py


def recipe_of(loss: str, sections: dict) -> Recipe:
    recipe = {
        "model": {
            "backbone": "test_resnet",
            "channels": 3,
            "embedding_dim": 16,
            "freeze_batch_norm": True,
        },
        "input": {"augmentation": "none", "image_size": 16},
        "optimizer": {
            "name": "adam",
            "lr": 1e-3,
            "head_lr_multiplier": 2.0,
            "weight_decay": 1e-2,
            "proxy_lr_multiplier": 10.0,
        },
        "sampler": {"name": "m_per_class", "params": {"samples_per_class": 4}},
        "training": {"epochs": 5},
    }
    if loss == "cosine_contrastive":
        recipe["memory"] = {"size": 60, "key": "fifo"}
    for name, values in sections.items():
        recipe[name] = {**recipe.get(name, {}), **values}
    return build(Recipe, recipe, "recipe")


def judged(folder, loss: str, sections: dict | None = None, **fault) -> list:
    trace = read_trace(train(folder / "trace.pt", loss, **fault))
    assert trace.problems == []
    choice = LossChoice(loss, loss, defaults_of(load_catalogue()[loss].config))
    return list(against_recipe(trace, recipe_of(loss, sections or {}), choice, 24))


def causes(found: list) -> list[str]:
    return [finding.cause for finding in found if finding.outcome == "differs"]


def planted_pairs() -> list[tuple]:
    """Returns (cause, loss, fault, sections of the recipe, whether the optimiser is hidden)."""
    pairs = []
    for cause, (losses, sizes) in FAULTS.items():
        hidden = (False, True) if CAUSES[cause].part in OF_OPTIMISER else (False,)
        pairs += [
            (cause, loss, fault, sections, each)
            for loss in losses
            for fault, sections in sizes
            for each in hidden
        ]
    for loss, values in TEMPERATURES.items():
        key = "other_temperature_or_margin"
        pairs += [(key, loss, {"options": each}, {}, False) for each in values]
    return pairs


PAIRS = planted_pairs()
# One of each cause; the losses and the optimisers take turns.
QUICK = [
    [pair for pair in PAIRS if pair[0] == cause][number % sum(p[0] == cause for p in PAIRS)]
    for number, cause in enumerate(dict.fromkeys(pair[0] for pair in PAIRS))
]


def name_of(pair: tuple) -> str:
    cause, loss, fault, sections, hidden = pair
    return f"{cause}-{loss}-{fault or sections}{'-hidden' * hidden}"


def check(folder, pair: tuple) -> None:
    cause, loss, fault, sections, hidden = pair
    found = judged(folder, loss, sections, hidden=hidden, **fault)
    assert causes(found)[:1] == [cause], found


@pytest.mark.parametrize("pair", QUICK, ids=name_of)
def test_a_planted_cause_is_named_first(tmp_path, pair):
    check(tmp_path, pair)


@pytest.mark.long
@pytest.mark.parametrize("pair", PAIRS, ids=name_of)
def test_every_planted_cause_is_named_first(tmp_path, pair):
    check(tmp_path, pair)


def test_every_cause_of_the_table_is_planted():
    assert {pair[0] for pair in PAIRS} == set(CAUSES) - NOT_PLANTED


def not_accused(folder, seed: int) -> None:
    loss = list(LOSSES)[seed % 3]
    found = judged(folder, loss, seed=seed, autocast=seed % 4 == 1, hidden=seed % 4 == 2)
    assert causes(found) == [], found
    assert [x.outcome for x in found if x.part in ("loss", "gradient")] == ["equal"] * 2


@pytest.mark.parametrize("seed", range(6))
def test_a_right_loop_is_not_accused(tmp_path, seed):
    not_accused(tmp_path, seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 160))
def test_a_right_loop_is_never_accused(tmp_path, seed):
    not_accused(tmp_path, seed)


def test_a_loss_that_computes_in_half_precision_is_not_accused(tmp_path):
    found = judged(tmp_path, "smooth_ap", autocast=True, low=True)
    assert causes(found) == []


@pytest.mark.parametrize(
    ("fault", "both"),
    [
        (
            {"options": {"tau": 0.02}, "head": 5.0},
            ["other_temperature_or_margin"] * 2 + ["rate_of_head"],
        ),
        ({"order": [2, 1, 0], "norms": True}, ["channel_order", "batch_norms_not_frozen"]),
        ({"head": 5.0, "clip": 0.01}, ["clipping", "rate_of_head"]),
        (
            {"options": {"tau": 0.02}, "lost": "queries"},
            ["other_temperature_or_margin", "gradient_of_gathered_rows_lost"],
        ),
        ({"rate": 3.0, "decoupled": True}, ["learning_rate", "decoupled_decay"] * 2),
    ],
    ids=str,
)
def test_of_two_causes_both_are_named_or_the_second_is_not_decided(tmp_path, fault, both):
    found = judged(tmp_path, "smooth_ap", **fault)
    unexplained = any(x.outcome == "differs" and "not decided" in x.says for x in found)
    assert causes(found) == both or unexplained, found


def test_a_value_that_was_found_is_said(tmp_path):
    (found, *_) = (x for x in judged(tmp_path, "smooth_ap", options={"tau": 0.02}) if x.cause)
    assert found.says.endswith("option of the loss: tau 0.02")
    found = judged(tmp_path, "smooth_ap", decay=0.0)
    assert {x.says for x in found if x.cause} == {"the weight decay is 0, not 0.01"}


def test_the_state_of_an_optimiser_that_goes_on_is_not_decided(tmp_path):
    found = judged(tmp_path, "smooth_ap", filled=True)
    updates = [x for x in found if x.part.startswith("update")]
    assert [x.outcome for x in updates] == ["not decided"] * 2
    assert "lr 0.001" in updates[0].says
