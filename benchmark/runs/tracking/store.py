"""Where the MLflow store is, and making it ready once, before runs use it.

Without ``MLFLOW_TRACKING_URI`` the store is ``<results>/mlflow.db``, its artifacts
``<results>/mlartifacts``. Artifacts are addressed as ``mlflow-artifacts:/...``, never by an
absolute path, so that a results folder can be moved, and the database names no folder of the
machine that wrote it.
"""

import contextlib
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmark.core.environment import TRACKING_URI
from benchmark.core.errors import BenchmarkError, RunError
from benchmark.core.files import replacing

DATABASE = "mlflow.db"
ARTIFACTS = "mlartifacts"
ARTIFACT_ROOT = "mlflow-artifacts:/"
LOCK = ".mlflow.lock"
LOCK_SECONDS = 600.0
# MLflow's own defaults block up to 4 minutes a call on a dead server, 20 on one without answers.
SETTINGS = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}
# which pages the UI shows first: training runs, not language-model traces
KIND = "custom_model_development"


class TrackingError(BenchmarkError):
    """MLflow cannot be reached or used. No result is lost: the run folders have everything."""


def tracking_uri(results: Path) -> str:
    """Return ``MLFLOW_TRACKING_URI`` if set, else the sqlite store in the results folder."""
    return TRACKING_URI.value() or f"sqlite:///{Path(results).resolve() / DATABASE}"


def is_own(uri: str, results: Path) -> bool:
    """Say whether ``uri`` is the store inside the results folder."""
    return uri == f"sqlite:///{Path(results).resolve() / DATABASE}"


def prepare(study: str, note: str, results: Path) -> str:
    """Return the id of the study's experiment; make store and experiment if they are absent.

    Safe to call from several processes and any number of times: a fresh sqlite file that two
    processes initialise at once is broken for good, so a file lock lets one in at a time.

    Raises: TrackingError when the store cannot be used.
    """
    with speaking_plainly(results), locked(results):
        return experiment_id(connect(results), study, note, results)


@contextlib.contextmanager
def locked(results: Path) -> Iterator[None]:
    """Hold the results folder's lock on the store; others wait."""
    import filelock

    Path(results).mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(Path(results) / LOCK, timeout=LOCK_SECONDS):
        yield


@contextlib.contextmanager
def speaking_plainly(results: Path) -> Iterator[None]:
    """Turn what MLflow, its database or its server raise into one TrackingError with advice."""
    for name, value in SETTINGS.items():  # some are read when MLflow is imported
        os.environ.setdefault(name, value)
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (MlflowException, SQLAlchemyError, ImportError, OSError, RunError) as error:
        uri = tracking_uri(results)
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        reason = reason.replace(uri.rstrip("/"), without_password(uri))
        if is_own(uri, results):
            advice = "free some space, or delete the file"
        else:
            advice = f"start the server or unset {TRACKING_URI.name}"
        store = f"MLflow store {without_password(uri).removeprefix('sqlite:///')}"
        raise TrackingError(f"{store} cannot be used ({reason}); {advice}") from error


def connect(results: Path) -> Any:
    """Return an ``MlflowClient`` of the store, which is made if it is absent.

    Call it inside ``speaking_plainly``.
    """
    uri = tracking_uri(results)
    if is_own(uri, results):
        # the default experiment of a new store would otherwise get a path of this machine
        os.environ.setdefault("_MLFLOW_SERVER_ARTIFACT_ROOT", ARTIFACT_ROOT)
    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("mlflow.store").setLevel(logging.CRITICAL)  # errors come with a traceback
    from mlflow import MlflowClient

    if is_own(uri, results) and not (Path(results) / DATABASE).exists():
        _make_store(Path(results) / DATABASE)
    return MlflowClient(tracking_uri=uri, registry_uri=uri)


def experiment_id(client: Any, study: str, note: str, results: Path) -> str:
    """Return the id of the experiment ``study``; make or restore it, whoever else does so.

    A new experiment is described by ``note`` (Markdown); a description that is there is left as it
    is.
    """
    from mlflow.exceptions import MlflowException

    found = client.get_experiment_by_name(study)
    if found is None:
        own = is_own(tracking_uri(results), results)
        place = f"{ARTIFACT_ROOT}{study}" if own else None
        tags = {"study": study, "mlflow.note.content": note, "mlflow.experimentKind": KIND}
        try:
            return str(client.create_experiment(study, artifact_location=place, tags=tags))
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise
            found = client.get_experiment_by_name(study)  # another machine was faster
    if found.lifecycle_stage == "deleted":
        client.restore_experiment(found.experiment_id)
    return str(found.experiment_id)


def without_password(uri: str) -> str:
    """Return ``uri`` without the credentials that it may carry."""
    scheme, separator, rest = uri.partition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"


def _make_store(path: Path) -> None:
    """Make the database under another name first: one that was interrupted is broken for good."""
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    with replacing(path) as temporary:
        store = SqlAlchemyStore(f"sqlite:///{temporary.resolve()}", ARTIFACT_ROOT)
        store.engine.dispose()
