"""Landmarks: judgements of three protocols, cropped queries, distractors, wrong ground truth."""

from __future__ import annotations

import pickle
from pathlib import Path

import archives
import numpy as np
import pytest

from benchmark.core.errors import ConfigError, DataError
from benchmark.datasets import load_dataset
from benchmark.datasets.io.images import open_image

NAME = "roxford5k"


@pytest.fixture
def root(tmp_path) -> Path:
    archives.make_roxford5k(tmp_path)
    return tmp_path


def load(root: Path, name=NAME, **params):
    return load_dataset(name, {"root": str(root), "allow_counts": True, **params})


def write_truth(root: Path, **changes) -> None:
    """Writes the ground truth again; ``changes`` replace values of its first entry."""
    path = root / f"gnd_{NAME}.pkl"
    content = pickle.loads(path.read_bytes())
    content["gnd"][0].update(changes)
    path.write_bytes(pickle.dumps(content))


@pytest.mark.parametrize(
    ("level", "queries", "relevant", "ignored"),
    [
        ("easy", [0, 2], [[0, 1], [4]], [[2, 3], [5, 6]]),
        ("medium", [0, 1, 2], [[0, 1, 2], [7], [4, 5, 6]], [[3], [0], []]),
        ("hard", [0, 1, 2], [[2], [7], [5, 6]], [[0, 1, 3], [0], [4]]),
    ],
)
def test_grades_are_relevant_or_ignored_as_the_protocol_says(
    root, level, queries, relevant, ignored
):
    protocol = load(root).protocols[f"{NAME}_{level}"]
    numbers = [int(name[-5]) for name in protocol.query.names]
    assert numbers == queries, "queries without relevant images are left out"
    judgements = protocol.judgements
    assert [places.tolist() for places in judgements.relevant] == relevant
    assert [places.tolist() for places in judgements.ignored] == ignored
    for places in judgements.relevant + judgements.ignored:
        assert places.dtype == np.int64


def test_gallery_is_one_set_for_all_protocols_without_the_queries(root):
    dataset = load(root)
    first, *others = [protocol.gallery for protocol in dataset.protocols.values()]
    assert all(gallery is first for gallery in others)
    assert list(first.names) == [f"jpg/oxford_{number:06d}.jpg" for number in range(8)]
    assert len(dataset.train) == 0
    assert dataset.metrics == ("map",)


def test_queries_are_cropped_when_opened_and_gallery_images_are_whole(root):
    protocol = load(root).protocols[f"{NAME}_medium"]
    query = protocol.query
    assert query.image(0).size == (36, 28)
    assert query.image(1).size == (39, 28)
    assert query.image(2).size == (24, 18)
    whole = np.asarray(open_image(root / query.names[0]))
    cropped = whole[2:30, 4:40]
    assert np.array_equal(np.asarray(query.image(0)), cropped)
    assert np.array_equal(np.asarray(query.opener.stored(0)), cropped)
    assert protocol.gallery.image(0).size == archives.SIZE
    easy = pickle.loads(pickle.dumps(load(root).protocols[f"{NAME}_easy"].query))
    assert easy.image(1).size == (24, 18), "boxes stay with their queries when some are left out"


def test_a_box_is_cut_at_the_edges_and_named_when_nothing_is_left(root):
    write_truth(root, bbx=[-3, 2, 400, 30])
    query = load(root).protocols[f"{NAME}_hard"].query
    assert query.image(0).size == (48, 28)
    write_truth(root, bbx=[60, 2, 400, 30])
    query = load(root).protocols[f"{NAME}_hard"].query
    words = r"oxford_query_000000.jpg is 48 x 36 pixels, .* lies outside"
    with pytest.raises(DataError, match=words):
        query.image(0)


def test_a_protocol_that_no_query_can_be_asked_in_is_named(root, refused):
    path = root / f"gnd_{NAME}.pkl"
    content = pickle.loads(path.read_bytes())
    for entry in content["gnd"]:
        entry["easy"] = []
    path.write_bytes(pickle.dumps(content))
    assert refused(NAME, root) == [("no_relevant_image", "")]


def test_fingerprint_covers_boxes_and_grades(root):
    first = load(root).fingerprint
    write_truth(root, bbx=[4.0, 2.0, 41.0, 30.0])
    second = load(root).fingerprint
    write_truth(root, junk=[])
    third = load(root).fingerprint
    assert len({first, second, third}) == 3


TRUTH = f"gnd_{NAME}.pkl"


@pytest.mark.parametrize(
    "changes",
    [
        {"hard": [10**30]},
        {"hard": [0.5]},
        {"easy": [[0, 1]]},
        {"bbx": ["a", 2, 4, 30]},
        {"bbx": [[1, 2], [3, 4]]},
        {"bbx": [40, 2, 4, 30]},
        {"easy": [8]},
        {"junk": [-1]},
        {"hard": [1]},
    ],
)
def test_wrong_ground_truth_is_named_by_entry(root, changes, refused):
    write_truth(root, **changes)
    assert refused(NAME, root) == [("wrong_value", TRUTH)]


def test_ground_truth_of_another_kind_is_refused(root, refused):
    path = root / TRUTH
    content = pickle.loads(path.read_bytes())
    path.write_bytes(pickle.dumps([1, 2]))
    assert refused(NAME, root) == [("unreadable", TRUTH)]
    path.write_bytes(pickle.dumps({**content, "gnd": [{"ok": [1], "bbx": [0, 0, 1, 1]}]}))
    assert refused(NAME, root) == [("other_count", TRUTH), ("wrong_value", TRUTH)]
    path.write_bytes(pickle.dumps({**content, "qimlist": ["../up", "a", 3]}))
    assert refused(NAME, root) == [("malformed_name", "")]


@pytest.fixture
def folder(tmp_path):
    """Return a folder with all landmark sets."""
    makers = archives.MAKERS | archives.BROUGHT
    for name in ("roxford5k", "rparis6k", "sfm120k", "landmarks_clean", "revisitop1m"):
        makers[name](tmp_path / name)
    return tmp_path


def test_sfm_finds_images_by_the_last_six_characters_of_their_names(folder):
    train = load(folder / "sfm120k", "sfm120k").train
    assert train.labels.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    first = train.names[0]
    assert first.split("/")[:4] == ["ims", first[-2:], first[-4:-2], first[-6:-4]]
    assert train.image(0).size == archives.SIZE


def test_landmarks_are_classes_and_all_images_train(folder):
    dataset = load(folder / "landmarks_clean", "landmarks_clean")
    assert dataset.train.labels.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert dataset.train.image(3).size == archives.SIZE
    assert all(protocol.distractors is None for protocol in dataset.protocols.values())


def test_a_training_set_is_evaluated_on_the_landmark_sets_it_names(folder):
    dataset = load(folder / "sfm120k", "sfm120k")
    paris = ["rparis6k_easy", "rparis6k_medium", "rparis6k_hard"]
    oxford = ["roxford5k_easy", "roxford5k_medium", "roxford5k_hard"]
    assert list(dataset.protocols) == oxford + paris
    params = {"landmarks": ["rparis6k"], "landmarks_root": str(folder)}
    chosen = load(folder / "sfm120k", "sfm120k", **params)
    assert list(chosen.protocols) == paris
    assert chosen.fingerprint != dataset.fingerprint


def test_distractors_are_searched_with_the_gallery_of_each_landmark_set(folder):
    root = folder / "landmarks_clean"
    names = ["roxford5k", "roxford_1m", "rparis_1m"]
    dataset = load(root, "landmarks_clean", landmarks=names)
    assert list(dataset.protocols) == [
        "roxford5k_easy",
        "roxford5k_medium",
        "roxford5k_hard",
        "roxford_1m_easy",
        "roxford_1m_medium",
        "roxford_1m_hard",
        "rparis_1m_easy",
        "rparis_1m_medium",
        "rparis_1m_hard",
    ]
    plain = dataset.protocols["roxford5k_hard"]
    with_more = dataset.protocols["roxford_1m_hard"]
    assert with_more.judgements is plain.judgements
    assert with_more.gallery is plain.gallery
    assert plain.distractors is None
    assert len(with_more.distractors) == 5
    of_paris = dataset.protocols["rparis_1m_easy"].distractors
    assert of_paris is with_more.distractors, "one set of all, to be embedded once"
    assert dataset.counts["revisitop1m distractors"] == {"images": 5}
    other = load(root, "landmarks_clean", landmarks=names[:1])
    assert dataset.fingerprint != other.fingerprint


def test_distractors_alone_can_be_checked(folder):
    dataset = load(folder / "revisitop1m", "revisitop1m")
    assert len(dataset.train) == 0
    assert dataset.counts == {"distractors": {"images": 5}}
    assert dataset.protocols["revisitop1m"].query.labels.shape == (5,)


def test_problems_of_images_landmark_sets_and_distractors_are_said_at_once(folder, refused):
    annotations = "annotations/annotation_clean_train.txt"
    (folder / "landmarks_clean" / annotations).write_text("")
    params = {"landmarks": ["rparis_1m"], "landmarks_root": str(folder / "nowhere")}
    found = refused("landmarks_clean", folder / "landmarks_clean", **params)
    assert found[0] == ("empty_list", annotations)
    assert found[-2:] == [("no_root", "")] * 2


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        (["roxford"], "did you mean 'roxford5k'"),
        ([], "at least 1"),
    ],
)
def test_landmark_sets_that_do_not_exist_are_refused(folder, sets, words):
    with pytest.raises(ConfigError, match=words):
        load(folder / "landmarks_clean", "landmarks_clean", landmarks=sets)
