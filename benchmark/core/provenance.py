"""Where a number comes from: code, platform, hardware and packages, without names of people or machines.

Importing this module does not import torch; a device is known only where torch is already loaded.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from benchmark import __version__
from benchmark.core.registry import plugin_files
from benchmark.core.results import Hardware

PACKAGE = Path(__file__).resolve().parents[1]
# What can change a number of a run: the parts that train and evaluate, and the foundations they stand on.
DECISIVE = (
    "losses",
    "datasets",
    "input",
    "models",
    "metrics",
    "training",
    "core/options.py",
    "core/recipe.py",
    "core/records.py",
    "core/seeding.py",
)
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


@functools.cache
def code_version() -> str:
    """Returns ``<package version>+<12 hex digits>``: a digest of the sources that decide a run's numbers.

    The digest covers ``DECISIVE`` and the plugin files in use, so that two runs with one code version were
    computed by the same code, in a git checkout or not, committed or not, and a change of the report or of
    the documentation does not make finished runs look old. ``git_state`` gives the commit.
    """
    digest = hashlib.sha256()
    for name, path in _decisive_files():
        content = path.read_bytes().replace(b"\r\n", b"\n")
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return f"{__version__}+{digest.hexdigest()[:12]}"


def git_state() -> str | None:
    """Returns the commit (12 hex digits), with ``-dirty`` after local changes; None outside a checkout."""
    commit = _output("git", "-C", str(PACKAGE), "rev-parse", "--short=12", "HEAD")
    if commit is None or _output("git", "-C", str(PACKAGE), "ls-files", "__init__.py") in (
        None,
        "",
    ):
        return None  # installed somewhere inside another project's checkout
    changed = _output(
        "git", "-C", str(PACKAGE), "status", "--porcelain", "--untracked-files=no", "."
    )
    return f"{commit}-dirty" if changed else commit


def platform_label() -> str:
    """Returns a short label: ``linux-x86_64-py3.11-torch2.13-cpu``; other labels may round differently."""
    python = f"py{sys.version_info.major}.{sys.version_info.minor}"
    torch_version = _version("torch")
    short = ".".join(torch_version.split("+")[0].split(".")[:2]) if torch_version else "none"
    machine = platform.machine() or "unknown"
    return f"{platform.system().lower()}-{machine}-{python}-torch{short}-{'cuda' if _cuda() else 'cpu'}"


def hardware() -> Hardware:
    """Return processor model, cores (present and usable), memory in GB and the names of the GPUs."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return Hardware(_cpu_model(), os.cpu_count(), usable, _memory_gb(), _gpu_names())


def instructions() -> str | None:
    """Returns the vector instructions that torch computes with (AVX512, AVX2, DEFAULT), None where it is not loaded.

    The processor's model does not tell them: a variable, a hypervisor or another build of torch may choose fewer.
    """
    torch = sys.modules.get("torch")
    return None if torch is None else torch.backends.cpu.get_cpu_capability()


def packages() -> dict[str, str]:
    """Returns the versions of Python and of the installed packages that matter for numbers or figures."""
    versions = {name: _version(name) for name in PACKAGES}
    found = {name: version for name, version in versions.items() if version}
    return {"python": platform.python_version(), **found}


def packages_digest() -> str:
    """Returns 12 hex digits that are others when the version of one of ``packages`` is."""
    return hashlib.sha256(repr(sorted(packages().items())).encode()).hexdigest()[:12]


def _decisive_files() -> list[tuple[str, Path]]:
    files = []
    for part in DECISIVE:
        place = PACKAGE / part
        paths = [place] if place.is_file() else sorted(place.rglob("*.py"))
        files += [(path.relative_to(PACKAGE).as_posix(), path) for path in paths]
    return files + [(f"plugin/{path.name}", path) for path in plugin_files()]


def _cuda() -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and torch.cuda.is_available()


def _gpu_names() -> list[str]:
    if _cuda():
        torch = sys.modules["torch"]
        return [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    if shutil.which("nvidia-smi") is None:
        return []
    listed = _output("nvidia-smi", "--query-gpu=name", "--format=csv,noheader")
    return listed.splitlines() if listed else []


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _memory_gb() -> float | None:
    try:
        return round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1)
    except (ValueError, OSError, AttributeError):
        return None


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _output(*command: str) -> str | None:
    """Returns what a short command prints; None when it is absent, fails or takes too long."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
