"""Views are those of torchvision's transforms on PIL images, which the papers' code used.

Boxes of training views are compared by two-sample Kolmogorov-Smirnov tests of 2,000 draws, with
fixed seeds; pixels within one grey level for each resize.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from long_lists import long_but
from PIL import Image
from scipy.stats import ks_2samp

from benchmark.core.recipe import InputConfig
from benchmark.datasets.base import ImageSet
from benchmark.datasets.io.images import Opener
from benchmark.input.tensors import create_input
from benchmark.input.views import View, eval_view, random_resized_box, train_view
from benchmark.models.backbone import prepare_torchvision

DRAWS = 2000
LEAST_P = 1e-3  # 48 tests with fixed seeds
SIZES = {
    "1:1": (300, 300),
    "4:3": (400, 300),
    "3:1": (600, 200),
    "1:3": (200, 600),
}
RECIPES = {
    "FastAP": InputConfig(
        augmentation="crop_flip",
        resize=256,
        train_resize="square",
        crop="random",
    ),
    "Smooth-AP": InputConfig(
        augmentation="crop_flip",
        crop_area=[0.08, 1.0],
        crop_aspect=[3 / 4, 4 / 3],
    ),
    "ROADMAP, SOP": InputConfig(augmentation="crop_flip", resize=256, crop_aspect=[0.75, 1.33]),
    "ROADMAP, CUB": InputConfig(augmentation="crop_flip", crop_aspect=[0.75, 1.33]),
}
TESTS = {
    "squash": InputConfig(resize=256, decoding="stored"),
    "short side": InputConfig(resize=256, keep_aspect=True, decoding="stored"),
    "squash, whole": InputConfig(resize=224, decoding="stored"),
}


@pytest.fixture(scope="module")
def transforms():
    prepare_torchvision()
    import torchvision.transforms

    return torchvision.transforms


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """Return a folder with a picture of each shape and kind."""
    root = tmp_path_factory.mktemp("views")
    generator = np.random.default_rng(0)
    for shape, size in SIZES.items():
        width, height = size
        coarse = generator.integers(0, 256, (height // 8, width // 8, 3), dtype=np.uint8)
        picture = Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC)
        exif = Image.Exif()
        exif[274] = 6  # turn by 90 degrees
        picture.save(root / _file(shape, "rgb"), quality=95)
        picture.save(root / _file(shape, "turned"), quality=95, exif=exif)
        picture.convert("L").save(root / _file(shape, "grey"), quality=95)
        picture.convert("P").save(root / _file(shape, "palette"))
    return root


@pytest.mark.parametrize("shape", long_but(["4:3"], SIZES))
@pytest.mark.parametrize("recipe", RECIPES)
def test_training_boxes_and_flips_are_distributed_as_torchvisions(transforms, recipe, shape):
    config = RECIPES[recipe]
    size = SIZES[shape]
    generator = np.random.default_rng(11)
    ours = [_drawn(train_view(size, config, generator)) for _ in range(DRAWS)]
    torch.manual_seed(12)
    theirs = [_theirs(transforms, config, size) for _ in range(DRAWS)]
    names = ("left", "top", "width", "height", "flip")
    for name, first, second in zip(names, np.transpose(ours), np.transpose(theirs), strict=True):
        assert ks_2samp(first, second, method="asymp").pvalue > LEAST_P, name


def test_a_test_of_boxes_tells_an_area_of_a_tenth_from_one_of_16_percent(transforms):
    """The comparison above would notice the crop of another recipe."""
    generator = np.random.default_rng(11)
    widths = []
    for name in ("Smooth-AP", "ROADMAP, CUB"):
        drawn = [_drawn(train_view((400, 300), RECIPES[name], generator)) for _ in range(DRAWS)]
        widths.append([width for _, _, width, _, _ in drawn])
    assert ks_2samp(*widths).pvalue < 1e-6


@pytest.mark.parametrize("kind", ["rgb", "grey", "palette", "turned"])
@pytest.mark.parametrize("shape", SIZES)
@pytest.mark.parametrize("test", TESTS)
def test_test_views_have_torchvisions_pixels(transforms, root, test, shape, kind):
    config = TESTS[test]
    path = root / _file(shape, kind)
    side = config.resize if config.keep_aspect else (config.resize, config.resize)
    pipeline = transforms.Compose([transforms.Resize(side), transforms.CenterCrop(224)])
    theirs = pipeline(Image.open(path).convert("RGB"))
    ours = _shown(root, path.name, config)
    assert _gap(ours, theirs) <= 1


@pytest.mark.parametrize("shape", SIZES)
@pytest.mark.parametrize("recipe", RECIPES)
def test_training_views_have_torchvisions_pixels(transforms, root, recipe, shape):
    """The box is ours: resize, crop and flip are theirs, and each resize may move one level."""
    config = RECIPES[recipe]
    picture = Image.open(root / _file(shape, "rgb"))
    view = train_view(picture.size, config, np.random.default_rng(3))
    left, top, right, bottom = view.box
    theirs = picture.resize(view.resized, Image.Resampling.BILINEAR)
    functional = transforms.functional
    theirs = functional.resized_crop(theirs, top, left, bottom - top, right - left, (224, 224))
    if view.mirrored:
        theirs = functional.hflip(theirs)
    assert _gap(view.of(picture), theirs) <= 2


def test_images_are_turned_by_exif_unless_they_are_to_be_as_stored(root):
    file = _file("3:1", "turned")
    stored = _shown(root, file, TESTS["squash"])
    upright = _shown(root, file, dataclasses.replace(TESTS["squash"], decoding="upright"))
    turned_back = upright.rot90(1)
    assert _gap(stored, turned_back) <= 1
    assert _gap(stored, upright) > 20


@pytest.mark.parametrize("scale", [1.0, 0.7071, 1.4142])
def test_native_views_are_whole_images_at_a_scale(root, scale):
    """The listwise code's Scale rounds sides half up."""
    config = InputConfig(native_size=True, augmentation="crop_flip", decoding="stored")
    image_set = _image_set(root, [_file(shape, "rgb") for shape in SIZES])
    source = create_input(image_set, config, 3)
    batches = source.eval_batches(16, scale)
    for batch, (width, height) in zip(batches, SIZES.values(), strict=True):
        assert batch.shape == (1, 3, int(0.5 + scale * height), int(0.5 + scale * width))


def test_native_views_are_shrunk_to_the_longest_side_allowed():
    config = InputConfig(native_size=True, augmentation="crop_flip", max_side=300)
    assert eval_view((600, 200), config).size == (300, 100)
    assert eval_view((200, 90), config).size == (200, 90)


def test_rotation_is_torchvisions(transforms, root):
    picture = Image.open(root / _file("4:3", "rgb"))
    bilinear = transforms.InterpolationMode.BILINEAR
    theirs = transforms.functional.rotate(picture, 17.0, interpolation=bilinear)
    assert _gap(_changed(picture, degrees=17.0), theirs) == 0


def test_rotations_are_uniform_up_to_the_limit(transforms):
    config = dataclasses.replace(RECIPES["FastAP"], rotation=10.0)
    generator = np.random.default_rng(5)
    ours = [train_view((300, 300), config, generator).degrees for _ in range(DRAWS)]
    torch.manual_seed(6)
    theirs = [transforms.RandomRotation.get_params([-10.0, 10.0]) for _ in range(DRAWS)]
    assert ks_2samp(ours, theirs).pvalue > LEAST_P


@pytest.mark.parametrize(
    ("name", "amount"),
    [
        ("brightness", 0.7),
        ("contrast", 1.3),
        ("saturation", 0.4),
        ("hue", 0.2),
        ("hue", -0.2),
    ],
)
def test_colour_changes_are_torchvisions(transforms, root, name, amount):
    picture = Image.open(root / _file("4:3", "rgb"))
    theirs = getattr(transforms.functional, f"adjust_{name}")(picture, amount)
    assert _gap(_changed(picture, jitter=((name, amount),)), theirs) == 0


def test_jitters_are_drawn_as_torchvision_does(transforms):
    limits = {"brightness": 0.4, "contrast": 0.2, "saturation": 1.5, "hue": 0.1}
    config = InputConfig(augmentation="crop_flip", **limits)
    generator = np.random.default_rng(7)
    ours = [dict(train_view((300, 300), config, generator).jitter) for _ in range(DRAWS)]
    torch.manual_seed(8)
    jitter = transforms.ColorJitter(**limits)
    bounds = [getattr(jitter, name) for name in limits]
    theirs = [jitter.get_params(*bounds) for _ in range(DRAWS)]
    for column, name in enumerate(limits, 1):
        first = [drawn[name] for drawn in ours]
        second = [drawn[column] for drawn in theirs]
        assert ks_2samp(first, second).pvalue > LEAST_P
    orders = {tuple(drawn) for drawn in ours}
    assert len(orders) == math.factorial(4)


def test_grey_images_are_jittered_in_brightness_alone():
    grey = Image.new("L", (4, 4), 100)
    coloured = _changed(grey, jitter=(("hue", 0.3), ("saturation", 0.1)))
    darker = _changed(grey, jitter=(("brightness", 0.5),))
    assert coloured.unique().tolist() == [100]
    assert darker.unique().tolist() == [50]


def test_options_that_are_0_draw_nothing():
    """An option that is not used leaves the boxes of a seed as they are."""
    config = RECIPES["FastAP"]
    rotating = dataclasses.replace(config, rotation=9.0)
    plain = train_view((400, 300), config, np.random.default_rng(1))
    turned = train_view((400, 300), rotating, np.random.default_rng(1))
    assert plain.jitter == ()
    assert plain.degrees == 0.0
    assert turned.degrees != 0.0
    assert plain.box == turned.box
    assert plain.mirrored == turned.mirrored


def _changed(picture, **changes):
    """Return the whole picture, turned or with other colours."""
    size = picture.size
    view = View(size, size, (0, 0, *size), size, **changes)
    return view.of(picture)


def _file(shape, kind):
    ending = "png" if kind == "palette" else "jpg"
    return f"{shape.replace(':', '')}-{kind}.{ending}"


def _image_set(root, names):
    return ImageSet(np.zeros(len(names), np.int64), names, Opener(root, names))


def _shown(root, name, config):
    """Return the pixels, uint8 (H, W, 3), that evaluation shows of one file."""
    plain = dataclasses.replace(config, mean=[0.0], std=[1.0])
    (batch,) = create_input(_image_set(root, [name]), plain, 3).eval_batches(1)
    levels = 255 * batch[0].permute(1, 2, 0)
    return levels.round().to(torch.uint8)


def _gap(pixels, others):
    """Return the largest difference in grey levels."""
    return np.abs(np.asarray(pixels, int) - np.asarray(others, int)).max()


def _drawn(view: View):
    left, top, right, bottom = view.box
    return left, top, right - left, bottom - top, view.mirrored


def _theirs(transforms, config, size):
    """Return the box and flip that torchvision draws for an image of a size."""
    picture = Image.new("L", size)
    if config.resize is not None:
        side = config.resize
        if config.train_resize == "square":
            side = (config.resize, config.resize)
        picture = transforms.functional.resize(picture, side)
    if config.crop == "random":
        top, left, height, width = transforms.RandomCrop.get_params(picture, (224, 224))
    else:
        top, left, height, width = transforms.RandomResizedCrop.get_params(
            picture, config.crop_area, config.crop_aspect
        )
    return left, top, width, height, bool(torch.rand(1) < 0.5)


@pytest.mark.parametrize("aspect", [0.0001, 100.0])
def test_a_box_that_fits_no_image_still_has_pixels(aspect):
    config = InputConfig(augmentation="crop_flip", crop_aspect=[aspect, aspect])
    left, top, right, bottom = random_resized_box((30, 20), config, np.random.default_rng(0))
    assert 0 <= left < right <= 30
    assert 0 <= top < bottom <= 20
