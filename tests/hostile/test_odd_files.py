"""Pipes, and files of gigabytes without content, in the place of what readers expect."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from archives import halved_cars196, make_cub, make_inshop
from brought_archives import make_vggface2
from paper_folders import load_paper, write_paper

from benchmark.core.errors import BenchmarkError, DataError
from benchmark.core.paths import MAX_BYTES
from benchmark.core.results import Result
from benchmark.datasets import load_dataset
from benchmark.datasets.prepare.pack import pack
from benchmark.datasets.prepare.prepare import RECORD, recorded_sources
from benchmark.datasets.prepare.staging import SOURCES, read_sources
from benchmark.papers.frozen import load_frozen
from benchmark.study.documents import read_document
from hostile.limits import limited


def loaded(name: str) -> Callable[[Path], object]:
    return lambda root: load_dataset(name, {"root": str(root), "allow_counts": True})


# What makes the folder, the file in it, and what reads it.
READERS: dict[str, tuple[Callable[[Path], object], str, Callable[[Path], object]]] = {
    "a list": (make_cub, "images.txt", loaded("cub")),
    "the list of In-Shop": (make_inshop, "list_eval_partition.txt", loaded("inshop")),
    "a table": (make_vggface2, "bb_landmark/loose_bb_test.csv", loaded("vggface2")),
    "a matrix": (halved_cars196, "devkit/cars_meta.mat", loaded("cars196")),
    "a record": (os.mkdir, "result.json", lambda root: Result.read(root / "result.json")),
    "a study": (os.mkdir, "x.yaml", lambda root: read_document(root / "x.yaml")),
    "numbers of a paper": (
        lambda root: write_paper(root),
        "toy2030/results.csv",
        lambda root: load_paper(root / "toy2030"),
    ),
    "frozen runs": (os.mkdir, "a.csv", lambda root: load_frozen(root / "a.csv")),
    "a source": (
        lambda root: (root / SOURCES).mkdir(parents=True),
        f"{SOURCES}/a.json",
        read_sources,
    ),
    "the record of a dataset": (os.mkdir, RECORD, recorded_sources),
}


@pytest.fixture
def place(request, tmp_path) -> tuple[Path, Callable[[Path], object]]:
    """Return the file of a reader, which is not there, and what reads it."""
    make, file, read = READERS[request.param]
    make(tmp_path / "root")
    (tmp_path / "root" / file).unlink(missing_ok=True)
    return tmp_path / "root" / file, lambda: read(tmp_path / "root")


@pytest.mark.parametrize("place", READERS, indirect=True)
def test_a_file_of_gigabytes_is_refused_before_it_is_read(place):
    path, read = place
    with open(path, "wb") as stream:
        stream.truncate(8 << 30)  # takes no room
    with pytest.raises(BenchmarkError, match=r"more than [\d,]+ bytes"), limited():
        read()
    assert MAX_BYTES < 1 << 30


@pytest.mark.parametrize("place", READERS, indirect=True)
def test_a_pipe_is_not_waited_for(place):
    path, read = place
    os.mkfifo(path)
    with pytest.raises(BenchmarkError), limited():
        read()


def test_a_pipe_in_the_place_of_a_folder_to_be_made_anew_is_not_waited_for(tmp_path):
    make_cub(tmp_path)
    os.mkfifo(tmp_path / ".packing-8")
    with pytest.raises(DataError, match="is no folder"), limited():
        pack(tmp_path, 8, ["images/a.jpg"], 1)


@pytest.mark.parametrize("root", ["a\0b", "loop"])
def test_a_root_that_is_none_is_refused(tmp_path, root):
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(DataError, match="no such directory"):
        load_dataset("cub", {"root": str(tmp_path / root)})
