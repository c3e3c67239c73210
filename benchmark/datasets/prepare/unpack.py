"""Compares a file with its digest, and unpacks an archive into an empty folder.

Only files and folders are unpacked, under names that stay in the folder.
"""

import bz2
import gzip
import hashlib
import lzma
import stat
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from tqdm import tqdm

from benchmark.core.errors import DataError
from benchmark.core.paths import leaves_root

COMPRESSIONS: dict[bytes, Any] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ": lzma.open,
}
CHUNK = 1 << 20  # bytes


class DamagedError(DataError):
    """A file that is not what was published, and must be fetched again."""


def check_digests(path: Path, expected: Mapping[str, str]) -> str:
    """Return the sha256 of a file; raise DamagedError when an expected digest differs.

    ``expected``: kind (md5, sha256) -> hex digits.
    """
    for kind, wanted in expected.items():
        if (found := _digest(path, kind)) != wanted.lower():
            raise DamagedError(
                f"{path}: {kind} is {found}, expected {wanted.lower()}; it is damaged or another "
                "version: fetch it again, or check the digest with its publisher"
            )
    return expected["sha256"].lower() if "sha256" in expected else _digest(path, "sha256")


def _digest(path: Path, kind: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()


def is_archive(path: Path) -> bool:
    """Say whether a file begins like an archive, whatever its name."""
    with open(path, "rb") as stream:
        start = stream.read(512)
    magic = (b"PK\x03\x04", b"PK\x05\x06", *COMPRESSIONS)
    return start.startswith(magic) or start[257:262] == b"ustar"


def unpack(archive: Path, into: Path) -> int:
    """Write the files of an archive below ``into``; return their number.

    Hidden files and what macOS adds are left out. Raise DataError for names that leave, links,
    devices and a full disk, DamagedError for an archive that cannot be read to its end.
    """
    size, label = archive.stat().st_size, f"unpacking {archive.name}"
    try:
        with (
            open(archive, "rb") as file,
            tqdm.wrapattr(file, "read", size, desc=label, disable=None, leave=False) as stream,
        ):
            start = file.read(8)
            file.seek(0)
            if start.startswith(b"PK"):
                return _unpack_zip(archive, stream, into)
            openers = [open_ for magic, open_ in COMPRESSIONS.items() if start.startswith(magic)]
            return _unpack_tar(archive, openers[0](stream) if openers else stream, into)
    except DataError:
        raise
    except Exception as error:  # a damaged archive makes its reader fail in any way
        if isinstance(error, OSError) and error.errno is not None:  # gzip reports damage without
            raise DataError(f"cannot unpack {archive}: {error}; free some space") from error
        raise DamagedError(
            f"{archive} is cut off, damaged or encrypted ({error}); nothing was kept of it: fetch "
            "it again"
        ) from error


class _TarInfo(tarfile.TarInfo):
    """A header that is damaged or missing is an error, and not the end of the archive."""

    @classmethod
    def fromtarfile(cls, tarfile_: tarfile.TarFile) -> "_TarInfo":
        try:
            return super().fromtarfile(tarfile_)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]
            raise
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(f"byte {tarfile_.offset:,}: {error}") from error


def _unpack_tar(path: Path, content: Any, into: Path) -> int:
    files = 0
    with tarfile.open(fileobj=content, mode="r|", tarinfo=_TarInfo) as archive:
        while member := archive.next():
            if _is_wanted(path, member.name, member.isfile() or member.isdir()):
                archive.extract(member, into, filter="data")
                files += member.isfile()
            archive.members.clear()  # type: ignore[attr-defined] # gigabytes for millions of images
    while content.read(CHUNK):  # damage behind the last member shows in a checksum
        pass
    return files


def _unpack_zip(path: Path, content: Any, into: Path) -> int:
    with zipfile.ZipFile(content) as archive:
        wanted = [
            member
            for member in archive.infolist()
            if _is_wanted(path, member.filename, _is_plain(member))
        ]
        for member in wanted:
            archive.extract(member, into)
    return sum(not member.is_dir() for member in wanted)


def _is_plain(member: zipfile.ZipInfo) -> bool:
    return stat.S_IFMT(member.external_attr >> 16) in (0, stat.S_IFREG, stat.S_IFDIR)


def _is_wanted(archive: Path, name: str, is_plain: bool) -> bool:
    """Say whether to unpack a member; raise DataError for one that no archive may have."""
    if not is_plain or leaves_root(name):
        reason = "would be written outside the target" if is_plain else "is a link or a device"
        raise DataError(
            f"{archive}: member {name!r} {reason}; such an archive is not unpacked: get it from "
            "its publisher"
        )
    parts = PurePosixPath(name).parts
    return not any(part.startswith(".") or part == "__MACOSX" for part in parts)
