"""The folder dataset: layouts, splits, odd pictures, and one message for everything that is
wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from benchmark.core.errors import ConfigError, DataError
from benchmark.datasets import load_dataset


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
        "path,label,split\nclass 0/0.png,a,train\nclass 0/1.png,a,test\nclass "
        "1/0.png,b,train\nclass 1/0.png,b,train\n"
        "class 2/0.png,c,test\n"
    )
    with pytest.raises(DataError) as caught:
        load_dataset("folder", {"root": str(root), "split_csv": str(table)})
    message = str(caught.value)
    assert (
        "classes in both splits: 1; retrieval is tested on classes unseen in training\n      a\n"
        in message
    )
    assert "images listed twice: 1; each must be listed once\n      class 1/0.png\n" in message
    assert "classes with one image: 1; add images, or set min_images: 2" in message


def test_missing_and_empty_files_are_listed_by_path(root, tmp_path):
    (root / "class 3" / "1.png").write_bytes(b"")
    with pytest.raises(DataError, match=r"class 3/1.png \(empty\)"):
        load_dataset("folder", {"root": str(root)})


@pytest.mark.parametrize("missing", ["nowhere", "empty"])
def test_missing_or_empty_directory_says_what_to_do(tmp_path, missing):
    if missing == "empty":
        (tmp_path / missing).mkdir()
    with pytest.raises(DataError, match=r"expected class/image|give the parent"):
        load_dataset("folder", {"root": str(tmp_path / missing)})


def test_class_with_one_image_is_an_error(root):
    write_image(root / "lonely" / "0.png")
    with pytest.raises(DataError, match=r"classes with one image: 1; .*\n      lonely"):
        load_dataset("folder", {"root": str(root)})


def test_misspelt_parameter_names_the_nearest(root):
    with pytest.raises(ConfigError, match="did you mean 'root'"):
        load_dataset("folder", {"roott": str(root)})


def test_everything_that_would_be_left_out_is_named_in_one_error(root):
    write_image(root / "loose.png")
    write_image(root / "class 0" / "deeper" / "nested.png")
    (root / "class 1" / "phone.heic").write_bytes(b"x")
    (root / "class 9").mkdir()
    with pytest.raises(DataError) as caught:
        load_dataset("folder", {"root": str(root)})
    message = str(caught.value)
    assert (
        "images at another depth: 2; move each to class/image\n      class 0/deeper/nested.png\n"
        in message
    )
    assert "files with other suffixes: 1; expected class/image: convert" in message
    assert "empty folders: 1; add their images, or remove them\n      class 9" in message


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


@pytest.mark.parametrize("levels", [1, 2])
def test_a_link_to_what_contains_the_root_is_not_walked(tmp_path, levels):
    root = tmp_path / "home" / "images"
    write_image(root / "class" / "x.png")
    above = root.resolve().parents[levels - 1]
    (above / "of somebody's own.png").touch()
    (root / "out").symlink_to(above)
    with pytest.raises(DataError, match="out is a link to a folder that contains it") as caught:
        load_dataset("folder", {"root": str(root)})
    assert "somebody's" not in str(caught.value)


def write_split(path: Path, *rows: str, columns: str = "path,label,split") -> Path:
    path.write_text("\n".join([columns, *rows]) + "\n")
    return path


@pytest.mark.parametrize(
    "bad", ["/etc/x.png", "../x.png", "class 0/../../x.png", "C:\\x.png", "..\\x.png"]
)
def test_csv_paths_outside_the_root_are_named(root, tmp_path, bad):
    table = write_split(tmp_path / "split.csv", "class 0/0.png,a,train", f"{bad},a,train")
    with pytest.raises(DataError, match="outside the root: 1") as caught:
        load_dataset("folder", {"root": str(root), "split_csv": str(table)})
    assert bad in str(caught.value)
    assert "class 0/0.png" not in str(caught.value)


def test_one_file_under_two_spellings_is_listed_twice(root, tmp_path):
    table = write_split(tmp_path / "split.csv", "class 0/0.png,a,train", "./class 0/0.png,b,test")
    with pytest.raises(DataError, match=r"listed twice: 1; .*\s+class 0/0\.png"):
        load_dataset("folder", {"root": str(root), "split_csv": str(table)})


@pytest.mark.parametrize("label", ["", " ", "\t"])
def test_an_image_without_a_label_in_a_csv_is_an_error(root, tmp_path, label):
    rows = f"class 0/0.png,{label},train", "class 0/1.png,a,train"
    table = write_split(tmp_path / "split.csv", *rows)
    with pytest.raises(DataError, match=r"without a label in .*: 1; .*\s+class 0/0\.png"):
        load_dataset("folder", {"root": str(root), "split_csv": str(table)})


def test_categories_asked_of_a_csv_without_them_are_an_error(root, tmp_path):
    params = {"root": str(root), "split_csv": str(tmp_path / "split.csv"), "categories": True}
    write_split(tmp_path / "split.csv", "class 0/0.png,a,train")
    with pytest.raises(DataError, match="lacks the columns category"):
        load_dataset("folder", params)
    write_split(
        tmp_path / "split.csv", "class 0/0.png,a,train,", columns="path,label,split,category"
    )
    with pytest.raises(DataError, match=r"without a category in .*: 1; .*\s+class 0/0\.png"):
        load_dataset("folder", params)


def rows_with_categories(*categories: str) -> list[str]:
    """Returns two images of each of four classes; the images of the first have the given
    categories."""
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
    with pytest.raises(
        DataError, match=r"classes in several categories: 1; each must have one\s+0"
    ):
        load_dataset("folder", {"root": str(root), "split_csv": str(table)})


def test_fingerprint_covers_the_categories(root, tmp_path):
    prints = set()
    for category in ("x", "y"):
        rows = rows_with_categories(category, category)
        table = write_split(tmp_path / "s.csv", *rows, columns="path,label,split,category")
        prints.add(load_dataset("folder", {"root": str(root), "split_csv": str(table)}).fingerprint)
    assert len(prints) == 2
