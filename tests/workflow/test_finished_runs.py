"""A finished run is neither trained again nor deleted: the digest of its result alone decides.

What Snakemake would go by, dates and its own memory, is set at random or taken away.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner
from workplace import ALL_STEPS, ROOT, Workplace, jobs, small_study

from benchmark.__main__ import app

LOSSES = ["smooth_ap", "smooth_ap_wide"]
SLURM = ROOT / "workflow" / "profiles" / "slurm"
REFUSES = "echo 'sbatch: error: Batch job submission failed' >&2; exit 1"
ANSWERS = "echo PARTITION"
SILENT = "echo 'slurm_load_partitions: Unable to contact slurm controller' >&2; exit 1"


def files_of_runs(place: Workplace) -> dict[Path, bytes]:
    """Return the files of all runs but their logs."""
    paths = [path for path in place.runs.rglob("*") if path.is_file() and path.suffix != ".log"]
    return {path.relative_to(place.runs): path.read_bytes() for path in paths}


def change_dates(place: Workplace, seed: int) -> None:
    """Give every file of a run a date of the last days, in an order of its own."""
    dates = random.Random(seed)
    for path in sorted(place.runs.rglob("*.*")):
        if path.is_file():
            change = path.stat().st_mtime - dates.uniform(0, 1e6)
            os.utime(path, (change, change))


def forget(place: Workplace) -> None:
    """Take away what Snakemake remembers."""
    shutil.rmtree(place.folder / ".snakemake")


def to_do(place: Workplace) -> list[int]:
    """Return the numbers of runs to train by 'plan' and by what 'run -n' asks Snakemake."""
    called: list[list[str]] = []
    with contextlib.chdir(place.folder), pytest.MonkeyPatch.context() as patch:
        patch.setattr("snakemake.cli.main", called.append)
        plan, _ = [
            CliRunner().invoke(app, [*words, "small.yaml"], catch_exceptions=False)
            for words in (["plan"], ["run", "-n"])
        ]
    planned = re.search(r"runs, (\d+) to do", plan.output)
    assert planned and place.dry_runs, plan.output
    (words,) = called
    assert words.pop() == "--dry-run"
    told = jobs(place.dry_runs.ask(place.folder, *words))
    return [int(planned[1]), told.get("train", 0)]


def slurm(place: Workplace, tmp_path: Path, sbatch: str, sinfo: str) -> None:
    """Put programs of a cluster on the path, which do as the given scripts say."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, script in (("sbatch", sbatch), ("sinfo", sinfo)):
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    place.environment["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"


def submit(place: Workplace):
    """Return Snakemake, finished, with the profile of a cluster; no report is made of it."""
    place.environment["QUICK_STEPS"] = f"{ALL_STEPS} finish"
    words = ["--profile", str(SLURM), "--retries", "0", "--config", "study=small.yaml"]
    words += ["--slurm-init-seconds-before-status-checks", "1"]
    return place.snakemake("small", *words, hooks=True, target="runs")


def check_that_old_files_are_kept(workplace, before):
    """Check that outdated runs lie in ``previous/`` with their bytes, others where they were."""
    after = files_of_runs(workplace)
    for path, content in before.items():
        if "smooth_ap_wide" in path.parts:
            (kept,) = workplace.runs.glob(f"{path.parent}/previous/*/{path.name}")
            assert kept.read_bytes() == content
        else:
            assert after[path] == content


def test_dates_and_a_missing_memory_train_nothing(workplace: Workplace):
    before = files_of_runs(workplace)
    for seed in range(2):
        if seed == 1:
            forget(workplace)
        change_dates(workplace, seed)
        planned = workplace.dry_run("small")
        assert "train" not in jobs(planned) and "spec" not in jobs(planned), planned.stdout
    done = workplace.snakemake("small", target="runs")
    assert done.returncode == 0
    assert "train" not in jobs(done)
    assert files_of_runs(workplace) == before
    forget(workplace)
    assert to_do(workplace) == [0, 0]


@pytest.mark.long
def test_a_changed_specification_is_planned_and_trained_with_the_old_run_kept(
    workplace: Workplace,
):
    before = files_of_runs(workplace)
    change_dates(workplace, 5)
    workplace.write(small_study("small", LOSSES, tau=0.2))
    planned = jobs(workplace.dry_run("small"))
    assert (planned["spec"], planned["train"]) == (2, 2)
    assert files_of_runs(workplace) == before, "a dry run changes nothing"
    forget(workplace)
    assert to_do(workplace) == [2, 2]
    done = workplace.snakemake("small")
    assert done.returncode == 0, done.stderr
    assert (jobs(done)["spec"], jobs(done)["train"], jobs(done)["collect"]) == (2, 2, 1)
    check_that_old_files_are_kept(workplace, before)
    assert "Nothing to be done" in workplace.dry_run("small").stdout


@pytest.mark.long
def test_a_study_changed_back_before_anything_was_trained_has_nothing_to_do(workplace: Workplace):
    before = files_of_runs(workplace)
    workplace.write(small_study("small", LOSSES, tau=0.2))
    done = workplace.snakemake("small", target="no_such_target")
    assert done.returncode != 0
    assert files_of_runs(workplace) != before
    workplace.write(small_study("small", LOSSES))
    forget(workplace)
    assert to_do(workplace) == [0, 0]
    assert workplace.snakemake("small", target="runs").returncode == 0
    assert files_of_runs(workplace) == before


def test_a_run_killed_just_after_its_result_keeps_it(fresh: Workplace):
    fresh.write(small_study("small", ["smooth_ap"]))
    fresh.environment["QUICK_TRAINING_DIES_LATE"] = "yes"
    assert fresh.snakemake("small", target="runs").returncode == 1
    before = fresh.results()
    assert len(before) == 2
    del fresh.environment["QUICK_TRAINING_DIES_LATE"]
    done = fresh.snakemake("small", target="runs")
    assert done.returncode == 0, done.stderr
    assert "train" not in jobs(done)
    assert fresh.results() == before


def test_tables_follow_a_newer_result(workplace: Workplace):
    path = min(workplace.runs.glob("*/*/*/*/*/result.json"))
    path.write_text(path.read_text() + "\n")
    planned = jobs(workplace.dry_run("small"))
    assert planned["collect"] == 1
    assert "train" not in planned


def test_submissions_that_fail_leave_every_file(workplace: Workplace, tmp_path):
    before = files_of_runs(workplace)
    forget(workplace)
    change_dates(workplace, 6)
    workplace.write(small_study("small", [*LOSSES, "roadmap"], tau=0.2))
    slurm(workplace, tmp_path, REFUSES, ANSWERS)
    done = submit(workplace)
    assert done.returncode == 1
    assert "failed" in done.stderr
    check_that_old_files_are_kept(workplace, before)


def test_a_silent_controller_is_one_line_before_anything_starts(workplace: Workplace, tmp_path):
    before = files_of_runs(workplace)
    workplace.write(small_study("small", [*LOSSES, "roadmap"]))
    slurm(workplace, tmp_path, REFUSES, SILENT)
    done = submit(workplace)
    assert done.returncode == 2
    last = done.stderr.rstrip().splitlines()[-1]
    assert "(sinfo: slurm_load_partitions: Unable to contact slurm controller)" in last
    assert "--profile workflow/profiles/local" in last
    assert "Traceback" not in done.stderr
    assert files_of_runs(workplace) == before
