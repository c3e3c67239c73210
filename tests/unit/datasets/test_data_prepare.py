"""``data prepare``: every published dataset from small files in the real shapes, files that are
wrong, folders that cannot be used, interruptions."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tarfile
from pathlib import Path

import archives
import pytest
from filelock import FileLock
from published_files import (
    EVERY,
    content,
    files_below,
    given,
    landmark_sets,
    leftovers,
    serving,
    write_zip,
)

from benchmark.core.errors import BenchmarkError
from benchmark.datasets import load_dataset
from benchmark.datasets.io.sources import parse_source


@pytest.mark.parametrize("name", EVERY)
def test_every_published_dataset_is_prepared_and_checked_from_its_files(
    command, files, tmp_path, name
):
    landmark_sets(name, tmp_path)
    root = tmp_path / name
    plain = tmp_path / "plain"
    sources = files(name)
    shown = command("prepare", name, *given(sources), "--root", root, "--allow-counts")
    archives.MAKERS[name](plain)
    expected = content(plain)
    expected.pop("train2018.json", None)  # not needed, so not among the files
    assert content(root) == expected
    assert leftovers(root) == []
    assert str(root / "prepared.json") in shown.replace("\n", "")
    record = json.loads((root / "prepared.json").read_text())
    assert sorted(record["sources"]) == sorted(path.name for path in sources)
    loaded = load_dataset(name, {"root": str(root), "allow_counts": True})
    assert record["fingerprint"] == loaded.fingerprint
    shown = command("check", name, "--root", root, "--images", "--allow-counts")
    assert "0 broken of" in shown
    again = command("prepare", name, *given(sources), "--root", root, "--allow-counts")
    assert again.count("is in") == len(sources), "nothing is unpacked twice"


@pytest.mark.parametrize(("name", "link"), [("cub", False), ("sfm120k", True), ("rparis6k", True)])
def test_an_unpacked_directory_is_copied_or_linked_from_inside_its_wrapping(
    command, tmp_path, name, link
):
    landmark_sets(name, tmp_path)
    archives.MAKERS[name](tmp_path / "wrapping" / "inner")
    root = tmp_path / name
    arguments = ["--source", tmp_path / "wrapping", "--root", root, "--allow-counts"]
    command("prepare", name, *arguments, *["--link"] * link)
    links = [path for path in root.iterdir() if path.is_symlink()]
    assert bool(links) == link
    shown = command("check", name, "--root", root, "--images", "--allow-counts")
    assert "0 broken of" in shown


PARTED = {
    "apart": {"img": "In-shop Clothes/Img/img", "list_eval_partition.txt": "In-shop Clothes/Eval"},
    "inside": {"img": "Img/img", "list_eval_partition.txt": "."},
}


@pytest.mark.parametrize("kind", ["directory", "link", "archive"])
@pytest.mark.parametrize("case", PARTED)
def test_a_tree_that_keeps_images_and_lists_in_several_folders_is_installed(
    command, tmp_path, case, kind
):
    archives.make_inshop(tmp_path / "plain")
    source = tmp_path / "source"
    for part, place in PARTED[case].items():
        (source / place).parent.mkdir(parents=True, exist_ok=True)
        if part == "img":
            shutil.copytree(tmp_path / "plain" / part, source / place)
        else:
            (source / place).mkdir(exist_ok=True)
            shutil.copy(tmp_path / "plain" / part, source / place)
    if kind == "archive":
        source = write_zip(tmp_path / "source.zip", files_below(source))
    arguments = ["--source", source, "--root", tmp_path / "root", "--allow-counts"]
    command("prepare", "inshop", *arguments, *["--link"] * (kind == "link"))
    loaded = [
        load_dataset("inshop", {"root": str(tmp_path / root), "allow_counts": True})
        for root in ("plain", "root")
    ]
    assert loaded[0].fingerprint == loaded[1].fingerprint


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
    wrong = {"cut": right[:-300], "digest": b"PK" + right[2:-1] + b"x"}
    with serving(wrong[flaw]) as server:
        arguments = ["--source", server.address + path.name, "--allow-counts"]
        arguments += ["--root", tmp_path / "sop"]
        if flaw == "digest":
            arguments += ["--sha256", hashlib.sha256(right).hexdigest()]
        with pytest.raises(BenchmarkError, match=path.name):
            command("prepare", "sop", *arguments)
        server.content = right
        command("prepare", "sop", *arguments)


def test_counts_that_are_not_the_published_ones_are_shown_and_refused(
    command, files, tmp_path, messages
):
    root = tmp_path / "cub"
    with messages.raised():
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


@pytest.mark.parametrize("name", ["cub", "sop", "rparis6k"])
def test_a_cut_archive_leaves_nothing_behind(command, files, tmp_path, name, messages):
    landmark_sets(name, tmp_path)
    path, *_ = files(name)
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    root = tmp_path / name
    with pytest.raises(BenchmarkError, match=path.name):
        command("prepare", name, *given([path]), "--root", root, "--allow-counts")
    assert content(root) == {}
    assert leftovers(root) == []
    with messages.raised(("missing_part", "")):
        command("check", name, "--root", root, "--allow-counts")


@pytest.mark.parametrize(
    ("name", "other"), [("cub", "sop"), ("inshop", "cub"), ("rparis6k", "vehicleid")]
)
def test_the_archive_of_another_dataset_is_named_and_not_kept(
    command, files, tmp_path, name, other, messages
):
    path, *_ = files(other)
    with messages.raised():
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
    assert re.search("a.tgz .*00ff\n.* folder\n", shown)


def test_files_that_are_no_part_of_a_dataset_are_named(command, tmp_path, messages):
    page = tmp_path / "img.zip"
    page.write_text("<!doctype html><title>Sign in</title>")
    with pytest.raises(BenchmarkError, match=page.name):
        command("prepare", "inshop", "--source", page, "--root", tmp_path / "data")
    (tmp_path / "empty").mkdir()
    for source in ("empty", "nothing"):
        with messages.raised():
            command("prepare", "cub", "--source", tmp_path / source, "--root", tmp_path / "data")
    with messages.raised(("missing_part", "")):
        command("prepare", "cub", "--root", tmp_path / "data")


def test_a_file_of_another_machine_is_not_taken_from_this_one(messages):
    with messages.raised():
        parse_source("file://elsewhere/etc/hostname")
    assert parse_source("file:///etc/hostname") == (Path("/etc/hostname"), "")


def test_the_home_of_nobody_is_a_path_that_does_not_exist():
    assert not parse_source("~nosuchuser/x.tgz")[0].exists()


def test_what_is_in_the_root_is_never_replaced(command, files, tmp_path, messages):
    root = tmp_path / "cub"
    root.mkdir()
    (root / "images.txt").write_text("mine")
    with messages.raised():
        command("prepare", "cub", *given(files("cub")), "--root", root)
    assert (root / "images.txt").read_text() == "mine"


def test_an_interruption_while_moving_is_noticed_and_made_good(
    command, files, tmp_path, monkeypatch, messages
):
    root = tmp_path / "cub"
    arguments = ["prepare", "cub", *given(files("cub")), "--root", root, "--allow-counts"]
    replace = Path.replace
    moved = []

    def stops_after_two(source, target):
        if len(moved) == 2:
            raise KeyboardInterrupt
        if target.parent == root:
            moved.append(target)
        return replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", stops_after_two)
        command(*arguments, status=130)
    with messages.raised(("missing_part", "")):
        command("check", "cub", "--root", root)
    command(*arguments)
    shown = command("check", "cub", "--root", root, "--images", "--allow-counts")
    assert "0 broken of 12" in shown
    assert leftovers(root) == []


def test_what_a_killed_run_left_is_thrown_away(command, files, tmp_path, messages):
    root = tmp_path / "rparis6k"
    archives.make_rparis6k(tmp_path / "made")
    (root / ".unpacking").mkdir(parents=True)
    (tmp_path / "made").rename(root / ".unpacking" / "base")
    with messages.raised(("missing_part", "")):
        command("check", "rparis6k", "--root", root)
    command("prepare", "rparis6k", *given(files("rparis6k")), "--root", root, "--allow-counts")
    assert leftovers(root) == []


def test_two_at_once_are_refused(command, tmp_path, messages):
    archives.make_cub(tmp_path)
    with FileLock(tmp_path / ".prepare.lock"), messages.raised():
        command("prepare", "cub", "--root", tmp_path, "--allow-counts")


def test_without_an_archive_it_says_where_there_is_one_and_makes_no_folder(
    command, tmp_path, messages
):
    for name in ("cub", "ijbc"):
        with messages.raised():
            command("prepare", name, "--root", tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_root_that_cannot_be_written_is_named(command, files, tmp_path):
    (tmp_path / "file").write_text("in the way")
    arguments = ("cub", *given(files("cub")), "--root", tmp_path / "file" / "cub")
    command("prepare", *arguments, status=2)
    assert (tmp_path / "file").read_text() == "in the way"


def test_requests_that_make_no_sense_are_refused_before_anything_is_done(command, tmp_path):
    assert "glyphs" in command("prepare", "glyphs", status=2)
    shown = command("prepare", "roxford5k", "--root", tmp_path / "x", "--pack", 32, status=2)
    assert "--pack" in shown
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("more", [[], ["--source", "a.zip"], ["--pack", 16]])
def test_class_folders_are_not_prepared_and_stay_as_they_are(command, tmp_path, more):
    for label in "abcd":
        for number in (0, 1):
            archives.write_jpeg(tmp_path / label / f"{number}.jpg", number)
    before = content(tmp_path)
    assert "'folder'" in command("prepare", "folder", "--root", tmp_path, *more, status=2)
    assert content(tmp_path) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == list("abcd")
    shown = command("check", "folder", "--root", tmp_path, "--images")
    assert "0 broken of 8" in shown


def test_the_default_root_lies_below_the_data_folder(command, files, tmp_path, monkeypatch):
    monkeypatch.setenv("BENCHMARK_DATA", str(tmp_path / "data"))
    command("prepare", "sop", *given(files("sop")), "--allow-counts")
    shown = command("check", "sop", "--images", "--allow-counts")
    assert "0 broken" in shown
    assert (tmp_path / "data" / "sop" / "prepared.json").is_file()


def test_two_sources_of_one_name_are_refused_at_once(command, tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.tgz").touch()
    sources = given([tmp_path / "one" / "a.tgz", tmp_path / "two" / "a.tgz"])
    command("prepare", "inshop", *sources, "--root", tmp_path / "root", status=2)
    assert not (tmp_path / "root").exists()


def test_two_lists_of_one_name_in_an_archive_are_refused(command, tmp_path, messages):
    (tmp_path / "lists").mkdir()
    for folder in ("a/b/c/d/e", "z/b/c/d/e"):  # too deep to be the root
        place = tmp_path / "lists" / folder
        place.mkdir(parents=True)
        (place / "list_eval_partition.txt").write_text(folder)
    with tarfile.open(tmp_path / "lists.tgz", "w:gz") as archive:
        archive.add(tmp_path / "lists", "lists")
    with messages.raised():
        command("prepare", "inshop", *given([tmp_path / "lists.tgz"]), "--root", tmp_path / "root")
