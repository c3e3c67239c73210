"""A result that contradicts itself, or that is another run's, is the failure of its run alone."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from benchmark.core.errors import RunError
from benchmark.runs.collect import collect
from benchmark.runs.contradictions import contradictions
from benchmark.runs.status import status_of
from benchmark.runs.table import RunTable
from benchmark.study.grid import expand


def edit(path, keys: str, value: Any) -> None:
    """Replace one value of a JSON file; ``keys`` are joined by dots."""
    data = json.loads(path.read_text())
    *places, last = keys.split(".")
    place = data
    for key in places:
        place = place[int(key) if isinstance(place, list) else key]
    place[int(last) if isinstance(place, list) else last] = value
    path.write_text(json.dumps(data))


def refused(study, results, runs, finish, file: str, keys: str, value: Any) -> str:
    """Return why the first run has failed, whose file is edited; the others have to be well."""
    first, *others = runs.values()
    for run in (first, *others):
        folder = finish(run)
        if run is first:
            edit(folder / file, keys, value)
    counts = collect(study, results)
    table = RunTable.read(results / "four")
    assert (counts["ok"], counts["failed"]) == (3, 1)
    assert set(table.scores["run_id"]) == {run.spec.run_id for run in others}
    reason = status_of(first, results).reason
    assert f"{results / first.spec.folder / file} " in reason and "delete it" in reason
    return reason


@pytest.mark.parametrize(
    ("keys", "value", "reason"),
    [
        ("run_id", "foo", "it is of run 'foo'"),
        ("metrics.last", {}, "ok without a score"),
        ("metrics.last", {"test": {}}, "ok without a score"),
        ("epochs", 0, "epoch 1 of its curve is none of its 0"),
        ("metrics.best.test.recall_at_1.epoch", 9, "epoch 9 of its best recall_at_1"),
        ("curve.1.epoch", 1, "epoch 1 stands in its curve twice"),
        ("curve.1.epoch", 7, "epoch 7 of its curve is none of its 2"),
        ("steps", 1, "1 steps in 2 epochs"),
        ("reason", "loss became nan", "ok for the reason 'loss became nan'"),
        ("dataset.name", "cub", "it is of dataset 'cub'"),
        ("dataset.counts.test.images", -1, "greater than or equal to 0"),
        ("dataset.counts.test.images", 10**30, "counts.test.images"),
    ],
)
def test_a_contradictory_result_is_a_failure_of_its_run_alone(
    study, results, runs, finish, keys, value, reason
):
    assert reason in refused(study, results, runs, finish, "result.json", keys, value)


def test_tables_that_their_reader_would_refuse_are_not_written(
    study, results, runs, finish, monkeypatch
):
    for run in runs.values():
        finish(run)
    collect(study, results)
    before = (results / "four" / "runs.csv").read_bytes()

    def with_another(*tables):
        yield from contradictions(*tables)
        yield "a rule of its own"

    monkeypatch.setattr("benchmark.runs.table.contradictions", with_another)
    with pytest.raises(RunError, match=r"a rule of its own.*nothing was written"):
        collect(study, results)
    assert (results / "four" / "runs.csv").read_bytes() == before


def test_a_result_without_the_headline_metric_is_no_full_run(study, results, runs, finish):
    """Its loss would be judged on one seed fewer than it has, without a word."""
    last, words = {"test": {"map": 0.25}}, "no recall_at_1 after the last epoch"
    assert words in refused(study, results, runs, finish, "result.json", "metrics.last", last)


def test_a_block_that_gives_fewer_metrics_has_the_first_of_them_for_its_headline(study):
    (block,) = study.blocks
    two = replace(study, metrics=("recall_at_1", "map"))
    fewer = replace(two, blocks=(replace(block, metrics=("map",)),))
    assert {run.headline for run in expand(two).values()} == {"recall_at_1"}
    assert {run.headline for run in expand(fewer).values()} == {"map"}


@pytest.mark.parametrize(
    ("keys", "value", "reason"),
    [
        ("run_id", "a/b/c/bs32/seed1", "it is of run 'a/b/c/bs32/seed1'"),
        ("spec_digest", "0" * 16, f"it is of specification {'0' * 16}"),
    ],
)
def test_the_provenance_of_another_run_gives_no_costs(
    study, results, runs, finish, keys, value, reason
):
    assert reason in refused(study, results, runs, finish, "provenance.json", keys, value)
