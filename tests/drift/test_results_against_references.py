"""Regression: the results at hand against the published numbers and the frozen runs of each study.

Skipped where there are no results. A failure names each drifted number, both values, n and the rule.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from reference_checks import drift_report

from benchmark.papers.references import asked_results, load_frozen
from benchmark.papers.verdicts.facts import study_facts
from benchmark.stats import load_runs
from benchmark.study import load_study, study_names

ROOT = Path(__file__).parents[2]
STUDIES = study_names()


def results_of(name: str):
    """Returns (study, its long table); skips when the study was not run here."""
    study = load_study(name)
    path = study.folder(ROOT / "results") / "runs.csv"
    if not path.is_file():
        pytest.skip(f"no results of {name} here ({path} does not exist)")
    return study, load_runs(path)


def test_there_are_studies_to_check():
    assert "embedded" in STUDIES


@pytest.mark.parametrize("name", STUDIES)
def test_results_have_not_drifted_from_the_published_numbers(name):
    study, runs = results_of(name)
    if not study.references.published:
        pytest.skip(f"{name} names no published tables")
    report = drift_report(
        runs, published=asked_results(study.references.published), facts=study_facts(study)
    )
    assert not report, report


@pytest.mark.parametrize("name", STUDIES)
def test_results_have_not_drifted_from_the_frozen_runs(name):
    study, runs = results_of(name)
    frozen = ROOT / (study.references.frozen or "none")
    if not frozen.is_file():
        pytest.skip(f"{name} has no frozen reference yet ({frozen})")
    report = drift_report(runs, frozen=load_frozen(frozen))
    assert not report, report
