"""Archives of every format, whole or damaged, and what is taken over of them."""

from __future__ import annotations

import io
import os
import random
import stat
import tarfile
import zipfile

import pytest

from benchmark.core.errors import DataError
from benchmark.datasets.io.sources import unpack

FILES = {
    f"set/images/{number}.jpg": random.Random(number).randbytes(3000 + number)
    for number in range(40)
}
FILES["set/" + "long" * 40 + ".jpg"] = b"a name that older tar formats store apart"
FORMATS = ["tar", "tar.gz", "tar.bz2", "tar.xz", "zip"]


def tar_file(path, members, mode="w"):
    """Write a tar of (name, content or TarInfo)."""
    with tarfile.open(path, mode) as archive:
        for name, content in members:
            if isinstance(content, bytes):
                info = tarfile.TarInfo(name)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
            else:
                content.name = name
                archive.addfile(content)
    return path


def made(tmp_path, form, members=None):
    members = list(FILES.items()) if members is None else members
    path = tmp_path / f"a.{form}"
    if form == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members:
                archive.writestr(name, content)
        return path
    return tar_file(path, members, f"w:{form[4:]}")


@pytest.fixture
def into(tmp_path):
    folder = tmp_path / "root" / "into"
    folder.mkdir(parents=True)
    return folder


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_is_recognised_by_its_content_and_unpacked(tmp_path, into, form):
    path = made(tmp_path, form).rename(tmp_path / "download")
    unpack(path, into)
    assert {name: (into / name).read_bytes() for name in FILES} == FILES


CUTS = [(form, share) for form in FORMATS for share in (0.02, 0.5, 0.999)]
CUTS.remove(("tar", 0.999))  # only padding is missing there: every member is whole
FLIPS = [(form, None) for form in FORMATS[1:]]  # a byte in the middle, not in a tar without sums


@pytest.mark.parametrize(("form", "share"), CUTS + FLIPS)
def test_a_cut_or_changed_archive_is_named_wherever_it_is_damaged(tmp_path, into, form, share):
    path = made(tmp_path, form)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0 if share else 0xFF
    path.write_bytes(content[: int(len(content) * (share or 1))])
    with pytest.raises(DataError, match="cut off, damaged"):
        unpack(path, into)


def test_a_tar_cut_between_two_members_is_not_taken_for_a_whole_one(tmp_path, into):
    path = made(tmp_path, "tar")
    with tarfile.open(path) as archive:
        seventh = archive.getmembers()[7].offset
    path.write_bytes(path.read_bytes()[:seventh])  # tarfile alone unpacks seven, and says nothing
    with pytest.raises(DataError, match=f"damaged.*byte {seventh:,}"):
        unpack(path, into)


def test_what_macos_adds_and_owners_and_modes_are_not_taken_over(tmp_path, into):
    members = [("a", b"1"), ("__MACOSX/._a", b"2"), ("x/.DS_Store", b"3")]
    unpack(made(tmp_path, "zip", members), into)
    assert [path.name for path in into.rglob("*")] == ["a"]
    info = tarfile.TarInfo()
    info.mode = 0o4777
    info.uid = 12345
    info.size = 0
    unpack(tar_file(tmp_path / "b.tar", [("b", info)]), into)
    found = (into / "b").stat()
    assert found.st_uid == os.getuid()
    assert not found.st_mode & stat.S_ISUID
