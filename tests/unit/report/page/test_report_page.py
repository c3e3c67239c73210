from __future__ import annotations

import base64
import dataclasses
import hashlib
import re

import pytest
from html_outline import Outline
from made_up_inputs import (
    WENT_WRONG,
    built,
    collected_provenance,
    made_up_inputs,
    two_losses,
    write_collected,
)
from made_up_results import made_up_runs, made_up_study
from typer.testing import CliRunner

from benchmark.core.errors import RunError
from benchmark.core.files import write_text
from benchmark.report.answer import answer
from benchmark.report.gallery import Gallery
from benchmark.report.notices import notices
from benchmark.report.page import Built, build_page
from benchmark.report.tables import TABLES
from benchmark.report.tally import counts

FIGURES = ("loss_cost", "metric_by_batch_size", "verdicts")
SHOWN = {"tables": ("comparison",), "figures": ("loss_cost",)}


@pytest.fixture(scope="module")
def inputs():
    made = made_up_inputs(bad=WENT_WRONG, references=True)
    return dataclasses.replace(made, study=dataclasses.replace(made.study, figures=FIGURES))


@pytest.fixture(scope="module")
def clean():
    return made_up_inputs(two_losses(figures=FIGURES))


@pytest.fixture(scope="module")
def clean_shown(clean, tmp_path_factory):
    return built(clean, tmp_path_factory.mktemp("clean"))


@pytest.fixture(scope="module")
def shown(inputs, tmp_path_factory):
    return built(inputs, tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="module")
def page(inputs, shown):
    return build_page(inputs, shown)


def test_page_is_well_formed_with_unique_ids_and_links_that_lead_somewhere(page):
    outline = Outline(page)
    assert not outline.torn
    assert not outline.open
    assert len(outline.ids) == len(set(outline.ids))
    inside = [link[1:] for link in outline.links if link.startswith("#")]
    assert inside
    assert set(inside) <= set(outline.ids)
    assert outline.headings[0] == 1
    assert outline.headings.count(1) == 1
    assert all(
        after - before <= 1
        for before, after in zip(outline.headings, outline.headings[1:], strict=False)
    )


def test_page_needs_no_network(page):
    outline = Outline(page)
    assert not outline.outside
    assert all(link.startswith(("#", "data:", "../")) for link in outline.links)
    assert "default-src 'none'" in page
    assert "@import" not in page
    assert "url(http" not in page
    without_namespaces = re.sub(r'xmlns(:\w+)?="[^"]*"', "", page)
    assert "http://" not in without_namespaces
    assert "https://" not in without_namespaces


def test_the_policy_allows_the_pages_own_style_and_script_alone(page):
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert "unsafe" not in policy
    for element in ("style", "script"):
        (content,) = re.findall(rf"<{element}>(.*?)</{element}>", page, re.S)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{element}-src 'sha256-{digest}'" in policy.replace("&#43;", "+")
    assert not re.search(r"\sstyle=|\son\w+=", page)


def test_page_has_every_part_of_a_report(page):
    anchors = "answer verdicts results tests ablation cost missing provenance methods"
    for anchor in anchors.split():
        assert f'<section id="{anchor}"' in page
    assert page.count('role="img" aria-label=') == len(FIGURES)
    assert page.index("Read this first") < page.index('class="answer"')
    for text in (
        "SmoothAP",
        "loss was nan at step 17",
        "glyphs_1k",
        "0123abcd",
        "torch 2.13.0",
        "A processor",
    ):
        assert text in page
    assert "numpy 2.3.0 (7 runs); 2.4.6 (70 runs)" in page


def test_equal_inputs_give_an_equal_page(inputs, page, shown):
    assert build_page(inputs, shown) == page


def test_the_page_shows_the_tables_and_figures_that_were_made_and_makes_none(inputs, shown):
    other = dataclasses.replace(inputs, summary=inputs.summary.iloc[:0])
    assert 'id="table-comparison"' in build_page(other, shown)


def test_the_answer_is_computed_from_the_results(inputs, messages):
    _, step, _, best = answer(inputs)
    assert "4" in messages.told_numbers(best), "seeds of a loss that diverged once"
    row = inputs.ablation.query("metric == 'recall_at_1' and batch_size == 32 and step == '2'")
    difference = f"{100 * row.iloc[0].difference:+.1f}".replace("-", "−")
    assert difference in messages.told_numbers(step)


def test_the_answer_claims_no_difference_without_a_test(messages):
    study = two_losses(seeds=(0,))
    first, *_ = answer(made_up_inputs(study))
    assert messages.told_numbers(first) == ["32"]


def test_counts_add_up_to_all_runs_and_all_references(inputs):
    (_, _, runs), (papers, _, numbers), (ours, _, frozen) = counts(inputs)
    assert "papers" in papers
    assert "frozen" in ours
    assert [count.number for count in runs] == [77, 1, 1, 1]
    assert [count.tone for count in runs] == ["good", "bad", "bad", "muted"]
    assert sum(count.number for count in [*numbers, *frozen]) == len(inputs.verdicts)
    assert {count.tone for count in [*numbers, *frozen] if count.number == 0} == {"muted"}


def test_notices_name_partial_diverged_and_stand_in_results(inputs, messages):
    partial, diverged, stand_in, interim = notices(inputs)
    assert messages.told_numbers(partial) == ["2", "80"]
    assert messages.told_numbers(diverged) == ["1"]
    assert "Stand-in data" in stand_in
    assert messages.told_numbers(interim) == ["6"]


def test_a_page_of_made_up_runs_says_so_in_its_title_and_first(clean):
    runs = clean.runs.assign(platform="made-up")
    drawn = dataclasses.replace(clean, runs=runs, provenance={})
    assert notices(drawn)[0].startswith(f"Made up: nothing was trained for {len(runs)} of ")
    made, trained = (build_page(each, Built([], Gallery([], "none"))) for each in (drawn, clean))
    heading = f"Made-up runs: {clean.study.title}"
    assert f"<title>{heading} · report" in made
    assert f"<h1>{heading}<" in made
    assert "Made-up runs" not in trained
    assert "Made up: " not in trained


def test_recall_is_explained_with_its_k(page):
    found = re.findall(r"among the K nearest items, K = (\d+);", page)
    assert found
    assert "K nearest items;" not in page


def test_mixed_code_versions_and_recorded_errors_are_flagged(clean):
    runs = clean.runs.copy()
    runs.loc[runs["seed"] == 0, "code_version"] = "0.9+older"
    mixed = dataclasses.replace(clean, runs=runs, provenance={})
    assert any(
        "different code versions: 0.9+older, 1.0+abc1234" in notice for notice in notices(mixed)
    )
    runs["code_version"] = ["1.0+abc" + "+mine-1" * (loss == "sup_ap") for loss in runs["loss"]]
    assert notices(dataclasses.replace(clean, runs=runs, provenance={})) == []
    record = {**collected_provenance(), "errors": ["dataset 'x' had different contents"]}
    assert "Dataset 'x' had different contents." in notices(
        dataclasses.replace(mixed, provenance=record)
    )


def test_a_complete_uniform_study_has_no_reason_for_caution(clean):
    assert notices(clean) == []


def anchors(page):
    return re.findall(r'<section id="(\w+)"', page)


def test_results_come_before_the_papers_unless_a_printed_number_was_run(inputs, shown, page):
    own = anchors(page)
    assert own.index("results") < own.index("ablation") < own.index("verdicts") < own.index("cost")
    verdicts = inputs.verdicts.assign(verdict="reproduced")
    of_paper = build_page(dataclasses.replace(inputs, verdicts=verdicts), shown)
    assert of_paper.index('id="figure-verdicts') < of_paper.index('<section id="results"')
    assert {*anchors(of_paper)} == {*own}


def test_the_printed_numbers_name_the_command_that_tries_other_protocols(inputs, page):
    command = f"python -m benchmark score --study {inputs.study.name}"
    part = page.split('<section id="verdicts"')[1].split("</section>")[0]
    assert part.count(command) == 1
    assert page.count("score --study") == 1


def test_what_has_nothing_to_show_is_named_once_in_a_folded_line(clean, clean_shown):
    page = build_page(clean, clean_shown)
    assert "verdicts" not in anchors(page)
    assert "gallery" not in anchors(page)
    rest = page.split('<section id="rest"')[1].split("</section>")[0]
    assert rest.count("there are no verdicts") == 2  # a table and a figure
    entries = re.findall(r"<li>(.*?)</li>", rest, re.S)
    assert len(entries) == len(set(entries)) > 5
    assert "Retrieval gallery: no pictures were asked for." in rest
    assert rest.lstrip().split(">", 1)[1].lstrip().startswith('<details class="closed">')


def test_the_first_screen_has_one_figure_and_one_small_table(page):
    first = page.split('<section id="answer"')[1].split("</section>")[0]
    assert first.count("<svg") == 1
    assert 'id="figure-metric_by_batch_size' in first
    assert first.count("<table") == 1
    assert 'id="table-headline"' in first


def test_each_table_and_figure_has_its_command_and_the_study_file_is_there(
    clean, clean_shown, tmp_path
):
    path = tmp_path / "mine.yaml"
    path.write_text("title: mine\ndataset: {root: /home/somebody/flowers}\n")
    study = dataclasses.replace(clean.study, path=path, digest="0123")
    page = build_page(dataclasses.replace(clean, study=study), clean_shown)
    shown = page.count('class="figure"') + page.count('<table class="sortable">')
    assert page.count("Again: <code>python -m benchmark build …/mine.yaml</code>") == shown
    link = re.search(r'href="data:[^"]*base64,([^"]*)" download="mine.yaml"', page)[1]
    content = base64.b64decode(link.replace("&#43;", "+")).decode()
    assert content.startswith("title: mine")
    assert "somebody" not in content


def built_by_verb(study, results, monkeypatch, verb="build"):
    import benchmark.study
    from benchmark.__main__ import app

    monkeypatch.setattr(benchmark.study, "load_study", lambda name, results=None: study)
    return CliRunner().invoke(app, [verb, "made_up", "--results", str(results)])


def test_build_refuses_before_anything_was_collected(tmp_path, monkeypatch):
    refused = built_by_verb(made_up_study(), tmp_path, monkeypatch)
    assert isinstance(refused.exception, RunError)
    assert "runs.csv" in str(refused.exception)


def test_build_writes_everything(tmp_path, monkeypatch):
    study = two_losses(**SHOWN)
    folder = write_collected(made_up_inputs(study), made_up_runs(study), tmp_path)
    write_text(folder / "report" / "failed.txt", "table cost: of the build before\n")
    assert built_by_verb(study, tmp_path, monkeypatch).exit_code == 0
    tables = {path.name for path in (folder / "tables").iterdir()}
    assert tables == {f"comparison.{kind}" for kind in ("csv", "html", "md", "tex")}
    figures = {path.name for path in (folder / "figures").iterdir()}
    assert figures == {f"loss_cost.{kind}" for kind in ("csv", "pdf", "svg")}
    assert (folder / "stats" / "summary.csv").is_file()
    assert (folder / "verdicts.csv").is_file()
    assert (folder / "report" / "failed.txt").read_text() == ""


@pytest.mark.parametrize("verb", ["tables", "report"])
def test_the_old_verbs_build(verb, tmp_path, monkeypatch):
    studies = []

    def build(study, results, choice):
        studies.append((study, results))
        return Built([], Gallery([], "none"))

    monkeypatch.setattr("benchmark.report.build.build", build)
    study = two_losses()
    assert built_by_verb(study, tmp_path, monkeypatch, verb).exit_code == 0
    assert studies == [(study, tmp_path)]


def test_what_fails_is_named_and_costs_none_of_the_others(tmp_path, monkeypatch):
    def broken(inputs):
        raise ZeroDivisionError("it is odd")

    study = two_losses(tables=("cost",), figures=("loss_cost",))
    entry = dataclasses.replace(TABLES["cost"], target=broken)
    monkeypatch.setattr("benchmark.report.build.TABLES", {"cost": entry})
    folder = write_collected(made_up_inputs(study), made_up_runs(study), tmp_path)
    write_text(folder / "analyses" / "half" / "summary.json", "{}")
    done = built_by_verb(study, tmp_path, monkeypatch)
    assert done.exit_code == 0
    assert "in broken" in done.stderr
    table, analysis = (folder / "report" / "failed.txt").read_text().splitlines()
    assert table == "table cost: ZeroDivisionError: it is odd"
    assert analysis.startswith("analysis half: ")
    page = (folder / "report" / "index.html").read_text()
    assert "Not made: table cost (ZeroDivisionError: it is odd)." in page
    assert 'id="figure-loss_cost' in page
    assert (folder / "figures" / "loss_cost.csv").is_file()


def test_a_page_that_fails_leaves_the_files_and_a_word(tmp_path, monkeypatch):
    study = made_up_study(losses=("smooth_ap",), seeds=(0,), tables=(), figures=())
    monkeypatch.setattr("benchmark.report.build.build_page", lambda *_: 1 / 0)
    folder = write_collected(made_up_inputs(study), made_up_runs(study), tmp_path)
    assert built_by_verb(study, tmp_path, monkeypatch).exit_code == 0
    assert "page: ZeroDivisionError" in (folder / "report" / "failed.txt").read_text()
    assert "could not be made" in (folder / "report" / "index.html").read_text()
    assert (folder / "verdicts.csv").is_file()
