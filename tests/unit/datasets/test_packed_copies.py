"""Packed copies: what is stored of an image, that they equal the files in order, what a kill
leaves, and how a dataset is read from them."""

from __future__ import annotations

import io
import json
import pickle
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import archives
import numpy as np
import pytest
from PIL import Image

from benchmark.core.errors import DataError
from benchmark.datasets import DATASETS, load_dataset
from benchmark.datasets.io import packed as packing
from benchmark.datasets.io.images import open_image
from benchmark.datasets.io.packed import PackedImages, encode, pack, shard_name

SIDE = 16


@pytest.fixture
def root(tmp_path):
    """Returns a root with twelve JPEG images of random pixels, ``<number>.jpg``."""
    for number in range(12):
        pixels = np.random.default_rng(number).integers(0, 256, (30, 40, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{number}.jpg")
    return tmp_path


PATHS = [f"{number}.jpg" for number in (3, 1, 4, 0, 5, 9, 2, 6, 8, 7, 10, 11)]


def stored(root, name, side=SIDE):
    """Returns the picture of which a copy keeps the bytes."""
    content = encode(root / name, side, True)
    assert isinstance(content, bytes), content
    return Image.open(io.BytesIO(content))


def assert_equal_pictures(one, other):
    assert np.array_equal(np.asarray(one), np.asarray(other))


def test_images_are_shrunk_to_the_short_side_and_keep_their_shape(root):
    picture = stored(root, "0.jpg")
    assert picture.size == (21, 16)
    assert picture.format == "JPEG"
    Image.new("RGB", (20, 200)).save(root / "tall.jpg")
    assert stored(root, "tall.jpg").size == (16, 160)


@pytest.mark.parametrize(
    ("name", "levels"),
    [
        ("smooth.jpg", 4),
        ("smooth.png", 1),
    ],
)
def test_shrinking_is_that_of_the_evaluation_up_to_the_compression(root, name, levels):
    from benchmark.input.views import pixels_of, resize

    smooth = np.linspace(0, 255, 30 * 40 * 3).reshape(30, 40, 3).astype(np.uint8)
    Image.fromarray(smooth).save(root / name)
    found = stored(root, name)
    wanted = resize(pixels_of(open_image(root / name)), (found.width, SIDE))
    assert np.abs(np.asarray(found, int) - np.asarray(wanted, int)).max() <= levels


@pytest.mark.parametrize("side", [SIDE, 1000])
def test_uncompressed_copies_hold_the_shrunk_pixels_themselves(root, side):
    Image.new("L", (40, 20), 77).save(root / "grey.png")
    pack(root, side, ["0.jpg", "grey.png"], workers=1, compressed=False)
    opener = PackedImages(root, side).opener(["0.jpg", "grey.png"])
    wanted = open_image(root / "0.jpg")
    if side == SIDE:
        wanted = wanted.resize((21, 16), Image.Resampling.BILINEAR)
    assert_equal_pictures(opener(0), wanted)
    assert opener(1).mode == "L"
    assert opener(1).getpixel((0, 0)) == 77


@pytest.mark.parametrize("side", [30, 31, 1000])
def test_small_images_keep_their_very_bytes(root, side):
    assert encode(root / "0.jpg", side, True) == (root / "0.jpg").read_bytes()


@pytest.mark.parametrize("ending", ["png", "bmp", "tif"])
def test_lossless_images_stay_lossless(root, ending):
    pixels = np.random.default_rng(0).integers(0, 256, (10, 10, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(root / f"x.{ending}")
    found = stored(root, f"x.{ending}")
    assert found.format == "PNG"
    assert_equal_pictures(found, pixels)


def test_lossy_images_become_jpeg(root):
    Image.new("RGB", (10, 10)).save(root / "x.webp")
    assert stored(root, "x.webp").format == "JPEG"


def test_turned_grey_and_transparent_images_are_stored_as_they_are_shown(root):
    exif = Image.Exif()
    exif[274] = 6  # orientation: turn by 90 degrees
    Image.open(root / "0.jpg").save(root / "turned.jpg", exif=exif, quality=95)
    Image.new("L", (8, 8), 77).save(root / "grey.png")
    Image.new("RGBA", (8, 8), (0, 0, 0, 0)).save(root / "clear.png")
    assert stored(root, "turned.jpg", 100).size == (30, 40)
    assert stored(root, "grey.png").mode == "L"
    assert stored(root, "clear.png").getpixel((0, 0)) == (255, 255, 255)


@pytest.mark.parametrize("shard_bytes", [1, 1500, 10**9])
def test_a_packed_copy_holds_the_same_images_in_the_same_order(root, monkeypatch, shard_bytes):
    monkeypatch.setattr(packing, "SHARD_BYTES", shard_bytes)
    folder = pack(root, SIDE, PATHS, workers=1)
    names = sorted(path.name for path in folder.iterdir())
    shards = [name for name in names if name.startswith("shard-")]
    assert names == ["complete.json", "index.csv", *shards]
    if shard_bytes == 1:
        assert len(shards) == 12
    if shard_bytes == 10**9:
        assert len(shards) == 1
    assert json.loads((folder / "complete.json").read_text())["images"] == 12
    lines = (folder / "index.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines] == ["path", *PATHS]
    opener = PackedImages(root, SIDE).opener(PATHS)
    for number, path in enumerate(PATHS):
        assert_equal_pictures(opener(number), stored(root, path))


def test_a_complete_copy_is_kept_and_one_that_lacks_images_is_replaced(root):
    folder = pack(root, SIDE, PATHS[:5], workers=1)
    complete = folder / "complete.json"
    first = complete.stat().st_mtime_ns
    pack(root, SIDE, PATHS[:5], workers=1)
    assert complete.stat().st_mtime_ns == first
    pack(root, SIDE, PATHS, workers=1)
    assert PackedImages(root, SIDE).missing(PATHS) == []


def test_a_kill_loses_at_most_one_shard_and_nothing_half_written_counts(root, monkeypatch):
    code = """
import os, signal, sys
from pathlib import Path
from benchmark.datasets.io import packed
packed.SHARD_BYTES, packed.BLOCK = 1500, 1
call = packed.encode
def killed(file, *options):
    if file.name == "8.jpg":
        os.kill(os.getpid(), signal.SIGKILL)
    return call(file, *options)
packed.encode = killed
packed.pack(Path(sys.argv[1]), 16, sys.argv[2:], workers=1)
"""
    done = subprocess.run([sys.executable, "-c", code, str(root), *PATHS], check=False)
    assert done.returncode == -signal.SIGKILL
    with pytest.raises(DataError):
        PackedImages(root, SIDE)
    encoded = []

    def watched(file, *options):
        encoded.append(file.name)
        return encode(file, *options)

    monkeypatch.setattr(packing, "encode", watched)
    monkeypatch.setattr(packing, "SHARD_BYTES", 1500)
    folder = pack(root, SIDE, PATHS, workers=1)
    assert PATHS[-len(encoded) :] == encoded
    assert 0 < len(encoded) < len(PATHS)
    continued = {path.name: path.read_bytes() for path in folder.iterdir()}
    for path in folder.iterdir():
        path.unlink()
    pack(root, SIDE, PATHS, workers=1)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == continued


def test_what_was_begun_for_other_images_is_not_continued(root, monkeypatch):
    monkeypatch.setattr(packing, "SHARD_BYTES", 1)
    (root / "bad.jpg").write_bytes(b"no image")
    with pytest.raises(DataError):
        pack(root, SIDE, ["0.jpg", "bad.jpg"], workers=1)
    pack(root, SIDE, ["1.jpg", "0.jpg"], workers=1)
    opener = PackedImages(root, SIDE).opener(["1.jpg"])
    assert_equal_pictures(opener(0), stored(root, "1.jpg"))


def test_broken_images_are_all_listed_and_no_copy_is_made(root):
    content = (root / "4.jpg").read_bytes()
    (root / "4.jpg").write_bytes(content[: len(content) // 2])
    (root / "8.jpg").unlink()
    with pytest.raises(DataError, match=r"(?s)2 of 12 .*4\.jpg.*8\.jpg"):
        pack(root, SIDE, PATHS, workers=1)
    assert not (root / "packed-16").exists()


def test_several_threads_give_the_same_results_in_the_same_order(root, monkeypatch):
    monkeypatch.setattr(packing, "BLOCK", 50)
    many = [root / path for path in PATHS * 10]
    shrunk = partial(encode, side=SIDE, compressed=True)
    encoded = packing.ordered_map(shrunk, many, 2)
    assert list(encoded) == list(map(shrunk, many))


BYTES_KEPT = archives.SIZE[1]


def load(cub, **params):
    return load_dataset("cub", {"root": str(cub), "allow_counts": True, **params})


@pytest.fixture
def cub(tmp_path, monkeypatch):
    """Return the root of a small CUB, packed in several shards and another order than its lists."""
    archives.make_cub(tmp_path / "cub")
    dataset = load(tmp_path / "cub")
    monkeypatch.setattr(packing, "SHARD_BYTES", 3000)
    paths = [*dataset.protocols["test"].query.names, *reversed(dataset.train.names)]
    folder = pack(tmp_path / "cub", BYTES_KEPT, paths, workers=1)
    assert len(list(folder.glob("shard-*"))) > 1
    return tmp_path / "cub"


def test_packed_images_are_those_of_the_files_in_the_same_order(cub):
    plain = load(cub)
    packed = load(cub, packed=BYTES_KEPT)
    for one, other in zip(plain.image_sets(), packed.image_sets(), strict=True):
        assert list(one.names) == list(other.names)
        assert np.array_equal(one.labels, other.labels)
        for number in range(len(one)):
            assert_equal_pictures(one.image(number), other.image(number))
    again = load(cub, packed=BYTES_KEPT)
    assert packed.fingerprint == again.fingerprint
    assert packed.fingerprint != plain.fingerprint


@pytest.mark.parametrize("name", ["inshop", "sfm120k"])
def test_a_dataset_is_read_from_the_copy_that_prepare_makes(command, tmp_path, name):
    for each in (name, "roxford5k", "rparis6k"):
        archives.MAKERS[each](tmp_path / each)
    params = {"root": str(tmp_path / name), "allow_counts": True}
    command("prepare", name, "--root", tmp_path / name, "--pack", SIDE, "--allow-counts")
    files = load_dataset(name, params)
    packed = load_dataset(name, {**params, "packed": SIDE})
    assert packed.train.names == files.train.names
    assert packed.counts == files.counts
    width, height = files.train.image(3).size
    assert packed.train.image(3).size == (round(width * SIDE / height), SIDE)


def test_packed_images_need_no_image_files(cub, messages):
    shutil.rmtree(cub / "images")
    assert load(cub, packed=BYTES_KEPT).train.image(5).size == archives.SIZE
    with messages.raised(("missing_part", "")):
        load(cub)


def test_packed_images_open_in_threads_and_in_other_processes(cub):
    train = load(cub, packed=BYTES_KEPT).train
    expected = [np.asarray(train.image(number)) for number in range(len(train))]
    with ThreadPoolExecutor(4) as pool:
        shown = list(pool.map(train.image, list(range(len(train))) * 5))
    for picture, wanted in zip(shown, expected * 5, strict=True):
        assert_equal_pictures(picture, wanted)
    copy = pickle.loads(pickle.dumps(train))
    assert_equal_pictures(copy.image(2), expected[2])


def test_images_that_were_not_packed_are_named(tmp_path, messages):
    archives.make_cub(tmp_path)
    pack(tmp_path, BYTES_KEPT, list(load(tmp_path).train.names), workers=1)
    with messages.raised(("not_packed", "")):
        load(tmp_path, packed=BYTES_KEPT)


def test_a_broken_packed_image_is_named_with_its_shard(cub):
    shard = cub / f"packed-{BYTES_KEPT}" / shard_name(0)
    shard.write_bytes(shard.read_bytes()[:100])
    with pytest.raises(DataError, match=r"images/101.White_Pelican/.*shard-00000.bin"):
        load(cub, packed=BYTES_KEPT).protocols["test"].query.image(0)


def test_a_copy_that_is_to_leave_crops_as_they_are_may_have_shrunk_no_image(
    cub, monkeypatch, messages
):
    load(cub, packed=BYTES_KEPT)  # shrinks nothing
    files = load(cub)
    pack(cub, SIDE, [*files.train.names, *files.protocols["test"].query.names], workers=1)
    load(cub, packed=SIDE)  # smaller than the largest side that CUB states: crops may change
    monkeypatch.setattr(DATASETS["cub"].target, "largest_side", SIDE)
    with messages.raised(("shrunk_image", "")):
        load(cub, packed=SIDE)
    monkeypatch.setattr(DATASETS["cub"].target, "largest_side", BYTES_KEPT)
    load(cub, packed=BYTES_KEPT)
