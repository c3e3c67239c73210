"""Training on mined triplets: what is mined and counted; parts of a batch are exact."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from tiny_runs import tiny_spec, write_spec_in

from benchmark.core.errors import RunError
from benchmark.core.records import PROVENANCE
from benchmark.losses import create_loss
from benchmark.training.components import build_components
from benchmark.training.loop import Trainer, batches_of
from benchmark.training.numerics import prepare_numerics
from benchmark.training.progress import Progress
from benchmark.training.run import train

MINED = {"name": "mined_triplets", "params": {"pool": 100, "triplets": 96, "margin": 0.5}}


def spec(**sections):
    return tiny_spec("triplet_mined", sampler=MINED, **sections)


def components(**sections):
    chosen = spec(**sections)
    return build_components(chosen, prepare_numerics(chosen.recipe.training))


def test_mined_triplets_are_hard_for_the_network_of_now():
    parts = components()
    batches, embedded = batches_of(parts, 0)
    assert embedded == 100
    assert [len(batch) for batch in batches] == [96] * 3
    assert parts.model.training
    train_set = parts.dataset.train
    images = torch.cat([*parts.train_input.eval_batches(len(train_set))])
    parts.model.eval()
    with torch.inference_mode():
        rows = parts.model(images)[np.concatenate(batches)].view(-1, 3, 32)
    anchor, positive, negative = rows.unbind(1)
    near = (anchor - positive).square().sum(1)
    far = (anchor - negative).square().sum(1)
    assert (0.5 + near - far > 0).all()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mined")
    train(write_spec_in(folder, spec()))
    return folder


def test_passes_and_updates_are_counted_with_the_pool(whole):
    timing = json.loads((whole / PROVENANCE).read_text())["timing"]
    assert timing["updates"] == 2 * 3
    assert timing["images_backward"] == 2 * 3 * 96
    assert timing["images_forward"] == 2 * (3 * 96 + 100)


def test_parts_of_a_batch_go_through_once_and_give_the_gradient_of_the_whole(tmp_path):
    gradients = []
    for micro_batch in (None, 32):  # 32 images: ten triplets at a time
        training = {"micro_batch": micro_batch}
        parts = components(training=training, model={"freeze_batch_norm": True})
        stepper = Trainer(parts, tmp_path, Progress("x", 1)).stepper
        batches, _ = batches_of(parts, 0)
        images = next(iter(parts.train_input.train_batches(batches, 0, 0)))
        assert stepper.passes(len(images)) == 1
        stepper(images, parts.labels[torch.from_numpy(batches[0])], 0)
        gradients.append((stepper.drain(), [p.grad.clone() for p in parts.model.parameters()]))
    (whole_loss, whole), (part_loss, part) = gradients
    assert part_loss == pytest.approx(whole_loss, rel=1e-5)
    for one, other in zip(whole, part, strict=True):
        assert torch.allclose(one, other, rtol=1e-3, atol=1e-5)


def test_the_loss_is_that_of_the_paper_and_refuses_other_batches():
    rows = torch.nn.functional.normalize(torch.randn(6, 4, dtype=torch.float64), dim=1)
    labels = torch.tensor([0, 0, 1, 2, 2, 0])
    loss = create_loss("triplet_mined", margin=0.3)
    anchor, positive, negative = rows.view(2, 3, 4).unbind(1)
    near = (anchor - positive).square().sum(1)
    far = (anchor - negative).square().sum(1)
    expected = (0.3 + near - far).clamp(min=0).mean() / 2
    assert loss(rows, labels).item() == pytest.approx(expected.item(), rel=1e-12)
    with pytest.raises(RunError, match="sampler 'mined_triplets'"):
        loss(rows, torch.tensor([0, 0, 0, 1, 1, 2]))
