"""The real thing in miniature: real training, from a study file to the report.

A picture of the report is kept for people in results/test-artifacts (or BENCHMARK_TEST_ARTIFACTS).
"""

from __future__ import annotations

import csv
import os
import shutil
import sys
import zipfile
from pathlib import Path

import pytest
import yaml
from paper_folders import write_paper
from workplace import ROOT, DryRuns, jobs, run_in

from benchmark.losses import LOSSES
from benchmark.losses.catalogue import load_catalogue
from benchmark.study import load_study
from benchmark.study.grid import expand

TOY_LOSS = """
from dataclasses import dataclass

from benchmark.losses import LOSSES
from benchmark.losses.base import Loss
from benchmark.core.options import option


@LOSSES.register("pull_together", display="PullTogether", paper="a test", kind="pair")
class PullTogether(Loss):
    @dataclass(frozen=True, kw_only=True)
    class Config:
        strength: float = option(1.0, above=0.0, help="factor of the loss")

    def forward(
        self, embeddings, labels, reference_embeddings=None, reference_labels=None,
        *, generator=None
    ):
        same = (labels[:, None] == labels[None, :]).to(embeddings.dtype)
        scores = embeddings @ embeddings.T
        return self.config.strength * (scores * (1 - same) - scores * same).mean()
"""


USER = "somebody-private"
HOST = "a-private-machine"
# Each process of the study imports it first.
NAMED_MACHINE = f"""
import platform, socket
socket.gethostname = platform.node = lambda: {HOST!r}
"""


def smoke_words(folder: Path) -> tuple[list[str], dict[str, str]]:
    """Return the arguments of Snakemake, and the variables, for the study of a folder."""
    words = ["--snakefile", str(ROOT / "workflow/Snakefile"), "--cores", "2", "--config"]
    words += ["study=./smoke.yaml", "--profile", str(ROOT / "workflow" / "profiles" / "local")]
    named = dict.fromkeys(("USER", "LOGNAME", "LNAME", "USERNAME"), USER)
    path = os.pathsep.join([str(ROOT), str(folder)])
    variables = {"PYTHONPATH": path, "BENCHMARK_PLUGINS": str(folder / "plugins")}
    return words, {**os.environ, **named, "HOSTNAME": HOST, **variables}


def long_table(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as stream:
        return list(csv.DictReader(stream))


def run_smoke(place: Path, losses: list[str], blocks: int = 2, **changes: object) -> Path:
    """Return ``place``, in which a smaller smoke study has been run, with a loss of its own."""
    (place / "plugins").mkdir(exist_ok=True)
    (place / "plugins" / "pull_together.py").write_text(TOY_LOSS)
    (place / "sitecustomize.py").write_text(NAMED_MACHINE)
    content = yaml.safe_load((ROOT / "workflow" / "config" / "smoke.yaml").read_text())
    content["blocks"][0]["losses"] = [*losses, "pull_together"]
    del content["blocks"][blocks:]
    content["comparison"]["ablation"] = ["smooth_ap", "pull_together"]
    (place / "smoke.yaml").write_text(yaml.safe_dump(content | changes, sort_keys=False))
    words, variables = smoke_words(place)
    done = run_in(place, [sys.executable, "-m", "snakemake", *words], variables)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return place


@pytest.fixture(scope="module")
def smoke(tmp_path_factory) -> Path:
    """Return a folder in which the smoke study has been run with two losses, and tracked."""
    return run_smoke(tmp_path_factory.mktemp("smoke"), ["smooth_ap"], blocks=1)


def check_results(place: Path, monkeypatch) -> Path:
    """Check that every run has finished and every output is there; return the study's folder."""
    # The plugin's loss is known in this test alone.
    LOSSES.names()
    monkeypatch.setattr(LOSSES, "_entries", dict(LOSSES._entries))
    monkeypatch.setenv("BENCHMARK_PLUGINS", str(place / "plugins"))
    study = load_study(str(place / "smoke.yaml"))
    folder = place / "results" / "smoke"
    rows = long_table(folder / "runs.csv")
    assert {row["run_id"] for row in rows} == set(expand(study))
    assert {row["status"] for row in rows} == {"ok"}
    scores = long_table(folder / "scores.csv")
    last = [row for row in scores if row["selection"] == "last"]
    assert {row["metric"] for row in last} >= {"recall_at_1", "map_at_r", "map"}
    assert all(0 <= float(row["value"]) <= 1 for row in last)

    page = (folder / "report" / "index.html").read_text()
    catalogue = load_catalogue()
    assert all(catalogue[name].display in page for name in study.losses)
    for part in ("stats/paired.csv", "verdicts.csv", "comparison.tex", "comparison.html"):
        found = folder / ("tables" if part.startswith("comparison") else ".") / part
        assert found.stat().st_size > 0, part
    assert list((folder / "figures").iterdir())
    assert (folder / "gallery" / "queries.csv").is_file()
    table = (folder / "tables" / "comparison.md").read_text().splitlines()
    (row,) = (line for line in table if line.startswith("| PullTogether |"))
    assert row.count("|") == next(line for line in table if "|" in line).count("|")
    assert str(len(rows)) in (folder / "imported.txt").read_text()
    return folder


def test_the_smoke_study_with_a_loss_of_ones_own_runs_to_its_report(smoke, monkeypatch):
    check_results(smoke, monkeypatch)


# One of each way to train: by ranks, with random numbers, with proxies, not; a block mines batches.
# 'make smoke' trains all losses.
SHORT = ["smooth_ap", "blackbox_ap", "proxy_nca", "untrained"]


@pytest.mark.long
def test_a_study_of_all_ways_to_train_and_a_paper_of_ones_own_is_reported_and_planned_again(
    tmp_path, monkeypatch
):
    write_paper(tmp_path / "plugins")
    references = {"published": ["roadmap2021v2/table1", "toy2030"]}
    folder = check_results(run_smoke(tmp_path, SHORT, references=references), monkeypatch)

    words, variables = smoke_words(tmp_path)
    command = [sys.executable, "-m", "snakemake", *words, "--report", "report.zip"]
    done = run_in(tmp_path, command, variables)
    assert done.returncode == 0, done.stderr
    held = [Path(name).name for name in zipfile.ZipFile(tmp_path / "report.zip").namelist()]
    assert {"index.html", "comparison.html", "metric_by_batch_size.svg", "figure.svg"} <= {*held}

    with DryRuns(variables) as dry_runs:
        assert "Nothing to be done" in dry_runs.ask(tmp_path, *words).stdout
        shutil.rmtree(folder / "tables")
        (folder / "verdicts.csv").unlink()
        planned = jobs(dry_runs.ask(tmp_path, *words))
        assert planned["build"] == 1
        assert not {"train", "collect"} & set(planned)
        min(tmp_path.glob("results/runs/*/*/*/*/*/result.json")).unlink()
        planned = jobs(dry_runs.ask(tmp_path, *words))
    assert [planned[step] for step in ("train", "collect", "build")] == [1, 1, 1]


def test_tracking_report_and_results_name_no_user_machine_or_folder(smoke):
    secrets = {USER, HOST, str(smoke), str(ROOT), str(Path.home())}
    node = os.uname().nodename
    if len(node) > 4 and node != "localhost":  # "vm" is anywhere
        secrets.add(node)
    study = smoke / "results" / "smoke"
    artifacts = smoke / "results" / "mlartifacts"
    kept = [path for each in (study, artifacts) for path in each.rglob("*") if path.is_file()]
    kept += [smoke / "results" / "mlflow.db"]
    names = ("spec.json", "result.json", "provenance.json", "metrics.jsonl")
    for name in names:
        kept += (smoke / "results" / "runs").rglob(name)
    kinds = {path.name for path in kept}
    assert kinds >= {"mlflow.db", "index.html", "runs.csv", *names}
    found = {
        (path.relative_to(smoke).as_posix(), secret)
        for path in kept
        for secret in secrets
        if secret.encode() in path.read_bytes()
    }
    assert found == set()


@pytest.mark.browser
def test_the_report_of_a_real_study_logs_no_error_and_asks_for_nothing_else(
    smoke,
    visit,
    pictures,
):
    report = smoke / "results" / "smoke" / "report" / "index.html"
    seen = visit()
    seen.open(report.as_uri())
    page = seen.page
    page.evaluate("document.querySelectorAll('details').forEach((node) => { node.open = true })")
    page.evaluate("document.querySelectorAll('th button').forEach((node) => node.click())")
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    page.wait_for_load_state("networkidle")
    assert seen.errors == []
    assert seen.requests == [report.as_uri()]
    page.evaluate("window.scrollTo(0, 0)")
    page.screenshot(path=pictures / "report.png")
    assert (pictures / "report.png").stat().st_size > 20_000
