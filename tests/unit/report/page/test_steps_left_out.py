"""Verbs called one by one: the report names those that read older files than there are now."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml
from hostile.run_targets import finish
from hostile.study_targets import small_study

from benchmark.__main__ import app
from benchmark.core.made_of import outdated_steps

STEPS = ("collect", "stats", "verdicts", "claims", "papers", "gallery", "tables", "plots")


def call(*verbs: str) -> None:
    for verb in verbs:
        app([verb, "x.yaml"], standalone_mode=False)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return the results of a small study after all steps but the page."""
    folder = tmp_path_factory.mktemp("steps")
    finish(folder / "results")
    study = small_study(seeds=[0], tables=["comparison"], figures=[])
    (folder / "x.yaml").write_text(yaml.safe_dump(study))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        call(*STEPS)
        yield folder / "results" / "x"


def change_scores(place: Path) -> None:
    scores = place / "scores.csv"
    scores.write_text(scores.read_text().replace(",0.5", ",0.6"))


def page(place: Path) -> str:
    call("report")
    return (place / "report" / "index.html").read_text().replace("&#39;", "'")


def test_the_page_names_the_steps_that_read_older_files(place, capsys):
    assert outdated_steps(place) == [] and "older files" not in page(place)
    before = (place / "scores.csv").read_bytes()
    change_scores(place)
    assert (place / "scores.csv").read_bytes() != before

    of_runs = ["stats", "verdicts", "claims", "papers", "gallery", "tables", "plots"]
    assert outdated_steps(place) == of_runs
    shown = page(place)
    words = "Made of older files than there are now: stats, verdicts, claims, papers, gallery, "
    assert words + "tables and plots." in shown
    assert "'python -m benchmark finish x' makes all of it again" in shown

    capsys.readouterr()
    call("tables")
    assert "made of older files than there are now: stats, verdicts" in capsys.readouterr().err

    call("stats", "claims", "papers", "gallery", "tables", "plots")
    assert outdated_steps(place) == ["verdicts"]
    call("verdicts")
    behind = outdated_steps(place)
    assert {"papers", "tables", "plots"} >= set(behind) and "verdicts" not in behind


def test_files_written_again_with_the_same_content_are_none(place):
    call(*STEPS)
    for path in [*place.glob("*.csv"), *place.glob("stats/*.csv")]:
        path.write_bytes(path.read_bytes())
    assert outdated_steps(place) == []


@pytest.mark.parametrize("damage", ["absent", "pipe", "bytes", "folder"])
def test_a_digest_that_cannot_be_read_says_nothing(damage, place):
    call("stats")
    path = place / "made_of" / "stats.txt"
    path.unlink()
    {
        "absent": lambda: None,
        "pipe": lambda: os.mkfifo(path),
        "bytes": lambda: path.write_bytes(b"\xff\n"),
        "folder": path.mkdir,
    }[damage]()
    try:
        assert "stats" not in outdated_steps(place)
    finally:
        path.rmdir() if damage == "folder" else path.unlink(missing_ok=True)
