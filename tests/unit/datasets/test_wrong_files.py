"""What is wrong with a published dataset's root and files is said in one message, all at once."""

from __future__ import annotations

import contextlib
import random
import shutil
from pathlib import Path

import archives
import numpy as np
import pytest
from scipy.io import savemat

from benchmark.core.environment import DATA
from benchmark.core.errors import DataError
from benchmark.datasets import DATASETS, check_dataset_params, load_dataset, with_root

EVERY = sorted(archives.MAKERS | archives.BROUGHT)
SPLITS = "Inat_dataset_splits/Inaturalist"
INSHOP = "list_eval_partition.txt"
TRAINED = "train_test_split/train_list.txt"
ANNOTATIONS = "annotations/annotation_clean_train.txt"
FACES = "bb_landmark/loose_bb_test.csv"


def root_of(name, **params):
    return with_root(name, params).get("root")


def test_the_variable_comes_before_the_folder_data_and_a_given_root_before_both(monkeypatch):
    monkeypatch.delenv(DATA, raising=False)
    assert root_of("sop") == str(Path("data") / "sop")
    monkeypatch.setenv(DATA, "/big/disk")
    assert root_of("sop") == str(Path("/big/disk/sop")) == root_of("sop", root=None)
    assert root_of("sop", root="elsewhere") == "elsewhere"
    assert with_root("folder") == with_root("glyphs_tiny") == {}


def test_a_published_dataset_needs_no_parameter_and_says_where_it_was_looked_for(
    monkeypatch, tmp_path
):
    assert check_dataset_params("cub", {}) == [] != check_dataset_params("cub", {"rot": "x"})
    monkeypatch.setenv(DATA, str(tmp_path))
    with pytest.raises(DataError, match=str(tmp_path / "cub")):
        load_dataset("cub", {})


def first(problems: list[tuple[str, str]]) -> str:
    """Return the code of the first problem: those of sets beside it come later."""
    return problems[0][0]


@pytest.mark.parametrize("name", EVERY)
def test_a_wrong_root_says_what_is_there_and_what_to_do(make, name, tmp_path, refused):
    root = make(name)
    for wrong in (root.parent, min(path for path in root.iterdir() if path.is_dir())):
        assert first(refused(name, wrong)) == "other_root"
    assert first(refused(name, tmp_path / "nothing")) == "no_root"
    (tmp_path / "empty" / "inner").mkdir(parents=True)
    assert first(refused(name, tmp_path / "empty" / "inner")) == "missing_part"
    archive = DATASETS[name].target.archives[-1]
    proof = root / archive.provides[-1]
    shutil.rmtree(proof) if proof.is_dir() else proof.unlink()
    assert first(refused(name, root)) == "missing_part"


@pytest.mark.parametrize("name", EVERY)
def test_missing_images_are_counted_and_named(make, name, refused):
    root = make(name)
    images = [
        path
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.suffix not in (".txt", ".pkl", ".mat", ".json", ".csv")
    ]
    for path in images[:2]:
        path.unlink()
    assert first(refused(name, root)) == "missing_image"


def test_more_than_twenty_missing_images_are_counted_not_listed(make, refused):
    root = make("vehicleid")
    shutil.rmtree(root / "image")
    (root / "image").mkdir()
    assert refused("vehicleid", root) == [("missing_image", "")]


WRONG_LINES = {
    "malformed_line": [
        ("cub", "images.txt", "1 099.Ovenbird/", "099.Ovenbird/"),
        ("cub", "image_class_labels.txt", "3 99", "3 x"),
        ("cub", "image_class_labels.txt", "3 99", "3 " + "9" * 30),
        ("sop", "Ebay_test.txt", "9 11319 1 ", "9 11319 "),
        ("sop", "Ebay_test.txt", " bicycle_", " ../bicycle_"),
        ("sop", "Ebay_test.txt", " bicycle_", " /bicycle_"),
        ("inaturalist", f"{SPLITS}_train_set1.txt", "train_val2018/Aves/100/", ""),
        ("inshop", INSHOP, " query", " probe"),
        ("inshop", INSHOP, "img/MEN/Denim/id_00000001/01", "img/01"),
        ("vehicleid", TRAINED, "0000001 1000", "0000001"),
        ("landmarks_clean", ANNOTATIONS, "full/0/0.jpg 0", "a b c"),
        ("revisitop1m", "revisitop1m.txt", "000/", "a b c"),
        ("vggface2", FACES, "20,16", "20,x"),
        ("vggface2", FACES, "20,16", "20,"),
        ("vggface2", FACES, "20,16", "20,1.7e308"),
        ("vggface2", FACES, "20,16", "20,-inf"),
    ],
    "given_twice": [
        ("cub", "classes.txt", "99 ", "100 "),
        ("vehicleid", "attribute/model_attr.txt", "1002", "1000"),
    ],
    "other_class": [("cub", "image_class_labels.txt", "\n12 200", "\n12 101")],
    "other_header": [("sop", "Ebay_train.txt", "image_id", "id")],
    "other_count": [("inshop", INSHOP, "20", "21")],
    "both_splits": [
        ("sop", "Ebay_test.txt", "11319", "4"),
        ("inaturalist", f"{SPLITS}_test_set1.txt", "Aves/104", "Aves/100"),
        ("inshop", INSHOP, " id_00000005 q", " id_00000001 q"),
        ("vehicleid", "train_test_split/test_list_1600.txt", " 3001", " 1003"),
    ],
    "listed_twice": [("vehicleid", TRAINED, "0000001", "0000013")],
    "unreadable": [("vggface2", FACES, ",", ";")],
    "path_outside": [
        ("vggface2", FACES, "n000001/0001_01", "../n000001"),
        ("ijbc", "protocols/ijbc_metadata.csv", "img/1.png", "../img/1.png"),
    ],
    "several_categories": [("sop", "Ebay_train.txt", "2 1 1 bicycle_final", "2 1 1 chair_final")],
    "empty_role": [("inshop", INSHOP, " query", " gallery")],
}
EDITS = [(code, *edit) for code, edits in WRONG_LINES.items() for edit in edits]


@pytest.mark.parametrize(("code", "name", "file", "old", "new"), EDITS)
def test_malformed_lines_are_shown_with_what_they_should_be(
    make, refused, code, name, file, old, new
):
    root = make(name)
    text = (root / file).read_text()
    assert old in text
    times = -1 if code == "empty_role" else 1
    (root / file).write_text(text.replace(old, new, times))
    found = dict(refused(name, root))
    assert code in found
    assert found[code] in ("", file)


def test_what_is_wrong_with_all_lists_is_reported_together(make, refused):
    root = make("sop")
    for split in ("train", "test"):
        path = root / f"Ebay_{split}.txt"
        path.write_text(path.read_text() + "broken line\n" * 30)
    files = ("Ebay_train.txt", "Ebay_test.txt")
    assert refused("sop", root) == [("malformed_line", file) for file in files]
    root = make("cub")
    labels = root / "image_class_labels.txt"
    labels.write_text(labels.read_text().replace("\n5 100\n", "\n77 100\n"))
    names = (root / "classes.txt").read_text()
    (root / "classes.txt").write_text(names.replace("200 200.Common_Yellowthroat\n", ""))
    assert refused("cub", root) == [("missing", "")] * 3


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("inaturalist", f"{SPLITS}_test_set1.txt"),
        ("landmarks_clean", ANNOTATIONS),
        ("revisitop1m", "revisitop1m.txt"),
        ("vggface2", FACES),
        ("ijbc", "protocols/ijbc_metadata.csv"),
    ],
)
def test_an_image_listed_twice_is_named(make, name, file, refused):
    root = make(name)
    text = (root / file).read_text()
    (root / file).write_text(text + text.splitlines()[1] + "\n")
    assert first(refused(name, root)) in ("listed_twice", "given_twice")


@pytest.mark.parametrize("spelling", ["bicycle_final//{}", "./bicycle_final/{}"])
def test_an_image_listed_under_two_spellings_is_named(make, spelling, refused):
    root = make("sop")
    path = root / "Ebay_test.txt"
    lines = path.read_text().splitlines()
    number, label, category, image = lines[1].split()
    other = spelling.format(image.partition("/")[2])
    assert image.startswith("bicycle_final/")
    path.write_text("\n".join([*lines, f"{number}9 {label} {category} {other}"]) + "\n")
    assert first(refused("sop", root)) == "listed_twice"


@pytest.mark.parametrize(
    ("content", "code"),
    [(b"", "empty_list"), (b"\xff\xfe\x00\x81", "unreadable")],
    ids=["empty", "no text"],
)
def test_a_list_that_is_empty_or_no_text_is_named(make, content, code, refused):
    root = make("vehicleid")
    file = "train_test_split/test_list_800.txt"
    (root / file).write_bytes(content)
    assert (code, file) in refused("vehicleid", root)


LISTS = [
    (name, path)
    for name in EVERY
    for path in sorted({p for a in DATASETS[name].target.archives for p in a.provides})
    if not path.endswith("/")
]


@pytest.mark.parametrize(("name", "file"), LISTS)
def test_empty_random_and_cut_lists_are_errors_of_the_dataset(make, name, file):
    root = make(name)
    rng = random.Random(0)
    right = (root / file).read_bytes()
    cuts = [right[: rng.randrange(len(right))] for _ in range(8)]
    lines = [b"\n".join(rng.choices(right.split(b"\n"), k=2)) for _ in range(4)]
    for content in (b"", b"\n", rng.randbytes(300), *lines, *cuts):
        (root / file).write_bytes(content)
        # a list cut between two lines may be a smaller dataset
        with contextlib.suppress(DataError):
            load_dataset(name, {"root": str(root), "allow_counts": True})


def test_windows_line_ends_blank_lines_and_a_byte_order_mark_are_read(make):
    root = make("inshop")
    path = root / "list_eval_partition.txt"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n") + b"\r\n")
    dataset = load_dataset("inshop", {"root": str(root), "allow_counts": True})
    assert dataset.counts["all"]["images"] == 20


CONTENTS = {
    "no matrix": b"no matrix",
    "empty": b"",
    "no names": {"cids": np.arange(9.0), "cluster": np.ones((1, 9))},
}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_a_damaged_cluster_file_is_named(make, content, refused):
    root = make("sfm120k")
    file = "retrieval-SfM-120k-imagenames-clusterids.mat"
    if isinstance(content, dict):
        savemat(root / file, content)
    else:
        (root / file).write_bytes(content)
    assert refused("sfm120k", root)[0] == ("unreadable", file)
