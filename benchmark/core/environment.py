"""The environment variables of the suite: their names, meanings and defaults, all in one place."""

import os
from dataclasses import dataclass
from pathlib import Path

from benchmark.core.records import RESULTS


@dataclass(frozen=True)
class Variable:
    """An environment variable; ``default`` is what holds where it is unset or empty, in words."""

    name: str
    meaning: str
    default: str

    def value(self) -> str:
        """Return the value without blanks around it; empty where the variable is unset."""
        return os.environ.get(self.name, "").strip()


CACHE = Variable(
    "BENCHMARK_CACHE",
    "folder of what is computed once per machine: index tables, glyphs, features of frozen "
    "networks, the catalogue of losses, facts of weights",
    "results/cache",
)
DATA = Variable(
    "BENCHMARK_DATA", "folder with the published datasets, each in a folder of its own name", "data"
)
PLUGINS = Variable(
    "BENCHMARK_PLUGINS",
    "folders with losses, samplers, tables, papers and other components of yours, separated like "
    "PATH",
    "none",
)
STUDY = Variable(
    "BENCHMARK_STUDY",
    "experiment on the MLflow server that a training logs to; the workflow sets it",
    "runs do not log while they train",
)
FORK_SERVER = Variable(
    "BENCHMARK_FORK_SERVER",
    "socket of the process that runs are forked from, set by the workflow; 'off' starts "
    "each in a process of its own",
    "the workflow starts one",
)
TEST_ARTIFACTS = Variable(
    "BENCHMARK_TEST_ARTIFACTS",
    "folder where browser tests keep pictures for people",
    "results/test-artifacts",
)
TRACKING_URI = Variable(
    "MLFLOW_TRACKING_URI",
    "address of an MLflow server or store to show runs in",
    "mlflow.db in the folder of the results",
)
VARIABLES = (CACHE, DATA, PLUGINS, STUDY, FORK_SERVER, TEST_ARTIFACTS, TRACKING_URI)


def is_server(uri: str) -> bool:
    """Say whether ``uri`` is a tracking server rather than a local store."""
    return uri.startswith(("http://", "https://"))


def available_cores() -> int:
    """Return the CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cache_folder() -> Path:
    """Return the folder of things that are computed once per machine."""
    return Path(CACHE.value() or RESULTS / "cache")
