"""A paper is one folder: read with its types, checked as a whole, and found where it lies."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from paper_folders import FILES, METHODS, changed, load_paper, problems, refused_by, write_paper

from benchmark.core.documents import parse_yaml
from benchmark.core.errors import ConfigError
from benchmark.published.loading import PaperError, load_papers
from benchmark.study.data_files import paper_folders, published_names


def test_a_folder_becomes_a_typed_paper(tmp_path):
    paper = load_paper(write_paper(tmp_path))
    cub, sop, other = paper.numbers
    assert (paper.source, cub.loss, other.loss) == ("toy2030", "sup_ap", "smooth_ap")
    assert (cub.points, cub.sd_points, cub.n_runs, cub.batch_size) == (61.2, 0.3, 3, 64)
    assert cub.rounding == pytest.approx(0.05)
    assert sop.text == "78.0"
    assert cub.means == {"sampling": "hard"}
    assert sop.conditions == {"tau": "0.1"}
    assert (cub.outside, sop.outside, other.reproducible) == ("", "no time", False)
    (claim,) = paper.claims.values()
    assert claim.first[0].required[0].text == "tau=0.1"
    assert claim.source == "toy2030"
    assert [figure.name for figure in paper.figures.values()] == ["toy2030_fig2"]


def test_only_the_names_and_the_numbers_are_needed(tmp_path):
    rest = dict.fromkeys((name.partition(".")[0] for name in FILES), None)
    del rest["paper"], rest["results"]
    paper = load_paper(write_paper(tmp_path, **rest))
    assert len(paper.numbers) == 3
    assert not paper.claims
    assert not paper.tables


def versioned(*rows: str) -> str:
    """Return numbers with a version, and the number of their row in the toy paper."""
    lines = FILES["results.csv"].splitlines()
    found = [f"{row[:-1]},{lines[int(row[-1])]}" for row in rows]
    return "\n".join([f"version,{lines[0]}", *found, ""])


ALONE = dict.fromkeys(("implied", "outside", "footnotes"))


def test_versions_of_a_text_are_told_apart_and_the_last_one_counts(tmp_path, messages):
    about = FILES["paper.yaml"] + METHODS + "versions: {v1: Toy (draft), v2: Toy}\n"
    results = versioned("v11", "v21", "v23")
    paper = load_paper(write_paper(tmp_path / "right", paper=about, results=results, **ALONE))
    assert paper.source == "toy2030v2"
    assert paper.names["toy2030v1"] == "Toy (draft)"
    assert len(paper.table("table1")) == 2
    draft = [number for number in paper.numbers if "toy2030v1/table1" in number.places]
    assert len(draft) == 1
    error = problems(tmp_path, paper=about, results=versioned("v11", "v91"), **ALONE)
    assert ("unknown_name", "version") in messages(error)


def test_all_problems_of_all_files_are_told_at_once(tmp_path, messages):
    error = problems(
        tmp_path,
        paper="name: Toy\ntitel: A toy\ncitation: N\n",
        claims=changed("claims.yaml", "kind: beats", "kind: beat"),
        tables="table1: {title: toys, rows: row_label, columns: [metric]}\n",
        outside="outsid: []\n",
        results=changed(RESULTS, "label,method", "lable,method,comment"),
        figures="fig2: {\n",
    )
    assert set(messages(error)) == {
        ("unknown_name", "titel"),
        ("missing", "title"),
        ("unknown_name", "toy_beats_smooth_ap.kind"),
        ("tuple_type", "table1.rows"),
        ("unknown_name", "outsid"),
        ("tuple_type", "outside"),
        ("unknown_name", "row_lable"),
        ("missing", "row_label"),
        ("repeated", "comment"),
        ("wrong_number_of_fields", ""),
        ("invalid_yaml", ""),
    }


def test_names_that_do_not_exist_are_told_with_the_nearest(tmp_path, messages):
    error = problems(
        tmp_path,
        paper=FILES["paper.yaml"] + METHODS + "epoch: {rule: last, why: x, lead: cub_hard}\n",
        tables=FILES["tables.yaml"] + "table2: {title: x, rows: [row_label], columns: [metric]}\n",
        claims=changed("claims.yaml", "second: [smooth_ap]", "second: [smoth_ap]"),
        figures=changed("figures.yaml", "x: tau", "x: tua"),
        implied=changed("implied.yaml", "dataset: cub", "data: cub"),
        outside=changed("outside.yaml", "dataset: sop", "dataset: nowhere"),
        footnotes=changed("footnotes.yaml", "at: table1", "at: table3"),
    )
    assert set(messages(error)) == {
        ("unknown_name", "table2"),
        ("unknown_name", "toy_beats_smooth_ap"),
        ("unknown_name", "fig2.panels.0.x"),
        ("unknown_name", "implied.0.rows"),
        ("no_row", "outside.0.rows"),
        ("unknown_name", "footnotes.0.at"),
        ("unknown_name", "epoch.lead"),
    }


RESULTS = "results.csv"
CLAIMS = "claims.yaml"
FIGURES = "figures.yaml"
TABLES = "tables.yaml"
FOOTNOTE = "footnotes.yaml"
CLAIM = "toy_beats_smooth_ap"
SWEEP = "kind: best_at\n  levels: {loss: fast_ap, key: bins, values: [5, 10]}\n  best: "
# By file: what stands there, what is written instead, code and key of the problem.
SLIPS = parse_yaml(Path(__file__).with_name("slips.yaml").read_text("utf-8")).value
CASES = [(file, *slip) for file, slips in SLIPS.items() for slip in slips]


@pytest.mark.parametrize(
    ("file", "old", "new", "code", "key"), CASES, ids=[f"{case[3]}-{case[4]}" for case in CASES]
)
def test_a_slip_is_named_by_file_and_place(tmp_path, messages, file, old, new, code, key):
    error = problems(tmp_path, **{file.partition(".")[0]: changed(file, old, new)})
    assert messages(error) == [(code, key)]


PRINTED = "table1,Toy,toy,own,cub,,resnet50,512,64,,training_time,5,,,days,\n"


def test_a_table_may_say_of_which_kind_its_numbers_are(tmp_path):
    results = FILES[RESULTS] + PRINTED
    plain = load_paper(write_paper(tmp_path / "plain", results=results))
    assert [each.kind.word for each in plain.numbers] == [
        "other_data",
        "other_data",
        "quoted",
        "time",
    ]
    tables = changed(TABLES, "title: toys", "title: toys, kinds: [scores, unmeasured]")
    named = load_paper(write_paper(tmp_path / "named", results=results, tables=tables))
    assert named.numbers[3].kind == named.vocabulary.kinds["unmeasured"]


def test_what_stands_in_a_figure_is_judged_and_need_not_be_covered(tmp_path):
    about = FILES["paper.yaml"] + METHODS + "elsewhere: {table1: figure 7}\n"
    paper = load_paper(write_paper(tmp_path, paper=about))
    assert [each.judged for each in paper.numbers] == [True, True, False]
    assert not any(each.countable for each in paper.numbers)


def test_a_row_that_stands_twice_and_a_file_that_is_missing_are_named(tmp_path, messages):
    again = FILES[RESULTS] + FILES[RESULTS].splitlines()[1] + "\n"
    assert ("repeated", "") in messages(problems(tmp_path / "rows", results=again))
    assert messages(problems(tmp_path / "file", results=None)) == [("invalid_file", "")]


def swept(best: str) -> str:
    """Return claims with one of the best level of a sweep."""
    text = changed(CLAIMS, "kind: beats", f"{SWEEP}{best}")
    return text.partition("  first")[0]


@pytest.mark.parametrize("best", ["20", "10.0", "true", "[10]"])
def test_the_best_level_is_one_of_those_that_are_written(tmp_path, messages, best):
    """Levels are found by their text: 10.0 is equal to 10, and was a KeyError after the runs."""
    load_paper(write_paper(tmp_path / "right", claims=swept("10")))
    error = problems(tmp_path, claims=swept(best).replace("[5, 10]", "[1, 10]"))
    assert messages(error) == [("unknown_name", CLAIM)]


def test_a_margin_of_scores_has_a_hundred_points_at_most(tmp_path, messages):
    error = problems(tmp_path, claims=swept("10") + "  margin: 101\n")
    assert messages(error) == [("less_than_equal", "toy_beats_smooth_ap.margin")]
    seconds = FILES[CLAIMS].replace("kind: beats", "kind: monotone").partition("  second")[0]
    seconds = seconds.replace("[recall_at_1]", "[train_seconds]")
    load_paper(write_paper(tmp_path / "right", claims=seconds + "  margin: 101\n"))
    assert messages(problems(tmp_path / "none", claims=seconds)) == [
        ("missing", f"{CLAIM}.metrics")
    ]


def test_a_method_stands_for_a_loss_of_the_suite_or_says_why_no_study_has_it(tmp_path, messages):
    about = changed("paper.yaml", "A toy\n", "A toy\nmethods: {toy: {loss: sup_app}}\n")
    error = problems(tmp_path / "wrong", paper=about)
    assert messages(error) == [("unknown_name", "method")]
    assert error.problems[0].line == 2, "sop, in line 3, is outside"
    everything = "outside:\n  - rows: {table: table1}\n    reason: nobody has the code\n"
    rest = dict.fromkeys(("claims", "figures", "implied"))
    load_paper(write_paper(tmp_path / "said", outside=everything, paper=about, **rest))
    copied = changed(RESULTS, "smoothap,copied", "of_another_paper,copied")
    load_paper(write_paper(tmp_path / "copied", results=copied))


HOURS = "table1,Toy,toy,own,sop,,resnet50,512,64,,train_hours,5,,,hours,\n"


@pytest.mark.parametrize("column", ["points", "text", "__class__", "conditions", "line"])
def test_only_columns_choose_rows(tmp_path, messages, column):
    """The row of hours has no points: asking for them was a KeyError."""
    error = problems(
        tmp_path,
        results=FILES[RESULTS] + HOURS,
        outside=f"outside:\n  - rows: {{{column}: 3}}\n    reason: x\n",
        implied=f"implied:\n  - rows: {{{column}: 3}}\n    means: {{sampling: hard}}\n    why: x\n",
        tables=changed(TABLES, "[dataset, metric]", f"[dataset, metric, {column}]"),
        footnotes=changed(FOOTNOTE, "row_label: Toy", f"{column}: '3'"),
    )
    for key in ("outside.0.rows", "implied.0.rows", "table1", "footnotes.0.where"):
        assert ("unknown_name", key) in messages(error)


def test_a_condition_may_be_named_like_what_follows_from_a_row(tmp_path):
    rows = FILES[RESULTS] + HOURS.replace("own", "copied").replace(",,train", ",points=3,train")
    columns = changed(TABLES, "[dataset, metric]", "[dataset, metric, points]")
    paper = load_paper(write_paper(tmp_path, results=rows, tables=columns))
    assert [each.field("points") for each in paper.numbers] == ["", "", "", "3"]


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """Return a plugin folder for papers."""
    monkeypatch.setenv("BENCHMARK_PLUGINS", str(tmp_path / "mine"))
    return tmp_path / "mine"


def refused() -> PaperError:
    """Return what is said of all papers together."""
    with pytest.raises(PaperError) as caught:
        load_papers()
    return caught.value


def test_a_paper_in_a_plugin_folder_is_found_and_can_be_asked_for(mine, monkeypatch):
    write_paper(mine)
    assert "toy2030" in paper_folders()
    assert "toy2030/table1" in published_names()
    assert [each.dataset for each in load_papers().asked(["toy2030"])] == ["cub", "sop"]
    (arranged,) = load_papers().arranged(["toy2030"])
    assert (arranged[0].key, arranged[1]) == ("toy2030", "table1")
    assert load_papers().cite("toy2030", "table1") == "Toy, table 1"
    monkeypatch.delenv("BENCHMARK_PLUGINS")
    assert "toy2030" not in paper_folders()
    assert "toy2030" not in load_papers()


def test_no_two_folders_have_one_name(mine, messages):
    write_paper(mine, "roadmap2021v2")
    assert ("repeated", "") in messages(refused())
    write_paper(mine, "roadmap2021")
    with pytest.raises(ConfigError) as caught:
        load_papers()
    messages(caught.value)


def test_no_two_papers_have_a_claim_of_one_name(mine, messages):
    name = "sup_ap_beats_smooth_ap"
    write_paper(mine, claims=FILES[CLAIMS].replace(CLAIM, name))
    assert messages(refused()) == [("repeated", name)]


def named(name: str) -> dict[str, str | None]:
    """Return files of a paper whose table and figure have one name."""
    figures = FILES[FIGURES].replace("fig2", name)
    return {
        **dict.fromkeys(("claims", "implied", "footnotes")),
        "outside": "outside:\n  - rows: {method: toy}\n    reason: nobody has the code\n",
        "results": FILES[RESULTS].replace("table1", name),
        "tables": FILES[TABLES].replace("table1", name),
        "figures": figures.replace("table: table1", f"table: {name}"),
    }


def test_no_two_papers_make_files_of_one_name(mine, messages):
    """The table of the first paper was replaced by that of the second."""
    write_paper(mine, "toy", **named("table1_x"))
    load_papers()
    write_paper(mine, "toy_table1", **named("x"))
    assert messages(refused())[2:] == [("repeated", "x")] * 2


def test_no_paper_makes_a_file_of_the_suite(mine, messages):
    write_paper(mine, "best", **named("epoch"))
    assert messages(refused()) == [("repeated", "epoch")]


def test_mistakes_in_papers_are_said_before_anything_starts(tmp_path):
    write_paper(tmp_path, paper=FILES["paper.yaml"] + "odd: 1\n")
    said = refused_by("benchmark", "validate", "smoke", plugins=tmp_path)
    assert "paper.yaml" in said
    assert "'odd'" in said


def test_every_footnote_rule_finds_two_values_that_differ():
    for paper in load_papers().values():
        for rule in paper.footnotes:
            notes = load_papers().footnotes(dataclasses.replace(paper, footnotes=(rule,)), rule.at)
            place = load_papers().cite(*rule.also.split("/"))
            assert notes and all(place in note.text for note in notes.values()), rule


def test_a_footnote_holds_the_value_of_the_other_table():
    paper = load_papers()["roadmap2021"]
    (row,) = (
        each
        for each in paper.table("table2")
        if (each.loss, each.dataset, each.metric) == ("roadmap", "inaturalist", "recall_at_1")
    )
    note = load_papers().footnotes(paper, "table2")[row.line]
    assert note.value == "64.2"
    assert "ROADMAP (first version), table 5" in note.text


def test_a_place_is_cited_for_people():
    assert load_papers().cite("roadmap2021v1", "table5") == "ROADMAP (first version), table 5"
    assert load_papers().cite("smoothap2020", "tableS1") == "Smooth-AP, table S1"
    assert load_papers().cite("roadmap2021v2", "text_4.1") == "ROADMAP, section 4.1"
    statement = load_papers().cite_statement("roadmap2021v2", "section 4.2, tables 4, 6 and 7")
    assert statement == "ROADMAP, tables 4, 6 and 7"
    assert (
        load_papers().cite_statement("smoothap2020", "section 6.4, table 5") == "Smooth-AP, table 5"
    )
    assert load_papers().cite_statement("fastap2019", "section 5.3") == "FastAP, section 5.3"


def test_the_gains_beside_figure_5_follow_from_the_tables():
    paper = load_papers()["roadmap2021"]
    scores = {}
    for name in ("table3", "table6"):
        for each in paper.table(name):
            if each.metric == "map_at_r" and (name == "table6" or each.batch_size == 64):
                scores[each.dataset, each.batch_size, each.loss] = float(each.value)
    for table, dataset in (("fig5a", "cub"), ("fig5b", "sop"), ("fig5c", "inaturalist")):
        gains = [
            100 * (scores[dataset, size, "roadmap"] / scores[dataset, size, "sup_ap"] - 1)
            for size in (32, 64, 128, 224, 384)
        ]
        (text,) = {text for each in paper.table(table) for text in paper.remarks_on(each)}
        for gain in gains:
            assert f"{gain:.2f}" in text, (table, gain)


def test_a_remark_that_chooses_no_row_is_told(tmp_path, messages):
    rule = "remarks: [{rows: {dataset: nowhere}, text: words}]\n"
    folder = write_paper(tmp_path)
    (folder / "remarks.yaml").write_text(rule)
    with pytest.raises(PaperError) as caught:
        load_paper(folder)
    assert messages(caught.value) == [("no_row", "remarks.0.rows")]
