from __future__ import annotations

import shutil

import pytest

from benchmark.core.errors import RunError
from benchmark.runs.folder import RunsFolder


@pytest.fixture
def folder(tmp_path) -> RunsFolder:
    """The watched folder of all runs, with one run in it."""
    folder = RunsFolder(tmp_path / "results")
    folder.watch()
    (folder.path / "glyphs" / "seed0").mkdir(parents=True)
    return folder


def test_a_folder_that_stays_is_not_gone(folder):
    folder.require()
    folder.remove_empty()
    assert (folder.path / "glyphs" / "seed0").is_dir(), "what is watched is never tidied"


def test_a_deleted_folder_is_gone_even_when_another_was_made_in_its_place(folder):
    shutil.rmtree(folder.path)
    assert folder.is_gone()
    folder.path.mkdir()
    with pytest.raises(RunError, match=r"runs is gone: deleted, moved or unmounted.*Put it back"):
        folder.require()


def test_a_folder_that_was_moved_away_and_back_is_not_gone(folder, tmp_path):
    folder.path.rename(tmp_path / "elsewhere")
    assert folder.is_gone()
    (tmp_path / "elsewhere").rename(folder.path)
    assert not folder.is_gone()


def test_only_empty_folders_and_logs_are_removed_from_the_place_of_a_folder_that_is_gone(
    folder, capsys
):
    shutil.rmtree(folder.path)
    for name in ("seed0/train.log", "seed1/train.log", "seed2/file"):
        path = folder.path / name
        path.parent.mkdir(parents=True)
        path.touch()
    (folder.path / "seed1" / "train.log").write_text("a word")
    folder.say_if_gone()
    assert capsys.readouterr().err.startswith(f"error: {folder.path} is gone")
    assert sorted(path.name for path in folder.path.rglob("*")) == [
        "file",
        "seed1",
        "seed2",
        "train.log",
    ]


def test_a_folder_that_nobody_watches_or_can_make_is_never_gone(tmp_path):
    (tmp_path / "results").touch()
    folder = RunsFolder(tmp_path / "results")
    assert not folder.is_gone()
    folder.watch()
    folder.require()
