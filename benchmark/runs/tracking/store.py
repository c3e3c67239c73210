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

from benchmark.core.environment import TRACKING_URI, is_server
from benchmark.core.errors import BenchmarkError, DataError, RunError
from benchmark.core.files import leftovers, replacing
from benchmark.runs.tracking.patience import BoundedClient, be_patient, call_seconds, unreachable

DATABASE = "mlflow.db"
ARTIFACTS = "mlartifacts"
ARTIFACT_ROOT = "mlflow-artifacts:/"
LOCK = ".mlflow.lock"
LOCK_SECONDS = 600.0
# which pages the UI shows first: training runs, not language-model traces
KIND = "custom_model_development"
DRIVER = (
    f"install the Python package of this database's driver, correct {TRACKING_URI.name} or unset it"
)


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
    with locked(results), speaking_plainly(results):
        return experiment_id(connect(results), study, note, results)


@contextlib.contextmanager
def locked(results: Path) -> Iterator[None]:
    """Hold the results folder's lock on the store; others wait."""
    import filelock

    try:
        Path(results).mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(Path(results) / LOCK, timeout=LOCK_SECONDS)
        lock.acquire()
    except (OSError, filelock.Timeout) as error:
        raise TrackingError(
            f"cannot lock {Path(results) / LOCK} ({error}); make the folder writable, "
            "or wait for the process that holds the lock"
        ) from error
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def speaking_plainly(results: Path) -> Iterator[None]:
    """Turn whatever MLflow or its database raise into one TrackingError that says what to do."""
    be_patient(os.environ)  # some of it is read when MLflow is imported
    from alembic.util import CommandError  # a store of a newer version
    from google.protobuf.json_format import Error as AnswerError  # of no MLflow server
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import NoSuchModuleError, SQLAlchemyError

    try:
        yield
    except (
        MlflowException,
        SQLAlchemyError,
        CommandError,
        AnswerError,
        ImportError,
        OSError,
        DataError,
        RunError,
    ) as error:
        advice = DRIVER if isinstance(error, (ImportError, NoSuchModuleError)) else ""
        reason = first_line(error)
        raise TrackingError(unusable(tracking_uri(results), results, reason, advice)) from error


def unusable(uri: str, results: Path, reason: str, advice: str = "") -> str:
    """Return the message for a store that cannot be used: which, why, and what to do."""
    if is_own(uri, results):
        store, usual = f"{Path(results) / DATABASE}", "free some space, or delete the file"
    else:
        store, usual = without_password(uri), f"start the server or unset {TRACKING_URI.name}"
    advice = advice or usual
    return f"MLflow store {store} cannot be used ({reason}); {advice}"


def connect(results: Path) -> Any:
    """Return an ``MlflowClient``; a server that does not answer is a TrackingError within seconds.

    Call it inside ``speaking_plainly``.
    """
    reach(results)
    uri = tracking_uri(results)
    if is_own(uri, results):
        # the default experiment of a new store would otherwise get a path of this machine
        os.environ.setdefault("_MLFLOW_SERVER_ARTIFACT_ROOT", ARTIFACT_ROOT)
    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("mlflow.store").setLevel(logging.CRITICAL)  # errors come with a traceback
    from mlflow import MlflowClient

    if is_own(uri, results) and not _has_content(Path(results) / DATABASE):
        _make_store(Path(results) / DATABASE)
    elif uri.startswith("sqlite:"):
        _open_file(uri)
        _upgrade(uri, is_own(uri, results))
    client = MlflowClient(tracking_uri=uri, registry_uri=uri)
    return BoundedClient(client, call_seconds()) if is_server(uri) else client


def reach(results: Path) -> None:
    """Raise TrackingError for a server that does not answer, or a place that has no address."""
    uri = tracking_uri(results)
    reason = unreachable(uri) if is_server(uri) else ""
    if reason:
        raise TrackingError(unusable(uri, results, reason))
    if is_own(uri, results) and "?" in uri:  # MLflow would make and fill a file beside the folder
        reason = "its address would end at the '?'"
        raise TrackingError(unusable(uri, results, reason, "choose a results folder without '?'"))


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
        tags = {
            "study": study,
            "mlflow.note.content": note,
            "mlflow.experimentKind": KIND,
        }
        try:
            return str(client.create_experiment(study, artifact_location=place, tags=tags))
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise
            found = client.get_experiment_by_name(study)  # another machine was faster
            if found is None:  # the database is damaged
                raise
    if found.lifecycle_stage == "deleted":
        client.restore_experiment(found.experiment_id)
    return str(found.experiment_id)


def without_password(uri: str) -> str:
    """Return ``uri`` without the credentials that it may carry."""
    scheme, separator, rest = uri.partition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"


def _has_content(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def _make_store(path: Path) -> None:
    """Make the database under another name first: one that was interrupted is broken for good."""
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    for path_left in leftovers(path):  # of killed processes: the lock is ours
        path_left.unlink(missing_ok=True)
    with replacing(path) as temporary:
        store = SqlAlchemyStore(f"sqlite:///{temporary.resolve()}", ARTIFACT_ROOT)
        store.engine.dispose()


def _open_file(uri: str) -> None:
    """Open the file of an address once: MLflow tries for two minutes what cannot be opened.

    Raise RunError for an address that names none.
    """
    import sqlalchemy

    try:
        engine = sqlalchemy.create_engine(uri)
    except (ValueError, TypeError) as error:
        raise RunError(f"its address has a wrong option: {first_line(error)}") from error
    if engine.url.database in (None, "", ":memory:"):
        raise RunError("it is in memory, and gone when the command ends; name a file")
    engine.connect().close()
    engine.dispose()


def _upgrade(uri: str, own: bool) -> None:
    """Bring the schema of an existing database, written by an older MLflow, up to date.

    Raise RunError for a database of another program, which MLflow would fill with its tables.
    """
    import sqlalchemy
    from mlflow.store.db import utils

    if not _has_content(Path(uri.removeprefix("sqlite:///"))):
        return
    engine = sqlalchemy.create_engine(uri)
    try:
        tables = sqlalchemy.inspect(engine).get_table_names()
        if tables and "experiments" not in tables:
            raise RunError(f"it is a database of something else, with the table {tables[0]!r}")
        if own:  # it may come from elsewhere, and work for ever
            _refuse_computing(engine)
        if (
            utils._all_tables_exist(engine)
            and utils._get_schema_version(engine) != utils._get_latest_schema_revision()
        ):
            utils._upgrade_db(engine)
    finally:
        engine.dispose()


def _refuse_computing(engine: Any) -> None:
    """Raise RunError for views, and for triggers but the one that MLflow makes."""
    query = (
        "select name from sqlite_master where type = 'view' or (type = 'trigger' and "
        "(name, tbl_name) != ('prevent_secrets_aad_mutation', 'secrets'))"
    )
    with engine.connect() as connection:
        if (found := connection.exec_driver_sql(query).scalar()) is not None:
            raise RunError(f"it computes: it has the view or trigger {found!r}")


def first_line(error: BaseException) -> str:
    """Return what an error says first, or its kind."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
