"""Where a run can be followed: a bar on a terminal, lines in a log, a tracking server.

For the server the training starts a helper process and, at the end, closes a pipe to it. The helper
reads metrics.jsonl as it grows and talks to the server. MLflow is never imported here, and nothing
that the server does, or fails to do, reaches the training. A run is mirrored when two variables are
set: MLFLOW_TRACKING_URI to the address of a server, and BENCHMARK_STUDY, which the workflow sets,
to the experiment that the run belongs to. A local sqlite store gets its runs from the import
instead: a second for all of them, rather than a second of CPU for each.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from tqdm import tqdm

from benchmark.core.environment import STUDY, TRACKING_URI, is_server
from benchmark.core.interrupts import held_back
from benchmark.core.records import RunSpec
from benchmark.core.results import EpochRecord

HEADLINES = ("recall_at_1", "map_at_r")  # of what is measured, what a line shows
# The helper process is started by its name: training imports nothing of the runs' side.
HELPER = "benchmark.runs.tracking.mirror_process"
# Enough for a healthy server to take the last batch and the artifacts, and never more than a small
# part of the run: a server that hangs must not slow short runs down. The import completes the rest.
CLOSING_SECONDS = 3.0
CLOSING_SHARE = 0.03


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
        scores = [
            f"{split} {metric} {100 * value:.2f}"
            for split, metrics in (record.evaluation or {}).items()
            for metric, value in metrics.items()
            if metric in HEADLINES
            or not metrics.keys() & set(HEADLINES)  # landmarks are scored by mAP alone
        ]
        if record.loss is None:
            self.say("  ".join(["not trained", *scores]))
            return
        parts = [
            f"epoch {record.epoch}/{self.epochs}",
            f"loss {record.loss:.5f}",
            *scores,
            f"{record.images_per_second:.0f} images/s",
            f"loss {record.loss_ms:.2f} ms/step",
            f"about {seconds_left:.0f} s left",
        ]
        self.say("  ".join(parts))


class Mirror:
    """The helper process of one run, or nothing at all where there is no server to mirror to."""

    def __init__(self, process: subprocess.Popen[str] | None = None):
        self._process = process
        self._started = time.monotonic()

    @classmethod
    def start(cls, spec: RunSpec, out: Path) -> Mirror:
        """Return the mirror of a run whose results appear in ``out``; never raises, never waits."""
        study = STUDY.value()
        if not study or not is_server(TRACKING_URI.value()):
            return cls()
        path = [str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH", "")]
        try:
            with held_back():
                process = subprocess.Popen(
                    [sys.executable, "-m", HELPER, study, str(Path(out).resolve())],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))},
                    text=True,
                )
            assert process.stdin is not None  # it is a pipe
            process.stdin.write(json.dumps(spec.as_json()) + "\n")
            process.stdin.flush()
        except OSError as error:
            text = f"MLflow: no live mirror ({error}); the import brings this run in later"
            print(text, file=sys.stderr)
            return cls()
        return cls(process)

    def close(self) -> None:
        """Let the helper send what is left, for CLOSING_SECONDS and CLOSING_SHARE of the run."""
        process, self._process = self._process, None
        if process is None or process.stdin is None:
            return
        with contextlib.suppress(OSError):  # it may have given up on the server long ago
            process.stdin.close()
        try:
            process.wait(min(CLOSING_SECONDS, CLOSING_SHARE * (time.monotonic() - self._started)))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def __enter__(self) -> Mirror:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
