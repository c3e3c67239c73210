"""VGGFace2 and IJB-C on small copies in their layouts: good, truncated, miscounted, doubled."""

from __future__ import annotations

import archives
import numpy as np
import pytest
from archives import SIZE

from benchmark.datasets import load_dataset
from benchmark.training.evaluate import EmbeddedProtocol

TABLES = {"vggface2": "bb_landmark/loose_bb_test.csv", "ijbc": "protocols/ijbc_metadata.csv"}
NAMES = tuple(TABLES)


@pytest.fixture
def folder(tmp_path):
    for name in NAMES:
        archives.BROUGHT[name](tmp_path / name)
    return tmp_path


def load(folder, name, **params):
    return load_dataset(name, {"root": str(folder / name), "allow_counts": True, **params})


def test_people_are_classes_and_are_tested_on_others_and_on_ijbc(folder):
    dataset = load(folder, "vggface2")
    assert dataset.train.counts() == {"images": 12, "classes": 4}
    test = dataset.protocols["test"].query
    assert test.counts() == {"images": 6, "classes": 2}
    ijbc = dataset.protocols["ijbc"].query
    assert ijbc.counts() == {"images": 13, "classes": 2}
    assert dataset.counts["ijbc instances"] == {"images": 10}
    alone = load(folder, "vggface2", evaluated_on=[])
    assert list(alone.protocols) == ["test"]
    assert alone.fingerprint != dataset.fingerprint


def test_faces_are_cropped_to_their_box_and_a_margin(folder):
    dataset = load(folder, "vggface2")
    assert dataset.train.image(0).size == (26, 20)  # 20 x 16 grown by 0.3: 7 to 33, 5.6 to 26.4
    without_margin = load(folder, "vggface2", margin=0.0)
    assert without_margin.train.image(0).size == (20, 16)
    assert without_margin.fingerprint != dataset.fingerprint


def test_other_boxes_are_other_images(folder):
    """Features of a frozen backbone are kept by this fingerprint."""
    before = load(folder, "vggface2").images_fingerprint
    assert load(folder, "vggface2", margin=0.0).images_fingerprint != before
    path = folder / "ijbc" / TABLES["ijbc"]
    path.write_text(path.read_text().replace("20,16", "20,15", 1))
    assert load(folder, "vggface2").images_fingerprint != before


def test_aligned_faces_are_read_as_they_are_from_a_folder_of_their_own(folder):
    for name in NAMES:
        archives.BROUGHT[name](folder / name / "aligned")
    dataset = load(folder, "vggface2", aligned=True)
    sets = [dataset.train, *(protocol.query for protocol in dataset.protocols.values())]
    for images in sets:
        assert all(name.startswith("aligned/") for name in images.names)
        assert images.image(1).size == SIZE


def test_a_video_is_one_instance_and_people_with_few_instances_are_left_out(folder):
    (protocol,) = load(folder, "ijbc").protocols.values()
    assert protocol.instances.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 8, 9, 9]
    query = protocol.query
    assert query.labels.tolist() == [0] * 5 + [1] * 8
    shared = [number for number, name in enumerate(query.names) if name == "images/img/5.png"]
    first, second = shared  # an image may show two people
    boxes = query.opener.boxes
    assert boxes[first].tolist() != boxes[second].tolist()


def test_the_vector_of_an_instance_is_the_mean_of_its_images_at_unit_length(folder):
    (protocol,) = load(folder, "ijbc").protocols.values()
    rows = np.random.default_rng(0).standard_normal((13, 6)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    item = EmbeddedProtocol.of(protocol, {id(protocol.query): rows})
    video = rows[8:11].mean(axis=0)
    np.testing.assert_allclose(item.query[8], video / np.linalg.norm(video), atol=1e-6)
    np.testing.assert_allclose(item.query[:8], rows[:8], atol=1e-6)
    instances = item.protocol.query
    assert len(item.query) == 10
    assert len(instances) == 10
    assert instances.labels.tolist() == [0] * 5 + [1] * 5
    assert instances.names[8] == "images/frames/20_0.png"
    assert instances.image(9).size == protocol.query.image(11).size


@pytest.mark.parametrize("name", NAMES)
def test_a_comma_at_the_end_of_each_row_moves_no_column(folder, name):
    before = load(folder, name)
    path = folder / name / TABLES[name]
    head, *rows = path.read_text().splitlines()
    lines = [head, *(f"{row}," for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    after = load(folder, name)
    assert after.fingerprint == before.fingerprint


def test_other_counts_than_the_published_ones_are_refused_for_all_sets_at_once(folder, refused):
    found = refused("vggface2", folder / "vggface2", allow_counts=False)
    assert found == [("other_count", "")] * 2
