"""``python -m benchmark data check`` and ``data list``: parameters, counts, broken images, exit
status."""

from __future__ import annotations

import archives
import pytest
import typer
from PIL import Image
from typer.testing import CliRunner

from benchmark.__main__ import app as whole_app
from benchmark.core.errors import ConfigError
from benchmark.datasets import DATASETS


@pytest.fixture
def app() -> typer.Typer:
    return whole_app


@pytest.fixture
def root(tmp_path):
    for category in "ab":
        for label in range(4):
            for number in range(2):
                path = tmp_path / "2024" / category / str(label) / f"{number}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.new("L", (8, 8), number).save(path)
    return tmp_path / "2024"


def test_parameters_reach_the_dataset_with_their_types(app, root, monkeypatch):
    monkeypatch.chdir(root.parent)  # '2024' is a directory name, not a number
    params = ["--param", "root=2024", "--param", "categories=true", "--param", "train_share=0.25"]
    shown = CliRunner().invoke(app, ["data", "check", "folder", *params], catch_exceptions=False)
    assert shown.exit_code == 0
    rows = {tuple(line.split()[:2]): line.split()[2:] for line in shown.output.splitlines()}
    assert rows["train", "images"] == ["4", "-", "-"]
    assert rows["test", "images"] == ["12", "-", "-"]
    assert rows["test", "classes"] == ["6", "-", "-"]
    assert rows["test", "categories"] == ["2", "-", "-"]


@pytest.mark.parametrize(
    ("params", "words"),
    [
        (["--param", "categories"], "KEY=VALUE"),
        (["--param", "split_seed=[1"], "expected"),
    ],
)
def test_a_malformed_parameter_says_what_is_expected(app, params, words):
    shown = CliRunner().invoke(app, ["data", "check", "folder", *params])
    assert isinstance(shown.exception, ConfigError) and words in str(shown.exception)


def test_a_misspelt_parameter_names_the_nearest(app, root):
    with pytest.raises(ConfigError, match="did you mean 'categories'"):
        CliRunner().invoke(
            app,
            ["data", "check", "folder", "--root", str(root), "--param", "categorie=true"],
            catch_exceptions=False,
        )


def test_broken_images_are_named_and_set_the_exit_status(app, root):
    path = root / "a" / "0" / "0.png"
    path.write_bytes(path.read_bytes()[:30])
    arguments = [
        "data",
        "check",
        "folder",
        "--root",
        str(root),
        "--param",
        "categories=true",
        "--images",
    ]
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 1
    assert str(path) in shown.output.replace("\n", "")
    assert "1 broken of 16 images" in shown.output


def test_every_image_is_decoded_once_and_in_several_threads_alike(app, tmp_path):
    archives.make_inshop(tmp_path)
    broken = sorted((tmp_path / "img").rglob("*.jpg"))[3:6]
    for path in broken:
        path.write_bytes(path.read_bytes()[:-200])
    arguments = ["data", "check", "inshop", "--root", str(tmp_path), "--images", "--allow-counts"]
    alone = CliRunner().invoke(app, [*arguments, "--workers", "1"])
    several = CliRunner().invoke(app, [*arguments, "--workers", "2"])
    assert alone.output == several.output
    assert (alone.exit_code, several.exit_code) == (1, 1)
    assert all(str(path) in alone.output for path in broken)
    assert "3 broken of 20 images" in alone.output


def test_a_box_beside_its_picture_is_a_broken_image(app, tmp_path):
    archives.make_roxford5k(tmp_path)
    archives.write_jpeg(tmp_path / "jpg" / "oxford_query_000000.jpg", 0, size=(3, 2))
    arguments = [
        "data",
        "check",
        "roxford5k",
        "--root",
        str(tmp_path),
        "--images",
        "--allow-counts",
    ]
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 1
    assert "1 broken of 11 images" in shown.output


@pytest.mark.parametrize("sets", [["roxford5k", "rparis6k"], ["rparis6k"]])
def test_the_counts_of_landmark_sets_are_checked_with_the_training_images(
    app, tmp_path, monkeypatch, sets
):
    for name in ("sfm120k", *sets):
        archives.MAKERS[name](tmp_path / name)
    monkeypatch.setattr(DATASETS["sfm120k"].target, "expected", {"train": {"images": 9}})
    arguments = [
        "data",
        "check",
        "sfm120k",
        "--root",
        str(tmp_path / "sfm120k"),
        "--param",
        f"landmarks={sets}",
    ]
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 1
    for name in sets:
        gallery = DATASETS[name].target.expected["gallery"]["images"]
        assert f"{name} query images: 3 instead of 70" in shown.output
        assert f"{name} gallery images: 8 instead of {gallery:,}" in shown.output
        counts = {"query": {"images": 3}, "gallery": {"images": 8}}
        monkeypatch.setattr(DATASETS[name].target, "expected", counts)
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 0, shown.output
    assert ("roxford5k" in shown.output) == ("roxford5k" in sets)


def test_the_published_counts_alone_give_exit_status_zero(app, tmp_path, monkeypatch):
    archives.make_sop(tmp_path)
    arguments = ["data", "check", "sop", "--root", str(tmp_path)]
    assert CliRunner().invoke(app, arguments).exit_code == 1
    counts = {"train": {"images": 8, "classes": 4}, "test": {"images": 8, "classes": 4}}
    monkeypatch.setattr(DATASETS["sop"].target, "expected", counts)
    assert CliRunner().invoke(app, arguments).exit_code == 0


def test_the_list_says_of_each_dataset_what_it_is_and_where_to_get_it(app):
    shown = CliRunner().invoke(app, ["data", "list"]).output
    told = {text.split()[0]: text for text in shown.split("\n\n")}
    assert set(told) == set(DATASETS.names())
    assert "train: 5,864 images, 100 classes" in told["cub"]
    assert "files, all needed: paris_1.tgz, paris_2.tgz, gnd_rparis6k.pkl" in told["rparis6k"]
    assert "files: none" in told["glyphs"]
    for name in archives.MAKERS:
        assert "from: http" in told[name]
