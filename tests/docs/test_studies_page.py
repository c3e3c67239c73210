"""docs/studies.md names the studies, the keys and the environment variables that there are."""

from __future__ import annotations

import re
import subprocess

import yaml
from pages import ROOT, blocks

from benchmark.core.options import schema_of
from benchmark.study import load_study, study_names
from benchmark.study.grid import expand
from benchmark.study.model import BlockFile, Comparison, RecipeFile, References, StudyFile

PAGE = ROOT / "docs" / "studies.md"
TEXT = PAGE.read_text(encoding="utf-8")
VARIABLE = re.compile(r"\bBENCHMARK_[A-Z_]*[A-Z]\b")


def table(heading):
    """The rows of the first table below ``heading``, as lists of cells."""
    lines = TEXT.split(f"\n## {heading}\n")[1].split("\n## ")[0].splitlines()
    rows = [line.strip("|").split(" | ") for line in lines if line.startswith("| `")]
    return [[cell.strip() for cell in row] for row in rows]


def test_the_table_has_every_study_with_its_runs():
    shown = {}
    for names, _, runs in table("The studies of the suite"):
        shown |= dict(zip(re.findall(r"`(\w+)`", names), runs.split(", "), strict=True))
    assert set(shown) == set(study_names())
    counted = ("smoke", "embedded", "noise", "roadmap", "smooth_ap", "fast_ap", "listwise")
    planned = {name: load_study(name) for name in counted}
    assert {name: len(expand(study)) for name, study in planned.items()} == {
        name: int(shown[name]) for name in planned
    }


def test_the_example_of_a_study_has_every_key():
    example = yaml.safe_load(next(block.text for block in blocks(PAGE) if block.language == "yaml"))
    kinds = [(StudyFile, example), (BlockFile, example["blocks"][0])]
    kinds += [(Comparison, example["comparison"]), (References, example["references"])]
    for kind, part in kinds:
        assert set(part) == set(schema_of(kind)["properties"]), kind.__name__


def test_the_table_of_a_recipe_has_every_key():
    shown = {}
    for keys, content in table("Recipe file"):
        shown |= dict.fromkeys(re.findall(r"`(\w+)`", keys), content)
    schema = schema_of(RecipeFile)
    assert set(shown) == set(schema["properties"])
    sections = {
        name: schema["$defs"][each["$ref"].rpartition("/")[2]]["properties"]
        for name, each in schema["properties"].items()
        if "$ref" in each
    }
    assert len(sections) >= 8
    for name, keys in sections.items():
        assert set(keys) <= set(re.findall(r"`(\w+)`", shown[name])), name


def test_the_page_names_every_variable_that_the_code_reads():
    places = ["benchmark", "snakemake_logger_plugin_runs", "workflow", "Makefile"]
    places += ["envs", "tests/helpers", "tests/browser"]
    listed = subprocess.check_output(["git", "ls-files", "-z", *places], cwd=ROOT, text=True)
    files = [ROOT / name for name in listed.split("\0") if name]
    read = {
        name
        for path in files
        if path.is_file()
        for name in VARIABLE.findall(path.read_text(encoding="utf-8", errors="ignore"))
    }
    assert set(VARIABLE.findall(TEXT)) == read
