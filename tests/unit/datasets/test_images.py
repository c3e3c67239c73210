"""Image files: every kind opens upright as grey or RGB, JPEGs with Pillow's bits; damaged ones are
one error."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest
from archives import save
from PIL import EpsImagePlugin, Image

from benchmark.core.errors import DataError
from benchmark.datasets.io.images import Opener, is_dim, open_image, open_pixels

TURNED = Image.Exif()
TURNED[0x0112] = 6  # by 90 degrees
POSTSCRIPT = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\n{} loop\n"


@pytest.mark.parametrize(
    ("name", "mode", "colour"),
    [
        ("x.png", "L", 90),
        ("x.gif", "P", 90),
        ("x.png", "RGBA", (90, 165, 7, 128)),
        ("x.bmp", "RGB", (90, 165, 7)),
        ("x.ppm", "RGB", (90, 165, 7)),
    ],
)
def test_every_colour_mode_opens_as_grey_or_rgb(tmp_path, name, mode, colour):
    Image.new(mode, (20, 16), colour).save(tmp_path / name)
    assert open_image(tmp_path / name).mode in ("L", "RGB")


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_exif_rotation_is_undone(tmp_path, dtype):
    white = np.full((10, 20), np.iinfo(dtype).max, dtype=dtype)
    Image.fromarray(white).save(tmp_path / "x.png", exif=TURNED)
    image = open_image(tmp_path / "x.png")
    assert (image.size, image.getextrema()) == ((10, 20), (255, 255))


@pytest.mark.parametrize("kind", [np.uint16, np.int32])
def test_sixteen_bit_grey_is_scaled_not_clipped(tmp_path, kind):
    values = np.array([[0, 255, 256, 32768], [257, 514, 65535, 65278]])
    Image.fromarray(values.astype(kind)).save(tmp_path / "x.tif")
    image = open_image(tmp_path / "x.tif")
    assert image.mode == "L"
    assert np.array_equal(np.asarray(image), np.round(values * 255 / 65535))


def write_deep_colour(path, value):
    """Write a PNG of 2 x 2 pixels, three channels of 16 bits, which Pillow cannot write."""
    rows = (b"\0" + struct.pack(">6H", *[value] * 6)) * 2
    parts = {b"IHDR": struct.pack(">2I5B", 2, 2, 16, 2, 0, 0, 0), b"IDAT": zlib.compress(rows)}
    content = b"\x89PNG\r\n\x1a\n"
    for name, data in (parts | {b"IEND": b""}).items():
        check = struct.pack(">I", zlib.crc32(name + data))
        content += struct.pack(">I", len(data)) + name + data + check
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("value", "dim"),
    [
        (1023, True),
        (4095, True),
        (16_383, True),
        (20_000, False),
        (65_535, False),
    ],
)
@pytest.mark.parametrize("kind", ["x.png", "x.tif", "colour.png"])
def test_pictures_that_use_few_of_sixteen_bits_are_known_and_stay_as_they_are(
    tmp_path, value, dim, kind
):
    if kind == "colour.png":
        write_deep_colour(tmp_path / kind, value)
    else:
        Image.fromarray(np.full((2, 2), value, np.uint16)).save(tmp_path / kind)
    assert is_dim(tmp_path / kind) == dim
    # grey is rounded, of colours Pillow keeps the upper eight bits
    expected = value >> 8 if kind == "colour.png" else round(value * 255 / 65535)
    assert np.asarray(open_image(tmp_path / kind)).max() == expected


def test_a_dark_picture_of_eight_bits_is_not_taken_for_one_of_twelve(tmp_path):
    Image.new("L", (4, 4), 9).save(tmp_path / "x.png")
    assert not is_dim(tmp_path / "x.png")


@pytest.mark.parametrize(
    "values",
    [
        np.full((2, 2), 70000, np.int32),
        np.full((2, 2), 0.5, np.float32),
    ],
)
def test_grey_beyond_sixteen_bits_is_refused(tmp_path, values):
    Image.fromarray(values).save(tmp_path / "x.tif")
    with pytest.raises(DataError, match="do not fit 16 bits"):
        open_image(tmp_path / "x.tif")


@pytest.mark.parametrize("name", ["x.jpg", "x.eps"])
def test_postscript_is_never_run_whatever_it_is_called(tmp_path, monkeypatch, name):
    started = []
    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", lambda *args: started.append(args))
    (tmp_path / name).write_bytes(POSTSCRIPT)
    with pytest.raises(DataError, match=r"cannot decode .*replace the file by one of JPEG, PNG"):
        open_image(tmp_path / name)
    assert not started


def exif_with_an_odd_entry() -> bytes:
    """Return a JPEG whose EXIF offsets point nowhere."""
    entry = struct.pack("<HHII", 0x0112, 5, 1, 0x7FFFFFFF)
    exif = b"Exif\0\0II*\0\x08\0\0\0" + struct.pack("<H", 1) + entry + b"\0\0"
    stream = io.BytesIO()
    Image.new("RGB", (8, 8)).save(stream, "JPEG", exif=exif)
    return stream.getvalue()


@pytest.mark.parametrize("error", [struct.error, RuntimeError, NotImplementedError, MemoryError])
def test_every_error_of_a_decoder_is_one_clear_error(tmp_path, monkeypatch, error):
    def fails(*_: object) -> None:
        raise error

    save(tmp_path / "x.png")
    monkeypatch.setattr(Image.Image, "getexif", fails)
    with pytest.raises(DataError, match=rf"cannot decode .*x\.png: {error.__name__}; replace"):
        open_image(tmp_path / "x.png", divisor=lambda size: 1)


def test_an_odd_exif_entry_spoils_at_most_its_own_image(tmp_path):
    (tmp_path / "x.jpg").write_bytes(exif_with_an_odd_entry())
    code = f"""
import warnings
from benchmark.core.errors import DataError
from benchmark.datasets.io.images import open_image
for _ in range(2):
    try:
        assert open_image({str(tmp_path / "x.jpg")!r}, divisor=lambda size: 1).size == (8, 8)
    except DataError as error:
        assert "cannot decode" in str(error)
    warnings.warn("of another, once")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.count("Warning:") == done.stderr.count("of another, once") == 1


def test_an_image_of_mode_lab_can_be_shown_in_grey_as_it_is_stored(tmp_path):
    Image.new("LAB", (4, 4), (128, 0, 0)).save(tmp_path / "a.tif")
    picture = Opener(tmp_path, ["a.tif"]).stored(0)
    assert picture.convert("L").getpixel((0, 0)) > 100


SETTINGS = {
    "4:4:4": {"subsampling": 0},
    "4:2:2": {"subsampling": 1},
    "4:2:0": {"subsampling": 2},
    "coarse": {"quality": 5},
    "fine": {"quality": 100},
    "progressive": {"progressive": True},
}


@pytest.fixture
def photograph(tmp_path):
    """Return a function that saves a smooth picture with noise: upsampled colours matter."""

    def write(size, mode="RGB", **options):
        width, height = size
        ramp = np.add.outer(np.arange(height), 2 * np.arange(width))
        colours = np.multiply.outer(ramp, [1, 2, 3])
        noise = np.random.default_rng(0).integers(0, 40, colours.shape)
        pixels = (colours + noise) % 256
        picture = Image.fromarray(pixels.astype(np.uint8)).convert(mode)
        picture.save(tmp_path / "picture.jpg", **options)
        return tmp_path / "picture.jpg"

    return write


@pytest.mark.parametrize("size", [(160, 96), (61, 35), (1, 7)], ids=str)
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_a_jpeg_has_the_bits_of_pillow(photograph, settings, size):
    path = photograph(size, **settings)
    pixels = open_pixels(path)
    assert isinstance(pixels, np.ndarray)
    assert np.array_equal(pixels, np.asarray(Image.open(path)))


@pytest.mark.parametrize(
    ("mode", "options"),
    [
        ("L", {}),
        ("CMYK", {}),
        ("RGB", {"format": "PNG"}),
    ],
    ids=str,
)
def test_other_modes_and_formats_are_left_to_pillow(photograph, mode, options):
    path = photograph((40, 30), mode, **options)
    wanted = Image.open(path).convert("L" if mode == "L" else "RGB")
    assert np.array_equal(np.asarray(open_pixels(path)), np.asarray(wanted))


def test_a_turned_jpeg_is_turned_unless_it_is_wanted_as_stored(photograph):
    path = photograph((40, 30), exif=TURNED)
    assert open_pixels(path).size == (30, 40)
    assert open_pixels(path, stored=True).shape == (30, 40, 3)


@pytest.mark.parametrize("kept", [0.2, 0.9])
def test_a_truncated_jpeg_is_refused_with_its_name(photograph, kept):
    path = photograph((160, 96))
    path.write_bytes(path.read_bytes()[: int(kept * path.stat().st_size)])
    with pytest.raises(DataError, match=r"picture\.jpg"):
        open_pixels(path)
