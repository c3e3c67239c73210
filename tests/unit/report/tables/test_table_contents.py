from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pandas as pd
import pytest
from made_up_inputs import WENT_WRONG, inputs_of_trials, made_up_inputs, statuses, two_losses
from made_up_results import made_up_runs

from benchmark.core.records import Setting
from benchmark.core.words import DASH
from benchmark.report.study_results import rows_of as rows_with
from benchmark.report.table import NothingToShow, Table
from benchmark.report.tables import TABLES
from benchmark.study.model import References, Variant


@pytest.fixture(scope="module")
def inputs():
    return made_up_inputs(bad=WENT_WRONG, references=True)


def build(name: str, inputs) -> Table:
    return TABLES[name].target(inputs)


def rows_of(table: Table) -> list:
    return [row for section in table.sections for row in section.rows]


def titles_of(table: Table) -> list[str]:
    return [section.title for section in table.sections]


def column_of(table: Table, column: int = 0) -> list[str]:
    return [row[column].text for row in rows_of(table)]


def row_of(table: Table, name: str, section: int = 0):
    rows = {row[0].text: row for row in table.sections[section].rows}
    return rows[name]


def headline_rows(table: pd.DataFrame, **values) -> pd.DataFrame:
    """Return the rows of the headline metric with the given values."""
    return rows_with(table, metric="recall_at_1", **values)


def test_comparison_prints_mean_sd_and_n_computed_from_the_runs(inputs):
    chosen = rows_with(inputs.scores, metric="map_at_r", loss="sup_ap", batch_size=32)
    mean = chosen["value"].mean()
    sd = chosen["value"].std()
    cell = row_of(build("comparison", inputs), "SupAP")[3]
    assert cell.text == f"{100 * mean:.2f} ± {100 * sd:.2f}"
    assert cell.numbers == pytest.approx((mean, sd, 5))


def test_comparison_marks_best_and_second_and_names_lost_runs(inputs):
    table = build("comparison", inputs)
    assert row_of(table, "ROADMAP")[1].mark == "best"
    assert row_of(table, "SupAP")[1].mark == "second"
    assert row_of(table, "FastAP")[1].note == "n=4, 1 missing"
    assert row_of(table, "ROADMAP")[2].note == "n=4, 1 diverged"


def of_sizes(*sizes):
    return made_up_inputs(two_losses(batch_sizes=sizes))


def scores_of_sup_ap(inputs) -> list[float]:
    means = headline_rows(inputs.last, loss="sup_ap").set_index("batch_size")["mean"]
    return means.sort_index().tolist()


def test_two_batch_sizes_of_a_score_stand_beside_each_other():
    inputs = of_sizes(32, 128)
    table = build("comparison", inputs)
    metrics = ("R@1", "mAP@R", "mAP")
    names = itertools.product(metrics, ("batch of 32", "batch of 128"))
    heads = [column.header[1:] for column in table.columns]
    assert heads[1:] == [*names]
    assert titles_of(table) == [""]
    cells = row_of(table, "SupAP")[1:3]
    assert [cell.numbers[0] for cell in cells] == scores_of_sup_ap(inputs)


@pytest.mark.parametrize("sizes", [(32,), (32, 64, 128)])
def test_one_or_many_batch_sizes_have_a_section_each(sizes):
    inputs = of_sizes(*sizes)
    table = build("comparison", inputs)
    heads = [column.header[-1] for column in table.columns]
    assert heads[1:] == ["R@1", "mAP@R", "mAP"]
    assert titles_of(table) == [f"Batch size {size}" for size in sizes]
    found = []
    for section in range(len(sizes)):
        cell = row_of(table, "SupAP", section)[1]
        found.append(cell.numbers[0])
    assert found == scores_of_sup_ap(inputs)


def test_rows_have_the_order_of_the_study_where_a_loss_lacks_a_batch_size():
    study = two_losses(batch_sizes=(32, 128))
    runs = made_up_runs(study)
    absent = runs["loss"].eq("smooth_ap") & runs["batch_size"].eq(32)
    table = build("comparison", made_up_inputs(study, runs=runs[~absent]))
    assert column_of(table) == ["SmoothAP", "SupAP"]
    assert row_of(table, "SmoothAP")[1].text == DASH


def test_comparison_shows_a_cell_without_any_number_by_its_state():
    bad = statuses("""
        smooth_ap  32  0  diverged
        smooth_ap  32  1  diverged
        sup_ap     32  0  failed
        sup_ap     32  1  missing
    """)
    study = two_losses()
    table = build("comparison", made_up_inputs(study, bad=bad))
    assert row_of(table, "SmoothAP")[1].text == "diverged"
    assert row_of(table, "SupAP")[1].text == "1 failed, 1 missing"


def test_marks_follow_the_printed_digits_and_pass_over_a_loss_that_diverges():
    level = {"smooth_ap": 0.81231, "sup_ap": 0.81234, "fast_ap": 0.8, "roadmap": 0.9}
    study = two_losses(losses=tuple(level), seeds=range(5))
    diverged = [f"roadmap 32 {seed} diverged" for seed in range(4)]
    runs = made_up_runs(study, bad=statuses("\n".join(diverged)))
    scores = runs["metric"] == "recall_at_1"
    runs.loc[scores, "value"] = runs["loss"].map(level)
    table = build("comparison", made_up_inputs(study, runs=runs))
    marks = [row[1].mark for row in rows_of(table)]
    assert marks == ["best", "best", "second", ""]


def test_comparison_of_a_study_without_any_finished_run_still_has_its_rows():
    study = two_losses(seeds=(0,))
    bad = statuses("smooth_ap 32 0 missing \n sup_ap 32 0 missing")
    table = build("comparison", made_up_inputs(study, bad=bad))
    assert column_of(table, 1) == ["missing", "missing"]
    assert "No finished run yet" in table.caption


def with_losses(study, *variants):
    block = dataclasses.replace(study.blocks[0], losses=variants)
    return dataclasses.replace(study, blocks=(block,))


def test_named_variants_are_labelled_by_the_hyperparameters_that_differ():
    study = two_losses()
    warm = Variant("smooth_ap_tau0.1", "smooth_ap", {"tau": 0.1, "include_query": True})
    study = with_losses(study, study.blocks[0].losses[0], warm)
    table = build("comparison", made_up_inputs(study))
    assert column_of(table) == ["SmoothAP", "SmoothAP (tau=0.1)"]


def test_an_option_with_one_loss_is_a_row_and_an_option_with_several_has_columns():
    study = two_losses(losses=("smooth_ap", "roadmap"), batch_sizes=(32, 128))
    plain = study.blocks[0]
    roadmap = dataclasses.replace(plain, losses=plain.losses[1:], batch_sizes=(128,))
    blocks = [plain]
    for block, option in ((roadmap, "dim512"), (roadmap, "dim2048"), (plain, "xbm")):
        setting = Setting("r10", (option,))
        blocks.append(dataclasses.replace(block, setting=setting))
    study = dataclasses.replace(study, blocks=tuple(blocks))
    inputs = made_up_inputs(study, bad=statuses("roadmap 32 0 diverged"))
    table = build("comparison", inputs)
    places = {column.header[0] for column in table.columns}
    assert len(places) == 3, "none, r10 and r10~xbm"
    named = ["SmoothAP", "ROADMAP", "ROADMAP, dim512", "ROADMAP, dim2048"]
    assert column_of(table) == [*named[:2], *named]
    row = row_of(table, "ROADMAP, dim512", 1)
    score = headline_rows(inputs.scores, setting="r10~dim512")["value"].mean()
    assert row[1].numbers[0] == pytest.approx(score)
    assert {cell.text for cell in row[4:]} == {DASH}, "not run with the memory"


def test_an_option_is_printed_without_the_underscore_that_python_needs():
    heavy = Variant("roadmap_lambda_0.8", "roadmap", {"lambda_": 0.8})
    inputs = made_up_inputs(with_losses(two_losses(), heavy))
    assert inputs.label("roadmap_lambda_0.8") == "ROADMAP (lambda=0.8)"


def test_paired_tests_carry_difference_interval_p_effect_and_family(inputs):
    table = build("paired", inputs)
    row = row_of(table, "SupAP")
    assert titles_of(table)[0] == "R@1 · Glyphs-1k · r10 · batch size 32"
    found = headline_rows(inputs.paired, kind="baseline", loss="sup_ap", batch_size=32)
    test = found.iloc[0]
    assert row[1].text == f"+{100 * test.difference:.2f}"
    assert row[1].numbers == (test.difference,)
    assert row[2].numbers == (test.ci_low, test.ci_high)
    assert row[3].text == "higher"
    assert row[5].numbers == (test.p_holm,)
    assert "ablation" in table.notes[0]
    assert "(14 tests)" in table.notes[1]
    assert "SmoothAP" not in column_of(table)


def test_tests_without_a_result_say_so_and_keep_their_note():
    study = two_losses(seeds=(0,))
    row = rows_of(build("paired", made_up_inputs(study)))[0]
    assert row[3].text == "no test"
    assert row[-1].note == "one pair, no test"
    assert row[2].text == DASH


def test_ablation_lists_the_steps_in_order_and_their_total(inputs):
    steps = ["SmoothAP → SupAP", "SupAP → ROADMAP", "SmoothAP → ROADMAP (total)"]
    assert column_of(build("ablation", inputs))[:3] == steps


def test_all_pairs_has_every_pair_once_per_section(inputs):
    for section in build("all_pairs", inputs).sections:
        pairs = set()
        for first, second, *_ in section.rows:
            pairs.add(frozenset({first.text, second.text}))
        assert len(pairs) == len(section.rows) == 28


def test_cost_share_is_the_loss_time_over_the_time_of_a_step(inputs):
    row = row_of(build("cost", inputs), "SmoothAP")
    rate, loss_ms, share = [cell.numbers[0] for cell in row[2:5]]
    assert share == pytest.approx(loss_ms / (1000 * 32 / rate))


def test_missing_lists_each_lost_run_with_its_reason_worst_first(inputs):
    table = build("missing", inputs)
    assert column_of(table) == ["failed", "diverged", "missing"]
    diverged = row_of(table, "diverged")
    assert diverged[2].text == "ROADMAP"
    assert diverged[5].text == "loss was nan at step 17"


def test_missing_has_nothing_to_show_when_all_runs_finished():
    with pytest.raises(NothingToShow, match="all 80 runs finished"):
        build("missing", made_up_inputs())


def test_best_epoch_never_lies_below_the_last(inputs):
    rows = rows_of(build("best_epoch", inputs))
    assert min(row[4].numbers[0] for row in rows) >= 0


def test_best_epoch_says_in_a_sentence_that_it_was_the_last(inputs):
    table = inputs.best_epoch.assign(difference=0.0)
    with pytest.raises(NothingToShow, match="the last epoch was the best of every run"):
        build("best_epoch", dataclasses.replace(inputs, best_epoch=table))


def test_published_counts_what_was_not_run(inputs):
    table = build("published", inputs)
    assert titles_of(table) == ["Frozen runs of this study"]
    left = len(inputs.verdicts) - table.rows
    assert left > 0
    assert str(left) in table.notes[0]
    none = inputs.verdicts[inputs.verdicts["verdict"] == "not_run"]
    with pytest.raises(NothingToShow, match=f"none of {left} reference numbers was run"):
        build("published", dataclasses.replace(inputs, verdicts=none))


def test_headline_marks_best_and_significant_differences(inputs):
    table = build("headline", inputs)
    heads = [column.header[-1] for column in table.columns]
    assert heads == ["Loss", "batch of 32", "batch of 128"]
    best = row_of(table, "ROADMAP")[1]
    assert best.mark == "best"
    assert best.text.endswith(" ↑")
    assert row_of(table, "Calibration")[1].text.endswith(" ↓")
    assert row_of(table, "SmoothAP")[1].text[-1] not in "↑↓"


def test_headline_is_for_few_conditions():
    with pytest.raises(NothingToShow, match="5 conditions are too many"):
        build("headline", of_sizes(8, 16, 32, 64, 128))


def test_the_row_of_a_challenger_is_marked():
    inputs = inputs_of_trials()
    assert row_of(build("budgets", inputs), "SmoothAP")[0].mark == ""
    study = dataclasses.replace(inputs.study, references=References(field="field"))
    table = build("budgets", dataclasses.replace(inputs, study=study))
    assert row_of(table, "SmoothAP (the challenger)")[0].mark == "own"
    assert row_of(table, "SupAP")[0].mark == ""


def published_of(inputs, verdicts):
    return build("published", dataclasses.replace(inputs, verdicts=verdicts))


def test_published_marks_verdicts_that_do_not_stand(inputs):
    verdicts = inputs.verdicts.assign(stands=False, changes_under="spread best_of_3")
    run = verdicts.index[verdicts["verdict"] != "not_run"][0]
    verdicts.loc[run, ["stands", "changes_under"]] = [True, ""]
    words = {"yes", "no; changes under published spread ×2, best of 3"}
    assert set(column_of(published_of(inputs, verdicts), 2)) == words


def test_published_shows_a_drift_with_its_direction(inputs):
    verdicts = inputs.verdicts.assign(verdict="inconclusive", direction="")
    verdicts.loc[0, ["verdict", "direction"]] = ["drifted", "low"]
    cells = [row[1] for row in rows_of(published_of(inputs, verdicts))]
    (drifted,) = [cell for cell in cells if cell.tone == "bad"]
    assert drifted.text == "drifted low"


def test_values_that_are_not_finite_never_reach_a_table():
    study = two_losses(seeds=(0, 1, 2))
    runs = made_up_runs(study)
    lost = runs["loss"].eq("sup_ap") & runs["seed"].eq(0)
    runs.loc[lost, "value"] = np.nan
    table = build("comparison", made_up_inputs(study, runs=runs))
    cell = row_of(table, "SupAP")[1]
    assert cell.note == "n=2"
    assert "nan" not in cell.text
