"""MLflow's pages on the runs of the smoke study in headless Chromium, without errors.

The pictures are kept for people in results/test-artifacts (or BENCHMARK_TEST_ARTIFACTS).
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from urllib.parse import quote

import pytest
from made_up_records import write_run
from mlflow_servers import answers, clean_tracking, free_port  # noqa: F401
from workplace import ROOT

from benchmark.core.files import write_text
from benchmark.runs.tracking import connected, import_runs
from benchmark.study import load_study
from benchmark.study.grid import expand

pytestmark = pytest.mark.browser
# MLflow asks for a user, which a server without accounts has not; its plots resize themselves.
HARMLESS = ("/ajax-api/2.0/mlflow/users/current", "ResizeObserver loop completed")


@pytest.fixture(scope="module")
def ui(tmp_path_factory):
    """The UI as ``make ui`` starts it: (address, runs of the smoke study by name, experiment)."""
    results = tmp_path_factory.mktemp("results")
    study = load_study("smoke")
    specs = {name: run.spec for name, run in expand(study).items()}
    for spec in specs.values():
        write_run(results, spec)
    write_text(results / "report" / "index.html", "the page of the study")
    words = ("smoke", study.title, list(specs.values()), results, results / "none")
    import_runs(*words, study.metrics)
    with connected(results) as client:
        experiment = client.get_experiment_by_name("smoke").experiment_id
        runs = {run.info.run_name: run for run in client.search_runs([experiment])}

    port = free_port()
    command = ["make", "ui", f"RESULTS={results}", f"PORT={port}", f"PY={sys.executable}"]
    with open(results / "ui.log", "w") as log:
        streams = {"stdout": log, "stderr": log, "start_new_session": True}
        process = subprocess.Popen(command, cwd=ROOT, **streams)
    address = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 90
        while not answers(address):
            assert time.monotonic() < deadline, (results / "ui.log").read_text()
            time.sleep(0.3)
        yield address, runs, experiment
        said = (results / "ui.log").read_text()
        assert said.endswith(f"MLflow is at {address}; Ctrl-C ends it\n")
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()


@pytest.fixture
def page(visit):
    return visit(width=2000, height=1200)


def everything_is_local_and_well(page, address: str) -> None:
    errors = [error for error in page.errors if not any(part in error for part in HARMLESS)]
    assert errors == []
    assert page.requests
    assert [url for url in page.requests if not url.startswith(address)] == []


def wait_for_text(page, text: str) -> str:
    """Return the text that the page shows, once ``text`` is part of it."""
    page.page.wait_for_function("text => document.body?.innerText.includes(text)", arg=text)
    return page.page.inner_text("body")


def test_the_list_of_runs_shows_their_names_and_a_run_its_dataset(ui, page, pictures):
    address, runs, experiment = ui
    page.open(f"{address}/#/experiments/{experiment}/runs")
    text = wait_for_text(page, "smooth_ap bs32 seed0")
    shown = [name for name in runs if name.split(" (")[0] in text]
    assert len(shown) >= 10
    wait_for_text(page, "Every loss in miniature")
    page.page.screenshot(path=pictures / "mlflow_runs.png")
    everything_is_local_and_well(page, address)
    run = next(iter(runs.values()))
    page.open(f"{address}/#/experiments/{experiment}/runs/{run.info.run_id}")
    wait_for_text(page, run.data.params["dataset"] + " (")
    everything_is_local_and_well(page, address)


def test_the_list_that_notes_link_to_has_loss_batch_size_and_scores(ui, page, pictures):
    address, runs, experiment = ui
    page.open(f"{address}/#/experiments/{experiment}/runs?viewStateShareKey=columns")
    wait_for_text(page, "recall_at_1")
    for column in ("recall_at_1", "batch_size", "loss"):
        assert page.page.locator(f"[role=columnheader]:has-text('{column}')").count(), column
    page.page.screenshot(path=pictures / "mlflow_columns.png")
    listed = [name.inner_text() for name in page.page.locator("a", has_text=" seed").all()]
    assert len(listed) > 10
    fields = [re.match(r"(\w+) bs(\d+) seed(\d+) ", name).groups() for name in listed]
    order = [(loss, int(batch), int(seed)) for loss, batch, seed in fields]
    assert order == sorted(order)
    report = page.page.locator("a", has_text="Report").first.get_attribute("href")
    assert urllib.request.urlopen(address + report).read() == b"the page of the study"
    run = next(iter(runs.values())).info.run_id
    page.open(f"{address}/#/experiments/{experiment}/runs/{run}")
    wait_for_text(page, "Report of the study")


def test_names_of_runs_are_whole_and_loss_and_seed_are_seen_on_a_small_screen(ui, visit, pictures):
    address, _, experiment = ui
    page = visit(width=1400, height=900)
    page.open(f"{address}/#/experiments/{experiment}/runs?viewStateShareKey=columns")
    wait_for_text(page, "batch_size")
    names = page.page.locator("a", has_text=" seed")
    names.first.wait_for()
    page.page.screenshot(path=pictures / "mlflow_small_screen.png")
    cut = "names => names.filter(each => each.scrollWidth > each.clientWidth + 1).length"
    assert names.evaluate_all(cut) == 0
    edge = page.page.locator("[role=grid], [role=treegrid]").first.bounding_box()
    for column in ("loss", "seed"):  # beside the longest names
        box = page.page.locator(f"[role=columnheader][col-id='params.`{column}`']").bounding_box()
        assert box["x"] + box["width"] <= edge["x"] + edge["width"] + 1, column


def test_the_comparison_of_all_runs_has_their_parameters_and_final_metrics(ui, page, pictures):
    address, runs, experiment = ui
    chosen = [run.info.run_id for run in runs.values()]
    query = f"runs={quote(json.dumps(chosen))}&experiments={quote(json.dumps([experiment]))}"
    page.open(f"{address}/#/compare-runs?{query}")
    text = wait_for_text(page, "recall_at_1")
    for name in ("loss", "batch_size", "seed", "dataset", "recall_at_1", "map_at_r"):
        assert name in text, name
    for loss in ("smooth_ap", "roadmap", "proxy_nca"):
        assert loss in text, loss
    assert f"Comparing {len(runs)} Runs" in text
    page.page.screenshot(path=pictures / "mlflow_compare.png")
    everything_is_local_and_well(page, address)


def test_the_charts_draw_metrics_over_epochs(ui, page, pictures):
    address, _, experiment = ui
    page.open(f"{address}/#/experiments/{experiment}/runs?compareRunsMode=CHART")
    page.page.wait_for_function("document.querySelectorAll('.js-plotly-plot').length > 3")
    page.page.screenshot(path=pictures / "mlflow_charts.png")
    for name in ("best/recall_at_1", "cost/images_per_second"):
        page.page.wait_for_function("name => document.body.textContent.includes(name)", arg=name)
    everything_is_local_and_well(page, address)


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("GET", {"Host": "evil.example"}),
        ("POST", {"Origin": "http://evil.example", "Content-Type": "application/json"}),
    ],
    ids=["a name that an attacker points here", "a form on another site"],
)
def test_the_pages_of_others_cannot_reach_the_store(ui, method, headers):
    url = f"{ui[0]}/api/2.0/mlflow/experiments/create"
    body = b'{"name": "owned"}' if method == "POST" else None
    request = urllib.request.Request(url, body, headers, method=method)
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(request, timeout=30)
