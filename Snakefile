# Every loss x dataset x batch size x seed of a study, up to its report.
#   snakemake --profile workflow/profiles/local                        the study 'embedded'
#   snakemake --profile slurm --config study=smoke                     another study, on a cluster
#   snakemake --profile workflow/profiles/local --configfile my.yaml   a study file of your own
# What is run comes from benchmark.study; what it needs, from benchmark.study.grid. This file has no logic.
import os
import sys
from pathlib import Path

from benchmark.study.workflow import load_for_workflow
from benchmark.runs.specs import write_spec

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
    all, runs, spec, import_runs, collect, stats, verdicts, claims, gallery, tables, figures, report, check,


# Every run is asked for by itself: the report of a failed study stands for no run that is still missing.
rule all:
    default_target: True
    input:
        FLOW.files("result.json"),
        OUT + "/report/index.html",
        OUT + "/imported.txt",


include: "workflow/rules/hooks.smk"
include: "workflow/rules/runs.smk"
include: "workflow/rules/analyses.smk"
include: "workflow/rules/report.smk"
