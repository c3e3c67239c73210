"""What computed a number: platform, hardware and packages, without names of people or machines.

Importing this module does not import torch. A GPU is recognised only if torch is already loaded.
"""

import contextlib
import functools
import hashlib
import importlib.metadata
import os
import platform
import sys
from pathlib import Path

from benchmark.core.environment import NATIVE, PORTABLE, available_cores
from benchmark.core.results import Hardware

PACKAGES = (
    "torch",
    "torchvision",
    "timm",
    "pytorch-metric-learning",
    "faiss-cpu",
    "faiss-gpu-cu12",
    "numpy",
    "scipy",
    "pandas",
    "statsmodels",
    "pillow",
    "matplotlib",
    "snakemake",
    "snakemake-executor-plugin-slurm",
    "mlflow",
)


def platform_label() -> str:
    """Return the platform, ``linux-x86_64-py3.11-torch2.13-cpu``; others may round differently."""
    system = f"{platform.system().lower()}-{platform.machine()}"
    python = f"py{sys.version_info.major}.{sys.version_info.minor}"
    torch = ".".join(importlib.metadata.version("torch").split(".")[:2])
    device = "cuda" if _cuda() else "cpu"
    return f"{system}-{python}-torch{torch}-{device}"


def hardware() -> Hardware:
    """Return processor, cores (present and usable), memory in GB and the GPUs that torch uses."""
    cpu = platform.processor() or platform.machine()
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
        cpu = names[0] if names else platform.machine()
    gpus: list[str] = []
    if _cuda():
        torch = sys.modules["torch"]
        gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return Hardware(cpu, os.cpu_count(), available_cores(), round(memory, 1), gpus)


def kernels() -> str:
    """Return the kind of kernels and torch's vector instructions: ``portable AVX2``.

    Native kernels depend on the processor. Portable kernels do not, if torch reports AVX2. With a
    GPU, return ``cuda``. Torch must be loaded.
    """
    if _cuda():
        return "cuda"
    chosen = "portable" if os.environ.items() >= PORTABLE.items() else NATIVE
    return f"{chosen} {sys.modules['torch'].backends.cpu.get_cpu_capability()}"


@functools.cache
def packages() -> dict[str, str]:
    """Return the versions of Python and of the packages that matter for numbers or figures."""
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return versions


def packages_digest() -> str:
    """Return a digest (12 hex digits) of the versions of ``packages``."""
    return hashlib.sha256(repr(sorted(packages().items())).encode()).hexdigest()[:12]


def _cuda() -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and torch.cuda.is_available()
