"""Hostile studies and recipes."""

from __future__ import annotations

from typing import Any

import yaml
from paper_folders import FILES

from hostile.cases import Case, cases
from hostile.study_targets import base_seeds, recipe_seeds, small_study


def study(**changes: Any) -> bytes:
    """Return a small study with some keys replaced."""
    return yaml.safe_dump(small_study(**changes)).encode()


def block(**changes: Any) -> bytes:
    """Return a small study with some keys of its block replaced."""
    data: Any = small_study()
    data["blocks"][0].update(changes)
    return yaml.safe_dump(data).encode()


def recipe(section: str, **changes: Any) -> bytes:
    """Return a recipe with some keys of a section replaced."""
    data = yaml.safe_load(recipe_seeds()["glyphs_smoke"])
    data.setdefault(section, {}).update(changes)
    return yaml.safe_dump(data).encode()


def base(sources: Any) -> bytes:
    """Return a recipe with other sources."""
    data = yaml.safe_load(base_seeds()["base"])
    return yaml.safe_dump({**data, "sources": sources}).encode()


BILLIONS = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"{name}: &{name} [{', '.join(['*' + before] * 10)}]\n"
    for before, name in zip("abcdefghijk", "bcdefghijkl", strict=True)
)
GOOD = study().decode()

CASES: list[Case] = [
    *cases(
        "study",
        {
            "nothing": "",
            "a list": "[]",
            "text": "hello",
            "no utf-8": b"\xff\xfe\x00",
            "a NUL": "study: a\0",
            "a tab": "study:\tx\n\ty: 1",
            "two documents": f"{GOOD}---\n{GOOD}",
            "an object": f"{GOOD}question: !!python/object/apply:os.system ['touch owned']\n",
            "bytes": f"{GOOD}question: !!binary aGVsbG8=\n",
            "a set": f"{GOOD}question: !!set {{a}}\n",
            "an unknown tag": f"{GOOD}question: !x y\n",
            "10^12 values in 12 lines": BILLIONS,
            "a value that contains itself": f"{GOOD}question: &x [*x]\n",
            "deep nesting": "study: " + "[" * 5000,
            "5,000 digits": f"{GOOD}question: {'9' * 5000}\n",
            "a date that is none": f"{GOOD}question: 2024-13-45\n" + "x: 1\n",
            "a date for a title": GOOD.replace("Four runs", "2024-01-01") + "x: 1\n",
            "a number for a key": f"{GOOD}1: 2\n",
            "null for a key": f"{GOOD}null: 2\n",
            "a list for a key": f"{GOOD}? [a]\n: 2\n",
            "a key twice": f"{GOOD}title: again\n",
            "a merge of a number": f"{GOOD}<<: 3\n",
            "another name": study(study="y"),
            "a name that leaves": study(study="../x"),
            "a name of two lines": study(study="x\n"),
            "the name of the runs": study(study="runs"),
            "no blocks": study(blocks=[]),
            "blocks of numbers": study(blocks=[1]),
            "seeds of text": study(seeds=["0"]),
            "seeds of true": study(seeds=[True]),
            "negative seeds": study(seeds=[-1]),
            "seeds twice": study(seeds=[0, 0]),
            "a label that leaves": study(losses={"../x": {"loss": "smooth_ap"}}),
            "a label of two lines": study(losses={"warm\n": {"loss": "smooth_ap"}}),
            "a label of 300 letters": study(losses={"warm": {"loss": "smooth_ap"}, "w" * 300: {}}),
            "an unknown loss": study(losses={"warm": {"loss": "os.system"}}),
            "tau of NaN": study(losses={"warm": {"loss": "smooth_ap", "tau": float("nan")}}),
            "tau of 10^400": study(losses={"warm": {"loss": "smooth_ap", "tau": 10**399}}),
            "alpha of 2": study(comparison={"baseline": "warm", "alpha": 2}),
            "an unknown baseline": study(comparison={"baseline": ["warm"]}),
            "no resources": study(resources={"gpus": -1}),
            "memory of 10^30": study(resources={"mem_mb": "a lot"}),
            "an unknown table": study(tables=["../../etc/passwd"]),
            "an unknown published table": study(references={"published": ["../x"]}),
            "a field that is not there": study(references={"field": "../x"}),
            "a metric that is none": study(metrics=["recall_at_-1"]),
            "a recall at 10^30": study(metrics=[f"recall_at_{10**30}"]),
        },
        "x.yaml",
    ),
    *cases(
        "study",
        {
            "no name of a block": block(name=""),
            "a block name of two lines": block(name="main\n"),
            "a recipe that leaves": block(recipe="../../../../etc/passwd"),
            "an absolute recipe": block(recipe="/etc/passwd"),
            "a recipe with a NUL": block(recipe="a\0b"),
            "a recipe of 300 letters": block(recipe="r" * 300),
            "a recipe of numbers": block(recipe=3),
            "an option that leaves": block(option="../x"),
            "an option of two lines": block(option="fast\n"),
            "an unknown dataset": block(datasets=["../x"]),
            "a dataset label that leaves": block(datasets=[{"name": "glyphs_tiny", "label": ".."}]),
            "a dataset label of two lines": block(
                datasets=[{"name": "glyphs_tiny", "label": "a\n"}]
            ),
            "a dataset label of 300 letters": block(
                datasets=[{"name": "glyphs_tiny", "label": "a" * 300}]
            ),
            "parameters of a list": block(datasets=[{"name": "glyphs_tiny", "params": [1]}]),
            "a batch of 1": block(batch_sizes=[1]),
            "a batch of 10^20": block(batch_sizes=[10**20]),
            "a batch of text": block(batch_sizes=["32"]),
            "an override of a number": block(override={"training": 3}),
            "an override of what there is not": block(override={"os": {"system": 1}}),
            "epochs of 10^30": block(override={"training": {"epochs": 10**30}}),
            "epochs of NaN": block(override={"training": {"epochs": float("nan")}}),
        },
        "x.yaml",
    ),
    *cases(
        "recipe",
        {
            "nothing": "",
            "a list": "[1]",
            "an embedding of no dimensions": recipe("model", embedding_dim=0),
            "an embedding of -5 dimensions": recipe("model", embedding_dim=-5),
            "10^20 threads": recipe("training", threads=10**20),
            "10^20 workers": recipe("input", workers=10**20),
            "noise of 1e308": recipe("input", noise=1e308),
            "a rate of 10^399": recipe("optimizer", lr=10**399),
            "a rate of NaN": recipe("optimizer", lr=float("nan")),
            "a rate of infinity": recipe("optimizer", lr=float("inf")),
            "a negative rate": recipe("optimizer", lr=-1),
            "no deviation": recipe("input", std=[0.0]),
            "an image of 10^6 pixels": recipe("input", image_size=10**6),
            "an unknown backbone": recipe("model", backbone="../x"),
            "a recipe that extends itself": "extends: mine\n",
            "a recipe that extends another folder": "extends: ../../x\n",
            "recall at 0": recipe("evaluation", recall_at=[0]),
            "a label that leaves": b"label: ../x\n" + recipe_seeds()["glyphs_smoke"],
        },
        "x.yaml",
    ),
    *cases(
        "recipe below another",
        {
            f"sources of {name}": base(value)
            for name, value in {"a list": ["a"], "null": None, "text": "a"}.items()
        },
        "base.yaml|source",
    ),
    *cases(
        "paper results.csv",
        {
            **{
                f"the number {number}": FILES["results.csv"].replace("61.2", number)
                for number in (
                    "0e999",
                    "0e-999999",
                    "0E99999999999999999999",
                    "1e-999999",
                    "\u0666",
                )
            },
            "no text": bytes(range(256)),
            "an open quote": FILES["results.csv"].replace("Toy", '"Toy', 1),
        },
        "results.csv",
    ),
]
