"""``python -m benchmark data prepare``: every published dataset from small files in the real
shapes."""

from __future__ import annotations

import hashlib
import json

import archives
import pytest
from published_files import EVERY, content, given, landmark_sets, leftovers, serving, write_zip

from benchmark.core.errors import BenchmarkError
from benchmark.datasets import load_dataset


@pytest.mark.parametrize("name", EVERY)
def test_every_published_dataset_is_prepared_and_checked_from_its_files(
    command, files, tmp_path, name
):
    landmark_sets(name, tmp_path)
    root, plain = tmp_path / name, tmp_path / "plain"
    sources = files(name)
    shown = command("prepare", name, *given(sources), "--root", root, "--allow-counts")
    archives.MAKERS[name](plain)
    missing = (
        {"train2018.json"} if name == "inaturalist" else set()
    )  # not needed, so not among the files
    assert content(root) == {
        file: data for file, data in content(plain).items() if file not in missing
    }
    assert leftovers(root) == []
    assert f"prepared: {root / 'prepared.json'}" in shown.replace("\n", "")
    record = json.loads((root / "prepared.json").read_text())
    assert sorted(record["sources"]) == sorted(path.name for path in sources)
    assert (
        record["fingerprint"]
        == load_dataset(name, {"root": str(root), "allow_counts": True}).fingerprint
    )
    assert "0 broken of" in command("check", name, "--root", root, "--images", "--allow-counts")
    again = command("prepare", name, *given(sources), "--root", root, "--allow-counts")
    assert again.count("is in") == len(sources), "nothing is unpacked twice"


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("link", [False, True])
def test_an_unpacked_directory_is_copied_or_linked_from_inside_its_wrapping(
    command, tmp_path, name, link
):
    landmark_sets(name, tmp_path)
    archives.MAKERS[name](tmp_path / "wrapping" / "inner")
    root = tmp_path / name
    arguments = [
        "--source",
        tmp_path / "wrapping",
        *(["--link"] if link else []),
        "--root",
        root,
        "--allow-counts",
    ]
    command("prepare", name, *arguments)
    links = [path for path in root.iterdir() if path.is_symlink()]
    assert bool(links) == link
    assert "0 broken of" in command("check", name, "--root", root, "--images", "--allow-counts")


def test_a_directory_that_is_the_root_already_is_used_where_it_is(command, tmp_path):
    archives.make_cub(tmp_path)
    before = content(tmp_path)
    command("prepare", "cub", "--source", tmp_path, "--root", tmp_path, "--allow-counts")
    (tmp_path / "prepared.json").unlink()
    command("prepare", "cub", "--root", tmp_path, "--allow-counts")
    assert content(tmp_path) == before


def test_an_archive_is_fetched_over_a_breaking_connection_and_from_a_file_address(
    command, files, tmp_path, monkeypatch
):
    (path,) = files("sop")
    with serving(path.read_bytes()) as server:
        monkeypatch.setattr("benchmark.datasets.io.sources.FIRST_WAIT", 0.0)
        server.hang_up = len(server.content) // 2 + 1
        address = f"{server.address}data/{path.name}"
        command("prepare", "sop", "--source", address, "--root", tmp_path / "a", "--allow-counts")
        assert len(server.asked) == 2
    command("prepare", "sop", "--source", path.as_uri(), "--root", tmp_path / "b", "--allow-counts")
    assert content(tmp_path / "a") == content(tmp_path / "b")
    record = json.loads((tmp_path / "a" / "prepared.json").read_text())
    assert record["sources"][path.name]["from"] == address
    assert record["sources"][path.name]["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("flaw", ["cut", "digest"])
def test_a_damaged_download_is_fetched_again_by_the_same_command(command, files, tmp_path, flaw):
    (path,) = files("sop")
    right = path.read_bytes()
    with serving(right[:-300] if flaw == "cut" else b"PK" + right[2:-1] + b"x") as server:
        digest = ["--sha256", hashlib.sha256(right).hexdigest()] if flaw == "digest" else []
        arguments = [
            "--source",
            server.address + path.name,
            *digest,
            "--root",
            tmp_path / "sop",
            "--allow-counts",
        ]
        with pytest.raises(BenchmarkError, match=r"is cut off, damaged|sha256 is"):
            command("prepare", "sop", *arguments)
        server.content = right
        assert "downloads is no longer needed" in command("prepare", "sop", *arguments).replace(
            "\n", ""
        )


def test_counts_that_are_not_the_published_ones_are_shown_and_refused(command, files, tmp_path):
    root = tmp_path / "cub"
    with pytest.raises(BenchmarkError, match=r"train images: 6 instead of 5,864 .*--allow-counts"):
        command("prepare", "cub", *given(files("cub")), "--root", root)
    assert "counts" not in json.loads((root / "prepared.json").read_text())
    shown = command("check", "cub", "--root", root, status=1)
    rows = [line.split() for line in shown.splitlines()]
    assert ["train", "images", "6", "5,864", "-5,858"] in rows
    assert ["test", "classes", "2", "100", "-98"] in rows
    command("check", "cub", "--root", root, "--allow-counts")


def test_the_published_digest_is_asked_for_unless_another_is_given(command, files, tmp_path):
    (path,) = files("cub")
    arguments = ["prepare", "cub", "--source", path, "--root", tmp_path / "cub", "--allow-counts"]
    with pytest.raises(BenchmarkError, match="expected 97eceeb196236b17998738112f37df78"):
        command(*arguments)
    with pytest.raises(BenchmarkError, match=r"sha256 is .* expected 0000"):
        command(*arguments, "--sha256", "0" * 64)
    assert content(tmp_path / "cub") == {}
    command(*arguments, "--sha256", hashlib.sha256(path.read_bytes()).hexdigest())


@pytest.mark.parametrize("name", EVERY)
def test_a_cut_archive_leaves_nothing_behind(command, files, tmp_path, name):
    landmark_sets(name, tmp_path)
    path, *_ = files(name)
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    root = tmp_path / name
    with pytest.raises(BenchmarkError, match="is cut off, damaged"):
        command("prepare", name, *given([path]), "--root", root, "--allow-counts")
    assert content(root) == {}
    assert leftovers(root) == []
    with pytest.raises(BenchmarkError, match="not the dataset's root"):
        command("check", name, "--root", root, "--allow-counts")


@pytest.mark.parametrize(
    ("name", "other"), [("cub", "sop"), ("inshop", "cub"), ("rparis6k", "vehicleid")]
)
def test_the_archive_of_another_dataset_is_named_and_not_kept(
    command, files, tmp_path, name, other
):
    path, *_ = files(other)
    with pytest.raises(BenchmarkError, match=f"{path.name} is not of dataset '{name}'; expected: "):
        command("prepare", name, *given([path]), "--root", tmp_path / name)
    assert content(tmp_path / name) == {}


@pytest.mark.parametrize("folder", ["", "Inat_dataset_splits/", "some/where/"])
def test_lists_that_come_in_one_archive_are_put_where_they_belong(command, files, tmp_path, folder):
    images, *lists = files("inaturalist")
    splits = write_zip(tmp_path / "splits.zip", [(path, folder + path.name) for path in lists])
    root = tmp_path / "inaturalist"
    for _ in range(2):  # the second time everything is there
        command(
            "prepare", "inaturalist", *given([images, splits]), "--root", root, "--allow-counts"
        )
    for path in lists:
        assert (root / "Inat_dataset_splits" / path.name).read_bytes() == path.read_bytes()
    assert leftovers(root) == []


def test_a_record_of_a_dataset_tells_its_sources(command, tmp_path):
    archives.make_cub(tmp_path)
    sources = {"a.tgz": {"from": "b", "sha256": "00ff"}, "folder": {"from": "c"}}
    (tmp_path / "prepared.json").write_text(json.dumps({"schema": 1, "sources": sources}))
    shown = command("check", "cub", "--root", tmp_path, "--allow-counts")
    assert "prepared from a.tgz  sha256 00ff\nprepared from folder\n" in shown
