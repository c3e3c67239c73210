"""Which runs are under way and done, and what is said of each."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmark.core.results import Result
from benchmark.runs.folders import end_of_log, failure_in


@dataclass(frozen=True)
class StudyFacts:
    """What is said of a study: the number of its runs, the headline's metric, and the last words.

    ``last_words(finished)`` are called for where there is nothing to do: no hook runs then.
    ``later`` of the runs are jobs only once others have finished.
    """

    runs: int
    metric: str
    last_words: Callable[[bool], str]
    later: int = 0


@dataclass(frozen=True)
class Run:
    """A run under way: its id and the file its result is written to."""

    name: str
    result: Path


@dataclass
class Progress:
    """The runs of one workflow, by the numbers of their jobs."""

    study: StudyFacts | None = None
    step: str = ""
    total: int = 0
    done: int = 0
    failed: int = 0
    running: dict[int, Run] = field(default_factory=dict)
    _to_do: int = 0
    _begun: float = 0.0
    _last: float = 0.0

    def begin(self, to_do: int) -> None:
        """Take the number of runs to train; the other runs of the study are done."""
        self._to_do = to_do
        self.total = to_do
        if self.study:
            self._to_do += self.study.later
            self.total = self.study.runs
        self.done = self.total - self._to_do
        self._begun = time.monotonic()

    def finish_run(self, job: int) -> Run | None:
        """Return the run of a finished job; None when the job is of another rule."""
        run = self.running.pop(job, None)
        if run is not None:
            self.done += 1
            self._last = time.monotonic()
        return run

    def fail_run(self, job: int) -> Run | None:
        """Return the run of a failed job; None when the job is of another rule."""
        run = self.running.pop(job, None)
        self.failed += run is not None
        return run

    @property
    def left(self) -> int:
        """Return the number of runs that were not started yet."""
        return self.total - self.done - self.failed - len(self.running)

    def seconds_left(self) -> float | None:
        """Return the expected seconds, from the runs finished so far; None before the first."""
        finished = self._to_do - (self.total - self.done)
        if finished <= 0:
            return None
        pace = (self._last - self._begun) / finished
        return max(0.0, pace * (self.left + len(self.running)) - (time.monotonic() - self._last))

    def describe(self, run: Run) -> str:
        """Return the line of a finished run: its id, score, and how many runs are done."""
        count = f"({self.done} of {self.total})"
        if not Path(run.result).is_file():  # without a shared disk it lies elsewhere
            return f"{run.name}  finished  {count}"
        result = Result.read(run.result)
        description = f"{result.status}: {result.reason}"
        if result.status == "ok":
            split, scores = next(iter(result.metrics.last.items()))  # "test", or a protocol
            metric = self.study.metric if self.study else ""
            if metric not in scores:
                metric = next(iter(scores))
            description = f"{metric} {scores[metric]:.4f}"
            if split != "test":
                description = f"{split} {description}"
        return f"{run.name}  {description}  {count}"


def reason_of(logs: Sequence[str], message: str | None) -> str:
    """Return why a job failed, and the path of its log.

    The reason is in the log, if there is one. ``message`` is from Snakemake: a job that a cluster
    refused or killed says nothing itself.
    """
    message = " ".join((message or "").partition("sbatch call:")[0].split())
    for log in filter(os.path.exists, logs):
        lines = end_of_log(Path(log))
        last = lines[-1].strip() if lines else ""
        reason = failure_in(lines) or message or last or "ended without a word"
        return f"{reason} (see {log})"
    return message or "ended before it could write a log (see .snakemake/log)"
