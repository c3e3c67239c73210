"""The folder dataset: layouts, splits, odd pictures, and one message for everything that is wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from benchmark.core.errors import ConfigError, DataError
from benchmark.datasets import load_dataset
from benchmark.datasets.io.files import open_image
from benchmark.datasets.prepare.decode import broken_images


def write_image(
    path: Path, value: int = 100, mode: str = "RGB", size: tuple[int, int] = (20, 16)
) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    colour = (
        value
        if mode in ("L", "P")
        else (value, 255 - value, 7) + ((128,) if mode == "RGBA" else ())
    )
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
    names = [
        {name.split("/")[0] for name in part.names}
        for part in (first.train, first.protocols["test"].query)
    ]
    assert not names[0] & names[1]
    assert first.fingerprint == second.fingerprint
    assert (
        load_dataset("folder", {"root": str(root), "split_seed": 5}).train.names
        != first.train.names
    )


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
    broken, decoded = broken_images(load_dataset("folder", {"root": str(root)}), workers=1)
    assert len(broken) == 1
    assert decoded == 18
    assert str(path) in broken[0]


@pytest.mark.parametrize("missing", ["nowhere", "empty"])
def test_missing_or_empty_directory_says_what_to_do(tmp_path, missing):
    if missing == "empty":
        (tmp_path / missing).mkdir()
    with pytest.raises(DataError, match=r"expected class/image|give the parent"):
        load_dataset("folder", {"root": str(tmp_path / missing)})


def test_class_with_one_image_is_an_error(root):
    write_image(root / "lonely" / "0.png")
    with pytest.raises(DataError, match="classes with one image: lonely"):
        load_dataset("folder", {"root": str(root)})


def test_misspelt_parameter_names_the_nearest(root):
    with pytest.raises(ConfigError, match="did you mean 'root'"):
        load_dataset("folder", {"roott": str(root)})


@pytest.mark.parametrize(
    ("mode", "suffix"), [("L", "png"), ("P", "gif"), ("RGBA", "png"), ("RGB", "bmp")]
)
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


def test_everything_that_would_be_left_out_is_named_in_one_error(root):
    write_image(root / "loose.png")
    write_image(root / "class 0" / "deeper" / "nested.png")
    (root / "class 1" / "phone.heic").write_bytes(b"x")
    (root / "class 9").mkdir()
    with pytest.raises(DataError) as caught:
        load_dataset("folder", {"root": str(root)})
    message = str(caught.value)
    assert "2 images at another depth: class 0/deeper/nested.png, loose.png; move" in message
    assert "1 file with other endings: class 1/phone.heic; convert" in message
    assert "1 empty folder: class 9; add its images, or remove it" in message


def test_a_long_list_names_the_first_ten(root):
    for number in range(13):
        (root / "class 1" / f"{number:02}.heic").write_bytes(b"x")
    with pytest.raises(DataError, match=r"13 files .* class 1/09\.heic and 3 more;") as caught:
        load_dataset("folder", {"root": str(root)})
    assert "10.heic" not in str(caught.value)


def test_hidden_files_and_thumbnails_of_file_managers_are_ignored(root):
    before = load_dataset("folder", {"root": str(root)}).fingerprint
    for name in (".DS_Store", "class 0/.hidden.png", "class 0/Thumbs.db", ".git/objects/x"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"x")
    assert load_dataset("folder", {"root": str(root)}).fingerprint == before


def test_a_category_level_without_its_option_is_suggested(tmp_path):
    for name in ("a/0/x.png", "a/1/x.png"):
        write_image(tmp_path / name)
    with pytest.raises(DataError, match="set categories: true"):
        load_dataset("folder", {"root": str(tmp_path)})


def test_linked_class_folders_are_read_and_loops_are_refused(root, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    for number in range(2):
        write_image(elsewhere / f"{number}.png")
    (root / "linked").symlink_to(elsewhere)
    counts = load_dataset("folder", {"root": str(root)}).counts
    assert counts["train"]["images"] + counts["test"]["images"] == 20
    (root / "class 0" / "loop").symlink_to(root)
    with pytest.raises(DataError, match="loop is a link to a folder that contains it"):
        load_dataset("folder", {"root": str(root)})


def write_split(path: Path, *rows: str, columns: str = "path,label,split") -> Path:
    path.write_text("\n".join([columns, *rows]) + "\n")
    return path


@pytest.mark.parametrize(
    "bad", ["/etc/x.png", "../x.png", "class 0/../../x.png", "C:\\x.png", "..\\x.png"]
)
def test_csv_paths_outside_the_root_are_named(root, tmp_path, bad):
    table = write_split(tmp_path / "split.csv", "class 0/0.png,a,train", f"{bad},a,train")
    with pytest.raises(DataError, match="outside the dataset's root") as caught:
        load_dataset("folder", {"root": str(root), "split_csv": str(table)})
    assert bad in str(caught.value)
    assert "class 0/0.png" not in str(caught.value)


def test_one_file_under_two_spellings_is_listed_twice(root, tmp_path):
    table = write_split(tmp_path / "split.csv", "class 0/0.png,a,train", "./class 0/0.png,b,test")
    with pytest.raises(DataError, match=r"listed twice: class 0/0\.png"):
        load_dataset("folder", {"root": str(root), "split_csv": str(table)})


def test_categories_asked_of_a_csv_without_them_are_an_error(root, tmp_path):
    params = {"root": str(root), "split_csv": str(tmp_path / "split.csv"), "categories": True}
    write_split(tmp_path / "split.csv", "class 0/0.png,a,train")
    with pytest.raises(DataError, match="no column category"):
        load_dataset("folder", params)
    write_split(
        tmp_path / "split.csv", "class 0/0.png,a,train,", columns="path,label,split,category"
    )
    with pytest.raises(DataError, match=r"no category for class 0/0\.png"):
        load_dataset("folder", params)


def rows_with_categories(*categories: str) -> list[str]:
    """Returns two images of each of four classes; the images of the first have the given categories."""
    rows = []
    for label in range(4):
        for number in range(2):
            category = "z" if label else categories[number]
            rows.append(
                f"class {label}/{number}.png,{label},{'train' if label < 2 else 'test'},{category}"
            )
    return rows


def test_a_class_in_two_categories_is_an_error(root, tmp_path):
    table = write_split(
        tmp_path / "s.csv", *rows_with_categories("x", "y"), columns="path,label,split,category"
    )
    with pytest.raises(DataError, match="classes in several categories: 0"):
        load_dataset("folder", {"root": str(root), "split_csv": str(table)})


def test_fingerprint_covers_the_categories(root, tmp_path):
    prints = set()
    for category in ("x", "y"):
        rows = rows_with_categories(category, category)
        table = write_split(tmp_path / "s.csv", *rows, columns="path,label,split,category")
        prints.add(load_dataset("folder", {"root": str(root), "split_csv": str(table)}).fingerprint)
    assert len(prints) == 2


@pytest.mark.parametrize("kind", [np.uint16, np.int32])
def test_sixteen_bit_grey_is_scaled_not_clipped(tmp_path, kind):
    values = np.array([[0, 255, 256, 32768], [257, 514, 65535, 65278]])
    Image.fromarray(values.astype(kind)).save(tmp_path / "x.tif")
    picture = open_image(tmp_path / "x.tif")
    assert picture.mode == "L"
    assert np.array_equal(np.asarray(picture), np.round(values * 255 / 65535))


def test_sixteen_bit_png_is_turned_upright_too(tmp_path):
    picture = Image.fromarray(np.full((4, 6), 65535, dtype=np.uint16))
    exif = picture.getexif()
    exif[0x0112] = 6  # turned by 90 degrees
    picture.save(tmp_path / "x.png", exif=exif)
    assert open_image(tmp_path / "x.png").size == (4, 6)
    assert open_image(tmp_path / "x.png").getextrema() == (255, 255)


@pytest.mark.parametrize(
    "values", [np.full((2, 2), 70000, np.int32), np.full((2, 2), 0.5, np.float32)]
)
def test_grey_beyond_sixteen_bits_is_refused(tmp_path, values):
    Image.fromarray(values).save(tmp_path / "x.tif")
    with pytest.raises(DataError, match="do not fit 16 bits"):
        open_image(tmp_path / "x.tif")
