"""One run: deterministic, resumable at any step, matched by seed across losses, honest when it
diverges."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_runs import tiny_spec, write_spec_in

from benchmark.core.errors import RunError
from benchmark.core.records import NEIGHBOURS, PROVENANCE, QUERIES, RESULT
from benchmark.core.results import Result, read_query_scores
from benchmark.losses import LOSSES
from benchmark.training.run import NO_ROOM, train

LOSS_NAMES = ("smooth_ap", "sup_ap", "blackbox_ap", "proxy_anchor")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Each loss trained once without interruption: {loss: folder}."""
    folders = {}
    for name in LOSS_NAMES:
        folders[name] = tmp_path_factory.mktemp(name)
        train(write_spec_in(folders[name], tiny_spec(name)))
    return folders


def initial_digest(folder: Path) -> str:
    return json.loads((folder / PROVENANCE).read_text())["weights"]["initial_digest"]


def test_losses_with_one_seed_start_from_the_same_weights_and_see_the_same_batches(finished):
    streams = {
        json.loads((folder / RESULT).read_text())["batch_stream"]["sha256"]
        for folder in finished.values()
    }
    assert len(streams) == 1
    assert len({initial_digest(folder) for folder in finished.values()}) == 1


def test_other_seed_starts_from_other_weights_and_sees_other_batches(finished, tmp_path):
    result = train(write_spec_in(tmp_path, tiny_spec("smooth_ap", seed=1)))
    assert (
        dataclasses.asdict(result.batch_stream)
        != json.loads((finished["smooth_ap"] / RESULT).read_text())["batch_stream"]
    )
    assert initial_digest(tmp_path) != initial_digest(finished["smooth_ap"])


def test_result_holds_last_and_best_scores_of_every_metric(finished):
    result = json.loads((finished["sup_ap"] / RESULT).read_text())
    assert set(result["metrics"]["last"]["test"]) == {
        "recall_at_1",
        "recall_at_10",
        "map_at_r",
        "map",
    }
    for metric, value in result["metrics"]["last"]["test"].items():
        assert 0 < value <= result["metrics"]["best"]["test"][metric]["value"] <= 1
    assert result["status"] == "ok"
    assert len(result["curve"]) == 2


def test_neighbours_leave_out_the_query_and_mark_matches(finished):
    with np.load(finished["smooth_ap"] / NEIGHBOURS) as content:
        assert content["neighbours"].shape == content["matches"].shape == (4, 5)
        assert not (content["neighbours"] == content["queries"][:, None]).any()
        assert (np.diff(content["scores"], axis=1) <= 0).all()
        assert content["neighbour_images"].shape[0] == 20


def test_the_scores_of_every_query_average_to_the_result(finished):
    for folder in finished.values():
        result = Result.read(folder / RESULT)
        kept = read_query_scores(folder, result.spec_digest)["test"]
        for metric, value in result.metrics.last["test"].items():
            assert kept.of(metric).mean() == pytest.approx(value, abs=1e-6)
        assert len(kept.query) == result.dataset.counts["test"]["images"]


def test_training_learns_something(tmp_path):
    spec = tiny_spec("smooth_ap", training={"epochs": 6, "checkpoint_seconds": 1e9})
    scores = [
        point.scores["test"]["map_at_r"] for point in train(write_spec_in(tmp_path, spec)).curve
    ]
    assert scores[-1] > 1.3 * scores[0]


def test_run_that_blows_up_is_a_result_with_status_diverged(tmp_path):
    spec = tiny_spec("smooth_ap", optimizer={"lr": 1e30}, schedule={"name": "constant"})
    (tmp_path / QUERIES).write_bytes(b"of an earlier specification")
    result = train(write_spec_in(tmp_path, spec))
    assert result.status == "diverged"
    assert "epoch 1" in result.reason
    assert result.metrics.last == {}
    assert not (tmp_path / QUERIES).read_bytes()
    assert not (tmp_path / NEIGHBOURS).read_bytes()


def test_finished_run_is_not_trained_again(finished):
    folder = finished["smooth_ap"]
    before = (folder / RESULT).stat().st_mtime_ns
    train(folder / "spec.json")
    assert (folder / RESULT).stat().st_mtime_ns == before


def test_result_of_another_specification_is_not_overwritten(finished, tmp_path):
    (tmp_path / RESULT).write_bytes((finished["smooth_ap"] / RESULT).read_bytes())
    with pytest.raises(RunError, match="another specification"):
        train(write_spec_in(tmp_path, tiny_spec("smooth_ap", seed=5)))
    assert (tmp_path / RESULT).read_bytes() == (finished["smooth_ap"] / RESULT).read_bytes()


@pytest.mark.parametrize(
    ("model", "training", "advice"),
    [
        ({"freeze_batch_norm": True}, {}, "training.micro_batch below 32,"),
        ({"freeze_batch_norm": True}, {"micro_batch": 8}, "training.micro_batch below 8,"),
        ({}, {}, "training.precision: bfloat16, or a smaller input.image_size (batch norms"),
        ({}, {"precision": "bfloat16"}, "full; set a smaller input.image_size (batch norms"),
    ],
)
def test_a_run_that_does_not_fit_its_gpu_says_what_helps_and_waits_for_a_new_call(
    model, training, advice, tmp_path, monkeypatch
):
    path = write_spec_in(tmp_path, tiny_spec(model=model, training=training))

    def full(*_, **__):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nmore")

    with monkeypatch.context() as patch:
        patch.setattr(LOSSES["smooth_ap"].target, "forward", full)
        with pytest.raises(RunError) as first:
            train(path)
        assert advice in str(first.value)
        assert "allocate 2.00 GiB.)" in str(first.value)
    with pytest.raises(RunError) as again:
        train(path, attempt=2)
    assert str(again.value) == str(first.value)
    assert train(path).status == "ok"
    assert not (tmp_path / NO_ROOM).exists()
