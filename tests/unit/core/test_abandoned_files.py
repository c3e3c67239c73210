"""A killed writer leaves its temporary file; the next process that writes there removes it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

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
    temporary.write_text("whole")
"""


@pytest.fixture
def writing():
    """Return a function that starts a writer, which has its temporary file and waits."""
    started = []

    def start(path: Path) -> subprocess.Popen:
        command = [sys.executable, "-c", WRITER, str(path)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        started.append(process)
        assert process.stdout.readline() == b"writing\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("name", ["runs.csv", "[a]*?.csv"])
def test_the_next_writer_removes_what_a_killed_one_left(name, number, tmp_path, writing):
    path = tmp_path / name
    process = writing(path)
    process.send_signal(number)
    process.wait()
    assert len(list(tmp_path.iterdir())) == 1
    write_text(path, "new")
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_the_file_of_a_writer_that_is_at_work_stays(tmp_path, writing):
    path = tmp_path / "runs.csv"
    process = writing(path)
    write_text(path, "new")
    assert path.read_text() == "new" and len(list(tmp_path.iterdir())) == 2
    process.communicate()
    assert path.read_text() == "whole" and len(list(tmp_path.iterdir())) == 1


def test_what_no_dead_writer_of_this_machine_left_stays(tmp_path):
    place = tmp_path / "scratch" / "runs.csv"
    with replacing(place) as temporary:
        own, dead = temporary.name.rsplit("-", 2)[0], 2**22 + 1  # the largest number is 2**22
    kept = [
        ".runs.csv.swp", ".runs.csv", ".runs.csv.abcdefgh", f"{own}-{dead}-abcdefgh-journal",
        f".runs.csv.000000-{dead}-abcdefgh", f"{own}-x-abcdefgh", f"{own}-1-abcdefgh",
    ]  # fmt: skip
    for name in (*kept, f"{own}-{dead}-abcdefgh", f".scores{own[5:]}-{dead}-abcdefgh"):
        (tmp_path / name).touch()
    (tmp_path / f"{own}-{dead}-ijklmnop").mkdir()
    write_text(tmp_path / "runs.csv", "new")
    left = [*kept, f"{own}-{dead}-ijklmnop", "runs.csv", "scratch"]
    assert sorted(os.listdir(tmp_path)) == sorted(left)


def test_a_process_lists_a_folder_once_however_much_it_writes_there(tmp_path, monkeypatch):
    listed = []
    for name in ("listdir", "scandir"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *at, real=real: (listed.append(at), real(*at))[1])
    for name in ("a.csv", "b.csv", "a.csv"):
        write_text(tmp_path / name, "new")
    assert len(listed) == 1
