"""Hostile archives: names and links that leave, bombs, devices, damage."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
import warnings
import zipfile
import zlib
from collections.abc import Callable

from hostile.cases import Case, cases
from hostile.data_targets import archive_seeds


def tar(*members: tarfile.TarInfo | tuple[str, bytes], mode: str = "w") -> bytes:
    """Return a tar of members and of (name, content)."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as archive:
        for member in members:
            if isinstance(member, tuple):
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                archive.addfile(info, io.BytesIO(member[1]))
            else:
                archive.addfile(member)
    return stream.getvalue()


def member(name: str, kind: bytes, link: str = "", **fields: object) -> tarfile.TarInfo:
    """Return a member without content."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    for field, value in fields.items():
        setattr(info, field, value)
    return info


def zipped(*members: tuple[str | zipfile.ZipInfo, bytes]) -> bytes:
    """Return a zip of (name or ZipInfo, content)."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, content in members:
            archive.writestr(name, content)
    return stream.getvalue()


def mode_of(name: str, mode: int) -> zipfile.ZipInfo:
    """Return an entry of a zip with that file mode."""
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    return info


def changed(content: bytes, change: Callable[[bytearray], None]) -> bytes:
    """Return content after ``change`` has worked on it."""
    data = bytearray(content)
    change(data)
    return bytes(data)


def header_bomb(kind: bytes) -> bytes:
    """Return a small tar.gz whose first header announces 30 MB of a name or of fields."""
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = kind, 30_000_000
    return gzip.compress(info.tobuf(tarfile.GNU_FORMAT) + bytes(30_000_000))


def encrypted(data: bytearray) -> None:
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + offset] |= 1


def unknown_compression(data: bytearray) -> None:
    for mark, offset in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        at = data.index(mark) + offset
        data[at : at + 2] = struct.pack("<H", 99)


def too_large(data: bytearray) -> None:
    at = data.index(b"PK\x01\x02") + 24
    data[at : at + 4] = b"\xfe\xff\xff\xff"


NAMES = {
    "climbs": "../evil",
    "climbs later": "a/../../evil",
    "absolute": "/tmp/evil",
    "of a drive": "C:\\evil",
    "climbs in Windows": "..\\evil",
    "of a server": "\\\\host\\share\\evil",
    "very deep": "a/" * 2000 + "b",
    "with an escape": "a\x1b[2J",
    "of two lines": "a\nb",
    "broken utf-8": "a\udcff",
    "with an override of direction": "a\x9b31m",
}
LEAVES = "would be written outside|is not text, or lies more than"

CASES: list[Case] = [
    *cases(
        "archive",
        {f"tar, name {what}": tar((name, b"1")) for what, name in NAMES.items()},
        LEAVES,
    ),
    *cases(
        "archive",
        {
            f"zip, name {what}": zipped((name, b"1"))
            for what, name in NAMES.items()
            if "\udcff" not in name
        },
        LEAVES,
    ),
    *cases(
        "archive",
        {
            "a character device": tar(member("x", tarfile.CHRTYPE)),
            "a block device": tar(member("x", tarfile.BLKTYPE)),
            "a pipe": tar(member("x", tarfile.FIFOTYPE)),
            "a device in a zip": zipped((mode_of("x", 0o020666), b"")),
            "a pipe in a zip": zipped((mode_of("x", 0o010666), b"")),
        },
        "is a device or pipe",
    ),
    *cases(
        "archive",
        {
            f"{kind} to {target or 'nothing'}": tar(member("a/link", number, target))
            for kind, number in (("symbolic link", tarfile.SYMTYPE), ("hard link", tarfile.LNKTYPE))
            for target in ("/etc/passwd", "../../../etc/passwd", "..", "", "link")
        },
        "points outside the archive",
    ),
    *cases(
        "archive",
        {
            "a link in a zip": zipped((mode_of("link", 0o120777), b"../secret")),
            "a link to a link": tar(
                ("x/1.jpg", b"1"),
                member("one", tarfile.SYMTYPE, "x"),
                member("two", tarfile.SYMTYPE, "one/1.jpg"),
            ),
        },
        "points outside the archive",
    ),
    *cases(
        "archive",
        {
            "a file through a link": tar(member("d", tarfile.SYMTYPE, "/tmp"), ("d/evil", b"1")),
            "a name twice": tar(("a", b"1"), ("a", b"2")),
            "a name twice in a zip": zipped(("a", b"1"), ("a", b"2")),
            "a file and a folder": tar(("a", b"1"), ("a/b", b"2")),
        },
        "twice|points outside",
    ),
    *cases(
        "archive",
        {
            "a name of 30 MB": header_bomb(tarfile.GNUTYPE_LONGNAME),
            "a link name of 30 MB": header_bomb(tarfile.GNUTYPE_LONGLINK),
            "fields of 30 MB": header_bomb(tarfile.XHDTYPE),
            "fields for all of 30 MB": header_bomb(tarfile.XGLTYPE),
            "a file of negative size": changed(
                tar(("a", b"1")), lambda data: data.__setitem__(slice(124, 136), b"\xff" * 12)
            ),
            "cut in a header": archive_seeds()["tar w 1"][:300],
            "cut in a file": archive_seeds()["tar w 1"][:1700],
            "cut gzip": archive_seeds()["tar w:gz 1"][:-9],
            "wrong checksum of gzip": changed(
                archive_seeds()["tar w:gz 1"], lambda data: data.__setitem__(-6, data[-6] ^ 1)
            ),
            "cut xz": archive_seeds()["tar w:xz 1"][:-20],
            "a zip without its directory": archive_seeds()["zip 0"][:100],
            "a zip with a wrong checksum": changed(
                archive_seeds()["zip 0"], lambda data: data.__setitem__(45, data[45] ^ 1)
            ),
            "nothing": b"",
            "text": b"hello",
            "a gzip that is no tar": gzip.compress(b"hello" * 1000),
            "zlib": zlib.compress(b"hello"),
        },
        "cut off or damaged|no files",
    ),
    *cases(
        "archive",
        {
            "an encrypted member": changed(zipped(("a", b"1")), encrypted),
            "an unknown compression": changed(zipped(("a", b"1")), unknown_compression),
            "a size that lies": changed(zipped(("a", b"1")), too_large),
        },
        "unpack it yourself|damaged|unpacks to",
    ),
    *cases(
        "archive",
        {
            "a gzip of zeros": gzip.compress(bytes(10_000_000)),
            "the suite's own markers": tar(
                ("prepared.json", b"{}"), (".placing/x", b"1"), ("packed-8/complete.json", b"{}")
            ),
            "names of macOS": tar(("__MACOSX/a", b"1"), ("._a", b"1"), (".DS_Store", b"1")),
            "rights for all and owners": tar(
                member("a", tarfile.REGTYPE, mode=0o6777, uid=0, uname="root")
            ),
            "a time before 1970": tar(member("a", tarfile.REGTYPE, mtime=-1)),
        },
    ),
]
