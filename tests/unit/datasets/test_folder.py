"""The folder dataset: layouts, splits, odd pictures, and one message for everything that is
wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from archives import save

from benchmark.core.errors import ConfigError
from benchmark.datasets import load_dataset


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for label in range(6):
        for number in range(3):
            save(tmp_path / f"class {label}" / f"{number}.png", 40 * label)
    return tmp_path


@pytest.fixture
def refusal(root, refused):
    """Return a function that gives the codes of what is wrong with a folder, or with ``root``."""

    def codes(place: Path = root, **params) -> list[str]:
        problems = refused("folder", place, **params)
        return [code for code, _ in problems]

    return codes


def load(root: Path, **params):
    return load_dataset("folder", {"root": str(root), **params})


def write_split(root: Path, *rows: str, columns: str = "path,label,split") -> str:
    (root / "split.csv").write_text("\n".join([columns, *rows]) + "\n")
    return str(root / "split.csv")


def test_classes_are_split_without_overlap_and_always_the_same_way(root):
    first = load(root)
    second = load(root)
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


def test_missing_and_empty_files_are_listed_by_path(root, refusal):
    (root / "class 3" / "1.png").write_bytes(b"")
    assert refusal() == ["missing_image"]


def test_a_missing_or_empty_directory_says_what_to_do(tmp_path, refusal):
    assert refusal(tmp_path / "nowhere") == ["no_root"]
    (tmp_path / "empty").mkdir()
    assert refusal(tmp_path / "empty") == ["no_images"]


def test_class_with_one_image_is_an_error(root, refusal):
    save(root / "lonely" / "0.png")
    assert refusal() == ["one_image"]


def test_misspelt_parameter_names_the_nearest(root):
    with pytest.raises(ConfigError, match="did you mean 'root'"):
        load_dataset("folder", {"roott": str(root)})


def test_everything_that_would_be_left_out_is_named_in_one_error(root, refusal):
    save(root / "loose.png")
    save(root / "class 0" / "deeper" / "nested.png")
    (root / "class 1" / "phone.heic").write_bytes(b"x")
    (root / "class 9").mkdir()
    assert refusal() == ["other_depth", "other_file", "empty_folder"]


def test_hidden_files_and_thumbnails_of_file_managers_are_ignored(root):
    before = load(root).fingerprint
    for name in (".DS_Store", "class 0/.hidden.png", "class 0/Thumbs.db", ".git/objects/x"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"x")
    assert load(root).fingerprint == before


def test_a_category_level_without_its_option_is_suggested(tmp_path, refusal):
    for name in ("a/0/x.png", "a/1/x.png"):
        save(tmp_path / "categories" / name)
    assert refusal(tmp_path / "categories") == ["other_depth"]


def test_linked_class_folders_are_read_and_loops_are_refused(root, tmp_path_factory, refusal):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    for number in range(2):
        save(elsewhere / f"{number}.png")
    (root / "linked").symlink_to(elsewhere)
    counts = load(root).counts
    assert counts["train"]["images"] + counts["test"]["images"] == 20
    (root / "class 0" / "loop").symlink_to(root)
    assert refusal() == ["link_loop"]


@pytest.mark.parametrize("levels", [1, 2])
def test_a_link_to_what_contains_the_root_is_not_walked(tmp_path, levels, refusal):
    root = tmp_path / "home" / "images"
    save(root / "class" / "x.png")
    above = root.resolve().parents[levels - 1]
    (above / "of somebody's own.png").touch()
    (root / "out").symlink_to(above)
    assert refusal(root) == ["link_loop"]


CSV = {
    "a class in both splits": (["0/0.png,a,train", "0/1.png,a,test"], "both_splits"),
    "twice": (["1/0.png,b,train", "1/0.png,b,train"], "listed_twice"),
    "two spellings": (["0/0.png,a,train", "0/./0.png,b,test"], "listed_twice"),
    "alone": (["2/0.png,c,test"], "one_image"),
    "no label": (["0/0.png,,train", "0/1.png,a,train"], "missing"),
    "a blank label": (["0/0.png, ,train"], "missing"),
    "out": (["0/../../x.png,a,train"], "path_outside"),
    "out on Windows": (["0\\..\\..\\x.png,a,train"], "path_outside"),
    "another split": (["0/0.png,a,tests"], "other_split"),
}


@pytest.mark.parametrize("case", CSV)
def test_what_is_wrong_in_a_csv_is_named(root, case, refusal):
    rows, code = CSV[case]
    table = write_split(root, *(f"class {row}" for row in rows))
    assert code in refusal(split_csv=table)


@pytest.mark.parametrize("bad", ["/etc/x.png", "../x.png", "C:\\x.png"])
def test_csv_paths_outside_the_root_are_named(root, bad, refusal):
    table = write_split(root, "class 0/0.png,a,train", f"{bad},a,train")
    assert refusal(split_csv=table) == ["path_outside"]


def with_categories(root: Path, *categories: str) -> str:
    """Write two images of each of four classes; those of the first are of these categories."""
    rows = []
    for label in range(4):
        for number in range(2):
            category = "z" if label else categories[number]
            split = "train" if label < 2 else "test"
            rows.append(f"class {label}/{number}.png,{label},{split},{category}")
    return write_split(root, *rows, columns="path,label,split,category")


def test_categories_of_a_csv_are_there_and_one_for_each_class(root, refusal):
    no_column = write_split(root, "class 0/0.png,a,train")
    assert refusal(split_csv=no_column, categories=True) == ["missing_column"]
    for categories, code in ((("", ""), "missing"), (("x", "y"), "several_categories")):
        assert code in refusal(split_csv=with_categories(root, *categories), categories=True)
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
def test_class_folders_of_one_name_are_joined_or_kept_apart_as_the_user_says(
    tmp_path, case, refusal
):
    root = spread(tmp_path / "spread", *SPREAD[case])
    assert "same_names" in refusal(root)
    for choice, classes in (("join", 4), ("apart", len(SPREAD[case]) + 2)):
        counts = load(root, same_names=choice).counts
        assert counts["train"]["classes"] + counts["test"]["classes"] == classes
        images = counts["train"]["images"] + counts["test"]["images"]
        assert images == 2 * len(SPREAD[case]) + 4


def test_splits_are_no_categories_unless_the_user_says_so(tmp_path, refusal):
    root = spread(tmp_path / "spread", *SPREAD["splits"])
    assert refusal(root, categories=True) == ["same_names"]
    assert load(root, categories=True, same_names="apart").counts["train"]["categories"] > 1
    assert refusal(root, categories=True, same_names="join") == ["several_categories"]


def test_joined_classes_have_the_split_and_the_images_of_plain_class_folders(tmp_path):
    for label in range(6):
        for number, split in enumerate(("train", "val", "test")):
            save(tmp_path / "split" / split / str(label) / f"{number}.png", 3 * label + number)
            save(tmp_path / "flat" / str(label) / f"{number}.png", 3 * label + number)
    split = load(tmp_path / "split", same_names="join")
    flat = load(tmp_path / "flat")
    names = [
        sorted("/".join(Path(name).parts[-2:]) for name in each.train.names)
        for each in (split, flat)
    ]
    assert names[0] == names[1]


def test_one_name_in_two_letter_cases_is_not_joined_unless_both_lie_side_by_side(tmp_path, refusal):
    spread(tmp_path / "a", "train/Red", "test/red", "train/blue", "test/blue")
    assert "letter_case" in refusal(tmp_path / "a", same_names="join")
    spread(tmp_path / "b", "train/A", "train/a", "test/A", "test/a")
    assert load(tmp_path / "b", same_names="join").counts["train"]["classes"] == 2


COMPOSED = "Ros\u00e9"
DECOMPOSED = "Rose\u0301"


@pytest.mark.parametrize("by", ["folders", "labels", "categories"])
def test_names_in_two_unicode_forms_are_shown_so_that_they_can_be_told_apart(root, by, refusal):
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
    assert "unicode_form" in refusal(**params)


@pytest.mark.parametrize(
    ("disk", "table"), [(COMPOSED, DECOMPOSED), (DECOMPOSED, COMPOSED)], ids=["NFC", "NFD"]
)
def test_a_file_whose_name_has_another_unicode_form_than_the_csv_is_named(
    root, disk, table, refusal
):
    save(root / disk / "0.png")
    rows = [f"{table}/0.png,a,train", f"{table}/9.png,a,train", "class 0/0.png,b,test"]
    assert refusal(split_csv=write_split(root, *rows)) == ["one_image", "missing_image"]
