"""Damaged files that one step derived and another reads: one message, and no traceback."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from benchmark.__main__ import app
from benchmark.core.errors import BenchmarkError
from hostile.run_targets import finish
from hostile.study_targets import small_study

STEPS = ("collect", "stats", "verdicts")


def call(verb: str) -> None:
    app([verb, "x.yaml"], standalone_mode=False)


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """Return a folder with a study of two runs, collected and judged."""
    folder = tmp_path_factory.mktemp("derived")
    finish(folder / "results")
    study = small_study(seeds=[0], tables=["comparison", "best_epoch", "cost"])
    (folder / "x.yaml").write_text(yaml.safe_dump(study))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for verb in STEPS:
            call(verb)
    return folder


@pytest.fixture
def place(good, tmp_path, monkeypatch) -> Path:
    """Return the results of the study in a copy of the folder, which is the working directory."""
    shutil.copytree(good, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    return Path("results", "x")


@pytest.mark.parametrize("verb", ["tables", "report"])
@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("stats/best_epoch.csv", "recall_at_1", "recall"),
        ("stats/costs.csv", "smooth_ap", ""),
        ("stats/summary.csv", "mean", "means"),
        ("stats/summary.csv", ",", ";"),
        ("stats/summary.csv", "0.5", "half"),
        ("provenance.json", "fingerprints", "prints"),
        ("provenance.json", "{", "["),
        ("runs.csv", "seed", "sprout"),
        ("verdicts.csv", "verdict", "word"),
    ],
)
def test_a_damaged_table_is_refused_or_shown_as_it_is(place, verb, file, old, new):
    path = place / file
    path.write_text(path.read_text().replace(old, new))
    try:
        call(verb)
    except BenchmarkError as error:
        assert "again" in str(error) and "results/x" in str(error)


def test_a_table_that_knows_other_losses_names_its_folder_and_the_place(place):
    path = place / "stats" / "best_epoch.csv"
    path.write_text(path.read_text().replace("recall_at_1", "recall"))
    with pytest.raises(BenchmarkError, match=r"results/x are damaged .*best_epoch\.py:\d+"):
        call("tables")
