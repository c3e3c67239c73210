"""Datasets whose files hold other counts than the papers print: both are known, each as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest
from typer.testing import CliRunner

from benchmark.__main__ import app
from benchmark.core.errors import DataError
from benchmark.datasets import DATASETS, load_dataset
from benchmark.datasets.base import Archive
from benchmark.datasets.index import IndexedLoader, index_rows
from benchmark.datasets.io.lists import read_rows
from benchmark.datasets.published import VehicleId

# Hundredths of the counts of VehicleID: (images, classes).
DISTRIBUTED = {
    "train": (1_133, 131),
    "small": (64, 8),
    "medium": (133, 16),
    "large": (197, 24),
}
PRINTED = {
    "train": (1_101, 131),
    "small": (73, 8),
    "medium": (129, 16),
    "large": (200, 24),
}
FIRST_TEST_IMAGE = 200_000  # the test lists share their images: each protocol is one of its own


def write_lists(root: Path, sizes: dict[str, tuple[int, int]]) -> None:
    """Write lists of these sizes for images that are there, with 250 models."""
    for part, file in VehicleId.lists.items():
        images, vehicles = sizes[part]
        first = 0 if part == "train" else FIRST_TEST_IMAGE
        rows = [f"{first + row:07d} {first + row % vehicles}" for row in range(images)]
        (root / file).write_text("\n".join(rows) + "\n")


def known(sizes: dict[str, tuple[int, int]]) -> dict[str, dict[str, int]]:
    return {part: {"images": images, "classes": n} for part, (images, n) in sizes.items()}


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setattr(VehicleId, "distributed", known(DISTRIBUTED))
    monkeypatch.setattr(VehicleId, "expected", known(PRINTED))
    for folder in ("image", "train_test_split", "attribute"):
        (tmp_path / folder).mkdir()
    for image in (*range(1_133), *range(FIRST_TEST_IMAGE, FIRST_TEST_IMAGE + 200)):
        (tmp_path / "image" / f"{image:07d}.jpg").touch()
    vehicles = [*range(200), *range(FIRST_TEST_IMAGE, FIRST_TEST_IMAGE + 200)]
    models = [f"{vehicle} {vehicle % 250}" for vehicle in vehicles]
    (tmp_path / "attribute" / "model_attr.txt").write_text("\n".join(models) + "\n")
    return tmp_path


@pytest.mark.parametrize("sizes", [DISTRIBUTED, PRINTED], ids=["distributed", "printed"])
def test_the_lists_as_distributed_and_as_printed_are_both_accepted(root, sizes):
    write_lists(root, sizes)
    counts = load_dataset("vehicleid", {"root": str(root)}).counts
    for part, expected in known(sizes).items():
        assert counts[part].items() >= expected.items()


@pytest.mark.parametrize("part", DISTRIBUTED)
def test_a_mixture_of_both_is_refused_with_what_differs_and_the_other_set(root, part):
    write_lists(root, {**DISTRIBUTED, part: PRINTED[part]})
    with pytest.raises(DataError) as caught:
        load_dataset("vehicleid", {"root": str(root)})
    (problem,) = caught.value.problems
    assert problem.code == "other_count"
    for other in PRINTED:
        assert (f"{other} images: " in problem.message) == (other != part)


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        (DISTRIBUTED, "of the files as distributed; the papers print train 1,101 images"),
        (PRINTED, "that the papers print; the files as distributed have train 1,133 images"),
    ],
)
def test_data_check_says_which_counts_are_there_and_names_the_others(root, sizes, words):
    write_lists(root, sizes)
    result = CliRunner().invoke(app, ["data", "check", "vehicleid", "--root", str(root)])
    assert result.exit_code == 0, result.output
    assert words in " ".join(result.output.split())


def test_data_check_of_a_mixture_ends_with_an_error_that_has_both_sets(root):
    write_lists(root, {**DISTRIBUTED, "small": PRINTED["small"]})
    result = CliRunner().invoke(app, ["data", "check", "vehicleid", "--root", str(root)])
    assert result.exit_code == 1
    assert "its counts are those" not in result.output
    said = " ".join(result.output.split())
    assert "not the published counts: train images: " in said
    assert "known as well, all together: train 1,133 images" in said


class Things(IndexedLoader):
    """Made-up images with published names of categories."""

    name = "things"
    category_names = frozenset({"chair", "lamp"})
    lists: ClassVar = {"train": "train.txt", "test": "test.txt"}
    archives = (Archive("things.zip", tuple(lists.values())),)

    def read_list(self, findings, file, role, protocol):
        rows = read_rows(findings, file, ["path", "class", "category"])
        return index_rows(rows["path"], rows["class"], rows["category"], role, protocol)


@pytest.mark.parametrize(("category", "said"), [("lamp", ""), ("sofa", "sofa is not one of them")])
def test_names_of_categories_are_compared_with_the_published_ones(tmp_path, category, said):
    for part, first in (("train", 0), ("test", 4)):
        rows = []
        for number in range(first, first + 4):
            (tmp_path / f"{number}.jpg").touch()
            rows.append(f"{number}.jpg {number // 2} {category if number % 4 > 1 else 'chair'}")
        (tmp_path / f"{part}.txt").write_text("\n".join(rows) + "\n")
    loader = Things(Things.Config(root=str(tmp_path)))
    if not said:
        assert loader.load().counts["train"]["categories"] == 2
        return
    with pytest.raises(DataError) as caught:
        loader.load()
    (problem,) = caught.value.problems
    assert problem.code == "other_name"
    assert said in problem.message
    assert "lamp is missing" in problem.message


def test_the_published_names_are_as_many_as_the_published_categories():
    sizes = {}
    for entry in DATASETS:
        if names := entry.target.category_names:
            counts = [part.get("categories") for part in entry.target.expected.values()]
            assert len(names) in counts
            sizes[entry.name] = len(names)
    assert sizes == {"sop": 12, "inshop": 23}


def test_faces_may_have_either_count_of_ijbc_beside_their_own():
    loader = DATASETS["vggface2"].target
    loader = loader(loader.Config(root="faces"))
    of_faces = {"train": {"classes": 8631}, "test": {"images": 169_396, "classes": 500}}
    for images, words in (
        (148_824, "that the papers print;"),
        (148_876, "the files as distributed;"),
    ):
        found = {**of_faces, "ijbc": {"images": images, "classes": 3531}}
        assert loader.expected_counts(found) == found
        assert words in loader.which_counts(found)
    other = {**of_faces, "ijbc": {"images": 148_825, "classes": 3531}}
    assert loader.which_counts(other) == ""


def test_two_known_sets_of_counts_are_of_the_same_parts_and_differ():
    loaders = {entry.name: entry.target for entry in DATASETS if entry.target.distributed}
    assert set(loaders) == {"vehicleid", "ijbc"}
    for loader in loaders.values():
        assert loader.distributed != loader.expected
        assert loader.distributed.keys() == loader.expected.keys()
        for part, kinds in loader.expected.items():
            assert loader.distributed[part].keys() == kinds.keys()
