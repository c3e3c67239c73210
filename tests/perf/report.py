"""All parts of the benchmark in one process; a part that fails does not stop the others."""

from __future__ import annotations

import importlib
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import torch

from benchmark.core.code_version import code_version
from benchmark.core.errors import BenchmarkError
from benchmark.core.provenance import hardware, packages
from perf.sections import Section, load, targets_section, write_report

# modules with ``section(out, *, quick, show) -> Section``, in the order of the report
PARTS = (
    "losses",
    "large_class",
    "large_batch",
    "backbone",
    "evaluation",
    "reading",
    "throughput",
    "workflow",
)
PACKAGES = ("python", "torch", "numpy", "pytorch-metric-learning", "timm", "torchvision")


def run(out: Path, *, quick: bool, threads: int, show: Callable[[str], None]) -> Path:
    """Measure every part with ``threads`` threads; return the path of the Markdown report.

    The report is written after each part, so that an interruption loses only the rest. Raise
    BenchmarkError at the end for parts that failed; the report names them, too.
    """
    machine = _machine(threads, quick)
    sections: list[Section] = []
    times, failures = [], []
    for number, name in enumerate(PARTS, 1):
        show(f"{number}/{len(PARTS)} {name} ...")
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(False)
        start = time.monotonic()
        try:
            part = importlib.import_module(f"perf.{name}")
            sections.append(part.section(out, quick=quick, show=show))
        except Exception as error:
            show(traceback.format_exc())
            failures.append(f"{name}: {type(error).__name__}: {' '.join(str(error).split())}")
            (out / f"{name}.csv").unlink(missing_ok=True)  # of an earlier run
        times.append(f"{name} {time.monotonic() - start:.0f} s")
        show(f"  {times[-1]}")
        head = [machine, f"Measured: {', '.join(times)}."]
        if failures:
            head.append("**Failed, and not below:**\n\n" + "\n".join(f"- {f}" for f in failures))
        path = write_report([*targets_section(sections), *sections], out, "\n\n".join(head))
    if failures:
        heading = f"parts of the benchmark failed, the others are in {path}:"
        raise BenchmarkError("\n  ".join([heading, *failures]))
    return path


def _machine(threads: int, quick: bool) -> str:
    facts, versions = hardware(), packages()
    text = (
        f"{facts.cpu}, {facts.usable_cores} cores, {facts.memory_gb} GB; {threads} threads; "
        f"{', '.join(f'{name} {versions[name]}' for name in PACKAGES if name in versions)}; "
        f"code version {code_version()}; load at the start {load():.1f}."
    )
    if quick:
        text += " Quick: fewer sizes and repeats; no trainings on JPEGs, no studies."
    return text
