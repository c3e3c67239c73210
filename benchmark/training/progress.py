"""Show the progress of a run: a bar on a terminal, lines in a log, metrics on a tracking server.

MLflow is never imported here, and no error of a server reaches the training. A run is sent to a
server while it trains if MLFLOW_TRACKING_URI is the address of a server, and BENCHMARK_STUDY is the
name of the study (the workflow sets it). A local store gets its runs only by the import.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tqdm import tqdm

from benchmark.core.environment import STUDY, TRACKING_URI, is_server, value_of
from benchmark.core.results import EpochRecord

HEADLINES = ("recall_at_1", "map_at_r")  # metrics in the line of an epoch
LOGGER = "benchmark.runs.tracking"  # a name, because training must not import the package runs
SOON = 5.0  # seconds: the import brings in shorter runs
# Starts in milliseconds, waits, and becomes the process that logs unless the run ends before.
WAIT = """
import os, select, sys
select.select([0], [], [], {})[0] or os.execv(sys.argv[1], sys.argv[1:])
"""
# longest wait for that process after the run: seconds, and share of the run's time
AFTERWARDS = 5.0
SMALL_SHARE = 0.03


class Progress:
    """Shows steps on a terminal and one line per epoch everywhere."""

    def __init__(self, title: str, epochs: int):
        self.title = title
        self.epochs = epochs
        self._bar: tqdm | None = None

    def say(self, text: str) -> None:
        """Print one line."""
        tqdm.write(f"{self.title}  {text}", file=sys.stdout)
        sys.stdout.flush()

    def start_epoch(self, epoch: int, steps: int, start: int) -> None:
        """Open the bar of one epoch (from 0), at step ``start`` of ``steps``."""
        if sys.stderr.isatty():
            label = f"epoch {epoch + 1}/{self.epochs}"
            self._bar = tqdm(total=steps, initial=start, desc=label, leave=False, unit="batch")

    def step(self) -> None:
        """Move the bar by one step."""
        if self._bar is not None:
            self._bar.update()

    def close(self) -> None:
        """Close the bar."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def finish_epoch(self, record: EpochRecord, seconds_left: float) -> None:
        """Print the line of a finished epoch."""
        self.close()
        scores = []
        for split, metrics in (record.evaluation or {}).items():
            # landmarks have none of the headlines
            shown = [metric for metric in metrics if metric in HEADLINES] or metrics
            scores += [f"{split} {metric} {100 * metrics[metric]:.2f}" for metric in shown]
        if record.loss is None:
            self.say("  ".join(["not trained", *scores]))
            return
        facts = [
            f"epoch {record.epoch}/{self.epochs}",
            f"loss {record.loss:.5f}",
            *scores,
            f"{record.images_per_second:.0f} images/s",
            f"loss {record.loss_ms:.2f} ms/step",
            f"about {seconds_left:.0f} s left",
        ]
        self.say("  ".join(facts))


@contextlib.contextmanager
def logged_live(spec: Path, out: Path) -> Iterator[None]:
    """Send the metrics in ``out`` to the tracking server, if any, by a process of its own.

    The end of a pipe tells the process that the run is over; it ends within 5 s.
    """
    study = value_of(STUDY)
    started = time.monotonic()
    if not study or not is_server(value_of(TRACKING_URI)):
        yield
        return
    wait = [sys.executable, "-PS", "-c", WAIT.format(SOON)]
    command = [*wait, sys.executable, "-P", "-m", LOGGER, study, str(spec), str(out)]
    logger = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    try:
        yield
    finally:
        lasted = time.monotonic() - started
        with contextlib.suppress(subprocess.TimeoutExpired):  # a cluster ends it with the run
            logger.communicate(timeout=min(AFTERWARDS, SMALL_SHARE * lasted))
