"""Shipped studies and every profile plan their jobs; nothing is started and nothing is written."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
from snakemake_executor_plugin_slurm.submit_string import get_submit_command
from snakemake_executor_plugin_slurm.utils import set_gres_string
from workplace import ROOT, DryRuns, Workplace, jobs, small_study

from benchmark.study import load_study
from benchmark.study.grid import expand

STEPS = ("collect", "build", "import_runs")
# Plain, of a paper, with trials, of released weights, and with batches of the whole set.
STUDIES = ("embedded", "roadmap", "reality_check", "released", "whole_set")


@pytest.fixture
def dry_run(dry_runs: DryRuns):
    def ask(*arguments: str, folder: Path = ROOT, quiet="rules") -> subprocess.CompletedProcess:
        return dry_runs.ask(folder, "--quiet", quiet, "--nolock", *arguments)

    return ask


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_plans_one_training_per_run(name, dry_run, tmp_path):
    settings = ("--config", f"study={name}", f"results={tmp_path}/new")
    done = dry_run("--profile", "workflow/profiles/local", *settings)
    assert done.returncode == 0, done.stdout
    counts = jobs(done)
    assert counts["train"] == counts["spec"] == len(expand(load_study(name)))
    assert all(counts[step] == 1 for step in STEPS)
    assert not (tmp_path / "new").exists()


def test_the_package_installs_the_version_of_snakemake_that_the_workflow_asks_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    packages = project["optional-dependencies"]["run"]
    (allowed,) = (each for each in packages if each.startswith("snakemake>="))
    (asked,) = re.findall(r'min_version\("(.+)"\)', (ROOT / "workflow" / "Snakefile").read_text())
    assert allowed == f"snakemake>={asked},<10"
    locked = (ROOT / "envs" / "requirements.lock").read_text()
    versions = {*re.findall(r"^snakemake==(\S+)", locked, re.MULTILINE)}
    for name in ("cpu", "gpu"):
        text = (ROOT / "envs" / f"{name}.yaml").read_text()
        versions |= {*re.findall(r"snakemake-minimal=(\S+)", text)}
    (locked_version,) = versions
    assert locked_version.startswith(f"{asked}.")


def test_the_slurm_profile_is_found_from_the_root(dry_run, tmp_path):
    done = dry_run("--profile", "slurm", "--config", "study=smoke", f"results={tmp_path}/new")
    assert done.returncode == 0, done.stdout
    assert jobs(done)["train"] == len(expand(load_study("smoke")))


def test_a_run_on_a_gpu_is_one_job_on_one_node(fresh: Workplace, dry_run):
    study = small_study("small", ["smooth_ap"])
    fresh.write({**study, "resources": {"gpus": 1, "mem_mb": 64000, "minutes": 90}})
    snakefile = ("--snakefile", str(ROOT / "workflow/Snakefile"), "--printshellcmds")
    profile = ("--profile", str(ROOT / "workflow/profiles/slurm"))
    place = (*profile, "--configfile", "small.yaml", "--cores", "8")  # Slurm has no such limit
    done = dry_run(*snakefile, *place, folder=fresh.folder, quiet="progress")
    assert done.returncode == 0, done.stdout
    said = done.stdout
    lines = said[: said.index("benchmark train --spec")].splitlines()
    rule = "\n".join(lines[-12:])  # what the plan says of the run
    words = re.findall(r"resources: (.*)", rule)[-1].split(", ")
    resources = dict(word.split("=", 1) for word in words)
    numbers = {key: int(value) for key, value in resources.items() if value.isdigit()}
    asked = ("gpu", "mem_mb", "runtime", "nodes")
    assert [numbers[name] for name in asked] == [1, 64000, 90, 1]
    assert "tasks" not in numbers
    job = SimpleNamespace(resources=Needs(numbers), threads=1)
    names = dict.fromkeys(("run_uuid", "slurm_logfile", "comment_str", "workdir"), "x")
    call = get_submit_command(job, {**names, "account": "", "partition": ""})
    call += set_gres_string(job)
    assert "--gpus=1" in call
    assert "--nodes=1" in call
    assert "--mem 64000" in call
    assert "ntasks" not in call


def test_the_profile_maps_what_a_run_needs_to_limits_and_constraints(fresh: Workplace, dry_run):
    profile = (ROOT / "slurm" / "config.yaml").read_text()
    kept = {}
    for minutes, mem in ((10, 3000), (4320, 60000)):
        study = small_study("small", ["smooth_ap"]) | {"seeds": [0]}
        resources = {"gpus": 1, "minutes": minutes, "gpu_mem_mb": mem}
        fresh.write({**study, "resources": resources})
        for name, text in {
            "as it is": profile,
            "edited": re.sub("# (runtime|constr)", r"\1", profile),
        }.items():
            (fresh.folder / "config.yaml").write_text(text)
            place = ("-s", str(ROOT / "workflow/Snakefile"), "--profile", str(fresh.folder))
            place += ("--configfile", "small.yaml", "--cores", "8")
            done = dry_run(*place, folder=fresh.folder, quiet="progress")
            (words,) = re.findall(r"resources: (.*gpu_mem_mb=.*)", done.stdout)
            kept[minutes, name] = dict(word.split("=", 1) for word in words.split(", "))
    short = kept[10, "as it is"]
    long = kept[4320, "as it is"]
    assert short["slurm_extra"].startswith("--signal=TERM@60 ")
    assert long["slurm_extra"].startswith("--signal=TERM@600 ")
    assert long["runtime"] == "4320"
    assert "constraint" not in long
    assert [kept[4320, "edited"][key] for key in ("runtime", "constraint")] == ["1440", "gpu80"]
    assert [kept[10, "edited"][key] for key in ("runtime", "constraint")] == ["10", "gpu40"]


class Needs(dict):
    """Resources of a job as Snakemake's plugin reads them."""

    __getattr__ = dict.__getitem__


def test_the_test_configuration_runs_the_smoke_study(dry_run, tmp_path):
    asked = ("--configfile", ".test/config.yaml", "--config", f"results={tmp_path}/new")
    done = dry_run("--profile", "workflow/profiles/local", *asked)
    assert "study smoke: " in done.stdout, done.stdout


def test_no_profile_is_picked_up_unasked():
    for folder in (ROOT, ROOT / "profiles", ROOT / "workflow" / "profiles"):
        assert not (folder / "default").exists(), "Snakemake would lay it over every other profile"


def test_rules_are_short_and_leave_retries_and_partitions_to_the_profiles():
    rules = [ROOT / "workflow/Snakefile", *(ROOT / "workflow" / "rules").glob("*.smk")]
    texts = [path.read_text() for path in rules]
    assert len(texts) >= 3
    assert len(texts[0].splitlines()) <= 60
    assert sum(len(text.splitlines()) for text in texts) <= 400
    for word in ("retries:", "slurm_partition", "slurm_account"):
        assert not any(word in text for text in texts)


def test_a_study_can_be_given_as_configfile(fresh: Workplace, dry_run):
    fresh.write(small_study("small", ["smooth_ap"]))
    place = ("--snakefile", str(ROOT / "workflow/Snakefile"), "--cores", "1")
    arguments = (*place, "--configfile", "small.yaml")
    done = dry_run(*arguments, folder=fresh.folder)
    assert done.returncode == 0, done.stdout
    assert jobs(done)["train"] == 2
    changed = dry_run(*arguments, "--config", "title=other", folder=fresh.folder)
    assert changed.returncode == 2
    assert "cannot be changed with --config (title)" in changed.stdout
