"""Studies and recipes that people write are refused by name; markup in names stays text."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from made_up_inputs import made_up_inputs, written_page
from made_up_results import made_up_study

from benchmark.study.model import ROOT

RECIPES = ROOT / "workflow" / "config" / "recipes"
DATASET = {"name": "glyphs_tiny", "label": "tiny", "params": {}}
BLOCK = {
    "name": "main",
    "datasets": [DATASET],
    "recipe": "glyphs_smoke",
    "losses": ["warm", "roadmap"],
    "batch_sizes": [32],
    "option": "fast",
}


def study(block: dict[str, Any] | None = None, **changes: Any) -> str:
    content = {
        "study": "x",
        "title": "Four runs",
        "seeds": [0, 1],
        "losses": {"warm": {"loss": "smooth_ap", "tau": 0.1}},
        "blocks": [{**BLOCK, **(block or {})}],
        "metrics": ["recall_at_1"],
        "comparison": {"baseline": "warm", "alpha": 0.05},
        **changes,
    }
    return yaml.safe_dump(content)


def recipe(section: str, **changes: Any) -> str:
    data = yaml.safe_load((RECIPES / "glyphs_smoke.yaml").read_text())
    data.setdefault(section, {}).update(changes)
    return yaml.safe_dump(data)


GOOD = study()
LABELLED = [{**DATASET, "label": "../owned"}]
STUDIES: dict[str, str | bytes] = {
    "nothing": "",
    "a list": "[]",
    "text": "hello",
    "no utf-8": b"\xff\xfe\x00",
    "a tab": "study:\tx\n\ty: 1",
    "an object": f"{GOOD}question: !!python/object/apply:os.system ['touch owned']\n",
    "deep nesting": "study: " + "[" * 5000,
    "a key that is not there": f"{GOOD}titel: again\n",
    "a name that leaves": study(study="../owned"),
    "blocks of numbers": study(blocks=[1]),
    "seeds of text": study(seeds=["0"]),
    "negative seeds": study(seeds=[-1]),
    "a label that leaves": study(losses={"../owned": {"loss": "smooth_ap"}}),
    "a label of markup": study(losses={"<script>alert(1)</script>": {"loss": "smooth_ap"}}),
    "an unknown loss": study(losses={"warm": {"loss": "os.system"}}),
    "tau of NaN": study(losses={"warm": {"loss": "smooth_ap", "tau": float("nan")}}),
    "tau of text": study(losses={"warm": {"loss": "smooth_ap", "tau": "0.1"}}),
    "an unknown table": study(tables=["../../etc/passwd"]),
    "a dataset label that leaves": study({"datasets": LABELLED}),
    "an unknown dataset": study({"datasets": ["../x"]}),
    "parameters of a list": study({"datasets": [{**DATASET, "params": [1]}]}),
    "a recipe that leaves": study({"recipe": "../../../../etc/passwd"}),
    "a recipe with a NUL": study({"recipe": "a\0b"}),
    "a batch of text": study({"batch_sizes": ["32"]}),
    "epochs of NaN": study({"override": {"training": {"epochs": float("nan")}}}),
    "an override of what there is not": study({"override": {"os": {"system": 1}}}),
}
RECIPE_FILES = {
    "nothing": "",
    "a list": "[1]",
    "an object": "model: !!python/object/apply:os.system ['touch owned']\n",
    "a key twice": recipe("model") + "model: {}\n",
    "a dimension of -5": recipe("model", embedding_dim=-5),
    "a rate of infinity": recipe("optimizer", lr=float("inf")),
    "a rate of text": recipe("optimizer", lr="0.1"),
    "an unknown backbone": recipe("model", backbone="../x"),
    "itself": "extends: mine\n",
    "a recipe elsewhere": "extends: ../../x\n",
}


@pytest.mark.parametrize("case", STUDIES)
def test_a_wrong_study_is_refused_by_its_name(command, case):
    content = STUDIES[case]
    Path("x.yaml").write_bytes(content if isinstance(content, bytes) else content.encode())
    status, said = command("validate", "x.yaml")
    assert status == 2
    assert "x.yaml" in said
    assert len(said) < 20_000


@pytest.mark.parametrize("case", RECIPE_FILES)
def test_a_wrong_recipe_is_refused_by_its_name(command, case):
    Path("recipes").mkdir()
    Path("recipes/mine.yaml").write_text(RECIPE_FILES[case])
    Path("x.yaml").write_text(study({"recipe": "mine"}))
    status, said = command("validate", "x.yaml")
    assert status == 2
    assert re.search(r"mine\.yaml|x\.yaml", said)


def test_markup_in_names_and_titles_stays_text_on_the_page(tmp_path):
    markup = "<script>alert('owned by')</script><img src=x onerror=alert(2)>"
    made = made_up_study(title=markup, question=markup)
    (block,) = made.blocks
    datasets = tuple(replace(each, label=markup) for each in block.datasets)
    study_ = replace(made, blocks=(replace(block, datasets=datasets),))
    page = written_page(made_up_inputs(study_), tmp_path / "page")
    assert "&lt;script&gt;alert(" in page
    assert "<script>alert(" not in page
    assert "<img src=x" not in page
    tables = [path.read_text() for path in (tmp_path / "page").rglob("*.html")]
    assert tables
    assert not any("<script>alert(" in table for table in tables)
