"""The environment variables of the suite, and the cores and GPUs of the machine."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

# docs/studies.md explains them.
CACHE = "BENCHMARK_CACHE"
DATA = "BENCHMARK_DATA"
PLUGINS = "BENCHMARK_PLUGINS"
STUDY = "BENCHMARK_STUDY"
FORK_SERVER = "BENCHMARK_FORK_SERVER"
TRACKING_URI = "MLFLOW_TRACKING_URI"
NUMERICS = "BENCHMARK_NUMERICS"
NATIVE = "native"
# Kernels that give the same bits on every x86-64 processor with AVX2 (docs/robustness.md). The
# libraries of torch, numpy and faiss read these variables once, when they load.
PORTABLE = {
    "MKL_CBWR": "COMPATIBLE",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "ATEN_CPU_CAPABILITY": "avx2",
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
    "FAISS_SIMD_LEVEL": "AVX2",
}


def value_of(variable: str) -> str:
    """Return the value of an environment variable without blanks around it; "" if it is unset."""
    return os.environ.get(variable, "").strip()


def is_server(uri: str) -> bool:
    """Return whether ``uri`` is a tracking server, not a local store."""
    return uri.startswith(("http://", "https://"))


def choose_kernels() -> None:
    """Choose portable kernels, unless BENCHMARK_NUMERICS is native or there is a GPU.

    Call this before numpy, torch or faiss is imported.
    """
    if value_of(NUMERICS) != NATIVE and not visible_gpus():
        os.environ.update(PORTABLE)


def available_cores() -> int:
    """Return the CPU cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cache_folder() -> Path:
    """Return the folder of results that are computed once per machine."""
    return Path(value_of(CACHE) or "results/cache")


VISIBLE = "CUDA_VISIBLE_DEVICES"
_locks: list[Any] = []  # a lock lasts as long as its object


def visible_gpus() -> list[str]:
    """Return the names of the GPUs that this process may use, as CUDA_VISIBLE_DEVICES has them."""
    if VISIBLE in os.environ:
        return [name for name in os.environ[VISIBLE].split(",") if name.strip() not in ("", "-1")]
    if shutil.which("nvidia-smi") is None:
        return []
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False)
    lines = [line for line in listed.stdout.splitlines() if line.startswith("GPU ")]
    return [str(number) for number in range(len(lines))]


def take_gpu() -> str | None:
    """Take a GPU that no other run of this user has, until the process ends; return its name.

    The process then sees only this GPU. If none is free, or the machine has a single GPU, take
    none, and runs share GPUs.
    """
    from filelock import FileLock, Timeout

    names = visible_gpus()
    if len(names) < 2 or "SLURM_JOB_ID" in os.environ:
        return None
    folder = Path(tempfile.gettempdir(), f"ranking-losses-gpus-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    for name in names:
        lock = FileLock(folder / f"{name.strip().replace('/', '_')}.lock")
        with contextlib.suppress(Timeout):
            lock.acquire(blocking=False)
            _locks.append(lock)
            os.environ[VISIBLE] = name
            return name
    return None
