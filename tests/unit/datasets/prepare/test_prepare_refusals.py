"""``data prepare`` on files that are wrong, in folders that cannot be used, and after
interruptions."""

from __future__ import annotations

import json
import os
import tarfile
import zipfile
from pathlib import Path

import archives
import pytest
from filelock import FileLock
from published_files import content, given, leftovers

from benchmark.core.errors import BenchmarkError
from benchmark.datasets.io.sources import parse_source


def test_files_that_are_no_part_of_a_dataset_are_named(command, tmp_path):
    page = tmp_path / "img.zip"
    page.write_text("<!doctype html><title>Sign in</title>")
    with pytest.raises(BenchmarkError, match=r"img\.zip is not an archive"):
        command("prepare", "inshop", "--source", page, "--root", tmp_path / "root")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BenchmarkError, match="is not of dataset 'cub'; expected: CUB_200_2011"):
        command("prepare", "cub", "--source", tmp_path / "empty", "--root", tmp_path / "root")
    with pytest.raises(BenchmarkError, match=r"no file or directory .*nothing"):
        command("prepare", "cub", "--source", tmp_path / "nothing", "--root", tmp_path / "root")
    with pytest.raises(
        BenchmarkError, match=r"files and folders missing \(of 4, not the dataset's root\): 4"
    ):
        command("prepare", "cub", "--root", tmp_path / "root")


def test_a_link_of_an_archive_cannot_show_what_lies_beside_the_root(command, files, tmp_path):
    (path,) = files("cub")
    with tarfile.open(path) as archive:
        archive.extractall(tmp_path / "cub", filter="data")
    private = tmp_path / "cub" / "private.jpg"
    image = next((tmp_path / "cub").rglob("*_1.jpg"))
    image.rename(private)
    image.symlink_to(os.path.relpath(private, image.parent))
    with tarfile.open(path, "w:gz") as archive:
        archive.add(tmp_path / "cub", "wrapping")
    with pytest.raises(BenchmarkError, match="is a link or a device"):
        command("prepare", "cub", *given([path]), "--root", tmp_path / "root", "--allow-counts")
    assert content(tmp_path / "root") == {}


@pytest.mark.parametrize("target", ["../..", "/etc", "../../private"])
def test_a_link_of_a_directory_is_not_followed_out_of_it(target, command, files, tmp_path):
    (path,) = files("cub")
    with tarfile.open(path) as archive:
        archive.extractall(tmp_path / "cub", filter="data")
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "a.jpg").touch()
    images = next((tmp_path / "cub").rglob("images"))
    (images / "odd").symlink_to(target)
    root = tmp_path / "root"
    with pytest.raises(BenchmarkError, match=r"link .*odd' leads out"):
        command("prepare", "cub", "--source", tmp_path / "cub", "--root", root, "--allow-counts")
    assert content(root) == {}


def test_a_file_of_another_machine_is_not_taken_from_this_one():
    with pytest.raises(BenchmarkError, match="file:///"):
        parse_source("file://elsewhere/etc/hostname")
    assert parse_source("file:///etc/hostname") == (Path("/etc/hostname"), "")


def test_the_home_of_nobody_is_a_path_that_does_not_exist():
    assert not parse_source("~nosuchuser/x.tgz")[0].exists()


def test_files_of_an_archive_named_like_our_own_are_left_out(command, files, tmp_path):
    (path,) = files("sop")
    own = {name: tmp_path / "empty" for name in ("prepared.json", ".hidden/x.json")}
    (tmp_path / "empty").write_text("{")
    with zipfile.ZipFile(path, "a") as archive:
        for name, file in own.items():
            archive.write(file, f"Stanford_Online_Products/{name}")
    root = tmp_path / "sop"
    command("prepare", "sop", *given([path]), "--root", root, "--allow-counts")
    assert list(json.loads((root / "prepared.json").read_text())["sources"]) == [path.name]


def test_what_is_in_the_root_is_never_replaced(command, files, tmp_path):
    root = tmp_path / "cub"
    root.mkdir()
    (root / "images.txt").write_text("mine")
    with pytest.raises(BenchmarkError, match=r"images\.txt is not what the source has there"):
        command("prepare", "cub", *given(files("cub")), "--root", root)
    assert (root / "images.txt").read_text() == "mine"


def test_an_interruption_while_moving_is_noticed_and_made_good(
    command, files, tmp_path, monkeypatch
):
    root = tmp_path / "cub"
    arguments = ["prepare", "cub", *given(files("cub")), "--root", root, "--allow-counts"]
    replace, moved = Path.replace, []

    def stops_after_two(source, target):
        if len(moved) == 2:
            raise KeyboardInterrupt
        if target.parent == root:
            moved.append(target)
        return replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", stops_after_two)
        command(*arguments, status=130)
    with pytest.raises(BenchmarkError, match="only partly unpacked"):
        command("check", "cub", "--root", root)
    command(*arguments)
    assert "0 broken of 12" in command("check", "cub", "--root", root, "--images", "--allow-counts")
    assert leftovers(root) == []


def test_half_a_staging_folder_is_thrown_away(command, files, tmp_path):
    root = tmp_path / "cub"
    (root / ".unpacking" / "images").mkdir(parents=True)
    with pytest.raises(BenchmarkError, match="not the dataset's root"):
        command("check", "cub", "--root", root)
    command("prepare", "cub", *given(files("cub")), "--root", root, "--allow-counts")
    assert leftovers(root) == []


def test_what_a_killed_run_arranged_is_thrown_away(command, files, tmp_path):
    root = tmp_path / "rparis6k"
    archives.make_rparis6k(tmp_path / "made")
    (root / ".unpacking").mkdir(parents=True)
    (tmp_path / "made").rename(root / ".unpacking" / "base")
    command("prepare", "rparis6k", *given(files("rparis6k")), "--root", root, "--allow-counts")
    assert leftovers(root) == []


def test_two_at_once_are_refused(command, tmp_path):
    archives.make_cub(tmp_path)
    with (
        FileLock(tmp_path / ".prepare.lock"),
        pytest.raises(BenchmarkError, match="another 'data prepare' is working"),
    ):
        command("prepare", "cub", "--root", tmp_path, "--allow-counts")


def test_a_root_that_cannot_be_written_is_named(command, files, tmp_path):
    (tmp_path / "file").write_text("in the way")
    arguments = ("cub", *given(files("cub")), "--root", tmp_path / "file" / "cub")
    assert "is not a folder" in command("prepare", *arguments, status=2)


def test_requests_that_make_no_sense_are_refused_before_anything_is_done(command, tmp_path):
    assert "needs no preparing" in command("prepare", "glyphs", status=2)
    shown = command("prepare", "roxford5k", "--root", tmp_path / "x", "--pack", 32, status=2)
    assert "cannot be read from a packed copy" in shown
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("more", [[], ["--source", "a.zip"], ["--pack", 16]])
def test_class_folders_are_not_prepared_and_stay_as_they_are(command, tmp_path, more):
    for label in "abcd":
        for number in (0, 1):
            archives.write_jpeg(tmp_path / label / f"{number}.jpg", number)
    before = content(tmp_path)
    shown = command("prepare", "folder", "--root", tmp_path, *more, status=2)
    assert "'folder' needs no preparing" in shown
    assert content(tmp_path) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == list("abcd")
    assert "0 broken of 8" in command("check", "folder", "--root", tmp_path, "--images")


def test_the_default_root_lies_below_the_data_folder(command, files, tmp_path, monkeypatch):
    monkeypatch.setenv("BENCHMARK_DATA", str(tmp_path / "data"))
    command("prepare", "sop", *given(files("sop")), "--allow-counts")
    assert "0 broken" in command("check", "sop", "--images", "--allow-counts")
    assert (tmp_path / "data" / "sop" / "prepared.json").is_file()


def test_two_sources_of_one_name_are_refused_at_once(command, tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.tgz").touch()
    sources = given([tmp_path / "one" / "a.tgz", tmp_path / "two" / "a.tgz"])
    shown = command("prepare", "inshop", *sources, "--root", tmp_path / "root", status=2)
    assert "two sources have the same name" in shown
    assert not (tmp_path / "root").exists()


def test_two_lists_of_one_name_in_an_archive_are_refused(command, files, tmp_path):
    (tmp_path / "lists").mkdir()
    for folder in ("a/b/c/d/e", "z/b/c/d/e"):  # too deep to be the root
        place = tmp_path / "lists" / folder
        place.mkdir(parents=True)
        (place / "list_eval_partition.txt").write_text(folder)
    with tarfile.open(tmp_path / "lists.tgz", "w:gz") as archive:
        archive.add(tmp_path / "lists", "lists")
    with pytest.raises(BenchmarkError, match="two files named list_eval_partition"):
        command("prepare", "inshop", *given([tmp_path / "lists.tgz"]), "--root", tmp_path / "root")
