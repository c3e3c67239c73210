"""The report in headless Chromium: no errors, no requests, nothing wider than the screen, sorting works.

A picture of it is kept for people in results/test-artifacts (or BENCHMARK_TEST_ARTIFACTS).
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from devtools import Page, artifacts
from made_up_inputs import WENT_WRONG, made_up_inputs
from workplace import ROOT, small_study

from benchmark.report.page.page import build_page

BROWSER = next(
    (
        path
        for name in ("chromium", "chromium-browser", "google-chrome")
        if (path := shutil.which(name))
    ),
    None,
)
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        BROWSER is None, reason="no headless Chromium (chromium, google-chrome) on the path"
    ),
]

# Runs inside the page before its own script, so that it may look at what that script does.
WATCH = """
<script>
window.problems = [];
window.addEventListener("error", (event) => window.problems.push("error: " + event.message));
document.addEventListener("securitypolicyviolation", (event) => window.problems.push("blocked: " + event.blockedURI));
window.addEventListener("load", function () {
  const width = document.documentElement.clientWidth;
  const found = { problems: window.problems, width: width, page: document.documentElement.scrollWidth };
  found.wide = Array.from(document.querySelectorAll("body *"))
    .filter((node) => !node.closest(".scroll, .hidden, .skip") && node.getBoundingClientRect().right > width + 1)
    .map((node) => node.tagName + "." + node.className).slice(0, 5);
  found.figures = Array.from(document.querySelectorAll(".plot svg")).map((node) => node.getBoundingClientRect().height);
  const table = document.querySelector("#table-comparison table");
  const rows = () => Array.from(table.tBodies[0].rows).filter((row) => !row.className);
  const column = () => rows().map((row) => row.cells[1].dataset.sort);
  const button = table.tHead.rows[1].cells[1].querySelector("button");
  button.click();
  found.ascending = column().map(Number);
  button.click();
  found.descending = column().map(Number);
  found.sorted = table.tHead.rows[1].cells[1].getAttribute("aria-sort");
  const filter = document.querySelector("#table-comparison .filter input");
  filter.value = "roadmap";
  filter.dispatchEvent(new Event("input"));
  found.left = Array.from(table.querySelectorAll("tbody tr:not(.section)")).filter((row) => !row.hidden).length;
  found.ink = getComputedStyle(document.body).color;
  found.background = getComputedStyle(document.body).backgroundColor;
  const out = document.createElement("pre");
  out.id = "found";
  out.textContent = JSON.stringify(found);
  document.body.appendChild(out);
});
</script>
"""


@pytest.fixture(scope="module")
def page():
    return build_page(made_up_inputs(bad=WENT_WRONG, references=True))


@pytest.fixture(scope="module")
def real_report(tmp_path_factory) -> Path:
    """Returns the report of a small study that has really been run."""
    folder = tmp_path_factory.mktemp("study")
    (folder / "small.yaml").write_text(
        yaml.safe_dump(small_study("small", ["smooth_ap", "roadmap"]))
    )
    command = [
        sys.executable,
        "-m",
        "benchmark",
        "run",
        "small.yaml",
        "--cores",
        "2",
        "--results",
        "results",
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return folder / "results" / "small" / "report" / "index.html"


def opened(page: str, folder, width: int, *options: str) -> dict:
    """Opens the page in a frame of the given width (a window itself is never narrower than 500) and looks at it."""
    inner = page.replace("</title>", "</title>" + WATCH, 1)
    (folder / "inner.html").write_text(inner, encoding="utf-8")
    outer = f"""<!doctype html><iframe src="inner.html" style="width:{width}px;height:3000px;border:0"></iframe>"""
    (folder / "outer.html").write_text(outer, encoding="utf-8")
    target = folder / ("outer.html" if width < 500 else "inner.html")
    common = [
        BROWSER,
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--allow-file-access-from-files",
    ]
    common += [
        f"--user-data-dir={folder / 'profile'}",
        f"--window-size={max(width, 500)},3000",
        *options,
    ]
    if width < 500:
        # The frame's answer is copied out, because the dump shows the outer document only.
        copy = "document.body.append(frames[0].document.getElementById('found'))"
        script = f"<script>setTimeout(() => {{{copy}}}, 1500)</script>"
        target.write_text(outer + script, encoding="utf-8")
    done = subprocess.run(
        [*common, "--virtual-time-budget=4000", "--dump-dom", target.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
    )
    found = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, flags=re.S)
    assert found, done.stderr[-2000:]
    return json.loads(html.unescape(found.group(1)))


@pytest.mark.parametrize("width", [1280, 400])
def test_report_fits_the_screen_and_works_without_errors_or_requests(page, tmp_path, width):
    found = opened(page, tmp_path, width)
    assert found["problems"] == []
    assert found["width"] == width
    assert found["wide"] == [] and found["page"] <= width
    assert len(found["figures"]) == 6 and min(found["figures"]) > 100
    assert found["ascending"] == sorted(found["ascending"]) and len(found["ascending"]) == 8
    assert (
        found["descending"] == sorted(found["descending"], reverse=True)
        and found["sorted"] == "descending"
    )
    assert found["left"] == 2


def test_dark_scheme_turns_ink_and_paper(page, tmp_path):
    light = opened(page, tmp_path, 1280)
    dark = opened(page, tmp_path, 1280, "--blink-settings=preferredColorScheme=0")
    assert _lightness(light["background"]) > 0.9 > 0.4 > _lightness(light["ink"])
    assert _lightness(dark["background"]) < 0.2 < 0.6 < _lightness(dark["ink"])


@pytest.mark.slow
def test_the_report_of_a_real_study_opened_from_disk_logs_no_error_and_asks_for_nothing_else(
    real_report, tmp_path
):
    with Page(tmp_path / "profile", width=1280) as shown:
        shown.open(real_report.as_uri())
        shown.wait_for(
            "document.readyState === 'complete' && document.querySelector('#table-comparison')"
        )
        shown.evaluate(
            "document.querySelectorAll('details').forEach((node) => { node.open = true })"
        )
        shown.evaluate("document.querySelectorAll('th button').forEach((node) => node.click())")
        shown.evaluate("window.scrollTo(0, document.body.scrollHeight)")
        shown.evaluate("new Promise((done) => setTimeout(done, 500))")  # what is loaded late
        assert shown.problems() == []
        assert shown.requests() == [real_report.as_uri()]
        shown.evaluate("window.scrollTo(0, 0)")
        assert shown.screenshot(artifacts() / "report.png").stat().st_size > 20_000


def test_a_page_that_logs_an_error_or_asks_for_a_file_is_noticed(page, tmp_path):
    wrong = '<img src="missing.png"><script>console.error("went wrong")</script>'
    report = tmp_path / "index.html"
    unguarded = re.sub(r"<meta[^>]*Content-Security-Policy[^>]*>", "", page)
    report.write_text(unguarded.replace("</body>", f"{wrong}</body>"), encoding="utf-8")
    with Page(tmp_path / "profile") as shown:
        shown.open(report.as_uri())
        shown.wait_for("document.readyState === 'complete'")
        assert any("went wrong" in problem for problem in shown.problems())
        assert any("missing.png" in address for address in shown.requests())


def _lightness(colour: str) -> float:
    return sum(map(float, re.findall(r"[\d.]+", colour)[:3])) / (3 * 255)
