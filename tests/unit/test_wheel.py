"""``pip install .`` alone gives the ranking losses, the metrics, ``conform`` and ``judge``."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import numpy as np
import pytest
import torch
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from benchmark.metrics import retrieval_metrics

ROOT = Path(__file__).resolve().parents[2]

# Runs a program where only the packages named first can be imported.
ONLY_BASE = """
import runpy, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in absent:
            raise ModuleNotFoundError(f"not installed here: {name}", name=name)

absent = set(sys.argv.pop(1).split(","))
sys.meta_path.insert(0, Absent())
sys.argv.pop(0)
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""

LIBRARY = """
import json, sys
import torch
import benchmark.losses
heavy = {"pandas", "mlflow", "snakemake", "timm", "torchvision", "matplotlib"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
generator = torch.Generator().manual_seed(7)
embeddings = torch.randn(40, 8, generator=generator).requires_grad_()
labels = torch.arange(10).repeat(4)
ranking = [loss.name for loss in benchmark.losses.LOSSES if loss.facts["kind"] == "ranking"]
for name in ranking:
    value = benchmark.losses.create_loss(name)(embeddings, labels)
    value.backward()
    assert value.isfinite() and embeddings.grad.isfinite().all(), name
from benchmark.metrics import retrieval_metrics
scores = retrieval_metrics(embeddings.detach().numpy(), labels.numpy())
print(json.dumps({"losses": ranking, "scores": scores}))
"""

CANDIDATE = """
from benchmark.losses import create_loss
def candidate(embeddings, labels):
    return create_loss("smooth_ap")(embeddings, labels)
"""


def needed(package: str, found: set[str]) -> set[str]:
    """Return the names of a package and of all that it needs, added to ``found``."""
    name = canonicalize_name(package)
    if name not in found:
        found.add(name)
        try:
            wanted = [Requirement(text) for text in requires(name) or []]
        except PackageNotFoundError:  # of another platform
            return found
        for each in wanted:
            if each.marker is None or each.marker.evaluate({"extra": ""}):
                needed(each.name, found)
    return found


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with the wheel alone, and the modules that a base installation lacks."""
    folder = tmp_path_factory.mktemp("wheel")
    copy = folder / "source"
    names = ("benchmark", "snakemake_logger_plugin_runs")
    for name in names:
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    pip = [sys.executable, "-m", "pip", "install", "-qq", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--target", folder / "site", copy], check=True)
    base = tomllib.loads((copy / "pyproject.toml").read_text())["project"]["dependencies"]
    present: set[str] = set()
    for text in base:
        needed(Requirement(text).name, present)
    owners = packages_distributions()
    absent = {
        module
        for module, packages in owners.items()
        if not {canonicalize_name(package) for package in packages} & present
    }
    return folder, sorted(absent - set(names))


def call(installed, *words: str) -> subprocess.CompletedProcess[str]:
    folder, absent = installed
    return subprocess.run(
        [sys.executable, "-c", ONLY_BASE, ",".join(absent), *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "site")},
        capture_output=True,
        text=True,
    )


def test_losses_and_metrics_need_the_base_packages_alone(installed):
    folder, absent = installed
    assert {"pandas", "mlflow", "snakemake", "timm", "faiss", "PIL"} <= set(absent)
    (folder / "library.py").write_text(LIBRARY)
    done = call(installed, "library")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    rows = torch.randn(40, 8, generator=torch.Generator().manual_seed(7)).numpy()
    scores = retrieval_metrics(rows, np.tile(np.arange(10), 4))
    assert len(found["losses"]) > 10
    assert found["scores"] == pytest.approx(scores)


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("judge --ours 62.4 --n 1 --published 65.9 --spread 0.3", "drifted"),
        ("conform candidate.py:candidate --as smooth_ap --no-processes", "passed"),
        ("--help", "Look closer"),
    ],
)
def test_verbs_need_the_base_packages_alone(words, answer, installed):
    (installed[0] / "candidate.py").write_text(CANDIDATE)
    done = call(installed, "benchmark", *words.split())
    assert done.returncode == 0 and answer in done.stdout, done.stdout + done.stderr
