"""Numbers and labels of a trace are held against the dataset that they count."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial

import pytest
import torch
from archives import save
from test_replayed_faults import NOT_PLANTED, recipe_of
from tiny_runs import tiny_spec, write_spec_in

from benchmark.datasets import load_dataset
from benchmark.replay.findings import CAUSES
from benchmark.replay.numbering import images_finding
from benchmark.replay.recorder import Recorder
from benchmark.replay.trace import Trace
from benchmark.training.run import train

BATCHES = 4
SIZE = 24
PAIRS = {"sampler": {"name": "category_pairs", "params": {"samples_per_class": 4}}}


@pytest.fixture(scope="module")
def glyphs():
    return load_dataset("glyphs_tiny").train


@pytest.fixture(scope="module")
def classes(tmp_path_factory):
    root = tmp_path_factory.mktemp("classes")
    for label in range(16):
        for number in range(12):
            save(root / f"class {label}" / f"{number}.png", 15 * label)
    return load_dataset("folder", {"root": str(root)}).train


def trace_of(images, *, shift: int = 0, changed: int = 0, reordered: bool = False) -> Trace:
    """Returns an epoch whose labels have other names than those of the images."""
    generator = torch.Generator().manual_seed(0)
    order = torch.randperm(len(images), generator=generator)
    numbers = order[: BATCHES * SIZE]
    labels = 100 - torch.tensor(images.labels)[numbers]
    labels[:changed] += 1
    if reordered:
        numbers = numbers.roll(1)
    given = {"labels": labels, "numbers": numbers + shift, "sizes": [SIZE] * BATCHES}
    return Trace(1, "", 1, 1, 64, {}, [], **given)


def found(images, sections: dict | None = None, **options):
    return images_finding(
        trace_of(images, **options), recipe_of("smooth_ap", sections or {}), images
    )


@pytest.mark.parametrize("name", ["glyphs", "classes"])
def test_right_images_of_an_embedded_dataset_and_of_class_folders_are_equal(name, request):
    images = request.getfixturevalue(name)
    finding = found(images)
    assert finding.outcome == "equal"
    assert finding.says.startswith(f"96 of the {len(images)} images")


@pytest.mark.parametrize(
    ("cause", "options"),
    [
        ("other_images", {"shift": 10_000}),
        ("other_images", {"shift": -10_000}),
        ("other_labels", {"changed": 1}),
        ("other_labels", {"changed": 20}),
        ("other_categories", {"sections": PAIRS}),
    ],
)
def test_other_images_labels_and_super_labels_are_named(glyphs, cause, options):
    finding = found(glyphs, **options)
    assert (finding.outcome, finding.cause) == ("differs", cause)


def test_all_causes_of_images_are_tried_here():
    of_images = {key for key, cause in CAUSES.items() if cause.part == "images"}
    assert of_images == {"other_images", "other_labels", "other_categories"}
    assert of_images <= NOT_PLANTED


def test_numbers_in_another_order_accuse_nobody(glyphs, classes):
    assert found(glyphs, reordered=True).outcome == "not decided"
    assert found(classes, reordered=True).outcome == "not decided"


def test_a_run_of_the_suite_has_the_images_of_its_dataset(tmp_path):
    path = tmp_path / "trace.pt"
    spec = write_spec_in(tmp_path, tiny_spec())
    train(spec, recorder=partial(Recorder, path, steps=1))
    command = [sys.executable, "-m", "benchmark", "replay", path, "--as", spec, "--json"]
    command += ["--dataset", "glyphs_tiny"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = json.loads(answer)["rows"]
    assert [row["outcome"] for row in rows if row["part"] == "images"] == ["equal"]
