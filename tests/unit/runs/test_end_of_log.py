"""A log is shown whatever is in it: it may come from elsewhere, or be of another program."""

from __future__ import annotations

import os

import pytest

from benchmark.runs.status import LOG_END, end_of_log


def test_what_is_no_text_or_could_steer_a_terminal_is_shown_with_escapes(tmp_path):
    (tmp_path / "log").write_bytes(b"caf\xe9\n\x1b]0;title\a\x1b[2J\r\n10%\r20%\n")
    assert end_of_log(tmp_path / "log") == [
        "caf\N{REPLACEMENT CHARACTER}",
        r"\x1b]0;title\x07\x1b[2J",
        "10%",
        "20%",
    ]


def test_the_end_of_a_log_of_gigabytes_is_read(tmp_path):
    with open(tmp_path / "log", "wb") as stream:
        stream.truncate(2**40)
        stream.seek(0, os.SEEK_END)
        stream.write(b"\nerror: the end\n")
    lines = end_of_log(tmp_path / "log")
    assert lines[-1] == "error: the end" and len(lines[0]) <= 4 * LOG_END


def test_a_pipe_is_no_log(tmp_path):
    os.mkfifo(tmp_path / "log")
    with pytest.raises(OSError, match="not a regular file"):
        end_of_log(tmp_path / "log")
