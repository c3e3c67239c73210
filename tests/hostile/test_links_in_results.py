"""Links in a folder from elsewhere, in the places that a step writes: nothing outside changes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml
from benchmark.datasets.prepare.staging import move_into_root
from typer.testing import CliRunner

from benchmark.__main__ import app
from benchmark.core import files
from benchmark.core.errors import DataError, RunError
from benchmark.core.files import clear_place, write_text
from benchmark.core.records import LOG, QUERIES, RESULT, SPEC
from benchmark.datasets.prepare.download import _Transfer
from benchmark.runs.specs import PREVIOUS, write_specs
from benchmark.runs.tracking.notes import PAGE, SERVED, publish_reports
from benchmark.runs.tracking.store import ARTIFACTS
from benchmark.study import load_study
from benchmark.study.grid import expand
from benchmark.study.workflow import load_flow
from hostile.run_targets import finish
from hostile.study_targets import small_study

MINE = "mine"


@pytest.fixture
def outside(tmp_path):
    """Return a folder of somebody's own; its only file must stay as it is."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text(MINE)
    yield tmp_path / "outside"
    assert [path.name for path in (tmp_path / "outside").iterdir()] == ["file"]
    assert (tmp_path / "outside" / "file").read_text() == MINE


@pytest.fixture
def study(tmp_path) -> Path:
    """Return the file of a study of two finished runs, below the results of which links lie."""
    (tmp_path / "x.yaml").write_text(yaml.safe_dump(small_study(seeds=[0])))
    finish(tmp_path / "results")
    return tmp_path / "x.yaml"


def test_results_put_aside_are_not_written_through_a_link(study, outside, tmp_path):
    run = next(iter(expand(load_study(study)).values()))
    folder = tmp_path / "results" / run.spec.folder
    kept = folder / PREVIOUS / run.digest
    kept.mkdir(parents=True)
    (kept / RESULT).symlink_to(outside / "file")
    study.write_text(study.read_text().replace("tau: 0.1", "tau: 0.2"))
    write_specs(expand(load_study(study)), tmp_path / "results")
    assert (kept / RESULT).read_bytes() == (folder / RESULT).read_bytes()


def test_results_put_aside_are_a_runs_own_files_and_no_others(study, outside, tmp_path):
    run = next(iter(expand(load_study(study)).values()))
    folder = tmp_path / "results" / run.spec.folder
    (folder / LOG).unlink(missing_ok=True)
    (folder / LOG).symlink_to(outside / "file")
    with open(folder / QUERIES, "wb") as stream:
        stream.truncate(2**40)
    study.write_text(study.read_text().replace("tau: 0.1", "tau: 0.2"))
    write_specs(expand(load_study(study)), tmp_path / "results")
    kept = {path.name for path in (folder / PREVIOUS / run.digest).iterdir()}
    assert RESULT in kept and not kept & {LOG, QUERIES}


@pytest.mark.parametrize("log", [LOG, "spec.log"])
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_a_workflow_writes_its_logs_through_no_link_and_into_no_pipe(
    study, outside, tmp_path, monkeypatch, log, kind
):
    monkeypatch.chdir(tmp_path)
    run = next(iter(expand(load_study(study)).values()))
    logs = [Path("results", run.spec.folder, log), Path("results", "x", "logs", "stats.log")]
    logs[1].parent.mkdir(parents=True)
    for path in logs:
        os.symlink(outside / "file", path) if kind == "link" else os.mkfifo(path)
    load_flow({"study": "./x.yaml", "results": "./results"}).clear_logs()
    assert not any(os.path.lexists(path) for path in logs)


LINKED = {
    "stats": ["stats"],
    "tables": ["tables"],
    "figures": ["plots"],
    "gallery": ["gallery"],
    "report": ["report", "--partial"],
    "analyses/toy_ranking": ["analyse", "toy_ranking"],
    "made_of": ["claims"],
}


@pytest.mark.parametrize("place", LINKED)
def test_no_step_writes_through_a_link_in_the_place_of_its_folder(study, outside, tmp_path, place):
    results = tmp_path / "results"
    (results / "x" / place).parent.mkdir(parents=True)
    (results / "x" / place).symlink_to(outside)
    verb, *options = LINKED[place]
    command = [verb, *options, str(study), "--results", str(results)]
    refusal = CliRunner().invoke(app, command).exception
    assert isinstance(refusal, RunError) and f"x/{place} is a link to a folder" in str(refusal)


def test_a_study_may_lie_behind_a_link_with_links_to_files(study, outside, tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "results" / "x").symlink_to(tmp_path / "disk")
    (tmp_path / "disk" / "notes.txt").symlink_to(outside / "file")
    command = ["report", "--partial", str(study), "--results", str(tmp_path / "results")]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0 and (tmp_path / "disk" / "report" / "index.html").is_file()


def test_no_file_takes_the_place_of_a_device(outside, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "DEVICES", os.path.realpath(outside))
    (tmp_path / "link").symlink_to(outside)
    for folder in (outside, tmp_path / "link"):
        with pytest.raises(RunError, match="a device, not a file"):
            write_text(folder / "file", "theirs")


def test_a_file_of_its_own_and_a_folder_keep_their_place(tmp_path):
    (tmp_path / "file").write_text(MINE)
    for path in (tmp_path / "file", tmp_path, tmp_path / "nothing"):
        clear_place(path)
    assert (tmp_path / "file").read_text() == MINE


def test_a_report_is_not_published_through_a_link(outside, tmp_path):
    page = tmp_path / "results" / "x" / PAGE
    page.parent.mkdir(parents=True)
    page.write_text("page")
    (tmp_path / "results" / ARTIFACTS).mkdir()
    (tmp_path / "results" / ARTIFACTS / "x").symlink_to(outside)
    publish_reports(tmp_path / "results")
    (tmp_path / "results" / ARTIFACTS / "x").unlink()
    (tmp_path / "results" / ARTIFACTS / "x").mkdir()
    (tmp_path / "results" / ARTIFACTS / "x" / SERVED).symlink_to(outside / "file")
    publish_reports(tmp_path / "results")


def test_files_are_not_moved_into_a_folder_through_a_link(outside, tmp_path):
    (tmp_path / "base" / "images").mkdir(parents=True)
    (tmp_path / "base" / "images" / "a.jpg").touch()
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "images").symlink_to(outside)
    with pytest.raises(DataError, match="already holds images"):
        move_into_root(tmp_path / "base", tmp_path / "root", "a.tgz", {})


def test_a_download_is_not_continued_through_a_link(outside, tmp_path):
    target = tmp_path / "a.tgz"
    (tmp_path / "a.tgz.part").symlink_to(outside / "file")
    (tmp_path / "a.tgz.part.json").write_text('{"url": "http://x/a.tgz", "version": ""}')
    assert _Transfer("http://x/a.tgz", target).size == 0
    assert not os.path.lexists(tmp_path / "a.tgz.part")


def test_the_specification_stays_below_the_results(study, outside, tmp_path):
    run = next(iter(expand(load_study(study)).values()))
    path = tmp_path / "results" / run.spec.folder / SPEC
    path.unlink()
    path.symlink_to(outside / "file")
    write_specs({run.spec.run_id: run}, tmp_path / "results")
    assert not path.is_symlink()
