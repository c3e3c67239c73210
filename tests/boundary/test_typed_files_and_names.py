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
from paper_folders import FILES, METHODS, write_paper

from benchmark.report import labels
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


def test_markup_in_papers_and_in_the_names_of_losses_stays_text_on_the_page(tmp_path, monkeypatch):
    markup = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    texts = {
        "paper": "name: Toy\ncitation: Nobody et al., 2030\ntitle: A toy\n" + METHODS,
        "results": FILES["results.csv"],
        "outside": FILES["outside.yaml"],
        "implied": FILES["implied.yaml"],
        "tables": FILES["tables.yaml"],
        "claims": FILES["claims.yaml"],
        "figures": FILES["figures.yaml"],
    }
    marked = {
        "paper": ("Nobody et al.", "A toy", "name: Toy"),
        "results": ("table1,Toy", "table1,Other"),
        "outside": ("no time",),
        "implied": ("section 3",),
        "tables": ("toys",),
        "claims": ("section 4", "The toy loss"),
        "figures": ("a sweep", "temperature"),
    }
    for file, words in marked.items():
        for each in words:
            assert each in texts[file]
            texts[file] = texts[file].replace(each, f"{each} {markup}")
    write_paper(tmp_path / "plugins", footnotes=None, **texts)
    monkeypatch.setenv("BENCHMARK_PLUGINS", str(tmp_path / "plugins"))
    facts = labels.load_catalogue()
    odd = {name: replace(each, display=f"{each.display} {markup}") for name, each in facts.items()}
    monkeypatch.setattr(labels, "load_catalogue", lambda: odd)
    made = made_up_study()
    references = replace(made.references, published=("toy2030",))
    page = written_page(made_up_inputs(replace(made, references=references)), tmp_path / "page")
    files = [path for path in (tmp_path / "page").rglob("*.*") if path.suffix in (".html", ".svg")]
    written = "".join([page, *(path.read_text() for path in files)])
    assert "&lt;script&gt;alert(1)" in written
    for each in ("Nobody et al.", "Toy"):
        assert f"{each} &lt;script&gt;" in written
    assert "<script>alert(" not in written
    assert "<img src=x" not in written
