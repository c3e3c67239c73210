"""Installs the sources of a dataset into its root: downloads, archives, files, directories.

``root/.unpacking`` is being filled, and is deleted when a run finds it; ``root/.placing`` is
complete, and a run that finds it goes on moving its content into the root.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit
from urllib.request import url2pathname

from benchmark.core.errors import DataError
from benchmark.core.files import write_json
from benchmark.core.paths import leaves_root
from benchmark.datasets.base import Archive
from benchmark.datasets.io.roots import is_there
from benchmark.datasets.prepare.download import download, public_url
from benchmark.datasets.prepare.unpack import DamagedError, check_digests, is_archive, unpack

STAGING, MOVING = ".unpacking", ".placing"
SOURCES = ".brought"  # folder with a JSON file for each source whose content is in the root
DOWNLOADS = "downloads"
WRAPPING = 3  # folders that an archive may wrap a dataset in


@dataclass(frozen=True)
class Source:
    """One --source: an address to download, or else a local path; ``file`` is its name."""

    url: str | None
    path: Path
    file: str

    @property
    def origin(self) -> str:
        """Where it comes from, without what may be secret."""
        return public_url(self.url) if self.url else self.path.name

    def fetch(self, folder: Path) -> Path:
        """Return the local path; what is remote is downloaded into ``folder`` first."""
        if self.url:
            # the query may be all that distinguishes two files of a server
            query = urlsplit(self.url).query
            prefix = f"{hashlib.sha256(query.encode()).hexdigest()[:8]}-" if query else ""
            return download(self.url, folder / (prefix + self.file))
        if not self.path.exists():
            raise DataError(f"no file or directory {self.path}; give a path or address as --source")
        return self.path


def parse_source(text: str) -> Source:
    """Return the source of a path, or of an address with http, https or file."""
    if "://" not in text:
        path = Path(os.path.expanduser(text))  # Path.expanduser raises for a nobody
        return Source(None, path, path.name)
    try:
        parts = urlsplit(text)
    except ValueError as error:
        raise DataError(f"{text!r} is not a valid address: {error}") from error
    path = Path(url2pathname(parts.path))
    if parts.scheme == "file" and not parts.netloc:
        return Source(None, path, path.name)
    if parts.scheme not in ("http", "https"):
        raise DataError(
            f"'{public_url(text)}' is not a source; give a path, or an address that begins with "
            "http://, https:// or file:///"
        )
    unusable = leaves_root(path.name) or path.name.startswith(".")
    return Source(text, path, "download" if unusable else path.name)


class Installer:
    """Installs the sources of one dataset into ``root``; ``say`` tells what it does."""

    def __init__(
        self, name: str, archives: Sequence[Archive], root: Path, say: Callable[[str], None]
    ):
        self.name, self.archives, self.root, self.say = name, archives, root, say

    def install(self, source: Source, digests: Mapping[str, str], link: bool) -> None:
        """Put the content of a source into the root, unless it is there already.

        digests: expected md5 or sha256; ``link`` links a directory's content instead of copying it.
        """
        alike = [a for a in self.archives if source.file.startswith(a.file.partition(".")[0])]
        named = [a for a in self.archives if a.file == source.file] or alike  # ims-v2 is as ims
        archive = named[0] if named else None
        if source.file in read_sources(self.root) and (
            archive is None or _holds(self.root, archive)
        ):
            self.say(f"{source.file}: its content is in {self.root} already")
            return
        path = source.fetch(self.root / DOWNLOADS)
        staging = self.root / STAGING
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir()
        try:
            if path.is_dir():
                self._install_directory(path, source, staging, link)
            else:
                if archive and archive.md5 and archive.file == source.file:
                    digests = digests or {"md5": archive.md5}
                self._install_file(path, source, staging, archive, digests)
        except DamagedError:
            if source.url:  # else the same command would take the damaged file for complete
                path.unlink()
            raise
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    def _install_file(
        self,
        path: Path,
        source: Source,
        staging: Path,
        archive: Archive | None,
        digests: Mapping[str, str],
    ) -> None:
        """Install the content of an archive, or a file that is published alone."""
        record = {"from": source.origin, "sha256": check_digests(path, digests)}
        tree = staging / "tree"
        tree.mkdir()
        files = 1
        if is_archive(path):
            files = unpack(path, tree)
        elif source.file in self._published_alone():
            shutil.copyfile(path, tree / source.file)
        else:
            raise DamagedError(
                f"{path} is neither an archive (tar, tar.gz, tgz, zip) nor a file of dataset "
                f"'{self.name}'; {self._expected()}"
            )
        base = self._arrange(tree, staging / "base", archive)
        _place(base or self._refuse(path, tree), self.root, source.file, record)
        self.say(f"{source.file}: {files:,} files installed")

    def _arrange(self, tree: Path, base: Path, archive: Archive | None) -> Path | None:
        """Return a folder with the layout of the root, made of ``tree``; None if that fails."""
        if root := _find_base(tree, self.archives):
            return root
        files = sorted(path for path in tree.rglob("*") if path.is_file())
        if archive and len(archive.provides) == 1 and archive.provides[0].endswith("/"):
            folder = base / archive.provides[0]  # which the archive does not contain itself
            for path in files:
                _rename(path, folder / (path.name if archive.flat else path.relative_to(tree)))
        else:
            alone = self._published_alone()  # somebody may have put all lists into one archive
            for path in files:
                if path.name in alone:
                    _rename(path, base / alone[path.name])
        return base if base.is_dir() else None

    def _published_alone(self) -> dict[str, str]:
        """Return the place of each file that an archive of its own provides, by its name."""
        alone = (archive.provides[0] for archive in self.archives if len(archive.provides) == 1)
        return {Path(place).name: place for place in alone if not place.endswith("/")}

    def _install_directory(self, path: Path, source: Source, staging: Path, link: bool) -> None:
        base = _find_base(path, self.archives) or self._refuse(path, path)
        if base.resolve() == self.root.resolve():
            self.say(f"{base}: used where it is")
            return
        if self.root.resolve().is_relative_to(base.resolve()):
            raise DataError(f"--root {self.root} lies inside the source {base}; choose another")
        whole = staging / "whole"
        if link:
            whole.mkdir()
            for name in _visible(base):
                os.symlink(base.resolve() / name, whole / name)
        else:
            ignored = shutil.ignore_patterns(".*", "__MACOSX")
            shutil.copytree(base, whole, symlinks=True, ignore=ignored)
            for copy in whole.rglob("*"):
                if copy.is_symlink() and not copy.resolve().is_relative_to(whole.resolve()):
                    raise DataError(
                        f"{path}: link '{copy.relative_to(whole)}' leads out of it; put what "
                        "belongs there in the place of the link"
                    )
        _place(whole, self.root, source.file, {"from": source.origin})
        self.say(f"{base}: {'linked' if link else 'copied'}")

    def _refuse(self, path: Path, tree: Path) -> NoReturn:
        names = ", ".join(_visible(tree)[:8]) or "nothing"
        raise DataError(
            f"{path} is not of dataset '{self.name}': it holds {names}; {self._expected()}"
        )

    def _expected(self) -> str:
        files = (f"{archive.file} with {', '.join(archive.provides)}" for archive in self.archives)
        return f"expected: {'; '.join(files)}"


def read_sources(root: Path) -> dict[str, dict[str, str]]:
    """Return the records of the sources whose content is in the root, by their file names."""
    paths = sorted((root / SOURCES).glob("*.json"))
    return {path.stem: json.loads(path.read_text()) for path in paths}


def continue_moving(root: Path) -> bool:
    """Move what an interrupted run left in ``root/.placing``; return whether there was anything."""
    waiting = root / MOVING
    if not waiting.is_dir():
        return False
    _move(waiting, root)
    return True


def _holds(folder: Path, archive: Archive) -> bool:
    """Say whether everything that an archive provides lies below ``folder``."""
    return all(is_there(folder, path) for path in archive.provides)


def _find_base(tree: Path, archives: Sequence[Archive]) -> Path | None:
    """Return the folder in ``tree``, or up to three levels below it, that is a dataset's root."""
    level = [tree]
    for _ in range(WRAPPING + 1):
        for folder in level:
            if any(_holds(folder, archive) for archive in archives):
                return folder
        level = [folder / name for folder in level for name in _visible(folder, folders=True)]
    return None


def _visible(folder: Path, *, folders: bool = False) -> list[str]:
    """Return the names in a folder, sorted, without the hidden ones; or those of folders alone."""
    with os.scandir(folder) as entries:
        return sorted(
            entry.name
            for entry in entries
            if not entry.name.startswith(".")
            and (not folders or entry.is_dir(follow_symlinks=False))
        )


def _rename(path: Path, target: Path) -> None:
    if target.exists():
        raise DataError(f"the source holds two files named {path.name}; give one of them")
    target.parent.mkdir(parents=True, exist_ok=True)
    os.rename(path, target)


def _place(base: Path, root: Path, file: str, record: Mapping[str, str]) -> None:
    """Move the content of ``base`` (on the same file system) into ``root``; merge folders.

    ``record`` of the source called ``file`` is written in the same move. Raise DataError, before
    anything moves, when files would be replaced.
    """
    if conflicts := list(_conflicts(base, root)):
        raise DataError(
            f"{root} already holds {', '.join(conflicts[:8])}, which the source would replace; "
            "remove them, or choose an empty --root"
        )
    write_json(base / SOURCES / f"{file}.json", dict(record))
    os.rename(base, root / MOVING)
    continue_moving(root)


def _conflicts(base: Path, root: Path) -> Iterator[str]:
    for entry in os.scandir(base):
        target = root / entry.name
        if entry.is_dir(follow_symlinks=False) and target.is_dir():
            yield from (f"{entry.name}/{name}" for name in _conflicts(Path(entry), target))
        elif os.path.lexists(target):
            yield entry.name


def _move(source: Path, target: Path) -> None:
    """Move the entries of a folder, folders first: the lists come when their images are there."""
    for entry in sorted(
        os.scandir(source), key=lambda entry: (not entry.is_dir(follow_symlinks=False), entry.name)
    ):
        there = target / entry.name
        if entry.is_dir(follow_symlinks=False) and there.is_dir():
            _move(Path(entry), there)
        else:
            os.rename(entry.path, there)
    source.rmdir()
