"""What no check expected is one message that says where, and which files were read last."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from benchmark.core.errors import DataError
from benchmark.core.faults import VARIABLE, end_with, watch_files

ENDS = """
from benchmark import __main__ as command

def verb(prog_name):
    raise {error}

command.app = verb
command.main()
"""
PROGRAM = """
import json, sys
from pathlib import Path
from benchmark import __main__ as command
from benchmark.core.paths import read_regular

def verb(prog_name):
    json.loads(read_regular(Path(sys.argv[1])))

command.app = verb
command.main()
"""


class OutOfMemoryError(RuntimeError):
    """As torch's is called."""


def ended(path, **environment):
    """Run a command that reads ``path`` and expects it to be JSON."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)],
        capture_output=True,
        text=True,
        env={"PATH": "", "PYTHONPATH": ":".join(filter(None, sys.path)), **environment},
        timeout=120,
    )


def raised(error):
    """Return ``error`` with the traceback that it has when it is caught."""
    try:
        raise error
    except Exception as caught:
        return caught


@pytest.mark.parametrize("asked", [{}, {VARIABLE: "0"}])
def test_an_unexpected_error_names_its_place_and_the_files_read_last(asked, tmp_path):
    (tmp_path / "damaged.json").write_text("{")
    done = ended(tmp_path / "damaged.json", **asked)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert done.stderr.startswith("error: unexpected JSONDecodeError: Expecting property name")
    assert "benchmark/__main__.py:" in done.stderr
    assert f"files read last: {tmp_path}/damaged.json" in done.stderr
    assert "please report it" in done.stderr


def test_the_traceback_is_there_for_who_asks(tmp_path):
    (tmp_path / "damaged.json").write_text("{")
    done = ended(tmp_path / "damaged.json", **{VARIABLE: "1"})
    assert done.returncode == 1 and done.stderr.startswith("Traceback")


def test_an_error_in_the_lines_of_a_plugin_keeps_its_traceback(capsys):
    error = raised(ZeroDivisionError("by a plugin"))
    error.add_note("raised in loss 'mine' (mine.py, line 3)")
    assert end_with(error) == 1
    said = capsys.readouterr().err
    assert said.startswith("Traceback") and said.endswith("(mine.py, line 3)\n")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (DataError("data/x.csv: no rows"), "error: data/x.csv: no rows\n"),
        (FileNotFoundError(2, "No such file", "a.csv"), "error: a.csv: No such file\n"),
        (MemoryError(), "the memory is full"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: 1"), "the memory is full"),
        (OutOfMemoryError("CUDA out of memory. Of the x"), "the memory of the GPU is full (CUDA"),
        (RuntimeError("Symlink loop from 'a'"), "remove them"),
        (UnicodeEncodeError("ascii", "é", 0, 1, "no"), "set PYTHONUTF8=1"),
    ],
)
def test_what_is_expected_or_the_machines_has_its_own_words(capsys, error, words):
    assert end_with(raised(error)) == 2
    said = capsys.readouterr().err
    assert words in said and "unexpected" not in said


def test_a_text_of_megabytes_is_cut(capsys):
    assert end_with(raised(KeyError("x" * 10**6))) == 1
    assert len(capsys.readouterr().err) < 4_000


def test_values_that_steer_a_terminal_are_escaped(capsys):
    end_with(raised(ValueError(json.dumps("ok") + "\x1b[2J")))
    assert "\x1b" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "status", "told"),
    [
        ("GeneratorExit", 1, "error: unexpected GeneratorExit"),
        ("BaseExceptionGroup('two', [GeneratorExit()])", 1, "error: unexpected BaseExceptionGroup"),
        ("KeyboardInterrupt", 130, ""),
        ("SystemExit(3)", 3, ""),
    ],
)
def test_what_is_no_exception_ends_a_command_without_a_traceback(error, status, told):
    done = subprocess.run(
        [sys.executable, "-c", ENDS.format(error=error)], capture_output=True, text=True, timeout=99
    )
    assert done.returncode == status and "Traceback" not in done.stderr
    assert done.stderr.startswith(told)


def test_files_are_opened_below_a_folder_where_the_working_one_is_gone(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    (tmp_path / "kept" / "inner").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "gone")
    os.rmdir(tmp_path / "gone")
    watch_files()
    shutil.rmtree(tmp_path / "kept")  # opens "inner" below its folder
    assert not (tmp_path / "kept").exists()


def test_an_unexpected_error_names_the_plugins_in_use(tmp_path):
    (tmp_path / "damaged.json").write_text("{")
    (tmp_path / "mine.py").touch()
    done = ended(tmp_path / "damaged.json", BENCHMARK_PLUGINS=str(tmp_path))
    assert f"plugins in use, which may be the cause: {tmp_path}/mine.py" in done.stderr
    done = ended(tmp_path / "damaged.json", BENCHMARK_PLUGINS=str(tmp_path / "nowhere"))
    assert done.stderr.startswith("error: unexpected") and "plugins" not in done.stderr
