"""Features of a network as a dataset: what is read from files, how it is split, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from benchmark.core.errors import DataError
from benchmark.datasets import load_dataset, loader_of

LABELS = np.repeat(np.arange(8), 5)


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32)


@pytest.fixture
def load(tmp_path, rows):
    """Return a function that loads a file of the arrays given, and labels unless they are."""

    def loaded(params=None, **arrays):
        path = tmp_path / "features.npz"
        np.savez(path, **{"embeddings": rows, "labels": LABELS} | arrays)
        return load_dataset("features", {"file": str(path), **(params or {})})

    return loaded


def test_half_of_the_classes_train_by_a_seed_and_rows_follow_their_labels(load, rows):
    dataset = load()
    test = dataset.protocols["test"].query
    assert dataset.counts["train"] == {"images": 20, "classes": 4}
    assert dataset.counts["test"] == {"images": 20, "classes": 4}
    for images in (dataset.train, test):
        numbers = [int(name.removeprefix("row ")) for name in images.names]
        assert np.array_equal(images.features, rows[numbers])
        assert np.array_equal(
            images.labels,
            np.unique(LABELS[numbers], return_inverse=True)[1],
        )
    trained = {frozenset(load({"split_seed": seed}).train.names) for seed in range(5)}
    assert len(trained) > 1
    assert load().fingerprint == dataset.fingerprint
    assert load(embeddings=rows[:, ::-1]).fingerprint != dataset.fingerprint


@pytest.mark.parametrize(
    "words",
    [("train", "query", "gallery"), ("Train", " query", "gallery ")],
)
def test_a_split_says_which_rows_train_query_and_are_searched(load, words):
    split = np.array([words[0]] * 20 + [words[1]] * 8 + [words[2]] * 12)
    labels = np.array([0] * 10 + [1] * 10 + [2, 3] * 10)
    dataset = load(split=split, labels=labels)
    protocol = dataset.protocols["test"]
    assert [
        len(dataset.train),
        len(protocol.query),
        len(protocol.gallery),
    ] == [20, 8, 12]
    assert np.array_equal(protocol.gallery.labels, [0, 1] * 6)


def test_without_a_split_rows_that_are_neither_query_nor_gallery_train(
    load,
):
    labels = np.array([0] * 10 + [1] * 10 + [2, 3] * 10)
    dataset = load(labels=labels, query=np.arange(20, 30), gallery=np.arange(30, 40))
    assert len(dataset.train) == 20
    assert len(dataset.protocols["test"].gallery) == 10


def test_queries_and_gallery_of_all_rows_are_those_of_the_classes_that_test(
    load,
):
    dataset = load(query=np.arange(0, 40, 5), gallery=np.flatnonzero(np.arange(40) % 5))
    protocol = dataset.protocols["test"]
    assert [len(protocol.query), len(protocol.gallery)] == [4, 16]


def test_labels_and_more_may_lie_in_a_table(tmp_path, rows):
    np.save(tmp_path / "rows.npy", rows)
    lines = [f"{label},{'train' if label < 4 else 'test'},n{label}" for label in LABELS]
    (tmp_path / "rows.csv").write_text("\n".join(["class,split,names", *lines]))
    files = {
        "file": str(tmp_path / "rows.npy"),
        "labels": str(tmp_path / "rows.csv"),
    }
    loader = loader_of("features", {**files, "keys": {"labels": "class"}})
    dataset = loader.load()
    assert dataset.train.names[0] == "row 0: n0"
    assert loader.split == "its split is given"


def test_half_precision_stays_as_it_is_and_double_becomes_single(load, rows):
    for stored, kept in (
        ("f2", "float16"),
        ("f4", "float32"),
        ("f8", "float32"),
    ):
        assert load(embeddings=rows.astype(stored)).train.features.dtype == kept


def test_all_rows_that_cannot_be_used_are_named_at_once(load, rows, messages):
    rows[3, 2] = np.nan
    rows[4] = 0.25
    rows[39, 0] = np.inf
    with messages.raised(("not_finite", ""), ("constant", "")):
        load()
    large = np.ones((40, 6)) * np.arange(6) * 1e300  # too large for float32
    with pytest.raises(DataError, match="NaN or infinity"):
        load(embeddings=large)


def test_rows_equal_across_the_split_are_refused_or_counted(load, rows, messages):
    split = np.where(LABELS < 4, "train", "test")
    rows[39] = rows[1]
    rows[38] = rows[37]  # of one side
    with messages.raised(("equal_rows", "")):
        load(split=split)
    dataset = load({"equal_rows": "keep"}, split=split)
    assert dataset.counts["equal to a training row"] == {"images": 1}
    rows[1] = 0
    rows[1, 0] = 1
    rows[39] = rows[1]
    rows[39, 1:] = -0.0  # equal in value, not in bits
    with messages.raised(("equal_rows", "")):
        load(split=split)


def test_splits_that_retrieval_of_new_classes_does_not_allow(load, messages):
    with messages.raised(("both_splits", "")):
        load(split=np.array(["train", "test"] * 20))
    with messages.raised(("other_split", "")):
        load(split=np.where(LABELS < 4, "train", "validation"))
    with messages.raised(("mixed", "")):
        load(
            split=np.where(LABELS < 4, "train", "test"),
            query=np.arange(30, 35),
        )
    with messages.raised(("both_sides", "")):
        load(query=np.arange(20), gallery=np.arange(19, 40))


def test_classes_of_one_row_are_left_out_on_request(load, messages):
    labels = LABELS.copy()
    labels[0] = 8
    with messages.raised(("one_image", "")):
        load(labels=labels)
    assert load({"min_images": 2}, labels=labels).counts["left out"] == {
        "images": 1,
        "classes": 1,
    }


def test_there_is_no_image_of_a_row(load):
    with pytest.raises(DataError, match="no image"):
        load().train.image(0)


def test_held_out_training_classes_keep_their_features(load, tmp_path):
    train = load().train
    params = {
        "of": "features",
        "params": {"file": str(tmp_path / "features.npz")},
    }
    fold = load_dataset("class_folds", params)
    rows = {row.tobytes() for row in train.features}
    found = [
        *fold.train.features,
        *fold.protocols["held_out"].query.features,
    ]
    assert {row.tobytes() for row in found} == rows
