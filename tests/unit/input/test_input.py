"""Inputs: chance belongs to the batch or image, not to workers, order of use or resuming."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from PIL import Image

from benchmark.core.errors import ConfigError, DataError
from benchmark.core.recipe import InputConfig, check_input
from benchmark.core.seeding import derive
from benchmark.datasets import load_dataset
from benchmark.input.tensors import create_input
from benchmark.input.views import random_resized_box

GLYPH = InputConfig(augmentation="affine_noise", image_size=32, mean=[0.5], std=[0.25])
BATCHES = [np.arange(8), np.arange(8, 16), np.arange(16, 24)]


@pytest.fixture(scope="module")
def glyphs():
    return load_dataset("glyphs_tiny").train


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    root = tmp_path_factory.mktemp("photos")
    chance = np.random.default_rng(0)
    for label in range(8):
        for number in range(6):
            path = root / f"c{label}" / f"{number}.jpg"
            path.parent.mkdir(exist_ok=True)
            pixels = chance.integers(0, 255, (40 + label, 60, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(path)
    return load_dataset("folder", {"root": str(root)}).train


def tensor_of(pixels):
    """Return stored images as floats (B, C, H, W) from 0 to 1."""
    return torch.from_numpy(pixels).permute(0, 3, 1, 2).float() / 255


@pytest.mark.parametrize(
    ("images", "config"),
    [
        ("glyphs", GLYPH),
        ("photos", InputConfig(augmentation="crop_flip", image_size=24)),
    ],
)
def test_starting_later_gives_the_same_batches(request, images, config):
    source = create_input(request.getfixturevalue(images), config, 1)
    _, *expected = source.train_batches(BATCHES, 0, 2)
    rest = source.train_batches(BATCHES, 0, 2, start=1)
    assert all(map(torch.equal, rest, expected))


def test_augmentation_depends_on_seed_epoch_and_place(glyphs):
    source = create_input(glyphs, GLYPH, 1)
    same_images = [BATCHES[0], BATCHES[0]]
    first, second = source.train_batches(same_images, 0, 0)
    other_seed, _ = source.train_batches(same_images, 1, 0)
    other_epoch, _ = source.train_batches(same_images, 0, 1)
    assert not torch.equal(first, second)
    assert not torch.equal(first, other_seed)
    assert not torch.equal(first, other_epoch)


def test_evaluation_sees_every_image_once_in_order_without_chance(glyphs):
    source = create_input(glyphs, GLYPH, 1)
    images = torch.cat(list(source.eval_batches(100)))
    expected = (tensor_of(glyphs.pixels) - 0.5) / 0.25
    assert torch.allclose(images, expected)


def test_training_does_not_touch_the_global_generator(glyphs):
    torch.manual_seed(3)
    before = torch.get_rng_state()
    source = create_input(glyphs, GLYPH, 1)
    list(source.train_batches(BATCHES, 0, 0))
    assert torch.equal(before, torch.get_rng_state())


def test_workers_change_nothing(photos):
    sizes = {"augmentation": "crop_flip", "image_size": 24, "resize": 32}
    runs = []
    for workers in (0, 2):
        source = create_input(photos, InputConfig(workers=workers, **sizes), 3)
        runs.append(list(source.train_batches(BATCHES, 5, 1)))
    alone, with_workers = runs
    assert all(map(torch.equal, alone, with_workers))
    assert alone[0].shape == (8, 3, 24, 24)


def test_random_crop_stays_inside_and_respects_area_and_aspect():
    config = InputConfig(augmentation="crop_flip")
    chance = np.random.default_rng(0)
    for _ in range(300):
        left, top, right, bottom = random_resized_box((100, 80), config, chance)
        assert 0 <= left < right <= 100
        assert 0 <= top < bottom <= 80
        width = right - left
        height = bottom - top
        assert 0.15 <= width * height / 8000 <= 1.0
        assert 0.7 <= width / height <= 1.4


def test_augmentation_is_the_affine_map_then_noise_then_normalisation(glyphs):
    (batch,) = create_input(glyphs, GLYPH, 1).train_batches(BATCHES[:1], 3, 1)
    generator = torch.Generator().manual_seed(derive(3, "augmentation", 1, 0))
    angle, zoom, *shift = torch.rand(4, 8, generator=generator) * 2 - 1
    angle = angle * np.radians(GLYPH.degrees)
    zoom = 1 / (1.0 + 0.15 * zoom)
    across, down = [2 * GLYPH.translate * offset for offset in shift]
    cosine = torch.cos(angle) * zoom
    sine = torch.sin(angle) * zoom
    first_row = torch.stack([cosine, -sine, across], 1)
    second_row = torch.stack([sine, cosine, down], 1)
    maps = torch.stack([first_row, second_row], 1)
    images = tensor_of(glyphs.pixels[:8])
    grid = torch.nn.functional.affine_grid(maps, list(images.shape), align_corners=False)
    moved = torch.nn.functional.grid_sample(images, grid, align_corners=False)
    noise = GLYPH.noise * torch.randn(images.shape, generator=generator)
    expected = (moved + noise - 0.5) / 0.25
    # float32 coordinates of up to 16 pixels, in another order of additions
    assert torch.allclose(batch, expected, atol=1e-4)


def test_batches_do_not_change_the_images_in_memory(glyphs):
    source = create_input(glyphs, GLYPH, 1)
    before = glyphs.pixels.copy()
    list(source.train_batches(BATCHES, 0, 0))
    list(source.eval_batches(64))
    assert np.array_equal(glyphs.pixels, before)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_broken_image_is_the_same_short_error_with_and_without_workers(tmp_path, workers):
    for label in range(4):
        for number in range(2):
            path = tmp_path / f"c{label}" / f"{number}.png"
            path.parent.mkdir(exist_ok=True)
            Image.new("RGB", (30, 30), (label, number, 0)).save(path)
    train = load_dataset("folder", {"root": str(tmp_path)}).train
    path = tmp_path / train.names[1]
    path.write_bytes(path.read_bytes()[:40])
    source = create_input(train, InputConfig(image_size=24, workers=workers), 3)
    with pytest.raises(DataError) as caught:
        list(source.train_batches([np.arange(3)], 0, 0))
    message = str(caught.value)
    assert message.startswith(f"cannot decode {path}: ")
    assert "\n" not in message
    assert "Traceback" not in message


def test_a_pickled_set_in_memory_gives_the_same_tensors(glyphs):
    # resized, glyphs are decoded one by one, by workers to which the set is sent whole
    config = InputConfig(image_size=24, mean=[0.0], std=[1.0])
    alone = create_input(glyphs, config, 1)
    expected = next(alone.eval_batches(8))
    assert expected.shape == (8, 1, 24, 24)
    copied = create_input(pickle.loads(pickle.dumps(glyphs)), config, 1)
    assert torch.equal(next(copied.eval_batches(8)), expected)


def test_default_options_of_an_input_are_sound():
    assert check_input(InputConfig(), 3) == []
    assert check_input(InputConfig(), 1) == []
    assert check_input(InputConfig(mean=[0.5], std=[0.5], resize=224, scale=[1, 1]), 4) == []


@pytest.mark.parametrize(
    ("options", "channels", "keys"),
    [
        ({"resize": 200, "image_size": 224}, 3, ["resize"]),
        ({"mean": [0.5, 0.5]}, 3, ["mean"]),
        ({"mean": []}, 1, ["mean"]),
        ({"std": [0.2, 0.2, 0.2]}, 4, ["mean", "std"]),
        ({"std": [0.0]}, 1, ["std"]),
        ({"crop_area": [0.5]}, 3, ["crop_area"]),
        ({"crop_area": [0.9, 0.2]}, 3, ["crop_area"]),
        ({"crop_area": [0.5, 1.5]}, 3, ["crop_area"]),
        ({"crop_aspect": [0.0, 1.0]}, 3, ["crop_aspect"]),
        ({"scale": [0.9, 1.0, 1.1]}, 3, ["scale"]),
    ],
)
def test_each_unsound_option_is_named(options, channels, keys):
    found = check_input(InputConfig(**options), channels)
    assert [problem.key for problem in found] == keys


def test_all_problems_of_an_input_are_reported_at_once():
    options = {"resize": 24, "mean": [0.1, 0.2], "scale": [2, 1]}
    found = check_input(InputConfig(augmentation="affine_noise", image_size=32, **options), 3)
    assert [problem.key for problem in found] == ["resize", "mean", "scale"]


def test_an_augmentation_of_images_in_memory_is_refused_for_files(photos):
    with pytest.raises(ConfigError, match="this dataset has files") as caught:
        create_input(photos, GLYPH, 1)
    assert [problem.key for problem in caught.value.problems] == ["augmentation"]
