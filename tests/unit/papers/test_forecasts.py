"""What ``plan`` says of a study's seeds before any run."""

from __future__ import annotations

import dataclasses

import pytest

from benchmark.papers import forecast
from benchmark.papers.forecast import as_text, forecasts, gpu_hours, printed_spreads
from benchmark.papers.library import asked_numbers
from benchmark.stats.looks import pocock
from benchmark.stats.planning import POWER, power, smallest_drift
from benchmark.stats.reproduction import ALPHA
from benchmark.study import load_study

STUDY = load_study("roadmap")


@pytest.fixture(scope="module")
def found():
    return forecasts(STUDY)


def test_every_table_is_forecast_at_its_real_family_size(found):
    for table in {(each.source, each.table) for each in found}:
        rows = [each for each in found if (each.source, each.table) == table]
        assert {each.design.family for each in rows} == {sum(each.numbers for each in rows)}


def test_the_smallest_drift_is_called_with_the_promised_probability(found):
    for each in found:
        assert power(each.design, each.smallest) == pytest.approx(POWER, abs=1e-6)


def test_the_seeds_that_a_drift_needs_are_the_fewest(found):
    for each in found[:6]:
        for drift, seeds in each.needed.items():
            if seeds is not None and seeds > 2:
                enough, fewer = (
                    power(dataclasses.replace(each.design, seeds=n), drift)
                    for n in (seeds, seeds - 1)
                )
                assert fewer < POWER <= enough


def test_spreads_are_the_largest_that_papers_print():
    largest = printed_spreads(asked_numbers(["roadmap2021v2"]))
    assert largest["cub", "recall_at_1"] == pytest.approx(0.51)
    assert largest["sop", "map_at_r"] == pytest.approx(0.27)


def test_the_text_names_what_no_number_of_seeds_can_see_and_the_price(found):
    text = as_text(found, gpu_hours(STUDY))
    assert "drift, 3 seeds  drift, 5 seeds  drift, 10 seeds" in text and "none" in text
    assert "GPU-hours of the whole study, at most: 3 seeds" in text and " h)" in text


def test_more_seeds_cost_more_and_call_smaller_drifts(found):
    hours = gpu_hours(STUDY)
    assert list(hours) == [3, 5, 10] and list(hours.values()) == sorted(hours.values())
    for each in found:
        drifts = list(each.with_seeds.values())
        assert drifts == sorted(drifts, reverse=True) and drifts[0] > drifts[-1]


def test_looks_that_are_planned_cost_some_power(found):
    (one, *_) = found
    assert one.design.alpha == pocock((3, 5, 10)) < ALPHA
    alone = dataclasses.replace(one.design, alpha=ALPHA)
    assert smallest_drift(alone) < one.smallest


@pytest.mark.parametrize("name", ["roadmap", "smooth_ap", "fast_ap", "listwise"])
def test_the_papers_studies_plan_looks_up_to_all_their_seeds(name):
    study = load_study(name)
    assert study.looks[-1] == len(study.planned_seeds) == 10
    assert len(study.seeds) == study.looks[0] >= 3


def test_nothing_is_forecast_without_published_tables():
    assert as_text([]) == ""


@pytest.mark.parametrize("std", [0.0, 1e-20, 1e-300])
def test_a_printed_spread_of_nothing_is_no_spread(std, monkeypatch):
    """Papers print +- 0.0 of a spread that they round; no number of seeds follows from it."""
    printed = [dataclasses.replace(each, std=std) for each in asked_numbers(["roadmap2021v2"])]
    monkeypatch.setattr(forecast, "asked_numbers", lambda names: printed)
    found = forecasts(STUDY)
    assert found and as_text(found)
    if not std:
        assert printed_spreads(printed) == {} and {each.origin for each in found} == {"assumed"}
