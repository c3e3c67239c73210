"""Heads trained on the features of a frozen backbone, which are computed once and kept."""

from __future__ import annotations

import dataclasses
import json
import os

import numpy as np
import pytest
import torch
from filelock import FileLock
from tiny_runs import tiny_spec, write_spec_in

from benchmark.core.recipe import check_recipe
from benchmark.core.records import NEIGHBOURS, PROVENANCE, RESULT
from benchmark.datasets import load_dataset
from benchmark.input.tensors import create_input
from benchmark.models import create_model
from benchmark.training import features
from benchmark.training.features import FrozenFeatures
from benchmark.training.run import train

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def dataset():
    return load_dataset("glyphs_tiny")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch, benchmark_cache, dataset):
    """Return a cache of the test's own; files hold few images, so that there are several."""
    folder = tmp_path / "cache"
    folder.mkdir()
    for path in benchmark_cache.iterdir():
        if path.suffix in (".npz", ".json"):
            os.link(path, folder / path.name)
    monkeypatch.setenv("BENCHMARK_CACHE", str(folder))
    monkeypatch.setattr(features, "PART", 150)
    return folder / "features"


def frozen_spec(loss="smooth_ap", seed=0, **sections):
    model = {"freeze_backbone": True, **sections.pop("model", {})}
    return tiny_spec(loss, seed, model=model, input={"augmentation": "none"}, **sections)


def make(dataset, report=lambda text: None, **sections):
    recipe = frozen_spec(**sections).recipe
    network = create_model(recipe.model, 0)
    return FrozenFeatures(network.take_backbone(), dataset.fingerprint, recipe, CPU, report)


def rows(made, image_set):
    return torch.cat([*made(image_set).eval_batches(100)])


def test_features_are_what_the_backbone_gives_each_image(dataset):
    recipe = frozen_spec().recipe
    network = create_model(recipe.model, 0).eval()
    images = torch.cat([*create_input(dataset.train, recipe.input, 1).eval_batches(64)])
    with torch.inference_mode():
        expected = network.pooling(network.backbone.forward_features(images))
        embeddings = network(images)
        network.take_backbone()
        found = rows(make(dataset), dataset.train)
        assert torch.allclose(found, expected, atol=1e-6)
        assert torch.allclose(network(found), embeddings, atol=1e-6)


def test_batches_are_rows_of_the_features_and_a_resumed_epoch_goes_on(dataset):
    made = make(dataset)(dataset.train)
    every = torch.cat([*made.eval_batches(7)])
    batches = [np.array([3, 1]), np.array([0, 5]), np.array([2, 2])]
    second, third = made.train_batches(batches, seed=9, epoch=4, start=1)
    assert torch.equal(second, every[[0, 5]])
    assert torch.equal(third, every[[2, 2]])


def test_features_are_computed_once_for_all_losses_and_seeds(dataset, cache):
    said = []
    first = rows(make(dataset, said.append), dataset.train)
    parts = -(-len(dataset.train) // features.PART)
    assert parts > 1
    assert len(said) == parts
    assert len([*cache.rglob("*.npz")]) == parts
    head = {"embedding_dim": 8, "layer_norm": True}
    other_run = make(dataset, said.append, optimizer={"lr": 1.0}, model=head)
    again = rows(other_run, dataset.train)
    assert len(said) == parts
    assert torch.equal(again, first)


def test_held_out_classes_share_the_features_of_the_training_images(dataset, cache):
    expected = rows(make(dataset), dataset.train)
    fold = load_dataset("class_folds", {"of": "glyphs_tiny", "folds": 2, "fold": 1})
    said = []
    made = make(dataset, said.append)
    for images in (fold.train, fold.protocols["held_out"].query):
        _, places = images.origin
        assert torch.equal(rows(made, images), expected[places])
    assert said == []
    assert fold.images_fingerprint == dataset.fingerprint
    assert fold.fingerprint != dataset.fingerprint


@pytest.mark.parametrize(
    "changed",
    [
        {"model": {"pooling": "max"}},
        {"model": {"backbone": "test_convnext"}},
        {"training": {"threads": 2}},
    ],
)
def test_what_decides_the_bits_of_features_decides_their_place(dataset, cache, changed):
    rows(make(dataset), dataset.train)
    rows(make(dataset, **changed), dataset.train)
    assert len([*cache.iterdir()]) == 2


def test_two_sets_of_one_dataset_never_share_features(dataset, cache):
    made = make(dataset)
    train_images = dataset.train
    test_images = dataset.protocols["test"].query
    assert not torch.equal(rows(made, train_images)[:50], rows(made, test_images)[:50])
    train_images = dataclasses.replace(train_images, names=[""] * len(train_images))
    test_images = dataclasses.replace(test_images, names=[""] * len(test_images))
    assert not torch.equal(rows(made, train_images)[:50], rows(made, test_images)[:50])


def test_a_part_that_another_run_computes_is_waited_for_last(dataset, cache, monkeypatch):
    """The other run holds the lock of the first part, and gives it back when it is waited for."""
    monkeypatch.setattr(features, "WAIT", 0.05)
    first = rows(make(dataset), dataset.train)
    paths = sorted(cache.rglob("*.npz"))
    for path in paths:
        path.unlink()
    other = FileLock(paths[0].with_suffix(".lock"))
    said = []

    def report(text):
        said.append(text)
        if text.startswith("waiting"):
            other.release()

    made = make(dataset, report)
    with other:
        assert torch.equal(rows(made, dataset.train), first)
    assert said[len(paths) - 1].startswith("waiting")
    assert len(said) == len(paths) + 1


def test_a_run_on_cached_features_equals_one_that_computes_them(tmp_path, cache):
    spec = frozen_spec("sup_ap", evaluation={"whitening": 8})
    results = []
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        train(write_spec_in(folder, spec))
        results.append((folder / RESULT).read_bytes())
    first, second = results
    assert first == second
    weights = json.loads((tmp_path / "first" / PROVENANCE).read_text())["weights"]
    assert weights["backbone"] == "test_resnet"
    assert weights["parameters"] > 300_000
    assert (tmp_path / "first" / NEIGHBOURS).is_file()


def test_the_head_learns_and_the_losses_own_weights_too(tmp_path):
    result = train(write_spec_in(tmp_path, frozen_spec("normalized_softmax")))
    assert result.status == "ok"
    assert result.curve[-1].loss < result.curve[0].loss


def test_all_that_a_frozen_backbone_excludes_is_said_at_once():
    spec = tiny_spec(model={"freeze_backbone": True, "pooling": "gem", "embedding_dim": None})
    keys = {problem.key for problem in check_recipe(spec.recipe)}
    assert keys == {"input.augmentation", "model.pooling", "model.embedding_dim"}


def test_a_network_without_head_is_evaluated_on_its_features(tmp_path):
    """The zero-shot row shares the features of the trained heads."""
    sections = {"model": {"embedding_dim": None}, "training": {"epochs": 0}}
    spec = frozen_spec("untrained", **sections)
    model = dataclasses.replace(spec.recipe.model, freeze_backbone=False)
    recipe = dataclasses.replace(spec.recipe, model=model)
    whole = dataclasses.replace(spec, recipe=recipe)
    (tmp_path / "frozen").mkdir()
    (tmp_path / "whole").mkdir()
    found = train(write_spec_in(tmp_path / "frozen", spec))
    expected = train(write_spec_in(tmp_path / "whole", whole))
    assert found.metrics.last["test"] == pytest.approx(expected.metrics.last["test"], abs=0.01)
