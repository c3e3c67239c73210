"""Heads trained on features of a file: without a backbone, and without images."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from tiny_runs import tiny_spec, write_spec_in

from benchmark.core.errors import ConfigError
from benchmark.core.options import build
from benchmark.core.recipe import Recipe, check_recipe
from benchmark.core.records import NEIGHBOURS, PROVENANCE, DatasetChoice
from benchmark.metrics import retrieval_metrics
from benchmark.training.run import train

MODEL = {
    "backbone": "features",
    "freeze_backbone": True,
    "embedding_dim": 8,
}


@pytest.fixture
def arrays():
    """Return features of 24 classes whose last 4 of 8 numbers are noise."""
    generator = np.random.default_rng(0)
    labels = np.repeat(np.arange(24), 8)
    rows = generator.normal(size=(24, 4))[labels] + generator.normal(size=(192, 4)) / 2
    rows = np.hstack([rows, 2 * generator.normal(size=(192, 4))]).astype(np.float32)
    return {
        "embeddings": rows,
        "labels": labels,
        "split": np.where(labels < 12, "train", "test"),
    }


def spec_of(path, loss="smooth_ap", model=MODEL, **sections):
    spec = tiny_spec(loss, **sections)
    whole = dataclasses.asdict(spec.recipe) | {"model": model, "input": {}}
    choice = DatasetChoice("mine", "features", {"file": str(path)})
    recipe = build(Recipe, whole, "recipe")
    assert check_recipe(recipe) == []
    return dataclasses.replace(spec, dataset=choice, recipe=recipe)


def run(folder, arrays, *, kind="f4", **changes):
    folder.mkdir()
    path = folder / "features.npz"
    np.savez(path, **arrays | {"embeddings": arrays["embeddings"].astype(kind)})
    return train(write_spec_in(folder, spec_of(path, **changes)))


def test_a_head_learns_to_leave_out_noise(tmp_path, arrays):
    sections = {"training": {"epochs": 20}, "optimizer": {"lr": 0.05}}
    trained = run(tmp_path / "trained", arrays, **sections)
    bare = {**MODEL, "embedding_dim": None}
    given = run(
        tmp_path / "bare",
        arrays,
        loss="untrained",
        model=bare,
        training={"epochs": 0},
    )
    after, before = (each.metrics.last["test"]["map_at_r"] for each in (trained, given))
    assert after > before + 0.1
    tested = arrays["split"] == "test"
    expected = retrieval_metrics(arrays["embeddings"][tested], arrays["labels"][tested])
    assert before == pytest.approx(expected["map_at_r"], abs=1e-6)
    weights = json.loads((tmp_path / "trained" / PROVENANCE).read_text())["weights"]
    assert (weights["backbone"], weights["weights"]) == (
        "features",
        "those behind the features",
    )
    assert weights["parameters"] == 8 * 8 + 8


def test_a_head_on_half_precision_sees_the_rounded_rows(tmp_path, arrays):
    half = run(tmp_path / "half", arrays, kind="f2")
    rounded = arrays["embeddings"].astype("f2").astype("f4")
    single = run(tmp_path / "single", arrays | {"embeddings": rounded})
    assert half.metrics == single.metrics
    assert half.batch_stream == single.batch_stream


def test_neighbours_have_names_and_no_pictures(tmp_path, arrays):
    run(tmp_path / "run", arrays)
    with np.load(tmp_path / "run" / NEIGHBOURS) as stored:
        assert stored["query_images"].size == 0
        assert stored["query_names"][0].startswith("row ")


def test_layer_norm_changes_what_the_head_sees(tmp_path, arrays):
    plain = run(tmp_path / "plain", arrays)
    normed = run(tmp_path / "normed", arrays, model={**MODEL, "layer_norm": True})
    assert plain.metrics != normed.metrics


def test_what_needs_images_or_a_network_is_refused_by_name():
    model = {**MODEL, "pooling": "max", "channels": 1}
    recipe = tiny_spec(model=model).recipe
    keys = {problem.key for problem in check_recipe(recipe)}
    assert keys == {"model", "input", "input.augmentation"}


@pytest.mark.parametrize("features", [True, False])
def test_a_recipe_of_the_other_kind_of_dataset_is_refused(tmp_path, arrays, features):
    np.savez(tmp_path / "features.npz", **arrays)
    spec = spec_of(tmp_path / "features.npz")
    images = tiny_spec()
    wrong = dataclasses.replace(spec, dataset=images.dataset)
    if features:
        wrong = dataclasses.replace(spec, recipe=images.recipe)
    with pytest.raises(ConfigError, match="does not go with a dataset of"):
        train(write_spec_in(tmp_path, wrong))
