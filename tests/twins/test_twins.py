"""What the authors' programs did in two steps is what our recipes say; docs/background/twins.md.

The scripts beside this file made the traces from the authors' code, which is not here.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest

from benchmark.core.options import build, defaults_of
from benchmark.core.recipe import Recipe
from benchmark.core.records import LossChoice
from benchmark.losses.catalogue import load_catalogue
from benchmark.replay.comparison import against_recipe
from benchmark.replay.trace import read_trace
from benchmark.study.data_files import PACKAGE, REPLAYED, read_rows
from benchmark.study.recipes import overlay, read_recipe

TRACES = Path(__file__).with_name("traces")
# What every program was changed in to run here.
SMALL = {
    "model": {"backbone": "resnet18", "pretrained": False, "embedding_dim": 128},
    "input": {"image_size": 64, "resize": None},
    "training": {"precision": "float32"},
}
XBM = {  # configs/sample_config.yaml of msight-tech/research-xbm
    **SMALL,
    "input": {"image_size": 64, "augmentation": "crop_flip"},
    "optimizer": {"name": "adam", "lr": 1e-4, "weight_decay": 5e-4},
    "sampler": {"name": "m_per_class", "params": {"samples_per_class": 4}},
    "memory": {"size": 4096, "key": "fifo", "write_first": True},
}
LIBRARY = {  # SubCenterArcFaceMNIST.ipynb
    "model": {"backbone": "resnet18", "channels": 1, "embedding_dim": 128},
    "input": {"image_size": 28, "augmentation": "none", "mean": [0.1307], "std": [0.3081]},
    "optimizer": {"name": "adam", "lr": 0.01, "proxy_lr_multiplier": 0.01},
    "sampler": {"name": "random", "params": {}},
}
MEMORY = {"memory": {"size": -1, "key": "image", "write_first": True}}
# trace: recipe of the suite or its own sections, changes, loss, batch size
PROGRAMS = {
    "roadmap": ("roadmap_sop_resnet50", SMALL, "roadmap", 32),
    "roadmap_xbm": ("roadmap_sop_resnet50", {**SMALL, **MEMORY}, "cosine_contrastive", 32),
    "smooth_ap": ("smooth_ap_vehicleid_resnet50", SMALL, "smooth_ap", 32),
    "xbm": (XBM, {}, "cosine_contrastive", 32),
    "library_example": (LIBRARY, {}, "sub_center_arcface", 64),
}
# The parts that are not equal, with their outcome and cause.
OTHER = {}


# Values that a loss or a sampler takes in place of ours.
OTHER_NAMES = {"category_pairs": "random"}


def findings(program: str, item: str = "") -> list:
    """Return what a replay finds, against the recipe or against one in which ``item`` differs."""
    source, changes, loss, size = PROGRAMS[program]
    given = {}
    if isinstance(source, str):
        file = read_recipe(source, Path("study.yaml"))
        given = dict(file.losses.get(loss, {}))
        section, _, key = item.partition(".")
        if section == "losses":
            name = key.rpartition(".")[2]
            plain = {**defaults_of(load_catalogue()[loss].config), **given}
            given[name] = another(plain[name])
        elif item:
            value = asdict(overlay(file, changes))
            for part in item.split("."):
                value = value[part]
            changes = merged(changes, nested(item, another(value)))
        recipe = overlay(file, changes)
    else:
        recipe = build(Recipe, source, program)
    params = {**defaults_of(load_catalogue()[loss].config), **given}
    trace = read_trace(TRACES / f"{program}.pt")
    assert trace.problems == []
    return list(against_recipe(trace, recipe, LossChoice(loss, loss, params), size))


def another(value):
    if isinstance(value, bool):
        return not value
    if isinstance(value, list | tuple):
        return [another(value[0]), *value[1:]]
    return OTHER_NAMES[value] if isinstance(value, str) else 2 * value


def nested(item: str, value) -> dict:
    for key in reversed(item.split(".")):
        value = {key: value}
    return value


def merged(old: dict, new: dict) -> dict:
    both = {**old}
    for key, value in new.items():
        deeper = isinstance(value, dict) and key in old
        both[key] = merged(old[key], value) if deeper else value
    return both


def replayed() -> list[tuple[str, str]]:
    """Return program and item of each value that the ledger calls replayed."""
    _, rows = read_rows(PACKAGE / REPLAYED)
    pairs = []
    for row in rows:
        assert PROGRAMS[row["program"]][0] == row["recipe"]
        pairs += [(row["program"], item) for item in row["items"].split()]
    return pairs


@pytest.mark.parametrize(("program", "item"), replayed())
def test_a_replay_would_show_another_value_than_the_one_that_the_ledger_calls_replayed(
    program, item
):
    found = findings(program, item)
    assert "differs" in {x.outcome for x in found}


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_does_what_the_recipe_says(program):
    found = findings(program)
    other = {x.part: (x.outcome, x.cause) for x in found if x.outcome != "equal"}
    assert other == OTHER.get(program, {})


def test_committed_traces_are_small():
    assert {path.stem for path in TRACES.iterdir()} == set(PROGRAMS)
    assert all(path.stat().st_size <= 300_000 for path in TRACES.iterdir())
