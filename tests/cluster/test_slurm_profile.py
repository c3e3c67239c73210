"""What can be seen of the way to a cluster without one: where the profile lies, and which steps
become jobs."""

from __future__ import annotations

import re

import pytest
import yaml
from checkout import ROOT

PROFILE = ROOT / "slurm" / "config.yaml"
TRAINING = {"train", "analysis"}


def rules() -> tuple[set[str], set[str]]:
    """Return the names of all rules, and of those that Snakemake runs itself."""
    files = [ROOT / "workflow/Snakefile", *(ROOT / "workflow" / "rules").glob("*.smk")]
    text = "\n".join(path.read_text() for path in files)
    lists = re.findall(r"^localrules:\n((?: +.*\n)+)", text, re.MULTILINE)
    known = re.findall(r"^(?:use rule \w+ as|rule) (\w+)", text, re.MULTILINE)
    return set(known), {name for names in lists for name in re.findall(r"\w+", names)}


def test_the_profile_is_found_by_its_name_from_the_root():
    assert PROFILE.samefile(ROOT / "workflow" / "profiles" / "slurm" / "config.yaml")


def test_only_training_becomes_jobs_and_small_steps_run_where_the_command_runs():
    known, local = rules()
    assert known - local == TRAINING
    assert local <= known


@pytest.mark.parametrize("file", ["runs.smk", "analyses.smk"])
def test_a_signal_to_the_job_reaches_training_and_no_shell_before_it(file: str):
    rules = (ROOT / "workflow" / "rules" / file).read_text().split("\nrule ")
    jobs = [rule for rule in rules if rule.partition(":")[0] in TRAINING]
    commands = [re.search(r'"(.*) -m benchmark', job)[1] for job in jobs]
    assert commands == ["exec python -P"]


def test_the_profile_warns_the_steps_of_a_job_before_its_time_limit():
    extra = yaml.safe_load(PROFILE.read_text())["default-resources"]["slurm_extra"]
    assert re.search(r"--signal=TERM@\d+", extra), (
        "with 'B:' only the shell of the job would get the signal"
    )
