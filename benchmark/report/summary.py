"""The last words of a workflow: runs by status, verdicts, and where the report lies."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from benchmark.core.errors import BenchmarkError
from benchmark.core.records import FAILED, IMPORTED, PAGE, STATE
from benchmark.runs.folders import count_by_status, end_of_log, states_of
from benchmark.runs.plan import TROUBLES
from benchmark.study import Study
from benchmark.verdicts.explain import summary_text
from benchmark.verdicts.judging import read_verdicts

LINES = 30  # of the log of the import


def last_words(
    reported: Callable[[], Study],
    results: Path,
    log: Path,
    asked: Callable[[], Iterable[str]],
    finished: bool,
) -> str:
    """Return ``closing_words``, or the error, and the import's log; or the files ``asked`` for."""
    if finished and (files := sorted(asked())):
        return "\n".join(f"there: {file}" for file in files)
    try:
        lines = [closing_words(reported(), results, finished=finished)]
    except BenchmarkError as error:
        lines = [str(error)]
    lines += end_of_log(log)[-LINES:]
    return "\n".join(lines).rstrip()


def closing_words(study: Study, results: Path, *, finished: bool) -> str:
    """Return what a person wants to read at the end; ``finished`` is False after a failure."""
    states = states_of(study, results)
    words = ", ".join(
        f"{number} {status}" for status, number in count_by_status(states).items() if number
    )
    lines = ["", f"study {study.name}: {len(states)} runs: {words}"]
    troubled = [(run, state) for run, state in states if state.status in TROUBLES]
    lines += [f"  {each.status} {run.spec.run_id}: {each.reason}" for run, each in troubled[:10]]
    verdicts = study.folder(results) / "verdicts.csv"
    if verdicts.is_file():
        lines += ["", summary_text(read_verdicts(verdicts)), ""]
    imported = study.folder(results) / IMPORTED
    lines += imported.read_text("utf-8").splitlines()[-1:] if imported.is_file() else []
    report = study.folder(results) / PAGE
    if report.is_file():
        state = "report" if finished else "report (with what there is)"
        lines.append(f"{state}: {report.resolve()}")
    lines += [f"not made: {line}" for line in failed(study.folder(results))]
    if not finished:
        lines.append(
            "the study did not finish; the same command continues it, finished runs are kept"
        )
    return "\n".join(lines)


def failed(folder: Path) -> list[str]:
    """Return what could not be made of what lies in a study's folder, a line each."""
    path = folder / FAILED
    return path.read_text("utf-8").splitlines() if path.is_file() else []


def words_after_interrupt(study: Study, results: Path) -> str:
    """Return what Ctrl-C leaves: finished runs, runs with a saved state, and how to go on."""
    runs = states_of(study, results)
    unfinished = [run for run, state in runs if not state.result]
    saved = sum((results / run.spec.folder / STATE).is_dir() for run in unfinished)
    of_make = "; what make reports next is this stop" if "MAKELEVEL" in os.environ else ""
    return (
        f"stopped: {len(runs) - len(unfinished)} of {len(runs)} runs are finished, "
        f"{saved} more have saved their state\nnothing is lost; the same command continues{of_make}"
    )
