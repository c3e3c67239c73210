"""Decoding less: JPEGs at a part of their size and resizing in integers, within bounds of doing it
in full."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from benchmark.core.recipe import InputConfig
from benchmark.datasets.base import ImageSet
from benchmark.datasets.io.images import Opener, ReducingOpener
from benchmark.input.tensors import create_input
from benchmark.input.views import View, pixels_of, resize

ROTATED = 6  # EXIF orientation: turn by 90 degrees
SIZE = (403, 301)  # no multiple of the divisors
EVALUATION = InputConfig(image_size=64, resize=72, keep_aspect=True)
CROPS = InputConfig(image_size=48, augmentation="crop_flip", crop_area=[0.5, 1.0])


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """Returns a folder with one smooth picture: as JPEG, turned, and as PNG."""
    root = tmp_path_factory.mktemp("reduced")
    coarse = np.random.default_rng(0).integers(0, 256, (20, 26, 3), dtype=np.uint8)
    picture = Image.fromarray(coarse).resize(SIZE, Image.Resampling.BICUBIC)
    picture.save(root / "plain.jpg", quality=95)
    exif = Image.Exif()
    exif[274] = ROTATED
    picture.save(root / "turned.jpg", quality=95, exif=exif)
    picture.save(root / "plain.png")
    return root


def images(root, opener, *names):
    return ImageSet(np.zeros(len(names), np.int64), names, opener(root, names))


def levels(root, opener, name, config):
    """Returns the one training or evaluation view in grey levels."""
    plain = InputConfig(**{**vars(config), "mean": [0.0], "std": [1.0]})
    source = create_input(images(root, opener, name), plain, 3)
    batches = source.eval_batches(1)
    if config.augmentation != "none":
        batches = source.train_batches([np.zeros(1, np.int64)], 3, 0)
    (batch,) = batches
    return batch * 255


@pytest.mark.parametrize("config", [EVALUATION, CROPS], ids=["evaluation", "crops"])
def test_a_reduced_picture_shows_the_same_within_a_few_grey_levels(root, config):
    whole = levels(root, Opener, "plain.jpg", config)
    reduced = levels(root, ReducingOpener, "plain.jpg", config)
    gap = (whole - reduced).abs()
    assert gap.max() > 0, "the picture was not reduced, so this test shows nothing"
    assert gap.mean() < 2.0
    assert gap.max() < 24.0
    # a shift by one pixel of the view would be farther off than that
    shift = whole.diff().abs()
    assert shift.mean() > 3 * gap.mean()


def test_decoding_is_told_the_upright_size_and_divides_that_of_upright_jpegs(root):
    told = []

    def divisor(size):
        told.append(size)
        return 4

    opener = ReducingOpener(root, ["plain.jpg", "turned.jpg", "plain.png"])
    sizes = [opener.reduced(number, divisor).size for number in range(3)]
    assert told == [SIZE, SIZE[::-1], SIZE]
    assert sizes == [(101, 76), SIZE[::-1], SIZE]


@pytest.mark.parametrize("name", ["plain.png", "turned.jpg"])
def test_other_formats_and_turned_images_stay_whole(root, name):
    whole = levels(root, Opener, name, EVALUATION)
    reduced = levels(root, ReducingOpener, name, EVALUATION)
    assert torch.equal(whole, reduced)


@pytest.mark.parametrize(
    ("full", "resized", "box", "divisor"),
    [
        ((800, 600), (341, 256), (0, 0, 224, 224), 2),
        ((4096, 4096), (256, 256), (0, 0, 224, 224), 8),
        ((800, 600), (800, 600), (10, 10, 458, 458), 2),
        ((800, 600), (800, 600), (10, 10, 458, 457), 1),
        ((100, 100), (256, 256), (0, 0, 224, 224), 1),
    ],
)
def test_nothing_is_reduced_below_what_the_view_needs(full, resized, box, divisor):
    assert View(full, resized, box, (224, 224)).divisor == divisor


def test_workers_change_nothing_for_reduced_pictures(root):
    numbers = [np.array([0, 1, 2, 1] * 6)]  # more than one piece
    runs = []
    for workers in (0, 1, 2):
        config = InputConfig(**{**vars(CROPS), "workers": workers})
        pictures = images(root, ReducingOpener, "plain.jpg", "turned.jpg", "plain.png")
        source = create_input(pictures, config, 3)
        (batch,) = source.train_batches(numbers, 1, 0)
        runs.append(batch)
    alone, one_worker, two_workers = runs
    assert torch.equal(alone, one_worker)
    assert torch.equal(alone, two_workers)


def noise(seed, height, width):
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(pixels)


@pytest.mark.parametrize("size", [(72, 96), (200, 100), (403, 301)])
@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_resizing_is_pils_to_one_grey_level(size, mode):
    picture = noise(1, 150, 160).convert(mode)
    wanted = np.asarray(picture.resize(size, Image.Resampling.BILINEAR), int)
    found = resize(pixels_of(picture), size).numpy().reshape(wanted.shape)
    assert np.abs(found - wanted).max() <= 1


def test_views_are_cut_out_of_the_resized_image_and_mirrored():
    picture = noise(2, 40, 50)
    view = View((50, 40), (50, 40), (5, 6, 29, 30), (24, 24), mirrored=True)
    cut = np.asarray(picture)[6:30, 5:29]
    assert np.array_equal(view.of(picture).numpy(), cut[:, ::-1])
