"""A checkpoint of this very run with edited values is refused before a step is taken."""

from __future__ import annotations

import functools
import operator

import pytest
import torch
from tiny_runs import stop_after, tiny_spec, write_spec_in

from benchmark.core.errors import RunError
from benchmark.training.checkpoint import CHECKPOINT
from benchmark.training.interrupt import Interrupted
from benchmark.training.run import train

MEAN = ("optimizer", "state", 0, "exp_avg")


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """Return a specification, and the checkpoint of its run in the second of two epochs."""
    folder = tmp_path_factory.mktemp("stopped")
    path = write_spec_in(folder, tiny_spec(training={"epochs": 2, "checkpoint_seconds": 0.0}))
    with pytest.MonkeyPatch.context() as patch:
        stop_after(13, patch)
        with pytest.raises(Interrupted):
            train(path)
    return path, (folder / CHECKPOINT).read_bytes()


def shape_of(state):
    return functools.reduce(operator.getitem, MEAN, state).shape


EDITS = {
    "a later epoch": lambda s: s.update(epoch=7),
    "the last epoch": lambda s: s.update(epoch=2),
    "the first epoch": lambda s: s.update(epoch=0),
    "a position without end": lambda s: s.update(position=2**63 - 1),
    "another position": lambda s: s.update(position=s["position"] + 1),
    "a position in words": lambda s: s.update(position="\x1b[31m\n1"),
    "another step": lambda s: s.update(step=0),
    "no record": lambda s: s.update(records=[]),
    "a record twice": lambda s: s.update(records=s["records"] * 2),
    "a record of another epoch": lambda s: s["records"][0].update(epoch=2),
    "a record without a loss": lambda s: s["records"][0].update(loss=None),
    "a record without scores": lambda s: s["records"][0].update(evaluation=None),
    "a loss too few": lambda s: s.update(losses=s["losses"][1:]),
    "losses without a sum": lambda s: s.update(losses=[1e308] * len(s["losses"])),
    "counts without end": lambda s: s.update(resumed=2**63 - 1),
    "mined batches": lambda s: s.update(mined=[[0, 1]]),
    "no optimiser": lambda s: s.update(optimizer=[]),
    "a setting in words": lambda s: s["optimizer"]["param_groups"][0].update(betas="x"),
    "half a state": lambda s: s["optimizer"]["state"].update({0: {"step": torch.tensor(1.0)}}),
    "a mean of another shape": lambda s: s["optimizer"]["state"][0].update(exp_avg=torch.zeros(3)),
    "a mean of one number": lambda s: s["optimizer"]["state"][0].update(exp_avg=torch.tensor(0.0)),
    "no mean": lambda s: s["optimizer"]["state"][0].update(exp_avg=None),
    "a mean in one place": lambda s: s["optimizer"]["state"][0].update(
        exp_avg=torch.zeros(1).expand(shape_of(s))
    ),
    "a sparse mean": lambda s: s["optimizer"]["state"][0].update(
        exp_avg=torch.zeros(shape_of(s)).to_sparse()
    ),
    "a mean with a gradient": lambda s: s["optimizer"]["state"][0]["exp_avg"].requires_grad_(),
    "a mean that is negated when it is read": lambda s: s["optimizer"]["state"][0].update(
        exp_avg=torch._neg_view(s["optimizer"]["state"][0]["exp_avg"])
    ),
    "steps with a gradient": lambda s: s["optimizer"]["state"][0]["step"].requires_grad_(),
    "steps of a shape": lambda s: s["optimizer"]["state"][0].update(step=torch.zeros(shape_of(s))),
    "weights of whole numbers": lambda s: s["model"].update(
        {name: each.to(torch.int8) for name, each in s["model"].items()}
    ),
    "complex weights": lambda s: s["model"].update(
        {name: each.to(torch.complex64) for name, each in s["model"].items()}
    ),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=list(EDITS))
def test_an_edited_checkpoint_of_this_run_is_one_error(edit, stopped):
    path, saved = stopped
    place = path.parent / CHECKPOINT
    place.write_bytes(saved)
    content = torch.load(place, weights_only=True)
    edit(content["state"])
    torch.save(content, place)
    with pytest.raises(RunError, match=r"does not fit it (?s:.*)delete it and start") as told:
        train(path)
    assert "\x1b" not in str(told.value)


def test_a_checkpoint_that_nobody_edited_is_continued(stopped, capsys):
    path, saved = stopped
    (path.parent / CHECKPOINT).write_bytes(saved)
    train(path)
    assert "continuing at epoch 2" in capsys.readouterr().out
