"""Copy runs to MLflow. The folders of the runs decide, and a study finishes without MLflow.

``import_runs`` imports every finished run once, however often it is called. While a run trains,
``python -m benchmark.runs.tracking STUDY SPEC FOLDER`` sends its epochs to a server. The tag
``result_digest`` is set last, so a run with this tag is complete. The import replaces other runs.
MLflow is imported inside functions, because its import takes more than a second.
"""

import csv
import hashlib
import json
import logging
import math
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import cache
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any, NoReturn

from filelock import FileLock
from tqdm import tqdm

from benchmark.core.code_version import PACKAGE, code_version
from benchmark.core.environment import TRACKING_URI, is_server, value_of
from benchmark.core.errors import RunError
from benchmark.core.files import copy_file, replacing, write_text
from benchmark.core.paths import public
from benchmark.core.records import METRICS, PROVENANCE, RESULT, SPEC, RunSpec, settings_of
from benchmark.core.results import EpochRecord, Provenance, Result

ARTIFACT_ROOT = "mlflow-artifacts:/"  # no folder of this machine: the results can be moved
COMPLETE = "result_digest"
NOTE = "mlflow.note.content"
SOURCE = {"mlflow.user": "benchmark", "mlflow.source.name": "python -m benchmark train"}
COSTS_PER_EPOCH = ("images_per_second", "loss_ms")
TOGETHER = 50  # runs that one commit of a database brings in
PATIENCE = 12  # seconds for all answers of a server about one run: it may also answer byte by byte
# A shared view of the list of runs: the start of its tag, and its name, which an address can have.
VIEW = "mlflow.sharedViewState."
COLUMNS = "columns"
NAME = "attributes.`Run Name`"  # columns that are always there
CREATED = "runDateAndNestInfo"
ORDER = "order"  # a tag that sorts runs by loss, batch size and seed: the UI takes one key
LOCAL = "http://127.0.0.1:5000"  # of 'make ui'
SQLITE = "sqlite:///"
HALF_MADE = "already exists"  # what MLflow says of a table where the making was cut off
# seconds between two reads of a run's files, and after its end
POLL = 5.0
AFTERWARDS = 5.0


class NoAnswer(BaseException):
    """A server did not answer. Libraries do not catch this exception, so they do not try again."""


def params(spec: RunSpec) -> list[Any]:
    """Return all settings as flat text: first the settings that runs are compared by."""
    from mlflow.entities import Param

    flat: dict[str, Any] = {
        "loss": spec.loss.label,
        "batch_size": spec.batch_size,
        "seed": spec.seed,
        "dataset": spec.dataset.label,
        "backbone": spec.recipe.model.backbone,
        "setting": spec.setting.label,
        "loss.name": spec.loss.name,
    }
    flat |= {name.removeprefix("recipe."): value for name, value in settings_of(spec).items()}
    return [Param(key, public(str(value))) for key, value in flat.items()]


def curves(folder: Path, start: float) -> list[Any]:
    """Return the metrics by epoch of a run that began ``start`` milliseconds after 1970."""
    metrics: list[Any] = []
    if not (folder / METRICS).exists():
        return metrics
    for record in EpochRecord.read_all(folder / METRICS):
        start += 1000 * record.seconds
        values = {"curve/loss": record.loss, "curve/learning_rate": record.learning_rate}
        values |= {f"cost/{name}": getattr(record, name) for name in COSTS_PER_EPOCH}
        metrics += _metrics({**values, **_flat("curve/", record.evaluation)}, record.epoch, start)
    return metrics


def verdict_tags(path: Path) -> dict[str, dict[str, str]]:
    """Return ``{cell: {"verdict.recall_at_1": verdicts}}`` of ``verdicts.csv``, if it exists."""
    by_cell: dict[str, dict[str, str]] = defaultdict(dict)
    with suppress(FileNotFoundError), path.open(encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            tags = by_cell["{dataset}/{setting}/{loss}/bs{batch_size}".format(**row)]
            (name,) = _flat("verdict.", {row["split"]: {row["metric"]: None}})
            tags[name] = ", ".join(sorted({row["verdict"], *tags.get(name, "").split(", ")} - {""}))
    return by_cell


@contextmanager
def connected(results: Path) -> Iterator[Any]:
    """Yield MLflow's client of the store; make the store if it is a file.

    Raise RunError for every error of MLflow, its database or its server.
    """
    server = value_of(TRACKING_URI)
    uri = server or f"{SQLITE}{results.resolve() / 'mlflow.db'}"
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    for name in ("alembic", "mlflow", "urllib3"):  # the error alone says what is wrong
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        if not server:
            os.environ.setdefault("_MLFLOW_SERVER_ARTIFACT_ROOT", ARTIFACT_ROOT)
        from mlflow import MlflowClient

        if uri.startswith(SQLITE):
            database = Path(uri.removeprefix(SQLITE))
            if not database.exists() or _is_half_made(database):
                with replacing(database) as new:  # a half-made database would stay broken
                    MlflowClient(f"{SQLITE}{new}").search_experiments()
        yield MlflowClient(uri, uri)
    except RunError:
        raise
    except (Exception, NoAnswer) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        text = f"MLflow store {uri} cannot be used ({reason})"
        if HALF_MADE in reason:
            text += "; it has runs, but its upgrade was cut off: move it away, or bring back a copy"
        raise RunError(_without_password(text)) from error


@contextmanager
def at_once(client: Any) -> Iterator[None]:
    """Commit what is written to a database once, at the end; a server commits as it likes.

    A disk needs longer for a commit than MLflow for a run. After an error nothing is committed.
    """
    store = client._tracking_client.store
    if not hasattr(store, "engine"):
        yield
        return
    from mlflow.store.db.utils import _get_managed_session_maker
    from sqlalchemy.orm import sessionmaker

    before = store.ManagedSessionMaker
    with store.engine.begin() as connection:
        # the commits of these sessions end no transaction that was begun outside of them
        sessions = sessionmaker(connection, join_transaction_mode="rollback_only")
        store.ManagedSessionMaker = _get_managed_session_maker(sessions, store.db_type)
        try:
            yield
        finally:
            store.ManagedSessionMaker = before


def _is_half_made(database: Path) -> bool:
    """Return whether a database has no run, and MLflow cannot finish making it.

    That is left by a full disk, for example. A copy is tried: MLflow opens a file only once.
    """
    from mlflow import MlflowClient

    with closing(sqlite3.connect(database)) as connection, suppress(sqlite3.OperationalError):
        if connection.execute("select 1 from runs").fetchone():
            return False
    with TemporaryDirectory() as folder:
        copy = shutil.copy(database, folder)
        try:
            MlflowClient(f"{SQLITE}{copy}").search_experiments()
        except Exception as error:
            return HALF_MADE in str(error)
    return False


def experiment_of(client: Any, study: str) -> str:
    """Return the id of the study's experiment; make it if needed.

    Raise RunError if it was deleted: no other experiment can have its name.
    """
    from mlflow.exceptions import MlflowException

    experiment = client.get_experiment_by_name(study)
    if experiment is None:
        kind = {"mlflow.experimentKind": "custom_model_development"}  # else: of language models
        with suppress(MlflowException):  # another process was faster
            client.create_experiment(study, tags=kind)
        experiment = client.get_experiment_by_name(study)
    if experiment.lifecycle_stage == "deleted":
        command = f"mlflow experiments restore --experiment-id {experiment.experiment_id}"
        raise RunError(
            f"experiment '{study}' is deleted in MLflow; bring it back with '{command}', "
            f"MLFLOW_TRACKING_URI set to {_without_password(client.tracking_uri)}"
        )
    return str(experiment.experiment_id)


def name_of(spec: RunSpec) -> str:
    """Return the name of a run in MLflow."""
    cell = spec.cell
    return f"{cell.loss} bs{cell.batch_size} seed{spec.seed} ({cell.dataset}/{cell.setting})"


def view_of(specs: Iterable[RunSpec], metrics: Iterable[str]) -> dict[str, Any]:
    """Return the state of the list of runs: sorted, with whole names, losses, seeds and scores."""
    params = {"params.`loss`": 130, "params.`seed`": 60, "params.`batch_size`": 95}
    scores = {f"metrics.`{name}`": 110 for name in metrics}
    letters = max((len(name_of(spec)) for spec in specs), default=0)
    widths = {NAME: 40 + 6.5 * letters, CREATED: 40, **params, **scores}  # pixels
    return {
        "selectedColumns": [*params, *scores],
        "columnOrder": [*widths],
        "columnWidths": widths,
        "orderByKey": f"tags.`{ORDER}`",
        "orderByAsc": True,
    }


@cache
def last_commit() -> str:
    """Return the commit that last changed this package, or "" outside of a checkout."""
    command = ["git", "-C", str(PACKAGE), "log", "-1", "--format=%H", "--", "."]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()


def begin(client: Any, experiment: str, study: str, spec: RunSpec, code: str, start: float) -> Any:
    """Return the info of a new run; ``start`` is in seconds since 1970."""
    tags = SOURCE | {"study": study, "run_id": spec.run_id, "spec_digest": spec.digest}
    tags["code_version"] = code
    commit = last_commit() if code.startswith(code_version()) else ""
    if commit:
        tags["mlflow.source.git.commit"] = commit
    return client.create_run(experiment, round(1000 * start), tags, name_of(spec)).info


def complete(
    client: Any, run: Any, spec: RunSpec, folder: Path, results: Path, tags: Mapping[str, str]
) -> None:
    """Import everything in the folder of a finished run, and at last its tags.

    One of them says that the run is complete. A server is asked as seldom as MLflow allows.
    """
    from mlflow.entities import Dataset, DatasetInput, InputTag, RunTag

    result = Result.read(folder / RESULT)
    provenance = Provenance.read(folder / PROVENANCE)
    end = 1000 * (folder / RESULT).stat().st_mtime
    costs = vars(provenance.costs)
    # the metrics of the last epoch come first, because the comparison page of the UI shows these
    values = {f"cost/{name}": costs[name] for name in costs if name not in COSTS_PER_EPOCH}
    metrics = _metrics({**_flat("", result.metrics.last), **values}, result.epochs, end)
    for name, best in _flat("best/", result.metrics.best).items():
        metrics += _metrics({name: best.value}, best.epoch, end)
    client.log_batch(run.run_id, metrics + curves(folder, run.start_time), params(spec))
    data = result.dataset
    dataset = Dataset(spec.dataset.label, data.fingerprint, "local", json.dumps({"uri": data.name}))
    context = InputTag("mlflow.data.context", "training")
    client.log_inputs(run.run_id, datasets=[DatasetInput(dataset, [context])])
    target = results / "mlartifacts" / run.artifact_uri.removeprefix(ARTIFACT_ROOT)
    for name in (SPEC, RESULT, METRICS, PROVENANCE):
        text = public((folder / name).read_text("utf-8"))
        if value_of(TRACKING_URI):
            client.log_text(run.run_id, text, name)
        else:  # the UI of this store serves the file from there
            write_text(target / name, text)
    status = "FINISHED" if result.status == "ok" else "FAILED"
    client.set_terminated(run.run_id, status, round(end))
    last = {"status": result.status, "dataset_fingerprint": data.fingerprint}
    last |= {"code_version": result.code_version, "platform": provenance.platform}
    last |= {**tags, COMPLETE: _digest(folder)}
    client.log_batch(run.run_id, tags=[RunTag(*tag) for tag in last.items()])


def publish(study: str, page: Path, results: Path) -> str:
    """Copy a study's page to where the UI serves it; return its address there, or ""."""
    from mlflow.exceptions import MlflowException
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

    server = value_of(TRACKING_URI)
    target = f"reports/{study}"
    if not page.is_file() or (server and not is_server(server)):
        return ""
    if server:
        try:
            get_artifact_repository(ARTIFACT_ROOT + target, server).log_artifact(str(page))
        except MlflowException:  # the server serves no artifacts
            return ""
    else:
        copy_file(page, results / "mlartifacts" / target / page.name)
    return f"/api/2.0/mlflow-artifacts/artifacts/{target}/{page.name}"


def import_runs(
    study: str,
    note: str,
    specs: Iterable[RunSpec],
    results: Path,
    judged: Path,
    metrics: Iterable[str] = (),
) -> tuple[dict[str, int], str]:
    """Import every finished run of ``specs`` exactly once; return counts, and where to look.

    note     describes the study's experiment
    judged   ``verdicts.csv``, which may be absent
    metrics  columns of the view

    After a RunError, imported runs stay, and a later call goes on.
    """
    counts = {"imported": 0, "present": 0, "unfinished": 0}
    by_cell = verdict_tags(judged)
    patience = PATIENCE if is_server(value_of(TRACKING_URI)) else 0
    signal.signal(signal.SIGALRM, _give_up)
    try:
        with FileLock(results / ".mlflow.lock", timeout=600), connected(results) as client:
            signal.alarm(patience)
            report = publish(study, judged.parent / "report" / "index.html", results)
            experiment = experiment_of(client, study)
            view = f"#/experiments/{experiment}/runs?viewStateShareKey={COLUMNS}"
            links = f"[Report]({report}), " if report else ""
            links += f"[runs by loss, batch size and score]({view})"
            shown = json.dumps(view_of(specs, metrics))
            with at_once(client):
                client.set_experiment_tag(experiment, VIEW + COLUMNS, shown)
                if client.get_experiment(experiment).tags.get(NOTE, note).endswith(note):  # ours
                    client.set_experiment_tag(experiment, NOTE, f"{links}\n\n{note}")
            left = iter(tqdm(specs, desc="MLflow", unit="run", disable=None, leave=False))
            while batch := list(islice(left, TOGETHER)):
                with at_once(client):
                    for spec in batch:
                        signal.alarm(patience)
                        sorted_by = f"{spec.loss.label} {spec.batch_size:09} {spec.seed:010}"
                        tags = {ORDER: sorted_by, **by_cell.get(spec.cell.label, {})}
                        state = _import_run(client, study, experiment, spec, results, tags, report)
                        counts[state] += 1
    finally:
        signal.alarm(0)
    server = value_of(TRACKING_URI)
    if is_server(server):
        return counts, f"{_without_password(server).rstrip('/')}/{view}"
    return counts, f"{LOCAL}/{view} (after 'make ui')"


def _import_run(
    client: Any,
    study: str,
    experiment: str,
    spec: RunSpec,
    results: Path,
    tags: Mapping[str, str],
    report: str,
) -> str:
    """Import a run that MLflow does not have, and renew its tags; return "imported" or the like.

    The state is "unfinished" for a run without a result, and "present" for a run that MLflow has.
    """
    from mlflow.entities import RunTag

    folder = results / spec.folder
    try:
        result = Result.read(folder / RESULT)
    except RunError:
        return "unfinished"
    if result.spec_digest != spec.digest:
        return "unfinished"
    tags = dict(tags)
    notes = [public(result.reason)] if result.reason else []
    if report:
        notes.append(f"[Report of the study]({report})")
    if notes:
        tags[NOTE] = "\n\n".join(notes)
    present = client.search_runs([experiment], f"tags.run_id = '{spec.run_id}'")
    digest = _digest(folder)
    imported = next((run for run in present if run.data.tags.get(COMPLETE) == digest), None)
    if imported:
        info = imported.info
        changed = tags.items() - imported.data.tags.items()
        client.log_batch(info.run_id, tags=[RunTag(*tag) for tag in changed])
    else:
        seconds = Provenance.read(folder / PROVENANCE).timing.total_seconds
        start = (folder / RESULT).stat().st_mtime - seconds
        info = begin(client, experiment, study, spec, result.code_version, start)
        complete(client, info, spec, folder, results, tags)
    for run in present:
        if run.info.run_id != info.run_id:  # of other code, or of an earlier attempt
            client.delete_run(run.info.run_id)
    return "present" if imported else "imported"


def follow(study: str, spec: Path, folder: Path) -> None:
    """Send the epochs of one run to MLflow until the standard input ends; a process of its own.

    The import brings in what a failing server did not get.
    """

    def watch() -> None:
        os.read(0, 1)
        over.set()
        time.sleep(AFTERWARDS)
        os._exit(1)  # even if MLflow still waits

    over = Event()
    sent = 0
    os.nice(10)
    Thread(target=watch, daemon=True).start()
    with connected(folder) as client:
        experiment = experiment_of(client, study)
        run = begin(client, experiment, study, RunSpec.read(spec), code_version(), time.time())
        client.log_batch(run.run_id, params=params(RunSpec.read(spec)))
        while not over.wait(POLL):
            metrics = curves(folder, run.start_time)
            client.log_batch(run.run_id, metrics[sent:])
            sent = len(metrics)
        if (folder / RESULT).exists():
            complete(client, run, RunSpec.read(spec), folder, folder, {})
        else:
            client.set_terminated(run.run_id, "KILLED")


def _flat(start: str, scores: Mapping[str, Mapping[str, Any]] | None) -> dict[str, Any]:
    """Return scores by name: "recall_at_1" for the split "test", "val/recall_at_1" for others."""
    flat = {}
    for split, metrics in (scores or {}).items():
        prefix = start if split == "test" else f"{start}{split}/"
        for metric, value in metrics.items():
            flat[f"{prefix}{metric}"] = value
    return flat


def _metrics(values: Mapping[str, float | None], epoch: int, time: float) -> list[Any]:
    from mlflow.entities import Metric

    return [
        Metric(re.sub(r"[^A-Za-z0-9_\-. :/]", "_", name), float(value), round(time), epoch)
        for name, value in values.items()
        if value is not None and math.isfinite(value)
    ]


def _digest(folder: Path) -> str:
    return hashlib.sha256((folder / RESULT).read_bytes()).hexdigest()[:16]


def _without_password(text: str) -> str:
    return re.sub(r"//[^/@\s]*@", "//", text)


def _give_up(*_: object) -> NoReturn:
    raise NoAnswer(f"no answer for {PATIENCE} s")


if __name__ == "__main__":
    try:
        follow(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
    except RunError as error:
        print(f"warning: {error}; the import brings this run in later", file=sys.stderr)
