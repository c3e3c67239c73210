"""Embeddings for analyses come from the very run that its specification describes, and are made
once."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_runs import tiny_spec, write_spec_in

from benchmark.analyses import analysis as module
from benchmark.analyses.analysis import recorded
from benchmark.core.errors import RunError
from benchmark.datasets import load_dataset
from benchmark.input.samplers import create_sampler
from benchmark.metrics import retrieval_metrics
from benchmark.training import components
from benchmark.training.run import train


@pytest.fixture(scope="module")
def spec():
    return tiny_spec("sup_ap", training={"epochs": 2})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("embeddings")


@pytest.fixture(scope="module")
def found(spec, folder):
    return recorded(spec, folder, lambda line: None)


def test_it_holds_the_batches_of_the_last_epoch_in_the_samplers_order(spec, found):
    labels = np.unique(load_dataset("glyphs_tiny", {}).train.labels, return_inverse=True)[1]
    facts = {"labels": labels, "categories": None, "batch_size": 32, "seed": spec.seed}
    sampler = create_sampler("m_per_class", {"samples_per_class": 4}, **facts)
    expected = [labels[batch].tolist() for batch in sampler.epoch(1)]
    assert [batch_labels.tolist() for _, batch_labels in found.steps()] == expected
    assert np.allclose(np.linalg.norm(found.batches, axis=1), 1, atol=1e-5)


def test_its_test_embeddings_give_the_metrics_of_the_run(spec, found, tmp_path):
    result = train(write_spec_in(tmp_path, spec))
    scores = retrieval_metrics(found.query, found.query_labels, recall_at=(1, 10))
    assert scores == result.metrics.last["test"]


def test_only_another_specification_or_code_version_is_trained_anew(
    spec, folder, found, monkeypatch
):
    trained = []
    monkeypatch.setattr(module, "_train", lambda spec: trained.append(spec.seed) or found)
    again = recorded(spec, folder, lambda line: None)
    assert all(np.array_equal(value, getattr(again, key)) for key, value in vars(found).items())
    assert trained == []
    recorded(tiny_spec("sup_ap", seed=1, training={"epochs": 2}), folder, lambda line: None)
    monkeypatch.setattr(components, "code_version", lambda *_: "another")
    recorded(spec, folder, lambda line: None)
    assert trained == [1, 0]


def test_a_run_that_diverges_is_named(folder):
    spec = tiny_spec("smooth_ap", optimizer={"lr": 1e30}, training={"epochs": 1})
    with pytest.raises(RunError, match=f"{spec.run_id} diverged"):
        recorded(spec, folder, lambda line: None)
