"""What a command and the fork server must agree on, and the request that passes between them.

A fork gets the environment of its command, so nearly all variables act as in a process of its
own: where data and caches lie, the study, proxies, the prompt of a shell. Not so those that are
read when Python starts or a library is imported, because the server has done that already.
"""

import os
import sys
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from benchmark.core.environment import FORK_SERVER

VARIABLE = FORK_SERVER.name
OFF = "off"
THREADS = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
# The verbs that are forked, besides 'train': the steps of the workflow that take a few seconds.
STEPS = ("collect", "select", "build")
# Variables that must be equal on both sides, with the reason.
READ_AT_START = {
    "PYTHON*": "which code Python imports, and how",
    "BENCHMARK_PLUGINS": "which losses are imported",
    "LD_*": "which libraries are loaded",
    "GLIBC_*": "memory functions and vector instructions of the C library",
    "MALLOC_*": "memory functions",
    "LANG": "encoding of file names",
    "LC_*": "encoding of file names",
    "OMP_*": "threads, whose number changes the last bits of sums",
    "GOMP_*": "threads",
    "KMP_*": "threads",
    "MKL_*": "threads and vector instructions",
    "OPENBLAS_*": "threads and vector instructions",
    "ATEN_*": "vector instructions of torch",
    "ONEDNN_*": "vector instructions of torch",
    "DNNL_*": "vector instructions of torch",
    "NPY_*": "vector instructions of numpy",
    "FAISS_*": "vector instructions of faiss",
    "*TORCH*": "kernels and memory of torch, and where it keeps weights",
    "CU*": "GPUs, their kernels and libraries (CUDA, cuBLAS, cuDNN)",
    "NVIDIA_*": "GPUs",
    "TIMM_*": "kernels of timm",
    "HF_*": "where weights lie and come from",
    "HUGGINGFACE_*": "where weights lie and come from",
    "XDG_*": "where caches of weights lie",
    "HOME": "where caches of weights lie",
    "MPL*": "how matplotlib draws",
}


@dataclass(frozen=True)
class Request:
    """What a command asks for: to be run in a fork, with the ``arguments`` of its own.

    ``at_start`` is what the command itself started with.
    """

    arguments: list[str]
    folder: str
    environment: dict[str, str]
    at_start: dict[str, str]


def facts_at_start() -> dict[str, str]:
    """Return what this process started with, and a process forked from another one would not."""
    variables = {
        name: value
        for name, value in os.environ.items()
        if any(fnmatchcase(name, pattern) for pattern in READ_AT_START)
    }
    package = str(Path(__file__).parents[2])
    return {**variables, "environment of Python": sys.prefix, "folder of the code": package}
