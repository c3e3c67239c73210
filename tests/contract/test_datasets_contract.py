"""What every registered dataset promises, plugins included."""

from __future__ import annotations

import dataclasses
import os
import pickle
import subprocess
import sys

import archives
import numpy as np
import pytest
from PIL import Image

from benchmark.core.options import schema_of
from benchmark.datasets import DATASETS, check_dataset_params, load_dataset
from benchmark.datasets.base import ALL_METRICS, Dataset, ImageSet, Protocol

EVERY = pytest.mark.parametrize("name", DATASETS.names())
READY = [
    entry.name for entry in DATASETS if not schema_of(entry.target.Config).get("required")
]  # need no files
ALL_PARAMS = [*READY, "folder", *archives.MAKERS]


@pytest.fixture(scope="module")
def load(tmp_path_factory):
    """Returns a function that loads a dataset by name, once; the files it needs are made here."""
    root = tmp_path_factory.mktemp("pictures")
    for category in "ab":
        for label in range(3):
            for number in range(2):
                path = root / category / f"{label}" / f"{number}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.new("RGB", (20, 30), (label, number, 0)).save(path)
    params = {"folder": {"root": str(root), "categories": True}}
    published = tmp_path_factory.mktemp("published")
    for name, make in archives.MAKERS.items():
        make(published / name)
        params[name] = {"root": str(published / name), "allow_counts": True}
    loaded: dict[str, Dataset] = {}

    def get(name: str) -> Dataset:
        if name not in loaded:
            loaded[name] = load_dataset(name, params.get(name))
        return loaded[name]

    return get


def parts_of(protocol: Protocol) -> list[ImageSet]:
    return [protocol.query] if protocol.gallery is None else [protocol.query, protocol.gallery]


def sets_of(dataset: Dataset) -> list[ImageSet]:
    return [dataset.train] + [
        part for protocol in dataset.protocols.values() for part in parts_of(protocol)
    ]


@EVERY
def test_entry_has_options_with_help_a_docstring_and_a_display_name(name):
    entry = DATASETS[name]
    assert entry.display
    assert entry.target.__doc__
    assert dataclasses.is_dataclass(entry.target.Config)
    assert all(
        "description" in option for option in schema_of(entry.target.Config)["properties"].values()
    )
    assert set(entry.target.metrics) <= set(ALL_METRICS)


@EVERY
def test_an_unknown_parameter_is_reported_without_touching_files(name):
    required = dict.fromkeys(schema_of(DATASETS[name].target.Config).get("required", ()), "nowhere")
    (problem,) = check_dataset_params(name, {**required, "no_such_parameter": 1})
    assert "no_such_parameter" in problem.message


@pytest.mark.parametrize("name", ALL_PARAMS)
def test_every_image_has_a_label_and_a_name(load, name):
    dataset = load(name)
    assert dataset.protocols
    for image_set in sets_of(dataset):
        assert image_set.labels.dtype == np.int64
        assert image_set.labels.shape == (len(image_set),)
        assert len(image_set.names) == len(set(image_set.names)) == len(image_set)
        assert len(image_set) > 0 or image_set is dataset.train


@pytest.mark.parametrize("name", ALL_PARAMS)
def test_classes_are_numbered_from_zero_over_the_sets_that_meet_and_have_one_category_each(
    load, name
):
    dataset = load(name)
    labelled = [protocol for protocol in dataset.protocols.values() if protocol.judgements is None]
    for sets in ([dataset.train], *map(parts_of, labelled)):
        labels = np.concatenate([part.labels for part in sets])
        classes = np.unique(labels)
        assert np.array_equal(classes, np.arange(len(classes)))
        if sets[0].categories is not None:
            categories = np.concatenate([part.categories for part in sets])
            assert categories.dtype == np.int64
            assert len(set(zip(labels.tolist(), categories.tolist(), strict=True))) == len(classes)


@pytest.mark.parametrize("name", ALL_PARAMS)
def test_every_query_has_something_to_find(load, name):
    for protocol in load(name).protocols.values():
        labels = protocol.query.labels
        if protocol.judgements is not None:
            assert (
                len(protocol.judgements.relevant)
                == len(protocol.judgements.ignored)
                == len(protocol.query)
            )
            for relevant, ignored in zip(
                protocol.judgements.relevant, protocol.judgements.ignored, strict=True
            ):
                places = np.concatenate([relevant, ignored])
                assert len(relevant)
                assert set(places) <= set(range(len(protocol.gallery)))
                assert len(np.unique(places)) == len(places)
        elif protocol.gallery is not None:
            assert set(labels) <= set(protocol.gallery.labels)
        else:
            assert np.bincount(labels).min() >= 2


@pytest.mark.parametrize("name", READY)
def test_a_label_stands_for_one_name_and_a_name_for_one_label(load, name):
    for image_set in sets_of(load(name)):
        named = {
            (label, text.split(",")[0])
            for label, text in zip(image_set.labels.tolist(), image_set.names, strict=True)
        }
        assert len(named) == len({label for label, _ in named}) == len({text for _, text in named})


@pytest.mark.parametrize("name", READY)
def test_pixels_in_memory_are_what_the_images_show(load, name):
    for image_set in sets_of(load(name)):
        if image_set.pixels is None:
            continue
        assert image_set.pixels.dtype == np.uint8
        assert image_set.pixels.ndim == 4
        assert len(image_set.pixels) == len(image_set)
        for index in (0, len(image_set) - 1):
            shown = np.asarray(image_set.image(index))
            assert np.array_equal(
                shown.reshape(image_set.pixels.shape[1:]), image_set.pixels[index]
            )


@pytest.mark.parametrize("name", ALL_PARAMS)
def test_images_open_upright_in_grey_or_colour_and_survive_pickling(load, name):
    image_set = sets_of(load(name))[-1]
    copy = pickle.loads(pickle.dumps(image_set))
    assert image_set.image(0).mode in ("L", "RGB")
    assert np.array_equal(np.asarray(copy.image(1)), np.asarray(image_set.image(1)))


@pytest.mark.parametrize("name", ALL_PARAMS)
def test_counts_and_fingerprint_describe_what_was_loaded(load, name):
    dataset = load(name)
    assert dataset.counts["train"]["images"] == len(dataset.train)
    for name, protocol in dataset.protocols.items():
        assert dataset.counts[name]["images"] == len(protocol.query)
        if protocol.judgements is None:
            assert dataset.counts[name] == protocol.query.counts()
    assert len(bytes.fromhex(dataset.fingerprint)) == 8


def test_two_processes_that_draw_the_glyphs_at_once_leave_one_valid_file(tmp_path):
    # Drawing is replaced by a small made-up set, and each process waits in it until the other is
    # there too.
    code = """
import pathlib, sys, time
import numpy as np
from benchmark.datasets import glyphs
meeting = pathlib.Path(sys.argv[1])
def draw():
    (meeting / sys.argv[2]).touch()
    deadline = time.monotonic() + 60
    while len(list(meeting.iterdir())) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    pixels = np.arange(200 * 32 * 32).reshape(200, 32, 32).astype(np.uint8)
    numbers = 200 + np.arange(200)  # letters that have names
    names = np.array(["a", "b", "c"])
    return {"pixels": pixels, "codes": numbers, "fonts": numbers % 3, "font_names": names}
glyphs._draw = draw
assert len(glyphs.glyph_images()["codes"]) == 200
glyphs._draw = None  # the second reading comes from the file
assert glyphs.glyph_images()["pixels"][7, 1, 2] == 34
"""
    meeting = tmp_path / "meeting"
    cache = tmp_path / "cache"
    meeting.mkdir()
    environment = {**os.environ, "BENCHMARK_CACHE": str(cache)}
    command = [sys.executable, "-c", code, str(meeting)]
    started = [
        subprocess.Popen([*command, name], env=environment, stderr=subprocess.PIPE, text=True)
        for name in "ab"
    ]
    errors = [process.communicate()[1] for process in started]
    assert [process.returncode for process in started] == [0, 0], errors
    assert len(list(meeting.iterdir())) == 2, "both drew"
    assert [path.suffix for path in cache.iterdir()] == [".npz"]
