"""The members of tar and zip archives, in one form, with names that cannot leave the folder they are unpacked to."""

from __future__ import annotations

import bz2
import gzip
import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, Literal

from benchmark.core.errors import DataError
from benchmark.datasets.prepare.meter import Meter

JUNK = ("__MACOSX", ".DS_Store")  # what macOS adds to archives; files '._*' as well
DAMAGE = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError)
STARTS = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}


@dataclass(frozen=True)
class Member:
    """One entry of an archive.

    name    where it goes, relative and without '..'
    size    bytes when unpacked (0 for folders and links)
    link    what a link points to, as written
    open    gives the content; only until the next member is asked for
    """

    name: PurePosixPath
    kind: Literal["file", "folder", "symlink", "hardlink"]
    size: int = 0
    link: str = ""
    open: Callable[[], IO[bytes]] | None = None


def is_archive(path: Path) -> bool:
    """Says whether a file begins like an archive, whatever its name."""
    with open(path, "rb") as stream:
        start = stream.read(512)
    return start.startswith((b"PK\x03\x04", b"PK\x05\x06", *STARTS)) or start[257:262] == b"ustar"


def zip_size(path: Path) -> int:
    """Returns the bytes that a zip file unpacks to; 0 for other archives, which say so only at their end."""
    with open(path, "rb") as raw:
        if raw.read(2) != b"PK":
            return 0
        with zipfile.ZipFile(raw) as archive:
            return sum(info.file_size for info in archive.infolist())


def members(path: Path) -> Iterator[Member]:
    """Yields the members of an archive in its order; raises DataError for names that leave, one of DAMAGE or OSError
    when it cannot be read to its end."""
    with (
        open(path, "rb") as raw,
        Meter(f"unpacking {path.name}", path.stat().st_size, "B") as meter,
    ):
        read = _zip_members if raw.read(2) == b"PK" else _tar_members
        for member in read(path, raw, meter):
            if not _is_junk(member.name):
                yield member


def _is_junk(name: PurePosixPath) -> bool:
    return name.name.startswith("._") or any(part in JUNK for part in name.parts)


def safe_name(name: str, path: Path) -> PurePosixPath:
    """Returns a member's name as a relative path; raises DataError when it is absolute, climbs or is empty.

    Names are read as POSIX and as Windows would, so that an archive is refused on both or on none.
    """
    windows = PureWindowsPath(name)
    if not name or "\0" in name or name.startswith("/") or windows.anchor or ".." in windows.parts:
        raise DataError(
            f"{path}: member {name!r} would be written outside the target; such an archive is not unpacked: get it "
            "from its publisher"
        )
    return PurePosixPath(name)


class _StrictTarInfo(tarfile.TarInfo):
    """Headers that are cut or damaged are errors; tarfile alone takes them for the end of the archive."""

    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> tarfile.TarInfo:
        try:
            return super().fromtarfile(archive)
        except tarfile.EOFHeaderError:
            raise
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(
                f"no valid member at byte {archive.offset:,} ({error})"
            ) from error


def _tar_members(path: Path, raw: IO[bytes], meter: Meter) -> Iterator[Member]:
    raw.seek(0)
    start = raw.read(8)
    raw.seek(0)
    opener = next((opener for magic, opener in STARTS.items() if start.startswith(magic)), None)
    content = raw if opener is None else opener(raw, "rb")
    with tarfile.open(fileobj=content, mode="r|", tarinfo=_StrictTarInfo) as archive:
        while info := archive.next():
            name = safe_name(info.name, path)
            if info.isdir():
                yield Member(name, "folder")
            elif info.isfile():
                yield Member(
                    name, "file", info.size, open=lambda info=info: archive.extractfile(info)
                )
            elif info.issym() or info.islnk():
                yield Member(name, "symlink" if info.issym() else "hardlink", link=info.linkname)
            else:
                raise DataError(
                    f"{path}: member {info.name!r} is a device or pipe; such an archive is not unpacked"
                )
            archive.members.clear()  # tarfile keeps every header: gigabytes for millions of images
            meter.add(raw.tell() - meter.done)
    while content.read(1 << 20):  # what follows the last member: damage there shows in the checksum
        pass


def _zip_members(path: Path, raw: IO[bytes], meter: Meter) -> Iterator[Member]:
    with zipfile.ZipFile(raw) as archive:
        for info in archive.infolist():
            name = safe_name(info.filename, path)
            mode = info.external_attr >> 16
            if info.is_dir():
                yield Member(name, "folder")
            elif stat.S_ISLNK(mode):
                yield Member(name, "symlink", link=_text(archive, info))
            elif stat.S_IFMT(mode) in (0, stat.S_IFREG):
                yield Member(
                    name,
                    "file",
                    info.file_size,
                    open=lambda info=info: _opened(path, archive, info),
                )
            else:
                raise DataError(
                    f"{path}: member {info.filename!r} is a device; such an archive is not unpacked"
                )
            meter.add(info.compress_size)


def _text(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> str:
    return archive.read(info).decode("utf-8", "replace") if info.file_size < 4096 else ""


def _opened(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> IO[bytes]:
    try:
        return archive.open(info)
    except (
        RuntimeError,
        NotImplementedError,
    ) as error:  # encrypted, or compressed in a way that Python lacks
        raise DataError(
            f"{path}: cannot unpack {info.filename!r}: {error}; unpack it yourself"
        ) from error
