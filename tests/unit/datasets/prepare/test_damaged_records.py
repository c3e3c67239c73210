"""Records that ``data prepare`` wrote, damaged: said in one line, never passed over."""

from __future__ import annotations

import json

import archives
import pytest

from benchmark.core.errors import BenchmarkError
from benchmark.datasets.prepare.download import _Transfer
from benchmark.datasets.prepare.staging import RECORD, SOURCES

DAMAGED = {
    "nothing": "",
    "half of it": "{",
    "a list": "[]",
    "pairs": '[["from", "b"]]',
    "5,000 digits": "9" * 5000,
    "a digest that is none": '{"sha256": {"x": 1}}',
    "a number for a name": '{"from": 5}',
}


def refused(command, *arguments: object, words: str) -> None:
    with pytest.raises(BenchmarkError, match=words) as caught:
        command(*arguments)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    assert len(message) < 1000


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_record_of_a_source_is_named(command, tmp_path, content):
    archives.make_cub(tmp_path)
    path = tmp_path / SOURCES / "a.tgz.json"
    path.parent.mkdir()
    path.write_text(content)
    arguments = ("prepare", "cub", "--root", tmp_path, "--allow-counts")
    refused(command, *arguments, words=r"cannot read .*a\.tgz\.json: .*; delete it")
    path.unlink()
    command(*arguments)


@pytest.mark.parametrize(
    "content",
    [
        *DAMAGED.values(),
        '{"sources": []}',
        '{"sources": {"a": []}}',
        '{"sources": {"a": {"b": 1}}}',
    ],
    ids=[*DAMAGED, "no sources", "a list for a source", "a number for text"],
)
def test_a_damaged_record_of_a_dataset_is_named_and_written_again(command, tmp_path, content):
    archives.make_cub(tmp_path)
    (tmp_path / RECORD).write_text(content)
    check = ("check", "cub", "--root", tmp_path, "--allow-counts")
    words = r"prepared\.json cannot be read as the record of a dataset .*data prepare.* again"
    refused(command, *check, words=words)
    command("prepare", "cub", "--root", tmp_path, "--allow-counts")
    command(*check)


def test_a_record_of_a_dataset_tells_its_sources(command, tmp_path):
    archives.make_cub(tmp_path)
    sources = {"a.tgz": {"from": "b", "sha256": "00ff"}, "folder": {"from": "c"}}
    (tmp_path / RECORD).write_text(json.dumps({"schema": 1, "sources": sources}))
    shown = command("check", "cub", "--root", tmp_path, "--allow-counts")
    assert "prepared from a.tgz  sha256 00ff\nprepared from folder\n" in shown


@pytest.mark.parametrize(
    "known",
    [
        {"version": 5},
        {"version": "a\nb"},
        {"version": " a"},
        {"version": "\u0142"},
        {"total": "x"},
        {"total": []},
        {"url": 1},
    ],
)
def test_a_damaged_record_of_a_download_begins_it_anew(tmp_path, known):
    target = tmp_path / "a.tgz"
    (tmp_path / "a.tgz.part").write_text("half")
    record = {"url": "http://x/a.tgz", "version": "", "total": 9}
    (tmp_path / "a.tgz.part.json").write_text(json.dumps(record))
    assert _Transfer("http://x/a.tgz", target).size == 4
    (tmp_path / "a.tgz.part.json").write_text(json.dumps(record | known))
    assert _Transfer("http://x/a.tgz", target).size == 0


def test_a_record_of_a_source_whose_name_is_no_text_is_named(command, tmp_path):
    archives.make_cub(tmp_path)
    path = tmp_path / SOURCES / "a\udcff.tgz.json"
    path.parent.mkdir()
    path.write_text("{}")
    arguments = ("prepare", "cub", "--root", tmp_path, "--allow-counts")
    refused(command, *arguments, words=r"cannot read .*its name is no text; delete it")
