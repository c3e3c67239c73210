"""Unpacks an archive into an empty folder, believing nothing that it says about names, links and sizes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from benchmark.core.errors import DataError
from benchmark.datasets.prepare.digests import DamagedError
from benchmark.datasets.prepare.members import DAMAGE, Member, members, zip_size
from benchmark.datasets.prepare.meter import amount

MOST_MEMBERS = 20_000_000
CHUNK = 1 << 20


def unpack(archive: Path, into: Path) -> int:
    """Returns the number of files written below ``into``, which the caller removes when this fails.

    Names that leave, devices, links that leave, names that come twice, more than the disk holds and damaged or
    cut archives raise DataError. Links are made last, so that nothing is ever written through one; owners,
    dates and permissions are not kept.
    """
    try:
        return _Unpacking(archive, into).run()
    except DAMAGE as error:
        raise _damaged(archive, error) from error
    except OSError as error:
        if error.errno is None:  # gzip and bz2 report damage so
            raise _damaged(archive, error) from error
        where = error.filename or into
        raise DataError(
            f"cannot unpack {archive}: {error.strerror} ({where}); free some space or choose a writable --root"
        ) from error


def _damaged(archive: Path, error: Exception) -> DamagedError:
    return DamagedError(
        f"{archive} is cut off or damaged ({error}); nothing was kept of it: fetch it again"
    )


class _Unpacking:
    """The state while one archive is unpacked."""

    def __init__(self, archive: Path, into: Path):
        self.archive, self.into = archive, into
        self.free = shutil.disk_usage(into).free
        self.written = self.count = self.files = 0
        self.folders: set[Path] = set()
        self.symlinks: list[Member] = []

    def run(self) -> int:
        self._fits(zip_size(self.archive))
        for member in members(self.archive):
            self.count += 1
            if self.count > MOST_MEMBERS:
                raise DataError(
                    f"{self.archive} has more than {MOST_MEMBERS:,} members; it is not unpacked"
                )
            target = self.into / member.name
            if member.kind == "folder":
                self._folder(target)
            elif member.kind == "symlink":
                self.symlinks.append(member)
            else:
                self._folder(target.parent)
                self._file(member, target) if member.kind == "file" else self._hardlink(
                    member, target
                )
                self.files += 1
        for member in self.symlinks:
            self._symlink(member)
        return self.files

    def _fits(self, size: int) -> None:
        if self.written + size > self.free:
            raise DataError(
                f"{self.archive} unpacks to {amount(self.written + size)} or more, {self.into.parent} has "
                f"{amount(self.free)} free; free some space or choose another --root"
            )

    def _folder(self, path: Path) -> None:
        if path in self.folders:
            return
        try:
            path.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise self._twice(path) from error
        self.folders.add(path)

    def _file(self, member: Member, target: Path) -> None:
        self._fits(member.size)
        try:
            with open(target, "xb") as stream, member.open() as content:
                shutil.copyfileobj(content, stream, CHUNK)
                found = stream.tell()
        except FileExistsError as error:
            raise self._twice(target) from error
        if found != member.size:
            raise EOFError(f"{member.name} has {found:,} of {member.size:,} bytes")
        self.written += found

    def _hardlink(self, member: Member, target: Path) -> None:
        source = self.into / os.path.normpath(member.link)
        if not self._inside(source) or not source.is_file():
            raise self._leaves(member)
        try:
            os.link(source, target)
        except FileExistsError as error:
            raise self._twice(target) from error

    def _symlink(self, member: Member) -> None:
        target = self.into / member.name
        self._folder(target.parent)
        if os.path.isabs(member.link) or not member.link:
            raise self._leaves(member)
        pointed = target.parent / member.link
        if not self._inside(pointed) or not pointed.exists():
            raise self._leaves(member)
        try:
            os.symlink(member.link, target)
        except FileExistsError as error:
            raise self._twice(target) from error
        self.files += 1

    def _inside(self, path: Path) -> bool:
        top = os.path.realpath(self.into)
        return os.path.commonpath([top, os.path.realpath(path)]) == top

    def _leaves(self, member: Member) -> DataError:
        return DataError(
            f"{self.archive}: link '{member.name}' points outside the archive or to nothing ({member.link!r}); such an "
            "archive is not unpacked: get it from its publisher"
        )

    def _twice(self, path: Path) -> DataError:
        name = path.relative_to(self.into)
        return DataError(f"{self.archive} holds '{name}' twice; such an archive is not unpacked")
