# What all rules share: the study, its paths, its software, and the functions that rules and hooks call.
import os
import shlex
import sys
from pathlib import Path

from snakemake.logging import logger

from benchmark.core.gpus import visible_gpus
from benchmark.papers.fidelity import study_ledger
from benchmark.runs.specs import outdated, write_spec
from benchmark.study.interrupt import Interrupt, let_signals_in
from benchmark.study.workflow import load_flow, or_end
from snakemake_logger_plugin_runs import StudyFacts

FLOW = or_end(lambda: load_flow(config, workflow.overwrite_configfiles))
if workflow.is_main_process:
    # What is wrong with papers, or not said of a recipe, is said before anything is trained.
    or_end(lambda: study_ledger(FLOW.study))
RUNS = FLOW.runs
RESULTS = FLOW.results
OUT = FLOW.folder
LOGS = f"{OUT}/logs"
RUN = f"{RESULTS}/runs/{{run}}"

# Snakemake asks for none of them once the final runs are known, so that a trial that is missing would stay so.
TRIALS = FLOW.paths(RUNS, "result.json") if FLOW.study.trials else []

# Parameters of the steps behind the runs: the study, and a digest of its file that makes them run again.
ARGUMENTS = FLOW.arguments
DIGEST = FLOW.study.digest

# A limit on GPUs is that of one machine, which may have more of them than its profile says.
if "gpu" in workflow.global_resources and len(visible_gpus()) > 1:
    workflow.register_resource("gpu", len(visible_gpus()))

# Rules call 'python': the one that runs Snakemake, unless --sdm brings another.
PATH = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
os.environ.update(PATH=os.pathsep.join(PATH))
ENVIRONMENT = (
    "../../envs/gpu.yaml" if FLOW.study.resources.gpus else "../../envs/cpu.yaml"
)
IMAGE = str(Path(workflow.basedir) / "benchmark.sif")  # built from envs/apptainer.def
DEPLOYED = bool(workflow.deployment_settings.deployment_method)
if DEPLOYED:  # neither the environment nor the image holds the project itself
    shell.prefix(
        f"set -euo pipefail; export PYTHONPATH={shlex.quote(str(workflow.basedir))}; "
    )

# What lies on the disk counts by its content: where it is of another specification, the run is as good as forced,
# whatever the dates say and whether or not Snakemake remembers it. The job of one run has nothing to decide.
FINAL = or_end(lambda: FLOW.final_runs)
OUTDATED = set()
if workflow.is_main_process:
    OUTDATED.update(or_end(lambda: outdated({**RUNS, **FINAL}, RESULTS)))


def as_if_forced(path):
    """Make a file anew, as --forcerun does, and add no input.

    Snakemake has no public way to say that a file is outdated by its content: parameters count only where it remembers
    the old ones, dates say nothing of a restored file, and --forcerun belongs to the command line.
    """
    workflow.dag.forcefiles.add(path)
    return []


def outdated_spec(wildcards):
    path = f"{RUN}/spec.json".format(run=wildcards.run)
    return as_if_forced(path) if path in OUTDATED else []


def outdated_selection(wildcards):
    path = FLOW.selected
    outdated = workflow.is_main_process and path.is_file() and not FLOW.is_current
    return as_if_forced(path.as_posix()) if outdated else []


def write_specification(run, log):
    """Write a run's specification."""
    changed = write_spec(FLOW.run(run), Path(RESULTS))
    Path(log).write_text(
        f"specification {FLOW.run(run).digest} {'written' if changed else 'unchanged'}\n"
    )


def of_all_runs(name):
    """Return the file of every run, as an input; of a study with trials, of every run that they lead to."""
    if not FLOW.study.trials:
        return FLOW.files(name)

    def files(wildcards):
        checkpoints.select.get()
        return FLOW.files(name)

    return files


# A server that is away fails no study, but what it missed is not done: the list stays empty, and the next call
# imports again.
def missed_import(wildcards):
    path = Path(f"{OUT}/imported.txt")
    missed = workflow.is_main_process and path.is_file() and not path.stat().st_size
    return as_if_forced(path.as_posix()) if missed else []


def last_words(finished):
    """Return what a person wants to read when the workflow ends, warnings of the import into MLflow included."""
    from benchmark.report.summary import last_words as words

    log = Path(f"{LOGS}/import_runs.log")
    return words(lambda: FLOW.reported, Path(RESULTS), log, finished=finished)


def words_after_interrupt():
    """Return what Ctrl-C leaves, and how to go on."""
    from benchmark.report.summary import words_after_interrupt as words

    return words(FLOW.study, Path(RESULTS))
