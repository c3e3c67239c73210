"""What ends a job before its run is finished costs time and changes no bit of the result."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from archives import save
from checkout import LIMIT, ROOT, SITE, Checkout, block, study
from tiny_runs import curve, train_command

pytestmark = pytest.mark.cluster


def long_study(checkpoint_seconds: float = 1e9, minutes: int = 60) -> dict:
    """Return a study of one run over three epochs, which by default saves its state at the end."""
    training = {"epochs": 3, "checkpoint_seconds": checkpoint_seconds}
    run = block("main", ["smooth_ap"], option="long", override={"training": training})
    return study(run, minutes=minutes)


def study_on_files(root: Path) -> dict:
    """Return that run on 144 JPEGs in ``root``, which two workers decode."""
    for number in range(144):
        save(root / f"class{number // 12:02d}" / f"{number}.jpg", seed=number, size=(44, 40))
    images = {"augmentation": "crop_flip", "image_size": 32, "workers": 2}
    found = long_study()
    (run,) = found["blocks"]
    run["datasets"] = [{"name": "folder", "label": "photos", "params": {"root": str(root)}}]
    run["batch_sizes"] = [16]
    run["override"] |= {"input": images, "model": {"channels": 3}}
    return found


def resumed(checkout: Checkout, tmp_path: Path) -> int:
    """Return how often the finished run was resumed, which changed no bit.

    It is trained once more, in one go and without Slurm, to compare.
    """
    finished = checkout.run_folder()
    folder = tmp_path / "undisturbed"
    folder.mkdir()
    command = [*train_command(finished / "spec.json"), "--out", str(folder)]
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(command, env=variables, check=True, capture_output=True)
    assert (finished / "result.json").read_bytes() == (folder / "result.json").read_bytes()
    assert curve(finished) == curve(folder)
    return json.loads((finished / "provenance.json").read_text())["timing"]["resumed"]


def slurm(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def requeue(job: str) -> None:
    slurm("scontrol", "requeue", job)


def preempt(job: str) -> None:
    slurm("sbatch", "-p", "urgent", "--exclusive", "--output", "/dev/null", "--wrap", "sleep 3")


def cancel(job: str) -> None:
    slurm("scancel", job)


def warn(job: str) -> None:
    """Send SIGTERM to every process of the job's steps, as ``--signal=TERM@600`` does."""
    slurm("scancel", "--signal=TERM", job)


@pytest.mark.parametrize(("interrupt", "jobs"), [(warn, 2), (requeue, 1)])
def test_a_run_with_workers_whose_processes_all_get_the_signal_goes_on_from_there(
    interrupt, jobs, checkout: Checkout, tmp_path: Path
):
    checkout.write(study_on_files(tmp_path / "photos"))
    checkout.environment["CLUSTER_STEP_SECONDS"] = "0.3"
    process = checkout.start("small", "runs", "--no-hooks")
    interrupt(checkout.wait_for_an_epoch())
    assert process.wait(LIMIT) == 0, checkout.said()
    assert len(checkout.jobs()) == jobs
    assert resumed(checkout, tmp_path) == 1  # from the only state that was saved: at the signal


@pytest.mark.parametrize(("interrupt", "jobs"), [(requeue, 1), (preempt, 1), (cancel, 2)])
def test_a_job_taken_away_saves_its_state_and_goes_on_from_there(
    interrupt, jobs, checkout: Checkout, tmp_path: Path
):
    checkout.write(long_study())
    checkout.environment["CLUSTER_STEP_SECONDS"] = "0.3"
    process = checkout.start("small", "runs", "--no-hooks")
    interrupt(checkout.wait_for_an_epoch())
    assert process.wait(LIMIT) == 0, checkout.said()
    assert [int(job["Restarts"]) for job in checkout.jobs()] == ([1] if jobs == 1 else [0, 0])
    assert resumed(checkout, tmp_path) == 1


def documented_commands() -> str:
    """Return the lines of the page that come before Snakemake itself, after it was killed."""
    page = (ROOT / "docs" / "cluster.md").read_text()
    return re.search(r"^  (id=.*?)--unlock", page, re.DOTALL | re.MULTILINE)[1].rsplit("\n", 1)[0]


def follow_the_page(checkout: Checkout) -> None:
    """Type the documented commands after Snakemake was killed."""
    commands = ["bash", "-euc", documented_commands()]
    subprocess.run(commands, cwd=checkout.folder, check=True, timeout=LIMIT)
    assert {job["JobState"] for job in checkout.jobs()} == {"CANCELLED"}
    assert checkout.run("small", "runs", "--unlock") == 0, checkout.said()
    assert checkout.run("small", "runs", "--no-hooks") == 0, checkout.said()


def test_when_snakemake_was_killed_the_documented_commands_finish_the_study(
    checkout: Checkout, tmp_path: Path
):
    checkout.write(long_study())
    checkout.environment["CLUSTER_STEP_SECONDS"] = "0.3"
    process = checkout.start("small", "runs", "--no-hooks")
    checkout.wait_for_an_epoch()
    process.kill()
    process.wait()
    follow_the_page(checkout)
    assert resumed(checkout, tmp_path) == 1


def test_a_job_cancelled_just_after_its_run_has_finished_loses_nothing(checkout: Checkout):
    checkout.write(study(block("main", ["smooth_ap"])))
    checkout.environment["CLUSTER_QUICK"] = "yes"
    process = checkout.start("small", "runs", "--no-hooks")
    checkout.wait_for(lambda: list(checkout.folder.glob("results/runs/*/*/*/*/*/result.json")))
    process.kill()
    process.wait()
    before = checkout.files_with_dates()
    follow_the_page(checkout)
    assert len(checkout.jobs()) == 1, "it was trained again"
    assert checkout.files_with_dates() == before


def test_snakemake_in_a_job_of_its_own_ends_in_good_order_and_the_same_command_goes_on(
    checkout: Checkout, tmp_path: Path
):
    page = (ROOT / "docs" / "cluster.md").read_text()
    command = re.search(r"^sbatch .*B:INT.*$", page, re.MULTILINE)[0]
    command = command.replace(
        "--mem=4G", "--mem=1G --parsable --output=head.log --open-mode=append"
    )
    command = command.replace("study=roadmap", "study=small.yaml --no-hooks").replace(
        "exec snakemake", f"exec {sys.executable} -m snakemake runs"
    )
    paths = os.pathsep.join([str(SITE), str(checkout.folder)])
    variables = {**os.environ, **checkout.environment, "PYTHONPATH": paths}
    variables["CLUSTER_STEP_SECONDS"] = "0.3"
    checkout.write(long_study())

    def submit() -> str:
        return subprocess.check_output(
            ["bash", "-euc", command], cwd=checkout.folder, env=variables, text=True
        ).strip()

    def state(job: str) -> str:
        return next(each["JobState"] for each in checkout.jobs() if each["JobId"] == job)

    head = submit()
    checkout.wait_for_an_epoch()
    slurm("scancel", "--batch", "--signal=INT", head)
    checkout.wait_for(lambda: state(head) not in ("RUNNING", "COMPLETING"))
    checkout.wait_for(
        lambda: {each["JobState"] for each in checkout.jobs()} == {"FAILED", "CANCELLED"}
    )
    head = submit()
    checkout.wait_for(lambda: state(head) in ("COMPLETED", "FAILED"))
    assert state(head) == "COMPLETED", (checkout.folder / "head.log").read_text()
    assert resumed(checkout, tmp_path) == 1


def test_a_job_killed_for_its_memory_goes_on_from_the_last_checkpoint(
    checkout: Checkout, tmp_path: Path
):
    checkout.write(long_study(checkpoint_seconds=0.5))
    checkout.environment |= {"CLUSTER_STEP_SECONDS": "0.3", "CLUSTER_LEAK_MB": "2000"}
    assert checkout.run("small", "runs", "--no-hooks") == 0, checkout.said()
    killed = [job["JobState"] in ("FAILED", "OUT_OF_MEMORY") for job in checkout.jobs()]
    assert killed == [True, False]
    assert resumed(checkout, tmp_path) == 1


def processes_of_step(process: psutil.Process) -> set[int]:
    """Return the ids of the daemon of a process's step, and of all that it started."""
    while process.name() != "slurmstepd":
        process = process.parent()
    return {process.pid, *(child.pid for child in process.children(recursive=True))}


def reboot() -> None:
    """Kill slurmd and all that it started, without a word, and start it as after a boot."""
    printed = subprocess.check_output(["scontrol", "show", "config"], text=True)
    settings = dict(re.findall(r"^(\w+) +(?:= )+(\S+)", printed, re.MULTILINE))
    listed = subprocess.check_output(["scontrol", "listpids"], text=True).splitlines()[1:]
    daemon = Path(settings["SlurmdPidFile"])
    dying = {int(daemon.read_text())}
    for line in listed:
        with contextlib.suppress(psutil.NoSuchProcess):
            dying |= processes_of_step(psutil.Process(int(line.split()[0])))
    for process in dying:
        with contextlib.suppress(ProcessLookupError):  # one that ended by itself meanwhile
            os.kill(process, signal.SIGKILL)
    daemon.unlink()
    # A booted node is asked for the job only if that showed no sign of life for BatchStartTimeout
    # and MessageTimeout, 10 s each; if it did, Slurm asks again after half an hour.
    time.sleep(25)
    slurm("slurmd", "-b", "-f", settings["SLURM_CONF"])


def test_a_job_whose_node_reboots_goes_on_from_the_last_checkpoint(
    checkout: Checkout, tmp_path: Path
):
    checkout.write(long_study(checkpoint_seconds=0.5))
    checkout.environment["CLUSTER_STEP_SECONDS"] = "0.3"
    process = checkout.start("small", "runs", "--no-hooks")
    checkout.wait_for_an_epoch()
    checkout.wait_for(lambda: list((checkout.run_folder() / "state").glob("*")))
    reboot()
    assert process.wait(LIMIT) == 0, checkout.said()
    assert [job["Restarts"] for job in checkout.jobs()] == ["1"]
    assert resumed(checkout, tmp_path) == 1


def test_runs_longer_than_the_time_limit_save_themselves_before_it(
    checkout: Checkout, tmp_path: Path
):
    # Slurm looks for jobs near their end every 30 s, so this signal comes after 90 to 120 of the
    # 180 s.
    extra = checkout.profile()["default-resources"]["slurm_extra"]
    assert "--signal=TERM@120 " in extra
    sooner = extra.replace("TERM@120", "TERM@60")
    checkout.change_profile({"retries": 6, "default-resources": {"slurm_extra": sooner}})
    checkout.write(long_study(minutes=3))
    checkout.environment["CLUSTER_STEP_SECONDS"] = "4"
    assert checkout.start("small", "runs", "--no-hooks").wait(2 * LIMIT) == 0, checkout.said()
    *cut, last = checkout.jobs()
    assert cut
    assert last["JobState"] == "COMPLETED"
    # none was let run into its limit
    assert {(job["JobState"], job["ExitCode"]) for job in cut} == {("FAILED", "1:0")}
    assert 1 <= resumed(checkout, tmp_path) <= len(cut)


def test_a_job_that_runs_into_its_time_limit_without_a_warning_is_submitted_again_and_goes_on(
    checkout: Checkout, tmp_path: Path
):
    # Slurm looks every 30 s, so the end comes after 60 to 90 s: SIGTERM, and SIGKILL 10 s
    # (KillWait) later.
    extra = {"slurm_extra": "'--open-mode=append'"}
    checkout.change_profile({"retries": 10, "default-resources": extra})
    checkout.write(long_study(checkpoint_seconds=0.5, minutes=1))
    # no job is long enough for all 30 steps
    checkout.environment["CLUSTER_STEP_SECONDS"] = "4"
    assert checkout.start("small", "runs", "--no-hooks").wait(2 * LIMIT) == 0, checkout.said()
    *cut, last = checkout.jobs()
    assert cut
    assert last["JobState"] == "COMPLETED"
    assert {job["JobState"] for job in cut} == {"TIMEOUT"}
    assert 1 <= resumed(checkout, tmp_path) <= len(cut)
