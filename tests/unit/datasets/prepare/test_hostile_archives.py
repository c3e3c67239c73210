"""Archives that want to write elsewhere, to fill the memory or the disk, or to show private
files."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import random
import stat
import struct
import tarfile
import tracemalloc
import zipfile

import pytest
from archive_files import FILES, FORMATS, link, made, refused, tar_file, zip_file

from benchmark.core.array_file import read_arrays
from benchmark.core.errors import DataError
from benchmark.datasets.prepare import members
from benchmark.datasets.prepare import unpack as unpacking
from benchmark.datasets.prepare.unpack import check_links, unpack

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


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
@pytest.mark.parametrize("kind", [stat.S_IFREG, stat.S_IFLNK])
def test_a_zip_file_of_unbounded_compression_is_not_unpacked(tmp_path, into, method, kind):
    info = zipfile.ZipInfo("set/a")
    info.external_attr, info.compress_type = (kind | 0o644) << 16, method
    with zipfile.ZipFile(tmp_path / "a.zip", "w", method) as archive:
        archive.writestr(info, b"1")
    refused(tmp_path / "a.zip", into, f"compression {method} can take any memory")


def test_a_zip_file_whose_directory_is_a_hole_is_refused_before_it_is_read(tmp_path, into):
    path, size = tmp_path / "a.zip", 3 << 30
    end64 = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, 1, 1, size, 4)
    place = struct.pack("<4sLQL", b"PK\x06\x07", 0, 4 + size, 1)
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, *[0xFFFF] * 2, *[0xFFFFFFFF] * 2, 0)
    with open(path, "wb") as stream:
        stream.write(b"PK\x03\x04")
        stream.seek(4 + size)
        stream.write(end64 + place + end)
    refused(path, into, f"a part of {size:,} bytes")
    with pytest.raises(ValueError, match="a part of"):
        read_arrays(path, {})


def test_a_tar_that_goes_on_behind_its_end_is_given_up(tmp_path, into, monkeypatch):
    monkeypatch.setattr(members, "MAX_JUNK", 2_000_000)
    good = made(tmp_path, "tar").read_bytes()
    path = tmp_path / "b.tar.bz2"
    path.write_bytes(bz2.compress(good + bytes(1_000_000)))
    unpack(path, into)
    path.write_bytes(bz2.compress(good) + bz2.compress(bytes(5_000_000)))
    (into / "other").mkdir()
    with pytest.raises(DataError, match="bytes behind its end"):
        unpack(path, into / "other")


def test_what_macos_adds_is_small(tmp_path, into, monkeypatch):
    monkeypatch.setattr(members, "MAX_JUNK", 1000)
    path = tar_file(tmp_path / "a.tar", [("._a", bytes(1001)), ("a", b"1")])
    refused(path, into, "of macOS has 1,001 bytes")


def test_a_name_that_no_disk_takes_is_refused(tmp_path, into):
    refused(made(tmp_path, "zip", [("a/" + "x" * 256, b"1")]), into, "more than 255 bytes")


def test_a_hard_link_to_a_folder_is_refused(tmp_path, into):
    members = [("d/a", b"1"), ("d/b", link(tarfile.LNKTYPE, "d/c")), ("e", b"")]
    (into / "d" / "c").mkdir(parents=True)
    with pytest.raises(DataError, match="'d/b' is not to a file"):
        unpack(tar_file(tmp_path / "a.tar", members), into)


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


def test_links_must_lead_straight_to_something_in_the_folder_that_becomes_the_root(tmp_path, into):
    members = [
        ("set/a.jpg", b"1"),
        ("secret", b"2"),
        ("set/link", link(tarfile.SYMTYPE, "../secret")),
    ]
    path = tar_file(tmp_path / "a.tar", members)
    assert unpack(path, into).has_links, "it stays in the archive"
    with pytest.raises(DataError, match=r"link 'link' points outside the archive"):
        check_links(path, into / "set")
    (into / "set" / "link").unlink()
    check_links(path, into / "set")


def test_a_link_to_a_link_is_refused(tmp_path, into):
    inner, outer = link(tarfile.SYMTYPE, "x"), link(tarfile.SYMTYPE, "one/1.jpg")
    refused(
        tar_file(tmp_path / "a.tar", [("x/1.jpg", b"1"), ("one", inner), ("two", outer)]),
        into,
        "link 'two' points outside",
    )


def zeros_tar(path, kind, size):
    """Write a compressed tar whose first header announces ``size`` bytes of a name or of fields."""
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = kind, size
    with gzip.open(path, "wb") as stream:
        stream.write(info.tobuf(tarfile.GNU_FORMAT))
        for _ in range(size // 1_000_000):
            stream.write(bytes(1_000_000))
    return path


@pytest.mark.parametrize(
    "kind", [tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE]
)
def test_a_header_of_many_megabytes_is_not_read(tmp_path, into, kind):
    path = zeros_tar(tmp_path / "a.tar.gz", kind, 30_000_000)
    tracemalloc.start()
    refused(path, into, r"a header of 30,000,000 bytes")
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()


def test_the_map_of_a_sparse_file_is_not_read(tmp_path, into):
    info = tarfile.TarInfo("sparse")
    info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}
    info.size = 512
    with tarfile.open(tmp_path / "a.tar", "w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(info, io.BytesIO((b"9999999999\n" + b"0\n" * 256)[:512]))
    refused(tmp_path / "a.tar", into, "is a sparse file")


def test_fields_for_all_members_are_limited(tmp_path, into):
    path = tar_file(tmp_path / "a.tar", [("a", b"1")])
    fields = tarfile.TarInfo.create_pax_global_header({f"key{n}": "x" for n in range(200)})
    path.write_bytes(fields + path.read_bytes())
    refused(path, into, "more than 100 global header fields")


@pytest.mark.parametrize("form", ["tar", "zip"])
@pytest.mark.parametrize("name", ["a/" * 3000 + "b", "esc\x1b[2Jape", "line\nbreak"])
def test_names_that_are_too_deep_or_no_text_are_refused(tmp_path, into, form, name):
    refused(made(tmp_path, form, [(name, b"1")]), into, "is not text, or lies more than 64 folders")


@pytest.mark.parametrize("seed", range(40))
def test_random_damage_never_ends_in_another_error(tmp_path, into, seed):
    rng = random.Random(seed)
    path = made(tmp_path, FORMATS[seed % len(FORMATS)], list(FILES.items())[:5])
    content = bytearray(path.read_bytes())
    for _ in range(rng.randrange(1, 6)):
        content[rng.randrange(len(content))] = rng.randrange(256)
    path.write_bytes(content)
    with contextlib.suppress(DataError):
        unpack(path, into)


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
    monkeypatch.setattr(unpacking, "MAX_MEMBERS", 5)
    refused(made(tmp_path, "tar.gz"), into, "more than 5 members")


def test_an_encrypted_member_is_reported(tmp_path, into):
    path = made(tmp_path, "zip", [("a", b"1")])
    content = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(mark) + offset] |= 1  # the flag of encryption, in both headers
    path.write_bytes(content)
    refused(path, into, "cannot unpack 'a'.*encrypted")
