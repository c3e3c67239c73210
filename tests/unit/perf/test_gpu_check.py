"""The check of a GPU, in miniature on a CPU, where hardly any package is installed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
LACKING = (
    "snakemake,mlflow,faiss,pytorch_metric_learning,typer,click,pydantic,jsonschema,matplotlib,"
    "scipy,statsmodels,rich,sklearn,requests,simplejpeg,jinja2"
)


def test_every_part_runs_in_miniature_without_the_packages_of_the_suite(tmp_path):
    program = ROOT / "tests" / "helpers" / "without_packages.py"
    command = [sys.executable, str(program), LACKING, "bench", "gpu", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    report = json.loads((tmp_path / "gpu.json").read_text())
    assert len(report["parts"]) == 7, done.stderr
    for title, part in report["parts"].items():
        assert "failed" not in part, (title, part)
        assert part["rows"], title
        wrong = [row for row in part["rows"] if "failed" in row or row.get("within") is False]
        assert not wrong, title
    assert done.returncode == 0
    page = (tmp_path / "index.html").read_text()
    assert "in miniature" in page and "<svg" in page and "smooth_ap" in page


def test_a_part_that_fails_leaves_the_others_and_is_named(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tests"))
    from perf.gpu.check import run

    def broken(place):
        raise RuntimeError("no kernel")

    said = []
    parts = {"bad": (1, broken), "good": (1, lambda place: [{"within": True, "seconds": 1.5}])}
    assert run(tmp_path, said.append, parts) == 1
    report = json.loads((tmp_path / "gpu.json").read_text())
    assert report["parts"]["bad"]["failed"] == "RuntimeError: no kernel"
    assert report["parts"]["good"]["rows"] == [{"within": True, "seconds": 1.5}]
    assert "look at: bad" in said[-1]
