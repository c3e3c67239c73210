"""A build asks for papers, candidates and the ledger of a study once, and passes them on."""

from __future__ import annotations

import sys
from collections import Counter

import pytest
from made_up_inputs import collected_provenance
from made_up_results import made_up_runs, run_table

from benchmark.core.files import write_json
from benchmark.report.build import build
from benchmark.report.gallery import PairChoice
from benchmark.study import load_study


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    """Return how often each function of the suite is called in one build of eight numbers."""
    results = tmp_path_factory.mktemp("results")
    study = load_study("smooth_ap_table2", results)
    folder = study.folder(results)
    run_table(made_up_runs(study)).write(folder)
    write_json(folder / "provenance.json", collected_provenance())
    counts: Counter[str] = Counter()

    def count(frame, event, argument):
        if event == "call" and "benchmark" in frame.f_code.co_filename:
            counts[frame.f_code.co_qualname] += 1

    sys.setprofile(count)
    try:
        built = build(study, results, PairChoice())
    finally:
        sys.setprofile(None)
    assert not built.failed
    return counts


@pytest.mark.parametrize(
    ("function", "most"),
    [
        ("candidates", 1),
        ("study_ledger", 1),
        ("judge_study", 1),
        ("load_papers", 10),
        ("PublishedNumber.places", 10_000),
    ],
)
def test_a_build_makes_each_once(calls, function, most):
    assert 0 < calls[function] <= most
