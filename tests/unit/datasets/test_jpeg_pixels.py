"""JPEGs that skip Pillow's decoder have Pillow's bits; all others still go through it."""

import numpy as np
import pytest
from PIL import Image

from benchmark.core.errors import DataError
from benchmark.datasets.io.images import open_image, open_pixels

SETTINGS = {
    "4:4:4": {"subsampling": 0},
    "4:2:2": {"subsampling": 1},
    "4:2:0": {"subsampling": 2},
    "coarse": {"quality": 5},
    "fine": {"quality": 100},
    "progressive": {"progressive": True},
}


def photograph(size, mode="RGB"):
    """Return a smooth picture with noise, so that upsampled colours matter."""
    width, height = size
    ramp = np.add.outer(np.arange(height), 2 * np.arange(width))[..., None] * np.array([1, 2, 3])
    noise = np.random.default_rng(0).integers(0, 40, ramp.shape)
    return Image.fromarray(((ramp + noise) % 256).astype(np.uint8)).convert(mode)


@pytest.mark.parametrize("size", [(160, 96), (61, 35), (1, 7)], ids=str)
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_a_jpeg_has_the_bits_of_pillow(tmp_path, settings, size):
    path = tmp_path / "picture.jpg"
    photograph(size).save(path, **settings)
    pixels = open_pixels(path)
    assert isinstance(pixels, np.ndarray)
    assert np.array_equal(pixels, np.asarray(open_image(path)))


@pytest.mark.parametrize("mode", ["L", "CMYK"])
def test_other_modes_are_left_to_pillow(tmp_path, mode):
    path = tmp_path / "picture.jpg"
    photograph((40, 30), mode).save(path)
    assert open_pixels(path) == open_image(path)


def test_a_turned_jpeg_is_turned_unless_it_is_wanted_as_stored(tmp_path):
    path, exif = tmp_path / "picture.jpg", Image.Exif()
    exif[274] = 6
    photograph((40, 30)).save(path, exif=exif)
    assert open_pixels(path).size == (30, 40)
    assert open_pixels(path, stored=True).shape == (30, 40, 3)


def test_a_png_called_jpg_is_read_as_what_it_is(tmp_path):
    path = tmp_path / "picture.jpg"
    photograph((40, 30)).save(path, format="PNG")
    assert open_pixels(path) == open_image(path)


@pytest.mark.parametrize("kept", [0.2, 0.9])
def test_a_truncated_jpeg_is_refused_with_its_name(tmp_path, kept):
    path = tmp_path / "picture.jpg"
    photograph((160, 96)).save(path)
    path.write_bytes(path.read_bytes()[: int(kept * path.stat().st_size)])
    with pytest.raises(DataError, match=r"picture\.jpg"):
        open_pixels(path)


def test_a_second_header_of_another_size_does_not_reach_the_fast_decoder(tmp_path):
    small, large = tmp_path / "small.jpg", tmp_path / "large.jpg"
    photograph((16, 16)).save(small)
    photograph((640, 480)).save(large)
    path = tmp_path / "both.jpg"
    path.write_bytes(small.read_bytes()[:-2] + large.read_bytes()[2:])
    try:
        shown = np.asarray(open_pixels(path))
    except DataError:
        return
    assert shown.shape[:2] == (16, 16)
