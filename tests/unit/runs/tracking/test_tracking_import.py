from __future__ import annotations

import json

import pytest
from fabricated import make_epochs, make_spec, make_specs, write_epochs, write_run

from benchmark.core.code_version import code_version
from benchmark.core.records import RESULT, SPEC
from benchmark.runs.tracking import client as runs
from benchmark.runs.tracking import content, store
from benchmark.runs.tracking.importer import Counts, import_runs
from benchmark.runs.tracking.store import TrackingError


def bring(results, specs) -> Counts:
    return import_runs("toy", "A toy", {spec.run_id: spec for spec in specs}, results)


def stored(results, study="toy"):
    client = store.connect(results)
    return client, client.search_runs([client.get_experiment_by_name(study).experiment_id])


def test_importing_twice_brings_every_finished_run_once(results):
    specs = make_specs()
    for spec in list(specs.values())[:-1]:
        write_run(results, spec)
    assert import_runs("toy", "A toy", specs, results) == Counts(imported=7, unfinished=1)
    assert import_runs("toy", "A toy", specs, results) == Counts(present=7, unfinished=1)
    _, found = stored(results)
    assert sorted(run.data.tags["run_id"] for run in found) == sorted(list(specs)[:-1])


def test_an_imported_run_has_name_parameters_series_metrics_tags_and_artifacts(results):
    spec = make_spec("sup_ap", 128, 1)
    write_run(results, spec)
    bring(results, [spec])
    client, (run,) = stored(results)
    assert run.info.run_name == "sup_ap bs128 seed1 (glyphs_tiny/resnet10t)"
    assert run.info.status == "FINISHED"
    assert run.data.params == content.params(spec)
    assert run.data.metrics["recall_at_1"] == pytest.approx(0.76)
    history = client.get_metric_history(run.info.run_id, "curve/recall_at_1")
    assert [(point.step, round(point.value, 2)) for point in history] == [
        (1, 0.56), (2, 0.61), (3, 0.66), (4, 0.71), (5, 0.76)
    ]  # fmt: skip
    tags = run.data.tags
    assert (
        tags["study"] == "toy"
        and tags["run_id"] == spec.run_id
        and tags["spec_digest"] == spec.digest
    )
    assert tags["code_version"] == code_version() and tags["dataset_fingerprint"] == "f00d"
    assert tags["status"] == "ok" and tags["mlflow.user"] == "benchmark"
    folder = results / "mlartifacts" / "toy" / run.info.run_id / "artifacts"
    assert sorted(path.name for path in folder.iterdir()) == [
        "metrics.jsonl",
        "provenance.json",
        "result.json",
        "spec.json",
    ]
    assert json.loads((folder / RESULT).read_text())["spec_digest"] == spec.digest
    assert json.loads((folder / SPEC).read_text())["dataset"]["params"]["root"] == "…/glyphs"


def test_a_run_of_two_studies_appears_in_both_experiments(results):
    spec = make_spec()
    write_run(results, spec)
    bring(results, [spec])
    assert import_runs("other", "Another", {spec.run_id: spec}, results) == Counts(imported=1)
    assert [len(stored(results, study)[1]) for study in ("toy", "other")] == [1, 1]


def test_a_diverged_run_is_marked_and_has_no_headline_metric(results):
    spec = make_spec()
    write_run(results, spec, status="diverged")
    bring(results, [spec])
    _, (run,) = stored(results)
    assert run.info.status == "FAILED" and run.data.tags["status"] == "diverged"
    assert run.data.tags["mlflow.note.content"].startswith(
        "Diverged: loss is nan at step 40\n\nFiles: `runs/"
    )
    assert "recall_at_1" not in run.data.metrics and "curve/recall_at_1" in run.data.metrics


def test_a_run_mirrored_in_part_is_completed_and_not_doubled(results):
    spec = make_spec()
    client, _ = stored(results)
    experiment = client.get_experiment_by_name("toy").experiment_id
    run = runs.create(client, experiment, spec, "toy", code_version(), started=1_700_000_000.0)
    runs.send(client, run, content.series(make_epochs(spec)[:2]))
    assert bring(results, [spec]) == Counts(unfinished=1)
    write_run(results, spec)
    assert bring(results, [spec]) == Counts(completed=1)
    assert bring(results, [spec]) == Counts(present=1)
    _, (only,) = stored(results)
    assert only.info.run_id == run.info.run_id and only.data.tags["status"] == "ok"
    history = client.get_metric_history(run.info.run_id, "curve/loss")
    assert [point.step for point in history] == [1, 2, 3, 4, 5]


def test_an_import_cut_off_after_any_call_is_completed_by_the_next(results, monkeypatch):
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    spec = make_spec()
    write_run(results, spec)
    calls = {"left": 0}
    names = ("create_run", "log_batch", "set_terminated", "set_tag")

    def cut_off(name, original):
        def call(*args, **kwargs):
            if calls["left"] == 0:
                raise MlflowException(f"the server died before {name}")
            calls["left"] -= 1
            return original(*args, **kwargs)

        return call

    for name in names:
        monkeypatch.setattr(MlflowClient, name, cut_off(name, getattr(MlflowClient, name)))
    for allowed in range(3):
        calls["left"] = allowed
        with pytest.raises(TrackingError, match="the server died before"):
            bring(results, [spec])
    calls["left"] = 99
    assert bring(results, [spec]) == Counts(completed=1)
    client, (run,) = stored(results)
    assert [point.step for point in client.get_metric_history(run.info.run_id, "curve/loss")] == [
        1,
        2,
        3,
        4,
        5,
    ]
    assert len(client.get_metric_history(run.info.run_id, "recall_at_1")) == 1


def test_long_runs_travel_in_requests_that_part_no_epoch(results, monkeypatch):
    monkeypatch.setattr(runs, "LONGEST_BATCH", 10)
    spec = make_spec()
    points = content.series(make_epochs(spec, 9))
    sizes = [[point.step for point in batch] for batch in runs.batches(points)]
    assert sum(map(len, sizes)) == len(points) and max(map(len, sizes)) <= 10
    assert all(set(one).isdisjoint(other) for one in sizes for other in sizes if one is not other)

    write_run(results, spec, epochs=9)
    assert bring(results, [spec]) == Counts(imported=1)
    client, (run,) = stored(results)
    for name in {point.name for point in points}:
        history = client.get_metric_history(run.info.run_id, name)
        assert [point.step for point in history] == list(range(1, 10))


def test_one_epoch_with_more_values_than_a_request_takes_travels_alone():
    points = [
        content.Point(f"m{number}", 0.0, step)
        for step in (1, 2)
        for number in range(runs.LONGEST_BATCH + 1)
    ]
    assert [len(batch) for batch in runs.batches(points)] == [runs.LONGEST_BATCH + 1] * 2


def test_a_retrained_run_replaces_the_old_one_which_stays_marked(results):
    old, new = make_spec(), make_spec(margin=0.5)
    write_run(results, old)
    bring(results, [old])
    assert bring(results, [new]) == Counts(unfinished=1)
    write_run(results, new)
    assert bring(results, [new]) == Counts(imported=1, superseded=1)
    assert bring(results, [new]) == Counts(present=1)
    _, found = stored(results)
    by_status = {run.data.tags["status"]: run for run in found}
    assert by_status["ok"].data.tags["spec_digest"] == new.digest
    assert by_status["superseded"].data.tags["superseded_by"] == by_status["ok"].info.run_id
    assert by_status["superseded"].info.run_name.startswith("(superseded)")


def test_the_same_specification_trained_by_other_code_is_another_run(results):
    spec = make_spec()
    write_run(results, spec, code="0.0.1+old")
    bring(results, [spec])
    write_run(results, spec)
    assert bring(results, [spec]) == Counts(imported=1, superseded=1)


def test_a_mirror_begun_by_other_code_is_not_taken_for_the_finished_run(results):
    spec = make_spec()
    client, _ = stored(results)
    experiment = client.get_experiment_by_name("toy").experiment_id
    begun = runs.create(client, experiment, spec, "toy", "0.0.1+old", started=1_700_000_000.0)
    write_run(results, spec)
    assert bring(results, [spec]) == Counts(imported=1, superseded=1)
    assert client.get_run(begun.info.run_id).data.tags["status"] == "superseded"


def test_an_unreachable_server_names_what_is_in_and_how_to_go_on(results, monkeypatch, closed_port):
    spec = make_spec()
    write_epochs(write_run(results, spec), make_epochs(spec))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{closed_port}")
    with pytest.raises(TrackingError, match=r"so far: 0 imported.*import again to continue"):
        bring(results, [spec])
