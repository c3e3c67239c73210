"""Tests only, put on PYTHONPATH: what is different in the processes of a test on the cluster, and
what they note.

Snakemake asks Slurm for the state of its jobs every second, instead of after 1, 11, 21, ...
seconds. Every process of the suite writes down what it is into the folder CLUSTER_RECORDS. Training
sleeps CLUSTER_STEP_SECONDS in each step, so that there is time to interrupt it, and a run that is
not yet continued takes CLUSTER_LEAK_MB of memory at its tenth step. With CLUSTER_QUICK, training is
that of tests/workflow/quick_training.
"""

import importlib.abc
import importlib.machinery
import json
import os
import runpy
import sys
import time
from pathlib import Path

LEAK_STEP = 10
NOTED = ("SLURM_JOB_ID", "CUDA_VISIBLE_DEVICES", "BENCHMARK_FORK_SERVER", "MLFLOW_TRACKING_URI")


class _Changed(importlib.abc.MetaPathFinder):
    """Calls ``change(module)`` when the module called ``name`` has been imported."""

    def __init__(self, name, change):
        self.name = name
        self.change = change

    def find_spec(self, name, path, target=None):
        if name != self.name:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            self.change(module)

        spec.loader.exec_module = exec_module
        return spec


def _poll_often(module):
    module.RemoteExecutor.next_seconds_between_status_checks = property(
        lambda self: 1, lambda self, value: None
    )


def _step_slowly(module):
    step = module.Stepper.__call__
    seconds = float(os.environ.get("CLUSTER_STEP_SECONDS", 0))
    leak = int(os.environ.get("CLUSTER_LEAK_MB", 0))
    kept = []
    first = []

    def slow(self, images, labels, number, *rest, **more):
        first[:] = first or [number]
        time.sleep(seconds)
        if leak and not first[0] and number == LEAK_STEP:
            kept.append(b"\1" * (leak * 2**20))
            time.sleep(30)  # the job is killed meanwhile
        return step(self, images, labels, number, *rest, **more)

    module.Stepper.__call__ = slow


def _note(folder):
    facts = {"command": sys.orig_argv[1:], **{name: os.environ.get(name) for name in NOTED}}
    Path(folder, f"{time.time_ns()}-{os.getpid()}.json").write_text(json.dumps(facts))


sys.meta_path.insert(
    0, _Changed("snakemake_interface_executor_plugins.executors.remote", _poll_often)
)
sys.meta_path.insert(0, _Changed("benchmark.training.step", _step_slowly))
if os.environ.get("CLUSTER_QUICK"):
    runpy.run_path(
        str(Path(__file__).parents[2] / "workflow" / "quick_training" / "sitecustomize.py")
    )
if os.environ.get("CLUSTER_RECORDS") and any(
    word.startswith("benchmark") for word in sys.orig_argv[1:4]
):
    _note(os.environ["CLUSTER_RECORDS"])
