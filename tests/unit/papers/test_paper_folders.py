"""A paper is one folder: read with its types, checked as a whole, and found where it lies."""

from __future__ import annotations

import dataclasses

import pytest
from paper_folders import FILES, METHODS, changed, load_paper, problems, refused_by, write_paper

from benchmark.core.errors import ConfigError, ReferenceDataError
from benchmark.papers.paper import (
    arranged_tables,
    asked_numbers,
    cite,
    cite_statement,
    footnotes,
    load_papers,
)
from benchmark.study.data_files import paper_folders, published_names


def test_a_folder_becomes_a_typed_paper(tmp_path):
    paper = load_paper(write_paper(tmp_path))
    cub, sop, other = paper.numbers
    assert (paper.source, cub.loss, other.loss) == ("toy2030", "sup_ap", "smooth_ap")
    assert (cub.points, cub.sd_points, cub.n_runs, cub.batch_size) == (61.2, 0.3, 3, 64)
    assert cub.rounding == pytest.approx(0.05) and sop.text == "78.0"
    assert cub.means == {"sampling": "hard"} and sop.conditions == {"tau": "0.1"}
    assert (cub.outside, sop.outside, other.reproducible) == ("", "no time", False)
    (claim,) = paper.claims
    assert claim.first[0].required[0].text == "tau=0.1" and claim.source == "toy2030"
    assert [figure.name for figure in paper.figures] == ["toy2030_fig2"]


def test_only_the_names_and_the_numbers_are_needed(tmp_path):
    rest = dict.fromkeys((name.partition(".")[0] for name in FILES), None)
    del rest["paper"], rest["results"]
    paper = load_paper(write_paper(tmp_path, **rest))
    assert len(paper.numbers) == 3 and not paper.claims and not paper.tables


def versioned(*rows: str) -> str:
    """Return numbers with a version, and the number of their row in the toy paper."""
    lines = FILES["results.csv"].splitlines()
    found = [f"{row[:-1]},{lines[int(row[-1])]}" for row in rows]
    return "\n".join([f"version,{lines[0]}", *found, ""])


ALONE = dict.fromkeys(("implied", "outside", "footnotes"))


def test_versions_of_a_text_are_told_apart_and_the_last_one_counts(tmp_path):
    about = FILES["paper.yaml"] + METHODS + "versions: {v1: Toy (draft), v2: Toy}\n"
    results = versioned("v11", "v21", "v23")
    paper = load_paper(write_paper(tmp_path / "right", paper=about, results=results, **ALONE))
    assert paper.source == "toy2030v2" and paper.names["toy2030v1"] == "Toy (draft)"
    assert len(paper.table("table1")) == 2 and len(paper.table("table1", "toy2030v1")) == 1
    text = problems(tmp_path, paper=about, results=versioned("v11", "v91"), **ALONE)
    assert "line 3, column version: unknown version 'v9'" in text


def test_all_problems_of_all_files_are_told_at_once(tmp_path):
    text = problems(
        tmp_path,
        paper="name: Toy\ntitel: A toy\ncitation: N\n",
        claims=changed("claims.yaml", "kind: beats", "kind: beat"),
        tables="table1: {title: toys, rows: row_label, columns: [metric]}\n",
        outside="outsid: []\n",
    )
    for part in (
        "paper.yaml: titel (line 2)  unknown key 'titel'; did you mean 'title'?",
        "paper.yaml: title (line 1)  Field required",
        "claims.yaml: toy_beats_smooth_ap.kind (line 4)  unknown kind 'beat'; did you mean "
        "'beats'?",
        "tables.yaml: table1.rows (line 1)  Input should be a valid tuple",
        "outside.yaml: outsid (line 1)  unknown key 'outsid'; did you mean 'outside'?",
    ):
        assert part in text, text


def test_names_that_do_not_exist_are_told_with_the_nearest(tmp_path):
    text = problems(
        tmp_path,
        tables=FILES["tables.yaml"] + "table2: {title: x, rows: [row_label], columns: [metric]}\n",
        claims=changed("claims.yaml", "second: [smooth_ap]", "second: [smoth_ap]"),
        figures=changed("figures.yaml", "x: tau", "x: tua"),
        implied=changed("implied.yaml", "dataset: cub", "data: cub"),
        outside=changed("outside.yaml", "dataset: sop", "dataset: nowhere"),
        footnotes=changed("footnotes.yaml", "at: table1", "at: table3"),
    )
    for part in (
        "tables.yaml: table2  unknown table 'table2'; did you mean 'table1'?",
        "claims.yaml: toy_beats_smooth_ap  unknown loss 'smoth_ap'; did you mean 'smooth_ap'?",
        "figures.yaml: fig2.panels.0.x  unknown condition 'tua'; did you mean 'tau'?",
        "implied.yaml: implied.0.rows  unknown column 'data'",
        "outside.yaml: outside.0.rows  chooses no row",
        "footnotes.yaml: footnotes.0.at  unknown table 'table3'; did you mean 'table2'?",
    ):
        assert part in text, text


RESULTS, CLAIMS, FIGURES, TABLES = "results.csv", "claims.yaml", "figures.yaml", "tables.yaml"
PANELS = FILES[FIGURES].partition("  panels:")
CELLS = "512,64,,recall"  # embedding, batch size and conditions of the first row
TOY = "percent,\ntable1,Toy"
FOOTNOTE, WAY = "footnotes.yaml", "/../../../../elsewhere"
TWICE = "comes twice; keep one"
SLIPS = [  # file, what stands there, what is written instead, and the words about it
    (RESULTS, "61.2", "abc", "line 2, column value: Input should be a valid decimal"),
    (RESULTS, "61.2", "", "line 2, column value: Input should be a valid decimal"),
    (RESULTS, "61.2", "inf", "line 2, column value"),
    (RESULTS, CELLS, "512,12.5,,recall", "line 2, column batch_size: Input should be a valid"),
    (RESULTS, "toy,own,cub", "toy,owned,cub", "unknown provenance 'owned'; did you mean 'own'?"),
    (RESULTS, TOY, TOY.replace("percent", "percents"), "did you mean 'percent'?"),
    (RESULTS, TOY, TOY.replace("percent", "fraction"), "line 2, column value: lies outside 0 to"),
    (RESULTS, ",,recall_at_1,61.2", ",,,61.2", "column metric: String should have at least"),
    (RESULTS, "tau=0.1", "tau", "line 3, column conditions: 'tau' is not of the form key=value"),
    (RESULTS, "tau=0.1", "tua=0.1", "line 3, column conditions: unknown condition 'tua'; did you"),
    (RESULTS, "tau=0.1", "tau=0.1;tau=0.2", "column conditions: "),
    (RESULTS, ",percent,\ntable1,Other", "\ntable1,Other", "line 3: not 16 fields"),
    (RESULTS, "Toy,toy,own,cub", "Toy,toi,own,cub", "line 2, column method: unknown method 'toi'"),
    (RESULTS, "recall_at_1,61", "recal_at_1,61", "column metric: unknown metric 'recal_at_1'"),
    (RESULTS, "row_label", "row_lable", "line 1: unknown column 'row_lable'; did you mean 'row_la"),
    *(
        (RESULTS, CELLS, f"{size},64,,recall", "line 2, column embedding_dim: a size is a whole")
        for size in ("0", "-5", "large", "1000000000")
    ),
    (RESULTS, CELLS, "512/0,64,,recall", "or several such as 512/64: '512/0'"),
    *(
        (RESULTS, "0.3,3,", f"0.3,{runs},", "column n_runs: ")
        for runs in ("9" * 400, "0", "1_0", "3.0")
    ),
    *(
        (RESULTS, "0.3,3,", f"{sd},3,", "column std: ")
        for sd in ("1e30", "0_0.3", "inf", "101", "1e-400")
    ),
    *(
        (RESULTS, CELLS, f"512,{size},,recall", "column batch_size: ")
        for size in ("9" * 400, "6_4", "64.0")
    ),
    (RESULTS, "table1", f"table1{WAY}", "should match pattern"),
    (FIGURES, "fig2", f"fig2{WAY}", "should match pattern"),
    (FIGURES, "fig2", "f" * 300, "should match pattern"),
    ("paper.yaml", "A toy\n", "A toy\nversions: {v1/../../x: Toy}\n", "should match pattern"),
    *(
        (file, old, f"'{' ' * 40}'", "String should have at least")
        for file, old in (
            (CLAIMS, "The toy loss is better than SmoothAP."),
            (CLAIMS, "section 4, table 1"),
            ("paper.yaml", "A toy"),
            ("outside.yaml", "no time"),
        )
    ),
    (TABLES, "[dataset, metric]", "[metric]", "table1  2 numbers share the cell Toy, recall_at_1"),
    (TABLES, "[dataset, metric]", "[dataset, metric, dataset]", "table1.columns (line 1)"),
    (TABLES, "[dataset, metric]", "[]", "tables.yaml: table1.columns (line 1)"),
    (TABLES, "[row_label]", "[]", "tables.yaml: table1.rows (line 1)"),
    (FOOTNOTE, "row_label: Toy", "row_lable: Toy", "unknown column 'row_lable'; did you mean 'row"),
    (FOOTNOTE, "row_label: Toy", "row_label: Tyo", "chooses no row of table1; check its values"),
    *(
        ("implied.yaml", "{sampling: hard}", f"{{{means}}}", words)
        for means, words in (
            ("nosuch: 1", "implied.0.means  unknown condition 'nosuch'"),
            ("batch_sise: 32", "did you mean 'batch_size'?"),
            ("batch_size: -1", "implied.0.means.batch_size  is -1; give a whole number"),
            ("batch_size: 32.5", "is 32.5"),
            ("batch_size: [32]", "is [32]"),
        )
    ),
    (FIGURES, PANELS[1] + PANELS[2], "  panels: []\n", "fig2.panels (line"),
    (FIGURES, "[{dataset: cub}]", "[]", "fig2.panels.0.test_sets (line"),
    (FIGURES, "[{dataset: cub}]", "[{dataset: cub}, {dataset: cub}]", TWICE),
    (FIGURES, "x: tau", "x: batch_size, baseline: sup_ap", "panels.0.baseline  is the loss of"),
    (FIGURES, "x: tau", "x: tau, batch_size: -5", "fig2.panels.0.batch_size (line"),
    (FIGURES, "x: tau", "x: tau, batch_size: true", "fig2.panels.0.batch_size (line"),
    (FIGURES, "at: 0.1", "at: .inf", "fig2.panels.0.published.at (line"),
    (FIGURES, "at: 0.1", "at: .nan", "fig2.panels.0.published.at (line"),
    (
        FIGURES,
        "kind: sweep",
        "kind: gain",
        "loss_against  is missing; a figure of kind 'gain' need",
    ),
    (CLAIMS, "  second: [smooth_ap]\n", "", ".second  is missing; the kind 'beats' needs it"),
    (CLAIMS, "kind: beats\n", "kind: beats\n  best: 3\n", ".best  is only for the kinds best_at"),
    (CLAIMS, "kind: beats\n", "kind: beats\n  enough: [3, 2]\n", "larger number of all parts"),
    (CLAIMS, "metrics: [recall_at_1]", "metrics: [recall]", ".metrics  unknown metric 'recall'"),
    (CLAIMS, "beats\n", "cost_ratio\n  between: [1.0]\n", "unknown cost 'recall_at_1'"),
    (CLAIMS, "where: {tau", "where: {tua", "unknown condition 'tua'; did you mean 'tau'?"),
    *(
        (CLAIMS, "[smooth_ap]", f"[{{loss: mine, where: {{printed: toy2030/{table}}}}}]", words)
        for table, words in (
            ("table1", "toy2030/table1 prints 0 numbers of mine for"),
            ("table3", "unknown printed table 'toy2030/table3'"),
        )
    ),
    *(
        (CLAIMS, "toy_beats_smooth_ap", name, "should match pattern")
        for name in ("''", "' '", '"a\\nb|c"', "a/b", "a" * 81)
    ),
]


@pytest.mark.parametrize(("file", "old", "new", "words"), SLIPS)
def test_a_slip_is_named_by_file_and_place(tmp_path, file, old, new, words):
    text = problems(tmp_path, **{file.partition(".")[0]: changed(file, old, new)})
    assert words in text and file in text, text


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("second: [smooth_ap]", "second: [smooth_ap, smooth_ap]", "second"),
        ("second: [smooth_ap]", "second: [smooth_ap, {loss: smooth_ap}]", "second"),
        ("[{loss: sup_ap, where: {tau: 0.1}}]", "[sup_ap, fast_ap, sup_ap]", "first"),
        ("[recall_at_1]", "[recall_at_1, map_at_r, recall_at_1]", "metrics"),
        ("datasets: [cub]", "datasets: [cub, cub]", "published.0.datasets"),
        ("batch_sizes: [64]", "batch_sizes: [64, 32, 64]", "published.0.batch_sizes"),
        (
            "[{datasets: [cub], batch_sizes: [64]}]",
            "[{datasets: [cub]}, {datasets: [cub]}]",
            "published",
        ),
    ],
)
def test_nothing_comes_twice_in_a_claim(tmp_path, old, new, key):
    text = problems(tmp_path, claims=changed(CLAIMS, old, new))
    assert f"toy_beats_smooth_ap.{key} (line " in text and TWICE in text


@pytest.mark.parametrize(
    ("kind", "keys", "words"),
    [
        ("gain", "loss_against: sup_ap", "loss_against  is the loss of the panel"),
        ("effect", "parameter: tau, first: a, second: a", "second  is 'a', as the first"),
    ],
)
def test_a_thing_is_not_compared_with_itself(tmp_path, kind, keys, words):
    figures = changed(FIGURES, "kind: sweep", f"kind: {kind}").replace("x: tau", keys)
    assert f"figures.yaml: fig2.panels.0.{words}" in problems(tmp_path, figures=figures)


def test_the_split_that_leads_is_one_of_the_papers_numbers(tmp_path):
    epoch = "epoch: {rule: one_best, why: its code, lead: cub_hard}\n"
    text = problems(tmp_path, paper=FILES["paper.yaml"] + METHODS + epoch)
    assert "paper.yaml: epoch.lead  unknown split 'cub_hard'" in text


def test_what_stands_twice_or_is_missing_is_named(tmp_path):
    again = FILES[RESULTS] + FILES[RESULTS].splitlines()[1] + "\n"
    text = problems(tmp_path / "rows", results=again)
    assert "line 5 repeats line 2 in every fact" in text
    text = problems(tmp_path / "keys", tables=FILES[TABLES] * 2)
    assert "tables.yaml: table1 (line 2)  key given twice" in text
    assert "results.csv cannot be read" in problems(tmp_path / "file", results=None)


SWEEP = (
    FILES[CLAIMS].replace("kind: beats", "kind: best_at").partition("  first")[0]
    + "  levels: {loss: fast_ap, key: bins, values: [5, 10]}\n  best: 10\n"
)
RATIO = changed(CLAIMS, "kind: beats", "kind: cost_ratio\n  between: [1.0, 2.0]").replace(
    "metrics: [recall_at_1]", "metrics: [train_seconds]"
)


@pytest.mark.parametrize("values", ["[5, 10, 5]", "[5, 10, 5.0]", "[5, 10, '5']"])
def test_no_level_comes_twice(tmp_path, values):
    text = problems(tmp_path, claims=SWEEP.replace("[5, 10]", values))
    assert "toy_beats_smooth_ap.levels.values" in text and TWICE in text


@pytest.mark.parametrize("best", ["20", "10.0", "true", "[10]"])
def test_the_best_level_is_one_of_those_that_are_written(tmp_path, best):
    """Levels are found by their text: 10.0 is equal to 10, and was a KeyError after the runs."""
    load_paper(write_paper(tmp_path / "right", claims=SWEEP))
    claims = SWEEP.replace("best: 10", f"best: {best}").replace("[5, 10]", "[1, 10]")
    assert "unknown level" in problems(tmp_path, claims=claims)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        *(
            (FILES[CLAIMS] + f"  by: {value}\n", "by")
            for value in (".inf", "-.inf", ".nan", "-1.0e+308", "101", "true")
        ),
        *((SWEEP + f"  margin: {value}\n", "margin") for value in (".inf", ".nan", "0", "1e300")),
        *(
            (RATIO.replace("[1.0, 2.0]", value), "between")
            for value in ("[.inf, .inf]", "[.nan]", "[3, 1]", "[2, 2]", "[0, 1]", "[1, 1e300]")
        ),
        *(
            (changed(CLAIMS, "[64]", value), "batch_sizes")
            for value in ("[-32]", "[0]", "[true]", "[64.5]", f"[{10**30}]")
        ),
        *(
            (changed(CLAIMS, "{tau: 0.1}", f"{{tau: 0.1}}, {key}: {value}"), key)
            for key in ("embedding_dim", "batch_size")
            for value in ("-5", "0", "true")
        ),
    ],
)
def test_a_number_that_means_nothing_is_refused(tmp_path, text, key):
    load_paper(write_paper(tmp_path / "right", claims=RATIO))
    message = problems(tmp_path, claims=text)
    assert "claims.yaml: toy_beats_smooth_ap." in message and f"{key}" in message


def test_a_margin_of_scores_has_a_hundred_points_at_most(tmp_path):
    text = problems(tmp_path, claims=SWEEP + "  margin: 101\n")
    assert "toy_beats_smooth_ap.margin  " in text and "100 points" in text
    seconds = FILES[CLAIMS].replace("kind: beats", "kind: monotone").partition("  second")[0]
    seconds = seconds.replace("[recall_at_1]", "[train_seconds]") + "  margin: 101\n"
    load_paper(write_paper(tmp_path / "right", claims=seconds))


def test_a_method_stands_for_a_loss_of_the_suite_or_says_why_no_study_has_it(tmp_path):
    about = changed("paper.yaml", "A toy\n", "A toy\nmethods: {toy: {loss: sup_app}}\n")
    text = problems(tmp_path / "wrong", paper=about)
    assert "line 2, column method: unknown loss 'sup_app'; did you mean 'sup_ap'?" in text
    assert "line 3" not in text, "sop is outside"
    everything = "outside:\n  - rows: {table: table1}\n    reason: nobody has the code\n"
    rest = dict.fromkeys(("claims", "figures", "implied"))
    load_paper(write_paper(tmp_path / "said", outside=everything, paper=about, **rest))
    copied = changed(RESULTS, "smoothap,copied", "of_another_paper,copied")
    load_paper(write_paper(tmp_path / "copied", results=copied))


HOURS = "table1,Toy,toy,own,sop,,resnet50,512,64,,train_hours,5,,,hours,\n"


@pytest.mark.parametrize(
    "column",
    ["points", "sd_points", "rounding", "text", "fits", "__class__", "conditions", "line", "means"],
)
def test_only_columns_choose_rows(tmp_path, column):
    """The row of hours has no points: asking for them was a KeyError."""
    text = problems(
        tmp_path,
        results=FILES[RESULTS] + HOURS,
        outside=f"outside:\n  - rows: {{{column}: 3}}\n    reason: x\n",
        implied=f"implied:\n  - rows: {{{column}: 3}}\n    means: {{sampling: hard}}\n    why: x\n",
        tables=changed(TABLES, "[dataset, metric]", f"[dataset, metric, {column}]"),
        footnotes=changed(FOOTNOTE, "row_label: Toy", f"{column}: '3'"),
    )
    for place in (
        "outside.yaml: outside.0.rows",
        "implied.yaml: implied.0.rows",
        "tables.yaml: table1",
        "footnotes.yaml: footnotes.0.where",
    ):
        assert f"{place}  unknown column '{column}'" in text, text


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


def refused() -> str:
    """Return what is said of all papers together."""
    with pytest.raises((ConfigError, ReferenceDataError)) as caught:
        load_papers()
    return str(caught.value)


def test_a_paper_in_a_plugin_folder_is_found_and_can_be_asked_for(mine, monkeypatch):
    write_paper(mine)
    assert "toy2030" in paper_folders() and "toy2030/table1" in published_names()
    assert [each.dataset for each in asked_numbers(["toy2030"])] == ["cub", "sop"]
    (arranged,) = arranged_tables(["toy2030"])
    assert (arranged[0].key, arranged[1]) == ("toy2030", "table1")
    assert cite("toy2030", "table1") == "Toy, table 1"
    monkeypatch.delenv("BENCHMARK_PLUGINS")
    assert "toy2030" not in paper_folders() and "toy2030" not in load_papers()


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("roadmap2021", "'roadmap2021' is there twice"),
        ("roadmap2021v2", "'roadmap2021v2' is a version of"),
    ],
)
def test_no_two_folders_have_one_name(mine, key, words):
    write_paper(mine, key)
    assert words in refused()


def test_what_papers_share_is_checked_over_all_of_them(mine):
    claims = FILES[CLAIMS].replace("toy_beats_smooth_ap", "sup_ap_beats_smooth_ap")
    footnotes = FILES[FOOTNOTE].replace("smoothap2020", "smoothap2021")
    write_paper(mine, claims=claims, footnotes=footnotes)
    text = refused()
    assert "sup_ap_beats_smooth_ap  is the name of a claim of roadmap2021, too" in text
    assert "did you mean 'smoothap2020/table2'?" in text


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("text: x", "unknown column 'text'"),
        ("dataset: nowhere", "chooses no row of smoothap2020/table2; check its values"),
    ],
)
def test_the_rows_of_the_other_table_of_a_footnote_are_checked_too(mine, where, words):
    rule = changed(FOOTNOTE, "table2}", f"table2, also_where: {{{where}}}}}")
    write_paper(mine, footnotes=rule)
    text = refused()
    assert "footnotes.0.also_where  " in text and words in text


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


def test_no_two_papers_make_files_of_one_name(mine):
    """The table of the first paper was replaced by that of the second."""
    write_paper(mine, "toy", **named("table1_x"))
    load_papers()
    write_paper(mine, "toy_table1", **named("x"))
    text = refused()
    for kind in ("tables", "figures"):
        place = f"toy_table1/{kind}.yaml: x  is written to toy_table1_x, as a {kind[:-1]} of toy is"
        assert place in text, text


def test_no_paper_makes_a_file_of_the_suite(mine):
    write_paper(mine, "best", **named("epoch"))
    assert "best_epoch, as a table of this suite is; rename" in refused()


def test_mistakes_in_papers_are_said_before_anything_starts(tmp_path):
    write_paper(tmp_path, paper=FILES["paper.yaml"] + "odd: 1\n")
    said = refused_by("benchmark", "validate", "smoke", plugins=tmp_path)
    assert "paper.yaml" in said and "'odd'" in said


def test_every_footnote_rule_finds_two_values_that_differ():
    for paper in load_papers().values():
        for rule in paper.footnotes:
            notes = footnotes(dataclasses.replace(paper, footnotes=(rule,)), rule.at)
            place = cite(*rule.also.split("/"))
            assert notes and all(place in note.text for note in notes.values()), rule


def test_a_footnote_holds_the_value_of_the_other_table():
    paper = load_papers()["roadmap2021"]
    (row,) = (
        each
        for each in paper.table("table2")
        if (each.loss, each.dataset, each.metric) == ("roadmap", "inaturalist", "recall_at_1")
    )
    note = footnotes(paper, "table2")[row.line]
    assert note.value == "64.2" and "ROADMAP (first version), table 5" in note.text


def test_a_place_is_cited_for_people():
    assert cite("roadmap2021v1", "table5") == "ROADMAP (first version), table 5"
    assert cite("smoothap2020", "tableS1") == "Smooth-AP, table S1"
    assert cite("roadmap2021v2", "text_4.1") == "ROADMAP, section 4.1"
    statement = cite_statement("roadmap2021v2", "section 4.2, tables 4, 6 and 7")
    assert statement == "ROADMAP, tables 4, 6 and 7"
    assert cite_statement("smoothap2020", "section 6.4, table 5") == "Smooth-AP, table 5"
    assert cite_statement("fastap2019", "section 5.3") == "FastAP, section 5.3"


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


def test_a_remark_that_chooses_no_row_is_told(mine):
    rule = "remarks: [{rows: {dataset: nowhere}, text: words}]\n"
    folder = write_paper(mine)
    (folder / "remarks.yaml").write_text(rule)
    assert "remarks.yaml: remarks.0.rows  chooses no row of results.csv" in refused()
