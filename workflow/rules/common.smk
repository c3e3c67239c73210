# What all rules share: the study, its paths, its software, and the functions that rules and hooks call.
import os
import shlex
import sys
from functools import partial
from pathlib import Path
from benchmark.core.environment import visible_gpus
from benchmark.published.fidelity import study_ledger
from benchmark.runs.folders import write_spec
from benchmark.study.model import ROOT
from snakemake_logger_plugin_runs.inside import hand_to_profiles
from study_flow import NEW_RESULT, NEW_SPEC, load_flow, or_end

# Contents decide what is trained, whatever dates say and Snakemake remembers. No dry run, and no job, puts anything away.
DRY_RUN = INSIDE.is_dry_run
FLOW = or_end(lambda: load_flow(config, INSIDE.config_files, DRY_RUN or not INSIDE.is_main))
RUNS = FLOW.runs
RESULTS = FLOW.results
OUT = FLOW.folder
LOGS = f"{OUT}/logs"
RUN = f"{RESULTS}/runs/{{run}}"
NEW_SPECS, NEW_RESULTS = ([NEW_SPEC], [NEW_RESULT]) if DRY_RUN else ([], [])
DIGEST = FLOW.study.digest  # another one makes the steps behind the runs again

needs = lambda wildcards: FLOW.run(wildcards.run).resources  # of rules and profiles
hand_to_profiles(needs=needs)
# A limit on GPUs is that of one machine, which may have more of them than its profile says.
INSIDE.offer_gpus(len(visible_gpus()))

# Rules call 'python': the one that runs Snakemake, unless --sdm brings another; with -P, which skips your benchmark.py.
os.environ.update(PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
ENVIRONMENT = f"../../envs/{'gpu' if FLOW.study.resources.gpus else 'cpu'}.yaml"
if INSIDE.is_deployed:
    # Neither the environment nor the image holds the project itself.
    shell.prefix(f"set -euo pipefail; export PYTHONPATH={shlex.quote(str(ROOT))}; ")

    # Built from envs/apptainer.def. Snakemake refuses a path with blanks, also where no image is asked for.
    container: str(ROOT / "benchmark.sif")


if INSIDE.is_main:
    # What is wrong with papers, or not said of a recipe, is said before anything is trained.
    or_end(lambda: study_ledger(FLOW.study))
    FLOW.settle_all(logger.warning)
    if not DRY_RUN:
        FLOW.forget_failures()

# Snakemake asks for none of them once the final runs are known, so that a trial that is missing would stay so.
TRIALS = FLOW.paths(RUNS, "result.json") if FLOW.study.trials else []


def shown(path, kind, *patterns, **labels):
    """Return an output, or the files of a folder, for Snakemake's own report (--report)."""
    return report(path, f"../report/{kind.lower()}.rst", kind, labels=labels, patterns=[*patterns])


def in_results(above, asked=FLOW.arguments_in):
    """Return the function for a verb's arguments: the study, and the results folder its outputs and inputs lie in."""
    return lambda wildcards, output: asked(Path(output[0]).parents[above])


def of_all_runs(name):
    """Return the file of every run, as an input; of a study with trials, of every run that they lead to."""

    def files(wildcards):
        if FLOW.study.trials:
            checkpoints.select.get()
        return FLOW.files(name)

    return files


RECORDS = ("result.json", "metrics.jsonl", "provenance.json")  # of every finished run
FINISHED = [of_all_runs(name) for name in RECORDS]
