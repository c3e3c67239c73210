"""What every test relies on: one thread per process, a cache of its own, and reasons for
skipping."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from messages import Messages

from benchmark.core.environment import choose_kernels

# Before numpy or torch are imported: tests run side by side, and more threads would only fight for
# cores.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
choose_kernels()
# A test must not talk to somebody's server, nor use somebody's plugins.
for _variable in ("MLFLOW_TRACKING_URI", "SNAKEMAKE_PROFILE"):
    os.environ.pop(_variable, None)
for _variable in ("PLUGINS", "STUDY", "FORK_SERVER"):
    os.environ.pop(f"BENCHMARK_{_variable}", None)
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
# Hundreds of programs are started here, and each would compile the package anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


# Nothing that is imported and collected is garbage: looking for it takes a second and more.
gc.disable()

# One browser a process, whichever tests ask for it.
pytest_plugins = ["browser_visits"]

# Markers of tests that take minutes, each with a target of its own.
APART = ("stress", "portable", "rates", "long")

# The files that take longest, in their order: two processes that share the tests end together.
LONGEST = (
    "workflow/test_end_to_end.py",
    "workflow/test_display.py",
    "unit/training/test_resumed_runs.py",
    "unit/analyses/test_analyse_verb.py",
    "unit/losses/conformance/test_planted_faults.py",
    "workflow/test_failures.py",
    "unit/report/page/test_report_page.py",
    "unit/report/page/test_reports_that_went_wrong.py",
    "contract/test_studies.py",
    "unit/report/figures/test_figures.py",
    "workflow/test_finished_runs.py",
    "workflow/test_trials_and_final_runs.py",
    "workflow/test_data_files.py",
    "unit/training/test_signals_to_workers.py",
    "unit/verdicts/test_judging.py",
    "unit/runs/test_tracking.py",
    "contract/test_outputs_contract.py",
    "reference/test_golden_curves.py",
    "contract/test_losses_contract.py",
    "unit/losses/test_tiled_losses.py",
    "unit/claims/test_claim_readings.py",
    "unit/training/test_run.py",
)


@pytest.fixture(scope="session", autouse=True)
def benchmark_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder where glyphs are drawn once for all tests (and all workers of a parallel
    run)."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "benchmark_cache"
    folder.mkdir(exist_ok=True)
    os.environ["BENCHMARK_CACHE"] = str(folder)
    return folder


def pytest_collection_finish(session: pytest.Session) -> None:
    """Keep the tests themselves, a million objects, away from the garbage collector."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="module", autouse=True)
def tests_kept_from_the_garbage_collector() -> None:
    """Do the same after a test of what measures memory, which ends with ``gc.unfreeze``."""
    if not gc.get_freeze_count():
        gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def hangups_reach_the_programs_of_tests() -> None:
    """Catch a hangup that nohup ignores: a new program answers what is caught by its default, and
    ignores what is ignored. These tests outlive their terminal in both cases."""
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)


@pytest.fixture(autouse=True)
def interrupts_as_before() -> Iterator[None]:
    """Put the answer to Ctrl-C back, which ``run`` leaves to Snakemake."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--shuffle", type=int, metavar="SEED", help="files, and tests in a file, in random order"
    )
    parser.addoption(
        "--update-messages", action="store_true", help="write tests/messages.json (one process)"
    )


@pytest.fixture
def messages(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Messages]:
    """Yield what compares an error with the snapshot and returns code and key of each problem."""
    test = request.node.nodeid.removeprefix("tests/")
    folders = {str(tmp_path): "TMP", str(tmp_path.parent): "BASE"}
    folders[str(Path(__file__).parents[1])] = "ROOT"
    found = Messages(test, folders, request.config.getoption("update_messages"))
    yield found
    found.compare()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Order the tests; skip, with the reason, what this machine cannot run or takes minutes."""
    if (seed := config.getoption("shuffle")) is not None:
        # a digest, so that two processes that share the tests agree on the order
        def place(name: str) -> bytes:
            return hashlib.sha256(f"{seed} {name}".encode()).digest()

        items.sort(key=lambda item: (place(str(item.path)), place(item.nodeid)))
    else:
        places = {Path(__file__).parent / name: place for place, name in enumerate(LONGEST)}
        items.sort(key=lambda item: places.get(item.path, len(places)))

    missing = {"cluster": no_cluster, "browser": no_browser}
    for marker in APART:
        missing[marker] = partial(not_chosen, marker, config.getoption("markexpr"))
    for marker, why in missing.items():
        marked = [item for item in items if item.get_closest_marker(marker)]
        if marked and (reason := why()):
            for item in marked:
                item.add_marker(pytest.mark.skip(reason=reason))


def not_chosen(marker: str, chosen: str) -> str | None:
    return None if marker in chosen else f"takes minutes; choose it with '-m {marker}'"


def no_cluster() -> str | None:
    if shutil.which("sinfo") is None:
        return "Slurm is not installed"
    with contextlib.suppress(subprocess.TimeoutExpired):
        done = subprocess.run(["sinfo", "-h"], capture_output=True, timeout=10, check=False)
        return None if done.returncode == 0 else "no Slurm controller is running"
    return "the Slurm controller does not answer"


def no_browser() -> str | None:
    from browser_visits import browser

    if browser() is None:
        return "no headless Chromium is installed"
    return None if importlib.util.find_spec("playwright") else "playwright is not installed"


# A shell starts its background commands with Ctrl-C ignored: so would be every program tested here.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)
