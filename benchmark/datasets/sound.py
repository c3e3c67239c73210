"""What a dataset of a plugin came to, held against what training and evaluation rely on."""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from benchmark.core.registry import NAME
from benchmark.datasets.base import ALL_METRICS, Dataset, ImageSet, Judgements, Protocol


def dataset_problems(dataset: Any) -> Iterator[str]:
    """Yield what is wrong with what ``load`` returned, in words that name the part."""
    if not isinstance(dataset, Dataset):
        yield f"load() returned {_told(dataset)}; return a benchmark.datasets.base.Dataset"
        return
    yield from _metrics(dataset.metrics)
    for name in ("fingerprint", "images_fingerprint"):
        value = getattr(dataset, name)
        if not isinstance(value, str) or not value.isprintable() or not 0 < len(value) <= 100:
            yield f"its {name} is {reprlib.repr(value)}; give what fingerprint_of returns"
            break
    yield from _image_set("train", dataset.train)
    protocols = dataset.protocols
    if not isinstance(protocols, dict) or not protocols:
        yield f"its protocols are {_told(protocols)}; give a dictionary of one or more"
        return
    for name, protocol in protocols.items():
        if not isinstance(protocol, Protocol):
            yield f"protocol {name!r:.60} is {_told(protocol)}; give Protocols"
        elif not isinstance(name, str) or not NAME.fullmatch(name):
            yield f"a protocol is called {name!r:.60}; give a name such as 'test'"
        else:
            yield from _protocol(f"protocol '{name}'", protocol)
    if not are_counts(dataset.counts):
        yield f"its counts are {reprlib.repr(dataset.counts)}; give {{split: {{kind: number}}}}"


def class_problems(target: Any) -> Iterator[str]:
    """Yield what is wrong with what the class of a loader says of itself."""
    yield from _metrics(getattr(target, "metrics", None))
    if not are_counts(expected := getattr(target, "expected", None)):
        yield f"expected is {reprlib.repr(expected)}; give {{split: {{kind: number}}}}"


def are_counts(counts: Any) -> bool:
    """Say whether something is {split: {kind: number}}."""
    return isinstance(counts, Mapping) and all(
        isinstance(split, str)
        and isinstance(kinds, Mapping)
        and all(isinstance(kind, str) and type(n) is int and n >= 0 for kind, n in kinds.items())
        for split, kinds in counts.items()
    )


def _metrics(metrics: Any) -> Iterator[str]:
    if not isinstance(metrics, tuple) or not metrics or not set(metrics) <= {*ALL_METRICS}:
        allowed = ", ".join(ALL_METRICS)
        yield f"metrics is {reprlib.repr(metrics)} (allowed: a tuple of one or more of {allowed})"


def _told(value: Any) -> str:
    return f"{reprlib.repr(value)} of type {type(value).__name__}"


def _image_set(where: str, images: Any) -> Iterator[str]:
    if not isinstance(images, ImageSet):
        yield f"{where} is {_told(images)}; give an ImageSet"
        return
    labels = images.labels
    if not _is_row(labels):
        yield f"{where}: labels are {_array(labels)}; give int64 (N,)"
        return
    if images.categories is not None and not _is_row(images.categories, len(labels)):
        words = f"categories are {_array(images.categories)}"
        yield f"{where}: {words}; give int64 ({len(labels)},), or None"
    try:
        names = [name for name in images.names if isinstance(name, str)]
    except TypeError:
        names = []
    if len(names) != len(labels):
        yield f"{where}: {len(names)} names are texts; give one for each of {len(labels)} images"
    if not callable(images.opener):
        yield f"{where}: opener is {_told(images.opener)}; give a function of an image's number"
    pixels = images.pixels
    if pixels is not None and not (
        type(pixels) is np.ndarray
        and pixels.dtype == np.uint8
        and pixels.ndim == 4
        and len(pixels) == len(labels)
        and pixels.shape[3] in (1, 3)
        and min(pixels.shape[1:3]) > 0
    ):
        yield f"{where}: pixels are {_array(pixels)}; give uint8 ({len(labels)}, H, W, 1 or 3)"


def _protocol(where: str, protocol: Protocol) -> Iterator[str]:
    sets = {"query": protocol.query}
    optional = {"gallery": protocol.gallery, "distractors": protocol.distractors}
    sets |= {name: images for name, images in optional.items() if images is not None}
    wrong = [
        problem for name, each in sets.items() for problem in _image_set(f"{where}, {name}", each)
    ]
    if wrong:
        yield from wrong
        return
    queries, gallery = len(protocol.query), protocol.gallery
    if not queries or (gallery is not None and not len(gallery)):
        yield f"{where}: its queries or its gallery are empty; give images"
    if protocol.judgements is not None:
        yield from _judgements(where, protocol.judgements, queries, gallery)
    elif protocol.distractors is not None:
        yield f"{where}: distractors without judgements; give both"
    for given, divided in (("repeats", protocol.repeats), ("instances", protocol.instances)):
        if gallery is not None and divided is not None and len(divided):
            yield f"{where}: {given} and a gallery; give one of them"
    labels, instances = protocol.query.labels, protocol.instances
    if instances is not None:
        if not _is_row(instances, queries) or not np.array_equal(
            np.unique(instances), np.arange(instances.max() + 1)
        ):
            words = f"instances are {_array(instances)}"
            yield f"{where}: {words}; give int64 ({queries},) of 0 to M - 1, each at least once"
            return
        labels = np.array([labels[instances == each][0] for each in range(instances.max() + 1)])
        if not np.array_equal(labels[instances], protocol.query.labels):
            yield f"{where}: an instance has images of several labels; give each one label"
    if not isinstance(protocol.repeats, tuple | list):
        yield f"{where}: repeats are {_told(protocol.repeats)}; give pairs"
    elif protocol.repeats:
        for repeat in protocol.repeats:
            yield from _repeat(where, repeat, protocol.query.labels)
    elif protocol.judgements is None:
        found = labels if gallery is None else gallery.labels
        yield from _positives(where, labels, found, alone=gallery is None)


def _repeat(where: str, repeat: Any, labels: np.ndarray) -> Iterator[str]:
    if not isinstance(repeat, tuple | list) or len(repeat) != 2:
        yield f"{where}: a repeat is {_told(repeat)}; give pairs of queries and gallery"
        return
    for numbers in repeat:
        if not _are_numbers(numbers, len(labels)) or not len(numbers):
            yield f"{where}: a repeat is {_array(numbers)}; give int64 numbers below {len(labels)}"
            return
    if len(np.unique(np.concatenate(repeat))) < len(repeat[0]) + len(repeat[1]):
        yield f"{where}: a repeat has an image twice; give each to the queries or to the gallery"
    yield from _positives(where, labels[repeat[0]], labels[repeat[1]])


def _positives(
    where: str, labels: np.ndarray, found: np.ndarray, *, alone: bool = False
) -> Iterator[str]:
    """Yield that no query has anything to find; ``alone``: what is searched are the queries."""
    values, counts = np.unique(found, return_counts=True)
    if not np.isin(labels, values[counts > alone]).any():
        yield f"{where}: none of {len(labels)} queries has an image of its label to find; give some"


def _judgements(
    where: str, judgements: Any, queries: int, gallery: ImageSet | None
) -> Iterator[str]:
    if gallery is None or not isinstance(judgements, Judgements):
        yield f"{where}: give Judgements, and a gallery that they number"
        return
    if len(judgements.relevant) != queries:
        yield f"{where}: {len(judgements.relevant)} judgements of {queries} queries; give one each"
    for numbers in (*judgements.relevant, *judgements.ignored):
        if not _are_numbers(numbers, len(gallery)):
            words = f"a judgement is {_array(numbers)}"
            yield f"{where}: {words}; give int64 numbers below {len(gallery)}"
            return


def _is_row(array: Any, size: int | None = None) -> bool:
    """Say whether something is an int64 array (N,), of this size if one is given."""
    sound = type(array) is np.ndarray and array.dtype == np.int64 and array.ndim == 1
    return sound and (size is None or len(array) == size)


def _are_numbers(array: Any, below: int) -> bool:
    return _is_row(array) and (not len(array) or (array.min() >= 0 and array.max() < below))


def _array(array: Any) -> str:
    """Return what an array is, in a few words."""
    if not isinstance(array, np.ndarray):
        return _told(array)
    if array.size and array.dtype.kind in "iu":
        return f"{array.dtype} {array.shape} of {array.min()} to {array.max()}"
    return f"{array.dtype} {array.shape}"
