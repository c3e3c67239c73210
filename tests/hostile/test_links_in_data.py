"""Links, and whatever else is no file or folder, in the places that ``data prepare`` writes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from archives import make_cub

from benchmark.core.errors import DataError
from benchmark.datasets.io.packed import PackedImages
from benchmark.datasets.prepare.pack import pack
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
