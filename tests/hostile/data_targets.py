"""Readers of datasets: images, pickles, archives, lists, packed copies."""

from __future__ import annotations

import functools
import io
import json
import os
import pickle
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import archives
import brought_archives
import numpy as np
from PIL import Image

from benchmark.core.paths import is_text
from benchmark.datasets import load_dataset
from benchmark.datasets.io.images import image_format, open_image, open_pixels
from benchmark.datasets.io.packed import PackedImages, index_digest
from benchmark.datasets.io.unpickling import read_plain_pickle
from benchmark.datasets.prepare.pack import pack, plan_of
from benchmark.datasets.prepare.prepare import RECORD, recorded_sources
from benchmark.datasets.prepare.unpack import check_links, unpack
from hostile.targets import JSON, TEXT, Target

MAKERS = archives.MAKERS | brought_archives.MAKERS
LAYOUTS = MAKERS | {"cars196 halves": archives.halved_cars196}  # the name of a dataset goes first
FOLDER_CSV = "path,label,split\n" + "".join(
    f"{name}/{number}.png,{name},{split}\n"
    for name, split in (("cat", "train"), ("dog", "test"))
    for number in (0, 1)
)


def read_image(folder: Path, content: bytes) -> None:
    """Decode an image, whole and reduced, and ask for its format."""
    path = folder / "x.jpg"
    path.write_bytes(content)
    image_format(path)
    open_image(path)
    open_pixels(path), open_pixels(path, stored=True)
    open_image(io.BytesIO(content), "x.jpg", divisor=lambda size: 2)


def read_pickle(folder: Path, content: bytes) -> object:
    """Read a pickle of plain data."""
    path = folder / "x.pkl"
    path.write_bytes(content)
    return read_plain_pickle(path)


def read_archive(folder: Path, content: bytes) -> None:
    """Unpack an archive as it is installed; complain about anything beside the target."""
    outer = Path(tempfile.mkdtemp(dir=folder))
    try:
        path, into = outer / "a.bin", outer / "into"
        path.write_bytes(content)
        into.mkdir()
        try:
            if unpack(path, into).has_links:
                check_links(path, into)
        finally:
            beside = {entry.name for entry in outer.iterdir()} - {"a.bin", "into"}
            assert not beside, f"written outside of the target: {beside}"
    finally:
        shutil.rmtree(outer)


@functools.cache
def image_seeds() -> Mapping[str, bytes]:
    """Return small images of every format that is read, and some that are not."""
    pixels = np.random.default_rng(0).integers(0, 256, (12, 9, 3), dtype=np.uint8)
    image = Image.fromarray(pixels)
    exif = Image.Exif()
    exif[0x0112], exif[0x010F] = 6, "maker"
    variants = {
        "jpeg": (image, "JPEG", {"exif": exif, "comment": b"hello"}),
        "jpeg progressive": (image, "JPEG", {"progressive": True}),
        "jpeg cmyk": (image.convert("CMYK"), "JPEG", {}),
        "mpo": (image, "MPO", {"save_all": True, "append_images": [image]}),
        "png": (image.convert("RGBA"), "PNG", {"exif": exif}),
        "png palette": (image.convert("P"), "PNG", {"transparency": 3}),
        "png grey 16": (Image.fromarray(pixels[..., 0].astype(np.uint16) * 200), "PNG", {}),
        "gif": (image.convert("P"), "GIF", {"save_all": True, "append_images": [image]}),
        "bmp": (image, "BMP", {}),
        "webp": (image, "WEBP", {"exif": exif}),
        "tiff": (image, "TIFF", {"exif": exif}),
        "tiff lzw": (image, "TIFF", {"compression": "tiff_lzw"}),
        "tiff deflate": (image.convert("LA"), "TIFF", {"compression": "tiff_adobe_deflate"}),
        "ppm": (image, "PPM", {}),
        "avif": (image, "AVIF", {}),
        "dds": (image, "DDS", {}),
        "eps": (image, "EPS", {}),
        "ico": (image, "ICO", {}),
    }
    return {name: _saved(*variant) for name, variant in variants.items()}


def _saved(image: Image.Image, kind: str, options: dict) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def pickle_seeds() -> Mapping[str, bytes]:
    """Return a ground truth in every protocol, and pickles of arrays."""
    truth = {"imlist": ["a", "b"], "qimlist": ["q"], "gnd": archives.landmark_truth()}
    arrays = [np.arange(6).reshape(2, 3), np.float64(0.5), np.array(["a", "bc"]), {1, 2}]
    return {
        f"{name} {protocol}": pickle.dumps(value, protocol)
        for name, value in (("truth", truth), ("arrays", arrays))
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
    }


def archive_seeds() -> Mapping[str, bytes]:
    """Return small archives of every kind, with links, long names and PAX fields."""
    seeds = {}
    for mode in ("w", "w:gz", "w:bz2", "w:xz"):
        for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
            stream = io.BytesIO()
            with tarfile.open(fileobj=stream, mode=mode, format=form) as archive:
                _fill(archive)
            seeds[f"tar {mode} {form}"] = stream.getvalue()
    for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2):
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", compression) as archive:
            archive.writestr("set/a.txt", b"a" * 60)
            archive.writestr("set/ü.txt", b"b")
            link = zipfile.ZipInfo("set/link")
            link.external_attr = 0o120777 << 16
            archive.writestr(link, "a.txt")
        seeds[f"zip {compression}"] = stream.getvalue()
    return seeds


def _fill(archive: tarfile.TarFile) -> None:
    for name in ("set/a.txt", "set/" + "long" * 30 + ".txt", "set/ü.txt"):
        info = tarfile.TarInfo(name)
        info.size, info.pax_headers = 5, {"comment": "x"}
        archive.addfile(info, io.BytesIO(b"hello"))
    for kind, name in ((tarfile.SYMTYPE, "a.txt"), (tarfile.LNKTYPE, "set/a.txt")):
        info = tarfile.TarInfo(f"set/link{kind!r}")
        info.type, info.linkname = kind, name
        archive.addfile(info)


@functools.cache
def _list_files() -> tuple[tuple[str, str, bytes], ...]:
    """Return (dataset, path below its root, content) of every file that a loader reads."""
    with tempfile.TemporaryDirectory() as folder:
        found = []
        for name, make in LAYOUTS.items():
            root = Path(folder, name)
            make(root)
            kinds = (".txt", ".csv", ".mat", ".pkl", ".json")
            files = (path for path in root.rglob("*") if path.suffix in kinds)
            found += [
                (name, path.relative_to(root).as_posix(), path.read_bytes())
                for path in sorted(files)
            ]
    return tuple(found)


def _list_target(name: str, file: str, content: bytes) -> Target:
    def read(folder: Path, changed: bytes) -> None:
        (folder / file).write_bytes(changed)
        try:
            load_dataset(name.split()[0], {"root": str(folder), "allow_counts": True})
        finally:
            (folder / file).write_bytes(content)

    return Target(f"list {name}: {file}", read, lambda: {"list": content}, TEXT, LAYOUTS[name], 0.3)


def read_split_csv(folder: Path, content: bytes) -> None:
    """Load a folder of images with a split in a CSV."""
    (folder / "split.csv").write_bytes(content)
    load_dataset("folder", {"root": str(folder), "split_csv": str(folder / "split.csv")})


def _class_folders(folder: Path) -> None:
    for name in ("cat", "dog"):
        for number in (0, 1):
            archives.write_jpeg(folder / name / f"{number}.png", number)


def read_gpr1200(folder: Path, content: bytes) -> None:
    """Load a GPR1200 whose images have these names, one a line."""
    shutil.rmtree(folder / "images", ignore_errors=True)
    (folder / "images").mkdir()
    for name in content.split(b"\n"):
        plain = name.replace(b"/", b"_").replace(b"\0", b"_")[:255]
        if plain not in (b"", b".", b".."):
            (folder / "images" / os.fsdecode(plain)).touch()
    dataset = load_dataset("gpr1200", {"root": str(folder), "allow_counts": True})
    assert all(is_text(name) for name in dataset.protocols["test"].query.names)


def gpr1200_names() -> Mapping[str, bytes]:
    """Return the names of the images of three classes."""
    return {"names": b"0_a.jpg\n0_b.JPEG\n7_a.jpg\n7_c.png\n1199_x.jpg\n1199_y.jpg"}


def read_shard_list(folder: Path, content: bytes) -> None:
    """Go on packing two images behind a shard with this list."""
    shutil.rmtree(folder, ignore_errors=True)
    names = ["a.png", "b.png"]
    for number, name in enumerate(names):
        archives.write_jpeg(folder / name, number)
    work = folder / ".packing-8"
    work.mkdir()
    (work / "plan.txt").write_text(plan_of(8, names, compressed=True))
    (work / "shard-00000.csv").write_bytes(content)
    (work / "shard-00000.bin").write_bytes(image_seeds()["png"])
    pack(folder, 8, names, 1)


def read_packed(folder: Path, content: bytes) -> None:
    """Open images of a packed copy with this index, which complete.json vouches for."""
    packed = folder / "packed-8"
    packed.mkdir(exist_ok=True)
    (packed / "index.csv").write_bytes(content)
    (packed / "shard-00000.bin").write_bytes(image_seeds()["png"])
    record = {"images": 1, "side": 8, "digest": index_digest(packed)}
    (packed / "complete.json").write_text(json.dumps(record))
    images = PackedImages(folder, 8)
    if not images.missing(["a.jpg"]):
        images.opener(["a.jpg"])(0)


def read_prepared(folder: Path, content: bytes) -> None:
    """Read the record of a prepared dataset, and what it says of its sources."""
    (folder / RECORD).write_bytes(content)
    found = recorded_sources(folder)
    assert all(isinstance(word, str) for pair in found.items() for word in pair)


def read_packed_record(folder: Path, content: bytes) -> None:
    """Open a packed copy with this complete.json."""
    packed = folder / "packed-8"
    packed.mkdir(exist_ok=True)
    (packed / "index.csv").write_text("path,shard,offset,size\n")
    (packed / "complete.json").write_bytes(content)
    PackedImages(folder, 8)


def _packed_index() -> Mapping[str, bytes]:
    size = len(image_seeds()["png"])
    return {"index": f"path,shard,offset,size\na.jpg,0,0,{size}\nb.jpg,0,0,{size}\n".encode()}


TARGETS = (
    Target("image", read_image, image_seeds),
    Target("pickle", read_pickle, pickle_seeds),
    Target("archive", read_archive, archive_seeds),
    *(_list_target(*one) for one in _list_files()),
    Target("gpr1200", read_gpr1200, gpr1200_names, TEXT),
    Target("shard list", read_shard_list, _packed_index, TEXT, share=0.3),
    Target("split csv", read_split_csv, lambda: {"csv": FOLDER_CSV.encode()}, TEXT, _class_folders),
    Target("packed index", read_packed, _packed_index, TEXT),
    Target(
        RECORD,
        read_prepared,
        lambda: {"json": b'{"schema": 1, "sources": {"a.tgz": {"from": "b", "sha256": "00"}}}'},
        JSON,
    ),
    Target(
        "packed record",
        read_packed_record,
        lambda: {"json": b'{"images": 0, "side": 8, "digest": "00"}'},
        TEXT,
    ),
)
