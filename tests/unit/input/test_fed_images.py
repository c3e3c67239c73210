"""Images of files on their way to a GPU: uint8, one batch ahead, there the bits of a CPU.

The device is torch's ``meta`` where there is no GPU: the images wait for it in this process.
"""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch
from archives import save

from benchmark.core.errors import DataError
from benchmark.core.recipe import InputConfig
from benchmark.datasets import load_dataset
from benchmark.input.tensors import create_input, one_ahead
from benchmark.training.state import RunState

CPU = torch.device("cpu")
META = torch.device("meta")
CUDA = torch.device("cuda")
GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
DEVICES = [META, pytest.param(CUDA, marks=GPU)]
CROPS = {"augmentation": "crop_flip", "image_size": 24, "resize": 32}
NATIVE = {"augmentation": "crop_flip", "image_size": 24, "native_size": True}
BATCHES = [np.arange(20), np.arange(20, 40), np.arange(10, 27)]
SECONDS = 10.0


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    root = tmp_path_factory.mktemp("photos")
    for number in range(96):
        path = root / f"c{number // 6:02d}" / f"{number}.jpg"
        save(path, seed=number, size=(60, 40 + number))
    return load_dataset("folder", {"root": str(root)}).train


def shown(source, batches, device):
    """Return the floats (B, C, H, W) of each batch as a network on the device gets them."""
    place = CPU if device == META else device
    moved = [batch.to(place, non_blocking=True) for batch in batches]
    return [source.normalised(batch).cpu() for batch in moved]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("workers", [0, 2])
def test_a_training_is_fed_the_bits_of_a_cpu(photos, device, channels, workers):
    config = InputConfig(**CROPS, workers=workers)
    fed = create_input(photos, config, channels, device)
    wanted = list(create_input(photos, config, channels).train_batches(BATCHES, 3, 1))
    for start in (0, 1):
        got = shown(fed, fed.train_batches(BATCHES, 3, 1, start=start), device)
        for batch, expected in zip(got, wanted[start:], strict=True):
            assert torch.equal(batch, expected)
            assert batch.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("scale", [1.0, 0.7])
@pytest.mark.parametrize("shape", [CROPS, NATIVE])
def test_an_evaluation_is_fed_the_bits_of_a_cpu(photos, device, shape, scale):
    config = InputConfig(**shape)
    fed = create_input(photos, config, 3, device)
    wanted = list(create_input(photos, config, 3).eval_batches(7, scale))
    got = shown(fed, fed.eval_batches(7, scale), device)
    assert sum(map(len, got)) == len(photos)
    assert all(map(torch.equal, got, wanted))


@pytest.mark.parametrize("device", DEVICES)
def test_every_grey_level_becomes_the_float_of_a_cpu(photos, device):
    levels = torch.arange(256, dtype=torch.uint8).view(1, 1, 16, 16).expand(2, 3, 16, 16)
    config = InputConfig(**CROPS, mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
    source = create_input(photos, config, 3, device)
    (got,) = shown(source, [levels], device)
    mean = np.float32(config.mean).reshape(3, 1, 1)
    std = np.float32(config.std).reshape(3, 1, 1)
    wanted = (levels.numpy() / np.float32(255) - mean) / std
    assert np.array_equal(got.numpy(), wanted)


@pytest.mark.parametrize("device", DEVICES)
def test_bytes_have_the_digest_of_the_floats_of_a_cpu(photos, device):
    digests = []
    for place in (CPU, device):
        source = create_input(photos, InputConfig(**CROPS), 3, place)
        state = RunState()
        for numbers, images in zip(BATCHES, source.train_batches(BATCHES, 0, 0), strict=True):
            assert (images.dtype == torch.uint8) == (place != CPU)
            state.hash_batch(numbers, images, source.normalised)
        digests.append(state.batch_digests)
    of_floats, of_bytes = digests
    assert of_floats == of_bytes
    assert len(set(of_floats)) == len(BATCHES)


@GPU
def test_bytes_wait_in_pinned_memory_that_is_used_again(photos):
    source = create_input(photos, InputConfig(**CROPS), 3, CUDA)
    places = set()
    for batch in source.train_batches(BATCHES[:1] * 12, 0, 0):
        assert batch.is_pinned()
        places.add(batch.data_ptr())
        batch.to(CUDA, non_blocking=True)
        torch.cuda.synchronize()
    assert len(places) <= 4  # one in use, one ahead, one that is filled, one that was just left


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("workers", [0, 2])
def test_an_epoch_that_ends_early_leaves_no_thread_and_the_next_one_is_whole(
    photos, device, workers
):
    config = InputConfig(**CROPS, workers=workers)
    source = create_input(photos, config, 3, device)
    before = set(threading.enumerate())
    early = source.train_batches(BATCHES, 0, 0)
    next(early)
    early.close()
    new = [thread.name for thread in set(threading.enumerate()) - before]
    assert not any("ThreadPool" in name for name in new)
    wanted = create_input(photos, InputConfig(**CROPS), 3).train_batches(BATCHES, 0, 1)
    got = shown(source, source.train_batches(BATCHES, 0, 1), device)
    assert all(map(torch.equal, got, wanted))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("workers", [0, 2])
def test_a_broken_image_is_the_same_error(tmp_path, device, workers):
    for number in range(24):
        save(tmp_path / f"c{number // 6}" / f"{number}.jpg", seed=number, size=(40, 40))
    train = load_dataset("folder", {"root": str(tmp_path)}).train
    path = tmp_path / train.names[5]
    path.write_bytes(path.read_bytes()[:40])
    errors = []
    for place in (CPU, device):
        source = create_input(train, InputConfig(**CROPS, workers=workers), 3, place)
        with pytest.raises(DataError) as caught:
            list(source.train_batches([np.arange(4), np.arange(4, 8)], 0, 0))
        errors.append(str(caught.value))
    on_cpu, on_device = errors
    assert on_cpu == on_device
    assert str(path) in on_cpu


def test_one_item_is_made_while_another_is_used():
    made = [threading.Event() for _ in range(3)]

    def making():
        for number, event in enumerate(made):
            event.set()
            yield number

    items = one_ahead(making())
    assert next(items) == 0
    assert made[1].wait(SECONDS)
    assert not made[2].is_set()
    assert list(items) == [1, 2]


def test_what_making_an_item_raises_comes_when_it_is_asked_for():
    def making():
        yield 1
        raise DataError("broken")

    items = one_ahead(making())
    assert next(items) == 1
    with pytest.raises(DataError, match="broken"):
        next(items)
    assert list(items) == []
