"""How the embeddings of a run become metrics: judged lists, repeats, query expansion and
whitening."""

from __future__ import annotations

import dataclasses
import json
from functools import partial

import numpy as np
import pytest
import torch
from archives import make_roxford5k, make_sfm120k, make_vehicleid
from tiny_runs import tiny_spec, write_spec_in

from benchmark.core.errors import ConfigError
from benchmark.core.recipe import EvaluationConfig, InputConfig, QueryExpansionConfig
from benchmark.core.records import NEIGHBOURS, DatasetChoice
from benchmark.datasets.base import Dataset, ImageSet, Judgements, Protocol
from benchmark.input.tensors import create_input
from benchmark.metrics import (
    expand_queries,
    landmark_scores,
    learn_whitening,
    retrieval,
    retrieval_metrics,
)
from benchmark.metrics.ranks import positive_ranks_on
from benchmark.training import components, evaluate
from benchmark.training.evaluate import Evaluator, measure, sample_of
from benchmark.training.run import train

CPU = torch.device("cpu")
SIDE = 8
IMAGES = InputConfig(augmentation="none", image_size=SIDE, mean=[0.5], std=[0.5])
inputs = partial(create_input, config=IMAGES, channels=1)


class Flatten(torch.nn.Module):
    """The first ``width`` pixels as the embedding, counting how many images it sees."""

    def __init__(self, width: int = 6):
        super().__init__()
        self.width = width
        self.seen = 0

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        self.seen += len(images)
        return torch.nn.functional.normalize(images.flatten(1)[:, : self.width])


def images(count: int, seed: int, classes: int = 4, side: int = SIDE):
    rng = np.random.default_rng(seed)
    names = [f"{seed}/{i}" for i in range(count)]
    pixels = rng.integers(0, 256, (count, side, side, 1), dtype=np.uint8)
    return ImageSet(np.arange(count) % classes, names, pixels=pixels)


def judged(queries: int, items: int, seed: int) -> Judgements:
    orders = [np.random.default_rng([seed, query]).permutation(items) for query in range(queries)]
    relevant = tuple(order[:4] for order in orders)
    ignored = tuple(order[4:9] for order in orders)
    return Judgements(relevant, ignored)


def drawn_repeats(count: int):
    """Return queries and galleries among 24 images, drawn ``count`` times."""
    orders = [np.random.default_rng(seed).permutation(24) for seed in range(count)]
    return tuple((order[8:], order[:8]) for order in orders)


@pytest.fixture
def landmarks():
    query = images(5, 1)
    gallery = images(30, 2)
    protocols = {
        "medium": Protocol(query, gallery, judged(5, 30, 0)),
        "hard": Protocol(query, gallery, judged(5, 30, 1)),
    }
    return Dataset("landmarks", images(40, 0), protocols, "0", metrics=("map",))


def rows_of(image_set) -> np.ndarray:
    pixels = torch.from_numpy(image_set.pixels).permute(0, 3, 1, 2).float() / 255
    return Flatten()((pixels - 0.5) / 0.5).numpy()


def map_of(protocol, change=lambda rows: rows) -> float:
    """Return the mAP of a judged protocol, its embeddings changed on both sides."""
    query = change(rows_of(protocol.query))
    gallery = change(rows_of(protocol.gallery))
    return landmark_scores(query, gallery, protocol.judgements)[0]


def measured(dataset, model=None, **config):
    config = EvaluationConfig(recall_at=[1, 2], batch_size=7, **config)
    embedded = Evaluator(dataset, inputs, config, 6).embed(model or Flatten(), CPU)
    return measure(embedded, config, CPU).scores


def test_judged_protocols_give_their_own_map_and_embed_what_they_share_once(landmarks):
    model = Flatten()
    found = measured(landmarks, model)
    expected = {name: {"map": map_of(item)} for name, item in landmarks.protocols.items()}
    assert found == expected
    assert found["medium"] != found["hard"]
    assert model.seen == 35


def test_query_expansion_adds_a_split_to_each_judged_protocol(landmarks):
    plain = measured(landmarks)
    found = measured(landmarks, query_expansion=QueryExpansionConfig(alpha=2.0, k=10))
    assert {name: found[name] for name in plain} == plain
    assert set(found) - set(plain) == {"medium+aqe", "hard+aqe"}
    item = landmarks.protocols["hard"]
    gallery = rows_of(item.gallery)
    expanded = expand_queries(rows_of(item.query), gallery, 2.0, 10)
    expected, _ = landmark_scores(expanded, gallery, item.judgements)
    assert found["hard+aqe"] == {"map": expected}


def test_query_expansion_and_repeats_leave_other_protocols_alone():
    query = images(24, 3)
    dataset = Dataset("plain", images(10, 0), {"test": Protocol(query)}, "0")
    found = measured(dataset, query_expansion=QueryExpansionConfig(alpha=2.0, k=3))
    expected = retrieval_metrics(rows_of(query), query.labels, recall_at=(1, 2))
    assert found == {"test": expected}


def test_repeats_are_averaged():
    query = images(24, 3)
    repeats = drawn_repeats(3)
    protocols = {"small": Protocol(query, repeats=repeats)}
    found = measured(Dataset("repeated", images(10, 0), protocols, "0"))
    rows = rows_of(query)
    labels = query.labels
    metrics_of_repeats = []
    for asks, items in repeats:
        sets = (rows[asks], labels[asks], rows[items], labels[items])
        metrics_of_repeats.append(retrieval_metrics(*sets, recall_at=(1, 2)))
    for metric, value in found["small"].items():
        assert value == pytest.approx(np.mean([found[metric] for found in metrics_of_repeats]))
    assert len({found["map"] for found in metrics_of_repeats}) > 1


@pytest.fixture
def ranked_on(monkeypatch):
    """The devices that were asked to rank; the processor does it for them."""
    devices = []

    def rank(name, *sets):
        devices.append(name)
        return positive_ranks_on("cpu", *sets)

    monkeypatch.setattr(retrieval, "positive_ranks_on", rank)
    return devices


def test_a_gpu_ranks_what_labels_judge_and_a_cpu_leaves_it_to_numpy(ranked_on):
    query = images(24, 3)
    gallery = images(30, 4)
    protocols = {
        "own": Protocol(query),
        "gallery": Protocol(query, gallery),
        "repeated": Protocol(query, repeats=drawn_repeats(2)),
        "judged": Protocol(query, gallery, judged(24, 30, 0)),
    }
    dataset = Dataset("several", images(10, 0), protocols, "0")
    config = EvaluationConfig(recall_at=[1, 2])
    embedded = Evaluator(dataset, inputs, config, 6).embed(Flatten(), CPU)
    by_cpu = measure(embedded, config, CPU).scores
    assert ranked_on == []
    by_gpu = measure(embedded, config, torch.device("cuda", 1)).scores
    assert ranked_on == ["cuda:1"] * 4
    assert by_gpu.keys() == protocols.keys()
    assert by_cpu.keys() == protocols.keys()
    for split, found in by_gpu.items():
        assert found == pytest.approx(by_cpu[split], abs=1e-12)


def test_whitening_is_learnt_on_training_images_and_applied_to_both_sides(landmarks):
    whiten = learn_whitening(rows_of(landmarks.train), 4)
    item = landmarks.protocols["medium"]
    expected = map_of(item, whiten)
    found = measured(landmarks, whitening=4)["medium"]["map"]
    assert found == pytest.approx(expected, abs=1e-12)
    assert expected != map_of(item)


def test_whitening_of_a_large_training_set_takes_a_fixed_sample(landmarks, monkeypatch):
    monkeypatch.setattr(evaluate, "WHITENING_IMAGES", 15)
    sample = sample_of(landmarks.train, 15)
    assert len(sample) == 15
    assert len(set(sample.names)) == 15
    assert sample_of(landmarks.train, 40) is landmarks.train
    places = [landmarks.train.names.index(name) for name in sample.names]
    assert places == sorted(places)
    pixels = landmarks.train.pixels[places]
    assert np.array_equal(sample.labels, landmarks.train.labels[places])
    assert np.array_equal(sample.pixels, pixels)
    shown = [np.asarray(sample.image(number)) for number in range(15)]
    assert np.array_equal(shown, pixels[..., 0])
    model = Flatten()
    measured(landmarks, model, whitening=4)
    assert model.seen == 35 + 15


def test_more_whitened_dimensions_than_there_are_is_an_error_before_training(landmarks):
    with pytest.raises(ConfigError, match="7 dimensions are more than the 6 of the embeddings"):
        measured(landmarks, whitening=7)


def test_neighbours_of_a_judged_query_leave_out_what_is_ignored(landmarks):
    evaluator = Evaluator(landmarks, inputs, EvaluationConfig(), 6)
    item = evaluator.embed(Flatten(), torch.device("cpu"))["medium"]
    judgements = item.protocol.judgements
    items, scores, matches = item.nearest(np.array([1, 4]), 12)
    for query, found, score, hits in zip((1, 4), items, scores, matches, strict=True):
        similar = item.gallery @ item.query[query]
        ranking = np.argsort(-similar, kind="stable")
        expected = ranking[~np.isin(ranking, judgements.ignored[query])][:12]
        assert found.tolist() == expected.tolist()
        assert hits.tolist() == np.isin(expected, judgements.relevant[query]).tolist()
        assert any(hits)
        assert np.allclose(score, similar[expected], atol=1e-6)
    every_item, _, _ = item.nearest(np.array([0, 2]), 100)
    assert every_item.shape == (2, 25)
    nothing = item.nearest(np.array([], dtype=int), 3)
    assert [array.shape for array in nothing] == [(0, 3)] * 3


def test_a_run_on_landmarks_is_evaluated_and_shown_by_its_judgements(tmp_path, monkeypatch):
    query = images(6, 1, side=32)
    gallery = images(20, 2, side=32)
    truth = judged(6, 20, 0)
    protocols = {"roxford5k_medium": Protocol(query, gallery, truth)}
    train_images = images(64, 0, classes=8, side=32)
    dataset = Dataset("landmarks", train_images, protocols, "0", metrics=("map",))
    monkeypatch.setattr(components, "load_dataset", lambda *_: dataset)
    options = {"query_expansion": {"alpha": 2.0, "k": 3}, "whitening": 16}
    spec = tiny_spec(evaluation=options, training={"epochs": 1})
    result = train(write_spec_in(tmp_path, spec))
    assert result.status == "ok"
    scores = result.metrics.last
    assert set(scores) == {"roxford5k_medium", "roxford5k_medium+aqe"}
    for found in scores.values():
        assert set(found) == {"map"}
        assert 0 < found["map"] < 1
    logged = json.loads((tmp_path / "metrics.jsonl").read_text())
    assert logged["evaluation"] == scores
    with np.load(tmp_path / NEIGHBOURS) as shown:
        queries = zip(shown["queries"], shown["neighbour_names"], shown["matches"], strict=True)
    for number, names, hits in queries:
        places = [int(name.split("/")[1]) for name in names]
        assert hits.tolist() == np.isin(places, truth.relevant[number]).tolist()
        assert not np.isin(places, truth.ignored[number]).any()


@pytest.fixture
def file_run(tmp_path):
    """Train SoftBinAP for a step on a small dataset of files; returns the last scores by split."""

    def run(name: str, params: dict, **evaluation) -> dict:
        spec = tiny_spec(
            "softbin_ap",
            model={"channels": 3, "pooling": "gem"},
            input={"augmentation": "crop_flip", "crop_area": [0.5, 1.0]},
            sampler={"name": "random", "params": {}},
            training={"epochs": 1},
            evaluation=evaluation,
        )
        params = {"root": str(tmp_path / name), "allow_counts": True, **params}
        dataset = DatasetChoice(spec.dataset.label, name, params)
        changed = dataclasses.replace(spec, dataset=dataset, batch_size=9)
        return train(write_spec_in(tmp_path, changed)).metrics.last

    return run


def test_a_run_on_files_whitens_by_a_sample_of_them_and_expands_queries(
    tmp_path, file_run, monkeypatch
):
    make_sfm120k(tmp_path / "sfm120k")
    make_roxford5k(tmp_path / "roxford5k")
    monkeypatch.setattr(evaluate, "WHITENING_IMAGES", 7)
    params = {"landmarks": ["roxford5k"]}
    found = file_run("sfm120k", params, whitening=4, query_expansion={"alpha": 2.0, "k": 2})
    assert set(found) == {
        "roxford5k_easy",
        "roxford5k_easy+aqe",
        "roxford5k_medium",
        "roxford5k_medium+aqe",
        "roxford5k_hard",
        "roxford5k_hard+aqe",
    }


def test_a_run_with_random_galleries_finds_each_vehicle_once(tmp_path, file_run):
    make_vehicleid(tmp_path / "vehicleid")
    found = file_run("vehicleid", {"protocol": "random_gallery"})
    assert set(found) == {"small", "medium", "large"}
    # with one image of each vehicle in the gallery, precision at the first place is all there is to
    # mAP@R
    for scores in found.values():
        assert scores["map_at_r"] == pytest.approx(scores["recall_at_1"])
