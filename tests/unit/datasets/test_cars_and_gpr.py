"""Cars196 and GPR1200 on made-up archives: damaged, miscounted and duplicated ones are refused."""

from __future__ import annotations

import dataclasses
import shutil

import archives
import numpy as np
import pytest
from numpy.lib.recfunctions import repack_fields
from scipy.io import loadmat, savemat
from sklearn.metrics import average_precision_score
from tiny_runs import tiny_spec, write_spec_in

from benchmark.core.errors import ConfigError
from benchmark.core.records import DatasetChoice
from benchmark.datasets import load_dataset
from benchmark.metrics import retrieval_metrics
from benchmark.training.run import train


@pytest.fixture
def cars(tmp_path):
    archives.make_cars196(tmp_path)
    return tmp_path


@pytest.fixture
def halves(tmp_path):
    archives.halved_cars196(tmp_path / "halves")
    return tmp_path / "halves"


@pytest.fixture
def gpr(tmp_path):
    """Return a GPR1200 of four classes of two kinds, three images each."""
    for number in (0, 199, 200, 1199):
        for image in range(3):
            archives.write_jpeg(tmp_path / "images" / f"{number}_pic{image}.jpg", number + image)
    return tmp_path


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_cut_off_annotations_are_said_to_be(cars, share, refused):
    path = cars / "cars_annos.mat"
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    assert refused("cars196", cars) == [("unreadable", "cars_annos.mat")]


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("relative_im_path", "car_ims/000002.jpg", "listed_twice"),
        ("relative_im_path", "../secret.jpg", "path_outside"),
        ("relative_im_path", "/etc/passwd", "path_outside"),
        ("relative_im_path", "elsewhere/1.jpg", "path_outside"),
        ("class", 197, "missing"),
    ],
)
def test_wrong_annotations_are_named(cars, field, value, code, refused):
    content = loadmat(cars / "cars_annos.mat")
    images = content["annotations"]
    names = content["class_names"]
    images[0][field][0] = np.array([value])
    savemat(cars / "cars_annos.mat", {"annotations": images, "class_names": names})
    file = "cars_annos.mat" if code == "missing" else ""
    assert refused("cars196", cars) == [(code, file)]


def test_the_halves_with_a_development_kit_are_the_same_dataset(cars, halves):
    one = load_dataset("cars196", {"root": str(cars), "allow_counts": True})
    other = load_dataset("cars196", {"root": str(halves), "allow_counts": True})
    assert one.counts == other.counts
    assert one.counts["train"] == {"images": 6, "classes": 2}
    names = other.train.names
    assert sorted({name.partition("/")[0] for name in names}) == ["cars_test", "cars_train"]
    assert other.train.labels.tolist() == [0, 1, 0, 1, 0, 1]
    assert other.protocols["test"].query.counts() == {"images": 6, "classes": 2}


def test_halves_that_are_half_there_are_named(halves, refused):
    (halves / "cars_test_annos_withlabels.mat").unlink()
    assert refused("cars196", halves) == [("missing_part", "")]


@pytest.mark.parametrize(
    ("whole", "part"),
    [
        ("halves", "cars_annos.mat"),
        ("halves", "car_ims/"),
        ("cars", "devkit/cars_meta.mat"),
    ],
)
def test_a_complete_layout_counts_beside_a_part_of_the_other(cars, halves, whole, part):
    places = {"halves": halves, "cars": cars}
    here = places.pop(whole)
    (there,) = places.values()
    (here / part).parent.mkdir(exist_ok=True)
    copy = shutil.copytree if part.endswith("/") else shutil.copy
    copy(there / part, here / part)
    dataset = load_dataset("cars196", {"root": str(here), "allow_counts": True})
    assert dataset.counts["train"] == {"images": 6, "classes": 2}


@pytest.mark.parametrize("file", ["cars_train_annos.mat", "cars_meta.mat"])
def test_a_damaged_development_kit_is_one_message(halves, file, refused):
    path = halves / "devkit" / file
    path.write_bytes(path.read_bytes()[:300])
    assert refused("cars196", halves) == [("unreadable", f"devkit/{file}")]


def test_the_hidden_test_annotations_have_no_classes(halves, refused):
    images = archives.car_annotations("fname", "{:05d}.jpg", [1, 2])
    images = repack_fields(images[["fname", "bbox_x1"]])
    file = "cars_test_annos_withlabels.mat"
    savemat(halves / file, {"annotations": images})
    assert refused("cars196", halves) == [("unreadable", file)]


@pytest.mark.parametrize("name", ["../../secret.jpg", "/etc/passwd", "deeper/1.jpg"])
def test_names_out_of_the_halves_are_refused(halves, name, refused):
    images = archives.car_annotations("fname", "{:05d}.jpg", [1, 98])
    images["fname"][0, 0] = name
    savemat(halves / "devkit" / "cars_train_annos.mat", {"annotations": images})
    assert ("path_outside", "") in refused("cars196", halves)


def test_gpr_has_six_kinds_of_classes_by_number(gpr):
    dataset = load_dataset("gpr1200", {"root": str(gpr), "allow_counts": True})
    query = dataset.protocols["test"].query
    assert query.labels.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert len(dataset.train) == 0
    assert dataset.metrics == ("map",)
    assert dataset.counts["test"] == {"images": 12, "classes": 4, "categories": 3}


def test_gpr_ranks_the_query_itself_as_its_authors_code_does(gpr):
    dataset = load_dataset("gpr1200", {"root": str(gpr), "allow_counts": True})
    protocol = dataset.protocols["test"]
    labels = dataset.protocols["test"].query.labels
    assert protocol.gallery is protocol.query
    rows = np.random.default_rng(0).normal(size=(12, 3))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    found = retrieval_metrics(rows, labels, rows, labels)["map"]
    averages = []
    for query, label in enumerate(labels):
        scores = rows @ rows[query]
        assert scores.argmax() == query
        averages.append(average_precision_score(labels == label, scores))
    assert found == pytest.approx(np.mean(averages))


def test_gpr_with_fewer_images_is_refused_unless_allowed(gpr, refused):
    assert refused("gpr1200", gpr, allow_counts=False) == [("other_count", "")]


@pytest.mark.parametrize("name", ["1200_a.jpg", "x_a.jpg", "5.jpg", "5_a.txt"])
def test_gpr_refuses_files_that_are_no_image_of_a_class(gpr, name, refused):
    (gpr / "images" / name).write_bytes(b"")
    assert refused("gpr1200", gpr) == [("other_file", "")]


def spec_of(gpr, *options, **sections):
    spec = tiny_spec(*options, **sections)
    params = {"root": str(gpr), "allow_counts": True}
    return dataclasses.replace(spec, dataset=DatasetChoice("gpr1200", "gpr1200", params))


@pytest.mark.parametrize("frozen", [False, True])
def test_a_network_is_evaluated_on_a_dataset_without_training_images(gpr, tmp_path, frozen):
    spec = spec_of(
        gpr,
        "untrained",
        model={"channels": 3, "freeze_backbone": frozen, "embedding_dim": None},
        input={"augmentation": "none", "image_size": 32},
        training={"epochs": 0},
    )
    (tmp_path / "run").mkdir()
    result = train(write_spec_in(tmp_path / "run", spec))
    assert result.status == "ok"
    assert 0.3 < result.metrics.last["test"]["map"] <= 1


def test_training_without_training_images_is_refused(gpr, tmp_path):
    spec = spec_of(gpr, input={"augmentation": "none"}, model={"channels": 3})
    (tmp_path / "run").mkdir()
    with pytest.raises(ConfigError, match="has no training images"):
        train(write_spec_in(tmp_path / "run", spec))
