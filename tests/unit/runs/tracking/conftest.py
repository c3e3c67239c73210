"""The tracking tests' servers and stores, and the clean slate that each of them starts from."""

from __future__ import annotations

import shutil

import pytest
from mlflow_servers import clean_tracking, closed_port, hanging_server, real_server  # noqa: F401

from benchmark.runs.tracking import store


@pytest.fixture(scope="session")
def prepared(tmp_path_factory):
    """Results with a prepared store, which no test changes: making one takes a second."""
    results = tmp_path_factory.mktemp("prepared")
    store.prepare("toy", "A toy", results)
    return results


@pytest.fixture
def results(tmp_path, prepared):
    """Results with a prepared store of their own."""
    shutil.copy(prepared / store.DATABASE, tmp_path)
    return tmp_path
