"""The interface between datasets and the rest of the suite; what can be wrong with their files."""

from __future__ import annotations

import contextlib
import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import numpy as np
from PIL import Image

from benchmark.core.errors import DataError, Problem
from benchmark.core.words import count, one_a_line
from benchmark.metrics.metric import METRICS

ALL_METRICS = tuple(METRICS)
Counts = Mapping[str, Mapping[str, int]]  # split -> kind ("images", "classes", ...) -> number


@dataclass(frozen=True)
class ImageSet:
    """Images with labels, in a fixed order.

    labels      int64 (N,): class of each image
    names       path or description of each image
    opener      function from an image's number to the PIL image; None for ``pixels`` alone
    categories  int64 (N,): coarser grouping of the classes, or None
    pixels      uint8 (N, H, W, C), C = 1 or 3, when the whole set lies in memory, else None
    origin      the set that ``part`` took this one from, and the images' numbers there
    features    float16 or float32 (N, F): what a network made of images that are not here, or None
    """

    labels: np.ndarray
    names: Sequence[str]
    opener: Callable[[int], Image.Image] | None = None
    categories: np.ndarray | None = None
    pixels: np.ndarray | None = None
    origin: tuple[ImageSet, np.ndarray] | None = None
    features: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def image(self, index: int) -> Image.Image:
        """Return one image, upright, in mode L or RGB; raise DataError for a broken file."""
        if self.opener is not None:
            return self.opener(index)
        if self.origin is not None:
            return self.origin[0].image(int(self.origin[1][index]))
        pixels = np.asarray(self.pixels)[index]
        if pixels.shape[-1] == 1:
            pixels = pixels[..., 0]
        return Image.fromarray(pixels)

    def part(self, chosen: np.ndarray) -> ImageSet:
        """Return the images of these numbers, in their order."""
        images, numbers = self.origin or (self, np.arange(len(self)))
        return ImageSet(
            self.labels[chosen],
            [self.names[index] for index in chosen],
            None,
            None if self.categories is None else self.categories[chosen],
            None if self.pixels is None else self.pixels[chosen],
            (images, numbers[chosen]),
            None if self.features is None else self.features[chosen],
        )

    def counts(self) -> dict[str, int]:
        """Return the numbers of images, classes and, if there are any, categories."""
        counts = {"images": len(self), "classes": len(np.unique(self.labels))}
        if self.categories is not None:
            counts["categories"] = len(np.unique(self.categories))
        return counts


@dataclass(frozen=True)
class Judgements:
    """The relevant images of each query, where class labels do not give them (landmarks).

    relevant   per query: int64 (P_i,), gallery indices of relevant images
    ignored    per query: int64 (I_i,), gallery indices removed from the ranking before scoring
    """

    relevant: tuple[np.ndarray, ...]
    ignored: tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Protocol:
    """One evaluation: queries against a gallery, or each image against all others without one.

    judgements  relevant images of each query; labels are then not used
    repeats     without a gallery: divisions of the images into (queries, gallery), int64 indices
                into ``query`` each; metrics are means over the divisions
    distractors with judgements: images searched after the gallery, relevant to no query
    instances   without a gallery: int64 (N,), number of the instance that each image belongs to,
                0 to M - 1; the mean of its images stands for it (frames of a video)
    """

    query: ImageSet
    gallery: ImageSet | None = None
    judgements: Judgements | None = None
    repeats: tuple[tuple[np.ndarray, np.ndarray], ...] = ()
    distractors: ImageSet | None = None
    instances: np.ndarray | None = None

    def image_sets(self) -> list[ImageSet]:
        """Return the query set, then gallery and distractors if there are any."""
        sets = (self.query, self.gallery, self.distractors)
        return [images for images in sets if images is not None]


@dataclass(frozen=True)
class Archive:
    """A file that a dataset is distributed in.

    file       its usual name; a file that is not an archive is copied to the path it provides
    provides   paths below the dataset's root that unpacking creates; image folders end in "/"
    md5        digest of the file (hex), if its publishers give one
    flat       whether folders inside the archive are dropped when it is unpacked

    An archive may provide one folder without containing it: its content then goes into the folder.
    """

    file: str
    provides: tuple[str, ...]
    md5: str | None = None
    flat: bool = False

    def missing(self, root: Path | str) -> list[str]:
        """Return the files and folders of the archive that do not exist below ``root``."""
        missing = []
        for path in self.provides:
            exists = os.path.isdir if path.endswith("/") else os.path.isfile
            if not exists(os.path.join(root, path)):
                missing.append(path)
        return missing


@dataclass(frozen=True)
class Dataset:
    """A loaded dataset: training images, and evaluation protocols of classes unseen in training.

    ``images_fingerprint`` covers the images alone, which all views of a dataset share.
    """

    name: str
    train: ImageSet
    protocols: dict[str, Protocol]
    fingerprint: str
    metrics: tuple[str, ...] = ALL_METRICS
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    images_fingerprint: str = ""

    def __post_init__(self) -> None:
        if not self.images_fingerprint:
            object.__setattr__(self, "images_fingerprint", self.fingerprint)
        if not self.counts:
            self.counts["train"] = self.train.counts()
            for name, protocol in self.protocols.items():
                self.counts[name] = protocol.query.counts()
                if protocol.gallery is not None:
                    self.counts[f"{name} gallery"] = protocol.gallery.counts()

    def image_sets(self) -> list[ImageSet]:
        """Return the training images, then the query and gallery of each protocol."""
        return [self.train, *(s for p in self.protocols.values() for s in p.image_sets())]


class DatasetLoader(ABC):
    """Base of the registered classes: built from a Config; ``load`` returns the dataset.

    archives        files that the dataset is distributed in
    other_archives  files of the second layout, if there are two
    expected        published counts; each is a part of ``Dataset.counts``
    distributed     counts of the files as distributed, where the published ones differ from them
    category_names  published names of all categories; empty: none are published
    other_names     what ``load`` found to differ from them
    trains          False for datasets that are for evaluation only
    largest_side    no image as published has a longer shorter side, pixels; None: not known
    """

    Config: ClassVar[type]
    metrics: ClassVar[tuple[str, ...]] = ALL_METRICS
    archives: ClassVar[tuple[Archive, ...]] = ()
    other_archives: ClassVar[tuple[Archive, ...]] = ()
    expected: ClassVar[Counts] = {}
    distributed: ClassVar[Counts] = {}
    category_names: ClassVar[frozenset[str]] = frozenset()
    other_names: tuple[str, ...] = ()
    trains: ClassVar[bool] = True
    largest_side: ClassVar[int | None] = None

    def __init__(self, config: Any):
        self.config = config

    @abstractmethod
    def load(self) -> Dataset:
        """Return the dataset; raise DataError naming every file or class that is wrong."""

    def known_counts(self, counts: Counts) -> Counts:
        """Return ``distributed`` if ``counts`` has all its counts, otherwise ``expected``."""
        if self.distributed and not count_differences(counts, self.distributed):
            return self.distributed
        return self.expected

    @property
    def also_known(self) -> str:
        """The counts that are accepted instead of ``expected``, for a reader, or ""."""
        if not self.distributed:
            return ""
        return f"known as well, all together: {counts_text(self.distributed)}"

    def others(self) -> dict[str, DatasetLoader]:
        """Return the loaders of the sets that the evaluation needs beside this one, by name."""
        return {}

    def expected_counts(self, counts: Counts | None = None) -> Counts:
        """Return the published counts of this set and the others.

        Of two known sets of counts, return the one that equals ``counts``.
        """
        counts = counts or {}
        expected = dict(self.known_counts(counts))
        for name, loader in self.others().items():
            for split, kinds in loader.known_counts(counts).items():
                key = split if split == name else f"{name} {split}"
                expected[key] = kinds
        return expected

    def which_counts(self, counts: Counts) -> str:
        """Return a text that says which of two known sets of counts this set and the others have.

        It is "" where no set has two of them, or ``counts`` are neither.
        """
        texts = []
        known = self.known_counts(counts)
        if self.distributed and not count_differences(counts, known):
            if known is self.distributed:
                found = "its counts are those of the files as distributed; the papers print"
                other = self.expected
            else:
                found = "its counts are those that the papers print; the files as distributed have"
                other = self.distributed
            texts.append(f"{found} {counts_text(other)}")
        texts += [loader.which_counts(counts) for loader in self.others().values()]
        return "; ".join(filter(None, texts))


def fingerprint_of(*contents: bytes | np.ndarray | str) -> str:
    """Return a digest (16 hex digits) of the given contents, in order."""
    digest = hashlib.sha256()
    for content in contents:
        if isinstance(content, np.ndarray):
            content = np.ascontiguousarray(content).tobytes()
        elif isinstance(content, str):
            content = content.encode()
        digest.update(content)
        digest.update(b"\0")
    return digest.hexdigest()[:16]


@dataclass
class Findings:
    """Collects all problems of the files of one dataset, and raises them as one DataError."""

    dataset: str
    root: Path
    problems: list[Problem] = field(default_factory=list)

    def add(self, code: str, message: str, key: str = "") -> None:
        """Add a problem; ``key`` is the file that has it, if it is one file."""
        self.problems.append(Problem(message, key, code=code))

    def add_all(
        self, code: str, what: str, offenders: Iterable[object], advice: str, key: str = ""
    ) -> None:
        """Add one problem of all ``offenders``, if there are any; list the first 20 of them.

        Offenders are lines, files or classes; ``key`` is their file, if it is one file.
        """
        offenders = list(offenders)
        if offenders:
            position = f" in {key}" if key else ""
            self.add(
                code, f"{what}{position}: {len(offenders):,}; {advice}{one_a_line(offenders)}", key
            )

    def stop(self) -> None:
        """Raise DataError with all problems so far, if there are any."""
        if self.problems:
            number = count(len(self.problems), "problem")
            head = f"dataset '{self.dataset}' at {self.root}: {number}"
            lines = [head, *(problem.message for problem in self.problems)]
            raise DataError("\n  ".join(lines), self.problems)

    def fail(self, code: str, message: str, key: str = "") -> NoReturn:
        """Raise DataError with all problems so far and this one."""
        self.add(code, message, key)
        self.stop()
        raise AssertionError

    @contextlib.contextmanager
    def reading(self, file: str) -> Iterator[None]:
        """Fail with a message if the block raises any error while it reads ``file``."""
        try:
            yield
        except Exception as error:
            self.fail("unreadable", f"cannot read {file} ({error}); get it again", file)


def counts_text(counts: Counts) -> str:
    """Return counts as text: "train 110,178 images, 13,134 classes; small 7,332 images"."""
    splits = []
    for split, kinds in counts.items():
        numbers = [f"{number:,} {kind}" for kind, number in kinds.items()]
        splits.append(f"{split} {', '.join(numbers)}")
    return "; ".join(splits)


def count_differences(counts: Counts, expected: Counts) -> list[tuple[str, str]]:
    """Return (split, text) for each count that differs from the expected count."""
    differences = []
    for split, kinds in expected.items():
        for kind, wanted in kinds.items():
            number = counts.get(split, {}).get(kind, 0)
            if number != wanted:
                change = f"{abs(number - wanted):,} {'more' if number > wanted else 'fewer'}"
                text = f"{split} {kind}: {number:,} instead of {wanted:,} ({change})"
                differences.append((split, text))
    return differences
