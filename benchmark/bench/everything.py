"""All parts of the benchmark in one process, written as they come."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

from benchmark.bench.sections import Section, load, write_all
from benchmark.provenance import git_state, hardware, packages

# Modules of this package with ``section(out, *, quick, show) -> Section``, in the order of the report.
PARTS = ("losses", "large_class", "backbone", "evaluation")


def run(out: Path, *, quick: bool, threads: int, show: Callable[[str], None]) -> Path:
    """Measures every part with ``threads`` threads and returns the path of the Markdown report in ``out``.

    The report is written anew after each part, so that an interrupted benchmark leaves what it has.
    """
    machine = _machine(threads, quick)
    sections: list[Section] = []
    path = Path(out) / "bench.md"
    for name in PARTS:
        show(f"{name} ...")
        part = importlib.import_module(f"benchmark.bench.{name}")
        sections.append(part.section(Path(out), quick=quick, show=show))
        path = write_all(sections, Path(out), machine)
    return path


def _machine(threads: int, quick: bool) -> str:
    facts, versions = hardware(), packages()
    names = ("python", "torch", "numpy", "pytorch-metric-learning")
    return (
        f"{facts['cpu']}, {facts['usable_cores']} cores, {facts['memory_gb']} GB; {threads} threads; "
        + ", ".join(f"{name} {versions[name]}" for name in names if name in versions)
        + f"; commit {git_state() or 'unknown'}; load at the start {load():.1f}."
        + (" Quick: fewer sizes and repeats than the full benchmark." if quick else "")
    )
