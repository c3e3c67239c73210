"""Brings one source of a dataset into its root: a download, an archive, a single file or a directory."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from benchmark.core.errors import DataError
from benchmark.datasets.base import Archive
from benchmark.datasets.prepare.digests import DamagedError, check_digests
from benchmark.datasets.prepare.download import download, shown
from benchmark.datasets.prepare.members import JUNK, is_archive
from benchmark.datasets.prepare.meter import Meter
from benchmark.datasets.prepare.place import find_base, notes, place, proven, staging, top_names
from benchmark.datasets.prepare.unpack import unpack

DOWNLOADS = "downloads"


@dataclass(frozen=True)
class Source:
    """One --source: where it is, and what it is called."""

    text: str

    @property
    def is_remote(self) -> bool:
        """Says whether it must be downloaded."""
        return urlsplit(self.text).scheme in ("http", "https")

    @property
    def file(self) -> str:
        """Returns the name of the file, without its place."""
        parts = urlsplit(self.text)
        return Path(unquote(parts.path)).name if self.is_remote else self.path.name

    @property
    def path(self) -> Path:
        """Returns the local path of a source that is not remote."""
        parts = urlsplit(self.text)
        if "://" in self.text and parts.scheme != "file":
            raise DataError(
                f"'{shown(self.text)}' has the scheme '{parts.scheme}'; sources are paths, or addresses with http, "
                "https or file"
            )
        return (
            Path(url2pathname(parts.path))
            if parts.scheme == "file"
            else Path(self.text).expanduser()
        )

    @property
    def is_directory(self) -> bool:
        """Says whether it is a local directory."""
        return not self.is_remote and self.path.is_dir()

    def origin(self) -> str:
        """Returns where it came from, for the record: an address without secrets, or a file name."""
        return shown(self.text) if self.is_remote else self.path.name

    def fetch(self, folder: Path) -> Path:
        """Returns the local path; what is remote is downloaded into ``folder`` first."""
        if self.is_remote:
            name = self.file.lstrip(".") or "download"
            if query := urlsplit(
                self.text
            ).query:  # may be all that tells two files of one server apart
                name = f"{hashlib.sha256(query.encode()).hexdigest()[:8]}-{name}"
            return download(self.text, folder / name)
        if not self.path.exists():
            raise DataError(
                f"no file or directory {self.path}; give a path or an http(s) address as --source"
            )
        return self.path


class Bringer:
    """Brings the sources of one dataset into ``root``; says what it does."""

    def __init__(
        self, name: str, archives: Sequence[Archive], root: Path, say: Callable[[str], None]
    ):
        self.name, self.archives, self.root, self.say = name, archives, root, say

    def bring(self, source: Source, digests: Mapping[str, str], link: bool) -> None:
        """Puts the content of a source into the root, unless it is there already.

        digests: expected md5 or sha256; ``link`` links a directory's content instead of copying it.
        """
        archive = self._archive_called(source.file)
        if self._is_there(source, archive):
            self.say(f"{source.file}: its content is in {self.root} already")
            return
        path = source.fetch(self.root / DOWNLOADS)
        if path.is_dir():
            self._bring_directory(path, source, link)
            return
        known = (
            {"md5": archive.md5}
            if archive is not None and archive.md5 and archive.file == source.file
            else {}
        )
        try:
            facts = {
                "from": source.origin(),
                "sha256": check_digests(path, digests or known)["sha256"],
            }
            if is_archive(path):
                self._bring_archive(path, source, archive, facts)
            else:
                self._bring_file(path, source, facts)
        except DamagedError:
            if (
                source.is_remote
            ):  # else the same command would find the damaged file downloaded already
                path.unlink()
            raise

    def _archive_called(self, file: str) -> Archive | None:
        """Returns the archive of that name, or of a name that begins like it (``ims-v2.tgz`` for ``ims.tar.gz``)."""
        named = [archive for archive in self.archives if archive.file == file]
        alike = [
            archive for archive in self.archives if file.startswith(archive.file.partition(".")[0])
        ]
        return next(iter([*named, *alike]), None)

    def _is_there(self, source: Source, archive: Archive | None) -> bool:
        """Says whether the root holds a source's content, brought here or unpacked by hand."""
        noted = source.file in notes(self.root)
        if archive is None:
            return noted and bool(proven(self.root, self.archives))
        alone = [other for other in self.archives if set(other.proves) & set(archive.proves)] == [
            archive
        ]
        return bool(proven(self.root, [archive])) and (noted or (alone and not source.is_directory))

    def _bring_archive(
        self, path: Path, source: Source, archive: Archive | None, facts: Mapping[str, str]
    ) -> None:
        with staging(self.root) as folder:
            tree = folder / "tree"
            tree.mkdir()
            count = unpack(path, tree)
            base = find_base(tree, self.archives)
            if base is None and archive is not None and len(archive.proves) == 1:
                base = _as_folder(tree, folder / "whole", archive)
            if base is None:
                base = _as_files(tree, folder / "files", self.archives)
            if base is None:
                raise DataError(
                    f"{path} is not part of dataset '{self.name}': it holds {top_names(tree)}; {self._wanted()}"
                )
            place(base, self.root, source.file, facts)
        self.say(f"{source.file}: {count:,} files unpacked")

    def _bring_file(self, path: Path, source: Source, facts: Mapping[str, str]) -> None:
        every = [
            proof
            for archive in self.archives
            for proof in archive.proves
            if not proof.endswith("/")
        ]
        proofs = [proof for proof in every if Path(proof).name == source.file]
        if not proofs:
            with open(path, "rb") as stream:
                page = stream.read(64).lstrip().startswith(b"<")
            what = (
                "a web page, not an archive"
                if page
                else "neither an archive (tar, tar.gz, tgz, zip)"
            )
            raise DataError(
                f"{path} is {what} nor a file of dataset '{self.name}'; {self._wanted()}"
            )
        with staging(self.root) as folder:
            target = folder / "whole" / proofs[0]
            target.parent.mkdir(parents=True)
            self._copy(path, target)
            place(folder / "whole", self.root, source.file, facts)
        self.say(f"{source.file}: copied")

    def _bring_directory(self, path: Path, source: Source, link: bool) -> None:
        base = find_base(path, self.archives)
        if base is None:
            raise DataError(
                f"{path} is not dataset '{self.name}': it holds {top_names(path)}; {self._wanted()}"
            )
        if base.resolve() == self.root.resolve():
            self.say(f"{base}: used where it is")
            return
        if self.root.resolve().is_relative_to(base.resolve()):
            raise DataError(
                f"--root {self.root} lies inside the source {base}; choose another, or give {base} as --root"
            )
        with staging(self.root) as folder:
            whole = folder / "whole"
            whole.mkdir()
            if link:
                for entry in sorted(base.resolve().iterdir()):
                    os.symlink(entry, whole / entry.name)
            else:
                self._copy(base, whole)
            place(whole, self.root, source.file, {"from": source.origin()})
        self.say(f"{base}: {'linked' if link else 'copied'}")

    def _copy(self, source: Path, target: Path) -> None:
        try:
            with Meter(f"copying {source.name}", None, "B") as meter:

                def copy(one: str, other: str) -> None:
                    shutil.copyfile(one, other)
                    meter.add(os.path.getsize(other))

                if source.is_dir():
                    ignore = shutil.ignore_patterns("._*", *JUNK)
                    shutil.copytree(
                        source, target, copy_function=copy, ignore=ignore, dirs_exist_ok=True
                    )
                else:
                    copy(str(source), str(target))
        except OSError as error:  # copytree gathers (source, target, reason)
            first = error.args[0][0][-1] if isinstance(error, shutil.Error) else error
            raise DataError(
                f"cannot copy {source} into {self.root}: {first}; nothing was kept of it"
            ) from error

    def _wanted(self) -> str:
        files = "; ".join(
            f"{archive.file} with {', '.join(archive.proves)}" for archive in self.archives
        )
        return f"expected: {files}"


def _as_files(tree: Path, whole: Path, archives: Sequence[Archive]) -> Path | None:
    """Returns ``whole``, holding those files of ``tree`` that are published one by one, where they belong.

    None when there are none: so are the lists of a split that somebody put into one archive.
    """
    proofs = {
        Path(proof).name: proof
        for archive in archives
        if len(archive.proves) == 1
        for proof in archive.proves
    }
    found = {
        path.name: path
        for path in sorted(tree.rglob("*"))
        if path.is_file() and path.name in proofs
    }
    for name, path in found.items():
        target = whole / proofs[name]
        target.parent.mkdir(parents=True, exist_ok=True)
        os.rename(path, target)
    return whole if found else None


def _as_folder(tree: Path, whole: Path, archive: Archive) -> Path | None:
    """Returns ``whole``, holding what was in ``tree`` as the one folder that the archive proves.

    None when it proves a file.
    """
    (proof,) = archive.proves
    if not proof.endswith("/"):
        return None
    target = whole / proof
    if not archive.flat:
        target.parent.mkdir(parents=True)
        os.rename(tree, target)
        return whole
    target.mkdir(parents=True)
    for path in sorted(path for path in tree.rglob("*") if path.is_file()):
        if (target / path.name).exists():
            raise DataError(
                f"{archive.file} holds two files named {path.name}; they cannot both go to {proof}"
            )
        os.rename(path, target / path.name)
    return whole
