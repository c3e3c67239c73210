"""Following the page about papers ends in verdicts and the printed table."""

from __future__ import annotations

import runpy
import sys

import numpy as np
import pytest
import torch
from pages import ROOT, blocks, followed, write_files
from paper_folders import load_paper

from benchmark.models.weights import read_checkpoint
from benchmark.study import load_study
from benchmark.verdicts.coverage import MISSING, coverage

PAGE = blocks(ROOT / "docs" / "papers.md")


def test_the_papers_folder_is_valid_and_the_study_has_a_run_for_each_number(tmp_path, monkeypatch):
    write_files(PAGE, tmp_path)
    folder = tmp_path / "my_papers"
    paper = load_paper(folder / "glyphs2030")
    assert len(paper.numbers) == 4
    assert list(paper.tables) == ["table1"]
    assert len(paper.claims) == 1
    monkeypatch.setenv("BENCHMARK_PLUGINS", str(folder))
    table = coverage([load_study(str(folder / "glyphs_check.yaml"))], tmp_path)
    own = table[table["paper"] == "glyphs2030"]
    assert len(own) == 4
    assert MISSING not in set(own["state"])


class Harmful:
    """Stands for the scikit-learn object of the authors' file: reading it runs code."""

    def __reduce__(self):
        return (print, ("code of the file runs",))


@pytest.fixture
def script(tmp_path, monkeypatch, capsys):
    """Return a function that runs a script of the page, and returns what it printed."""
    write_files(PAGE, tmp_path)
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> str:
        monkeypatch.setattr(sys, "argv", [*words])
        runpy.run_path(words[0], run_name="__main__")
        return capsys.readouterr().out

    return run


@pytest.mark.parametrize("zipped", [True, False])
def test_the_tensors_of_a_released_file_are_read_without_its_code(tmp_path, zipped, script):
    weights = {"module.conv1.weight": torch.randn(2, 3), "adpool.p": torch.tensor([3.0])}
    content = {"state_dict": weights, "pca": Harmful(), "mean": np.arange(3.0)}
    torch.save(content, tmp_path / "a.pt", _use_new_zipfile_serialization=zipped)
    assert "code of the file runs" not in script("tensors.py", "a.pt", "b.pth")
    read = read_checkpoint(str(tmp_path / "b.pth"))
    assert torch.equal(read["conv1.weight"], weights["module.conv1.weight"])


@pytest.mark.parametrize(("moved", "words"), [(0.0, "was fixed"), (0.5, "was trained")])
def test_running_means_of_a_released_file_are_compared_with_imagenets(
    tmp_path, moved, words, script
):
    imagenet = {"bn1.running_mean": torch.randn(4), "bn1.weight": torch.randn(4)}
    released = {
        "module.bn1.running_mean": imagenet["bn1.running_mean"] + moved,
        "module.bn1.weight": torch.randn(4),
    }
    torch.save(imagenet, tmp_path / "imagenet.pth")
    torch.save(released, tmp_path / "released.pth")
    assert f"batch norm {words}" in script("same_means.py", "released.pth", "imagenet.pth")


@pytest.mark.stress
def test_following_the_page_gives_verdicts_and_the_printed_table(tmp_path):
    copy, _ = followed(PAGE, tmp_path)
    verdicts = (copy / "results" / "glyphs_check" / "verdicts.csv").read_text()
    assert verdicts.count("glyphs2030") == 4
    report = (copy / "results" / "glyphs_check" / "report" / "index.html").read_text()
    assert "FastAP retrieves better than SmoothAP." in report
