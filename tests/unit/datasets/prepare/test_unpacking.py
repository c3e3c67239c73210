"""Archives that are damaged, cut off or hostile, and the few that are what they should be."""

from __future__ import annotations

import gzip
import io
import os
import random
import stat
import tarfile
import zipfile

import pytest

from benchmark.core.errors import DataError
from benchmark.datasets.prepare import unpack as unpacking
from benchmark.datasets.prepare.members import is_archive
from benchmark.datasets.prepare.unpack import unpack

FILES = {
    f"set/images/{number}.jpg": random.Random(number).randbytes(3000 + number)
    for number in range(40)
}
FILES["set/" + "long" * 40 + ".jpg"] = b"a name that older tar formats store apart"
FORMATS = ["tar", "tar.gz", "tar.bz2", "tar.xz", "zip"]


def tar_file(path, members, mode="w"):
    """Writes a tar of (name, content or TarInfo)."""
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


def zip_file(path, members, compression=zipfile.ZIP_STORED):
    """Writes a zip of (name or ZipInfo, content)."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return path


def made(tmp_path, form, members=None):
    members = list(FILES.items()) if members is None else members
    path = tmp_path / f"a.{form}"
    if form == "zip":
        return zip_file(path, members, zipfile.ZIP_DEFLATED)
    return tar_file(path, members, f"w:{form[4:]}")


def link(kind, target):
    info = tarfile.TarInfo()
    info.type, info.linkname = kind, target
    return info


@pytest.fixture
def into(tmp_path):
    folder = tmp_path / "root" / "into"
    folder.mkdir(parents=True)
    return folder


def refused(path, into, words):
    with pytest.raises(DataError, match=words):
        unpack(path, into)
    outside = [entry for entry in into.parent.parent.rglob("*") if not entry.is_relative_to(into)]
    assert {entry.name for entry in outside} <= {"root", path.name}, (
        "nothing was written outside the target"
    )


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_is_recognised_by_its_content_and_unpacked(tmp_path, into, form):
    path = made(tmp_path, form).rename(tmp_path / "download")
    assert is_archive(path)
    assert unpack(path, into) == len(FILES)
    assert {name: (into / name).read_bytes() for name in FILES} == FILES


CUTS = [(form, share) for form in FORMATS for share in (0.02, 0.5, 0.9, 0.999)]
CUTS.remove(("tar", 0.999))  # only padding is missing there: every member is whole


@pytest.mark.parametrize(("form", "share"), CUTS)
def test_a_cut_archive_is_named_wherever_it_was_cut(tmp_path, into, form, share):
    path = made(tmp_path, form)
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
    refused(path, into, "cut off or damaged")


def test_a_tar_cut_between_two_members_is_not_taken_for_a_whole_one(tmp_path, into):
    path = made(tmp_path, "tar")
    with tarfile.open(path) as archive:
        seventh = archive.getmembers()[7].offset
    path.write_bytes(
        path.read_bytes()[:seventh]
    )  # tarfile alone unpacks seven files and says nothing
    refused(path, into, f"cut off or damaged .*byte {seventh:,}")


@pytest.mark.parametrize("form", ["tar.gz", "tar.bz2", "tar.xz", "zip"])
def test_a_flipped_byte_is_found_by_the_checksum(tmp_path, into, form):
    path = made(tmp_path, form)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    refused(path, into, "cut off or damaged")


def test_damage_after_the_last_member_is_found_too(tmp_path, into):
    path = made(tmp_path, "tar.gz")
    content = bytearray(path.read_bytes())
    content[-6] ^= 0xFF  # the checksum of the whole stream
    path.write_bytes(content)
    refused(path, into, "cut off or damaged .*CRC")


def test_a_damaged_header_amid_a_tar_is_not_taken_for_its_end(tmp_path, into):
    path = made(tmp_path, "tar")
    with tarfile.open(path) as archive:
        place = archive.getmembers()[5].offset
    content = bytearray(path.read_bytes())
    content[place : place + 10] = b"\xff" * 10
    path.write_bytes(content)
    refused(path, into, "cut off or damaged")


NAMES = ["../evil", "/tmp/evil", "a/../../evil", "C:\\evil", "..\\evil", "\\\\host\\share\\evil"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", ["tar.gz", "zip"])
def test_names_that_leave_are_refused(tmp_path, into, form, name):
    refused(
        made(tmp_path, form, [("fine", b"1"), (name, b"2")]),
        into,
        "would be written outside the target",
    )


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_devices_and_pipes_are_refused(tmp_path, into, kind):
    refused(tar_file(tmp_path / "a.tar", [("dev", link(kind, ""))]), into, "device or pipe")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
@pytest.mark.parametrize("target", ["/etc/passwd", "../../../../../../etc/passwd", "../root", ""])
def test_links_that_leave_are_refused(tmp_path, into, kind, target):
    refused(
        tar_file(tmp_path / "a.tar", [("link", link(kind, target))]),
        into,
        "points outside the archive",
    )


def test_nothing_is_written_through_a_link(tmp_path, into):
    members = [("d", link(tarfile.SYMTYPE, "../..")), ("d/evil", b"1")]
    refused(tar_file(tmp_path / "a.tar", members), into, "points outside|twice")
    inner = [
        ("a/b/c/up", link(tarfile.SYMTYPE, "../../..")),
        ("out", link(tarfile.SYMTYPE, "a/b/c/up/../evil")),
    ]
    (into.parent / "evil").write_text("there")
    with pytest.raises(DataError, match=r"link .* points outside"):
        unpack(tar_file(tmp_path / "b.tar", inner), into)


def test_a_symlink_in_a_zip_is_judged_like_one_in_a_tar(tmp_path, into):
    info = zipfile.ZipInfo("link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    refused(
        zip_file(tmp_path / "a.zip", [(info, "../../secret")]), into, "points outside the archive"
    )


def test_links_that_stay_are_kept(tmp_path, into):
    members = [
        ("later", link(tarfile.SYMTYPE, "x/1.jpg")),
        ("x/1.jpg", b"picture"),
        ("same", link(tarfile.LNKTYPE, "x/1.jpg")),
    ]
    unpack(tar_file(tmp_path / "a.tar", members), into)
    assert (into / "later").read_bytes() == (into / "same").read_bytes() == b"picture"


@pytest.mark.parametrize("form", ["tar", "zip"])
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_comes_twice_is_refused(tmp_path, into, form):
    refused(made(tmp_path, form, [("a", b"1"), ("a", b"2")]), into, "holds 'a' twice")
    for leftover in into.iterdir():
        leftover.unlink()
    refused(made(tmp_path, form, [("a", b"1"), ("a/b", b"2")]), into, "holds 'a' twice")


@pytest.mark.parametrize("form", ["tar.gz", "zip"])
def test_more_than_the_disk_holds_is_refused(tmp_path, into, form, monkeypatch):
    path = made(tmp_path, form, [("zeros", b"\0" * 1_000_000)])
    monkeypatch.setattr(
        unpacking.shutil, "disk_usage", lambda folder: type("Usage", (), {"free": 900_000})
    )
    refused(path, into, r"unpacks to 1\.0 MB or more, .* has 900\.0 kB free")
    assert list(into.iterdir()) == []


def test_an_absurd_number_of_members_is_refused(tmp_path, into, monkeypatch):
    monkeypatch.setattr(unpacking, "MOST_MEMBERS", 5)
    refused(made(tmp_path, "tar.gz"), into, "more than 5 members")


def test_an_encrypted_member_is_reported(tmp_path, into):
    path = made(tmp_path, "zip", [("a", b"1")])
    content = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(mark) + offset] |= 1  # the flag of encryption, in both headers
    path.write_bytes(content)
    refused(path, into, "cannot unpack 'a'.*encrypted")


def test_what_macos_adds_is_left_out(tmp_path, into):
    assert (
        unpack(
            made(tmp_path, "zip", [("a", b"1"), ("__MACOSX/._a", b"2"), ("x/.DS_Store", b"3")]),
            into,
        )
        == 1
    )
    assert [path.name for path in into.rglob("*")] == ["a"]


def test_owners_and_modes_of_the_archive_are_not_taken_over(tmp_path, into):
    info = tarfile.TarInfo()
    info.mode, info.uid, info.size = 0o4777, 12345, 0
    unpack(tar_file(tmp_path / "a.tar", [("a", info)]), into)
    found = (into / "a").stat()
    assert found.st_uid == os.getuid()
    assert not found.st_mode & (stat.S_ISUID | stat.S_IXUSR)


def test_text_is_no_archive(tmp_path):
    path = tmp_path / "a.tgz"
    path.write_text("<html>not found</html>")
    assert not is_archive(path)
    path.write_bytes(gzip.compress(b"a single file"))
    assert is_archive(path)  # by its first bytes; unpacking says the rest


def test_a_compressed_file_that_is_no_tar_is_reported(tmp_path, into):
    path = tmp_path / "a.tgz"
    path.write_bytes(gzip.compress(b"a single file"))
    refused(path, into, "cut off or damaged")
