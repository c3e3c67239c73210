"""Revisited Oxford and Paris: judgements of three protocols, cropped queries, and ground truth that
cannot run code."""

from __future__ import annotations

import pickle
from pathlib import Path

import archives
import numpy as np
import pytest

from benchmark.core.errors import DataError
from benchmark.datasets import load_dataset
from benchmark.datasets.io.images import open_image

NAME = "roxford5k"


@pytest.fixture
def root(tmp_path) -> Path:
    archives.make_roxford5k(tmp_path)
    return tmp_path


def load(root: Path):
    return load_dataset(NAME, {"root": str(root), "allow_counts": True})


def write_truth(root: Path, **changes) -> None:
    """Writes the ground truth again; ``changes`` replace values of its first entry."""
    path = root / f"gnd_{NAME}.pkl"
    content = pickle.loads(path.read_bytes())
    content["gnd"][0].update(changes)
    path.write_bytes(pickle.dumps(content))


def refused(root: Path) -> str:
    with pytest.raises(DataError) as caught:
        load(root)
    return str(caught.value)


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
    assert [int(name[-5]) for name in protocol.query.names] == queries, (
        "queries without relevant images are left out"
    )
    assert [places.tolist() for places in protocol.judgements.relevant] == relevant
    assert [places.tolist() for places in protocol.judgements.ignored] == ignored
    assert all(
        places.dtype == np.int64
        for places in protocol.judgements.relevant + protocol.judgements.ignored
    )


def test_gallery_is_one_set_for_all_protocols_without_the_queries(root):
    dataset = load(root)
    galleries = [protocol.gallery for protocol in dataset.protocols.values()]
    assert all(gallery is galleries[0] for gallery in galleries)
    assert list(galleries[0].names) == [f"jpg/oxford_{number:06d}.jpg" for number in range(8)]
    assert len(dataset.train) == 0
    assert dataset.metrics == ("map",)


def test_queries_are_cropped_when_opened_and_gallery_images_are_whole(root):
    protocol = load(root).protocols[f"{NAME}_medium"]
    assert [protocol.query.image(number).size for number in range(3)] == [
        (36, 28),
        (39, 28),
        (24, 18),
    ]
    whole = np.asarray(open_image(root / protocol.query.names[0]))
    assert np.array_equal(np.asarray(protocol.query.image(0)), whole[2:30, 4:40])
    assert np.array_equal(np.asarray(protocol.query.opener.stored(0)), whole[2:30, 4:40])
    assert protocol.gallery.image(0).size == archives.SIZE
    easy = pickle.loads(pickle.dumps(load(root).protocols[f"{NAME}_easy"].query))
    assert easy.image(1).size == (24, 18), "boxes stay with their queries when some are left out"


def test_a_box_is_cut_at_the_edges_and_named_when_nothing_is_left(root):
    write_truth(root, bbx=[-3, 2, 400, 30])
    assert load(root).protocols[f"{NAME}_hard"].query.image(0).size == (48, 28)
    write_truth(root, bbx=[60, 2, 400, 30])
    query = load(root).protocols[f"{NAME}_hard"].query
    with pytest.raises(
        DataError, match=r"oxford_query_000000.jpg is 48 x 36 pixels, .* lies outside"
    ):
        query.image(0)


def test_a_protocol_that_no_query_can_be_asked_in_is_named(root):
    path = root / f"gnd_{NAME}.pkl"
    content = pickle.loads(path.read_bytes())
    for entry in content["gnd"]:
        entry["easy"] = []
    path.write_bytes(pickle.dumps(content))
    assert (
        "protocols without any relevant image: 1; get the ground truth again\n      easy"
        in refused(root)
    )


def test_fingerprint_covers_boxes_and_grades(root):
    first = load(root).fingerprint
    write_truth(root, bbx=[4.0, 2.0, 41.0, 30.0])
    second = load(root).fingerprint
    write_truth(root, junk=[])
    assert len({first, second, load(root).fingerprint}) == 3


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"hard": [10**30]}, "gnd[0] needs bbx of four numbers and the lists easy, hard, junk"),
        ({"hard": [0.5]}, "gnd[0] needs bbx of four numbers"),
        ({"easy": [[0, 1]]}, "gnd[0] needs bbx of four numbers"),
        ({"bbx": ["a", 2, 4, 30]}, "gnd[0] needs bbx of four numbers"),
        ({"bbx": [[1, 2], [3, 4]]}, "gnd[0] needs bbx of four numbers"),
        ({"bbx": [40, 2, 4, 30]}, "gnd[0]['bbx'] is not left, top, right, bottom"),
        ({"easy": [8]}, "gnd[0] must grade images of imlist, 0 to 7"),
        ({"junk": [-1]}, "gnd[0] must grade images of imlist"),
        ({"hard": [1]}, "gnd[0] grades an image twice"),
    ],
)
def test_wrong_ground_truth_is_named_by_entry_and_key(root, changes, words):
    write_truth(root, **changes)
    assert words in refused(root)


def test_ground_truth_of_another_kind_is_refused(root):
    path = root / f"gnd_{NAME}.pkl"
    content = pickle.loads(path.read_bytes())
    path.write_bytes(pickle.dumps([1, 2]))
    assert "cannot read gnd_roxford5k.pkl" in refused(root)
    path.write_bytes(pickle.dumps({**content, "gnd": [{"ok": [1], "bbx": [0, 0, 1, 1]}]}))
    text = refused(root)
    assert "1 entries in gnd for 3 queries" in text
    assert "gnd[0] needs bbx of four numbers and the lists easy, hard, junk" in text
    path.write_bytes(pickle.dumps({**content, "qimlist": ["../up", "a", 3]}))
    assert "wrong names in gnd_roxford5k.pkl: qimlist: 2;" in refused(root)
