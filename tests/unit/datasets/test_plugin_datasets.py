"""What the loader of a plugin returns is checked before anything is trained on it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from benchmark.core.errors import ConfigError, DataError, RunError
from benchmark.core.registry import Entry
from benchmark.datasets import DATASETS, load_dataset, plugin_problems, published_counts
from benchmark.datasets.base import (
    Dataset,
    DatasetLoader,
    Judgements,
    Protocol,
    fingerprint_of,
    pixel_set,
)
from benchmark.datasets.prepare.describe import describe
from benchmark.datasets.sound import dataset_problems

LABELS = np.repeat(np.arange(3), 2)
NUMBERS = np.arange(6)


def images(**changes: Any):
    names = [f"image {number}" for number in NUMBERS]
    return replace(pixel_set(np.zeros((6, 4, 5, 1), np.uint8), LABELS, names), **changes)


def dataset(protocol: Any = None, **changes: Any) -> Dataset:
    protocols = {"test": Protocol(images()) if protocol is None else protocol}
    sound = Dataset("mine", images(), protocols, fingerprint_of(LABELS))
    for name, value in changes.items():
        object.__setattr__(sound, name, value)
    return sound


def judged(*relevant: Any, gallery: Any = None) -> Protocol:
    none = tuple(np.empty(0, np.int64) for _ in relevant)
    return Protocol(images(), gallery, Judgements(relevant, none))


ALL = [np.array([number]) for number in NUMBERS]
WRONG = {
    "load.. returned None of type NoneType; return": lambda: None,
    "its fingerprint is None; give": lambda: dataset(fingerprint=None),
    "its protocols are {}": lambda: dataset(protocols={}),
    "protocol 'test' is 5 of type int": lambda: dataset(protocols={"test": 5}),
    "a protocol is called 3; give a name": lambda: dataset(protocols={3: Protocol(images())}),
    "a protocol is called ''; give a name": lambda: dataset(protocols={"": Protocol(images())}),
    "a protocol is called 'a/b'": lambda: dataset(protocols={"a/b": Protocol(images())}),
    "none of 6 queries has an image of its label to find": lambda: dataset(
        Protocol(images(labels=NUMBERS))
    ),
    "none of 6 queries has an image of its label to": lambda: dataset(
        Protocol(images(), images(labels=LABELS + 9))
    ),
    "repeats are 5 of type int; give pairs": lambda: dataset(Protocol(images(), repeats=5)),
    "a repeat is .* of type tuple; give pairs": lambda: dataset(
        Protocol(images(), repeats=((NUMBERS[:2], NUMBERS[2:4], NUMBERS[4:]),))
    ),
    "a repeat has an image twice": lambda: dataset(
        Protocol(images(), repeats=((NUMBERS[:3], NUMBERS[2:]),))
    ),
    "a repeat is int64 .0,.": lambda: dataset(
        Protocol(images(), repeats=((NUMBERS[:0], NUMBERS),))
    ),
    "none of 2 queries": lambda: dataset(Protocol(images(), repeats=((NUMBERS[:2], NUMBERS[2:]),))),
    "an instance has images of several labels": lambda: dataset(
        Protocol(images(), instances=np.array([0, 1, 1, 0, 2, 3]))
    ),
    "metrics is 'map' .allowed: a tuple": lambda: dataset(metrics="map"),
    "its counts are {'train': 5}": lambda: dataset(counts={"train": 5}),
    "train is None": lambda: dataset(train=None),
    "labels are float64 .6,.; give int64": lambda: dataset(
        train=images(labels=LABELS.astype(float))
    ),
    "categories are int64 .2,. of 0 to 0; give int64 .6,.": lambda: dataset(
        train=images(categories=LABELS[:2])
    ),
    "0 names are texts; give one for each of 6": lambda: dataset(train=images(names=None)),
    "opener is 5 of type int": lambda: dataset(train=images(opener=5)),
    "pixels are int64 .6, 4, 5, 1. of 0 to 0; give uint8": lambda: dataset(
        train=images(pixels=np.zeros((6, 4, 5, 1), np.int64))
    ),
    "query: pixels are uint8 .5, 4, 5, 3. of 0 to 0; give uint8 .6": lambda: dataset(
        Protocol(images(pixels=np.zeros((5, 4, 5, 3), np.uint8)))
    ),
    "its queries or its gallery are empty": lambda: dataset(Protocol(images().part(NUMBERS[:0]))),
    "distractors without judgements": lambda: dataset(Protocol(images(), distractors=images())),
    "give Judgements, and a gallery": lambda: dataset(judged(*ALL)),
    "1 judgements of 6 queries": lambda: dataset(judged(ALL[0], gallery=images())),
    "a judgement is int64 .1,. of 9 to 9": lambda: dataset(
        judged(*ALL[:5], np.array([9]), gallery=images())
    ),
    "a judgement is float64 .1,.;": lambda: dataset(
        judged(*ALL[:5], np.array([0.5]), gallery=images())
    ),
    "a repeat is int64 .1,. of 6 to 6": lambda: dataset(
        Protocol(images(), repeats=((NUMBERS[:2], np.array([6])),))
    ),
    "repeats and a gallery": lambda: dataset(
        Protocol(images(), images(), repeats=((NUMBERS[:2], NUMBERS[2:]),))
    ),
    "instances are int64 .3,. of 0 to 2; give int64 .6,.": lambda: dataset(
        Protocol(images(), instances=NUMBERS[:3])
    ),
    "instances are int64 .6,. of 1 to 6": lambda: dataset(
        Protocol(images(), instances=NUMBERS + 1)
    ),
}


class Mine(DatasetLoader):
    made: Any = None

    @dataclass(frozen=True)
    class Config:
        pass

    def load(self) -> Any:
        return Mine.made()


@pytest.fixture
def mine(monkeypatch):
    DATASETS.names()
    monkeypatch.setitem(DATASETS._entries, "mine", Entry("mine", Mine, "Mine"))


@pytest.mark.parametrize(("told", "made"), WRONG.items(), ids=range(len(WRONG)))
def test_what_a_loader_returns_is_refused_with_its_name_and_file(mine, monkeypatch, told, made):
    monkeypatch.setattr(Mine, "made", made)
    with pytest.raises(ConfigError, match=rf"dataset 'mine' \({__file__}\).*\n.*{told}"):
        load_dataset("mine")


def test_sound_datasets_are_taken(mine, monkeypatch):
    monkeypatch.setattr(Mine, "made", dataset)
    assert load_dataset("mine").fingerprint == fingerprint_of(LABELS)
    for protocol in (
        judged(*ALL, gallery=images()),
        Protocol(images(), repeats=((NUMBERS[::2], NUMBERS[1::2]),)),
        Protocol(images(), instances=NUMBERS),
    ):
        assert list(dataset_problems(dataset(protocol))) == []
    assert list(dataset_problems(load_dataset("glyphs_tiny"))) == []


def test_what_a_class_says_of_itself_is_checked_before_it_is_loaded(mine, monkeypatch):
    monkeypatch.setattr(Mine, "metrics", None)
    monkeypatch.setattr(Mine, "expected", {"train": 5})
    assert plugin_problems() == [
        f"dataset 'mine' ({__file__}): metrics is None (allowed: a tuple of one or more of "
        "recall_at_k, map_at_r, map)",
        f"dataset 'mine' ({__file__}): expected is {{'train': 5}}; give "
        "{split: {kind: number}}",
    ]
    with pytest.raises(ConfigError, match="plugins: 2 problems"):
        load_dataset("mine")


def test_a_loader_that_cannot_be_made_is_named(mine, monkeypatch):
    monkeypatch.setattr(Mine, "__init__", lambda self: None)
    with pytest.raises(RunError, match=rf"dataset 'mine' \({__file__}\): TypeError"):
        load_dataset("mine")


@pytest.mark.parametrize("counts", [None, {"train": {"images": "x"}}])
def test_expected_counts_that_are_none_are_named(mine, monkeypatch, counts):
    monkeypatch.setattr(Mine, "expected_counts", lambda self: counts)
    with pytest.raises(ConfigError, match=rf"{__file__}.*\n.*its expected counts are"):
        published_counts("mine")


def test_a_dataset_without_a_docstring_is_described(mine):
    assert describe(DATASETS["mine"]).startswith("mine  Mine.")


@pytest.mark.parametrize("picture", [None, np.zeros((4, 4)), Image.new("RGBA", (4, 4))])
def test_an_opener_that_gives_no_picture_is_named_with_its_image(picture):
    with pytest.raises(DataError, match=r"image 3 \('image 3'\) is .*mode L or RGB"):
        images(opener=lambda index: picture).image(3)


@pytest.mark.parametrize(
    "error", [ValueError("boom"), KeyError(3), StopIteration(), OSError("cut")]
)
def test_an_opener_that_fails_is_named_with_its_image_and_its_line(error):
    def opener(index):
        raise error

    words = rf"image 3 \('image 3'\) cannot be opened by its opener, {__file__}, line \d+: "
    with pytest.raises(DataError, match=words + type(error).__name__):
        images(opener=opener).image(3)


def test_a_picture_that_is_cut_is_named(tmp_path):
    path = tmp_path / "cut.png"
    noise = np.random.default_rng(0).integers(0, 256, (40, 40, 3), dtype=np.uint8)
    Image.fromarray(noise).save(path)
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(DataError, match=r"image 3 \('image 3'\) cannot be opened by its opener"):
        images(opener=lambda index: Image.open(path)).image(3)
