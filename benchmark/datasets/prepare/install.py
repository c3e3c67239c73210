"""Installs the sources of a dataset into its root: downloads, archives, files, directories.

A source is unpacked into ``root/.unpacking``, and moved into the root when it is whole.
"""

import filecmp
import hashlib
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NoReturn
from urllib.request import url2pathname

from PIL import Image
from tqdm import tqdm

from benchmark.core.errors import DataError
from benchmark.core.files import begin_folder
from benchmark.core.paths import leaves_root
from benchmark.datasets.base import Archive, Dataset
from benchmark.datasets.io.roots import is_there
from benchmark.datasets.prepare.fetch import (
    DamagedError,
    check_digests,
    download,
    public_url,
    unpack,
)
from benchmark.datasets.prepare.pack import ordered_map

WRAPPING = 3  # folders that an archive may wrap a dataset in


def parse_source(text: str) -> tuple[Path, str]:
    """Return the path of a local source and "", or the name of a remote one and its address."""
    scheme, is_address, rest = text.partition("://")
    if not is_address:
        return Path(os.path.expanduser(text)), ""  # Path.expanduser raises for a nobody
    host, _, place = public_url(rest).partition("/")
    path = Path("/", url2pathname(place))
    if scheme == "file" and not host:
        return path, ""
    if scheme not in ("http", "https"):
        raise DataError(f"'{public_url(text)}' is neither http://, https:// nor file:///")
    unusable = leaves_root(path.name) or path.name.startswith(".")
    return Path("download" if unusable else path.name), text


@dataclass(frozen=True)
class Installer:
    """Installs the sources of one dataset into ``root``."""

    name: str
    archives: Sequence[Archive]
    root: Path

    def install(
        self, path: Path, url: str, digests: Mapping[str, str], link: bool
    ) -> dict[str, str]:
        """Put the content of a source into the root; return where it is from, and its sha256.

        digests: expected md5 or sha256; ``link`` links a directory's content instead of copying it.
        """
        file = path.name
        if url:  # of which two may end alike
            digest = hashlib.sha256(url.encode()).hexdigest()[:8]
            path = download(url, self.root / "downloads" / f"{digest}-{file}")
        elif not path.exists():
            raise DataError(f"no file or directory {path}; give a path or address as --source")
        facts = {"from": public_url(url) or file}
        tree = self.root / ".unpacking" / "tree"
        begin_folder(tree.parent)
        tree.mkdir()
        try:
            if path.is_dir():
                base = self._base(path) or self._refuse(path)
                if base.resolve() == self.root.resolve():
                    return facts
                _bring(base, tree, link)
                base = tree
            else:
                published = {a.file: {"md5": a.md5} for a in self.archives if a.md5}
                facts["sha256"] = check_digests(path, digests or published.get(file, {}))
                if file in self._alone():
                    shutil.copyfile(path, tree / file)
                else:
                    unpack(path, tree)
                base = self._arrange(tree, self._archive(file)) or self._refuse(path)
            _move(base, self.root)
            return facts
        except DamagedError:
            if url:  # else the same command would take the damaged file for complete
                path.unlink()
            raise
        finally:
            shutil.rmtree(tree.parent)

    def holds(self, file: str) -> bool:
        """Say whether what a source of this name provides lies below the root, as far as known."""
        archive = self._archive(file)
        return archive is None or _holds(self.root, archive)

    def _archive(self, file: str) -> Archive | None:
        named = [archive for archive in self.archives if archive.file == file]
        alike = [a for a in self.archives if file.startswith(a.file.partition(".")[0])]
        return next(iter(named or alike), None)  # ims-v2 is as ims

    def _base(self, tree: Path) -> Path | None:
        """Return the folder in ``tree``, or up to three below it, that is a dataset's root."""
        for depth in range(WRAPPING + 1):
            for folder in sorted(tree.glob("*/" * depth)) if depth else [tree]:
                if any(_holds(folder, archive) for archive in self.archives):
                    return folder
        return None

    def _arrange(self, tree: Path, archive: Archive | None) -> Path | None:
        """Return a folder with the layout of the root, made of ``tree``; None if that fails."""
        if root := self._base(tree):
            return root
        files = [path for path in tree.rglob("*") if path.is_file()]
        if archive and len(archive.provides) == 1 and archive.provides[0].endswith("/"):
            folder = Path(archive.provides[0])  # which the archive does not contain itself
            flat = archive.flat
            places = {p: folder / (p.name if flat else p.relative_to(tree)) for p in files}
        else:
            alone = self._alone()  # somebody may have put all lists into one archive
            places = {path: alone[path.name] for path in files if path.name in alone}
        base = tree.with_name("base")
        for path, place in places.items():
            if (base / place).exists():
                raise DataError(f"the source holds two files named {path.name}; give one of them")
            (base / place).parent.mkdir(parents=True, exist_ok=True)
            path.rename(base / place)
        return base if places else None

    def _alone(self) -> dict[str, Path]:
        """Return the place of each file that an archive of its own provides, by its name."""
        alone = (archive.provides[0] for archive in self.archives if len(archive.provides) == 1)
        return {Path(place).name: Path(place) for place in alone if not place.endswith("/")}

    def _refuse(self, path: Path) -> NoReturn:
        files = (f"{archive.file} with {', '.join(archive.provides)}" for archive in self.archives)
        raise DataError(f"{path} is not of dataset '{self.name}'; expected: {'; '.join(files)}")


def _holds(folder: Path, archive: Archive) -> bool:
    """Say whether everything that an archive provides lies below ``folder``."""
    return all(is_there(folder, path) for path in archive.provides)


def _bring(base: Path, tree: Path, link: bool) -> None:
    """Link or copy the content of a directory; raise DataError when its links lead out of it."""
    if link:
        for path in base.glob("[!.]*"):
            (tree / path.name).symlink_to(path.resolve())
        return
    ignored = shutil.ignore_patterns(".*", "__MACOSX")
    shutil.copytree(base, tree, symlinks=True, ignore=ignored, dirs_exist_ok=True)
    for copy in tree.rglob("*"):
        if copy.is_symlink() and not copy.resolve().is_relative_to(tree.resolve()):
            raise DataError(
                f"{base}: link '{copy.relative_to(tree)}' leads out of it; put what belongs there "
                "in the place of the link"
            )


def _move(source: Path, target: Path) -> None:
    """Move the content of a folder into another; raise DataError before a file would change."""
    for path in source.iterdir():
        place = target / path.name
        if path.is_dir() and place.is_dir() and not (path.is_symlink() or place.is_symlink()):
            _move(path, place)
        elif os.path.lexists(place) and not filecmp.cmp(path, place):
            raise DataError(
                f"{place} is not what the source holds there; remove it, or choose an empty --root"
            )
        else:
            path.replace(place)


def broken_images(dataset: Dataset, workers: int) -> tuple[list[str], int]:
    """Decode every image; return the error of each broken one, and the number of images.

    An image of two splits is decoded once.
    """
    openers: dict[str, Callable[[], Image.Image]] = {}
    for images in dataset.image_sets():
        for index, name in enumerate(images.names):
            openers.setdefault(name, partial(images.image, index))

    def error_of(opener: Callable[[], Image.Image]) -> str | None:
        try:
            opener()
        except DataError as error:
            return str(error)
        return None

    errors = ordered_map(error_of, list(openers.values()), workers)
    bar = tqdm(errors, "decoding", len(openers), leave=False, disable=None)
    return [error for error in bar if error is not None], len(openers)
