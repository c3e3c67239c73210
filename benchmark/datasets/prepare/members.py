"""The members of tar and zip archives in one form, with names that stay in the target folder."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any, Literal

from benchmark.core.errors import DataError
from benchmark.core.paths import is_text, leaves_root, open_regular
from benchmark.core.zip_file import BOUNDED, open_zip
from benchmark.datasets.prepare.meter import Meter

JUNK = ("__MACOSX", ".DS_Store")  # what macOS adds to archives; files '._*' as well
COMPRESSIONS: dict[bytes, Any] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ": lzma.open,
}
MAX_HEADER = 1_000_000  # bytes of a long name or of PAX fields, which tarfile reads at once
MAX_DEPTH = 64  # folders of a name
MAX_NAME = 255  # bytes of one part of a name, on nearly all disks
MAX_GLOBAL_FIELDS = 100  # PAX fields that hold for all members
MAX_JUNK = 100_000_000  # bytes that are passed over: behind the end, or one file of macOS


@dataclass(frozen=True)
class Member:
    """One entry of an archive.

    name    relative path of the target, without '..'
    size    bytes when unpacked (0 for folders and links)
    link    target of a link, as written
    open    returns the content; only until the next member is read
    """

    name: PurePosixPath
    kind: Literal["file", "folder", "symlink", "hardlink"]
    size: int = 0
    link: str = ""
    open: Callable[[], Any] = io.BytesIO


def is_archive(path: Path) -> bool:
    """Say whether a file begins like an archive, whatever its name."""
    with open_regular(path) as stream:
        start = stream.read(512)
    magic = (b"PK\x03\x04", b"PK\x05\x06", *COMPRESSIONS)
    return start.startswith(magic) or start[257:262] == b"ustar"


def zip_size(path: Path) -> int:
    """Return the bytes that a zip file unpacks to; 0 for others, which tell it at their end."""
    with open(path, "rb") as raw:
        if raw.read(2) != b"PK":
            return 0
        with open_zip(raw) as archive:
            return sum(info.file_size for info in archive.infolist())


def members(path: Path) -> Iterator[Member]:
    """Yield the members of an archive in its order, without what macOS adds.

    Raise DataError for names that leave the target and for devices. A damaged archive makes its
    reader fail in any way.
    """
    with (
        open(path, "rb") as raw,
        Meter(f"unpacking {path.name}", path.stat().st_size, "B") as meter,
    ):
        read = _zip_members if raw.read(2) == b"PK" else _tar_members
        for member in read(path, raw, meter):
            name = member.name
            if not name.name.startswith("._") and not any(part in JUNK for part in name.parts):
                yield member
            elif member.size > MAX_JUNK:
                raise _refused(path, str(name), f"of macOS has {member.size:,} bytes")


def _member_name(name: str, path: Path) -> PurePosixPath:
    relative = PurePosixPath(name)
    if leaves_root(name):
        raise _refused(path, name, "would be written outside the target")
    if not is_text(name) or len(relative.parts) > MAX_DEPTH:
        raise _refused(path, name[:200], f"is not text, or lies more than {MAX_DEPTH} folders deep")
    if any(len(part.encode()) > MAX_NAME for part in relative.parts):
        raise _refused(path, name[:200], f"has a part of more than {MAX_NAME} bytes")
    return relative


def _refused(path: Path, name: str, reason: str) -> DataError:
    return DataError(
        f"{path}: member {name!r} {reason}; such an archive is not unpacked: get it from its "
        "publisher"
    )


class _StrictTarInfo(tarfile.TarInfo):
    """Refuses what tarfile takes for the end of an archive, and what it reads without a limit."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _StrictTarInfo:
        info = super().frombuf(buf, encoding, errors)
        if info.type in b"LKxgX" and info.size > MAX_HEADER:  # a name, or fields of the next member
            raise tarfile.ReadError(f"a header of {info.size:,} bytes")
        return info

    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> _StrictTarInfo:
        try:
            return super().fromtarfile(archive)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]
            raise
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(
                f"no valid member at byte {archive.offset:,} ({error})"
            ) from error

    def _refuse_sparse(self, *_: object) -> None:
        raise tarfile.ReadError(f"{self.name!r} is a sparse file, whose map may have any length")

    _proc_sparse = _proc_gnusparse_00 = _proc_gnusparse_01 = _proc_gnusparse_10 = _refuse_sparse


def _tar_members(path: Path, raw: IO[bytes], meter: Meter) -> Iterator[Member]:
    raw.seek(0)
    start = raw.read(8)
    raw.seek(0)
    opener = next((open_ for magic, open_ in COMPRESSIONS.items() if start.startswith(magic)), None)
    content = raw if opener is None else opener(raw, "rb")
    with tarfile.open(fileobj=content, mode="r|", tarinfo=_StrictTarInfo) as archive:
        while info := archive.next():
            name = _member_name(info.name, path)
            if info.isdir():
                yield Member(name, "folder")
            elif info.isfile():
                yield Member(name, "file", info.size, open=partial(archive.extractfile, info))
            elif info.issym() or info.islnk():
                yield Member(name, "symlink" if info.issym() else "hardlink", link=info.linkname)
            else:
                raise _refused(path, info.name, "is a device or pipe")
            if len(archive.pax_headers) > MAX_GLOBAL_FIELDS:
                raise tarfile.ReadError(f"more than {MAX_GLOBAL_FIELDS} global header fields")
            # tarfile collects the headers: gigabytes for millions of images
            archive.members.clear()  # type: ignore[attr-defined]
            meter.add(raw.tell() - meter.done)
    behind = 0
    while rest := content.read(1 << 20):  # damage behind the last member shows in a checksum
        behind += len(rest)
        if behind > MAX_JUNK:
            raise tarfile.ReadError(f"more than {MAX_JUNK:,} bytes behind its end")


def _zip_members(path: Path, raw: IO[bytes], meter: Meter) -> Iterator[Member]:
    with open_zip(raw) as archive:
        for info in archive.infolist():
            name = _member_name(info.filename, path)
            if info.compress_type not in BOUNDED:
                words = f"cannot unpack {info.filename!r}: compression {info.compress_type}"
                raise DataError(f"{path}: {words} can take any memory; unpack it yourself")
            kind = stat.S_IFMT(info.external_attr >> 16)
            if info.is_dir():
                yield Member(name, "folder")
            elif kind == stat.S_IFLNK:
                content = archive.read(info) if info.file_size < 4096 else b""
                yield Member(name, "symlink", link=content.decode("utf-8", "replace"))
            elif kind in (0, stat.S_IFREG):
                yield Member(
                    name, "file", info.file_size, open=partial(_opened, path, archive, info)
                )
            else:
                raise _refused(path, info.filename, "is a device or pipe")
            meter.add(info.compress_size)


def _opened(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> IO[bytes]:
    try:
        return archive.open(info)
    except (RuntimeError, NotImplementedError) as error:  # encrypted
        raise DataError(
            f"{path}: cannot unpack {info.filename!r}: {error}; unpack it yourself"
        ) from error
