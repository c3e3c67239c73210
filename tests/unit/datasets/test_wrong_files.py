"""What is wrong with a published dataset's root and files is said in one message, all at once."""

from __future__ import annotations

import contextlib
import random
import re
import shutil
from pathlib import Path

import archives
import numpy as np
import pytest
from archives import loading_message as message
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


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


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


@pytest.mark.parametrize("name", EVERY)
def test_a_wrong_root_says_what_is_there_and_what_to_do(make, name, tmp_path):
    root = make(name)
    for wrong in (root.parent, next(path for path in root.iterdir() if path.is_dir())):
        text = message(name, wrong)
        assert f"this is not the dataset's root, but {root} is; give it as root" in text
        assert "1 problem" in text
    assert "no such directory" in message(name, tmp_path / "nothing")
    (tmp_path / "empty" / "inner").mkdir(parents=True)
    text = message(name, tmp_path / "empty" / "inner")
    assert "not the dataset's root" in text
    assert f"python -m benchmark data prepare {name} --source" in text
    archive = DATASETS[name].target.archives[-1]
    proof = root / archive.provides[-1]
    shutil.rmtree(proof) if proof.is_dir() else proof.unlink()
    text = message(name, root)
    assert name == "landmarks_clean" or "only partly unpacked" in text
    assert f"\n      {archive.provides[-1]} (of {archive.file})" in text


@pytest.mark.parametrize("name", EVERY)
def test_missing_images_are_counted_and_named(make, name):
    root = make(name)
    images = [
        path
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.suffix not in (".txt", ".pkl", ".mat", ".json", ".csv")
    ]
    for path in images[:2]:
        path.unlink()
    text = message(name, root)
    assert "images missing (of " in text and "): 2; unpack the archive again" in text
    assert all(path.relative_to(root).as_posix() in text for path in images[:2])


def test_more_than_twenty_missing_images_are_counted_not_listed(make):
    root = make("vehicleid")
    shutil.rmtree(root / "image")
    (root / "image").mkdir()
    text = message("vehicleid", root)
    assert "images missing (of 39): 39; unpack" in text
    assert text.count(".jpg") == 20
    assert "and 19 more" in text


@pytest.mark.parametrize(
    ("name", "file", "old", "new", "words"),
    [
        ("cub", "images.txt", "1 099.Ovenbird/", "099.Ovenbird/", "line 1: '099.Ovenbird/"),
        ("cub", "image_class_labels.txt", "3 99", "3 x", "line 3: '3 x'"),
        ("cub", "image_class_labels.txt", "3 99", "3 " + "9" * 30, "must be a whole number"),
        ("cub", "image_class_labels.txt", "\n12 200", "\n12 101", "folder of another class: 1;"),
        ("cub", "classes.txt", "99 ", "100 ", "numbers given twice in classes.txt: 1"),
        ("sop", "Ebay_train.txt", "image_id", "id", "expected the header 'image_id class_id super"),
        ("sop", "Ebay_test.txt", "9 11319 1 ", "9 11319 ", "line 2: '9 11319 bicycle_final/"),
        ("sop", "Ebay_test.txt", " bicycle_", " ../bicycle_", "malformed lines in Ebay_test.txt"),
        ("sop", "Ebay_test.txt", " bicycle_", " /bicycle_", "with paths below the root"),
        ("sop", "Ebay_test.txt", "11319", "4", "classes in both splits: 1; * 4"),
        (
            "inaturalist",
            f"{SPLITS}_train_set1.txt",
            "train_val2018/Aves/100/",
            "",
            "each must read",
        ),
        ("inaturalist", f"{SPLITS}_test_set1.txt", "Aves/104", "Aves/100", "both splits: 1; * 100"),
        ("inshop", INSHOP, "20", "21", "line 1 is '21', but 20 rows can be read"),
        ("inshop", INSHOP, " query", " probe", "<one of train, query, gallery>"),
        ("inshop", INSHOP, "img/MEN/Denim/id_00000001/01", "img/01", "each must read img/<group>"),
        ("inshop", INSHOP, " id_00000005 q", " id_00000001 q", "both splits: 1; * id_00000001"),
        ("vehicleid", "attribute/model_attr.txt", "1002", "1000", "vehicles given twice"),
        ("vehicleid", TRAINED, "0000001 1000", "0000001", "line 1: '0000001'"),
        ("vehicleid", TRAINED, "0000001", "0000013", "listed twice: 1; * image/0000013.jpg"),
        ("vehicleid", "train_test_split/test_list_1600.txt", " 3001", " 1003", "splits: 1; * 1003"),
        ("landmarks_clean", ANNOTATIONS, "full/0/0.jpg 0", "a b c", "line 1: 'a b c'"),
        ("revisitop1m", "revisitop1m.txt", "000/", "a b c", "line 1: 'a b c"),
        ("vggface2", FACES, ",", ";", f"cannot read {FACES}"),
        ("vggface2", FACES, "20,16", "20,x", f"malformed lines in {FACES}: 1; * line 2"),
        ("vggface2", FACES, "20,16", "20,", "malformed lines"),
        ("vggface2", FACES, "20,16", "20,1.7e308", "malformed lines"),
        ("vggface2", FACES, "20,16", "20,-inf", "malformed lines"),
        ("vggface2", FACES, "n000001/0001_01", "../n000001", "that leave the root: 1"),
        ("ijbc", "protocols/ijbc_metadata.csv", "img/1.png", "../img/1.png", "leave the root"),
    ],
)
def test_malformed_lines_are_shown_with_what_they_should_be(make, name, file, old, new, words):
    root = make(name)
    edit(root / file, old, new)
    assert re.search(re.escape(words).replace(r"\ \*\ ", ".*\n      "), message(name, root))


def test_malformed_lines_of_all_lists_are_reported_together(make):
    root = make("sop")
    for split in ("train", "test"):
        path = root / f"Ebay_{split}.txt"
        path.write_text(path.read_text() + "broken line\n" * 30)
    text = message("sop", root)
    assert "malformed lines in Ebay_train.txt: 30;" in text
    assert "malformed lines in Ebay_test.txt: 30;" in text
    assert text.count("'broken line'") == 40


def test_image_without_class_and_class_without_image_are_named(make):
    root = make("cub")
    edit(root / "image_class_labels.txt", "\n5 100\n", "\n77 100\n")
    edit(root / "classes.txt", "200 200.Common_Yellowthroat\n", "")
    text = message("cub", root)
    labels = "image_class_labels.txt"
    assert f"images of images.txt without a class: 1; give each one in {labels}\n      5" in text
    assert f"images of {labels} without a path: 1; give each one in images.txt\n      77" in text
    assert f"classes of {labels} without a name: 1; give each one in classes.txt\n      200" in text


def test_a_role_without_images_is_named(make):
    root = make("inshop")
    path = root / "list_eval_partition.txt"
    path.write_text(path.read_text().replace(" query", " gallery"))
    text = message("inshop", root)
    assert "roles without images (of 3): 1; the lists must give some for each\n      query" in text


def test_a_class_in_two_categories_is_named(make):
    root = make("sop")
    path = root / "Ebay_train.txt"
    edit(path, "2 1 1 bicycle_final", "2 1 1 chair_final")
    archives.write_jpeg(root / path.read_text().splitlines()[2].split()[3], 1)
    assert "classes in several categories: 1; each must have one\n      1" in message("sop", root)


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
def test_an_image_listed_twice_is_named(make, name, file):
    root = make(name)
    text = (root / file).read_text()
    (root / file).write_text(text + text.splitlines()[1] + "\n")
    assert "twice" in message(name, root)


@pytest.mark.parametrize("spelling", ["bicycle_final//{}", "./bicycle_final/{}"])
def test_an_image_listed_under_two_spellings_is_named(make, spelling):
    root = make("sop")
    path = root / "Ebay_test.txt"
    lines = path.read_text().splitlines()
    number, label, category, image = lines[1].split()
    other = spelling.format(image.partition("/")[2])
    assert image.startswith("bicycle_final/")
    path.write_text("\n".join([*lines, f"{number}9 {label} {category} {other}"]) + "\n")
    assert f"images listed twice: 1; each must be listed once\n      {image}" in message(
        "sop", root
    )


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", " lists nothing"), (b"\xff\xfe\x00\x81", ": 'utf-8' codec can't decode")],
    ids=["empty", "no text"],
)
def test_a_list_that_is_empty_or_no_text_is_named(make, content, words):
    root = make("vehicleid")
    (root / "train_test_split" / "test_list_800.txt").write_bytes(content)
    assert f"train_test_split/test_list_800.txt{words}" in message("vehicleid", root)


LISTS = [
    (name, path)
    for name in EVERY
    for path in sorted({p for a in DATASETS[name].target.archives for p in a.provides})
    if not path.endswith("/")
]


@pytest.mark.parametrize(("name", "file"), LISTS)
def test_empty_random_and_cut_lists_are_errors_of_the_dataset(make, name, file):
    root, rng = make(name), random.Random(0)
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


def test_clusters_of_images_without_names_are_refused(make):
    root = make("sfm120k")
    savemat(
        root / "retrieval-SfM-120k-imagenames-clusterids.mat",
        {"cids": np.arange(9.0), "cluster": np.ones((1, 9))},
    )
    assert "its names are not text" in message("sfm120k", root)


@pytest.mark.parametrize("content", [b"no matrix", b""])
def test_a_damaged_cluster_file_is_named(make, content):
    root = make("sfm120k")
    (root / "retrieval-SfM-120k-imagenames-clusterids.mat").write_bytes(content)
    assert "cannot read retrieval-SfM-120k-imagenames-clusterids.mat" in message("sfm120k", root)
