"""Folders as people have them: formats, colours, rotations, names and numbers that are not those of
a benchmark."""

from __future__ import annotations

import cProfile
import os

import numpy as np
import pytest
from archives import save
from PIL import Image

from benchmark.core.recipe import InputConfig
from benchmark.datasets import load_dataset
from benchmark.input.tensors import create_input
from benchmark.study.own import image_facts

ODD_NAMES = [
    "Füße & Hände",
    'it\'s "quoted"',
    "花",
    " blank ",
    "percent%20",
    "a,b;c",
    "~tilde",
    "-dash",
    "1",
    "null",
]


def test_odd_names_are_classes_like_any_other(tmp_path):
    for place, name in enumerate(ODD_NAMES):
        for number in range(2):
            save(tmp_path / name / f"{name} {number}.png", 10 * place + number)
    dataset = load_dataset("folder", {"root": str(tmp_path)})
    names = [*dataset.train.names, *dataset.protocols["test"].query.names]
    assert sorted({name.partition("/")[0] for name in names}) == sorted(ODD_NAMES)
    assert dataset.train.image(0).size == (24, 20)


def test_names_that_are_no_text_are_listed(tmp_path, messages):
    for label in range(4):
        save(tmp_path / f"{label}" / "0.png", label)
    os.rename(os.fsencode(tmp_path / "0"), os.fsencode(tmp_path) + b"/gr\xfcn")
    with messages.raised(("malformed_name", "")):
        load_dataset("folder", {"root": str(tmp_path)})


@pytest.mark.parametrize("channels", [1, 3])
def test_a_class_of_mixed_formats_gives_batches_of_one_shape(tmp_path, channels):
    for label in range(4):
        folder = tmp_path / f"class {label}"
        save(folder / "grey.jpg", label, "L")
        save(folder / "ALPHA.PNG", label, "RGBA")
        save(folder / "photo.webp", label)
        save(folder / "tall.tiff", label, size=(8, 40))
        Image.new("CMYK", (9, 9), (label, 0, 0, 0)).save(folder / "print.jpeg")
        Image.fromarray(np.full((7, 7), 40_000, np.uint16)).save(folder / "deep.png")
    dataset = load_dataset("folder", {"root": str(tmp_path)})
    found = create_input(dataset.train, InputConfig(image_size=16, mean=[0.5], std=[0.5]), channels)
    (batch,) = found.eval_batches(64)
    assert tuple(batch.shape) == (12, channels, 16, 16)


def test_a_rotated_photograph_is_seen_upright(tmp_path):
    turned = Image.Exif()
    turned[0x0112] = 6  # turned by 90 degrees
    for label in range(4):
        for number in range(2):
            save(tmp_path / f"{label}" / f"{number}.jpg", number, size=(60, 30), exif=turned)
    dataset = load_dataset("folder", {"root": str(tmp_path)})
    assert dataset.train.image(0).size == (30, 60)
    assert image_facts({"root": str(tmp_path)}).pixels == 30


def test_a_thousand_classes_are_listed_in_linear_time(tmp_path):
    picture = tmp_path / "picture.png"
    save(picture)
    content = picture.read_bytes()

    def calls(classes):
        root = tmp_path / str(classes)
        for label in range(classes):
            folder = root / f"{label:05}"
            folder.mkdir(parents=True)
            for number in range(2):
                (folder / f"{number}.png").write_bytes(content)
        found = image_facts({"root": str(root)})
        assert (found.counts["train"]["classes"], found.counts["train"]["images"]) == (
            classes // 2,
            classes,
        )
        profile = cProfile.Profile()
        profile.runcall(image_facts, {"root": str(root)})
        return sum(each.callcount for each in profile.getstats())

    few = calls(500)
    many = calls(1000)
    assert many < 2.2 * few


def test_a_file_instead_of_a_folder_is_said_to_be_one(tmp_path, messages):
    save(tmp_path / "a.png")
    with messages.raised(("no_root", "")):
        load_dataset("folder", {"root": str(tmp_path / "a.png")})
