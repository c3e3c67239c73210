"""``plan STUDY --within``: what is chosen, said and written."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest
import yaml
from error_rates.weekend import HOURS, PAGE, TRUE, curve_rows, plan_of
from made_up_results import made_up_study
from typer.testing import CliRunner

from benchmark.__main__ import app
from benchmark.claims import weekend
from benchmark.claims.expected import Item, items_of
from benchmark.claims.weekend import choose_runs, expected, read_wish
from benchmark.core.errors import ConfigError
from benchmark.report.within_hours import as_text, curve_of, write_runs
from benchmark.runs.plan import states_of
from benchmark.stats.planning import Design
from benchmark.study import load_study
from benchmark.study.grid import expand
from benchmark.verdicts.matching import StudyGrid
from benchmark.verdicts.registration import register, registration_state

SHOWN = "listwise"  # the smallest of the four papers' studies


@pytest.fixture(scope="module")
def plan():
    return plan_of(SHOWN)


def told(*words: str) -> str:
    done = CliRunner().invoke(app, ["plan", *words])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize("within", ["24", "24x", "0h", "-1h", "h", "nanh", ""])
def test_all_problems_of_the_options_come_at_once(within, messages, tmp_path):
    taken = tmp_path / "taken.yaml"
    taken.touch()
    with pytest.raises(ConfigError) as caught:
        read_wish("roadmp", within, "0.8:0", taken)
    messages(caught.value)
    assert len(caught.value.problems) == 4


@pytest.mark.parametrize(
    "true",
    ["", "1", "0.8:0,0.3:3", "0.5:0,x:1,0.5:3", "0.5:0,0.5:0", "nan:0"],
)
def test_shares_of_true_differences_sum_to_one(true):
    with pytest.raises(ConfigError, match="--true"):
        read_wish(SHOWN, "24h", true, None)


def test_hours_days_and_differences_are_read():
    assert read_wish(SHOWN, "1.5d", "0.8:0,0.2:-3.5", None) == (
        36.0,
        {0.0: 0.8, -3.5: 0.2},
    )


def test_the_chance_of_a_claim_is_that_all_its_parts_hold_or_that_one_fails():
    part = Design(0, 0.5, family=2, sisters=1, reference_runs=10**9, margin=1.0)
    one, two = (Item("claims", frozenset("a"), (part,) * parts) for parts in (1, 2))
    one = one._replace(designs=(dataclasses.replace(part, family=2),))
    assert two.chance(3, 0.0) == pytest.approx(one.chance(3, 0.0) ** 2)
    assert two.chance(3, 3.0) == pytest.approx(1 - (1 - one.chance(3, 3.0)) ** 2)
    one_of_two = two._replace(spare=1)
    assert one_of_two.chance(3, 0.0) == pytest.approx(1 - (1 - one.chance(3, 0.0)) ** 2)
    assert one_of_two.chance(3, 3.0) == pytest.approx(one.chance(3, 3.0) ** 2)


def test_nothing_right_can_be_said_of_a_sentence_on_its_edge():
    beats = Item(
        "claims",
        frozenset("a"),
        (Design(0, 0.5, reference_runs=10**9, margin=0.0),),
    )
    assert beats.chance(10, 0.0) == 0.0
    assert beats.chance(10, 3.0) > 0.9
    assert beats.chance(10, -3.0) > 0.9


def test_more_hours_never_decide_fewer_and_fit_into_the_hours(plan):
    sums = []
    for hours, seeds in plan.chosen.items():
        assert sum(plan.hours[cell][n - 1] for cell, n in seeds.items()) <= hours + 1e-6
        sums.append(sum(expected(plan.items, seeds, TRUE).values()))
    assert sums == sorted(sums)
    assert sums[-1] > sums[0]


def test_a_claim_needs_all_its_cells(plan):
    claim = next(item for item in plan.items if len(item.cells) > 1)
    seeds = {cell: 10 for cell in plan.hours}
    assert expected([claim], seeds, {3.0: 1.0})["claims"] > 0.5
    seeds.pop(next(iter(claim.cells)))
    assert expected([claim], seeds, {3.0: 1.0})["claims"] == 0.0


def test_preferred_claims_are_decided_rather_than_numbers():
    study = load_study("fast_ap")
    plain, claims = (
        choose_runs(study, Path("no results"), 6.0, TRUE, prefer=prefer)
        for prefer in ("", "claims")
    )
    sums = [expected(each.items, each.chosen[6.0], TRUE) for each in (plain, claims)]
    assert sums[1]["claims"] > sums[0]["claims"]
    assert sums[1]["numbers"] < sums[0]["numbers"]


def test_a_slower_gpu_runs_fewer_and_finished_runs_cost_nothing(plan, monkeypatch):
    study = load_study(SHOWN)
    slow = choose_runs(study, Path("no results"), HOURS, TRUE, 0.5)
    first = next(iter(plan.hours))
    assert slow.hours[first][-1] == pytest.approx(2 * plan.hours[first][-1])

    def half_done(study, results):
        for run, state in states_of(study, results):
            done = run.spec.seed < 2
            yield (
                run,
                dataclasses.replace(state, result=object() if done else None),
            )

    monkeypatch.setattr(weekend, "states_of", half_done)
    begun = choose_runs(study, Path("no results"), HOURS, TRUE)
    assert set(begun.chosen[HOURS]) == set(plan.hours)
    assert begun.hours[first][1] == 0.0
    assert begun.hours[first][-1] == pytest.approx(0.8 * plan.hours[first][-1])


def test_only_runs_whose_files_are_here_are_chosen(monkeypatch):
    monkeypatch.setattr(
        weekend,
        "needs_of",
        lambda spec: {"data": spec.dataset.label == "sop"},
    )
    here = choose_runs(load_study("fast_ap"), Path("no results"), HOURS, TRUE, here=True)
    assert {cell.dataset for cell in here.chosen[HOURS]} == {"sop"}


def test_the_text_has_the_answer_three_worlds_and_what_is_dropped(plan):
    curve = curve_of(plan)
    text = as_text(plan, HOURS, curve)
    now = curve.loc[HOURS]
    first = text.splitlines()[0]
    assert first.startswith(f"24 hours: {now['numbers']:.1f} of 32 numbers and ")
    assert "are expected to be decided; 12 hours more: " in first
    for world in ("none", "3 points", "80% 0, 20% 3"):
        assert f"\n{world} " in text
    dropped = len(plan.hours) - len(plan.chosen[HOURS])
    assert f"dropped, {dropped} cells: " in text


def test_the_runs_are_a_study_that_says_why_it_has_them(tmp_path):
    path = tmp_path / "weekend.yaml"
    output = told(
        "roadmap",
        "--within",
        "6h",
        "--out",
        str(path),
        "--results",
        str(tmp_path),
    )
    assert f"Next: python -m benchmark run {path}" in output
    study = load_study(path, tmp_path)
    whole = {run.digest for run in expand(load_study("roadmap")).values()}
    plan = choose_runs(load_study("roadmap"), tmp_path, 6.0, TRUE)
    runs = {cell.run_id(seed) for cell, n in plan.chosen[6.0].items() for seed in range(n)}
    assert set(expand(study)) == runs
    first = {run.digest for run in expand(study).values() if run.spec.seed < 3}
    assert first <= whole, "runs are those of the whole study"
    chosen = plan.chosen[6.0]
    left = sum(not item.cells <= chosen.keys() for item in plan.items if item.kind == "numbers")
    why = f"Chosen by plan --within 6h of roadmap, which leaves out {left} of 281 numbers"
    assert why in study.question
    register(StudyGrid.of(study), tmp_path)
    assert (
        "nothing that decides a verdict has changed"
        in registration_state(StudyGrid.of(study), tmp_path).words
    )
    for kind in ("svg", "pdf"):
        assert path.with_suffix(f".{kind}").is_file()
    assert path.with_suffix(".csv").read_text().startswith("hours,numbers,claims\n1.5,")


def test_a_study_of_ones_own_is_about_its_comparisons(tmp_path):
    study = dataclasses.replace(made_up_study(), name="own")
    items = items_of(study)
    assert {item.kind for item in items} == {"comparisons"}
    assert len(items) == 7 * 2, "seven losses against the baseline at two batch sizes"
    plan = choose_runs(study, tmp_path, 4.0, TRUE)
    assert all(math.isclose(hours[0], 1 / 6) for hours in plan.hours.values()), "as they ask for"
    everything = {cell: len(hours) for cell, hours in plan.hours.items()}
    called = [
        expected(plan.items, seeds, {3.0: 1.0})["comparisons"]
        for seeds in (plan.chosen[4.0], everything)
    ]
    assert 0 < called[0] < called[1] <= 14
    base = {cell for cell in plan.chosen[4.0] if cell.loss == "smooth_ap"}
    assert base, "no comparison without the baseline"
    write_runs(plan, 4.0, tmp_path / "part.yaml")
    content = yaml.safe_load((tmp_path / "part.yaml").read_text())
    assert content["comparison"]["baseline"] == "smooth_ap"
    assert "comparisons" in content["question"]


@pytest.mark.parametrize("name", ["reality_check", "noise"])
def test_a_study_whose_rules_fix_its_seeds_says_so(name):
    with pytest.raises(ConfigError, match="fix the seeds"):
        choose_runs(load_study(name), Path("no results"), HOURS, TRUE)


def test_one_seed_decides_nothing(tmp_path):
    with pytest.raises(ConfigError, match="two seeds"):
        choose_runs(made_up_study(seeds=(0,)), tmp_path, HOURS, TRUE)


@pytest.mark.parametrize(
    "study",
    [
        "listwise",
        "fast_ap",
        pytest.param("smooth_ap", marks=pytest.mark.long),
        pytest.param("roadmap", marks=pytest.mark.long),
    ],
)
def test_the_page_has_the_curves_of_the_four_papers(study):
    text = PAGE.read_text(encoding="utf-8")
    for row in curve_rows(study, plan_of(study)):
        assert row in text
