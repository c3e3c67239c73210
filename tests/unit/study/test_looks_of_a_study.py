"""Looks of a study: the seeds of each, the file that says which it is at, and what is refused."""

from __future__ import annotations

import json
import re

import pytest
from typer.testing import CliRunner

from benchmark.__main__ import app
from benchmark.core.errors import ConfigError
from benchmark.core.records import RESULT
from benchmark.study import load_study
from benchmark.study.grid import expand, look_state

STUDY = """\
study: own
title: t
seeds: [0, 1, 2, 3, 4]
looks: {looks}
blocks:
  - name: main
    datasets: [glyphs_tiny]
    recipe: glyphs_smoke
    losses: [smooth_ap, fast_ap]
    batch_sizes: [32]
  - name: few
    datasets: [glyphs_tiny]
    recipe: glyphs_smoke
    losses: [roadmap]
    batch_sizes: [32]
    seeds: [7, 8, 9]
metrics: [recall_at_1]
comparison: {{baseline: smooth_ap}}
"""


@pytest.fixture
def study(tmp_path):
    def write(looks="[2, 5]"):
        path = tmp_path / "own.yaml"
        path.write_text(STUDY.format(looks=looks))
        return str(path)

    return write


def seeds_of(loaded, loss):
    return [run.spec.seed for run in expand(loaded).values() if run.spec.loss.name == loss]


def finish(loaded, results):
    """Make every run of the study look finished."""
    for run in expand(loaded).values():
        folder = results / run.spec.folder
        folder.mkdir(parents=True, exist_ok=True)
        result = {
            "schema": 1, "run_id": run.spec.run_id, "spec_digest": run.digest, "status": "diverged",
            "reason": "loss is nan", "epochs": 0, "steps": 1, "metrics": {"last": {}, "best": {}},
            "curve": [], "batch_stream": {"batches": 1, "sha256": "0" * 64},
            "dataset": {"name": "glyphs_tiny", "fingerprint": "f", "counts": {}},
            "code_version": "c",
        }  # fmt: skip
        (folder / RESULT).write_text(json.dumps(result))


def add_seeds(path, results, *options):
    """Return the error of the command and the numbers that it printed."""
    done = CliRunner().invoke(app, ["add-seeds", path, "--results", str(results), *options])
    return done.exception, re.findall(r"\d+", done.output)


def test_the_grid_has_the_seeds_of_the_first_look_and_blocks_keep_their_own(study):
    loaded = load_study(study())
    assert (loaded.seeds, loaded.planned_seeds) == ((0, 1), (0, 1, 2, 3, 4))
    assert seeds_of(loaded, "smooth_ap") == [0, 1]
    assert seeds_of(loaded, "roadmap") == [7, 8, 9]


def test_add_seeds_goes_on_only_when_every_run_has_ended_and_then_the_grid_follows(
    study, tmp_path, messages
):
    path = study()
    results = tmp_path / "results"
    first = load_study(path, results)
    messages(add_seeds(path, results)[0])
    finish(first, results)
    error, numbers = add_seeds(path, results)
    assert error is None
    assert {"2", "6"} <= {*numbers}, "look 2 of 2, 6 runs"
    second = load_study(path, results)
    assert seeds_of(second, "smooth_ap") == [0, 1, 2, 3, 4]
    assert seeds_of(second, "roadmap") == [7, 8, 9]
    assert second.digest != first.digest, "the steps behind the runs are made again"
    assert load_study(path).seeds == (0, 1), "another folder of results is at its first look"
    finish(second, results)
    messages(add_seeds(path, results)[0])
    assert look_state(second.folder(results))["look"] == 2


def test_an_unfinished_look_is_left_only_when_asked(study, tmp_path):
    path = study()
    error, numbers = add_seeds(path, tmp_path, "--partial")
    assert error is None
    assert "13" in numbers


def test_a_study_without_planned_looks_gets_no_more_seeds(tmp_path, messages):
    messages(add_seeds("smoke", tmp_path)[0])


@pytest.mark.parametrize("looks", ["[3, 2, 5]", "[2, 4]", "[1, 5]", "[5, 5]", "[2, x]", "3"])
def test_looks_that_are_no_plan_are_refused_with_what_is_allowed(study, looks):
    with pytest.raises(ConfigError, match="looks"):
        load_study(study(looks))
