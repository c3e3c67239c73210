# What all rules share: the study, its paths, its software, and the functions that rules and hooks call.
import builtins
import os
import shlex
import sys
from functools import partial
from pathlib import Path
from benchmark.core.environment import visible_gpus
from benchmark.papers.fidelity import study_ledger
from benchmark.runs.folders import settle, write_spec
from benchmark.core.interrupts import Interrupt, handle_in_a_thread
from benchmark.study.model import ROOT
from benchmark.study.workflow import NEW_RESULT, NEW_SPEC, check_executor, load_flow, or_end
from snakemake_logger_plugin_runs import StudyFacts

# Contents decide what is trained, whatever dates say and Snakemake remembers. No dry run, and no job, puts anything away.
DRY_RUN = workflow.output_settings.dryrun
LOOK = partial(settle, dry_run=DRY_RUN or not workflow.is_main_process)
FLOW = or_end(lambda: load_flow(config, workflow.overwrite_configfiles, LOOK))
RUNS = FLOW.runs
RESULTS = FLOW.results
OUT = FLOW.folder
LOGS = f"{OUT}/logs"
RUN = f"{RESULTS}/runs/{{run}}"
NEW_SPECS, NEW_RESULTS = ([NEW_SPEC], [NEW_RESULT]) if DRY_RUN else ([], [])
DIGEST = FLOW.study.digest  # another one makes the steps behind the runs again

builtins.needs = lambda wildcards: FLOW.run(wildcards.run).resources  # for the profile

# A limit on GPUs is that of one machine, which may have more of them than its profile says.
if "gpu" in workflow.global_resources and len(visible_gpus()) > 1:
    workflow.register_resource("gpu", len(visible_gpus()))

# Rules call 'python': the one that runs Snakemake, unless --sdm brings another; with -P, which skips your benchmark.py.
os.environ.update(PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
ENVIRONMENT = f"../../envs/{'gpu' if FLOW.study.resources.gpus else 'cpu'}.yaml"
STORED = workflow.storage_settings.default_storage_provider  # if no shared disk
DEPLOYED = bool(workflow.deployment_settings.deployment_method)
if DEPLOYED:
    # Neither the environment nor the image holds the project itself.
    shell.prefix(f"set -euo pipefail; export PYTHONPATH={shlex.quote(str(ROOT))}; ")

    # Built from envs/apptainer.def. Snakemake refuses a path with blanks, also where no image is asked for.
    container: str(ROOT / "benchmark.sif")


if workflow.is_main_process:
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
