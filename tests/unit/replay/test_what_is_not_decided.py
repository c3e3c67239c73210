"""What a trace does not tell is said, and nobody is accused."""

from __future__ import annotations

import pytest
import torch
from faults import WARM
from planted import train
from test_replayed_faults import causes, judged, recipe_of
from tiny_runs import tiny_spec, write_spec_in

from benchmark.core.records import LossChoice
from benchmark.replay.comparison import against_recipe, expected
from benchmark.replay.trace import read_trace

UPDATES = ["update of the backbone", "update of the head"]


def undecided(found: list) -> dict[str, str]:
    return {x.part: x.says for x in found if x.outcome == "not decided"}


@pytest.mark.parametrize(
    ("sections", "fault", "says"),
    [
        ({}, {"kind": torch.optim.RMSprop}, "unknown here; read: optimizer rmsprop, lr 0.001"),
        ({"optimizer": {"weight_decay": 1e-9}}, {"decay": 0.0}, "decay 1e-09 below rounding"),
        (WARM, {"warm": 4}, "rises as in the recipe, for another number of batches"),
    ],
    ids=["unknown optimiser", "decay below rounding", "another epoch"],
)
def test_what_updates_do_not_tell_is_not_decided(tmp_path, sections, fault, says):
    found = judged(tmp_path, "smooth_ap", sections, **fault)
    assert causes(found) == []
    assert list(undecided(found)) == UPDATES
    assert says in undecided(found)[UPDATES[0]]


def test_settings_of_a_known_optimiser_that_no_cause_has_differ(tmp_path):
    found = judged(tmp_path, "smooth_ap", settings={"betas": (0.5, 0.9)})
    differing = [x.part for x in found if x.outcome == "differs"]
    assert (differing, set(causes(found))) == (UPDATES, {""})


def test_accumulated_batches_are_said_and_not_accused(tmp_path):
    found = judged(tmp_path, "smooth_ap", passes=2)
    (says,) = (x.says for x in found if x.part == "backward")
    assert says.startswith("backward passes an update: 2; steps without one")
    assert says.endswith(": 3")
    assert causes(found) == []


def test_gradients_of_several_processes_and_losses_that_draw_are_not_decided(tmp_path):
    path = train(tmp_path / "trace.pt")
    content = torch.load(path, weights_only=True)
    content["processes"] = 2
    torch.save(content, path)
    choice = LossChoice("blackbox_ap", "blackbox_ap", {})
    found = list(against_recipe(read_trace(path), recipe_of("smooth_ap", {}), choice, 24))
    assert list(undecided(found)) == ["loss", "gradient", "backward"]
    assert undecided(found)["backward"].startswith("2 processes")


def test_a_loss_has_its_settings_in_spec_or_recipe_below_those_that_are_typed(tmp_path):
    spec = write_spec_in(tmp_path, tiny_spec("smooth_ap"))
    _, loss, size = expected(str(spec), "smooth_ap", {"tau": 0.05})
    assert (loss.params["tau"], size) == (0.05, 32)
    _, loss, _ = expected(str(spec), "roadmap", {})
    assert loss.params["tau"] != 0.05
    recipe, loss, size = expected("roadmap_sop_resnet50", "roadmap", {})
    assert loss.params.items() >= recipe.losses["roadmap"].items()
    assert size is None
