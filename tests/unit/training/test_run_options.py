"""Runs with a memory or with micro-batches."""

from __future__ import annotations

import pytest
import torch
from tiny_runs import tiny_spec, write_spec_in

from benchmark.core.errors import ConfigError
from benchmark.core.recipe import check_recipe
from benchmark.core.records import PROVENANCE, RESULT
from benchmark.core.results import Provenance
from benchmark.training import components
from benchmark.training.run import train

FROZEN = {"freeze_batch_norm": True}


def test_memory_changes_the_loss_from_its_first_epoch_on(tmp_path):
    memories = {"none": {}, "late": {"size": -1, "start_epoch": 1.0}, "all": {"size": -1}}
    losses = {}
    for name, memory in memories.items():
        result = train(write_spec_in(tmp_path / name, tiny_spec("roadmap", memory=memory)))
        losses[name] = [point.loss for point in result.curve]
    assert losses["late"][0] == losses["none"][0]
    assert losses["late"][1] != losses["none"][1]
    assert len({tuple(values) for values in losses.values()}) == len(memories)


def test_micro_batches_train_like_the_whole_batch(tmp_path):
    losses = []
    for micro_batch in (None, 12):
        sections = {
            "training": {"epochs": 1, "checkpoint_seconds": 1e9, "micro_batch": micro_batch},
            "model": FROZEN,
        }
        result = train(write_spec_in(tmp_path / str(micro_batch), tiny_spec("roadmap", **sections)))
        losses.append(result.curve[0].loss)
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)


def test_micro_batches_of_trained_batch_norms_are_refused_before_training(tmp_path):
    spec = tiny_spec("smooth_ap", training={"micro_batch": 8})
    with pytest.raises(ConfigError, match="freeze_batch_norm"):
        train(write_spec_in(tmp_path, spec))
    assert not (tmp_path / RESULT).exists()


def test_stages_train_batch_norms_and_need_micro_batches(tmp_path):
    one = {"epochs": 1, "staged": True}
    spec = tiny_spec("fast_ap", training={**one, "micro_batch": 12})
    assert train(write_spec_in(tmp_path, spec)).status == "ok"
    (problem,) = check_recipe(tiny_spec("fast_ap", training=one).recipe)
    assert problem.key == "training.staged"


@pytest.mark.parametrize(("loss", "columns"), [("sup_ndcg", (2,)), ("sup_recall", ())])
def test_losses_with_levels_get_the_category_of_each_class(loss, columns):
    built = components.build_components(tiny_spec(loss), torch.device("cpu"))
    assert built.labels.shape == (len(built.dataset.train), *columns)
    if columns:
        classes, categories = built.labels.T
        assert torch.equal(categories, torch.from_numpy(built.dataset.train.categories))
        assert len(categories.unique()) < len(classes.unique())


@pytest.mark.parametrize(("micro_batch", "passes"), [(None, 1), (12, 2), (32, 1)])
def test_updates_and_passes_of_the_training_are_counted(tmp_path, micro_batch, passes):
    """Parts of a batch go forward twice (SoftBinAP 3.3); evaluation is not counted."""
    sections = {
        "training": {"epochs": 1, "checkpoint_seconds": 1e9, "micro_batch": micro_batch},
        "model": FROZEN,
    }
    result = train(write_spec_in(tmp_path, tiny_spec("roadmap", **sections)))
    timing = Provenance.read(tmp_path / PROVENANCE).timing
    assert timing.updates == result.steps > 1
    assert timing.images_backward == 32 * result.steps
    assert timing.images_forward == passes * timing.images_backward
