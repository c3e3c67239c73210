from __future__ import annotations

import csv
import dataclasses
import io

import pytest
from made_up_inputs import made, printed_inputs, roadmap_inputs, statuses, variant
from made_up_records import made_up_recipe
from made_up_results import made_up_block, made_up_runs, made_up_study, run_table

from benchmark.published.loading import load_papers
from benchmark.published.quantities import GapDecrease
from benchmark.report.render import to_csv, to_html, to_latex, to_markdown
from benchmark.report.study_results import rows_of
from benchmark.report.table import TONES
from benchmark.report.tables import TABLES
from benchmark.report.tables.outcomes import table_outcomes
from benchmark.report.tables.printed_tables import SIGNS, paper_tables
from benchmark.runs.run_table import RunTable
from benchmark.study import load_study
from benchmark.study.model import References
from benchmark.verdicts.judging import judge_study
from benchmark.verdicts.matching import StudyGrid
from benchmark.verdicts.pairs import typed
from benchmark.verdicts.printed import printed_of
from benchmark.verdicts.verdicts import VERDICT, VERDICTS

P4 = made_up_recipe("resnet50.tv_in1k", 512, "category_pairs", samples_per_class=4)
NOTHING = typed({}, VERDICT)
EPOCHS = 2  # of a run of these inputs


@pytest.fixture(scope="module")
def inputs():
    return roadmap_inputs()


@pytest.fixture(scope="module")
def tables(inputs):
    return {part.name: part.make() for part in paper_tables(inputs)}


def tables_of(study, runs, verdicts=NOTHING, gaps=()):
    """Return the papers' tables of a study with these runs and verdicts."""
    printed = printed_of(StudyGrid.of(study), run_table(runs), verdicts, NOTHING, gaps)
    return {part.name: part.make() for part in paper_tables(printed_inputs(study, printed))}


def cell(table, row, column, section=0):
    rows = {line[0].text: line for line in table.sections[section].rows}
    return rows[row][column]


def verdicts_of(inputs, table):
    return inputs.verdicts[inputs.verdicts["table"] == table]


def test_each_number_of_a_printed_table_is_counted_once(inputs):
    rows = table_outcomes(inputs)
    for row in rows:
        undecided = row.close + row.far
        counted = row.reproduced + row.drifted + undecided + row.not_run + row.unjudged
        assert counted == row.numbers
        assert row.undecidable <= undecided
    # days of training, and decreases of the decomposability gap
    assert [row.table for row in rows if row.unjudged] == ["table2", "table10"]


def test_rows_and_columns_stand_as_in_the_print(tables):
    table = tables["roadmap2021v2_table1"]
    names = [line[0].text for line in table.sections[0].rows]
    assert names == ["FastAP", "SoftBin", "BlackBox", "SmoothAP", "ROADMAP"]
    assert table.columns[1].header == ("CUB-200-2011", "R@1")
    assert table.columns[2].header == ("CUB-200-2011", "mAP@R")
    titles = [section.title for section in tables["roadmap2021v2_table6"].sections]
    assert titles[:2] == ["batch size 32", "batch size 128"]
    assert "ResNet-50, 512-d embedding, batch size 64" in table.caption


def test_a_cell_shows_ours_difference_and_verdict_and_tells_the_rest_on_demand(tables, inputs):
    found = cell(tables["roadmap2021v2_table1"], "ROADMAP", 1)
    verdicts = verdicts_of(inputs, "table1")
    place = {"row_label": "ROADMAP", "dataset": "cub", "metric": "recall_at_1"}
    row = rows_of(verdicts, **place).iloc[0]
    assert found.text == f"{row['ours_mean']:.2f} ± {row['ours_sd']:.2f}"
    assert found.note == ""
    by = f"{row['difference']:+.2f}".replace("-", "−")
    verdict = f"{row['verdict']} {row['direction']}".strip()
    (line,) = found.lines
    assert line.text.removesuffix(" §") == f"{SIGNS[verdict]} {by} from 64.2"
    assert line.tone == TONES[row["verdict"]]
    word, *told = found.title.splitlines()
    assert word == verdict == found.words[0]
    assert told[0] == "published 64.2; ours n=2"
    assert told[1].startswith(f"ours − published: {by} [")
    assert told[2].startswith("best epoch: ")
    assert found.numbers[9] >= found.numbers[0]
    assert told[-1] == found.words[3] == row["reason"]
    assert found.title in to_html(tables["roadmap2021v2_table1"], "t")


def test_a_mark_with_a_legend_says_that_a_verdict_rests_on_something_unsure(inputs):
    stands = [True, False, True]
    assumed = [False, False, True]
    verdicts = rows_of(verdicts_of(inputs, "table3"), dataset="cub", metric="map_at_r")
    verdicts = verdicts.assign(verdict="reproduced", direction="", stands=stands, assumed=assumed)
    table = tables_of(inputs.study, made_up_runs(inputs.study), verdicts)["roadmap2021v2_table3"]
    cells = [row[2] for row in table.sections[0].rows]
    shown = [cell.lines[-1].text for cell in cells]
    assert all(text.startswith("= ") for text in shown)
    assert [text.endswith(" §") for text in shown] == [False, True, True]
    assert table.notes[0].startswith("§ ")


@pytest.fixture(scope="module")
def tables_of_some(inputs):
    """Return the tables of a study without a run of SupAP and without those of FastAP."""
    bad = statuses("""
        sup_ap   64  1  missing
        fast_ap  64  0  missing
        fast_ap  64  1  missing
    """)
    runs = made_up_runs(inputs.study, bad=bad, epochs=1)
    verdicts = judge_study(StudyGrid.of(inputs.study), run_table(runs), ["paper"])["paper"]
    return tables_of(inputs.study, runs, verdicts)


def test_rows_of_other_seeds_say_so_once(tables_of_some):
    rows = tables_of_some["roadmap2021v2_table3"].sections[0].rows
    assert [row[0].note for row in rows] == ["", "n=1", ""]
    for row in rows:
        assert {cell.note for cell in row[1:]} == {""}


def test_rows_that_were_not_run_show_the_published_value(tables_of_some):
    found = cell(tables_of_some["roadmap2021v2_table1"], "FastAP", 1)
    assert found.text == "not run"
    assert [line.text for line in found.lines] == ["published 58.9"]
    assert found.numbers[0] is None
    assert found.numbers[3] == 58.9
    assert found.words[0] == "not_run"


def test_literature_rows_are_marked_and_never_judged(tables):
    table = tables["roadmap2021v2_table4"]
    assert cell(table, "MIC", 0).note == "quoted"
    found = cell(table, "MIC", 2)
    assert found.text == "77.2"
    assert found.words[0] == "quoted"
    assert not found.lines
    assert "literature values" in table.caption


def test_the_column_of_verdicts_holds_verdicts_alone(inputs):
    numbers = inputs.printed.numbers
    assert set(numbers["verdict"]) <= {*VERDICTS, ""}
    assert (numbers["verdict"].eq("") == numbers["instead"].ne("")).all()
    assert {"quoted", "time"} <= set(numbers["instead"])


def test_two_printed_values_stand_in_one_cell_with_a_footnote(tables):
    table = tables["roadmap2021v2_table1"]
    found = cell(table, "SmoothAP", 5)
    assert "or from 59.7 [a]" in [line.text for line in found.lines]
    assert "[a] The second value stands in ROADMAP, table 3." in table.notes
    bound, query = table.notes[-2:]
    assert "no upper bound of 1 - AP" in bound
    assert "a positive of its own" in query


def test_times_are_shown_without_a_verdict(tables, inputs):
    found = cell(tables["roadmap2021v2_table2"], "ROADMAP (ours)", 3)
    runs = rows_of(inputs.runs, loss="roadmap", batch_size=64, dataset="sop")
    seconds = runs["train_seconds"].mean()
    assert found.numbers[0] == pytest.approx(seconds / EPOCHS / 60)
    assert found.lines[-1].text == "no verdict on times"


def test_a_step_less_its_loss_is_the_time_of_the_backbone():
    study = made_up_study(
        blocks=(
            made_up_block(
                (variant("smooth_ap"), variant("fast_ap")), (112,), (0, 1, 2),
                name="tableS1", setting="resnet50~timing", datasets=("sop",), recipe=P4,
            ),
        ),
        references=References(("smoothap2020",), None),
    )  # fmt: skip
    bad = statuses("""
        fast_ap  112  0  missing
        fast_ap  112  1  missing
        fast_ap  112  2  missing
    """)
    runs = made_up_runs(study, epochs=1, bad=bad)
    table = tables_of(study, runs)["smoothap2020_tableS1"]
    found = cell(table, "Smooth-AP", 1)
    costs = rows_of(runs, selection="cost").pivot(index="seed", columns="metric", values="value")
    expected = 112 / costs["images_per_second"] * 1000 - costs["loss_ms"]
    assert found.numbers[0] == pytest.approx(expected.mean())
    assert found.numbers[1] == pytest.approx(expected.std())
    assert "ours n=3" in found.title
    assert found.lines[0].text == "published 705"
    assert found.lines[1].text == "no verdict on times"
    loss_ms = cell(table, "Smooth-AP", 2).numbers[0]
    assert loss_ms == pytest.approx(costs["loss_ms"].mean())
    assert cell(table, "FastAP", 1).text == "not run"
    assert "any wait for images" in table.caption


def test_the_gap_of_an_analysis_fills_its_dataset_alone(inputs):
    gaps = [GapDecrease("cub", 64, seed, 3.0 + seed) for seed in (0, 1, 2)]
    runs = made_up_runs(inputs.study).iloc[:0]
    tables = tables_of(inputs.study, runs, gaps=gaps)
    table = tables["roadmap2021v2_table10"]
    cub = cell(table, "CUB-200-2011", 1)
    sop = cell(table, "Stanford Online Products", 1)
    assert cub.text == "4.00 ± 1.00"
    assert "ours n=3" in cub.title
    assert [line.text for line in cub.lines] == ["published 3.7", "no score, no verdict"]
    assert sop.text == "not run"
    assert sop.lines[0].text == "published 5.4"


def test_a_gap_of_several_batch_sizes_fills_nothing_as_the_print_names_none(inputs):
    gaps = [GapDecrease("cub", size, 0, 3.0) for size in (32, 64)]
    runs = made_up_runs(inputs.study).iloc[:0]
    tables = tables_of(inputs.study, runs, gaps=gaps)
    assert cell(tables["roadmap2021v2_table10"], "CUB-200-2011", 1).text == "not run"


def test_every_rendering_has_all_lines_of_a_cell(tables):
    table = tables["roadmap2021v2_table1"]
    rows = list(csv.DictReader(io.StringIO(to_csv(table))))
    head = "CUB-200-2011 R@1"
    assert rows[4][f"{head} published"] == "64.2"
    assert rows[4][f"{head} verdict"]
    assert rows[3]["iNaturalist R@1 footnote"].startswith("The second value")
    assert "<sub>or from 59.7 [a]</sub>" in to_markdown(table)
    assert r"\shortstack[r]" in to_latex(table, "t")
    assert r"\\{\tiny or from 59.7 [a]}" in to_latex(table, "t")
    assert '<small class="line">or from 59.7 [a]</small>' in to_html(table, "t")


def test_a_study_without_runs_still_shows_what_was_published(inputs):
    tables = tables_of(inputs.study, made_up_runs(inputs.study).iloc[:0])
    found = cell(tables["roadmap2021v2_table3"], "SupAP", 1)
    assert found.text == "not run"
    assert found.lines[0].text == "published 62.9"
    assert "None of these numbers was run" in tables["roadmap2021v2_table3"].caption


def test_paper_tables_are_written_beside_the_others(inputs, tmp_path):
    chosen = dataclasses.replace(inputs.study, tables=("outside",))
    written = made("table", dataclasses.replace(inputs, study=chosen), tmp_path)
    assert written["roadmap2021v2_table8"].rows == 2
    assert (tmp_path / "roadmap2021v2_table8.tex").is_file()
    assert written["outside"].reason or (tmp_path / "outside.csv").is_file()


@pytest.fixture(scope="module")
def smooth_ap_tables():
    study = load_study("smooth_ap")
    printed = printed_of(StudyGrid.of(study), RunTable.from_rows([], []), NOTHING, NOTHING)
    return {part.name: part.make() for part in paper_tables(printed_inputs(study, printed))}


def test_a_table_says_in_one_line_what_follows_the_code_against_the_text(smooth_ap_tables):
    lines = {
        name: [note for note in table.notes if "against the text" in note]
        for name, table in smooth_ap_tables.items()
    }
    (of_both,) = lines["smoothap2020_table3"]
    for option in ("weight decay", "keep aspect", "train resize", "crop"):
        assert of_both.count(f"{option} ") == 1, option
    assert of_both.count("classes of a batch by walk for uniform") == 1
    assert lines["smoothap2020_table2"] == [], "SOP follows the text"


def test_the_line_of_roadmap_has_what_its_equations_say_otherwise():
    study = load_study("roadmap")
    rows = StudyGrid.of(study).candidates
    lines = {}
    for dataset in ("sop", "inaturalist"):
        label = f"{dataset}/resnet50/roadmap/bs64"
        (lines[dataset],) = (each.against for cell, each in rows.items() if cell.label == label)
    assert {
        "SupAP beyond delta from 1.44 for 1.49",
        "mean of the calibration over nonzero for pairs",
    } < set(lines["sop"])
    assert {
        "SupAP beyond delta from 1.0 for 1.49",
        "SupAP's step at a tie 0.0 for 0.5",
        "classes of a batch by walk for uniform",
    } < set(lines["inaturalist"])
    assert not any("delta 0.05" in word for word in lines["sop"]), "A.3 prints 0.05"


def test_what_acts_on_training_alone_is_not_said_of_an_untrained_network():
    rows = StudyGrid.of(load_study("smooth_ap")).candidates
    untrained = {cell.dataset: each for cell, each in rows.items() if cell.loss == "untrained"}
    assert untrained["inaturalist"].against == ("keep aspect true for false",)
    assert untrained["sop"].assumed == ()


def test_what_the_paper_says_against_itself_stands_beside_the_numbers(smooth_ap_tables):
    table = smooth_ap_tables["smoothap2020_table3"]
    (remark,) = (note for note in table.notes if "Section 6.2 puts this 2 to 5 points" in note)
    letter = remark.split()[0]
    marked = []
    for section in table.sections:
        for row in section.rows:
            below = [line.text for cell in row for line in cell.lines]
            if letter in " ".join(below):
                marked.append(row[0].text)
    assert marked == ["Smooth-AP BS=224"]


def test_a_verdict_on_a_number_that_the_paper_contradicts_says_so(inputs):
    judged = inputs.verdicts[inputs.verdicts["verdict"] != "not_run"]
    table5 = load_papers()["smoothap2020"].table("table5")
    numbers = [number for number in table5 if number.dataset == "vggface2"]
    lines = [number.line for number in numbers]
    rows = judged.iloc[: len(lines)].assign(source="smoothap2020", table="table5", line=lines)
    table = TABLES["published"].target(dataclasses.replace(inputs, verdicts=rows))
    (section,) = table.sections
    marked = []
    for number, row in zip(numbers, section.rows, strict=True):
        if "a misprint is likely" in row[-1].text:
            marked.append(number.row_label)
    assert sorted(marked) == ["0.1", "16", "64"]
