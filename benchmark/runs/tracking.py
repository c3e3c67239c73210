"""MLflow as a sink: the run folders are the truth, MLflow shows them. A study finishes without it.

``import_runs`` brings in every finished run, once however often it is called. While a run trains,
``python -m benchmark.runs.tracking STUDY SPEC FOLDER`` sends its epochs to a server. A run is whole
once it has the tag ``result_digest``, set last; the import replaces others. MLflow is imported
inside functions: it takes more than a second.
"""

import csv
import hashlib
import json
import logging
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
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
PATIENCE = 12  # seconds that the import grants a server for a run: it may also drip for ever
# A view of the list of runs, which an address can ask for: the tag that holds it, and its name.
VIEW = "mlflow.sharedViewState."
COLUMNS = "columns"
LOCAL = "http://127.0.0.1:5000"  # of 'make ui'
# seconds between two looks at a run, and after its end
POLL = 5.0
AFTERWARDS = 5.0


class DeletedError(RunError):
    """An experiment that MLflow keeps as deleted, so that nothing can be brought into it."""


class NoAnswer(BaseException):
    """A server was waited for in vain; no library takes this for an error and tries again."""


def params(spec: RunSpec) -> dict[str, str]:
    """Return all settings as flat text: what runs are compared by, then ``section.option``."""
    flat: dict[str, Any] = {
        **{"loss": spec.loss.label, "batch_size": spec.batch_size, "seed": spec.seed},
        **{"dataset": spec.dataset.label, "backbone": spec.recipe.model.backbone},
        **{"setting": spec.setting.label, "loss.name": spec.loss.name},
    }
    flat |= {name.removeprefix("recipe."): value for name, value in settings_of(spec).items()}
    return {key: public(str(value)) for key, value in flat.items()}


def curves(folder: Path, start: float) -> list[Any]:
    """Return the metrics by epoch of a run that began ``start`` milliseconds after 1970."""
    found = []
    for each in EpochRecord.read_all(folder / METRICS) if (folder / METRICS).exists() else ():
        start += 1000 * each.seconds
        values = {"curve/loss": each.loss, "curve/learning_rate": each.learning_rate}
        values |= {f"cost/{name}": getattr(each, name) for name in COSTS_PER_EPOCH}
        found += _metrics({**values, **_flat("curve/", each.evaluation)}, each.epoch, start)
    return found


def verdict_tags(path: Path) -> dict[str, dict[str, str]]:
    """Return ``{cell: {"verdict.recall_at_1": verdicts}}`` of ``verdicts.csv``, if it is there."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    with suppress(FileNotFoundError), path.open(encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            tags = found["{dataset}/{setting}/{loss}/bs{batch_size}".format(**row)]
            (name,) = _flat("verdict.", {row["split"]: {row["metric"]: None}})
            tags[name] = ", ".join(sorted({row["verdict"], *tags.get(name, "").split(", ")} - {""}))
    return found


@contextmanager
def connected(results: Path) -> Iterator[Any]:
    """Yield MLflow's client of the store, which is made if it is to lie in ``results``.

    Whatever MLflow, its database or its server do wrong is a RunError.
    """
    database = results.resolve() / "mlflow.db"
    server = value_of(TRACKING_URI)
    uri = server or f"sqlite:///{database}"
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    for name in ("alembic", "mlflow", "urllib3"):  # what is wrong is said once, by the error
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        if not server:
            os.environ.setdefault("_MLFLOW_SERVER_ARTIFACT_ROOT", ARTIFACT_ROOT)
        from mlflow import MlflowClient

        if not server and not database.exists():
            with replacing(database) as new:  # one that is half made would stay broken
                MlflowClient(f"sqlite:///{new}").search_experiments()
        yield MlflowClient(uri, uri)
    except DeletedError:
        raise
    except (Exception, NoAnswer) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        text = f"MLflow store {uri} cannot be used ({reason})"
        raise RunError(_without_password(text)) from error


def experiment_of(client: Any, study: str) -> str:
    """Return the id of the study's experiment; make it where needed.

    Raise DeletedError where somebody has deleted it: its name stays taken until it is restored.
    """
    from mlflow.exceptions import MlflowException

    found = client.get_experiment_by_name(study)
    if found is None:
        kind = {"mlflow.experimentKind": "custom_model_development"}  # else: of language models
        with suppress(MlflowException):  # another process was faster
            client.create_experiment(study, tags=kind)
        found = client.get_experiment_by_name(study)
    if found.lifecycle_stage == "deleted":
        command = f"mlflow experiments restore --experiment-id {found.experiment_id}"
        raise DeletedError(
            f"experiment '{study}' is deleted in MLflow; bring it back with '{command}', "
            f"MLFLOW_TRACKING_URI set to {_without_password(client.tracking_uri)}"
        )
    return str(found.experiment_id)


def begin(client: Any, study: str, spec: RunSpec, code: str, start: float) -> Any:
    """Return the info of a new run with its parameters; ``start`` is in seconds since 1970."""
    from mlflow.entities import Param

    tags = SOURCE | {"study": study, "run_id": spec.run_id, "spec_digest": spec.digest}
    tags["code_version"] = code
    command = ["git", "-C", str(PACKAGE), "log", "-1", "--format=%H", "--", "."]
    with suppress(OSError):  # the commit that last changed this package; none outside of a checkout
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.stdout and code.startswith(code_version()):
            tags["mlflow.source.git.commit"] = done.stdout.strip()
    cell = spec.cell
    name = f"{cell.loss} bs{cell.batch_size} seed{spec.seed} ({cell.dataset}/{cell.setting})"
    run = client.create_run(experiment_of(client, study), round(1000 * start), tags, name).info
    client.log_batch(run.run_id, params=[Param(*each) for each in params(spec).items()])
    return run


def complete(client: Any, run: Any, spec: RunSpec, folder: Path, results: Path) -> None:
    """Bring in all that the folder of a finished run says, and last the mark that it is whole."""
    from mlflow.entities import Dataset, DatasetInput, InputTag, RunTag

    result = Result.read(folder / RESULT)
    provenance = Provenance.read(folder / PROVENANCE)
    end = 1000 * (folder / RESULT).stat().st_mtime
    costs = vars(provenance.costs)
    # first the metrics of the last epoch, with which the comparison page of the UI starts
    values = {f"cost/{name}": costs[name] for name in costs if name not in COSTS_PER_EPOCH}
    metrics = _metrics({**_flat("", result.metrics.last), **values}, result.epochs, end)
    for name, best in _flat("best/", result.metrics.best).items():
        metrics += _metrics({name: best.value}, best.epoch, end)
    data = result.dataset
    tags = {"status": result.status, "dataset_fingerprint": data.fingerprint}
    tags |= {"code_version": result.code_version, "platform": provenance.platform}
    marks = [RunTag(*each) for each in tags.items()]
    client.log_batch(run.run_id, metrics + curves(folder, run.start_time), tags=marks)
    dataset = Dataset(spec.dataset.label, data.fingerprint, "local", json.dumps({"uri": data.name}))
    context = InputTag("mlflow.data.context", "training")
    client.log_inputs(run.run_id, datasets=[DatasetInput(dataset, [context])])
    place = results / "mlartifacts" / run.artifact_uri.removeprefix(ARTIFACT_ROOT)
    for name in (SPEC, RESULT, METRICS, PROVENANCE):
        text = public((folder / name).read_text("utf-8"))
        if value_of(TRACKING_URI):
            client.log_text(run.run_id, text, name)
        else:  # where the UI of this store serves it from
            write_text(place / name, text)
    status = "FINISHED" if result.status == "ok" else "FAILED"
    client.set_terminated(run.run_id, status, round(end))
    client.set_tag(run.run_id, COMPLETE, _digest(folder))


def publish(study: str, page: Path, results: Path) -> str:
    """Put a study's page where the UI serves it; return its address there, empty for none."""
    from mlflow.exceptions import MlflowException
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

    server = value_of(TRACKING_URI)
    place = f"reports/{study}"
    if not page.is_file() or (server and not is_server(server)):
        return ""
    if server:
        try:
            get_artifact_repository(ARTIFACT_ROOT + place, server).log_artifact(str(page))
        except MlflowException:  # a server that serves no artifacts
            return ""
    else:
        copy_file(page, results / "mlartifacts" / place / page.name)
    return f"/api/2.0/mlflow-artifacts/artifacts/{place}/{page.name}"


def import_runs(
    study: str,
    note: str,
    specs: Iterable[RunSpec],
    results: Path,
    judged: Path,
    metrics: Iterable[str] = (),
) -> tuple[dict[str, int], str]:
    """Bring in every finished run of ``specs``, exactly once; return counts, and where to look.

    ``note`` describes the study's experiment, ``judged`` is its ``verdicts.csv``, which may be
    absent, ``metrics`` are what its runs are compared by. After a RunError what is in by then
    stays, and a later call goes on.
    """
    from mlflow.entities import RunTag

    counts = {"imported": 0, "present": 0, "unfinished": 0}
    tags = verdict_tags(judged)
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
            columns = [f"params.`{each}`" for each in ("loss", "batch_size", "seed")]
            columns += [f"metrics.`{each}`" for each in metrics]
            shown = json.dumps({"selectedColumns": columns})
            client.set_experiment_tag(experiment, VIEW + COLUMNS, shown)
            if client.get_experiment(experiment).tags.get(NOTE, note).endswith(note):  # ours
                client.set_experiment_tag(experiment, NOTE, f"{links}\n\n{note}")
            for spec in tqdm(specs, desc="MLflow", unit="run", disable=None, leave=False):
                signal.alarm(patience)
                folder = results / spec.folder
                result = None
                with suppress(RunError):
                    result = Result.read(folder / RESULT)
                if not result or result.spec_digest != spec.digest:
                    counts["unfinished"] += 1
                    continue
                found = client.search_runs([experiment], f"tags.run_id = '{spec.run_id}'")
                mark = _digest(folder)
                whole = [run.info for run in found if run.data.tags.get(COMPLETE) == mark]
                counts["present" if whole else "imported"] += 1
                if not whole:
                    seconds = Provenance.read(folder / PROVENANCE).timing.total_seconds
                    start = (folder / RESULT).stat().st_mtime - seconds
                    whole = [begin(client, study, spec, result.code_version, start)]
                    complete(client, whole[0], spec, folder, results)
                for run in found:
                    if run.info.run_id != whole[0].run_id:  # of other code, or of an attempt before
                        client.delete_run(run.info.run_id)
                words = [public(result.reason)] if result.reason else []
                words += [f"[Report of the study]({report})"] if report else []
                marks = tags[spec.cell.label] | ({NOTE: "\n\n".join(words)} if words else {})
                client.log_batch(whole[0].run_id, tags=[RunTag(*each) for each in marks.items()])
    finally:
        signal.alarm(0)
    server = value_of(TRACKING_URI)
    if is_server(server):
        return counts, f"{_without_password(server).rstrip('/')}/{view}"
    return counts, f"{LOCAL}/{view} (after 'make ui')"


def follow(study: str, spec: Path, folder: Path) -> None:
    """Be the process that logs one run: it is over when the standard input ends.

    What a server that fails does not get, the import brings in.
    """

    def watch() -> None:
        os.read(0, 1)
        over.set()
        time.sleep(AFTERWARDS)
        os._exit(1)  # whatever MLflow still waits for

    over = Event()
    sent = 0
    os.nice(10)
    Thread(target=watch, daemon=True).start()
    with connected(folder) as client:
        run = begin(client, study, RunSpec.read(spec), code_version(), time.time())
        while not over.wait(POLL):
            metrics = curves(folder, run.start_time)
            client.log_batch(run.run_id, metrics[sent:])
            sent = len(metrics)
        if (folder / RESULT).exists():
            complete(client, run, RunSpec.read(spec), folder, folder)
        else:
            client.set_terminated(run.run_id, "KILLED")


def _flat(start: str, scores: Mapping[str, Mapping[str, Any]] | None) -> dict[str, Any]:
    return {
        f"{start}{'' if split == 'test' else f'{split}/'}{metric}": value
        for split, metrics in (scores or {}).items()
        for metric, value in metrics.items()
    }


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
