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
    names that are not text. Links to folders are followed.
    """
    shape = "category/class/image" if categories else "class/image"
    images, others, empty, unreadable = [], [], [], []
    root = findings.root
    for path, is_file in _entries(findings, root, (root.resolve(), *root.resolve().parents)):
        if not is_text(path.as_posix()):
            unreadable.append(path.as_posix())
        elif not is_file:
            empty.append(path.as_posix())
        elif path.suffix.lower() in IMAGE_SUFFIXES:
            images.append(path)
        else:
            others.append(path.as_posix())
    suffixes = ", ".join(sorted(IMAGE_SUFFIXES))
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


def _entries(
    findings: Findings, folder: Path, above: tuple[Path, ...]
) -> Iterator[tuple[Path, bool]]:
    """Yield (path below the root, True) for each file, (path, False) for each empty folder.

    ``above``: this folder and those that it lies in, without links.
    """
    with os.scandir(folder) as listing:  # tells files from folders without asking for each
        entries = sorted(
            (each.name, each.is_dir()) for each in listing if not is_ignored(each.name)
        )
    if not entries and folder != findings.root:
        yield folder.relative_to(findings.root), False
    for name, is_folder in entries:
        path = folder / name
        if not is_folder:
            yield path.relative_to(findings.root), True
        elif (real := path.resolve()) in above:
            findings.add(f"{path} is a link to a folder that contains it; remove the link")
        else:
            yield from _entries(findings, path, (*above, real))


def is_ignored(name: str) -> bool:
    """Say whether a file is one that systems leave beside images."""
    return name.startswith(".") or name.lower() in IGNORED
