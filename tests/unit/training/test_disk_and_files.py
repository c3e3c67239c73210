"""Full disks, folders that vanish, files that were torn, edited or swapped: a clear error or a
clean recovery."""

from __future__ import annotations

import json
import resource

import pytest
from long_lists import long_but
from tiny_runs import curve, stopped_after, tiny_spec, write_spec_in

from benchmark.core.errors import RunError
from benchmark.core.provenance import packages, packages_digest
from benchmark.core.records import PROVENANCE, RESULT, RunSpec
from benchmark.training.run import train
from benchmark.training.state import CHECKPOINT

OFTEN = {"epochs": 1, "checkpoint_seconds": 0.0}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return the folder of a run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    train(write_spec_in(folder, tiny_spec(training=OFTEN)))
    return folder


@pytest.fixture
def stopped(tmp_path, monkeypatch):
    """Return the path of the same specification, stopped after three steps."""
    return stopped_after(3, tmp_path, tiny_spec(training=OFTEN), monkeypatch)


@pytest.fixture
def full_disk():
    """Return a function that lets no file of this process grow beyond so many bytes; undone by
    None."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(size: int | None) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, before if size is None else (size, before[1]))

    yield fill
    fill(None)


def same(folder, whole) -> bool:
    return (folder / RESULT).read_bytes() == (whole / RESULT).read_bytes() and curve(
        folder
    ) == curve(whole)


def test_a_checkpoint_that_finds_no_room_is_an_error_and_the_one_before_stays(
    stopped, whole, full_disk
):
    before = (stopped.parent / CHECKPOINT).read_bytes()
    full_disk(100_000)
    with pytest.raises(RunError, match=r"cannot be saved in .* make room, then the same command"):
        train(stopped)
    full_disk(None)
    assert (stopped.parent / CHECKPOINT).read_bytes() == before
    assert len(list((stopped.parent / CHECKPOINT).parent.iterdir())) == 1, (
        "half a checkpoint takes no room"
    )
    train(stopped)
    assert same(stopped.parent, whole)


@pytest.mark.parametrize("text", long_but(["{}"], ['{"schema": 1, "spec_dig', "\x00\x00"]))
def test_a_torn_result_is_made_again(text, stopped, whole):
    (stopped.parent / RESULT).write_text(text)
    train(stopped)
    assert same(stopped.parent, whole)


def test_an_edited_specification_does_not_continue_the_checkpoint_of_the_old_one(stopped, capsys):
    data = json.loads(stopped.read_text())
    data["loss"]["params"]["tau"] = 0.5
    stopped.write_text(json.dumps(data))
    result = train(stopped)
    assert "has spec digest" in capsys.readouterr().out
    assert result.spec_digest == RunSpec.read(stopped).digest


def test_a_run_continued_on_another_kind_of_machine_names_both(stopped, monkeypatch):
    monkeypatch.setattr("benchmark.training.loop.machine", lambda *_: "another processor")
    train(stopped)
    machines = json.loads((stopped.parent / PROVENANCE).read_text())["machines"]
    assert len(machines) == 2
    assert machines[1] == "another processor"


def test_a_run_continued_with_other_packages_says_so(stopped, whole, monkeypatch):
    versions = {**packages(), "numpy": "0.1"}
    monkeypatch.setattr("benchmark.core.provenance.packages", lambda: versions)
    train(stopped)
    files = (folder / PROVENANCE for folder in (stopped.parent, whole))
    record, alone = (json.loads(file.read_text()) for file in files)
    (first,) = alone["package_digests"]
    assert record["package_digests"] == [first, packages_digest()]
    assert packages_digest() != first
    assert record["packages"] == versions


@pytest.mark.parametrize(
    "fact, value",
    [("platform", "linux-x86_64-py3.11-torch9.9-cuda"), ("kernels", "native AVX512")],
)
def test_a_checkpoint_of_another_platform_or_of_other_kernels_is_a_fresh_start(
    fact, value, stopped, whole, monkeypatch, capsys
):
    name = {"platform": "platform_label"}.get(fact, fact)
    with monkeypatch.context() as patch:
        patch.setattr(f"benchmark.core.provenance.{name}", lambda: value)
        train(stopped)
    assert f"has {fact}" in capsys.readouterr().out
    assert same(stopped.parent, whole)
