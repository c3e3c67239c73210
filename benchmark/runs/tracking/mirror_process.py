"""The helper process of a live mirror: follows one run folder and sends it to the tracking server.

    python -m benchmark.runs.tracking.mirror_process STUDY FOLDER < specification

The first line of standard input is the specification; its end says that the training has ended,
however it did. The first failure ends the helper: a server that is away must not be asked over and
over, and the import completes what is missing.
"""

import json
import os
import select
import sys
import time
from pathlib import Path
from typing import Any

from benchmark.core.code_version import code_version
from benchmark.core.interrupts import ignore_interrupts
from benchmark.core.records import RunSpec
from benchmark.runs.tracking import client as runs
from benchmark.runs.tracking import content
from benchmark.runs.tracking.store import (
    TrackingError,
    connect,
    experiment_id,
    speaking_plainly,
)

POLL_SECONDS = 5.0


def mirror(study: str, folder: Path, spec: RunSpec, pipe: int) -> None:
    """Mirror the run until the other end of ``pipe`` closes; a failure is a TrackingError."""
    started = time.time()
    with speaking_plainly(folder):
        client = connect(folder)
        experiment = experiment_id(client, study, "", folder)
        known = runs.current_runs(client, experiment, spec.run_id)
        run = runs.find_incomplete(known, spec, code_version())
        if run is not None:  # an earlier attempt, interrupted and now continued from its checkpoint
            client.update_run(run.info.run_id, status="RUNNING")
        else:
            run = runs.create(client, experiment, spec, study, code_version(), started)
        _follow(client, run, folder, pipe)
        finished = content.read_finished(spec, folder)
        if finished is None:
            client.set_terminated(run.info.run_id, "KILLED")
        else:
            runs.complete(client, client.get_run(run.info.run_id), spec, finished, folder)


def _follow(client: Any, run: Any, folder: Path, pipe: int) -> None:
    """Send each epoch once it is there, until the training has closed its end of the pipe."""
    sent = runs.logged_epochs(client, run)
    ended = False
    while not ended:
        readable, _, _ = select.select([pipe], [], [], POLL_SECONDS)
        ended = bool(readable) and not os.read(pipe, 1)
        points = [
            point for point in content.series(content.read_epochs(folder)) if point.step not in sent
        ]
        runs.send(client, run, points)
        sent |= {point.step for point in points}


def main() -> int:
    """Return the exit status: 1 when the server could not be used."""
    ignore_interrupts()  # they are for the training; the pipe's end is for this process
    os.nice(10)
    study, folder = sys.argv[1], Path(sys.argv[2])
    with open(sys.stdin.fileno(), "rb", buffering=0, closefd=False) as unbuffered:
        spec = RunSpec.from_json(json.loads(unbuffered.readline()), "standard input")
    try:
        mirror(study, folder, spec, sys.stdin.fileno())
    except TrackingError as error:
        print(
            f"MLflow: {error}; training goes on, the import brings this run in later",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
