"""Every run is a Slurm job of its own, with what its study asks for; what a person sees of them."""

from __future__ import annotations

import os
import re
import signal
import subprocess

import pytest
from checkout import LIMIT, Checkout, block, study

pytestmark = pytest.mark.cluster

TWO_NEEDS = study(
    block("with_gpu", ["smooth_ap"], resources={"gpus": 1, "mem_mb": 900, "minutes": 70}),
    block("without", ["sup_ap"], resources={"gpus": 0, "mem_mb": 700, "minutes": 30}),
)


def registered_account(checkout: Checkout, name: str) -> None:
    """Stands in for the accounting database, which Snakemake asks whether the account exists."""
    program = checkout.folder / "bin" / "sacctmgr"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho {name}\n")
    program.chmod(0o755)
    checkout.environment["PATH"] = f"{program.parent}{os.pathsep}{os.environ['PATH']}"


def test_a_run_is_a_job_that_asks_for_what_its_study_says(checkout: Checkout):
    registered_account(checkout, "science")
    checkout.change_profile({"default-resources": {"slurm_account": "science"}})
    checkout.write(TWO_NEEDS)
    checkout.environment["CLUSTER_QUICK"] = "yes"
    assert checkout.run("small", "runs", "results/small/runs.csv", "--no-hooks") == 0, (
        checkout.said()
    )

    jobs = {job["Comment"].split("_smoke_")[1]: job for job in checkout.jobs()}
    assert set(jobs) == {"smooth_ap_bs32_seed0", "sup_ap_bs32_seed0"}, "collecting is no job"
    with_gpu = jobs["smooth_ap_bs32_seed0"]
    without = jobs["sup_ap_bs32_seed0"]
    assert [with_gpu[key] for key in ("TimeLimit", "MinMemoryNode")] == ["01:10:00", "900M"]
    assert [without[key] for key in ("TimeLimit", "MinMemoryNode")] == ["00:30:00", "700M"]
    assert "gpu" in with_gpu["TresPerJob"]
    assert "TresPerJob" not in without
    for job in jobs.values():
        assert [job[key] for key in ("Account", "Partition", "Requeue")] == ["science", "gpu", "1"]
        assert job["JobName"].startswith("ranking-losses_")

    trained = {
        record["SLURM_JOB_ID"]: record
        for record in checkout.records()
        if "train" in record["command"]
    }
    assert set(trained) == {job["JobId"] for job in jobs.values()}
    assert trained[with_gpu["JobId"]]["CUDA_VISIBLE_DEVICES"] in ("0", "1")
    others = [record for record in checkout.records() if "train" not in record["command"]]
    assert others
    assert all(record["SLURM_JOB_ID"] is None for record in others)


def test_what_the_cluster_refuses_is_said_and_harms_no_other_run(checkout: Checkout):
    checkout.change_profile({"retries": 0})
    blocks = block("fits", ["smooth_ap"]), block("too_big", ["sup_ap"], resources={"mem_mb": 10**7})
    checkout.write(study(*blocks))
    checkout.environment["CLUSTER_QUICK"] = "yes"
    assert checkout.run("small", "runs", "--no-hooks") == 1
    assert "Memory specification can not be satisfied" in checkout.said()
    results = list(checkout.folder.glob("results/runs/*/*/*/*/*/result.json"))
    assert [path.parts[-4] for path in results] == ["smooth_ap"]


def test_a_run_that_fails_is_tried_again_and_then_named_with_its_log(checkout: Checkout):
    checkout.change_profile({"retries": 1})
    checkout.write(study(block("main", ["smooth_ap"]), seeds=2))
    checkout.environment |= {"CLUSTER_QUICK": "yes", "QUICK_TRAINING_FAILS": "bs32/seed1"}
    assert checkout.run("small") == 1
    assert sorted(job["Comment"][-5:] for job in checkout.jobs()) == ["seed0", "seed1", "seed1"]
    page = (checkout.folder / "results" / "small" / "report" / "index.html").read_text()
    assert "the training broke on purpose" in page

    del checkout.environment["QUICK_TRAINING_FAILS"]
    assert checkout.run("small", "runs", "--no-hooks") == 0, checkout.said()
    assert len(checkout.jobs()) == 4, "only what is missing is trained"


def test_a_job_that_starts_again_after_its_run_has_finished_leaves_the_result(checkout: Checkout):
    checkout.change_profile({"slurm-keep-successful-logs": True})  # or the job has no folder for it
    checkout.write(study(block("main", ["smooth_ap"])))
    checkout.environment["CLUSTER_QUICK"] = "yes"
    assert checkout.run("small", "runs", "--no-hooks") == 0, checkout.said()
    before = checkout.files_with_dates()
    (job,) = checkout.jobs()
    subprocess.run(["scontrol", "requeue", job["JobId"]], check=True)
    checkout.wait_for(lambda: checkout.jobs()[0]["JobState"] != "COMPLETED")
    checkout.wait_for(lambda: checkout.jobs()[0]["JobState"] in ("COMPLETED", "FAILED"))
    assert [(job["JobState"], job["Restarts"]) for job in checkout.jobs()] == [("COMPLETED", "1")]
    assert checkout.files_with_dates() == before


# What Snakemake says before it has a logger, and of a Slurm without accounts.
OF_THIS_SLURM = (
    *("Using profile", "planning the study's runs"),
    *("No SLURM account", "No account was given", "Unable to guess"),
)


def said(checkout: Checkout) -> list[str]:
    """Return the lines of the log that are the workflow's."""
    lines = checkout.said().splitlines()
    return [line for line in lines if line and not line.startswith(OF_THIS_SLURM)]


def test_a_log_has_one_line_a_run_and_no_fork_server_is_started_for_jobs_elsewhere(
    checkout: Checkout,
):
    checkout.write(study(block("main", ["smooth_ap", "roadmap"])))
    assert checkout.run("small", "runs") == 0, checkout.said()
    commands = [" ".join(record["command"]) for record in checkout.records()]
    assert any("benchmark train" in command for command in commands)
    assert not any("benchmark.training.fork_server" in command for command in commands)
    assert all(record["BENCHMARK_FORK_SERVER"] is None for record in checkout.records())
    first, second, *rest = said(checkout)
    for number, line in enumerate((first, second), start=1):
        assert re.fullmatch(rf"glyphs_tiny/\S+  recall_at_1 0\.\d{{4}}  \({number} of 2\)", line)
    assert rest[0] == "study small: 2 runs: 2 ok"


def test_ctrl_c_cancels_the_jobs_and_says_how_to_go_on(checkout: Checkout):
    long = {"option": "long", "override": {"training": {"epochs": 200}}}
    checkout.write(study(block("main", ["smooth_ap"], **long)))
    checkout.environment["CLUSTER_STEP_SECONDS"] = "0.3"
    process = checkout.start("small", "runs")
    checkout.wait_for_an_epoch()
    process.send_signal(signal.SIGINT)
    assert process.wait(LIMIT) != 0
    assert said(checkout) == [
        "stopping: no more runs are started, those under way finish or save their state",
        *[line for line in said(checkout) if re.fullmatch(r"stopped: 0 of 1 runs .*", line)],
        "nothing is lost; the same command continues",
    ]
    checkout.wait_for(lambda: {job["JobState"] for job in checkout.jobs()} == {"CANCELLED"})
