"""An edited data file makes exactly the steps that read it again, and trains nothing."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
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
    "claims.yaml",  # of the suite's own studies
    "fidelity.csv",
    "pretraining.csv",
    "roadmap2021/paper.yaml",
    NUMBERS,
    "roadmap2021/implied.yaml",
    "roadmap2021/tables.yaml",
    "roadmap2021/figures.yaml",
    "roadmap2021/footnotes.yaml",
    "roadmap2021/claims.yaml",
    # the study names no table of these
    "smoothap2020/results.csv",
    "smoothap2020/fidelity.csv",
    "listwise2019/outside.yaml",
    "smoothap2020/claims.yaml",
    # of a plugin folder
    "toy2030/paper.yaml",
    "toy2030/results.csv",
    "toy2030/outside.yaml",
    "toy2030/claims.yaml",
)
UNREAD = ("smoothap2020/tables.yaml", "smoothap2020/hyperparameters.csv")  # the last is for people


@dataclass(frozen=True)
class Judged:
    """A finished study that names two papers, beside a copy of the code and the papers."""

    work: Workplace

    @property
    def papers(self) -> Path:
        """The folder of all papers."""
        return self.work.code / "benchmark" / "papers"

    @property
    def plugins(self) -> Path:
        """The folder of papers of a user's own."""
        return self.work.folder / "plugins"

    @property
    def analyses(self) -> Path:
        """The folder of the study's analyses."""
        return self.work.folder / "results" / "small" / "analyses"

    def planned(self, target: str = REPORT) -> set[str]:
        """Return the steps that a dry run plans."""
        done = self.work.dry_run("small", target)
        assert done.returncode == 0, done.stdout
        return set(jobs(done)) - {"total"}


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judged]:
    folder = tmp_path_factory.mktemp("judged")
    for name in ("benchmark", "workflow", "envs"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / "code" / name, ignore=ignored)
    shutil.copy(ROOT / "Snakefile", folder / "code")
    variables = {"BENCHMARK_PLUGINS": str(folder / "plugins"), "QUICK_STEPS": ALL_STEPS}
    work = Workplace(folder, folder / "code", environment=variables)
    with DryRuns(work.variables) as dry_runs:
        study = Judged(replace(work, dry_runs=dry_runs))
        write_paper(study.plugins)
        published = {"published": ["roadmap2021v2/table1", "toy2030"]}
        work.write({**small_study("small", ["smooth_ap", "roadmap"]), "references": published})
        for name in ("decomposability_gap", "decomposability_gap-glyphs_tiny"):
            _write_analysis(study.analyses / name)
        done = work.snakemake("small", target=REPORT)
        assert done.returncode == 0, done.stdout + done.stderr
        assert study.planned() == set()
        yield study


@pytest.mark.parametrize("name", [*READ, *UNREAD])
def test_an_edited_data_file_builds_again_and_trains_nothing(judged: Judged, name: str):
    folder = judged.plugins if name.startswith("toy2030") else judged.papers
    assert _planned_after_edit(judged, folder / name) == ({"build"} if name in READ else set())


@pytest.mark.parametrize(
    "name",
    [
        "toy_ranking/summary.json",
        "decomposability_gap/summary.json",
        "decomposability_gap/figure.csv",
        "decomposability_gap-glyphs_tiny/summary.json",
    ],
)
def test_an_edited_result_of_an_analysis_builds_again(judged: Judged, name: str):
    assert _planned_after_edit(judged, judged.analyses / name, b" ") == {"build"}


def test_a_file_that_a_paper_gains_builds_again(judged: Judged):
    path = judged.papers / "roadmap2021" / "outside.yaml"
    path.write_text("outside: []\n")
    try:
        assert judged.planned() == {"build"}
    finally:
        path.unlink()
    assert judged.planned() == set()


def test_edited_numbers_make_the_analysis_again_that_is_compared_with_them(judged: Judged):
    target = "results/small/analyses/decomposability_gap/summary.json"
    assert judged.planned(target) == set()
    assert _planned_after_edit(judged, judged.papers / NUMBERS, target=target) == {"analysis"}


def test_every_data_file_of_the_papers_is_read_by_some_step():
    read = {name for step in STEPS.values() for name in (*step.shared, *step.named, *step.every)}
    for_people = {"datasets.csv", "hyperparameters.csv", "NOTES.md"}
    files = {path.name for path in PACKAGE.rglob("*") if path.suffix in {".csv", ".yaml", ".md"}}
    assert files == read | for_people


def _write_analysis(folder: Path) -> None:
    """Write what an analysis that 'all' does not make leaves, as far as other steps read it."""
    folder.mkdir(parents=True)
    (folder / "figure.csv").write_text(
        "kind,trained_at,measured_at,seed,loss,gap\ngap,32,32,0,sup_ap,4\ngap,32,32,0,roadmap,3\n"
    )
    summary = {"schema": 1, "quick": False, "runs": [{"run_id": "glyphs_tiny/main"}]}
    (folder / "summary.json").write_text(json.dumps(summary))


def _planned_after_edit(
    judged: Judged, path: Path, added: bytes = b"\n", target: str = REPORT
) -> set[str]:
    """Return the steps that a dry run plans after bytes were added to a file."""
    before, status = path.read_bytes(), path.stat()
    path.write_bytes(before + added)
    try:
        return judged.planned(target)
    finally:
        path.write_bytes(before)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
