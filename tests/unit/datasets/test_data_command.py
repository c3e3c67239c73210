"""``python -m benchmark data check`` and ``data list``: parameters, counts, broken images, exit
status."""

from __future__ import annotations

import archives
import numpy as np
import pytest
from PIL import Image

from benchmark.core.errors import ConfigError
from benchmark.datasets import DATASETS


@pytest.fixture
def root(tmp_path):
    for category in "ab":
        for label in range(4):
            for number in range(2):
                path = tmp_path / "2024" / category / str(label) / f"{number}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.new("L", (8, 8), number).save(path)
    return tmp_path / "2024"


def test_parameters_reach_the_dataset_with_their_types(command, root, monkeypatch):
    monkeypatch.chdir(root.parent)  # '2024' is a directory name, not a number
    params = ["--param", "root=2024", "--param", "categories=true", "--param", "train_share=0.25"]
    shown = command("check", "folder", *params)
    rows = {tuple(line.split()[:2]): line.split()[2:] for line in shown.splitlines()}
    assert rows["train", "images"] == ["4", "-", "-"]
    assert rows["test", "images"] == ["12", "-", "-"]
    assert rows["test", "classes"] == ["6", "-", "-"]
    assert rows["test", "categories"] == ["2", "-", "-"]


@pytest.mark.parametrize(
    ("param", "words"),
    [
        ("categories", "KEY=VALUE"),
        ("split_seed=[1", "expected"),
        ("categorie=true", "did you mean 'categories'"),
    ],
)
def test_a_wrong_parameter_says_what_is_expected(command, root, param, words):
    with pytest.raises(ConfigError, match=words):
        command("check", "folder", "--root", root, "--param", param)


def test_pictures_of_few_bits_are_a_warning_and_no_fault(command, root):
    params = ["--root", root, "--param", "categories=true", "--images"]
    assert "warning" not in command("check", "folder", *params)
    Image.fromarray(np.full((8, 8), 4000, np.uint16)).save(root / "b" / "3" / "1.png")
    shown = command("check", "folder", *params)
    assert "warning: 1 pictures of 16 bits hold numbers of 14 bits or fewer" in shown
    assert "\n      b/3/1.png\n0 broken of 16 images" in shown


def test_every_image_is_decoded_once_and_in_several_threads_alike(command, tmp_path):
    archives.make_inshop(tmp_path)
    broken = sorted((tmp_path / "img").rglob("*.jpg"))[3:6]
    for path in broken:
        path.write_bytes(path.read_bytes()[:-200])
    arguments = ["check", "inshop", "--root", tmp_path, "--images", "--allow-counts"]
    shown = command(*arguments, "--workers", 1, status=1)
    assert shown == command(*arguments, "--workers", 2, status=1)
    assert all(str(path) in shown for path in broken)
    assert "3 broken of 20 images" in shown


def test_a_box_beside_its_picture_is_a_broken_image(command, tmp_path):
    archives.make_roxford5k(tmp_path)
    archives.write_jpeg(tmp_path / "jpg" / "oxford_query_000000.jpg", 0, size=(3, 2))
    arguments = ["check", "roxford5k", "--root", tmp_path, "--images", "--allow-counts"]
    assert "1 broken of 11 images" in command(*arguments, status=1)


@pytest.mark.parametrize("sets", [["roxford5k", "rparis6k"], ["rparis6k"]])
def test_the_counts_of_landmark_sets_are_checked_with_the_training_images(
    command, tmp_path, monkeypatch, sets
):
    for name in ("sfm120k", *sets):
        archives.MAKERS[name](tmp_path / name)
    monkeypatch.setattr(DATASETS["sfm120k"].target, "expected", {"train": {"images": 9}})
    arguments = ["check", "sfm120k", "--root", tmp_path / "sfm120k", "--param", f"landmarks={sets}"]
    shown = command(*arguments, status=1)
    for name in sets:
        gallery = DATASETS[name].target.expected["gallery"]["images"]
        assert f"{name} query images: 3 instead of 70" in shown
        assert f"{name} gallery images: 8 instead of {gallery:,}" in shown
        counts = {"query": {"images": 3}, "gallery": {"images": 8}}
        monkeypatch.setattr(DATASETS[name].target, "expected", counts)
    assert ("roxford5k" in command(*arguments)) == ("roxford5k" in sets)


def test_the_list_says_of_each_dataset_what_it_is_and_where_to_get_it(command):
    told = {text.split()[0]: text for text in command("list").split("\n\n")}
    assert set(told) == set(DATASETS.names())
    assert "train: 5,864 images, 100 classes" in told["cub"]
    assert "files, all needed: paris_1.tgz, paris_2.tgz, gnd_rparis6k.pkl" in told["rparis6k"]
    assert "files: none" in told["glyphs"]
    for name in archives.MAKERS:
        assert "from: http" in told[name]
