"""Each item of the papers ends as done, stated, or left out for a reason."""

from __future__ import annotations

import csv
import re
from dataclasses import asdict

import pytest
from pages import ROOT

from benchmark.analyses import ANALYSES
from benchmark.study.recipes import overlay, read_recipe

FILE = ROOT / "docs" / "background" / "papers_items.csv"
ITEMS = 158
MARKS = {"E", "A", "a", "P", "M", "n", "outside"}
# How an item ends, by its mark of today.
ENDS = {
    "E": r"done",
    "A": r"stated",
    "P": r"(done|left out, because .+)",
    "M": r"(left out, because .+)",
    "n": r"left out, because .+",
    "outside": r"left out, because .+",
}
# Words of a recipe in the last column; the values that the paper states for such rows follow.
OF_RECIPES = re.compile(r"recipes|sampler \w|option \w|training\.\w|model\.\w|evaluation\.\w")
FAST_AP = "fast_ap_{sop,inshop,vehicleid}_{resnet18,resnet50}"
LISTWISE = "listwise_{landmarks_clean,sfm120k}_resnet101"
VALUES = {
    "47": {
        "smooth_ap_inaturalist_resnet50": {
            "losses.fast_ap.bins": 20,
            "losses.blackbox_ap.lambda_val": 4.0,
            "losses.blackbox_ap.margin": 0.02,
            "optimizer.head_lr_multiplier": 2.0,
        },
        "smooth_ap_inaturalist_fast_ap": {"losses.fast_ap.bins": 20},
    },
    "59": {
        "fast_ap_sop_{resnet18,resnet50,googlenet}": {
            "sampler.name": "category_windows",
            "sampler.params.batches_per_pair": 5,
        },
        "fast_ap_inshop_{resnet18,resnet50,googlenet}": {
            "sampler.name": "category_windows",
            "sampler.params.batches_per_pair": 2,
        },
    },
    "61": {FAST_AP: {"options.random.sampler.name": "class_windows"}},
    "67": {
        FAST_AP: {
            "model.embedding_dim": 512,
            "optimizer.name": "adam",
            "optimizer.lr": 1e-5,
            "optimizer.head_lr_multiplier": 10.0,
            "optimizer.weight_decay": 0.0,
            "input.resize": 256,
            "input.image_size": 224,
            "input.train_resize": "square",
            "input.crop": "random",
            "input.flip": True,
        },
        "fast_ap_{sop,inshop,vehicleid}_resnet18": {"model.backbone": "resnet18.tv_in1k"},
        "fast_ap_{sop,inshop,vehicleid}_resnet50": {"model.backbone": "resnet50.tv_in1k"},
    },
    "68": {FAST_AP: {"model.head_init": "he_normal"}},
    "93": {LISTWISE: {"training.micro_batch": 16, "training.staged": False}},
    "95": {
        LISTWISE: {
            "model.pooling": "gem",
            "optimizer.name": "adam",
            "optimizer.lr": 1e-4,
            "optimizer.weight_decay": 1e-6,
            "schedule.name": "linear",
            "input.image_size": 800,
            "input.native_size": True,
        },
    },
    "97": {LISTWISE: {"sampler.name": "all_classes"}},
    "101": {LISTWISE: {"options.uniform.losses.softbin_ap.query_weights": "uniform"}},
    "102": {LISTWISE: {"options.tie_aware.losses.softbin_ap.ties": "aware"}},
    "106": {LISTWISE: {"evaluation.whitening": 2048, "evaluation.whitening_power": 0.25}},
    "112": {"listwise_landmarks_clean_triplets": {"training.epochs": 8192 // 64}},
    "116": {LISTWISE: {"evaluation.query_expansion": {"alpha": 2.0, "k": 10}}},
    "119": {
        "listwise_released_resnet101": {
            f"options.{name}.model.checkpoint": f"checkpoints/{file}.pth"
            for name, file in {
                "resnet50": "Resnet50-AP-GeM",
                "lm18": "Resnet101-AP-GeM-LM18",
                "tl_gem": "Resnet101-TL-GeM",
                "tl_mac": "Resnet101-TL-MAC",
            }.items()
        }
    },
    "150": {
        "roadmap_{cub,sop,inaturalist,sfm120k}_deit_s": {
            "model.backbone": "deit_small_distilled_patch16_224.fb_in1k"
        }
    },
}
PATH = re.compile(r"(?:benchmark|docs|tests|workflow)/[\w/.]+")


@pytest.fixture(scope="module")
def items():
    with open(FILE, newline="") as stream:
        return list(csv.DictReader(stream))


def test_every_item_has_one_row_in_the_order_of_the_papers(items):
    assert [int(row["item"]) for row in items] == list(range(1, ITEMS + 1))
    papers = list(dict.fromkeys(row["paper"] for row in items))
    assert papers == ["Smooth-AP", "FastAP", "SoftBinAP", "ROADMAP"]
    assert all(row["printed_in"] and row["what"] for row in items)


def test_an_item_ends_as_its_mark_of_today_says(items):
    wrong = [
        row["item"]
        for row in items
        if row["before"] not in MARKS
        or not re.fullmatch(ENDS.get(row["today"], "never"), row["outcome"])
    ]
    assert wrong == [], "no item rests on an assumption that is not stated"


def test_what_is_done_or_stated_says_where_and_that_exists(items):
    for row in items:
        if row["outcome"] in ("done", "stated"):
            assert row["where"], row["item"]
        for path in PATH.findall(row["where"]):
            assert (ROOT / path.rstrip(".")).exists(), row
        if named := re.match(r"analyse (\w+)", row["where"]):
            assert named[1] in ANALYSES.names(), row


def expanded(name):
    """Return the names that "a_{b,c}" stands for."""
    found = re.search(r"{([^}]+)}", name)
    if not found:
        return [name]
    return [
        each for part in found[1].split(",") for each in expanded(name.replace(found[0], part, 1))
    ]


def value_of(recipe, key):
    """Return the value of a recipe, of its losses or of one of its options."""
    file = read_recipe(recipe, ROOT / "workflow" / "config" / "smoke.yaml")
    value = {**asdict(overlay(file, {})), "losses": file.losses, "options": file.options}
    for part in key.split("."):
        value = value[part]
    return value


def test_a_row_called_exact_that_names_a_recipe_has_its_values_in_it(items):
    exact = {row["item"] for row in items if row["today"] == "E"}
    named = {row["item"] for row in items if OF_RECIPES.search(row["where"])}
    assert exact & named <= set(VALUES)
    assert set(VALUES) <= exact
    wrong = []
    for item, recipes in VALUES.items():
        for name, values in recipes.items():
            for recipe in expanded(name):
                for key, stated in values.items():
                    ours = value_of(recipe, key)
                    if ours != stated:
                        wrong.append(f"{item}: {recipe} {key} is {ours}, stated {stated}")
    assert wrong == []


def test_the_count_of_each_mark_changes_with_its_rows_alone(items):
    marks = [row["today"] for row in items]
    counts = {mark: marks.count(mark) for mark in MARKS}
    assert counts == {"E": 92, "A": 43, "a": 0, "P": 12, "M": 4, "n": 6, "outside": 1}
