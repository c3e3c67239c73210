"""A small paper in a folder of its own, whose files a test can spoil one by one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmark.published.loading import PaperError, PaperFolder, load_papers
from benchmark.published.schema import Paper
from benchmark.study.model import ROOT

FILES = {
    "paper.yaml": "name: Toy\ncitation: Nobody et al., 2030\ntitle: A toy\n",
    "results.csv": (
        "table,row_label,method,provenance,dataset,protocol,backbone,embedding_dim,batch_size,"
        "conditions,metric,value,std,n_runs,unit,comment\n"
        "table1,Toy,toy,own,cub,,resnet50,512,64,,recall_at_1,61.2,0.3,3,percent,\n"
        "table1,Toy,toy,own,sop,,resnet50,512,64,tau=0.1,recall_at_1,78.0,,,percent,\n"
        "table1,Other,smoothap,copied,cub,,,,,,recall_at_1,60.0,,,percent,\n"
    ),
    "implied.yaml": (
        "implied:\n  - rows: {dataset: cub}\n    means: {sampling: hard}\n    why: section 3\n"
    ),
    "outside.yaml": "outside:\n  - rows: {dataset: sop}\n    reason: no time\n",
    "tables.yaml": "table1: {title: toys, rows: [row_label], columns: [dataset, metric]}\n",
    "claims.yaml": (
        "toy_beats_smooth_ap:\n  stated_in: section 4, table 1\n"
        "  sentence: The toy loss is better than SmoothAP.\n  kind: beats\n"
        "  metrics: [recall_at_1]\n  published: [{datasets: [cub], batch_sizes: [64]}]\n"
        "  first: [{loss: sup_ap, where: {tau: 0.1}}]\n  second: [smooth_ap]\n"
    ),
    "figures.yaml": (
        "fig2:\n  title: a sweep\n  kind: sweep\n  studies: [toy]\n  panels:\n"
        "    - {title: temperature, loss: sup_ap, x: tau, metric: recall_at_1, "
        "backbone: resnet50, test_sets: [{dataset: cub}], published: {table: table1, at: 0.1}}\n"
    ),
    "footnotes.yaml": (
        "footnotes:\n  - {at: table1, where: {row_label: Toy}, also: smoothap2020/table2}\n"
    ),
}
METHODS = "methods: {toy: {loss: sup_ap}}\n"


def write_paper(parent: Path, key: str = "toy2030", **files: str | None) -> Path:
    """Write the paper below ``parent``; ``files`` replace a file by its stem, None leaves it
    out."""
    folder = parent / key
    folder.mkdir(parents=True)
    for name, text in FILES.items():
        text = files.get(name.partition(".")[0], text + (METHODS if name == "paper.yaml" else ""))
        if text is not None:
            (folder / name).write_text(text, encoding="utf-8")
    return folder


def load_paper(folder: Path) -> Paper:
    """Return the paper in ``folder``; raise PaperError with every problem of its files."""
    opened = PaperFolder(folder)
    if opened.paper is not None:
        opened.check({**load_papers(), folder.name: opened.paper})
    if opened.problems:
        raise PaperError(opened.problems)
    return opened.paper


def problems(tmp_path: Path, **files: str | None) -> PaperError:
    """Return what is said of the paper with these files."""
    folder = write_paper(tmp_path, **files)
    with pytest.raises(PaperError) as caught:
        load_paper(folder)
    return caught.value


def changed(name: str, old: str, new: str) -> str:
    """Return a file of the paper with one place changed."""
    assert old in FILES[name]
    return FILES[name].replace(old, new)


def refused_by(*command: str, plugins: Path) -> str:
    """Return what a module prints that ends with status 2 because of papers in ``plugins``."""
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        env={**os.environ, "BENCHMARK_PLUGINS": str(plugins)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr
    return done.stderr
