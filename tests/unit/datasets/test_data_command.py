"""``python -m benchmark data check``: a dataset's parameters on the command line."""

from __future__ import annotations

import pytest
import typer
from PIL import Image
from typer.testing import CliRunner

from benchmark.cli.data import register
from benchmark.errors import ConfigError


@pytest.fixture
def app() -> typer.Typer:
    made = typer.Typer()
    register(made)
    made.command("other")(lambda: None)  # one group alone would lose its name
    return made


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
    rows = {line.split()[0]: line.split()[1:] for line in shown.output.splitlines()}
    assert rows["train"][:2] == ["4", "2"]
    assert rows["test"] == ["12", "6", "2"]


@pytest.mark.parametrize(
    ("params", "words"),
    [
        (["--param", "categories"], "KEY=VALUE"),
        (["--root", "x", "--param", "root=y"], "given twice"),
        (["--param", "split_seed=[1"], "not a YAML value"),
    ],
)
def test_a_malformed_parameter_says_what_is_expected(app, params, words):
    shown = CliRunner().invoke(app, ["data", "check", "folder", *params])
    assert shown.exit_code == 2
    assert words in shown.output


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
    arguments = ["data", "check", "folder", "--root", str(root), "--param", "categories=true", "--images"]
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 1
    assert str(path) in shown.output.replace("\n", "")
    assert "1 broken of 16 images" in shown.output
