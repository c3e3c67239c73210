"""Which specifications are written anew: those that are not the study's, or whose result is not."""

from __future__ import annotations

import json

import pytest

from benchmark.runs.specs import outdated, write_spec


@pytest.fixture
def finished(runs, results, finish):
    """Returns (run, folder) of one finished run; the others have not been started."""
    run = next(iter(runs.values()))
    write_spec(run, results)
    return run, finish(run, spec_digest=run.digest)


def test_runs_that_are_finished_or_not_started_are_left_alone(finished, runs, results):
    assert outdated(runs, results) == []


def test_an_edited_or_torn_specification_is_written_anew(finished, runs, results):
    run, folder = finished
    for text in (
        (folder / "spec.json").read_text().replace('"seed": 0', '"seed": 9'),
        "{",
        "[]",
        "\x00",
    ):
        (folder / "spec.json").write_text(text)
        assert outdated(runs, results) == [f"{results}/runs/{run.spec.run_id}/spec.json"]


@pytest.mark.parametrize("text", ['{"spec_digest": "0123"}', "{}", "[]", '{"schema": 1, "ru', ""])
def test_a_result_of_another_specification_or_torn_makes_its_specification_anew(
    text, finished, runs, results
):
    run, folder = finished
    (folder / "result.json").write_text(text)
    assert outdated(runs, results) == [f"{results}/runs/{run.spec.run_id}/spec.json"]


def test_a_result_of_another_schema_is_not_thrown_away(finished, runs, results):
    _, folder = finished
    result = json.loads((folder / "result.json").read_text())
    (folder / "result.json").write_text(json.dumps({**result, "schema": 99}))
    assert outdated(runs, results) == []
