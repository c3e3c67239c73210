"""Links, and whatever else is no file or folder, in the places that ``data prepare`` writes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from archives import make_cub

from benchmark.core.errors import DataError
from benchmark.datasets.io.packed import PackedImages
from benchmark.datasets.prepare.install import Source
from benchmark.datasets.prepare.pack import PLAN, pack, plan_of
from benchmark.datasets.prepare.prepare import prepare
from hostile.limits import limited

SIDE = 8


@pytest.fixture
def root(tmp_path):
    make_cub(tmp_path / "root")
    return tmp_path / "root"


def prepared(root):
    with limited():
        prepare(
            "cub",
            params={"root": str(root), "allow_counts": True},
            side=SIDE,
            allow_counts=True,
            say=lambda line: None,
        )


def names(root):
    """Return the paths of the images in the order in which they are packed."""
    lines = (root / "images.txt").read_text().splitlines()
    return [f"images/{line.split()[1]}" for line in lines]


def everything(folder: Path) -> dict[str, bytes | str]:
    """Return what lies below a folder: the bytes of each file, the target of each link."""
    return {
        str(path): os.readlink(path) if path.is_symlink() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


@pytest.fixture
def shared(root, tmp_path):
    """Return a packed copy that others read, to which the root's place of it leads."""
    prepared(root)
    (tmp_path / "shared").mkdir()
    (root / f"packed-{SIDE}").rename(tmp_path / "shared" / f"packed-{SIDE}")
    (root / f"packed-{SIDE}").symlink_to(tmp_path / "shared" / f"packed-{SIDE}")
    return tmp_path / "shared"


def test_a_shared_packed_copy_is_used_through_a_link(root, shared):
    before = everything(shared)
    prepared(root)
    assert everything(shared) == before
    assert (root / f"packed-{SIDE}").is_symlink()


def test_a_shared_packed_copy_that_lacks_images_is_not_replaced_through_a_link(root, shared):
    more = [*names(root), "images/one_more.jpg"]
    (root / more[-1]).write_bytes((root / more[0]).read_bytes())
    before = everything(root) | everything(shared)
    with pytest.raises(DataError, match=r"packed-8 is a link.*remove it"):
        pack(root, SIDE, more, 1)
    assert everything(root) | everything(shared) == before
    assert PackedImages(shared, SIDE).missing(names(root)) == []
    (root / f"packed-{SIDE}").unlink()
    pack(root, SIDE, more, 1)
    assert PackedImages(root, SIDE).missing(more) == []


@pytest.mark.parametrize("target", [".", "../mine"])
def test_a_begun_packing_that_is_a_link_empties_no_folder(root, tmp_path, target):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "precious.txt").write_text("mine")
    for folder in (root, mine):
        (folder / PLAN).write_text(plan_of(SIDE, sorted(names(root)), compressed=True))
    (root / f".packing-{SIDE}").symlink_to(target)
    before = everything(root) | everything(mine)
    with pytest.raises(DataError, match=r"\.packing-8 is a link.*remove it"):
        pack(root, SIDE, sorted(names(root)), 1)
    assert everything(root) | everything(mine) == before


def put(kind: str, path: Path, elsewhere: Path) -> None:
    """Put a link, a folder, a file or a pipe in a place."""
    path.parent.mkdir(exist_ok=True)
    if kind == "link":
        path.symlink_to(elsewhere)
    elif kind == "folder":
        path.mkdir()
        (path / "x").write_text("mine")
    elif kind == "file":
        path.write_text("mine")
    else:
        os.mkfifo(path)


FOLDERS = (".unpacking", ".placing", ".brought", "downloads", ".packing-8", "packed-8")
FILES = (
    ".prepare.lock",
    f".packing-8/{PLAN}",
    ".packing-8/shard-00000.csv",
    ".packing-8/shard-00000.bin",
    ".packing-8/another",
)
PLACES = [(place, kind) for place in FOLDERS for kind in ("link", "file", "pipe")]
PLACES += [(place, kind) for place in FILES for kind in ("link", "folder", "pipe")]


@pytest.mark.parametrize(("place", "kind"), PLACES)
def test_what_is_no_file_or_folder_of_ours_is_refused_before_anything_is_written(
    root, tmp_path, place, kind
):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "x").write_text("mine")
    put(kind, root / place, tmp_path / "mine")
    before = everything(tmp_path)
    word = "a link" if kind == "link" else "no folder" if place in FOLDERS else "no file"
    with pytest.raises(DataError, match=rf"{place} is {word}, .*; remove it and start") as caught:
        prepared(root)
    assert len(str(caught.value).splitlines()) == 1
    after = everything(tmp_path)
    after.pop(str(root / ".prepare.lock"), None)
    before.pop(str(root / ".prepare.lock"), None)
    assert after == before


def test_what_an_interrupted_packing_of_another_left_is_not_installed(root, tmp_path):
    (root / ".packing-8").mkdir()
    (root / ".packing-8" / PLAN).write_text("x")
    for link in (True, False):
        target = tmp_path / f"target {link}"
        prepare(
            "cub",
            [Source(str(root))],
            params={"root": str(target), "allow_counts": True},
            allow_counts=True,
            link=link,
            say=lambda line: None,
        )
        assert not os.path.lexists(target / ".packing-8")
