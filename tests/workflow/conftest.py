"""A workplace in which a small study has been run, and an empty one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from workplace import DryRuns, Workplace, small_study

# Runs that take no time are not worth a process from which they are forked.
NO_SERVER = {"BENCHMARK_FORK_SERVER": "off"}


@pytest.fixture(scope="session")
def dry_runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DryRuns]:
    """Yield what makes dry runs of the project's Snakefile in any folder."""
    with DryRuns(Workplace(tmp_path_factory.mktemp("dry")).variables) as found:
        yield found


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder in which the study ``small`` (4 runs) has been run up to its long table."""
    place = Workplace(tmp_path_factory.mktemp("finished"), environment={**NO_SERVER})
    place.write(small_study("small", ["smooth_ap", "smooth_ap_wide"]))
    done = place.snakemake("small")
    assert done.returncode == 0, done.stderr
    return place.folder


@pytest.fixture
def workplace(finished: Path, tmp_path: Path, dry_runs: DryRuns) -> Workplace:
    """Returns a copy of the finished workplace, with the times of its files."""
    shutil.copytree(finished, tmp_path / "work", copy_function=shutil.copy2)
    return Workplace(tmp_path / "work", dry_runs=dry_runs, environment={**NO_SERVER})


@pytest.fixture
def fresh(tmp_path: Path) -> Workplace:
    """Returns an empty workplace."""
    (tmp_path / "work").mkdir()
    return Workplace(tmp_path / "work", environment={**NO_SERVER})
