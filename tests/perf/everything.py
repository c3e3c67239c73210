"""All parts of the benchmark in one process, written as they come; a part that fails loses no other's results."""

from __future__ import annotations

import importlib
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import torch

from benchmark.core.errors import BenchmarkError
from benchmark.core.provenance import git_state, hardware, packages
from perf.sections import Section, load, write_all
from perf.targets import overview

# Modules of this package with ``section(out, *, quick, show) -> Section``, in the order of the report.
PARTS = ("losses", "large_class", "backbone", "evaluation", "reading", "throughput", "workflow")


def run(out: Path, *, quick: bool, threads: int, show: Callable[[str], None]) -> Path:
    """Measures every part with ``threads`` threads and returns the path of the Markdown report in ``out``.

    The report is written anew after each part, so that an interrupted benchmark leaves what it has. BenchmarkError
    at the end names the parts that failed; the report does too.
    """
    out, machine = Path(out), _machine(threads, quick)
    sections: list[Section] = []
    notes, failed = [], []
    path = out / "bench.md"
    for number, name in enumerate(PARTS, 1):
        show(f"{number}/{len(PARTS)} {name} ...")
        _restore(threads)
        began = time.monotonic()
        try:
            sections.append(
                importlib.import_module(f"perf.{name}").section(out, quick=quick, show=show)
            )
        except Exception as error:
            show(traceback.format_exc())
            failed.append(f"{name}: {type(error).__name__}: {str(error).strip()}")
            (out / f"{name}.csv").unlink(
                missing_ok=True
            )  # of an earlier run: it would pass for this one's
        notes.append(f"{name} {time.monotonic() - began:.0f} s")
        show(f"  {notes[-1]}")
        path = write_all([*_targets(sections), *sections], out, _head(machine, notes, failed))
    if failed:
        raise BenchmarkError(
            "\n  ".join([f"parts of the benchmark failed, the others are in {path}:", *failed])
        )
    return path


def _restore(threads: int) -> None:
    """Undoes what a part may have set for the whole process."""
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(False)


def _targets(sections: list[Section]) -> list[Section]:
    """Returns the overview of all targets, or nothing as long as there are none."""
    rows = [row for section in sections for row in overview(section.name, section.targets)]
    met = sum(row["met"] == "yes" for row in rows)
    note = (
        f"{met} of {len(rows)} met. Of several measurements the worst is shown; `where` says which."
    )
    return [Section("targets", "Targets", note, rows)] if rows else []


def _head(machine: str, notes: list[str], failed: list[str]) -> str:
    parts = [machine, f"Measured: {', '.join(notes)}."]
    if failed:
        parts.append(
            "**Failed, and not below:**\n\n"
            + "\n".join(f"- {' '.join(text.split())}" for text in failed)
        )
    return "\n\n".join(parts)


def _machine(threads: int, quick: bool) -> str:
    facts, versions = hardware(), packages()
    names = (
        "python",
        "torch",
        "numpy",
        "pytorch-metric-learning",
        "timm",
        "torchvision",
        "faiss-cpu",
    )
    return (
        f"{facts.cpu}, {facts.usable_cores} cores, {facts.memory_gb} GB; {threads} threads; "
        + ", ".join(f"{name} {versions[name]}" for name in names if name in versions)
        + f"; commit {git_state() or 'unknown'}; load at the start {load():.1f}."
        + (
            " Quick: fewer sizes and repeats; no trainings on JPEGs, no studies, no 136,093 items."
            if quick
            else ""
        )
    )
