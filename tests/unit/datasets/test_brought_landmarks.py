"""Landmarks-clean and the R1M distractors, on small copies: good, truncated, miscounted,
doubled."""

from __future__ import annotations

import archives
import numpy as np
import pytest

from benchmark.core.errors import DataError
from benchmark.datasets import load_dataset

NAMES = ("landmarks_clean", "revisitop1m")
LISTS = {
    "landmarks_clean": "annotations/annotation_clean_train.txt",
    "revisitop1m": "revisitop1m.txt",
}


@pytest.fixture
def folder(tmp_path):
    """Return a folder with the small copies and the landmark sets."""
    for name in NAMES:
        archives.BROUGHT[name](tmp_path / name)
    for name in ("roxford5k", "rparis6k"):
        archives.MAKERS[name](tmp_path / name)
    return tmp_path


def load(folder, name, **params):
    return load_dataset(name, {"root": str(folder / name), "allow_counts": True, **params})


def refused(folder, name, **params) -> str:
    with pytest.raises(DataError) as caught:
        load(folder, name, **params)
    return str(caught.value)


def test_landmarks_are_classes_and_all_images_train(folder):
    dataset = load(folder, "landmarks_clean")
    assert dataset.train.labels.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert dataset.train.image(3).size == archives.SIZE
    assert list(dataset.protocols)[:2] == ["roxford5k_easy", "roxford5k_medium"]
    assert all(protocol.distractors is None for protocol in dataset.protocols.values())


def test_distractors_are_searched_with_the_gallery_of_each_landmark_set(folder):
    names = ["roxford5k", "roxford_1m", "rparis_1m"]
    dataset = load(folder, "landmarks_clean", landmarks=names)
    assert list(dataset.protocols) == [
        f"{name}_{level}" for name in names for level in ("easy", "medium", "hard")
    ]
    plain, with_more = (dataset.protocols[f"{name}_hard"] for name in names[:2])
    assert with_more.judgements is plain.judgements and with_more.gallery is plain.gallery
    assert plain.distractors is None and len(with_more.distractors) == 5
    shared = {id(p.distractors) for p in dataset.protocols.values() if p.distractors}
    assert len(shared) == 1, "the distractors of all protocols are one set, to be embedded once"
    assert dataset.counts["revisitop1m distractors"] == {"images": 5}
    assert dataset.fingerprint != load(folder, "landmarks_clean", landmarks=names[:1]).fingerprint


@pytest.mark.parametrize("name", NAMES)
def test_an_image_that_is_listed_but_not_there_is_named(folder, name):
    path = next(path for path in sorted((folder / name).rglob("*.jpg")))
    path.unlink()
    text = refused(folder, name)
    assert "images missing" in text and path.relative_to(folder / name).as_posix() in text


@pytest.mark.parametrize("name", NAMES)
def test_an_image_listed_twice_is_named(folder, name):
    path = folder / name / LISTS[name]
    first = path.read_text().splitlines()[0]
    path.write_text(path.read_text() + first + "\n")
    text = refused(folder, name)
    assert "twice" in text and first.split()[0] in text


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("rows", "words"), [("", "lists nothing"), ("a b c\n", "line 1: 'a b c'")])
def test_an_empty_or_malformed_list_is_named(folder, name, rows, words):
    (folder / name / LISTS[name]).write_text(rows)
    assert words in refused(folder, name)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("landmarks_clean", ("images: 9 instead of 42,410", "classes: 3 instead of 586")),
        ("revisitop1m", ("images: 5 instead of 1,001,001",)),
    ],
)
def test_other_counts_than_the_published_ones_are_refused(folder, name, words):
    text = refused(folder, name, allow_counts=False)
    assert all(each in text for each in words)
    assert f"by {LISTS[name]}" in text


def test_problems_of_images_landmark_sets_and_distractors_are_told_at_once(folder, tmp_path):
    (folder / "landmarks_clean" / LISTS["landmarks_clean"]).write_text("")
    elsewhere = str(tmp_path / "nowhere")
    text = refused(folder, "landmarks_clean", landmarks=["rparis_1m"], landmarks_root=elsewhere)
    for name in ("landmarks_clean", "rparis6k", "revisitop1m"):
        assert f"dataset '{name}'" in text
    assert "roxford5k" not in text


def test_an_unknown_landmark_set_is_refused(folder):
    with pytest.raises(Exception, match="roxford_1m"):
        load(folder, "landmarks_clean", landmarks=["roxford"])


def test_distractors_alone_can_be_checked(folder):
    dataset = load(folder, "revisitop1m")
    assert len(dataset.train) == 0 and dataset.counts == {"distractors": {"images": 5}}
    assert np.array_equal(dataset.protocols["revisitop1m"].query.labels.shape, (5,))
