"""Which specifications are put away, to be written anew: those that are not the study's, or whose
result is not."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest

from benchmark.runs.folders import settle, status_of, write_spec


@pytest.fixture
def finished(runs, results, finish):
    """Returns (run, folder) of one finished run; the others have not been started."""
    run = next(iter(runs.values()))
    write_spec(run, results)
    return run, finish(run, spec_digest=run.digest)


def kept(runs, results, folder):
    """Settle the runs; return whether both files in a folder have kept their names."""
    settle(runs, results)
    for path in ("spec", "result"):
        kept, away = ((folder / f"{path}{end}").exists() for end in (".json", ".outdated.json"))
        assert kept != away
    return kept


def test_runs_that_are_finished_or_not_started_are_left_alone(finished, runs, results):
    assert kept(runs, results, finished[1])
    others = [run for run in runs.values() if run is not finished[0]]
    assert not any((results / run.spec.folder).exists() for run in others)


@pytest.mark.parametrize("text", ['"seed": 9', "{", "[]", "\x00"])
def test_an_edited_or_torn_specification_is_written_anew(text, finished, runs, results):
    run, folder = finished
    spec = folder / "spec.json"
    spec.write_text(spec.read_text().replace('"seed": 0', text) if "seed" in text else text)
    assert not kept(runs, results, folder) and not kept(runs, results, folder)
    write_spec(run, results)
    assert sorted(path.name for path in folder.glob("*.json")) == ["provenance.json", "spec.json"]


@pytest.mark.parametrize("text", ['{"spec_digest": "0123"}', "{}", "[]", '{"schema": 1, "ru', ""])
def test_a_result_of_another_specification_or_torn_makes_its_specification_anew(
    text, finished, runs, results
):
    _, folder = finished
    (folder / "result.json").write_text(text)
    assert not kept(runs, results, folder)


def test_a_result_of_another_schema_is_not_thrown_away(finished, runs, results):
    _, folder = finished
    result = json.loads((folder / "result.json").read_text())
    (folder / "result.json").write_text(json.dumps({**result, "schema": 99}))
    assert kept(runs, results, folder)


def test_a_study_that_is_changed_back_finds_its_specification_as_it_was(finished, runs, results):
    run, folder = finished
    os.utime(folder / "spec.json", ns=(10**18, 10**18))
    before = (folder / "spec.json").read_bytes()
    loss = replace(run.spec.loss, params={"tau": 9.0})
    other = replace(run, spec=replace(run.spec, loss=loss))
    assert not kept({run.spec.run_id: other}, results, folder)
    assert status_of(other, results).status == "stale" and status_of(run, results).status == "ok"
    assert kept(runs, results, folder)
    assert (folder / "spec.json").read_bytes() == before
    assert (folder / "spec.json").stat().st_mtime_ns == 10**18


def test_the_result_of_a_specification_that_was_put_away_is_kept_with_it(finished, runs, results):
    run, folder = finished
    other = replace(run, spec=replace(run.spec, loss=replace(run.spec.loss, params={"tau": 9.0})))
    settle({run.spec.run_id: other}, results)
    write_spec(other, results)
    names = {path.name for path in (folder / "previous" / run.digest).iterdir()}
    assert {"spec.json", "result.json"} <= names
    assert not list(folder.glob("*.outdated.json"))


def test_a_dry_run_counts_and_changes_nothing(finished, runs, results):
    _, folder = finished
    (folder / "spec.json").write_text("{")
    assert settle(runs, results, dry_run=True) == 1 and (folder / "spec.json").read_text() == "{"
    assert (settle(runs, results), settle(runs, results)) == (1, 0)
