"""Runs without an epoch: the network as it starts, beside trained ones."""

from __future__ import annotations

import json

import pytest
from tiny_runs import curve, tiny_spec, write_spec_in

from benchmark.core.records import METRICS, NEIGHBOURS, PROVENANCE, RESULT
from benchmark.core.results import Result
from benchmark.datasets import load_dataset
from benchmark.metrics import retrieval_metrics
from benchmark.training.components import build_components
from benchmark.training.evaluate import Evaluator
from benchmark.training.numerics import prepare_numerics
from benchmark.training.run import train

NONE = {"epochs": 0}


@pytest.fixture(scope="module")
def untrained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("untrained")
    train(write_spec_in(folder, tiny_spec("untrained", training=NONE)))
    return folder


def test_the_result_is_the_evaluation_of_the_first_weights(untrained):
    result = Result.read(untrained / RESULT)
    assert (result.status, result.epochs, result.steps) == ("ok", 0, 0)
    spec = tiny_spec("untrained", training=NONE)
    parts = build_components(spec, prepare_numerics(spec.recipe.training))
    embedded = parts.evaluator.embed(parts.model, parts.device)["test"]
    labels = load_dataset("glyphs_tiny", {}).protocols["test"].query.labels
    expected = retrieval_metrics(embedded.query, labels, recall_at=(1, 10))
    assert result.metrics.last["test"] == pytest.approx(expected)
    best = result.metrics.best["test"]
    assert {name: (one.value, one.epoch) for name, one in best.items()} == {
        name: (value, 0) for name, value in result.metrics.last["test"].items()
    }
    assert isinstance(parts.evaluator, Evaluator)


def test_it_leaves_what_a_trained_run_leaves(untrained):
    assert {RESULT, METRICS, PROVENANCE, NEIGHBOURS} <= {path.name for path in untrained.iterdir()}
    (record,) = curve(untrained)
    assert (record["epoch"], record["step"], record["loss"]) == (0, 0, None)
    timing = json.loads((untrained / PROVENANCE).read_text())["timing"]
    assert (timing["updates"], timing["images_forward"], timing["loss_ms"]) == (0, 0, 0.0)


def test_any_loss_gives_the_same_numbers_without_an_epoch(untrained, tmp_path):
    other = train(write_spec_in(tmp_path, tiny_spec("smooth_ap", training=NONE)))
    assert other.metrics == Result.read(untrained / RESULT).metrics
