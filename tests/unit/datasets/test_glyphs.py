"""The glyph datasets: fixed, class-disjoint, cached, and in folds of their training classes."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest

from benchmark.core.errors import DataError
from benchmark.datasets import load_dataset
from benchmark.datasets.glyphs import SIDE, glyph_images


def label_names(image_set) -> set[str]:
    return {name.split(",")[0] for name in image_set.names}


@pytest.mark.parametrize(
    ("name", "classes"), [("glyphs", None), ("glyphs_1k", 1000), ("glyphs_tiny", 64)]
)
def test_test_classes_are_unseen_in_training(name, classes):
    dataset = load_dataset(name)
    test = dataset.protocols["test"].query
    assert not label_names(dataset.train) & label_names(test)
    if classes:
        assert (
            dataset.counts["train"]["classes"] == dataset.counts["test"]["classes"] == classes // 2
        )


def test_every_test_class_has_something_to_find():
    for name, least in (("glyphs", 2), ("glyphs_1k", 4), ("glyphs_tiny", 4)):
        counts = np.bincount(load_dataset(name).protocols["test"].query.labels)
        assert counts.min() >= least


def test_full_set_has_the_documented_size():
    drawn = glyph_images()
    assert len(np.unique(drawn["codes"])) > 3500
    assert 33000 < len(drawn["codes"]) < 36000
    assert drawn["pixels"].shape[1:] == (SIDE, SIDE)


def test_images_of_one_class_differ():
    image_set = load_dataset("glyphs_tiny").train
    for label in np.unique(image_set.labels):
        pictures = image_set.pixels[image_set.labels == label]
        assert len({picture.tobytes() for picture in pictures}) == len(pictures)


def test_loading_twice_gives_the_same_fingerprint():
    assert load_dataset("glyphs_1k").fingerprint == load_dataset("glyphs_1k").fingerprint
    assert load_dataset("glyphs_1k").fingerprint != load_dataset("glyphs_tiny").fingerprint


def test_categories_group_classes():
    train = load_dataset("glyphs_1k").train
    assert len(train.categories) == len(train)
    for label in np.unique(train.labels)[:50]:
        assert len(np.unique(train.categories[train.labels == label])) == 1


def test_sets_in_memory_can_be_sent_to_other_processes():
    whole = load_dataset("glyphs_tiny").train
    copy = pickle.loads(pickle.dumps(whole))
    assert np.array_equal(np.asarray(copy.image(5)), whole.pixels[5, ..., 0])
    assert list(copy.names) == list(whole.names)


def test_other_fonts_are_drawn_anew(monkeypatch, tmp_path):
    monkeypatch.setenv("BENCHMARK_CACHE", str(tmp_path / "cache"))
    drawn = glyph_images_of_nothing()
    monkeypatch.setattr("benchmark.datasets.glyphs._draw", lambda: drawn)
    fonts = [tmp_path / "a.ttf", tmp_path / "b.ttf"]
    monkeypatch.setattr("benchmark.datasets.glyphs._font_files", lambda: fonts)
    for content in (b"one", b"one", b"another size"):
        for path in fonts:
            path.write_bytes(content)
        glyph_images()
    assert len(list((tmp_path / "cache").glob("glyphs-*.npz"))) == 2


def glyph_images_of_nothing() -> dict[str, np.ndarray]:
    return {
        name: np.zeros((0, SIDE, SIDE) if name == "pixels" else 0, dtype=np.uint8)
        for name in ("pixels", "codes", "fonts", "font_names")
    }


def test_reading_the_cache_does_not_import_matplotlib():
    glyph_images()
    code = (
        "import sys; from benchmark.datasets.glyphs import glyph_images; glyph_images(); "
        "sys.exit('matplotlib' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_folds_share_out_the_training_classes_and_show_no_test_image():
    whole = load_dataset("glyphs_tiny")
    views = [
        load_dataset("class_folds", {"of": "glyphs_tiny", "folds": 3, "fold": fold})
        for fold in range(3)
    ]
    held = [view.protocols["held_out"].query for view in views]
    assert sorted(name for part in held for name in part.names) == sorted(whole.train.names)
    for view, part in zip(views, held, strict=True):
        assert not set(view.train.names) & set(part.names)
        assert sorted([*view.train.names, *part.names]) == sorted(whole.train.names)
        for images in (view.train, part):
            assert np.array_equal(np.unique(images.labels), np.arange(images.labels.max() + 1))
    assert len({view.fingerprint for view in [*views, whole]}) == 4


def test_a_fold_that_does_not_exist_is_refused():
    with pytest.raises(DataError, match="fold 5 of 2 of 'glyphs_tiny' does not exist"):
        load_dataset("class_folds", {"of": "glyphs_tiny", "fold": 5})
