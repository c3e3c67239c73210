"""Packed images: the same order and labels as the files, and no folder that is not complete."""

from __future__ import annotations

import pickle
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import archives
import numpy as np
import pytest

from benchmark.core.errors import DataError
from benchmark.datasets import load_dataset
from benchmark.datasets.io import packed
from benchmark.datasets.io.packed import pack, shard_name

SIDE = archives.SIZE[1]  # images keep their bytes


@pytest.fixture
def root(tmp_path, monkeypatch) -> Path:
    """Returns the root of a small CUB with packed images in several shards, in another order than
    the index."""
    archives.make_cub(tmp_path)
    dataset = load(tmp_path)
    monkeypatch.setattr(packed, "SHARD_BYTES", 3000)
    paths = [*dataset.protocols["test"].query.names, *reversed(dataset.train.names)]
    assert len(list(pack(tmp_path, SIDE, paths, workers=1).glob("shard-*"))) > 1
    return tmp_path


def load(root: Path, **params):
    return load_dataset("cub", {"root": str(root), "allow_counts": True, **params})


def test_packed_images_are_those_of_the_files_in_the_same_order(root):
    plain, packed = load(root), load(root, packed=SIDE)
    for one, other in (
        (plain.train, packed.train),
        (plain.protocols["test"].query, packed.protocols["test"].query),
    ):
        assert list(one.names) == list(other.names)
        assert np.array_equal(one.labels, other.labels)
        for number in range(len(one)):
            assert np.array_equal(np.asarray(one.image(number)), np.asarray(other.image(number)))


def test_packed_images_need_no_image_files(root):
    shutil.rmtree(root / "images")
    assert load(root, packed=SIDE).train.image(5).size == archives.SIZE
    with pytest.raises(DataError, match="images/"):
        load(root)


def test_fingerprint_tells_packed_images_from_files(root):
    assert (
        load(root).fingerprint
        != load(root, packed=SIDE).fingerprint
        == load(root, packed=SIDE).fingerprint
    )


def test_packed_images_open_in_threads_and_in_other_processes(root):
    train = load(root, packed=SIDE).train
    expected = [np.asarray(train.image(number)) for number in range(len(train))]
    with ThreadPoolExecutor(4) as pool:
        shown = list(pool.map(train.image, list(range(len(train))) * 5))
    assert all(
        np.array_equal(np.asarray(image), expected[place % len(train)])
        for place, image in enumerate(shown)
    )
    copy = pickle.loads(pickle.dumps(train))
    assert np.array_equal(np.asarray(copy.image(2)), expected[2])


def without_mark(folder: Path) -> None:
    (folder / "complete.json").unlink()


def with_another_index(folder: Path) -> None:
    with (folder / "index.csv").open("a") as file:
        file.write("images/one/more.jpg,0,0,10\n")


def with_a_shard_cut_short(folder: Path) -> None:
    shard = folder / shard_name(1)
    shard.write_bytes(shard.read_bytes()[:-1])


def without_a_shard(folder: Path) -> None:
    (folder / shard_name(0)).unlink()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (without_mark, "no complete packed images in"),
        (with_another_index, "does not describe"),
        (with_a_shard_cut_short, "was cut: shard-00001.bin"),
        (without_a_shard, "was cut: shard-00000.bin"),
        (shutil.rmtree, "no complete packed images in"),
    ],
)
def test_an_incomplete_or_damaged_folder_is_refused(root, damage, words):
    damage(root / f"packed-{SIDE}")
    with pytest.raises(DataError, match=words):
        load(root, packed=SIDE)


def test_images_that_were_not_packed_are_named(tmp_path):
    archives.make_cub(tmp_path)
    names = list(load(tmp_path).train.names)
    pack(tmp_path, SIDE, names, workers=1)
    with pytest.raises(DataError, match="images not packed: 6; pack them again") as caught:
        load(tmp_path, packed=SIDE)
    assert "images/101.White_Pelican/White_Pelican_0001_1.jpg" in str(caught.value)


def test_a_broken_packed_image_is_named_with_its_shard(root):
    shard = root / f"packed-{SIDE}" / shard_name(0)
    shard.write_bytes(b"\0" * shard.stat().st_size)
    with pytest.raises(
        DataError, match=r"cannot decode images/101.White_Pelican/.*shard-00000.bin"
    ):
        load(root, packed=SIDE).protocols["test"].query.image(0)
