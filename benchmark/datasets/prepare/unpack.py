"""Unpacks an archive into an empty folder, and trusts nothing that it says.

tarfile's own ``data`` filter is not enough: it knows no zip files, lets links lead out of the
folder that becomes the dataset's root, and could be led out of the target by links until Python
3.11.13.
"""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from benchmark.core.errors import BenchmarkError, DataError
from benchmark.datasets.prepare.digests import DamagedError
from benchmark.datasets.prepare.members import Member, members, zip_size
from benchmark.datasets.prepare.meter import format_bytes

MAX_MEMBERS = 20_000_000
CHUNK = 1 << 20


@dataclass(frozen=True)
class Unpacked:
    """How many files an archive had, and whether there were symbolic links among them."""

    files: int
    has_links: bool


def unpack(archive: Path, into: Path) -> Unpacked:
    """Write the files of an archive below ``into``, which the caller removes when this fails.

    Names and links that leave, devices, names that come twice, more than the disk has free, and
    damaged or cut archives raise DataError. Links are made last, so that nothing is ever written
    through one; owners, dates and permissions are not kept.
    """
    try:
        return _Unpacking(archive, into).run()
    except BenchmarkError:
        raise
    except OSError as error:
        if error.errno is None:  # gzip and bz2 report damage so
            raise _damaged(archive, error) from error
        raise DataError(
            f"cannot unpack {archive}: {error.strerror} ({error.filename or into}); free some "
            "space or choose a writable --root"
        ) from error
    except Exception as error:  # a damaged archive makes its reader fail in any way
        raise _damaged(archive, error) from error


def check_links(archive: Path, folder: Path) -> None:
    """Raise DataError unless each link below ``folder`` may stay there: see ``_check_link``."""
    top = Path(os.path.realpath(folder))
    for parent, folders, files in os.walk(top):
        for link in (Path(parent, name) for name in (*folders, *files)):
            if link.is_symlink():
                _check_link(archive, top, link, os.readlink(link))


def _check_link(archive: Path, top: Path, link: Path, target: str) -> None:
    """Raise DataError unless a link leads straight to something that exists below ``top``.

    Straight: with no other link on the way, so that it still does when the folder is moved.
    """
    path = Path(os.path.normpath(link.parent / target))
    straight = all(Path(os.path.realpath(one)) == one for one in (link.parent, path))
    if (
        not target
        or os.path.isabs(target)
        or not straight
        or top not in path.parents
        or link.is_relative_to(path)  # a circle
        or not path.exists()
    ):
        raise DataError(
            f"{archive}: link '{link.relative_to(top)}' points outside the archive or to nothing "
            f"({target!r}); it is not installed: put what belongs there in the place of the link"
        )


def _damaged(archive: Path, error: Exception) -> DamagedError:
    return DamagedError(
        f"{archive} is cut off or damaged ({error}); nothing was kept of it: fetch it again"
    )


class _Unpacking:
    """The state while one archive is unpacked."""

    def __init__(self, archive: Path, into: Path):
        self.archive, self.into = archive, Path(os.path.realpath(into))
        self.free = shutil.disk_usage(into).free
        self.written = self.files = 0
        self.folders: set[Path] = set()

    def run(self) -> Unpacked:
        self._check_space(zip_size(self.archive))
        symlinks = []
        for count, member in enumerate(members(self.archive), start=1):
            if count > MAX_MEMBERS:
                raise DataError(
                    f"{self.archive} has more than {MAX_MEMBERS:,} members; it is not unpacked"
                )
            if member.kind == "folder":
                self._make_folder(self.into / member.name)
            elif member.kind == "symlink":
                symlinks.append(member)
            else:
                self._make(member)
        for member in symlinks:
            self._make(member)
        return Unpacked(self.files, bool(symlinks))

    def _check_space(self, size: int) -> None:
        if self.written + size > self.free:
            raise DataError(
                f"{self.archive} unpacks to {format_bytes(self.written + size)} or more, "
                f"{self.into.parent} has {format_bytes(self.free)} free; free some space or choose "
                "another --root"
            )

    def _make_folder(self, path: Path) -> None:
        if path not in self.folders:  # saves a request to the file system for each file
            try:
                path.mkdir(parents=True, exist_ok=True)
            except (FileExistsError, NotADirectoryError) as error:
                raise self._twice(path) from error
            self.folders.add(path)

    def _make(self, member: Member) -> None:
        """Write a file or make a link."""
        target = self.into / member.name
        self._make_folder(target.parent)
        try:
            if member.kind == "file":
                self._write(member, target)
            elif member.kind == "symlink":
                _check_link(self.archive, self.into, target, member.link)
                os.symlink(member.link, target)
            else:
                source = Path(os.path.normpath(self.into / member.link))
                _check_link(self.archive, self.into, target, os.path.relpath(source, target.parent))
                if not source.is_file():
                    raise DataError(f"{self.archive}: hard link '{member.name}' is not to a file")
                os.link(source, target)
        except FileExistsError as error:
            raise self._twice(target) from error
        self.files += 1

    def _write(self, member: Member, target: Path) -> None:
        self._check_space(member.size)
        with open(target, "xb") as stream, member.open() as content:
            shutil.copyfileobj(content, stream, CHUNK)
            size = stream.tell()
        if size != member.size:
            raise EOFError(f"{member.name} has {size:,} of {member.size:,} bytes")
        self.written += size

    def _twice(self, path: Path) -> DataError:
        name = path.relative_to(self.into)
        return DataError(f"{self.archive} holds '{name}' twice; such an archive is not unpacked")
