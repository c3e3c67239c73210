"""The few operations on MLflow runs that live mirroring and importing share.

A run is *complete* when it carries the tag ``result_digest``, set as the very last step: whatever
interrupts a writer earlier leaves a run that the next import finds incomplete and completes.
"""

import itertools
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmark.core.files import write_text
from benchmark.core.records import RunSpec
from benchmark.runs.tracking import content
from benchmark.runs.tracking.content import Finished, Point
from benchmark.runs.tracking.store import ARTIFACT_ROOT, ARTIFACTS

COMPLETE = "result_digest"
SUPERSEDED = "superseded"
MLFLOW_STATUS = {"ok": "FINISHED", "diverged": "FAILED"}
# Values per request. MLflow takes 1000 of all, and would cut a longer list inside an epoch.
LONGEST_BATCH = 800


def current_runs(client: Any, experiment: str, run_id: str | None = None) -> list[Any]:
    """Return the runs that no newer one has superseded: all, or those of one ``run_id``."""
    condition = f"tags.run_id = '{run_id}'" if run_id else ""
    runs: list[Any] = []
    token = None
    while True:
        page = client.search_runs(
            [experiment], filter_string=condition, max_results=1000, page_token=token
        )
        runs += page
        token = page.token
        if not token:
            break
    return [
        run
        for run in runs
        if "run_id" in run.data.tags and run.data.tags.get("status") != SUPERSEDED
    ]


def find_incomplete(runs: Iterable[Any], spec: RunSpec, code_version: str) -> Any | None:
    """Return a run that the same specification and code began and did not finish, or None."""
    wanted = {"run_id": spec.run_id, "spec_digest": spec.digest, "code_version": code_version}
    for run in runs:
        found = run.data.tags
        if COMPLETE not in found and all(found.get(key) == value for key, value in wanted.items()):
            return run
    return None


def create(
    client: Any, experiment: str, spec: RunSpec, study: str, code_version: str, started: float
) -> Any:
    """Return a new run with its parameters; ``started`` is in seconds since 1970."""
    run = client.create_run(
        experiment,
        start_time=round(started * 1000),
        tags={**content.tags(spec, study), "code_version": code_version},
        run_name=content.run_name(spec),
    )
    send(client, run, [], content.params(spec))
    return run


def send(
    client: Any, run: Any, points: Iterable[Point], params: dict[str, str] | None = None
) -> None:
    """Send values and parameters in few requests, the values of an epoch in one.

    A point's time follows from the run's start: sent twice it is the same row, which MLflow keeps
    once.
    """
    from mlflow.entities import Metric, Param

    start = run.info.start_time
    values = [Param(key, value) for key, value in (params or {}).items()]
    batch: Any
    for batch in itertools.zip_longest(batches(points), [values] if values else [], fillvalue=[]):
        metrics = [
            Metric(item.name, item.value, start + round(1000 * item.seconds), item.step)
            for item in batch[0]
        ]
        client.log_batch(run.info.run_id, metrics=metrics, params=batch[1])


def batches(points: Iterable[Point]) -> Iterator[list[Point]]:
    """Yield the points in order, at most ``LONGEST_BATCH`` at once, each epoch as a whole.

    An epoch that has one of its values there then has them all, whenever the sending was
    interrupted.
    """
    batch: list[Point] = []
    for _, group in itertools.groupby(points, key=lambda point: point.step):
        epoch = list(group)
        if batch and len(batch) + len(epoch) > LONGEST_BATCH:
            yield batch
            batch = []
        batch += epoch
    if batch:
        yield batch


def logged_epochs(client: Any, run: Any) -> set[int]:
    """Return the epochs that are there; all values of an epoch travel in one request."""
    if not run.data.metrics:
        return set()
    names = ("curve/loss", "curve/learning_rate")  # the loss of a diverged epoch is left out
    return {
        item.step for name in names for item in client.get_metric_history(run.info.run_id, name)
    }


def complete(client: Any, run: Any, spec: RunSpec, finished: Finished, results: Path) -> None:
    """Bring a run that is empty or half there to what its folder says, and marks it complete."""
    from mlflow.entities import RunTag

    known = logged_epochs(client, run)
    points = [point for point in content.series(finished.epochs) if point.step not in known]
    missing = {
        key: value for key, value in content.params(spec).items() if key not in run.data.params
    }
    # the comparison page of the UI starts with the metric that was logged first
    send(client, run, [*content.final_points(finished), *points], missing)
    for name, text in content.artifacts(spec, finished).items():
        _store_artifact(client, run, name, text, results)
    identity = run.info.run_id
    final = [RunTag(key, value) for key, value in content.final_tags(finished).items()]
    client.log_batch(identity, tags=final)
    client.set_terminated(
        identity, MLFLOW_STATUS[finished.result.status], end_time=round(finished.ended * 1000)
    )
    client.set_tag(identity, COMPLETE, finished.digest)


def supersede(client: Any, run: Any, newer: Any) -> None:
    """Mark a run of other code, specification or attempt as replaced; it stays, renamed."""
    from mlflow.entities import RunTag

    marks = {
        "status": SUPERSEDED,
        "superseded_by": newer.info.run_id,
        "mlflow.runName": f"(superseded) {run.info.run_name}",
    }
    client.log_batch(run.info.run_id, tags=[RunTag(key, value) for key, value in marks.items()])
    if run.info.status == "RUNNING":
        client.set_terminated(run.info.run_id, "KILLED", end_time=round(time.time() * 1000))


def _store_artifact(client: Any, run: Any, name: str, text: str, results: Path) -> None:
    """Upload through the server, or file it where the UI of our own store serves it from."""
    address = run.info.artifact_uri
    if address.startswith(ARTIFACT_ROOT) and client.tracking_uri.startswith("sqlite:"):
        place = address.removeprefix(ARTIFACT_ROOT).lstrip("/")
        write_text(Path(results) / ARTIFACTS / place / name, text)
    else:
        client.log_text(run.info.run_id, text, name)
