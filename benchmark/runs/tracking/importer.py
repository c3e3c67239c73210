"""Bring finished runs into MLflow: each once, however often called, whatever stopped it before."""

import dataclasses
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from benchmark.core.records import RunSpec
from benchmark.runs.tracking import client as runs
from benchmark.runs.tracking.content import Finished, read_finished
from benchmark.runs.tracking.store import (
    TrackingError,
    connect,
    experiment_id,
    locked,
    speaking_plainly,
)


@dataclass
class Counts:
    """What an import did with the runs of a study.

    imported    new in MLflow
    completed   mirrored in part while they trained, now whole
    present     were there already
    unfinished  have no result of this specification yet
    superseded  older MLflow runs that a re-trained one replaces
    """

    imported: int = 0
    completed: int = 0
    present: int = 0
    unfinished: int = 0
    superseded: int = 0

    def __str__(self) -> str:
        return ", ".join(f"{n} {name}" for name, n in dataclasses.asdict(self).items())


def import_runs(study: str, note: str, specs: Mapping[str, RunSpec], results: Path) -> Counts:
    """Return counts after bringing every finished run of ``specs`` into the study's experiment.

    study, note     name of the experiment and, when it is new, its description
    specs           {run_id: specification}: the study's grid
    results         root of the run folders

    Raises: TrackingError when MLflow cannot be used; what is in by then stays, and a later call
    goes on.
    """
    counts = Counts()
    try:
        with speaking_plainly(results), locked(results):
            client = connect(results)
            experiment = experiment_id(client, study, note, results)
            known = defaultdict(list)
            for run in runs.current_runs(client, experiment):
                known[run.data.tags["run_id"]].append(run)
            for spec in tqdm(specs.values(), desc="MLflow", unit="run", disable=None, leave=False):
                found = known[spec.run_id]
                _import_run(client, experiment, study, spec, found, Path(results), counts)
    except TrackingError as error:
        raise TrackingError(f"{error}\n  so far: {counts}; import again to continue") from error
    return counts


def _import_run(
    client: Any,
    experiment: str,
    study: str,
    spec: RunSpec,
    known: list[Any],
    results: Path,
    counts: Counts,
) -> None:
    finished = read_finished(spec, results / spec.folder)
    if finished is None:
        counts.unfinished += 1
        return
    code_version = finished.result.code_version
    run = _find_complete(known, spec, finished)
    if run is not None:
        counts.present += 1
    elif (run := runs.find_incomplete(known, spec, code_version)) is not None:
        runs.complete(client, run, spec, finished, results)
        counts.completed += 1
    else:
        run = runs.create(client, experiment, spec, study, code_version, finished.started)
        run = client.get_run(run.info.run_id)
        runs.complete(client, run, spec, finished, results)
        counts.imported += 1
    for old in known:
        if old.info.run_id != run.info.run_id:
            runs.supersede(client, old, run)
            counts.superseded += 1


def _find_complete(known: list[Any], spec: RunSpec, finished: Finished) -> Any | None:
    for run in known:
        found = run.data.tags
        if found.get("spec_digest") == spec.digest and found.get(runs.COMPLETE) == finished.digest:
            return run
    return None
