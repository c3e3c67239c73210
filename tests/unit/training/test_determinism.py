"""A run on images that were replaced meanwhile does not continue on them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
from PIL import Image
from tiny_runs import curve, stopped_after, tiny_spec, write_spec_in

from benchmark.core.records import DatasetChoice, RunSpec
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


def spec_of(root: Path) -> RunSpec:
    spec = tiny_spec(
        "smooth_ap",
        input={"augmentation": "crop_flip", "image_size": 32},
        training={"epochs": 2, "checkpoint_seconds": 1e9},
    )
    dataset = DatasetChoice("folder", "folder", {"root": str(root)})
    return dataclasses.replace(spec, dataset=dataset, batch_size=16)


def test_a_run_whose_images_were_replaced_meanwhile_starts_anew(tmp_path, monkeypatch, capsys):
    root = draw(tmp_path / "images", 0)
    path = stopped_after(3, tmp_path / "stopped", spec_of(root), monkeypatch)
    draw(root, 1)
    result = train(path)
    assert "has dataset fingerprint" in capsys.readouterr().out
    fresh = tmp_path / "fresh"
    assert result == train(write_spec_in(fresh, spec_of(root)))
    assert curve(path.parent) == curve(fresh)
