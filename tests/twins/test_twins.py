"""What the authors' programs did in two steps is what our recipes say; docs/background/twins.md.

The scripts beside this file made the traces from the authors' code, which is not here.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmark.core.options import build, defaults_of
from benchmark.core.recipe import Recipe
from benchmark.core.records import LossChoice
from benchmark.losses.catalogue import load_catalogue
from benchmark.replay.comparison import against_recipe
from benchmark.replay.trace import read_trace
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


def findings(program: str) -> list:
    source, changes, loss, size = PROGRAMS[program]
    given = {}
    if isinstance(source, str):
        file = read_recipe(source, Path("study.yaml"))
        recipe = overlay(file, changes)
        given = file.losses.get(loss, {})
    else:
        recipe = build(Recipe, source, program)
    params = {**defaults_of(load_catalogue()[loss].config), **given}
    trace = read_trace(TRACES / f"{program}.pt")
    assert trace.problems == []
    return list(against_recipe(trace, recipe, LossChoice(loss, loss, params), size))


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_does_what_the_recipe_says(program):
    found = findings(program)
    other = {x.part: (x.outcome, x.cause) for x in found if x.outcome != "equal"}
    assert other == OTHER.get(program, {})


def test_committed_traces_are_small():
    assert {path.stem for path in TRACES.iterdir()} == set(PROGRAMS)
    assert all(path.stat().st_size <= 300_000 for path in TRACES.iterdir())
