# Every loss x dataset x batch size x seed of a study, up to its report.
#   snakemake --profile workflow/profiles/local                        the study 'embedded'
#   snakemake --profile slurm --config study=smoke                     another study, on a cluster
#   snakemake --profile workflow/profiles/local --configfile my.yaml   a study file of your own
# What is run comes from benchmark.study; what it needs, from benchmark.grid. This file has no logic.
import os
import sys
from pathlib import Path

from benchmark.flow import load_for_workflow
from benchmark.specs import write_spec
from benchmark.warm.starter import WarmStarter

FLOW = load_for_workflow(config, workflow.overwrite_configfiles)
RUNS = FLOW.runs
PYTHON = sys.executable
TRAINER = os.environ.get("BENCHMARK_PYTHON", PYTHON)  # for training alone, on clusters with container images
STUDY = str(FLOW.study.path)
RESULTS = FLOW.results
OUT = FLOW.folder
RUN = RESULTS + "/runs/{run}/"


wildcard_constraints:
    run=r"[^/]+/[^/]+/[^/]+/bs\d+/seed\d+",


localrules:
    all, runs, spec, import_runs, collect, stats, verdicts, claims, tables, figures, report, check,


# The store is made before any run starts, and here rather than in a rule: a rule that training depended on
# would make the runs that two studies share belong to one of them, and train them again for the other.
# Runs on this machine are forked from a process that has everything imported; it stops with the workflow.
WARM = WarmStarter()


onstart:
    # Snakemake's limit of 100 jobs a second costs more than it saves: each finished job adds a timer that wakes the
    # scheduler every second, so that after a thousand jobs it does little else.
    workflow.scheduler.job_rate_limiter = None
    if workflow.local_exec:
        WARM.start()
    FLOW.attempt("track", "prepare")


onsuccess:
    WARM.stop()


# After a failed run the tables and the report are built from what there is, and name what is missing.
onerror:
    WARM.stop()
    FLOW.attempt("finish")


# Every run is asked for by itself: the report of a failed study stands for no run that is still missing.
rule all:
    default_target: True
    input:
        FLOW.files("result.json"),
        OUT + "/report/index.html",
        OUT + "/imported.txt",


include: "workflow/rules/runs.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/analyses.smk"
