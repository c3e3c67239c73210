"""An edited data file makes exactly the steps that read it again, and trains nothing."""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from paper_folders import write_paper
from workplace import ALL_STEPS, ROOT, DryRuns, Workplace, jobs, small_study

from benchmark.study.data_files import PACKAGE, STEPS

REPORT = "results/small/report/index.html"
NUMBERS = "roadmap2021/results.csv"
READ = (
    "vocabulary.yaml",
    "sweeps.yaml",
    "repeated.yaml",
    "claims.yaml",  # of the suite's own studies
    "fidelity.csv",
    "pretraining.csv",
    "roadmap2021/paper.yaml",
    NUMBERS,
    "roadmap2021/implied.yaml",
    "roadmap2021/outside.yaml",  # which the paper gains
    "roadmap2021/tables.yaml",
    "roadmap2021/figures.yaml",
    "roadmap2021/footnotes.yaml",
    "roadmap2021/claims.yaml",
    # the study names no table of these
    "smoothap2020/results.csv",
    "smoothap2020/fidelity.csv",
    "listwise2019/outside.yaml",
    "smoothap2020/claims.yaml",
)
UNREAD = ("smoothap2020/tables.yaml", "smoothap2020/hyperparameters.csv")  # the last is for people
PLUGIN = ("paper.yaml", "results.csv", "outside.yaml", "claims.yaml")
ANALYSES = (  # which the study does not ask for
    "decomposability_gap/summary.json",
    "decomposability_gap/figure.csv",
    "decomposability_gap-glyphs_tiny/summary.json",
)


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory):
    """Yield a finished study that names two papers, beside a copy of the code and the papers."""
    folder = tmp_path_factory.mktemp("judged")
    for name in ("benchmark", "workflow", "envs"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / "code" / name, ignore=ignored)
    shutil.copy(ROOT / "Snakefile", folder / "code")
    variables = {"BENCHMARK_PLUGINS": f"{folder}/plugins", "QUICK_STEPS": ALL_STEPS}
    variables["BENCHMARK_FORK_SERVER"] = "off"
    work = Workplace(folder, folder / "code", environment=variables)
    write_paper(folder / "plugins")
    published = {"published": ["roadmap2021v2/table1", "toy2030"]}
    work.write({**small_study("small", ["smooth_ap", "roadmap"]), "references": published})
    for name in ("decomposability_gap", "decomposability_gap-glyphs_tiny"):
        analysis = folder / "results" / "small" / "analyses" / name  # which 'all' does not make
        analysis.mkdir(parents=True)
        (analysis / "figure.csv").write_text(
            "kind,trained_at,measured_at,seed,loss,gap\n"
            "gap,32,32,0,sup_ap,4\ngap,32,32,0,roadmap,3\n"
        )
        summary = {"schema": 1, "quick": False, "runs": [{"run_id": "glyphs_tiny/main"}]}
        (analysis / "summary.json").write_text(json.dumps(summary))
    done = work.snakemake("small", target=REPORT)
    assert done.returncode == 0, done.stdout + done.stderr
    with DryRuns(work.variables) as dry_runs:
        yield replace(work, dry_runs=dry_runs)


def test_an_edited_file_builds_again_and_trains_nothing(judged: Workplace):
    target = "results/small/analyses/decomposability_gap/summary.json"
    papers = judged.code / "benchmark" / "published"
    folder = judged.folder
    for name in UNREAD:
        edit(papers / name)
    assert "Nothing to be done" in judged.dry_run("small", REPORT).stdout
    for path in (folder / "results" / "small" / "analyses" / name for name in ANALYSES):
        before = path.read_bytes()
        edit(path)
        assert set(jobs(judged.dry_run("small", REPORT))) == {"build", "total"}, path
        path.write_bytes(before)
    paths = [f"code/benchmark/published/{name}" for name in READ]
    paths += [f"plugins/toy2030/{name}" for name in PLUGIN]
    paths += ["results/small/analyses/toy_ranking/summary.json"]
    (papers / "roadmap2021" / "outside.yaml").write_text("outside: []\n")
    for path in paths:
        edit(folder / path)
    planned = judged.dry_run("small", REPORT)
    assert set(jobs(planned)) == {"build", "total"}, planned.stdout
    # one of many files stands for all
    listed = re.search(r"reason: Updated input files: (\S+) and (\d+) more", planned.stdout)
    assert os.path.relpath(folder / listed[1], folder) in paths
    assert int(listed[2]) == len(paths) - 1
    assert set(jobs(judged.dry_run("small", target))) == {"analysis", "total"}


def edit(path: Path) -> None:
    with path.open("a") as file:
        file.write("\n")


def test_every_data_file_of_the_papers_is_read_by_some_step():
    read = {name for step in STEPS.values() for name in (*step.shared, *step.named, *step.every)}
    for_people = {"datasets.csv", "hyperparameters.csv", "NOTES.md"}
    files = {path.name for path in PACKAGE.rglob("*") if path.suffix in {".csv", ".yaml", ".md"}}
    assert files == read | for_people
