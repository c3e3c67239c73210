"""The folder dataset: layouts, splits, odd pictures, and one message for everything that is wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from benchmark.datasets import load_dataset
from benchmark.datasets.files import broken_images, open_image
from benchmark.errors import ConfigError, DataError


def write_image(path: Path, value: int = 100, mode: str = "RGB", size: tuple[int, int] = (20, 16)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    colour = value if mode in ("L", "P") else (value, 255 - value, 7) + ((128,) if mode == "RGBA" else ())
    Image.new(mode, size, colour).save(path)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for label in range(6):
        for number in range(3):
            write_image(tmp_path / f"class {label}" / f"{number}.png", 40 * label)
    return tmp_path


def test_classes_are_split_without_overlap_and_always_the_same_way(root):
    first, second = (load_dataset("folder", {"root": str(root)}) for _ in range(2))
    assert first.counts["train"] == {"images": 9, "classes": 3}
    names = [{name.split("/")[0] for name in part.names} for part in (first.train, first.protocols["test"].query)]
    assert not names[0] & names[1]
    assert first.fingerprint == second.fingerprint
    assert load_dataset("folder", {"root": str(root), "split_seed": 5}).train.names != first.train.names


def test_category_level_is_read(tmp_path):
    for category in ("birds", "cars"):
        for label in range(3):
            for number in range(2):
                write_image(tmp_path / category / f"{label}" / f"{number}.jpg")
    dataset = load_dataset("folder", {"root": str(tmp_path), "categories": True})
    assert dataset.train.categories is not None
    assert dataset.counts["train"]["images"] + dataset.counts["test"]["images"] == 12


def test_csv_decides_the_split(root, tmp_path):
    rows = [
        f"class {label}/{number}.png,{label},{'train' if label < 2 else 'test'}"
        for label in range(6)
        for number in (0, 1)
    ]
    table = tmp_path / "split.csv"
    table.write_text("path,label,split\n" + "\n".join(rows) + "\n")
    dataset = load_dataset("folder", {"root": str(root), "split_csv": str(table)})
    assert dataset.counts["train"] == {"images": 4, "classes": 2}


def test_all_problems_of_a_csv_are_named_at_once(root, tmp_path):
    table = tmp_path / "split.csv"
    table.write_text(
        "path,label,split\nclass 0/0.png,a,train\nclass 0/1.png,a,test\nclass 1/0.png,b,train\nclass 1/0.png,b,train\n"
        "class 2/0.png,c,test\n"
    )
    with pytest.raises(DataError) as caught:
        load_dataset("folder", {"root": str(root), "split_csv": str(table)})
    message = str(caught.value)
    assert "classes in both splits: a" in message
    assert "listed twice: class 1/0.png" in message
    assert "classes with one image: c" in message


def test_missing_and_empty_files_are_listed_by_path(root, tmp_path):
    (root / "class 3" / "1.png").write_bytes(b"")
    with pytest.raises(DataError, match=r"class 3/1.png \(empty\)"):
        load_dataset("folder", {"root": str(root)})


def test_truncated_image_is_found_when_decoding(root):
    path = root / "class 0" / "0.png"
    path.write_bytes(path.read_bytes()[:40])
    dataset = load_dataset("folder", {"root": str(root)})
    parts = [dataset.train, dataset.protocols["test"].query]
    broken = [line for part in parts for line in broken_images(part) if line]
    assert len(broken) == 1
    assert str(path) in broken[0]


@pytest.mark.parametrize("missing", ["nowhere", "empty"])
def test_missing_or_empty_directory_says_what_to_do(tmp_path, missing):
    if missing == "empty":
        (tmp_path / missing).mkdir()
    with pytest.raises(DataError, match="expected class/image|give the parent"):
        load_dataset("folder", {"root": str(tmp_path / missing)})


def test_class_with_one_image_is_an_error(root):
    write_image(root / "lonely" / "0.png")
    with pytest.raises(DataError, match="classes with one image: lonely"):
        load_dataset("folder", {"root": str(root)})


def test_misspelt_parameter_names_the_nearest(root):
    with pytest.raises(ConfigError, match="did you mean 'root'"):
        load_dataset("folder", {"roott": str(root)})


@pytest.mark.parametrize(("mode", "suffix"), [("L", "png"), ("P", "gif"), ("RGBA", "png"), ("RGB", "bmp")])
def test_every_colour_mode_opens_as_grey_or_rgb(tmp_path, mode, suffix):
    path = tmp_path / f"x.{suffix}"
    write_image(path, 90, mode)
    assert open_image(path).mode in ("L", "RGB")


def test_exif_rotation_is_undone(tmp_path):
    picture = Image.fromarray(np.arange(200, dtype=np.uint8).reshape(10, 20))
    exif = picture.getexif()
    exif[0x0112] = 6  # turned by 90 degrees
    picture.save(tmp_path / "x.jpg", exif=exif)
    assert open_image(tmp_path / "x.jpg").size == (10, 20)
