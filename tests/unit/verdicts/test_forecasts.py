"""What ``plan`` says of a study's seeds before any run."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter

import pytest
from typer.testing import CliRunner

from benchmark.__main__ import app
from benchmark.metrics.metric import display_name
from benchmark.published.loading import load_papers
from benchmark.published.paper import Papers
from benchmark.stats.planning import chance_to_confirm, pocock, seeds_needed, smallest_drift
from benchmark.stats.reproduction import ALPHA
from benchmark.study import load_study
from benchmark.study.model import ROOT
from benchmark.verdicts.forecast import as_text, designs, gpu_hours, undecidable
from benchmark.verdicts.matching import StudyGrid

STUDY = load_study("roadmap")


def test_every_table_is_forecast_at_its_real_family_size():
    found = designs(StudyGrid.of(STUDY))
    sizes: Counter = Counter()
    for key, (_, cells) in found.items():
        sizes[key[:2]] += len(cells)
    assert found
    assert all(design.family == sizes[key[:2]] for key, (design, _) in found.items())


def test_spreads_are_the_largest_that_papers_print():
    spreads = {key[2:]: design.spread for key, (design, _) in designs(StudyGrid.of(STUDY)).items()}
    assert spreads["cub", "recall_at_1"] == pytest.approx(0.51)
    assert spreads["sop", "map_at_r"] == pytest.approx(0.27)


def test_the_text_names_what_no_number_of_seeds_can_see_and_the_price():
    text = as_text(StudyGrid.of(STUDY))
    assert "drift, 3 seeds  drift, 5 seeds  drift, 10 seeds" in text
    assert "none" in text
    assert "GPU-hours of the whole study, at most: 3 seeds" in text
    assert " h)" in text


def test_more_seeds_cost_more_and_call_smaller_drifts():
    _, hours = gpu_hours(STUDY)
    assert list(hours) == [3, 5, 10]
    assert list(hours.values()) == sorted(hours.values())
    for line in as_text(StudyGrid.of(STUDY)).splitlines()[1:3]:
        drifts = [float(word) for word in line.split("%")[1].split()[:3]]
        assert drifts == sorted(drifts, reverse=True)
        assert drifts[0] > drifts[-1]


def test_looks_that_are_planned_cost_some_power():
    design, _ = next(iter(designs(StudyGrid.of(STUDY)).values()))
    assert design.alpha == pocock((3, 5, 10)) < ALPHA
    alone = dataclasses.replace(design, alpha=ALPHA)
    assert smallest_drift(alone) < smallest_drift(design)


@pytest.mark.parametrize("name", ["roadmap", "smooth_ap", "fast_ap", "listwise"])
def test_the_papers_studies_plan_looks_up_to_all_their_seeds(name):
    study = load_study(name)
    assert study.looks[-1] == len(study.planned_seeds) == 10
    assert len(study.seeds) == study.looks[0] >= 3


@pytest.mark.parametrize("name", ["roadmap", "smooth_ap", "fast_ap", "listwise"])
def test_the_page_lists_the_numbers_that_no_number_of_seeds_decides(name):
    """Neither does an equal number come out as one, nor is a drift of 3 points called."""
    study = load_study(name)
    numbers = undecidable(StudyGrid.of(study))
    found = dict(numbers)
    for place, (design, cells) in designs(StudyGrid.of(study)).items():
        known = (
            design if design.spread == design.spread else dataclasses.replace(design, spread=0.5)
        )
        many = dataclasses.replace(known, seeds=100)
        hopeless = seeds_needed(known, 3.0) is None and chance_to_confirm(many) < 0.1
        listed = found.pop(place, 0)
        assert listed == (len(cells) if hopeless else 0)
    assert not found
    page = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    (row,) = re.findall(rf"^\| `{name}` \| ([^|]*) \| ([^|]*) \|$", page, re.MULTILINE)
    places = [f"{table} {data} {display_name(metric)}" for _, table, data, metric in numbers]
    assert row == (str(sum(numbers.values())), ", ".join(dict.fromkeys(places)) or "none")


def test_the_plan_shows_forecasts_to_those_who_ask(tmp_path):
    def told(*words: str) -> str:
        words = ("plan", "fast_ap_table1", "--results", str(tmp_path), *words)
        return CliRunner().invoke(app, words).output

    assert "confirmed" not in told()
    assert "confirmed" in told("--power")


def test_nothing_is_forecast_without_published_tables():
    assert as_text(StudyGrid.of(load_study("smoke"))) == ""


@pytest.mark.parametrize("std", [0.0, 1e-300])
def test_a_printed_spread_of_nothing_is_no_spread(std, monkeypatch):
    """Papers print +- 0.0 of a spread that they round; no number of seeds follows from it."""
    printed = [
        dataclasses.replace(each, std=std) for each in load_papers().asked(["roadmap2021v2"])
    ]
    monkeypatch.setattr(Papers, "asked", lambda papers, names: printed)
    text = as_text(StudyGrid.of(STUDY))
    assert text
    assert std or "0.5?" in text
