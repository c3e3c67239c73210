"""A paper is one folder: read with its types, checked as a whole, and found where it lies."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from paper_folders import FILES, METHODS, changed, load_paper, problems, write_paper

from benchmark.core.errors import ConfigError, ReferenceDataError
from benchmark.papers.paper import arranged_tables, asked_numbers, cite, cite_statement, load_papers
from benchmark.study.data_files import paper_folders, published_names
from benchmark.study.model import ROOT


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


def test_versions_of_a_text_are_told_apart_and_the_last_one_counts(tmp_path):
    rows = FILES["results.csv"].splitlines()
    versioned = ["version," + rows[0], "v1," + rows[1], "v2," + rows[1], "v2," + rows[3]]
    about = FILES["paper.yaml"] + METHODS + "versions: {v1: Toy (draft), v2: Toy}\n"
    rest = {"implied": None, "outside": None, "footnotes": None}
    paper = load_paper(
        write_paper(tmp_path, paper=about, results="\n".join(versioned) + "\n", **rest)
    )
    assert paper.source == "toy2030v2" and paper.names["toy2030v1"] == "Toy (draft)"
    assert len(paper.table("table1")) == 2 and len(paper.table("table1", "toy2030v1")) == 1


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


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("61.2", "abc", "line 2, column value: Input should be a valid decimal"),
        ("61.2", "", "line 2, column value: Input should be a valid decimal"),
        ("61.2", "inf", "line 2, column value"),
        (
            "512,64,,recall",
            "512,12.5,,recall",
            "line 2, column batch_size: Input should be a valid",
        ),
        ("toy,own,cub", "toy,owned,cub", "unknown provenance 'owned'; did you mean 'own'?"),
        ("percent,\ntable1,Toy", "percents,\ntable1,Toy", "did you mean 'percent'?"),
        (
            "percent,\ntable1,Toy",
            "fraction,\ntable1,Toy",
            "line 2, column value: lies outside 0 to",
        ),
        (",,recall_at_1,61.2", ",,,61.2", "line 2, column metric: String should have at least"),
        ("tau=0.1", "tau", "line 3, column conditions: 'tau' is not of the form key=value"),
        ("tau=0.1", "tua=0.1", "line 3, column conditions: unknown condition 'tua'; did you mean"),
        (",percent,\ntable1,Other", "\ntable1,Other", "line 3: not 16 fields"),
        ("Toy,toy,own,cub", "Toy,toi,own,cub", "line 2, column method: unknown method 'toi'; did"),
        ("recall_at_1,61", "recal_at_1,61", "line 2, column metric: unknown metric 'recal_at_1'"),
        ("512,64,,recall", "0,64,,recall", "line 2, column embedding_dim: a size is a whole"),
        ("512,64,,recall", "-5,64,,recall", "line 2, column embedding_dim: a size is a whole"),
        ("512,64,,recall", "large,64,,recall", "column embedding_dim: a size is a whole number"),
        ("512,64,,recall", "1000000000,64,,recall", "column embedding_dim: a size is a whole"),
        ("512,64,,recall", "512/0,64,,recall", "or several such as 512/64: '512/0'"),
        ("row_label", "row_lable", "line 1: unknown column 'row_lable'; did you mean 'row_label'?"),
    ],
)
def test_a_slip_among_the_numbers_is_named_by_file_line_and_column(tmp_path, old, new, words):
    text = problems(tmp_path, results=changed("results.csv", old, new))
    assert words in text and "results.csv, line" in text


def test_a_row_that_stands_twice_is_refused(tmp_path):
    again = FILES["results.csv"] + FILES["results.csv"].splitlines()[1] + "\n"
    assert "line 5 repeats line 2 in every fact" in problems(tmp_path, results=again)


def test_two_numbers_cannot_share_a_cell_of_a_table(tmp_path):
    text = problems(tmp_path, tables=changed("tables.yaml", "[dataset, metric]", "[metric]"))
    assert "table1  2 numbers share the cell Toy, recall_at_1" in text


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("  second: [smooth_ap]\n", "", ".second  is missing; the kind 'beats' needs it"),
        ("  kind: beats\n", "  kind: beats\n  best: 3\n", ".best  is only for the kinds best_at"),
        ("metrics: [recall_at_1]", "metrics: [recall]", ".metrics  unknown metric 'recall'"),
        ("kind: beats", "kind: cost_ratio\n  between: [1.0]", "unknown cost 'recall_at_1'"),
        ("where: {tau: 0.1}", "where: {tua: 0.1}", "unknown condition 'tua'; did you mean 'tau'?"),
        (
            "second: [smooth_ap]",
            "second: [{loss: mine, where: {printed: toy2030/table1}}]",
            "toy2030/table1 prints 0 numbers of mine for",
        ),
        (
            "second: [smooth_ap]",
            "second: [{loss: smooth_ap, where: {printed: toy2030/table3}}]",
            "unknown printed table 'toy2030/table3'",
        ),
    ],
)
def test_what_belongs_to_the_kind_of_a_claim_is_checked(tmp_path, old, new, words):
    assert words in problems(tmp_path, claims=changed("claims.yaml", old, new))


def test_levels_are_among_the_values(tmp_path):
    levels = "levels: {loss: fast_ap, key: bins, values: [5, 10]}\n  best: 20\n"
    claims = FILES["claims.yaml"].replace("kind: beats", "kind: best_at").partition("  first")[0]
    assert "unknown level '20'" in problems(tmp_path, claims=f"{claims}  {levels}")


def test_a_key_that_is_given_twice_is_an_error(tmp_path):
    text = problems(tmp_path, tables=FILES["tables.yaml"] * 2)
    assert "tables.yaml: table1 (line 2)  key given twice" in text


def test_a_missing_file_of_numbers_is_named(tmp_path):
    assert "results.csv cannot be read" in problems(tmp_path, results=None)


def test_a_paper_in_a_plugin_folder_is_found_and_can_be_asked_for(tmp_path, monkeypatch):
    write_paper(tmp_path / "mine")
    monkeypatch.setenv("BENCHMARK_PLUGINS", str(tmp_path / "mine"))
    assert "toy2030" in paper_folders() and "toy2030/table1" in published_names()
    assert [each.dataset for each in asked_numbers(["toy2030"])] == ["cub", "sop"]
    assert [(paper.key, name) for paper, name in arranged_tables(["toy2030"])] == [
        ("toy2030", "table1")
    ]
    assert cite("toy2030", "table1") == "Toy, table 1"
    monkeypatch.delenv("BENCHMARK_PLUGINS")
    assert "toy2030" not in paper_folders() and "toy2030" not in load_papers()


def test_two_folders_of_one_name_are_refused(tmp_path, monkeypatch):
    write_paper(tmp_path / "mine", "roadmap2021")
    monkeypatch.setenv("BENCHMARK_PLUGINS", str(tmp_path / "mine"))
    with pytest.raises(ConfigError, match="'roadmap2021' is there twice"):
        load_papers()


def test_names_that_files_are_called_after_are_no_paths(tmp_path):
    way = "table1/../../../../elsewhere"
    for number, (name, old, new) in enumerate(
        (
            ("results", "table1", way),
            ("figures", "fig2", "fig2/../../../../elsewhere"),
            ("figures", "fig2", "f" * 300),
            ("paper", "title: A toy\n", "title: A toy\nversions: {v1/../../x: Toy}\n"),
        )
    ):
        file = next(each for each in FILES if each.partition(".")[0] == name)
        text = problems(tmp_path / str(number), **{name: changed(file, old, new)})
        assert "should match pattern" in text and file in text, text


@pytest.mark.parametrize(
    ("old", "new", "column"),
    [
        ("0.3,3,", "0.3," + "9" * 400 + ",", "n_runs"),
        ("0.3,3,", "0.3,0,", "n_runs"),
        ("512,64,,", "512," + "9" * 400 + ",,", "batch_size"),
        ("0.3,3,", "1e30,3,", "std"),
        ("tau=0.1", "tau=0.1;tau=0.2", "conditions"),
        ("0.3,3,", "0.3,1_0,", "n_runs"),
        ("0.3,3,", "0.3,3.0,", "n_runs"),
        ("0.3,3,", "0_0.3,3,", "std"),
        ("0.3,3,", "inf,3,", "std"),
        ("0.3,3,", "101,3,", "std"),
        ("0.3,3,", "1e-400,3,", "std"),
        ("512,64,,recall", "512,6_4,,recall", "batch_size"),
        ("512,64,,recall", "512,64.0,,recall", "batch_size"),
    ],
)
def test_a_number_that_nothing_counts_is_refused(old, new, column, tmp_path):
    text = problems(tmp_path, results=changed("results.csv", old, new))
    assert f"column {column}: " in text


def test_a_folder_named_like_a_version_of_another_paper_is_refused(tmp_path, monkeypatch):
    write_paper(tmp_path / "mine", "roadmap2021v2")
    monkeypatch.setenv("BENCHMARK_PLUGINS", str(tmp_path / "mine"))
    with pytest.raises(ReferenceDataError, match="'roadmap2021v2' is a version of"):
        load_papers()


@pytest.mark.parametrize(
    "command",
    [["benchmark", "validate", "smoke"], ["snakemake", "-n", "--config", "study=smoke"]],
    ids=["validate", "workflow"],
)
def test_mistakes_in_papers_are_said_before_anything_starts(command, tmp_path):
    write_paper(tmp_path / "mine", paper=FILES["paper.yaml"] + "odd: 1\n")
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        env={**os.environ, "BENCHMARK_PLUGINS": str(tmp_path / "mine")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "paper.yaml" in done.stderr and "'odd'" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_papers_share_is_checked_over_all_of_them(tmp_path, monkeypatch):
    claims = FILES["claims.yaml"].replace("toy_beats_smooth_ap", "sup_ap_beats_smooth_ap")
    footnotes = FILES["footnotes.yaml"].replace("smoothap2020", "smoothap2021")
    write_paper(tmp_path / "mine", claims=claims, footnotes=footnotes)
    monkeypatch.setenv("BENCHMARK_PLUGINS", str(tmp_path / "mine"))
    with pytest.raises(ReferenceDataError) as caught:
        load_papers()
    assert "sup_ap_beats_smooth_ap  is the name of a claim of roadmap2021, too" in str(caught.value)
    assert "did you mean 'smoothap2020/table2'?" in str(caught.value)


def test_a_place_is_cited_for_people():
    assert cite("roadmap2021v1", "table5") == "ROADMAP (first version), table 5"
    assert cite("smoothap2020", "tableS1") == "Smooth-AP, table S1"
    assert cite("roadmap2021v2", "text_4.1") == "ROADMAP, section 4.1"
    assert cite_statement("smoothap2020", "section 6.4, table 5") == "Smooth-AP, table 5"
    assert (
        cite_statement("roadmap2021v2", "section 4.2, tables 4, 6 and 7")
        == "ROADMAP, tables 4, 6 and 7"
    )
    assert cite_statement("fastap2019", "section 5.3") == "FastAP, section 5.3"
