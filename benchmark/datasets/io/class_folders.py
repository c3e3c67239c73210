"""A directory of class folders: each file is an image of a class, or is reported."""

import os
from collections.abc import Iterator
from pathlib import Path

from benchmark.core.paths import is_text
from benchmark.datasets.io.findings import Findings
from benchmark.datasets.io.images import IMAGE_SUFFIXES

IGNORED = frozenset({"thumbs.db", "desktop.ini"})  # as are hidden files, which start with a dot


def class_images(findings: Findings, categories: bool) -> list[Path]:
    """Return the images below the root, relative to it and sorted.

    They are class/image, or category/class/image. Everything that would otherwise be left out goes
    into the findings: images at another depth, files with other suffixes, folders without files,
    names that are not text. Links to folders are followed, to each folder once.
    """
    shape = "category/class/image" if categories else "class/image"
    images, others, empty, unreadable = [], [], [], []
    walk = _Walk(findings)
    for path, is_file in walk.entries():
        if not is_text(path.as_posix()):
            unreadable.append(path.as_posix())
        elif not is_file:
            empty.append(path.as_posix())
        elif path.suffix.lower() in IMAGE_SUFFIXES:
            images.append(path)
        else:
            others.append(path.as_posix())
    suffixes = ", ".join(sorted(IMAGE_SUFFIXES))
    findings.add_all(
        "folders that are reached twice", walk.twice, "remove links until each is once"
    )
    if not (images or others or empty or unreadable or findings.problems):
        findings.add(
            f"no images; expected {shape} with suffixes {suffixes}: one folder for each class, "
            "with its images in it"
        )
    _report_depth(findings, images, shape)
    findings.add_all(
        "files with other suffixes",
        others,
        f"expected {shape}: convert images to one of {suffixes}, move other files out of the root",
    )
    findings.add_all("empty folders", empty, "add their images, or remove them")
    findings.add_all("names that are not UTF-8 text", unreadable, "rename them")
    return sorted(images)


def _report_depth(findings: Findings, images: list[Path], shape: str) -> None:
    """Report images at another depth than the expected one, with advice that fits all of them."""
    depth = shape.count("/") + 1
    wrong = [path.as_posix() for path in images if len(path.parts) != depth]
    depths = {len(path.parts) for path in images}
    advice = f"move each to {shape}"
    if depths == {1}:
        advice = (
            f"give each class a folder of its own and {advice}, or name each image's class in a "
            "split_csv"
        )
    elif depths == {2} or depths == {3}:
        advice += f", or set categories: {'false' if depth == 3 else 'true'}"
    findings.add_all("images at another depth", wrong, advice)


class _Walk:
    """What lies below the root of a dataset, each folder once, whatever links lead to it."""

    def __init__(self, findings: Findings):
        self._findings = findings
        self._reached: dict[Path, Path] = {}  # by where a folder really is: how it was reached
        self.twice: list[str] = []  # folders that were, and would give their images two names

    def entries(self) -> Iterator[tuple[Path, bool]]:
        """Yield (path below the root, True) for each file, (path, False) for each empty folder."""
        root = self._findings.root
        yield from self._below(root, tuple(root.resolve().parents))

    def _below(self, folder: Path, above: tuple[Path, ...]) -> Iterator[tuple[Path, bool]]:
        """``above``: the folders that contain this one, up to the top of the disk."""
        real = folder.resolve()
        if real in above:
            self._findings.add(f"{folder} is a link to a folder that contains it; remove the link")
            return
        below = folder.relative_to(self._findings.root)
        if real in self._reached:
            self.twice.append(f"{below.as_posix()} is {self._reached[real].as_posix()}")
            return
        self._reached[real] = below
        try:
            with os.scandir(folder) as listing:  # tells files from folders without asking for each
                entries = sorted((e.name, e.is_dir()) for e in listing if not _is_ignored(e.name))
        except OSError as error:
            self._findings.add(f"cannot list {folder}: {error.strerror}; make it readable")
            return
        if not entries and folder != self._findings.root:
            yield below, False
        for name, is_folder in entries:
            if is_folder:
                yield from self._below(folder / name, (*above, real))
            else:
                yield below / name, True


def _is_ignored(name: str) -> bool:
    return name.startswith(".") or name.lower() in IGNORED
