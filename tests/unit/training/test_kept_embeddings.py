"""``evaluation.keep_embeddings``: a run keeps its rows, and ``score`` gives its scores again."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny_runs import tiny_spec, write_spec_in
from typer.testing import CliRunner

from benchmark.__main__ import app
from benchmark.core.errors import BenchmarkError
from benchmark.core.records import (
    KEPT_ROWS,
    QUERIES,
    RESULT,
    SPEC,
    RunSpec,
    digest_of,
    settings_of,
)
from benchmark.datasets import load_dataset
from benchmark.datasets.base import Judgements, Protocol
from benchmark.metrics import retrieval_metrics
from benchmark.runs.folders import settle, write_specs
from benchmark.study import load_study
from benchmark.study.grid import Run, expand
from benchmark.training.evaluate import EmbeddedProtocol
from benchmark.training.run import train, write_embeddings

KEEP = {"evaluation": {"keep_embeddings": True}}


def call(*words):
    done = CliRunner().invoke(app, ["score", *map(str, words)])
    if isinstance(done.exception, BenchmarkError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of a finished run that kept its embeddings, where a study would have it."""
    spec = tiny_spec(**KEEP)
    folder = tmp_path_factory.mktemp("results") / spec.folder
    folder.mkdir(parents=True)
    train(write_spec_in(folder, spec))
    return folder


def recorded(folder):
    return json.loads((folder / RESULT).read_text())["metrics"]["last"]["test"]


def test_what_is_kept_gives_the_scores_of_the_result_to_the_last_bit(
    folder,
):
    with np.load(folder / KEPT_ROWS.format("test")) as kept:
        assert kept["embeddings"].dtype == np.float32
        again = retrieval_metrics(kept["embeddings"], kept["labels"], recall_at=(1, 10))
    assert again == recorded(folder)


def test_a_run_has_a_line_for_each_protocol_and_its_own_twice(folder):
    table = {line.split()[2]: line.split()[3:] for line in call("--run", folder).splitlines()[1:]}
    own = [f"{100 * value:.2f}" for value in recorded(folder).values()]
    assert len(own) == 4
    assert table[RESULT] == own
    assert {"others", "itself_hit", "one_per_class"} <= set(table)
    assert set(own) < set(table["others"])


def test_the_file_of_a_run_is_a_file_like_others(folder):
    output = call(
        folder / KEPT_ROWS.format("test"),
        "--published",
        "50",
        "--metric",
        "mAP",
    )
    assert output.startswith("Printed mAP 50")
    assert "not used" not in output


def test_the_option_is_in_no_digest_and_in_no_table(folder, tmp_path):
    plain = tiny_spec()
    keeping = RunSpec.read(folder / SPEC)
    assert keeping.recipe.evaluation.keep_embeddings
    assert keeping.digest == plain.digest == digest_of(folder / SPEC)
    assert settings_of(keeping) == settings_of(plain)
    assert not any("keep_embeddings" in name for name in settings_of(plain))
    alone = tmp_path / "plain"
    alone.mkdir()
    train(write_spec_in(alone, plain))
    for name in (RESULT, QUERIES):
        assert (alone / name).read_bytes() == (folder / name).read_bytes()
    assert not [*alone.glob(KEPT_ROWS.format("*"))]


def test_a_new_training_leaves_no_rows_of_an_earlier_one(tmp_path):
    stale = tmp_path / KEPT_ROWS.format("test")
    stale.write_bytes(b"of an earlier specification")
    train(write_spec_in(tmp_path, tiny_spec(training={"epochs": 0})))
    assert not stale.exists()


def test_a_run_that_is_to_be_trained_learns_that_it_keeps_and_a_finished_one_stays(
    tmp_path,
):
    plain = Run(tiny_spec(), ("main",), None)
    keeping = replace(plain, spec=tiny_spec(**KEEP))
    path = tmp_path / plain.spec.folder / SPEC
    assert write_specs([plain], tmp_path) == 1
    assert settle(keeping, tmp_path, dry_run=True) == "to do"
    assert not RunSpec.read(path).recipe.evaluation.keep_embeddings
    assert settle(keeping, tmp_path) == "to do"
    assert RunSpec.read(path).recipe.evaluation.keep_embeddings
    path.with_name(RESULT).write_text(json.dumps({"spec_digest": plain.digest}))
    before = path.stat().st_mtime_ns
    assert settle(plain, tmp_path) == "finished"
    assert write_specs([plain], tmp_path) == 0
    assert path.stat().st_mtime_ns == before


STUDY = """
study: kept
title: two runs
question: none
seeds: [0, 1]
blocks:
  - {name: main, datasets: [glyphs_tiny], recipe: mine, losses: [smooth_ap], batch_sizes: [32]}
metrics: [recall_at_1]
comparison: {baseline: smooth_ap}
"""
RECIPE = "extends: glyphs_test_resnet\ntraining: {epochs: 0}\n"


def study_of(folder: Path, text: str):
    (folder / "recipes").mkdir(exist_ok=True)
    (folder / "recipes" / "mine.yaml").write_text(RECIPE + text)
    (folder / "kept.yaml").write_text(STUDY)
    return load_study(folder / "kept.yaml")


def test_a_study_has_one_table_of_the_runs_that_kept_and_its_digest_stays(
    tmp_path,
):
    plain = study_of(tmp_path, "")
    study = study_of(tmp_path, "evaluation: {keep_embeddings: true}\n")
    assert study.digest == plain.digest
    results = tmp_path / "results"
    words = ("--study", tmp_path / "kept.yaml", "--results", results)
    with pytest.raises(
        BenchmarkError,
        match=r"2 of 2 runs have no embeddings.*delete its result\.json",
    ):
        call(*words)
    runs = expand(study)
    write_specs(runs.values(), results)
    first, second = (results / run.spec.folder for run in runs.values())
    train(first / SPEC)
    assert "1 of 2 runs have no embeddings" in call(*words)
    train(second / SPEC)
    path = tmp_path / "all.csv"
    output = call(*words, "--csv", path)
    rows = [*csv.DictReader(path.open())]
    for folder in (first, second):
        run = folder.relative_to(results / "runs").as_posix()
        of_run = {(r["protocol"], r["metric"]): float(r["value"]) for r in rows if r["run"] == run}
        for metric, value in recorded(folder).items():
            assert of_run[RESULT, metric] == value
            assert of_run["others", metric] == value
        lines = [line for line in output.splitlines() if run in line]
        assert len(lines) == len({protocol for protocol, _ in of_run})
    with pytest.raises(BenchmarkError, match="for the rest name a run's file"):
        call(*words, "--published", "50")


@pytest.mark.parametrize("words", [(), ("FILE", "--run", "."), ("--run", ".", "--study", "b")])
def test_one_of_three_is_given(words):
    with pytest.raises(BenchmarkError, match="a FILE, --run, --study"):
        call(*words)


def test_rows_of_a_gallery_and_of_judged_lists_have_the_roles_that_score_reads(
    tmp_path,
):
    dataset = load_dataset("glyphs_tiny")
    images = dataset.protocols["test"].query
    query, gallery = (
        images.part(np.arange(10)),
        images.part(np.arange(10, 40)),
    )
    rows = np.random.default_rng(0).standard_normal((60, 8)).astype(np.float32)
    judged = Judgements(tuple(np.array([i]) for i in range(10)), (np.array([], int),) * 10)
    split = EmbeddedProtocol(Protocol(query, gallery), rows[:10], rows[10:40])
    lists = Protocol(query, gallery, judged, distractors=images.part(np.arange(20)))
    hard = EmbeddedProtocol(lists, rows[:10], rows[10:40], rows[40:])
    write_embeddings(tmp_path, {"sides": split, "easy": hard, "hard": hard})
    files = sorted(tmp_path.glob(KEPT_ROWS.format("*")))
    assert [file.name for file in files] == [
        "embeddings-easy.npz",
        "embeddings-sides.npz",
    ]
    with np.load(files[0]) as kept:
        assert sorted(kept.files) == ["embeddings", "gallery", "query"]
        assert np.array_equal(kept["embeddings"], rows)
        assert np.array_equal(kept["gallery"], np.arange(10, 60))
    with np.load(files[1]) as kept:
        assert np.array_equal(kept["labels"], [*query.labels, *gallery.labels])
        assert np.array_equal(kept["query"], np.arange(10))
    assert "gallery " in call(files[1])
