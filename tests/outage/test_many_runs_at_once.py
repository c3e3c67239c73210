"""32 runs that log at the same time: to one server while they train, and into one sqlite file.
Nothing is lost."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import time
from pathlib import Path

import pytest
from made_up_records import make_epochs, make_specs, write_epochs, write_run

from benchmark.core.records import SPEC, RunSpec
from benchmark.runs import tracking
from benchmark.runs.tracking import connected, curves, import_runs, params

pytestmark = pytest.mark.stress
# the recall of made-up epochs grows with them, to 1
RUNS = 32
EPOCHS = 9
PROCESSES = multiprocessing.get_context("fork")  # 32 times MLflow would not fit into memory


@pytest.fixture
def specs() -> dict[str, RunSpec]:
    return make_specs(losses=4, seeds=4)


def all_at_once(action, specs: dict[str, RunSpec]) -> None:
    """Calls ``action(spec, barrier)`` for every specification, each in a process of its own."""
    import mlflow.store.tracking.sqlalchemy_store  # noqa: F401 - once, before the forks

    barrier = PROCESSES.Barrier(len(specs))
    started = [PROCESSES.Process(target=action, args=(spec, barrier)) for spec in specs.values()]
    for process in started:
        process.start()
    for process in started:
        process.join(900)
    assert [process.exitcode for process in started] == [0] * len(specs)


def bring(specs, results: Path) -> dict[str, int]:
    return import_runs("toy", "A toy", specs, results, results / "none")[0]


def nothing_is_lost(results: Path, specs: dict[str, RunSpec]) -> None:
    """Counts runs, parameters, values and artifacts of the study ``toy``."""
    assert bring(specs.values(), results) == {"imported": 0, "present": RUNS, "unfinished": 0}
    with connected(results) as client:
        runs = client.search_runs([client.get_experiment_by_name("toy").experiment_id])
        assert sorted(run.data.tags["run_id"] for run in runs) == sorted(specs)
        for run in runs:
            spec = specs[run.data.tags["run_id"]]
            assert run.data.params == {param.key: param.value for param in params(spec)}
            assert run.info.status == "FINISHED"
            expected = curves(results / spec.folder, run.info.start_time)
            names = {point.key for point in expected}
            logged = [client.get_metric_history(run.info.run_id, name) for name in names]
            found, wanted = (
                sorted((point.key, point.value, point.step) for point in points)
                for points in (itertools.chain(*logged), expected)
            )
            assert found == wanted
            last = make_epochs(spec, EPOCHS)[-1].evaluation["test"]
            assert {name: run.data.metrics[name] for name in last} == last


def test_32_runs_logged_to_one_server_at_once_are_all_there_after_an_import(
    tmp_path, specs, real_server, monkeypatch
):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", real_server(tmp_path / "server").start())
    monkeypatch.setattr(tracking, "POLL", 0.2)
    monkeypatch.setattr(tracking, "AFTERWARDS", 600.0)

    def train(spec: RunSpec, barrier) -> None:
        folder = tmp_path / spec.folder
        write_epochs(folder, make_epochs(spec, EPOCHS)[: EPOCHS // 2])
        spec.write(folder / SPEC)
        end, pipe = os.pipe()
        barrier.wait()
        if os.fork() == 0:  # the process that logs, while this one is the training
            os.close(pipe)
            os.dup2(end, 0)
            tracking.follow("toy", folder / SPEC, folder)
            os._exit(0)
        os.close(end)
        time.sleep(20)
        write_run(tmp_path, spec, epochs=EPOCHS)
        os.close(pipe)
        os.wait()  # a server that is too busy refuses some: the import brings them
        os._exit(0)

    all_at_once(train, specs)
    bring(specs.values(), tmp_path)
    nothing_is_lost(tmp_path, specs)


@pytest.mark.parametrize(("processes", "whole"), [(RUNS, False), (8, True)])
def test_imports_into_one_sqlite_file_at_once_lose_and_double_nothing(
    processes, whole, tmp_path, specs
):
    """Each process brings one run, or each the whole study."""
    for spec in specs.values():
        write_run(tmp_path, spec, epochs=EPOCHS)

    def bring_some(spec: RunSpec, barrier) -> None:
        barrier.wait()
        bring(specs.values() if whole else [spec], tmp_path)

    all_at_once(bring_some, dict(list(specs.items())[:processes]))
    nothing_is_lost(tmp_path, specs)
