"""The number of processes that decode images, and stopping in the middle, change no bit of a run on
files."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tiny_runs import curve, stop_after, tiny_spec, write_spec_in

from benchmark.core.interrupts import Interrupted
from benchmark.core.records import RESULT, DatasetChoice, RunSpec
from benchmark.training.run import train


def draw(root: Path, seed: int) -> Path:
    """Write eight classes of eight small pictures below ``root``, in the place of what was
    there."""
    generator = np.random.default_rng(seed)
    for label in range(8):
        (root / f"class{label}").mkdir(parents=True, exist_ok=True)
        for number in range(8):
            pixels = generator.integers(0, 256, (40, 44, 3), dtype=np.uint8)
            pixels[..., label % 3] //= 2 + label
            Image.fromarray(pixels).save(root / f"class{label}" / f"{number}.png")
    return root


@pytest.fixture(scope="module")
def images(tmp_path_factory) -> Path:
    """Return a folder of pictures."""
    return draw(tmp_path_factory.mktemp("images"), 0)


def spec_of(root: Path, workers: int) -> RunSpec:
    spec = tiny_spec(
        "smooth_ap",
        input={"augmentation": "crop_flip", "image_size": 32, "workers": workers},
        training={"epochs": 2, "checkpoint_seconds": 1e9},
    )
    dataset = DatasetChoice("folder", "folder", {"root": str(root)})
    return dataclasses.replace(spec, dataset=dataset, batch_size=16)


def numbers(folder: Path) -> dict:
    """Return the result without the digest of a specification that names the number of workers."""
    return {**json.loads((folder / RESULT).read_text()), "spec_digest": None}


@pytest.fixture(scope="module")
def alone(images, tmp_path_factory) -> Path:
    """Return the folder of the run that decodes its images itself."""
    folder = tmp_path_factory.mktemp("alone")
    train(write_spec_in(folder, spec_of(images, 0)))
    return folder


@pytest.mark.parametrize("workers", [1, 3])
def test_workers_change_nothing(workers, images, alone, tmp_path):
    train(write_spec_in(tmp_path, spec_of(images, workers)))
    assert numbers(tmp_path) == numbers(alone)
    assert curve(tmp_path) == curve(alone)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_run_on_files_stopped_inside_an_epoch_continues_to_the_same_bits(
    workers, images, alone, tmp_path, monkeypatch
):
    path = write_spec_in(tmp_path, spec_of(images, workers))
    with monkeypatch.context() as patch:
        stop_after(3, patch)
        with pytest.raises(Interrupted):
            train(path)
    train(path)
    assert numbers(tmp_path) == numbers(alone)
    assert curve(tmp_path) == curve(alone)


def test_a_run_whose_images_were_replaced_meanwhile_starts_anew(tmp_path, monkeypatch, capsys):
    root = draw(tmp_path / "images", 0)
    path = write_spec_in(tmp_path / "stopped", spec_of(root, 0))
    with monkeypatch.context() as patch:
        stop_after(3, patch)
        with pytest.raises(Interrupted):
            train(path)
    draw(root, 1)
    result = train(path)
    assert "has dataset fingerprint" in capsys.readouterr().out
    fresh = tmp_path / "fresh"
    assert result == train(write_spec_in(fresh, spec_of(root, 0)))
    assert curve(path.parent) == curve(fresh)
