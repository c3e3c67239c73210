"""A file that is written is whole or absent, whatever ends its writer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pandas as pd
import pytest

from benchmark.core.errors import RunError
from benchmark.core.files import guess_csv, replacing, write_csv, write_text

WRITER = """
import sys
from pathlib import Path
from benchmark.core.files import replacing

with replacing(Path(sys.argv[1])) as temporary:
    temporary.write_text("half")
    print("writing", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_writer_leaves_the_file_that_was_there(number, tmp_path):
    path = tmp_path / "runs.csv"
    write_text(path, "old")
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout.readline() == b"writing\n"
        writer.send_signal(number)
    assert path.read_text() == "old"
    write_text(path, "new")
    assert path.read_text() == "new"


def test_a_writer_that_fails_leaves_nothing(tmp_path):
    with pytest.raises(ZeroDivisionError), replacing(tmp_path / "folder" / "a") as temporary:
        temporary.write_text("half")
        raise ZeroDivisionError
    assert not list((tmp_path / "folder").iterdir())


NAMES = {"dataset": "2011", "setting": "1e5", "loss": "NA", "row_label": "", "claim": "null"}


def test_names_are_no_numbers_and_none_is_missing(tmp_path):
    path = tmp_path / "table.csv"
    written = pd.DataFrame([{**NAMES, "split": name, "n": 3} for name in ("1", "nan")])
    written.to_csv(path, index=False)
    assert guess_csv(path).to_dict("records") == written.to_dict("records")


def test_numbers_are_guessed_and_empty_fields_are_missing(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("dataset,split,n,p,lost,ok\na,,1,,,True\nb,test,2,0.5,x,False\n")
    read = guess_csv(path)
    assert read["n"].tolist() == [1, 2]
    assert read["ok"].tolist() == [True, False]
    assert read["p"].isna().tolist() == read["split"].isna().tolist() == [True, False]
    assert pd.isna(read["lost"][0])


def test_a_written_frame_keeps_its_types_and_has_the_digits_of_its_file(tmp_path):
    frame = pd.DataFrame({"share": [1 / 3, None], "n": [1, 2], "ok": [True, False], "x": ["1", ""]})
    kept = write_csv(tmp_path / "table.csv", frame)
    assert kept["share"].dropna().tolist() == [0.3333333333]
    assert kept.dtypes.equals(frame.dtypes)
    assert kept["x"].tolist() == ["1", ""]


@pytest.fixture
def somebody_else():
    """Work as a user who owns nothing."""
    if os.geteuid():
        pytest.skip("only root may become somebody else")
    os.seteuid(65534)
    yield
    os.seteuid(0)


def test_results_of_somebody_else_are_read_only_and_named(tmp_path, somebody_else):
    with pytest.raises(RunError, match=r"runs\.csv cannot be written \(Permission denied\)"):
        write_text(tmp_path / "results" / "runs.csv", "x")


def test_a_file_in_the_place_of_a_folder_is_named(tmp_path):
    (tmp_path / "results").write_text("x")
    with pytest.raises(RunError, match=r"runs\.csv cannot be written"):
        write_text(tmp_path / "results" / "runs.csv", "x")


@pytest.mark.parametrize(("mask", "mode"), [(0o002, 0o664), (0o022, 0o644), (0o077, 0o600)])
def test_a_file_may_be_replaced_by_whom_the_umask_lets(tmp_path, mask, mode):
    before = os.umask(mask)
    try:
        write_text(tmp_path / "new" / "runs.csv", "x")
    finally:
        os.umask(before)
    assert (tmp_path / "new" / "runs.csv").stat().st_mode & 0o777 == mode
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o777 & ~mask
