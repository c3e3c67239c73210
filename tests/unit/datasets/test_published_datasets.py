"""The published datasets: splits, classes, categories, protocols and counts, on small data in the
real layouts."""

from __future__ import annotations

import os
from pathlib import Path

import archives
import numpy as np
import pytest

from benchmark.core.options import schema_of
from benchmark.datasets import DATASETS, load_dataset

MAKERS = archives.MAKERS | archives.BROUGHT
EVERY = sorted(MAKERS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Returns a folder with all datasets, read only by the tests."""
    made = tmp_path_factory.mktemp("archives")
    for name, make in MAKERS.items():
        make(made / name)
    return made


@pytest.fixture
def load(folder):
    """Returns a function that loads a small dataset."""

    def load(name, **params):
        params = {"root": str(folder / name), "allow_counts": True, **params}
        return load_dataset(name, params)

    return load


def folders(image_set, place: int) -> set[str]:
    return {name.split("/")[place] for name in image_set.names}


def test_cub_is_split_by_class_number(load):
    dataset = load("cub")
    assert folders(dataset.train, 1) == {"099.Ovenbird", "100.Brown_Pelican"}
    assert folders(dataset.protocols["test"].query, 1) == {
        "101.White_Pelican",
        "200.Common_Yellowthroat",
    }
    assert dataset.train.categories is None


def test_cars196_is_split_by_class_number_not_by_its_own_split(load):
    dataset = load("cars196")
    assert [name[-6:-4] for name in dataset.train.names] == ["01", "02", "05", "06", "09", "10"]
    test = dataset.protocols["test"].query
    assert dataset.train.labels.tolist() == [0, 1, 0, 1, 0, 1]
    assert test.labels.tolist() == [0, 1, 0, 1, 0, 1]


def test_sop_takes_classes_from_the_lists_and_categories_from_the_folders(load):
    train = load("sop").train
    assert train.labels.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert train.categories.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert folders(train, 0) == {"bicycle_final", "chair_final"}


def test_inaturalist_takes_class_and_category_from_the_last_two_folders(load):
    test = load("inaturalist").protocols["test"].query
    assert folders(test, 2) == {"104", "105", "106", "107"}
    for name, category in zip(test.names, test.categories, strict=True):
        assert name.split("/")[1] == ("Aves", "Plantae")[category]


def test_inshop_queries_search_a_gallery_of_the_same_items(load):
    dataset = load("inshop")
    (protocol,) = dataset.protocols.values()
    assert set(protocol.query.labels) == {0, 1, 2, 3}
    assert set(protocol.gallery.labels) == {0, 1, 2, 3}
    items = set()
    for images in (protocol.query, protocol.gallery):
        for label, name in zip(images.labels, images.names, strict=True):
            items.add((label, name.split("/")[3]))
    assert len(items) == 4, "a number stands for the same item among queries and gallery"
    assert dataset.counts["all"] == {"images": 20, "classes": 8, "categories": 2}


def test_inshop_item_in_two_categories_counts_to_the_first(tmp_path):
    archives.make_inshop(tmp_path)
    path = tmp_path / "list_eval_partition.txt"
    old = "img/MEN/Denim/id_00000001/02_2_front.jpg"
    new = "img/MEN/Shorts/id_00000001/02_2_front.jpg"
    path.write_text(path.read_text().replace(old, new))
    archives.write_jpeg(tmp_path / new, 1)
    train = load_dataset("inshop", {"root": str(tmp_path), "allow_counts": True}).train
    assert train.counts() == {"images": 8, "classes": 4, "categories": 2}


def test_vehicleid_has_three_protocols_and_a_category_for_vehicles_without_a_model(load):
    dataset = load("vehicleid")
    sizes = [(name, len(protocol.query)) for name, protocol in dataset.protocols.items()]
    assert sizes == [("small", 6), ("medium", 9), ("large", 12)]
    for protocol in dataset.protocols.values():
        assert protocol.gallery is None
        assert not protocol.repeats
    # vehicles 1000 and 1002 are of models 7 and 12, in the order of text 12, 7; the others share
    # the last category
    assert dataset.train.categories[::3].tolist() == [1, 2, 0, 2]


def test_vehicleid_random_galleries_hold_one_image_of_each_vehicle_and_never_change(load):
    first = load("vehicleid", protocol="random_gallery").protocols["large"]
    second = load("vehicleid", protocol="random_gallery").protocols["large"]
    assert len(first.repeats) == 10
    for (query, gallery), (_, again) in zip(first.repeats, second.repeats, strict=True):
        assert np.array_equal(gallery, again)
        assert first.query.labels[gallery].tolist() == [0, 1, 2, 3]
        assert sorted([*query, *gallery]) == list(range(12))
    assert len({tuple(gallery) for _, gallery in first.repeats}) > 5


def test_images_are_looked_for_by_listing_each_folder_once(load, monkeypatch):
    listing = os.listdir
    stat = os.stat
    listed = []
    asked = []

    def watched_listing(path):
        listed.append(path)
        return listing(path)

    def watched_stat(path, **options):
        asked.append(str(path))
        return stat(path, **options)

    monkeypatch.setattr(os, "listdir", watched_listing)
    monkeypatch.setattr(os, "stat", watched_stat)
    load("inaturalist")
    assert len(listed) == 8
    assert len(set(listed)) == 8
    assert asked, "the lists themselves are asked for"
    assert not any(path.endswith(".jpg") for path in asked)


def test_datasets_are_looked_for_below_the_data_folder(load, folder, monkeypatch):
    monkeypatch.setenv("BENCHMARK_DATA", str(folder))
    found = load_dataset("sfm120k", {"allow_counts": True})
    assert found.fingerprint == load("sfm120k").fingerprint


@pytest.mark.parametrize("name", EVERY)
def test_other_counts_than_the_published_ones_are_refused_part_by_part(make, name, refused):
    found = refused(name, make(name), allow_counts=False)
    assert found[0] == ("other_count", "")


@pytest.mark.parametrize("published", [5, 7])
def test_counts_above_and_below_the_published_ones_are_refused(
    make, monkeypatch, published, refused
):
    monkeypatch.setattr(DATASETS["cub"].target, "expected", {"train": {"images": published}})
    assert refused("cub", make("cub"), allow_counts=False) == [("other_count", "")]


def test_counts_that_are_as_published_raise_nothing(folder, monkeypatch):
    found = {"train": {"images": 6, "classes": 2}, "test": {"images": 6, "classes": 2}}
    monkeypatch.setattr(DATASETS["cub"].target, "expected", found)
    assert load_dataset("cub", {"root": str(folder / "cub")}).counts == found


@pytest.mark.parametrize("name", EVERY)
def test_fingerprint_depends_on_the_lists_and_not_on_the_place(load, folder, name, tmp_path):
    MAKERS[name](tmp_path / name)
    for other in ("roxford5k", "rparis6k", "ijbc"):
        MAKERS[other](tmp_path / other)
    elsewhere = load(name, root=str(tmp_path / name))
    assert elsewhere.fingerprint == load(name).fingerprint


def test_fingerprint_changes_with_a_label(load, tmp_path):
    archives.make_vehicleid(tmp_path)
    path = tmp_path / "train_test_split" / "train_list.txt"
    path.write_text(path.read_text().replace("0000001 1000", "0000001 1001"))
    changed = load("vehicleid", root=str(tmp_path))
    assert changed.fingerprint != load("vehicleid").fingerprint


@pytest.mark.parametrize("name", EVERY)
def test_archives_and_sources_of_counts_are_those_of_the_dataset(folder, name):
    loader = DATASETS[name].target
    for archive in loader.archives:
        for proof in archive.provides:
            path = folder / name / proof
            assert path.exists()
            assert path.is_dir() == proof.endswith("/")
        assert archive.md5 is None or len(bytes.fromhex(archive.md5)) == 16
    assert set(loader.lists) <= set(loader.expected)
    assert loader.source or set(loader.lists) == set(loader.expected)
    assert {"root", "allow_counts"} <= schema_of(loader.Config)["properties"].keys()


def test_images_are_those_that_the_table_names(load):
    dataset = load("sop")  # images are numbered from 1 in the order of the lists, 8 in each
    test = dataset.protocols["test"].query
    for number, picture in ((3, dataset.train.image(2)), (11, test.image(2))):
        shown = np.array(picture.getpixel((40, 30)))
        made = np.array([37, 91, 151]) * number % 256
        assert np.abs(shown - made).max() < 8, "JPEG keeps a flat colour"
