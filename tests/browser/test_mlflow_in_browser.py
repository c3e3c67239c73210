"""MLflow's pages on the runs of the smoke study in headless Chromium: what one compares by is there, without errors.

The pictures are kept for people in results/test-artifacts (or BENCHMARK_TEST_ARTIFACTS).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from urllib.parse import quote

import pytest
from devtools import Page, artifacts
from fabricated import write_run
from mlflow_servers import clean_tracking, free_port  # noqa: F401

from benchmark.runs.tracking import store
from benchmark.runs.tracking.importer import import_runs
from benchmark.runs.tracking.notes import experiment_note, served_at
from benchmark.study import load_study
from benchmark.study.grid import expand

pytestmark = pytest.mark.browser
NO_ACCOUNTS = "/ajax-api/2.0/mlflow/users/current"  # MLflow asks for a user, and a server without accounts has none


@pytest.fixture(scope="module")
def ui(tmp_path_factory):
    """The UI as ``make ui`` starts it, on the runs of the smoke study: (address, runs by name, experiment)."""
    results = tmp_path_factory.mktemp("results")
    study = load_study("smoke")
    specs = {name: run.spec for name, run in expand(study).items()}
    for spec in specs.values():
        write_run(results, spec)
    page = results / "smoke" / "report" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text("<!doctype html><title>The report</title>")
    note = experiment_note(study.name, study.title, study.question, study.metrics, served=True)
    import_runs("smoke", note, specs, results)
    client = store.connect(results)
    experiment = client.get_experiment_by_name("smoke").experiment_id
    runs = {run.info.run_name: run for run in client.search_runs([experiment])}

    port = free_port()
    command = [
        sys.executable,
        "-m",
        "benchmark",
        "track",
        "ui",
        "--results",
        str(results),
        "--port",
        str(port),
    ]
    with open(results / "ui.log", "w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    address = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 90
        while store.unreachable(address):
            assert time.monotonic() < deadline, (results / "ui.log").read_text()
            time.sleep(0.3)
        yield address, runs, experiment
    finally:
        os.killpg(process.pid, 9)
        process.wait()


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with Page(tmp_path_factory.mktemp("profile"), width=2000, height=1200) as page:
        yield page


def everything_is_local_and_well(page: Page, address: str) -> None:
    assert [problem for problem in page.problems() if NO_ACCOUNTS not in problem] == []
    assert page.requests() and [url for url in page.requests() if not url.startswith(address)] == []


def test_the_list_of_runs_shows_names_and_what_runs_are_compared_by(ui, page):
    address, runs, experiment = ui
    page.open(f"{address}/#/experiments/{experiment}/runs")
    page.wait_for("document.body.innerText.includes('smooth_ap bs32 seed0')")
    text = page.text()
    shown = [name for name in runs if name.split(" (")[0] in text]
    assert len(shown) >= 10
    page.screenshot(artifacts() / "mlflow_runs.png")
    everything_is_local_and_well(page, address)


def test_the_comparison_of_all_runs_has_their_parameters_and_final_metrics(ui, page):
    address, runs, experiment = ui
    chosen = [run.info.run_id for run in runs.values()]
    query = f"runs={quote(json.dumps(chosen))}&experiments={quote(json.dumps([experiment]))}"
    page.open(f"{address}/#/compare-runs?{query}")
    page.wait_for("document.body.innerText.includes('recall_at_1')")
    text = page.text()
    for name in ("loss", "batch_size", "seed", "dataset", "recall_at_1", "map_at_r"):
        assert name in text, name
    for loss in ("smooth_ap", "roadmap", "proxy_nca"):
        assert loss in text, loss
    assert f"Comparing {len(runs)} Runs" in text
    page.screenshot(artifacts() / "mlflow_compare.png")
    everything_is_local_and_well(page, address)


def test_the_charts_draw_every_final_metric(ui, page):
    address, _, experiment = ui
    page.open(f"{address}/#/experiments/{experiment}/runs?compareRunsMode=CHART")
    page.wait_for("document.querySelectorAll('.js-plotly-plot').length > 3")
    page.screenshot(artifacts() / "mlflow_charts.png")
    for name in ("recall_at_1", "map_at_r"):
        page.wait_for(f"document.body.textContent.includes('{name}')")
    everything_is_local_and_well(page, address)


def test_the_description_of_the_study_links_its_report(ui, page):
    address, _, experiment = ui
    page.open(f"{address}/#/experiments/{experiment}/runs")
    page.wait_for("document.body.innerText.includes('Every loss in miniature')")
    with urllib.request.urlopen(f"{address}{served_at('smoke')}") as answer:
        assert b"The report" in answer.read()
