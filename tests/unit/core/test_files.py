"""A file that is written is whole or absent, whatever ends its writer."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from benchmark.core.files import replacing, write_text

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
