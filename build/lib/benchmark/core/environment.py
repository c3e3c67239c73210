"""The environment variables of the suite: their names, meanings and defaults, all in one place."""

import fcntl
import os
import shutil
import subprocess
import tempfile
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


VISIBLE = "CUDA_VISIBLE_DEVICES"
# Kept open: a lock ends with the process, however that ends.
_locks: list[int] = []


def visible_gpus() -> list[str]:
    """Return the names of the GPUs that this process may use, as CUDA_VISIBLE_DEVICES has them."""
    if VISIBLE in os.environ:
        return [name for name in os.environ[VISIBLE].split(",") if name.strip() not in ("", "-1")]
    if shutil.which("nvidia-smi") is None:
        return []
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False)
    lines = [line for line in listed.stdout.splitlines() if line.startswith("GPU ")]
    return [str(number) for number in range(len(lines))]


def take_gpus(count: int, folder: Path | None = None) -> list[str]:
    """Take ``count`` GPUs that no other run of this user has, for as long as the process lives.

    It sees no others from then on. Where fewer are free, or there is one alone, nothing is taken
    and the runs share. Return what was taken. ``folder``: of the locks.
    """
    names = visible_gpus()
    if len(names) < 2 or "SLURM_JOB_ID" in os.environ:
        return []
    folder = folder or Path(tempfile.gettempdir(), f"ranking-losses-gpus-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    taken: dict[str, int] = {}
    for name in names:
        if len(taken) == count:
            break
        lock = os.open(folder / f"{name.strip().replace('/', '_')}.lock", os.O_CREAT | os.O_RDWR)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            taken[name] = lock
        except OSError:
            os.close(lock)
    if len(taken) < count:
        for lock in taken.values():
            os.close(lock)
        return []
    _locks.extend(taken.values())
    os.environ[VISIBLE] = ",".join(taken)
    return list(taken)
