"""A paper's study on its stand-in, from the first run to the report: what everybody without the
archives does first."""

from __future__ import annotations

import csv
import os
import subprocess
import sys

import pytest
from workplace import LOCAL, ROOT

from benchmark.study import load_study
from benchmark.study.grid import expand

pytestmark = pytest.mark.stress

STUDY, DATASET = "smooth_ap", "glyphs_1k"
NAME = f"{STUDY}-on-{DATASET}"
SECONDS = 900  # a minute of computing on two free cores, several on busy ones


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Returns the study's results folder after a whole workflow."""
    place = tmp_path_factory.mktemp("stand_in")
    command = [
        sys.executable,
        "-m",
        "snakemake",
        "--snakefile",
        str(ROOT / "Snakefile"),
        "--profile",
        str(LOCAL),
    ]
    command += ["--config", f"study={STUDY}", f"dataset={DATASET}"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command,
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return place / "results" / NAME


def test_every_run_of_the_stand_in_finishes(folder):
    with open(folder / "runs.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["status"] for row in rows} == {"ok"}
    assert {row["run_id"] for row in rows} == set(expand(load_study(NAME)))
    assert {row["dataset"] for row in rows} == {DATASET}


def test_every_page_says_that_it_is_a_stand_in(folder):
    text = (folder / "report" / "index.html").read_text()
    assert f"Stand-in data: every run used {DATASET}" in text and "it reproduces nothing" in text
    papers = sorted(folder.glob("tables/smoothap2020_*.html"))
    assert [path.stem.partition("_")[2] for path in papers] == ["table2", "table3", "tableS1"], (
        "4 and 5 are faces"
    )
    for path in papers:
        caption = path.read_text()
        assert f"stand-in data ({DATASET})" in caption and "no reproduction" in caption, path.name


def test_no_number_of_a_stand_in_is_judged_and_its_tables_are_filled(folder):
    for path in folder.glob("tables/smoothap2020_*.csv"):
        assert not {"reproduced", "drifted"} & set(path.read_text().replace(",", " ").split()), (
            path.name
        )
    with open(folder / "tables" / "smoothap2020_tableS1.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    ours = [key for key in rows[0] if key.endswith(" ours")]
    assert len(rows) == 3 and len(ours) == 2, "the backbone's and the loss's time of three losses"
    assert all(float(row[key]) > 0 for row in rows for key in ours)
