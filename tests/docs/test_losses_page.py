"""The table of docs/losses.md says of every loss what the registry says."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from reference.replay_losses import CASES

from benchmark.core.options import schema_of
from benchmark.losses import LOSSES

ROOT = Path(__file__).parents[2]
COLUMNS = ("loss", "paper", "formula", "hyperparameters", "needs", "cost", "values")
# options that all losses of a ranking share, explained above the table
SHARED = {"include_query"}


def hyperparameters(name):
    """The hyperparameters of a loss with their defaults, as the table writes them."""
    properties = schema_of(LOSSES[name].target.Config)["properties"]
    words = [
        f"{key} {_written(each.get('default'))}"
        for key, each in properties.items()
        if key not in SHARED
    ]
    return ", ".join(words) or "none"


def _written(value):
    if isinstance(value, list):
        return " ".join(map(_written, value))
    return f"{value:g}" if isinstance(value, float) else str(yaml.safe_dump(value).split("\n")[0])


def rows():
    page = (ROOT / "docs/losses.md").read_text(encoding="utf-8")
    cells = [line.strip("|").split(" | ") for line in page.splitlines() if line.startswith("| `")]
    return {
        row[0].strip(" `"): dict(zip(COLUMNS, map(str.strip, row), strict=True)) for row in cells
    }


def test_every_loss_has_one_row_with_its_paper_and_hyperparameters():
    table = rows()
    assert sorted(table) == LOSSES.names()
    for name, row in table.items():
        assert row["paper"] == LOSSES[name].facts["paper"], name
        assert row["hyperparameters"] == hyperparameters(name)


def test_needs_agree_with_the_registry():
    for name, row in rows().items():
        facts = LOSSES[name].facts
        assert ("proxies" in row["needs"] or "no memory" in row["needs"]) != facts[
            "accepts_references"
        ]
        assert ("proxies" in row["needs"]) == (facts["kind"] == "proxy")


def test_losses_checked_against_authors_code_are_those_of_the_reference_values():
    checked = {case.loss for case in CASES.values()} | {"roadmap"}
    checked.add("cosine_contrastive")  # in the training steps of replay_steps.py
    assert {name for name, row in rows().items() if row["values"] == "authors"} == checked


def test_words_of_the_columns_are_explained_above_the_table():
    page = (ROOT / "docs/losses.md").read_text(encoding="utf-8").split("| loss |")[0]
    explained = set(re.findall(r"^- \*\*(.+?)\*\*", page, re.MULTILINE))
    words = {row[column] for row in rows().values() for column in ("cost", "values")}
    assert words <= explained
