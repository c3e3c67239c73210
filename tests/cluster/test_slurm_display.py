"""What a person sees of a study on a cluster: in a log, and after Ctrl-C."""

from __future__ import annotations

import re
import signal

import pytest
from checkout import LIMIT, Checkout, block, study

pytestmark = pytest.mark.cluster


# What Snakemake says before it has a logger, and of a Slurm without accounts.
OF_THIS_SLURM = ("Using profile", "No SLURM account", "No account was given", "Unable to guess")


def said(checkout: Checkout) -> list[str]:
    """Return the lines of the log that are the workflow's."""
    lines = checkout.said().splitlines()
    return [line for line in lines if line and not line.startswith(OF_THIS_SLURM)]


def test_a_log_has_one_line_a_run_and_the_last_words(checkout: Checkout):
    checkout.write(study(block("main", ["smooth_ap", "roadmap"])))
    assert checkout.run("small", "runs") == 0, checkout.said()
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
