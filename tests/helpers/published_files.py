"""The small datasets of ``archives`` as the files that their publishers hand out: wrapped, split
and named alike."""

from __future__ import annotations

import hashlib
import shutil
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

import archives

Entry = tuple[Path, str]  # file on disk, name in the archive


def files_below(folder: Path, prefix: str = "") -> list[Entry]:
    """Returns every file below ``folder``, named relative to it behind ``prefix``."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return [(path, prefix + path.relative_to(folder).as_posix()) for path in paths]


def write_tar_gz(path: Path, entries: Iterable[Entry]) -> Path:
    """Writes a compressed tar."""
    with tarfile.open(path, "w:gz") as archive:
        for file, name in entries:
            archive.add(file, name)
    return path


def write_zip(path: Path, entries: Iterable[Entry]) -> Path:
    """Writes a zip with the folder that macOS adds."""
    with zipfile.ZipFile(path, "w") as archive:
        for file, name in entries:
            archive.write(file, name)
        archive.writestr("__MACOSX/._" + path.stem, b"resource fork")
    return path


def publish(name: str, folder: Path) -> list[Path]:
    """Returns the published files of a small dataset, written to ``folder``."""
    root = folder / "content"
    archives.MAKERS[name](root)
    every = files_below(root)
    below = {part: files_below(root / part) for part in ("jpg", "ims") if (root / part).is_dir()}
    single = {path.name: path for path, _ in every}
    if name == "cub":
        made = [write_tar_gz(folder / "CUB_200_2011.tgz", files_below(root, "CUB_200_2011/"))]
    elif name == "cars196":
        images = [entry for entry in every if entry[1].startswith("car_ims/")]
        made = [write_tar_gz(folder / "car_ims.tgz", images), single["cars_annos.mat"]]
    elif name == "sop":
        made = [
            write_zip(
                folder / "Stanford_Online_Products.zip",
                files_below(root, "Stanford_Online_Products/"),
            )
        ]
    elif name == "vehicleid":
        made = [write_zip(folder / "VehicleID_V1.0.zip", files_below(root, "VehicleID_V1.0/"))]
    elif name == "inaturalist":
        images = [entry for entry in every if entry[1].startswith("train_val2018/")]
        made = [write_tar_gz(folder / "train_val2018.tar.gz", images)]
        made += [single[f"Inaturalist_{split}_set1.txt"] for split in ("train", "test")]
    elif name == "inshop":
        made = [
            write_zip(folder / "img.zip", [entry for entry in every if entry[1].startswith("img/")])
        ]
        made.append(single["list_eval_partition.txt"])
    elif name == "sfm120k":
        made = [write_tar_gz(folder / "ims.tar.gz", below["ims"])]
        made.append(single["retrieval-SfM-120k-imagenames-clusterids.mat"])
    elif name == "roxford5k":
        made = [
            write_tar_gz(folder / "oxbuild_images.tgz", below["jpg"]),
            single["gnd_roxford5k.pkl"],
        ]
    else:
        halves = (below["jpg"][:5], "paris/defense/"), (below["jpg"][5:], "paris/triomphe/")
        made = [
            write_tar_gz(
                folder / f"paris_{number}.tgz", [(file, prefix + image) for file, image in half]
            )
            for number, (half, prefix) in enumerate(halves, start=1)
        ]
        made.append(single["gnd_rparis6k.pkl"])
    kept = [path if path.parent == folder else Path(shutil.copy(path, folder)) for path in made]
    shutil.rmtree(root)
    return kept


EVERY = sorted(archives.MAKERS)


def given(files: list[Path]) -> list[object]:
    """Returns the arguments for these sources; the digest is theirs, not that of the real
    archive."""
    arguments = []
    for path in files:
        arguments += [
            "--source",
            path,
            "--md5",
            f"{path.name}={hashlib.md5(path.read_bytes()).hexdigest()}",
        ]
    return arguments


def landmark_sets(name: str, parent: Path) -> None:
    """Puts the sets that ``sfm120k`` is evaluated on beside its root."""
    if name == "sfm120k":
        for other in ("roxford5k", "rparis6k"):
            archives.MAKERS[other](parent / other)


def content(root: Path) -> dict[str, bytes]:
    """Returns the files of a dataset, without what preparing leaves beside them."""
    own = ("downloads", "prepared.json", "packed-")
    paths = [path for path in root.rglob("*") if path.is_file()]
    named = {path.relative_to(root).as_posix(): path for path in paths}
    dated = {".mat": 128}  # bytes of the header, which holds the time of writing
    return {
        name: path.read_bytes()[dated.get(path.suffix, 0) :]
        for name, path in named.items()
        if not name.startswith((".", *own))
    }


def leftovers(root: Path) -> list[str]:
    return [path.name for path in root.iterdir() if path.name == ".unpacking"]
