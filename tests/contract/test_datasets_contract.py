"""What every registered dataset promises, plugins included."""

from __future__ import annotations

import dataclasses
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from benchmark.datasets import DATASETS, check_dataset_params, load_dataset
from benchmark.datasets.base import ALL_METRICS, Dataset, ImageSet
from benchmark.options import schema_of

EVERY = pytest.mark.parametrize("name", DATASETS.names())
READY = [entry.name for entry in DATASETS if not schema_of(entry.target.Config)["required"]]  # need no files
ALL_PARAMS = [*READY, "folder"]


@pytest.fixture(scope="module")
def load(tmp_path_factory):
    """Returns a function that loads a dataset by name, once; 'folder' is loaded from pictures made here."""
    root = tmp_path_factory.mktemp("pictures")
    for category in "ab":
        for label in range(3):
            for number in range(2):
                path = root / category / f"{label}" / f"{number}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.new("RGB", (20, 30), (label, number, 0)).save(path)
    params = {"folder": {"root": str(root), "categories": True}}
    loaded: dict[str, Dataset] = {}

    def get(name: str) -> Dataset:
        if name not in loaded:
            loaded[name] = load_dataset(name, params.get(name))
        return loaded[name]

    return get


def sets_of(dataset: Dataset) -> list[ImageSet]:
    found = [dataset.train]
    for protocol in dataset.protocols.values():
        found += [protocol.query] + ([] if protocol.gallery is None else [protocol.gallery])
    return found


@EVERY
def test_entry_has_options_with_help_a_docstring_and_a_display_name(name):
    entry = DATASETS[name]
    assert entry.display
    assert entry.target.__doc__
    assert dataclasses.is_dataclass(entry.target.Config)
    assert all("description" in option for option in schema_of(entry.target.Config)["properties"].values())
    assert set(entry.target.metrics) <= set(ALL_METRICS)


@EVERY
def test_an_unknown_parameter_is_reported_without_touching_files(name):
    required = dict.fromkeys(schema_of(DATASETS[name].target.Config)["required"], "nowhere")
    (problem,) = check_dataset_params(name, {**required, "no_such_parameter": 1})
    assert "no_such_parameter" in problem


@pytest.mark.parametrize("name", ALL_PARAMS)
def test_every_image_has_a_label_and_a_name(load, name):
    for image_set in sets_of(load(name)):
        assert image_set.labels.dtype == np.int64
        assert image_set.labels.shape == (len(image_set),)
        assert len(image_set.names) == len(set(image_set.names)) == len(image_set) > 0
        assert np.array_equal(np.unique(image_set.labels), np.arange(image_set.labels.max() + 1))


@pytest.mark.parametrize("name", ALL_PARAMS)
def test_every_class_has_one_category_and_something_to_find(load, name):
    for image_set in sets_of(load(name)):
        assert np.bincount(image_set.labels).min() >= 2
        if image_set.categories is not None:
            assert image_set.categories.dtype == np.int64
            pairs = set(zip(image_set.labels.tolist(), image_set.categories.tolist(), strict=True))
            assert len(pairs) == image_set.labels.max() + 1


@pytest.mark.parametrize("name", READY)
def test_a_label_stands_for_one_name_and_a_name_for_one_label(load, name):
    for image_set in sets_of(load(name)):
        named = {
            (label, text.split(",")[0]) for label, text in zip(image_set.labels.tolist(), image_set.names, strict=True)
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
            assert np.array_equal(shown.reshape(image_set.pixels.shape[1:]), image_set.pixels[index])


@pytest.mark.parametrize("name", ALL_PARAMS)
def test_images_open_upright_in_grey_or_colour_and_survive_pickling(load, name):
    image_set = load(name).train
    copy = pickle.loads(pickle.dumps(image_set))
    assert image_set.image(0).mode in ("L", "RGB")
    assert np.array_equal(np.asarray(copy.image(1)), np.asarray(image_set.image(1)))


@pytest.mark.parametrize("name", ALL_PARAMS)
def test_counts_and_fingerprint_describe_what_was_loaded(load, name):
    dataset = load(name)
    assert dataset.counts["train"] == dataset.train.counts()
    assert dataset.counts["test"] == dataset.protocols["test"].query.counts()
    assert len(bytes.fromhex(dataset.fingerprint)) == 8


def test_two_processes_that_draw_the_glyphs_at_once_leave_one_valid_file(tmp_path):
    # Drawing is replaced by a small made-up set, and each process waits in it until the other is there too.
    code = """
import pathlib, sys, time
import numpy as np
from benchmark.datasets import glyph_drawing
meeting = pathlib.Path(sys.argv[1])
def draw():
    (meeting / sys.argv[2]).touch()
    deadline = time.monotonic() + 60
    while len(list(meeting.iterdir())) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    pixels = np.arange(200 * 32 * 32).reshape(200, 32, 32).astype(np.uint8)
    numbers = np.arange(200)
    return {"pixels": pixels, "codes": numbers, "fonts": numbers % 3, "font_names": np.array(["a", "b", "c"])}
glyph_drawing._draw = draw
assert len(glyph_drawing.glyph_images()["codes"]) == 200
glyph_drawing._draw = None  # the second reading comes from the file
assert glyph_drawing.glyph_images()["pixels"][7, 1, 2] == 34
"""
    meeting, cache = tmp_path / "meeting", tmp_path / "cache"
    meeting.mkdir()
    environment = {**os.environ, "BENCHMARK_CACHE": str(cache)}
    command = [sys.executable, "-c", code, str(meeting)]
    started = [subprocess.Popen([*command, name], env=environment, stderr=subprocess.PIPE, text=True) for name in "ab"]
    errors = [process.communicate()[1] for process in started]
    assert [process.returncode for process in started] == [0, 0], errors
    assert len(list(meeting.iterdir())) == 2, "both drew"
    assert [path.suffix for path in cache.iterdir()] == [".npz"]
