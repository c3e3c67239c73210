"""What goes wrong is said once, harms nothing else, and can be continued."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from workplace import ALL_STEPS, REPORT_STEPS, ROOT, Workplace, jobs, run_in, small_study

BROKEN = "/smooth_ap_wide/bs32/seed1"


@pytest.mark.long
def test_a_failed_run_leaves_the_others_and_the_report_names_it(fresh: Workplace):
    fresh.write(small_study("small", ["smooth_ap", "smooth_ap_wide"]))
    fresh.environment["QUICK_TRAINING_FAILS"] = BROKEN
    done = fresh.snakemake("small", target="all", hooks=True)
    assert done.returncode != 0
    finished = fresh.results()
    assert len(finished) == 3
    assert not any(BROKEN in name for name in finished)
    study = fresh.folder / "results" / "small"
    assert "the training broke on purpose" in (study / "runs.csv").read_text()
    page = (study / "report" / "index.html").read_text()
    assert BROKEN.lstrip("/") in page
    assert "the training broke on purpose" in page

    del fresh.environment["QUICK_TRAINING_FAILS"]
    fresh.environment["QUICK_STEPS"] = "finish build"
    done = fresh.snakemake("small", target="results/small/imported.txt", hooks=True)
    assert done.returncode == 0, done.stderr
    made = jobs(done)
    assert made["train"] == 1
    assert made["import_runs"] == 1
    after = fresh.results()
    assert len(after) == 4
    assert {name: after[name] for name in finished} == finished
    assert "broke on purpose" not in (study / "runs.csv").read_text()
    assert "1 imported, 3 present" in (study / "imported.txt").read_text()


def test_a_bad_study_and_a_misspelt_setting_are_one_message_and_start_nothing(
    fresh: Workplace, dry_runs
):
    study = small_study("small", ["smooth_ap"])
    fresh.write(study)
    words = [*fresh.arguments("small"), "reslts=elsewhere"]
    for quiet in ("--quiet", "host"):
        words.remove(quiet)
    done = dry_runs.ask(fresh.folder, *words)
    assert done.returncode == 2
    assert "reslts" in done.stdout
    study["blocks"][0] |= {"losses": ["smoth_ap"], "batch_sizes": [30]}
    fresh.write(study)
    done = fresh.snakemake("small")
    assert done.returncode == 2
    assert done.stderr.count("'smooth_ap'?") == 1
    assert "3 problems" in done.stderr
    assert "Traceback" not in done.stderr
    assert not fresh.runs.exists()


def test_a_run_that_fails_knows_its_attempt_and_leaves_the_others(fresh: Workplace):
    fresh.write(small_study("small", ["smooth_ap"]))
    fresh.environment["QUICK_TRAINING_FAILS"] = "seed1"
    assert fresh.snakemake("small", "--retries", "1", target="runs").returncode != 0
    (finished,) = fresh.results()
    assert finished.endswith("seed0")
    (log,) = fresh.runs.glob("*/*/*/*/seed1/train.log")
    assert "attempt 2" in log.read_text()


def test_a_study_that_another_workflow_is_at_is_one_sentence_and_can_be_started_when_it_has_ended(
    fresh: Workplace,
):
    fresh.write(small_study("small", ["smooth_ap"]))
    fresh.environment["QUICK_STEPS"] = f"{ALL_STEPS} finish"
    locks = fresh.folder / ".snakemake" / "locks"
    locks.mkdir(parents=True)
    (locks / "0.output.lock").write_text("results/small/runs.csv\n")
    command = [sys.executable, "-m", "benchmark", "run", "small.yaml", "--cores", "2"]
    done = run_in(fresh.folder, command, fresh.variables)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: another workflow runs here")
    assert "--unlock" not in done.stderr
    assert not fresh.results()
    shutil.rmtree(fresh.folder / re.search(r"'rm -r (\S+)'", last)[1])
    done = run_in(fresh.folder, command, fresh.variables)
    assert done.returncode == 0, done.stderr
    assert len(fresh.results()) == 2


def test_without_slurm_its_profile_is_refused_in_one_line(fresh: Workplace, tmp_path):
    programs = tmp_path / "bin"  # all that are here but one
    programs.mkdir()
    for folder in map(Path, os.environ["PATH"].split(os.pathsep)):
        for path in folder.glob("*"):
            link = programs / path.name
            if path.name != "sbatch" and not os.path.lexists(link):
                link.symlink_to(path)
    fresh.environment["PATH"] = str(programs)
    fresh.write(small_study("small", ["smooth_ap"]))
    words = ["--profile", str(ROOT / "workflow" / "profiles" / "slurm"), "--config"]
    done = fresh.snakemake("small", *words, "study=small.yaml", hooks=True, target="all")
    assert done.returncode == 2
    last = done.stderr.rstrip().splitlines()[-1]
    assert "sbatch" in last
    assert "--profile workflow/profiles/local" in last
    assert not (fresh.folder / "results").exists()


def test_a_file_called_benchmark_in_the_working_folder_is_not_taken_for_the_suite(fresh: Workplace):
    fresh.write(small_study("small", ["smooth_ap"]) | {"seeds": [0]})
    (fresh.folder / "benchmark.py").write_text("import os\nos._exit(0)\n")
    del fresh.environment["BENCHMARK_FORK_SERVER"]
    fresh.environment["QUICK_STEPS"] = f"{REPORT_STEPS} finish"
    command = [str(Path(sys.executable).with_name("ranking-benchmark")), "run", "small.yaml"]
    done = run_in(fresh.folder, [*command, "--cores", "2"], fresh.variables)
    assert done.returncode == 0, done.stderr
    assert len(fresh.results()) == 1
    assert "smooth_ap" in (fresh.folder / "results" / "small" / "runs.csv").read_text()


def test_no_shell_reads_the_names_of_folders(tmp_path):
    odd = 'a b\'c $(touch owned) `touch owned` "d" ü; touch owned'
    place = Workplace(tmp_path / odd)
    place.folder.mkdir()
    place.write(small_study("small", ["smooth_ap"]) | {"seeds": [0]})
    settings = ["study=small.yaml", f"results=./{odd}"]
    done = place.snakemake("small", "--config", *settings, target="runs")
    assert done.returncode == 0, done.stderr
    assert len(list((place.folder / odd).glob("runs/*/*/*/*/*/result.json"))) == 1
    assert not list(tmp_path.rglob("owned"))
