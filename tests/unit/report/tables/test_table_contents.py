from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from made_up_inputs import WENT_WRONG, inputs_of_trials, made_up_inputs
from made_up_results import made_up_runs, made_up_study

from benchmark.core.records import Setting
from benchmark.core.words import DASH
from benchmark.report.table import NothingToShow, Table
from benchmark.report.tables import TABLES
from benchmark.study.model import References, Variant


@pytest.fixture(scope="module")
def inputs():
    return made_up_inputs(bad=WENT_WRONG, references=True)


def build(name: str, inputs) -> Table:
    return TABLES[name].target(inputs)


def row_of(table: Table, section: int, name: str):
    return next(row for row in table.sections[section].rows if row[0].text == name)


def test_comparison_prints_mean_sd_and_n_computed_from_the_runs(inputs):
    runs = made_up_runs(inputs.study, bad=WENT_WRONG)
    chosen = runs[
        (runs.selection == "last") & (runs.metric == "map_at_r") & (runs.loss == "sup_ap")
    ]
    values = chosen[chosen.batch_size == 32]["value"].to_numpy(float)
    cell = row_of(build("comparison", inputs), 0, "SupAP")[3]
    assert cell.text == f"{100 * values.mean():.2f} ± {100 * values.std(ddof=1):.2f}"
    assert cell.numbers == pytest.approx((values.mean(), values.std(ddof=1), 5))


def test_comparison_marks_best_and_second_and_names_lost_runs(inputs):
    table = build("comparison", inputs)
    assert row_of(table, 0, "ROADMAP")[1].mark == "best"
    assert row_of(table, 0, "SupAP")[1].mark == "second"
    assert row_of(table, 0, "FastAP")[1].note == "n=4, 1 missing"
    assert row_of(table, 0, "ROADMAP")[2].note == "n=4, 1 diverged"


@pytest.mark.parametrize("sizes", [(32,), (32, 128), (32, 64, 128)])
def test_two_batch_sizes_of_a_score_stand_beside_each_other_and_more_in_sections(sizes):
    losses = ("smooth_ap", "sup_ap")
    inputs = made_up_inputs(made_up_study(losses=losses, batch_sizes=sizes, seeds=(0, 1)))
    table = build("comparison", inputs)
    names = [column.header[1:] for column in table.columns[1:]]
    if len(sizes) == 2:
        both = ("batch of 32", "batch of 128")
        assert names == [(metric, size) for metric in ("R@1", "mAP@R", "mAP") for size in both]
        assert [section.title for section in table.sections] == [""]
    else:
        assert names == [("R@1",), ("mAP@R",), ("mAP",)]
        assert [section.title for section in table.sections] == [f"Batch size {n}" for n in sizes]
    means = inputs.last.query("loss == 'sup_ap' and metric == 'recall_at_1'").sort_values(
        "batch_size"
    )["mean"]
    if len(sizes) == 2:
        cells = row_of(table, 0, "SupAP")[1:3]
    else:
        cells = [row_of(table, at, "SupAP")[1] for at in range(len(sizes))]
    assert [cell.numbers[0] for cell in cells] == means.tolist()


def test_rows_have_the_order_of_the_study_where_a_loss_lacks_a_batch_size():
    study = made_up_study(losses=("smooth_ap", "sup_ap"), batch_sizes=(32, 128), seeds=(0, 1))
    runs = made_up_runs(study)
    at_128_alone = runs[(runs["loss"] != "smooth_ap") | (runs["batch_size"] == 128)]
    table = build("comparison", made_up_inputs(study, runs=at_128_alone))
    assert [row[0].text for row in table.sections[0].rows] == ["SmoothAP", "SupAP"]
    assert row_of(table, 0, "SmoothAP")[1].text == DASH


def test_comparison_shows_a_cell_without_any_number_by_its_state():
    study = made_up_study(
        losses=("smooth_ap", "fast_ap", "sup_ap"), batch_sizes=(32,), seeds=(0, 1)
    )
    bad = {
        ("fast_ap", 32, 0): "diverged",
        ("fast_ap", 32, 1): "diverged",
        ("sup_ap", 32, 0): "failed",
    }
    bad[("sup_ap", 32, 1)] = "missing"
    table = build("comparison", made_up_inputs(study, bad=bad))
    assert row_of(table, 0, "FastAP")[1].text == "diverged"
    assert row_of(table, 0, "SupAP")[1].text == "1 failed, 1 missing"


def test_comparison_of_a_study_without_any_finished_run_still_has_its_rows():
    study = made_up_study(losses=("smooth_ap", "sup_ap"), batch_sizes=(32,), seeds=(0,))
    bad = {("smooth_ap", 32, 0): "missing", ("sup_ap", 32, 0): "missing"}
    table = build("comparison", made_up_inputs(study, bad=bad))
    assert [row[1].text for row in table.sections[0].rows] == ["missing", "missing"]
    assert "No finished run yet" in table.caption


def test_named_variants_are_labelled_by_the_hyperparameters_that_differ():
    study = made_up_study(losses=("smooth_ap",), batch_sizes=(32,), seeds=(0, 1))
    warm = Variant("smooth_ap_tau0.1", "smooth_ap", {"tau": 0.1, "include_query": True})
    block = dataclasses.replace(study.blocks[0], losses=(*study.blocks[0].losses, warm))
    study = dataclasses.replace(study, blocks=(block,))
    table = build("comparison", made_up_inputs(study))
    assert [row[0].text for row in table.sections[0].rows] == ["SmoothAP", "SmoothAP (tau=0.1)"]


def test_an_option_with_one_loss_is_a_row_and_an_option_with_several_has_columns():
    study = made_up_study(losses=("smooth_ap", "roadmap"), batch_sizes=(32, 128), seeds=(0, 1))
    plain = study.blocks[0]
    roadmap = dataclasses.replace(plain, losses=plain.losses[1:], batch_sizes=(128,))
    options = [
        dataclasses.replace(roadmap, setting=Setting("r10", (name,)))
        for name in ("dim512", "dim2048")
    ]
    study = dataclasses.replace(
        study,
        blocks=(plain, *options, dataclasses.replace(plain, setting=Setting("r10", ("xbm",)))),
    )
    inputs = made_up_inputs(study, bad={("roadmap", 32, 0): "diverged"})
    table = build("comparison", inputs)
    assert len({column.header[0] for column in table.columns[1:]}) == 2, "r10 and r10~xbm"
    assert [row[0].text for row in table.sections[0].rows] == ["SmoothAP", "ROADMAP"]
    assert [row[0].text for row in table.sections[1].rows] == [
        "SmoothAP",
        "ROADMAP",
        "ROADMAP, dim512",
        "ROADMAP, dim2048",
    ]
    scores = inputs.scores.query("setting == 'r10~dim512' and metric == 'recall_at_1'")
    score = scores["value"].mean()
    assert row_of(table, 1, "ROADMAP, dim512")[1].numbers[0] == pytest.approx(score)
    assert [cell.text for cell in row_of(table, 1, "ROADMAP, dim512")[4:]] == ["–"] * 3, (
        "not run with the memory"
    )


def test_an_option_is_printed_without_the_underscore_that_python_needs():
    study = made_up_study(losses=("roadmap",), batch_sizes=(32,))
    heavy = Variant("roadmap_lambda_0.8", "roadmap", {"lambda_": 0.8})
    block = dataclasses.replace(study.blocks[0], losses=(heavy,))
    assert (
        made_up_inputs(dataclasses.replace(study, blocks=(block,))).label("roadmap_lambda_0.8")
        == "ROADMAP (lambda=0.8)"
    )


def test_paired_tests_carry_difference_interval_p_effect_and_family(inputs):
    table = build("paired", inputs)
    row = next(
        row
        for s in table.sections
        if s.title.startswith("R@1") and "32" in s.title
        for row in s.rows
        if row[0].text == "SupAP"
    )
    stats = inputs.paired.query(
        "kind == 'baseline' and loss == 'sup_ap' and metric == 'recall_at_1'"
    )
    stats = stats[stats.batch_size == 32].iloc[0]
    assert row[1].text == f"+{100 * stats.difference:.2f}"
    assert row[1].numbers == (stats.difference,)
    assert row[2].numbers == (stats.ci_low, stats.ci_high)
    assert row[3].text == "higher"
    assert row[5].numbers == (stats.p_holm,)
    assert "uses the tests of the ablation" in table.notes[0]
    assert "(14 tests)" in table.notes[1]
    assert all(row[0].text != "SmoothAP" for section in table.sections for row in section.rows)


def test_tests_without_a_result_say_so_and_keep_their_note():
    study = made_up_study(losses=("smooth_ap", "sup_ap"), batch_sizes=(32,), seeds=(0,))
    row = build("paired", made_up_inputs(study)).sections[0].rows[0]
    assert row[3].text == "no test"
    assert row[-1].note == "one pair, no test"
    assert row[2].text == "–"


def test_ablation_lists_the_steps_in_order_and_their_total(inputs):
    steps = [row[0].text for row in build("ablation", inputs).sections[0].rows]
    assert steps == ["SmoothAP → SupAP", "SupAP → ROADMAP", "SmoothAP → ROADMAP (total)"]


def test_all_pairs_has_every_pair_once_per_section(inputs):
    for section in build("all_pairs", inputs).sections:
        pairs = {frozenset((row[0].text, row[1].text)) for row in section.rows}
        assert len(pairs) == len(section.rows) == 28


def test_cost_share_is_the_loss_time_over_the_time_of_a_step(inputs):
    row = row_of(build("cost", inputs), 0, "SmoothAP")
    rate, loss_ms, share = (row[index].numbers[0] for index in (2, 3, 4))
    assert share == pytest.approx(loss_ms / (1000 * 32 / rate))


def test_missing_lists_each_lost_run_with_its_reason_worst_first(inputs):
    rows = build("missing", inputs).sections[0].rows
    assert [row[0].text for row in rows] == ["failed", "diverged", "missing"]
    assert rows[1][2].text == "ROADMAP"
    assert rows[1][5].text == "loss was nan at step 17"


def test_missing_has_nothing_to_show_when_all_runs_finished():
    with pytest.raises(NothingToShow, match="all 80 runs finished"):
        build("missing", made_up_inputs())


def test_best_epoch_never_lies_below_the_last(inputs):
    for section in build("best_epoch", inputs).sections:
        assert all(row[4].numbers[0] >= 0 for row in section.rows)


def test_best_epoch_says_in_a_sentence_that_it_was_the_last(inputs):
    table = inputs.best_epoch.assign(difference=0.0)
    with pytest.raises(NothingToShow, match="the last epoch was the best of every run"):
        build("best_epoch", dataclasses.replace(inputs, best_epoch=table))


def test_published_counts_what_was_not_run(inputs):
    table = build("published", inputs)
    assert [section.title for section in table.sections] == ["Frozen runs of this study"]
    left = len(inputs.verdicts) - table.rows
    assert left > 0
    assert table.notes == [f"{left} further numbers not run: see verdicts.csv."]
    none = inputs.verdicts[inputs.verdicts["verdict"] == "not_run"]
    with pytest.raises(NothingToShow, match=f"none of {left} reference numbers was run"):
        build("published", dataclasses.replace(inputs, verdicts=none))


def test_headline_marks_best_and_significant_differences(inputs):
    table = build("headline", inputs)
    rows = {row[0].text: row for row in table.sections[0].rows}
    assert [column.header[-1] for column in table.columns] == [
        "Loss",
        "batch of 32",
        "batch of 128",
    ]
    assert rows["ROADMAP"][1].mark == "best"
    assert rows["ROADMAP"][1].text.endswith(" ↑")
    assert rows["Calibration"][1].text.endswith(" ↓")
    assert rows["SmoothAP"][1].text == rows["SmoothAP"][1].text.rstrip(" ↑↓")


def test_headline_is_for_few_conditions():
    study = made_up_study(losses=("smooth_ap", "sup_ap"), batch_sizes=(8, 16, 32, 64, 128))
    with pytest.raises(NothingToShow, match="5 conditions are too many"):
        build("headline", made_up_inputs(study))


def test_the_row_of_a_challenger_is_marked():
    inputs = inputs_of_trials()
    challenge = dataclasses.replace(inputs.study, references=References(field="field"))
    named = ((inputs.study, "SmoothAP", ""), (challenge, "SmoothAP (the challenger)", "own"))
    for study, name, mark in named:
        table = build("budgets", dataclasses.replace(inputs, study=study))
        rows = {row[0].text: row for row in table.sections[0].rows}
        assert rows[name][0].mark == mark
        assert rows["SupAP"][0].mark == ""


def test_published_marks_verdicts_that_do_not_stand():
    inputs = made_up_inputs(references=True)
    verdicts = inputs.verdicts.assign(stands=False, changes_under="spread best_of_3")
    run = verdicts.index[verdicts["verdict"] != "not_run"][0]
    verdicts.loc[run, ["stands", "changes_under"]] = [True, ""]
    table = build("published", dataclasses.replace(inputs, verdicts=verdicts))
    words = {row[2].text for section in table.sections for row in section.rows}
    assert words == {"yes", "no; changes under published spread ×2, best of 3"}


def test_published_shows_a_drift_with_its_direction():
    inputs = made_up_inputs(references=True)
    verdicts = inputs.verdicts.assign(verdict="inconclusive", direction="")
    verdicts.loc[0, ["verdict", "direction"]] = ["drifted", "low"]
    table = build("published", dataclasses.replace(inputs, verdicts=verdicts))
    cells = [
        row[1]
        for section in table.sections
        for row in section.rows
        if row[1].text.startswith("drifted")
    ]
    assert [cell.text for cell in cells] == ["drifted low"]
    assert cells[0].tone == "bad"


def test_values_that_are_not_finite_never_reach_a_table():
    study = made_up_study(losses=("smooth_ap", "sup_ap"), batch_sizes=(32,), seeds=(0, 1, 2))
    runs = made_up_runs(study)
    runs.loc[(runs.loss == "sup_ap") & (runs.seed == 0), "value"] = np.nan
    table = build("comparison", made_up_inputs(study, runs=pd.DataFrame(runs)))
    assert row_of(table, 0, "SupAP")[1].note == "n=2"
    assert "nan" not in row_of(table, 0, "SupAP")[1].text
