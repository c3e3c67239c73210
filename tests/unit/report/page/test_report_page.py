from __future__ import annotations

import dataclasses
import html.parser
import re
import time

import pandas as pd
import pytest
from made_up_inputs import WENT_WRONG, made_up_inputs, made_up_provenance, write_inputs
from made_up_results import made_up_runs, made_up_study
from typer.testing import CliRunner

from benchmark.report.page import write_report
from benchmark.report.page.answer import answer
from benchmark.report.page.glance import notices, run_counts, verdict_counts
from benchmark.report.page.origin import origin
from benchmark.report.page.page import build_page
from benchmark.report.tables.inputs import load_inputs
from benchmark.study.model import References

FIGURE = ("seed_differences",)  # one is enough where the rest of the page is what matters
VOID = {"meta", "link", "br", "img", "input", "hr"}


class Outline(html.parser.HTMLParser):
    """Collects ids, links, headings and tags that were not closed in order."""

    def __init__(self, page: str):
        super().__init__()
        self.ids, self.links, self.outside, self.headings = [], [], [], []
        self.open, self.torn = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids += [found["id"]] if "id" in found else []
        self.links += [found["href"]] if tag == "a" else []
        self.outside += [found[key] for key in ("src", "srcset", "data") if key in found]
        self.headings += [int(tag[1])] if re.fullmatch("h[1-6]", tag) else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.torn.append(tag)


@pytest.fixture(scope="module")
def inputs():
    return made_up_inputs(bad=WENT_WRONG, references=True)


@pytest.fixture(scope="module")
def clean():
    return made_up_inputs(
        made_up_study(losses=("smooth_ap", "sup_ap"), batch_sizes=(32,), seeds=(0, 1))
    )


@pytest.fixture(scope="module")
def page(inputs):
    return build_page(inputs)


def test_page_is_well_formed_with_unique_ids_and_links_that_lead_somewhere(page):
    outline = Outline(page)
    assert not outline.torn and not outline.open
    assert len(outline.ids) == len(set(outline.ids))
    inside = [link[1:] for link in outline.links if link.startswith("#")]
    assert inside and set(inside) <= set(outline.ids)
    assert outline.headings[0] == 1 and outline.headings.count(1) == 1
    assert all(
        after - before <= 1
        for before, after in zip(outline.headings, outline.headings[1:], strict=False)
    )


def test_page_needs_no_network(page):
    outline = Outline(page)
    assert not outline.outside
    assert all(link.startswith(("#", "data:", "../")) for link in outline.links)
    assert "default-src 'none'" in page and "@import" not in page and "url(http" not in page
    without_namespaces = re.sub(r'xmlns(:\w+)?="[^"]*"', "", page)
    assert "http://" not in without_namespaces and "https://" not in without_namespaces


def test_page_has_every_part_of_a_report(page):
    for anchor in (
        "answer",
        "verdicts",
        "results",
        "tests",
        "ablation",
        "cost",
        "missing",
        "provenance",
        "methods",
    ):
        assert f'<section id="{anchor}"' in page
    assert page.count('role="img" aria-label=') == 6
    for text in (
        "SmoothAP",
        "loss was nan at step 17",
        "glyphs_1k",
        "0123abcd",
        "torch 2.13.0",
        "A processor",
    ):
        assert text in page
    assert "numpy 2.4.6 (70 runs) / 2.3.0 (7 runs)" in page


def test_equal_inputs_give_an_equal_page(inputs):
    inputs = dataclasses.replace(inputs, study=dataclasses.replace(inputs.study, figures=FIGURE))
    assert build_page(inputs) == build_page(inputs)


def test_answer_is_computed_from_the_results(inputs):
    sentences = answer(inputs)
    assert len(sentences) == 3
    assert "ROADMAP at batch size 32" in sentences[0] and "n=4" in sentences[0]
    assert "significantly higher for SupAP and ROADMAP (at every batch size)" in sentences[1]
    step = (
        inputs.stats["ablation"]
        .query("metric == 'recall_at_1' and batch_size == 32 and step == '2'")
        .iloc[0]
    )
    assert f"{100 * step.difference:+.2f} points" in sentences[2].replace("−", "-")


def test_answer_claims_no_difference_that_its_test_does_not_show():
    study = made_up_study(losses=("smooth_ap", "sup_ap"), batch_sizes=(32,), seeds=(0,))
    assert any("Nothing could be tested" in sentence for sentence in answer(made_up_inputs(study)))
    assert not any("significantly" in sentence for sentence in answer(made_up_inputs(study)))


def test_counts_add_up_to_all_runs_and_all_references(inputs):
    assert {name: number for name, number, _ in run_counts(inputs)} == {
        "ok": 77,
        "diverged": 1,
        "failed": 1,
        "missing": 1,
    }
    assert sum(number for _, number, _, _ in verdict_counts(inputs)) == len(
        inputs.stats["verdicts"]
    )


def test_notices_name_partial_diverged_and_stand_in_results(inputs):
    text = " ".join(notices(inputs))
    assert (
        "2 of 80 runs have no usable result" in text
        and "1 run diverged" in text
        and "Stand-in data" in text
    )


def test_mixed_code_versions_and_recorded_errors_are_flagged(clean):
    runs = clean.runs.assign(code_version=clean.runs["code_version"].astype(str))
    runs.loc[runs["seed"] == 0, "code_version"] = "0.9+older"
    mixed = dataclasses.replace(clean, runs=runs, provenance={})
    assert any(
        "different code versions: 0.9+older, 1.0+abc1234" in notice for notice in notices(mixed)
    )
    assert any(term == "Code version" and "mixed" in value for term, value in origin(mixed))
    record = {**made_up_provenance(), "errors": ["dataset 'x' had different contents"]}
    assert "Dataset 'x' had different contents." in notices(
        dataclasses.replace(mixed, provenance=record)
    )


def test_a_complete_uniform_study_has_no_reason_for_caution(clean):
    assert notices(clean) == []


@pytest.mark.parametrize(
    "case", ["nothing finished", "all diverged", "one seed", "one loss", "empty grid"]
)
def test_page_builds_for_studies_that_went_wrong(case):
    study = made_up_study(
        losses=("smooth_ap", "sup_ap"), batch_sizes=(32,), seeds=(0, 1), figures=FIGURE
    )
    everything = [(loss, 32, seed) for loss in ("smooth_ap", "sup_ap") for seed in (0, 1)]
    inputs = {
        "nothing finished": lambda: made_up_inputs(study, bad=dict.fromkeys(everything, "missing")),
        "all diverged": lambda: made_up_inputs(study, bad=dict.fromkeys(everything, "diverged")),
        "one seed": lambda: made_up_inputs(
            made_up_study(losses=("smooth_ap", "sup_ap"), seeds=(0,), figures=FIGURE)
        ),
        "one loss": lambda: made_up_inputs(
            made_up_study(losses=("sup_ap",), seeds=(0, 1), figures=FIGURE)
        ),
        "empty grid": lambda: made_up_inputs(study, runs=made_up_runs(study).iloc[:0]),
    }[case]()
    page = build_page(inputs)
    expected = {
        "nothing finished": "4 of 4 runs have no usable result",
        "all diverged": "4 runs diverged",
        "one seed": "One seed only",
        "one loss": "no seed has finished both for the baseline",
        "empty grid": "No run is recorded for this study",
    }[case]
    assert expected in page.replace("&#39;", "'") and not Outline(page).torn
    assert ">nan<" not in page and "None" not in page


def test_page_says_which_metrics_finished_runs_lack_and_builds_from_the_rest():
    study = made_up_study(
        losses=("smooth_ap", "sup_ap"), batch_sizes=(32,), seeds=(0, 1), figures=FIGURE
    )
    runs = made_up_runs(study)
    none = runs[runs["metric"] != "map"]
    some = none[
        ~((none["metric"] == "map_at_r") & (none["loss"] == "sup_ap") & (none["seed"] == 0))
    ]
    inputs = made_up_inputs(study, runs=some)
    page = build_page(inputs)
    assert notices(inputs) == [
        "1 finished run without a value of mAP@R: its means, tests and figures are those of the others.",
        "No finished run has mAP, which the study asks for.",
    ]
    assert (
        "No finished run has mAP, which" in page and not Outline(page).torn and ">nan<" not in page
    )
    cells = page.split('id="table-comparison"')[1].split("</table>")[0]
    assert "(n=1)" in cells or "n=1" in cells, "a mean of fewer runs says so"
    unmeasured = made_up_inputs(study, runs=runs[runs["metric"].isin(("loss_ms", ""))])
    page = build_page(unmeasured)
    assert "No finished run has R@1" in page and not Outline(page).torn and ">nan<" not in page


def test_page_of_a_half_finished_grid_counts_and_lists_what_is_missing():
    study = made_up_study(
        losses=("smooth_ap", "sup_ap", "roadmap"), seeds=(0, 1, 2), figures=FIGURE
    )
    rest = {
        (loss, 128, seed): "missing"
        for loss in ("smooth_ap", "sup_ap", "roadmap")
        for seed in (0, 1, 2)
    }
    page = build_page(made_up_inputs(study, bad={**rest, ("roadmap", 32, 2): "failed"}))
    assert "Partial results: 10 of 18 runs have no usable result" in page and not Outline(page).torn
    listed = page.split('<section id="missing"')[1].split("</section>")[0]
    assert "exit status 1" in listed and listed.count("missing") >= 1 and "128" in listed
    compared = page.split('id="table-comparison"')[1].split("</table>")[0]
    assert "Batch size 32" in compared and ">nan<" not in page


def test_results_come_before_the_papers_only_where_a_study_names_no_references(clean):
    def order(study):
        return re.findall(
            r'<section id="(\w+)"', build_page(dataclasses.replace(clean, study=study))
        )

    named = dataclasses.replace(clean.study, references=References((), "frozen.csv"))
    own, papers = order(clean.study), order(named)
    assert own.index("results") < own.index("ablation") < own.index("verdicts") < own.index("cost")
    assert papers.index("verdicts") < papers.index("results") and sorted(own) == sorted(papers)


def test_page_builds_without_any_file_and_says_what_is_missing(tmp_path):
    path = write_report(made_up_study(), tmp_path)
    assert path == tmp_path / "made_up" / "report" / "index.html"
    text = path.read_text()
    assert "runs.csv is not there" in text and "There is no answer yet" in text


def test_a_section_without_content_gives_each_reason_once(clean):
    section = build_page(clean).split('<section id="verdicts"')[1].split("</section>")[0]
    assert section.count("there are no verdicts") == 1 and "<h3>" not in section


def test_page_hides_where_and_by_whom_it_was_made(tmp_path):
    study = made_up_study(losses=("smooth_ap", "sup_ap"), seeds=(0, 1), figures=())
    runs = made_up_runs(study, bad={("sup_ap", 32, 0): "failed"})
    runs.loc[runs.status == "failed", "reason"] = "no file /home/somebody/pictures/cat.png"
    inputs = made_up_inputs(study, runs=runs)
    record = {
        **made_up_provenance(),
        "hostname": "secret-box",
        "root": "/home/somebody/bench/results",
    }
    write_inputs(dataclasses.replace(inputs, provenance=record), runs, tmp_path)
    text = write_report(study, tmp_path).read_text()
    assert "somebody" not in text and "secret-box" not in text and str(tmp_path) not in text
    assert "…/cat.png" in text


def test_text_from_studies_and_runs_cannot_become_markup():
    study = made_up_study(
        losses=("smooth_ap", "sup_ap"),
        seeds=(0, 1),
        figures=(),
        title="<script>x</script>",
        question="a < b & c",
    )
    runs = made_up_runs(study, bad={("sup_ap", 32, 0): "failed"})
    runs.loc[runs.status == "failed", "reason"] = "<img src=x onerror=y>"
    page = build_page(made_up_inputs(study, runs=runs))
    assert "<script>x" not in page and "<img" not in page and "a &lt; b &amp; c" in page


def test_report_verb_refuses_without_results_and_builds_when_told(tmp_path, monkeypatch):
    import benchmark.study
    from benchmark.__main__ import app
    from benchmark.core.errors import RunError

    monkeypatch.setattr(benchmark.study, "load_study", lambda name: made_up_study())
    refused = CliRunner().invoke(app, ["report", "made_up", "--results", str(tmp_path)])
    assert isinstance(refused.exception, RunError) and "--partial" in str(refused.exception)
    built = CliRunner().invoke(app, ["report", "made_up", "--partial", "--results", str(tmp_path)])
    assert built.exit_code == 0 and (tmp_path / "made_up" / "report" / "index.html").is_file()


def test_verbs_write_tables_and_figures(tmp_path, monkeypatch):
    import benchmark.study
    from benchmark.__main__ import app

    study = made_up_study(
        losses=("smooth_ap", "sup_ap"), seeds=(0, 1), tables=("comparison",), figures=("loss_cost",)
    )
    monkeypatch.setattr(benchmark.study, "load_study", lambda name: study)
    folder = write_inputs(made_up_inputs(study), made_up_runs(study), tmp_path)
    for verb in ("tables", "plots"):
        assert CliRunner().invoke(app, [verb, "made_up", "--results", str(tmp_path)]).exit_code == 0
    assert sorted(path.name for path in (folder / "tables").iterdir()) == [
        f"comparison.{kind}" for kind in ("csv", "html", "md", "tex")
    ]
    assert sorted(path.name for path in (folder / "figures").iterdir()) == [
        "figures.json",
        *(f"loss_cost.{kind}" for kind in ("csv", "pdf", "svg")),
    ]


def test_a_large_study_takes_seconds_and_stays_readable(tmp_path):
    study = made_up_study()
    runs = made_up_runs(study, epochs=4)
    one = made_up_inputs(study, runs=runs)

    def copies(table, times=4):
        found = []
        for number in range(times):
            name = f"set_{number:02d}"
            found.append(table.assign(dataset=name, **_renamed(table, name)))
        return pd.concat(found)

    many = copies(runs)
    stats = {name: copies(table) if len(table) else table for name, table in one.stats.items()}
    write_inputs(dataclasses.replace(one, stats=stats), many, tmp_path)
    start = time.process_time()
    page = build_page(load_inputs(study, tmp_path))
    assert (
        time.process_time() - start < 60
    )  # about 6 s on one idle core; the limit leaves room for slow machines
    assert (
        "further panels are only in the CSV file" in page and "more rows are not shown here" in page
    )
    assert len(page) < 8e6


def _renamed(table: pd.DataFrame, name: str) -> dict[str, pd.Series]:
    columns = [column for column in ("run_id", "family") if column in table]
    return {column: table[column].str.replace("glyphs_1k", name) for column in columns}
