from __future__ import annotations

import math
from dataclasses import replace

from fabricated import make_epochs, make_spec, write_run

from benchmark.core.records import RESULT
from benchmark.runs.tracking import content


def test_parameters_are_flat_text_that_starts_with_what_runs_are_compared_by():
    values = content.params(make_spec("sup_ap", 128, 3, offset=None))
    assert list(values)[:5] == ["loss", "batch_size", "seed", "dataset", "backbone"]
    assert values["loss"] == "sup_ap" and values["batch_size"] == "128" and values["seed"] == "3"
    assert values["loss.tau"] == "0.01" and values["loss.offset"] == "null"
    assert values["optimizer.lr"] == "1e-05" and values["sampler.samples"] == "4"
    assert values["input.crop_area"] == "[0.16, 1.0]"


def test_nothing_that_leaves_for_mlflow_names_a_home_folder(tmp_path):
    spec = make_spec()
    finished = content.read_finished(spec, write_run(tmp_path, spec))
    texts = [*content.artifacts(spec, finished).values(), *content.params(spec).values()]
    assert any("weights.pt" in text for text in texts)
    assert not any("/home" in text or "somebody" in text for text in texts)


def test_series_have_epochs_as_steps_and_time_since_the_start(tmp_path):
    spec = make_spec()
    finished = content.read_finished(spec, write_run(tmp_path, spec))
    recall = [
        point for point in content.series(finished.epochs) if point.name == "curve/recall_at_1"
    ]
    assert [point.step for point in recall] == [1, 2, 3, 4, 5]
    assert [point.seconds for point in recall] == [2.0, 4.0, 6.0, 8.0, 10.0]
    assert recall[-1].value == 0.75


def test_final_metrics_are_the_last_epochs_and_the_best_is_labelled(tmp_path):
    spec = make_spec()
    finished = content.read_finished(spec, write_run(tmp_path, spec))
    values = {point.name: (point.value, point.step) for point in content.final_points(finished)}
    assert values["recall_at_1"] == (0.75, 5)
    assert values["best/recall_at_1"] == (0.7, 4)
    assert values["cost/total_seconds"] == (11.0, 5)


def test_values_that_are_not_finite_numbers_are_left_out():
    (epoch,) = make_epochs(make_spec(), 1)
    found = content.series([replace(epoch, loss=math.nan, loss_ms=math.inf)])
    assert [point.name for point in found] == [
        "curve/learning_rate",
        "cost/images_per_second",
        "curve/recall_at_1",
        "curve/map_at_r",
    ]
    assert "curve/loss" not in [point.name for point in content.series([replace(epoch, loss=None)])]


def test_scores_of_another_split_carry_its_name():
    (epoch,) = make_epochs(make_spec(), 1)
    found = content.series([replace(epoch, evaluation={"small": {"map": 0.5}})])
    assert content.Point("curve/small/map", 0.5, 1, 2.0) in found


def test_metric_names_lose_what_mlflow_refuses():
    assert content.sanitised("recall@1=x") == "recall_1_x"


def test_a_result_of_another_specification_or_torn_is_not_finished(tmp_path):
    spec = make_spec()
    folder = write_run(tmp_path, spec)
    assert content.read_finished(make_spec(margin=1.0), folder) is None
    (folder / RESULT).write_text('{"spec_digest": "')
    assert content.read_finished(spec, folder) is None


def test_a_folder_copied_without_its_metrics_file_still_gives_the_curve(tmp_path):
    spec = make_spec()
    folder = write_run(tmp_path, spec)
    (folder / "metrics.jsonl").unlink()
    finished = content.read_finished(spec, folder)
    losses = [
        point.value for point in content.series(finished.epochs) if point.name == "curve/loss"
    ]
    assert losses == [1.0, 1 / 2, 1 / 3, 1 / 4, 1 / 5]
    assert not [point for point in content.series(finished.epochs) if "cost/" in point.name]
