"""Installs one source of a dataset into its root: a download, an archive, a file or a directory."""

import hashlib
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote
from urllib.request import url2pathname

from benchmark.core.errors import DataError
from benchmark.core.paths import is_text, leaves_root
from benchmark.datasets.base import Archive
from benchmark.datasets.prepare.digests import DamagedError, check_digests
from benchmark.datasets.prepare.download import download, is_web_page, public_url, split_url
from benchmark.datasets.prepare.members import JUNK, is_archive
from benchmark.datasets.prepare.meter import Meter
from benchmark.datasets.prepare.staging import (
    DOWNLOADS,
    find_base,
    move_into_root,
    read_sources,
    staging,
    top_names,
    unpacked_archives,
)
from benchmark.datasets.prepare.unpack import Unpacked, check_links, unpack

MAX_NAME = 200  # bytes of a source's name, which names its record


@dataclass(frozen=True)
class Source:
    """One --source: a path, or an address with http, https or file."""

    text: str

    @property
    def is_remote(self) -> bool:
        """Whether it must be downloaded."""
        return "://" in self.text and split_url(self.text).scheme in ("http", "https")

    @property
    def file(self) -> str:
        """The name of the file, without its folder."""
        if not self.is_remote:
            return self.path.name
        name = Path(unquote(split_url(self.text).path)).name
        usable = not leaves_root(name) and is_text(name) and not name.startswith(".")
        return name if usable and len(name.encode()) <= MAX_NAME else "download"

    @property
    def path(self) -> Path:
        """The local path of a source that is not remote."""
        if "://" not in self.text:
            return Path(os.path.expanduser(self.text))  # Path.expanduser raises for a nobody
        parts = split_url(self.text)
        if parts.scheme != "file":
            raise DataError(
                f"'{public_url(self.text)}' has the scheme '{parts.scheme}'; sources are paths, or "
                "addresses with http, https or file"
            )
        if parts.netloc not in ("", "localhost"):
            words = f"'{public_url(self.text)}' names another machine; write file:///PATH"
            raise DataError(f"{words}, or copy the file here")
        return Path(url2pathname(parts.path))

    def origin(self) -> str:
        """Return where it came from, for the record: an address without secrets, or a file name."""
        return public_url(self.text) if self.is_remote else self.path.name

    def fetch(self, folder: Path) -> Path:
        """Return the local path; what is remote is downloaded into ``folder`` first."""
        if self.is_remote:
            # the query may be all that distinguishes two files of a server
            query = split_url(self.text).query
            prefix = f"{hashlib.sha256(query.encode()).hexdigest()[:8]}-" if query else ""
            return download(self.text, folder / (prefix + self.file))
        if not self.path.exists():
            raise DataError(
                f"no file or directory {self.path}; give a path or an http(s) address as --source"
            )
        if not is_text(self.file) or len(os.fsencode(self.file)) > MAX_NAME:
            raise DataError(
                f"the name {self.file!a} is not text, or longer than {MAX_NAME} bytes; rename it"
            )
        return self.path


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
        archive = self._archive_named(source.file)
        if self._is_installed(source, archive):
            self.say(f"{source.file}: its content is in {self.root} already")
            return
        path = source.fetch(self.root / DOWNLOADS)
        if path.is_dir():
            self._install_directory(path, source, link)
            return
        if not digests and archive is not None and archive.md5 and archive.file == source.file:
            digests = {"md5": archive.md5}
        try:
            self._install_file(path, source, archive, digests)
        except DamagedError:
            if source.is_remote:  # else the same command would take the damaged file for complete
                path.unlink()
            raise

    def _archive_named(self, file: str) -> Archive | None:
        """Return the archive of that name, or of a name that begins so (``ims-v2`` for ``ims``)."""
        named = [archive for archive in self.archives if archive.file == file]
        alike = [a for a in self.archives if file.startswith(a.file.partition(".")[0])]
        return next(iter([*named, *alike]), None)

    def _is_installed(self, source: Source, archive: Archive | None) -> bool:
        """Say whether the root holds a source's content, installed or unpacked by hand."""
        recorded = source.file in read_sources(self.root)
        if archive is None:
            return recorded and bool(unpacked_archives(self.root, self.archives))
        others = [
            one for one in self.archives if one != archive and {*one.provides} & {*archive.provides}
        ]
        by_hand = not others and (source.is_remote or not source.path.is_dir())
        return bool(unpacked_archives(self.root, [archive])) and (recorded or by_hand)

    def _install_file(
        self, path: Path, source: Source, archive: Archive | None, digests: Mapping[str, str]
    ) -> None:
        """Install the content of an archive, or a file that is published alone."""
        record = {"from": source.origin(), "sha256": check_digests(path, digests)}
        with staging(self.root) as folder:
            tree = folder / "tree"
            tree.mkdir()
            if is_archive(path):
                unpacked = unpack(path, tree)
            else:
                self._check_alone(path, source)
                self._copy(path, tree / source.file)
                unpacked = Unpacked(files=1, has_links=False)
            base = self._arrange(tree, folder / "base", archive)
            if base is None:
                raise DataError(
                    f"{path} is not part of dataset '{self.name}': it holds {top_names(tree)}; "
                    f"{self._expected()}"
                )
            if unpacked.has_links:
                check_links(path, base)
            move_into_root(base, self.root, source.file, record)
        self.say(f"{source.file}: {unpacked.files:,} files installed")

    def _check_alone(self, path: Path, source: Source) -> None:
        """Raise DamagedError unless a file that is not an archive is published alone."""
        names = {Path(one).name for archive in self.archives for one in archive.provides}
        with open(path, "rb") as stream:
            page = is_web_page(stream.read(1024))
        if page or source.file not in names:
            raise DamagedError(
                f"{path} is {'a web page, ' * page}neither an archive (tar, tar.gz, tgz, zip) nor "
                f"a file of dataset '{self.name}'; {self._expected()}"
            )

    def _arrange(self, tree: Path, base: Path, archive: Archive | None) -> Path | None:
        """Return a folder with the layout of the root, made of ``tree``; None if that fails."""
        root = find_base(tree, self.archives)
        if root is None and archive is not None and len(archive.provides) == 1:
            root = _as_folder(tree, base, archive)
        return root or _as_files(tree, base, self.archives)

    def _install_directory(self, path: Path, source: Source, link: bool) -> None:
        base = find_base(path, self.archives)
        if base is None:
            raise DataError(
                f"{path} is not dataset '{self.name}': it holds {top_names(path)}; "
                f"{self._expected()}"
            )
        if base.resolve() == self.root.resolve():
            self.say(f"{base}: used where it is")
            return
        if self.root.resolve().is_relative_to(base.resolve()):
            raise DataError(
                f"--root {self.root} lies inside the source {base}; choose another, or give {base} "
                "as --root"
            )
        with staging(self.root) as folder:
            whole = folder / "whole"
            whole.mkdir()
            if link:
                for entry in base.resolve().iterdir():
                    os.symlink(entry, whole / entry.name)
            else:
                self._copy(base, whole)
                check_links(path, whole)
            move_into_root(whole, self.root, source.file, {"from": source.origin()})
        self.say(f"{base}: {'linked' if link else 'copied'}")

    def _copy(self, source: Path, target: Path) -> None:
        def copy(one: str, other: str) -> None:
            shutil.copyfile(one, other)
            meter.add(os.path.getsize(other))

        try:
            with Meter(f"copying {source.name}", None, "B") as meter:
                if source.is_dir():
                    ignore = shutil.ignore_patterns("._*", *JUNK)
                    shutil.copytree(
                        source, target, True, ignore, copy_function=copy, dirs_exist_ok=True
                    )
                else:
                    copy(str(source), str(target))
        except OSError as error:  # copytree gathers (source, target, reason)
            first = error.args[0][0][-1] if isinstance(error, shutil.Error) else error
            raise DataError(
                f"cannot copy {source} into {self.root}: {first}; nothing was kept of it"
            ) from error

    def _expected(self) -> str:
        files = (f"{archive.file} with {', '.join(archive.provides)}" for archive in self.archives)
        return f"expected: {'; '.join(files)}"


def _as_files(tree: Path, base: Path, archives: Sequence[Archive]) -> Path | None:
    """Move the files of ``tree`` that are published alone below ``base``, where they belong.

    Somebody may have put the lists of a split into one archive. Return None if there are none.
    """
    alone = (archive.provides[0] for archive in archives if len(archive.provides) == 1)
    targets = {Path(provided).name: base / provided for provided in alone}
    for path in sorted(tree.rglob("*")):
        if path.name in targets and path.is_file():
            if targets[path.name].exists():
                raise DataError(f"the source holds two files named {path.name}; give one of them")
            targets[path.name].parent.mkdir(parents=True, exist_ok=True)
            os.rename(path, targets[path.name])
    return base if base.is_dir() else None


def _as_folder(tree: Path, base: Path, archive: Archive) -> Path | None:
    """Move the content of ``tree`` into the one folder below ``base`` that the archive provides.

    Return None when the archive provides a file.
    """
    (folder,) = archive.provides
    if not folder.endswith("/"):
        return None
    target = base / folder
    if not archive.flat:
        target.parent.mkdir(parents=True)
        os.rename(tree, target)
        return base
    target.mkdir(parents=True)
    for path in sorted(path for path in tree.rglob("*") if path.is_file()):
        if (target / path.name).exists():
            raise DataError(
                f"{archive.file} holds two files named {path.name}; they cannot both go to {folder}"
            )
        os.rename(path, target / path.name)
    return base
