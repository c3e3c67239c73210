"""The report in headless Chromium: no errors, no requests, nothing too wide, sorting works.

``tests/workflow/test_end_to_end.py`` looks at that of a study that has really been run.
"""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from made_up_inputs import WENT_WRONG, inputs_of_challenge, made_up_inputs, written_page
from made_up_results import made_up_runs

from benchmark.core.files import write_text
from benchmark.study.load import load_study

pytestmark = pytest.mark.browser

# What sticks out of the screen, but for boxes that scroll and words for screen readers.
TOO_WIDE = """() => Array.from(document.querySelectorAll("body *"))
  .filter((node) => !node.closest(".scroll, .hidden, .skip"))
  .filter((node) => node.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
  .map((node) => node.tagName + "." + node.className)"""
WIDER = """boxes => boxes.filter((box) => box.scrollWidth > box.clientWidth + 1)
  .map((box) => box.getAttribute("aria-label"))"""
# What a table's last header and the names of its rows become in a PDF: links, which can be counted.
LINKED = """table => {
  const link = (cell, address) => {
    const anchor = document.createElement("a");
    anchor.href = address;
    anchor.append(...cell.childNodes);
    cell.append(anchor);
  };
  link(table.querySelector("thead tr:last-child th:last-child"), "https://header.test/");
  for (const cell of table.querySelectorAll("tbody tr:not(.section) > :first-child"))
    link(cell, "https://row.test/");
}"""
ROOT = Path(__file__).parents[2]
# Of FastAP's paper, in the order of the print.
PRINTED = ("table 1", "table 2", "table 3", "table 5", "table 6")
ROWS = "#table-comparison tbody tr:not(.section):not([hidden])"


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    path = folder / "report" / "index.html"
    inputs = made_up_inputs(bad=WENT_WRONG, references=True)
    write_text(path, written_page(inputs, folder))
    return path


@pytest.fixture(scope="module")
def of_paper(tmp_path_factory) -> Path:
    """Return the page of a paper's study with made-up runs near the printed numbers."""
    results = tmp_path_factory.mktemp("filled") / "fast_ap"
    script = ROOT / "tests" / "evidence" / "filled.py"
    subprocess.run([sys.executable, script, "fast_ap", results], check=True)
    return results / "fast_ap" / "report" / "index.html"


def test_the_page_of_a_papers_study_is_short_and_no_table_is_wider_than_it(of_paper, visit):
    seen = visit(width=1280)
    seen.open(of_paper.as_uri())
    assert seen.page.evaluate("document.documentElement.scrollHeight") <= 15_000
    boxes = seen.page.locator(".table .scroll:visible")
    assert boxes.count() > 5
    assert boxes.evaluate_all(WIDER) == []
    assert seen.errors == []


def test_a_papers_page_gives_each_printed_table_a_row_and_counts_claims_on_one_base(
    of_paper, visit
):
    page = visit().page
    page.goto(of_paper.as_uri())
    rows = page.locator("#table-outcomes tbody th").all_inner_texts()
    tables = [row.splitlines()[0] for row in rows]
    assert tables == [f"FastAP, {name}" for name in PRINTED]
    numbers, claims = page.locator(".answer p").all_inner_texts()
    tiles = [
        sum(map(int, part.locator("dd").all_inner_texts()))
        for part in page.locator("dl.counts").all()
    ]
    said = [int(re.search(r"Of (\d+)", sentence)[1]) for sentence in (numbers, claims)]
    counted = page.locator("#table-outcomes tbody td:nth-child(2)").all_inner_texts()
    assert said[0] == sum(map(int, counted))
    assert said == tiles[1:3]


@pytest.mark.parametrize("width", [1280, 400])
def test_a_name_that_stays_in_view_keeps_the_line_below_its_row(of_paper, visit, width):
    page = visit(width=width).page
    page.goto(of_paper.as_uri())
    box = page.locator("#table-fastap2019_table2 .scroll").first
    box.evaluate("box => { box.scrollLeft = 150; }")
    names = box.locator("tbody th")
    rows = names.evaluate_all(
        "names => names.map((name) => [name, name.nextElementSibling].map((cell) => "
        "[cell.getBoundingClientRect().bottom, getComputedStyle(cell).borderBottomWidth]))"
    )
    assert len(rows) > 5
    assert all(name == number and name[1] == "1px" for name, number in rows)
    assert box.locator("table").evaluate("t => getComputedStyle(t).borderCollapse") == "separate"
    left = names.first.bounding_box()["x"]
    assert left == pytest.approx(box.bounding_box()["x"], abs=1)


def test_tables_of_tests_fit_the_page_with_intervals_over_classes(visit, tmp_path):
    made = made_up_inputs()
    bounds = {"query_low": -0.1234, "query_high": -0.0123}
    tests = {"paired": made.paired.assign(**bounds), "ablation": made.ablation.assign(**bounds)}
    path = tmp_path / "index.html"
    write_text(path, written_page(dataclasses.replace(made, **tests), tmp_path))
    page = visit(width=1280).page
    page.goto(path.as_uri())
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    tables = page.locator("#table-paired, #table-all_pairs, #table-ablation")
    assert all("over classes" in text for text in tables.all_inner_texts())
    boxes = tables.locator(".scroll:visible")
    assert boxes.count() == 3
    assert boxes.evaluate_all(WIDER) == []


def embedded(change: float):
    """Return inputs of `embedded` with its frozen scores, whose mean gains are ``change`` times."""
    study = load_study("embedded")
    frozen = pd.read_csv(ROOT / "results" / "reference" / "embedded.csv")
    keys = ["dataset", "setting", "batch_size", "seed", "metric"]
    base = frozen[frozen["loss"] == "smooth_ap"].set_index(keys)["value"]
    frozen["gain"] = frozen["value"] - base.reindex(pd.MultiIndex.from_frame(frozen[keys])).array
    mean = frozen.groupby(["batch_size", "metric", "loss"])["gain"].transform("mean")
    frozen["frozen"] = frozen["value"] + (change - 1) * mean
    made = made_up_runs(study)
    runs = made.merge(frozen[[*keys, "loss", "frozen"]], on=[*keys, "loss"], how="left")
    last = runs["selection"] == "last"
    assert runs.loc[last, "frozen"].notna().all()
    return made_up_inputs(study, runs=made.assign(value=runs["value"].mask(last, runs["frozen"])))


@pytest.mark.parametrize(
    ("change", "first"),
    [
        (1.0, "At batch size 32 yes (+3.7 and +2.4 points of R@1), at 128 not shown."),
        (-1.0, "At batch size 32 no, lower (−3.7 and −2.4 points of R@1), at 128 not shown."),
        (0.0, "At batch sizes 32 and 128 not shown."),
    ],
)
def test_the_page_of_embedded_answers_first_and_gives_the_highest_mean_last(
    visit, tmp_path, change, first
):
    path = tmp_path / "index.html"
    write_text(path, written_page(embedded(change), tmp_path))
    page = visit().page
    page.goto(path.as_uri())
    sentences = page.locator(".answer p").all_inner_texts()
    assert sentences[0].startswith(f"Do SupAP and ROADMAP beat SmoothAP? {first}")
    assert sentences[-1].startswith("The highest mean R@1")
    assert page.evaluate("document.documentElement.scrollHeight") <= 6_700


@pytest.mark.parametrize("trials", [1, 5])
def test_a_challenge_of_few_trials_says_first_what_they_do_not_allow(visit, tmp_path, trials):
    path = tmp_path / "index.html"
    write_text(path, written_page(inputs_of_challenge(trials), tmp_path))
    page = visit().page
    page.goto(path.as_uri())
    first = page.locator(".answer p").first.inner_text()
    if trials == 1:
        assert first.startswith("No conclusion about SmoothAP at equal effort: 1 trial is one ")
    else:
        assert first.startswith("SmoothAP has rank 2 of 3 [")
    # with one trial there is no curve over the number of trials, and no empty panel of one
    assert page.locator("#table-budgets .scroll").evaluate_all(WIDER) == []
    curves = page.locator("#budgets .figure-item", has_text="Expected best")
    assert curves.count() == (trials > 1)
    assert page.locator("#table-budgets tr:has(.own)").count() == 1
    panels = page.locator(".opening svg g[id*='-axes_']")
    drawn = "panels => panels.map((panel) => panel.querySelectorAll('[id*=LineCollection]').length)"
    assert all(panels.evaluate_all(drawn))


def sort_keys(page) -> list[float]:
    """Return what the rows of the comparison's first section are sorted by."""
    body = page.locator("#table-comparison tbody").first
    cells = body.locator("tr:not(.section) td:nth-child(2)").all()
    return [float(cell.get_attribute("data-sort")) for cell in cells]


@pytest.mark.parametrize("width", [1280, 400])
def test_report_fits_the_screen_and_works_without_errors_or_requests(report, visit, width):
    seen = visit(width=width)
    seen.open(report.as_uri())
    page = seen.page
    assert page.evaluate(TOO_WIDE) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    drawn = page.locator(".plot > svg:not(.emptied):visible").all()
    boxes = [figure.bounding_box() for figure in drawn]
    # a phone has each panel and half of a legend in a picture of its own, as wide as the screen
    assert len(boxes) == (2 if width == 1280 else 11)
    assert all(box["height"] > (100 if width == 1280 else 20) for box in boxes)
    assert max(box["width"] for box in boxes) <= width

    header = page.locator("#table-comparison thead tr").last.locator("th").nth(1)
    header.locator("button").click()
    assert sort_keys(page) == sorted(sort_keys(page))
    assert len(sort_keys(page)) == 8
    header.locator("button").click()
    assert sort_keys(page) == sorted(sort_keys(page), reverse=True)
    assert header.get_attribute("aria-sort") == "descending"
    page.locator("#table-comparison .filter input").fill("roadmap")
    assert page.locator(ROWS).count() == 1
    assert seen.errors == []
    assert seen.requests == [report.as_uri()]


# Pixels for each point of the print, in pictures of legends: words have 7.5 points.
SCALES = """pictures => pictures.filter((picture) => picture.querySelector("[id*='-legend_']"))
  .map((picture) => picture.getBoundingClientRect().width / picture.viewBox.baseVal.width)"""


def test_a_figure_with_one_panel_fits_a_phone_and_legends_have_words_of_one_size(of_paper, visit):
    page = visit(width=400).page
    page.goto(of_paper.as_uri())
    plots = page.locator("#papers .plot")
    assert plots.count() == 3
    assert plots.evaluate_all(WIDER) == []
    for plot in plots.all():
        scales = plot.locator("svg.panel").evaluate_all(SCALES)
        assert scales
        assert all(1.1 < scale < 1.85 for scale in scales)


# Words of cells that stand on two lines, but for those with a place to break.
BROKEN = """() => {
  const found = [];
  for (const cell of document.querySelectorAll("th, td")) {
    const walk = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    for (let node = walk.nextNode(); node; node = walk.nextNode())
      for (const word of node.data.matchAll(/[\\p{L}\\p{N}@]+/gu)) {
        const range = document.createRange();
        range.setStart(node, word.index);
        range.setEnd(node, word.index + word[0].length);
        const tops = Array.from(range.getClientRects()).map((box) => Math.round(box.top));
        if (new Set(tops).size > 1) found.push(word[0]);
      }
  }
  return found;
}"""


def test_the_page_answers_on_the_first_screen_and_is_short(report, visit):
    page = visit().page
    page.goto(report.as_uri())
    ends = [page.locator(f".opening {kind}-item").bounding_box() for kind in (".figure", ".table")]
    assert all(box["y"] < 900 for box in ends)
    assert page.evaluate("document.documentElement.scrollHeight") <= 9_000
    hidden = page.locator("#provenance .facts")
    assert not hidden.is_visible()
    page.locator("nav a", has_text="Provenance").click()
    assert hidden.is_visible()


def test_print_breaks_no_word_and_takes_few_pages(report, visit):
    page = visit(width=700).page
    page.goto(report.as_uri())
    page.emulate_media(media="print")
    assert page.evaluate(BROKEN) == []
    assert len(re.findall(rb"/Type\s*/Page[^s]", page.pdf(prefer_css_page_size=True))) <= 20


def test_each_printed_page_of_a_table_repeats_its_headers(report, visit):
    page = visit().page
    page.goto(report.as_uri())
    page.locator("#table-paired table").evaluate(LINKED)
    printed = page.pdf(prefer_css_page_size=True)
    links = dict(re.findall(rb"\n(\d+) 0 obj\n<</Type /Annot.*?/URI \((.*?)\)", printed, re.S))
    pages = [
        {links[number] for number in re.findall(rb"(\d+) 0 R", named)}
        for named in re.findall(rb"/Annots \[(.*?)\]", printed)
    ]
    with_rows = [each for each in pages if b"https://row.test/" in each]
    assert len(with_rows) > 1
    assert all(b"https://header.test/" in each for each in with_rows)


def test_print_has_no_heading_without_content(of_paper, visit):
    page = visit().page
    page.goto(of_paper.as_uri())
    assert page.locator("#h-verdicts").is_visible()
    page.emulate_media(media="print")
    assert not page.locator("#h-verdicts").is_visible()
    assert page.locator("#h-papers").is_visible()


def test_dark_scheme_exchanges_ink_and_paper(report, visit):
    def lightness(scheme: str) -> tuple[float, float]:
        page = visit(color_scheme=scheme)
        page.open(report.as_uri())
        colours = page.page.evaluate(
            "(style => [style.color, style.backgroundColor])(getComputedStyle(document.body))"
        )
        return tuple(sum(map(float, re.findall(r"[\d.]+", one)[:3])) / 765 for one in colours)

    ink, paper = lightness("light")
    assert paper > 0.9 > 0.4 > ink
    ink, paper = lightness("dark")
    assert paper < 0.2 < 0.6 < ink


def test_a_page_that_logs_an_error_or_asks_for_a_file_is_noticed(report, visit, tmp_path):
    wrong = '<img src="missing.png"><script>console.error("went wrong")</script>'
    unguarded = re.sub(r"<meta[^>]*Content-Security-Policy[^>]*>", "", report.read_text("utf-8"))
    page = tmp_path / "index.html"
    page.write_text(unguarded.replace("</body>", f"{wrong}</body>"), encoding="utf-8")
    seen = visit()
    seen.open(page.as_uri())
    assert any("went wrong" in error for error in seen.errors)
    assert any("missing.png" in address for address in seen.requests)
