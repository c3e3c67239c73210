"""The folder dataset: layouts, splits, odd pictures, and one message for everything that is
wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from archives import save

from benchmark.core.errors import ConfigError, DataError
from benchmark.datasets import load_dataset


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for label in range(6):
        for number in range(3):
            save(tmp_path / f"class {label}" / f"{number}.png", 40 * label)
    return tmp_path


def load(root: Path, **params):
    return load_dataset("folder", {"root": str(root), **params})


def write_split(root: Path, *rows: str, columns: str = "path,label,split") -> str:
    (root / "split.csv").write_text("\n".join([columns, *rows]) + "\n")
    return str(root / "split.csv")


def test_classes_are_split_without_overlap_and_always_the_same_way(root):
    first, second = load(root), load(root)
    assert first.counts["train"] == {"images": 9, "classes": 3}
    names = [
        {name.split("/")[0] for name in part.names}
        for part in (first.train, first.protocols["test"].query)
    ]
    assert not names[0] & names[1]
    assert first.fingerprint == second.fingerprint
    assert load(root, split_seed=5).train.names != first.train.names


def test_category_level_is_read(tmp_path):
    for category in ("birds", "cars"):
        for label in range(3):
            for number in range(2):
                save(tmp_path / category / f"{label}" / f"{number}.jpg")
    dataset = load(tmp_path, categories=True)
    assert dataset.train.categories is not None
    assert dataset.counts["train"]["images"] + dataset.counts["test"]["images"] == 12


def test_csv_decides_the_split(root):
    rows = [
        f"class {label}/{number}.png,{label},{'train' if label < 2 else 'test'}"
        for label in range(6)
        for number in (0, 1)
    ]
    dataset = load(root, split_csv=write_split(root, *rows))
    assert dataset.counts["train"] == {"images": 4, "classes": 2}


def test_missing_and_empty_files_are_listed_by_path(root):
    (root / "class 3" / "1.png").write_bytes(b"")
    with pytest.raises(DataError, match=r"class 3/1.png \(empty\)"):
        load(root)


@pytest.mark.parametrize("missing", ["nowhere", "empty"])
def test_missing_or_empty_directory_says_what_to_do(tmp_path, missing):
    if missing == "empty":
        (tmp_path / missing).mkdir()
    with pytest.raises(DataError, match=r"expected class/image|give the parent"):
        load(tmp_path / missing)


def test_class_with_one_image_is_an_error(root):
    save(root / "lonely" / "0.png")
    with pytest.raises(DataError, match=r"classes with one image: 1; .*\n      lonely"):
        load(root)


def test_misspelt_parameter_names_the_nearest(root):
    with pytest.raises(ConfigError, match="did you mean 'root'"):
        load_dataset("folder", {"roott": str(root)})


def test_everything_that_would_be_left_out_is_named_in_one_error(root):
    save(root / "loose.png")
    save(root / "class 0" / "deeper" / "nested.png")
    (root / "class 1" / "phone.heic").write_bytes(b"x")
    (root / "class 9").mkdir()
    with pytest.raises(DataError) as caught:
        load(root)
    message = str(caught.value)
    assert (
        "images at another depth: 2; move each to class/image\n      class 0/deeper/nested.png\n"
        in message
    )
    assert "files with other suffixes: 1; expected class/image: convert" in message
    assert "empty folders: 1; add their images, or remove them\n      class 9" in message


def test_hidden_files_and_thumbnails_of_file_managers_are_ignored(root):
    before = load(root).fingerprint
    for name in (".DS_Store", "class 0/.hidden.png", "class 0/Thumbs.db", ".git/objects/x"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"x")
    assert load(root).fingerprint == before


def test_a_category_level_without_its_option_is_suggested(tmp_path):
    for name in ("a/0/x.png", "a/1/x.png"):
        save(tmp_path / name)
    with pytest.raises(DataError, match="set categories: true"):
        load(tmp_path)


def test_linked_class_folders_are_read_and_loops_are_refused(root, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    for number in range(2):
        save(elsewhere / f"{number}.png")
    (root / "linked").symlink_to(elsewhere)
    counts = load(root).counts
    assert counts["train"]["images"] + counts["test"]["images"] == 20
    (root / "class 0" / "loop").symlink_to(root)
    with pytest.raises(DataError, match="loop is a link to a folder that contains it"):
        load(root)


@pytest.mark.parametrize("levels", [1, 2])
def test_a_link_to_what_contains_the_root_is_not_walked(tmp_path, levels):
    root = tmp_path / "home" / "images"
    save(root / "class" / "x.png")
    above = root.resolve().parents[levels - 1]
    (above / "of somebody's own.png").touch()
    (root / "out").symlink_to(above)
    with pytest.raises(DataError, match="out is a link to a folder that contains it") as caught:
        load(root)
    assert "somebody's" not in str(caught.value)


CSV = {
    "a class in both splits": (
        ["0/0.png,a,train", "0/1.png,a,test"],
        "classes in both splits: 1; .*\\s+a",
    ),
    "twice": (["1/0.png,b,train", "1/0.png,b,train"], "listed twice: 1; .*\\s+class 1/0.png"),
    "alone": (["2/0.png,c,test"], "classes with one image: 1; .* min_images: 2"),
    "no label": (["0/0.png,,train", "0/1.png,a,train"], "a label in .*: 1; .*\\s+class 0/0.png"),
    "a blank label": (["0/0.png, ,train"], "without a label in .*: 1;"),
    "out": (["0/../../x.png,a,train"], "outside the root: 1; .*\\s+class 0/../../x.png"),
    "out on Windows": (["0\\\\..\\\\..\\\\x.png,a,train"], "outside the root: 1"),
    "another split": (["0/0.png,a,tests"], "other splits in .*: 1; allowed: train, test"),
}


@pytest.mark.parametrize("case", CSV)
def test_what_is_wrong_in_a_csv_is_named(root, case):
    rows, words = CSV[case]
    table = write_split(root, *(f"class {row}" for row in rows))
    with pytest.raises(DataError, match=words):
        load(root, split_csv=table)


@pytest.mark.parametrize("bad", ["/etc/x.png", "../x.png", "C:\\x.png"])
def test_csv_paths_outside_the_root_are_named(root, bad):
    table = write_split(root, "class 0/0.png,a,train", f"{bad},a,train")
    with pytest.raises(DataError, match="outside the root: 1") as caught:
        load(root, split_csv=table)
    assert bad in str(caught.value) and "class 0/0.png" not in str(caught.value)


def test_one_file_under_two_spellings_is_listed_twice(root):
    table = write_split(root, "class 0/0.png,a,train", "./class 0/0.png,b,test")
    with pytest.raises(DataError, match=r"listed twice: 1; .*\s+class 0/0\.png"):
        load(root, split_csv=table)


def with_categories(root: Path, *categories: str) -> str:
    """Write two images of each of four classes; those of the first are of these categories."""
    rows = []
    for label in range(4):
        for number in range(2):
            category = "z" if label else categories[number]
            split = "train" if label < 2 else "test"
            rows.append(f"class {label}/{number}.png,{label},{split},{category}")
    return write_split(root, *rows, columns="path,label,split,category")


def test_categories_of_a_csv_are_there_and_one_for_each_class(root):
    with pytest.raises(DataError, match="lacks the columns category"):
        load(root, split_csv=write_split(root, "class 0/0.png,a,train"), categories=True)
    with pytest.raises(DataError, match=r"a category in .*: 2; .*\s+class 0/0\.png"):
        load(root, split_csv=with_categories(root, "", ""), categories=True)
    with pytest.raises(DataError, match=r"in several categories: 1; each must have one\s+0"):
        load(root, split_csv=with_categories(root, "x", "y"))
    prints = {load(root, split_csv=with_categories(root, c, c)).fingerprint for c in "xy"}
    assert len(prints) == 2


SPREAD = {
    "splits": ["train/red", "train/blue", "val/red", "val/blue", "test/red", "test/blue"],
    "deeper": ["images/Train_1/x/red", "images/Train_1/x/blue", "images/Test/x/red"],
    "sources": ["garden/red", "garden/blue", "meadow/red", "meadow/blue"],
}


def spread(root: Path, *folders: str) -> Path:
    """Write two images into each class folder, and two further classes beside each first one."""
    for place, folder in enumerate(folders):
        for number in range(2):
            save(root / folder / f"{number}.png", 2 * place + number)
            for other in ("odd", "even"):
                save((root / folders[0]).with_name(other) / f"{number}.png", number)
    return root


@pytest.mark.parametrize("case", SPREAD)
def test_class_folders_of_one_name_are_joined_or_kept_apart_as_the_user_says(tmp_path, case):
    root = spread(tmp_path, *SPREAD[case])
    with pytest.raises(DataError, match=r"set same_names: join .* set same_names: apart") as caught:
        load(root)
    assert SPREAD[case][0] in str(caught.value)
    assert ("look like splits" in str(caught.value)) == (case != "sources")
    assert ("set categories" in str(caught.value)) == (case == "sources")
    for choice, classes in (("join", 4), ("apart", len(SPREAD[case]) + 2)):
        counts = load(root, same_names=choice).counts
        assert counts["train"]["classes"] + counts["test"]["classes"] == classes
        images = counts["train"]["images"] + counts["test"]["images"]
        assert images == 2 * len(SPREAD[case]) + 4


def test_splits_are_no_categories_unless_the_user_says_so(tmp_path):
    root = spread(tmp_path, *SPREAD["splits"])
    with pytest.raises(DataError, match=r"look like splits \(test, train, val\): 2;"):
        load(root, categories=True)
    assert load(root, categories=True, same_names="apart").counts["train"]["categories"] > 1
    with pytest.raises(DataError, match="in several categories: 2"):
        load(root, categories=True, same_names="join")


def test_joined_classes_have_the_split_and_the_images_of_plain_class_folders(tmp_path):
    for label in range(6):
        for number, split in enumerate(("train", "val", "test")):
            save(tmp_path / "split" / split / str(label) / f"{number}.png", 3 * label + number)
            save(tmp_path / "flat" / str(label) / f"{number}.png", 3 * label + number)
    split, flat = load(tmp_path / "split", same_names="join"), load(tmp_path / "flat")
    names = [
        sorted("/".join(Path(name).parts[-2:]) for name in each.train.names)
        for each in (split, flat)
    ]
    assert names[0] == names[1]


def test_one_name_in_two_letter_cases_is_not_joined_unless_both_lie_side_by_side(tmp_path):
    spread(tmp_path / "a", "train/Red", "test/red", "train/blue", "test/blue")
    with pytest.raises(DataError, match=r"letter case: 2; .*\s+test/red\s+train/Red"):
        load(tmp_path / "a", same_names="join")
    spread(tmp_path / "b", "train/A", "train/a", "test/A", "test/a")
    assert load(tmp_path / "b", same_names="join").counts["train"]["classes"] == 2


COMPOSED, DECOMPOSED = "Ros\u00e9", "Rose\u0301"


@pytest.mark.parametrize("by", ["folders", "labels", "categories"])
def test_names_in_two_unicode_forms_are_shown_so_that_they_can_be_told_apart(root, by):
    params = {}
    if by == "folders":
        for name in (COMPOSED, DECOMPOSED):
            save(root / name / "0.png")
            save(root / name / "1.png")
    elif by == "labels":
        rows = [f"class 0/0.png,{COMPOSED},train", f"class 1/0.png,{DECOMPOSED},test"]
        params["split_csv"] = write_split(root, *rows)
    else:
        params["split_csv"] = with_categories(root, COMPOSED, DECOMPOSED)
    with pytest.raises(DataError, match="in Unicode form only: 1; write each") as caught:
        load(root, **params)
    assert r"Ros\xe9" in str(caught.value) and r"Rose\u0301" in str(caught.value)


@pytest.mark.parametrize(
    ("disk", "table"), [(COMPOSED, DECOMPOSED), (DECOMPOSED, COMPOSED)], ids=["NFC", "NFD"]
)
def test_a_file_whose_name_has_another_unicode_form_than_the_csv_is_named(root, disk, table):
    save(root / disk / "0.png")
    rows = [f"{table}/0.png,a,train", f"{table}/9.png,a,train", "class 0/0.png,b,test"]
    with pytest.raises(DataError, match="the same name in another Unicode form") as caught:
        load(root, split_csv=write_split(root, *rows))
    (line,) = [line for line in str(caught.value).splitlines() if "Unicode" in line]
    assert ascii(f"{disk}/0.png") in line and ascii(f"{table}/0.png") in line
