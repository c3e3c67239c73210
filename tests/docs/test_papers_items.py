"""Each item of the papers ends as done, stated, or left out for a reason."""

from __future__ import annotations

import csv
import re

import pytest
from pages import ROOT

from benchmark.analyses import ANALYSES

FILE = ROOT / "docs" / "background" / "papers_items.csv"
ITEMS = 158
MARKS = {"E", "A", "a", "P", "M", "n", "outside"}
# How an item ends, by its mark of today.
ENDS = {
    "E": r"done",
    "A": r"stated",
    "P": r"(done|left out, because .+)",
    "M": r"(left out, because .+)",
    "n": r"left out, because .+",
    "outside": r"left out, because .+",
}
PATH = re.compile(r"(?:benchmark|docs|tests|workflow)/[\w/.]+")


@pytest.fixture(scope="module")
def items():
    with open(FILE, newline="") as stream:
        return list(csv.DictReader(stream))


def test_every_item_has_one_row_in_the_order_of_the_papers(items):
    assert [int(row["item"]) for row in items] == list(range(1, ITEMS + 1))
    papers = list(dict.fromkeys(row["paper"] for row in items))
    assert papers == ["Smooth-AP", "FastAP", "SoftBinAP", "ROADMAP"]
    assert all(row["printed_in"] and row["what"] for row in items)


def test_an_item_ends_as_its_mark_of_today_says(items):
    wrong = [
        row["item"]
        for row in items
        if row["before"] not in MARKS
        or not re.fullmatch(ENDS.get(row["today"], "never"), row["outcome"])
    ]
    assert wrong == [], "no item rests on an assumption that is not stated"


def test_what_is_done_or_stated_says_where_and_that_exists(items):
    for row in items:
        if row["outcome"] in ("done", "stated"):
            assert row["where"], row["item"]
        for path in PATH.findall(row["where"]):
            assert (ROOT / path.rstrip(".")).exists(), row
        if named := re.match(r"analyse (\w+)", row["where"]):
            assert named[1] in ANALYSES.names(), row
