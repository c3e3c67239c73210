"""Regression: the results at hand against the published numbers and the frozen runs of each study.

Skipped where there are no results. A failure names each drifted number, both values, n and the
rule.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from reference_checks import drift_report

from benchmark.published.loading import load_papers
from benchmark.runs.run_table import RunTable
from benchmark.study import load_study, study_names
from benchmark.verdicts.frozen import load_frozen
from benchmark.verdicts.matching import StudyGrid

ROOT = Path(__file__).parents[2]
STUDIES = study_names()


def results_of(name: str):
    """Return (study, its tables of runs); skip when the study was not run here."""
    study = load_study(name)
    path = study.folder(ROOT / "results") / "runs.csv"
    if not path.is_file():
        pytest.skip(f"no results of {name} here ({path} does not exist)")
    return study, RunTable.read(path.parent)


def test_there_are_studies_to_check():
    assert "embedded" in STUDIES


@pytest.mark.parametrize("name", STUDIES)
def test_results_have_not_drifted_from_the_published_numbers(name):
    study, runs = results_of(name)
    if not study.references.published:
        pytest.skip(f"{name} names no published tables")
    numbers = load_papers().asked(study.references.published)
    report = drift_report(runs, published=numbers, grid=StudyGrid.of(study))
    assert not report, report


@pytest.mark.parametrize("name", STUDIES)
def test_results_have_not_drifted_from_the_frozen_runs(name):
    study, runs = results_of(name)
    frozen = ROOT / (study.references.frozen or "none")
    if not frozen.is_file():
        pytest.skip(f"{name} has no frozen reference yet ({frozen})")
    report = drift_report(runs, frozen=load_frozen(frozen))
    assert not report, report
