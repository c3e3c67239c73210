"""Several processes take the steps of one: equal parameters, samples and embeddings."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from process_groups import COUNTS, together
from torch import nn

from benchmark.core.errors import ConfigError, RunError
from benchmark.core.recipe import (
    UNTRAINED,
    EvaluationConfig,
    MemoryConfig,
    ModelConfig,
    TrainingConfig,
)
from benchmark.core.recipe_input import InputConfig
from benchmark.datasets import load_dataset
from benchmark.input.create import create_input
from benchmark.losses import LOSSES, create_loss
from benchmark.metrics import ranks
from benchmark.models import create_model
from benchmark.training.evaluate import Evaluator
from benchmark.training.memory import Memory
from benchmark.training.micro_batches import check_micro_batch
from benchmark.training.processes import Processes, share
from benchmark.training.step import Stepper

CPU = torch.device("cpu")
SIZE, WIDTH, STEPS = 18, 6, 3
LABELS = torch.arange(SIZE) % 5  # of 4, 4, 4, 3 and 3 images
TRIPLETS = torch.tensor([0, 0, 1]).repeat(SIZE // 3)  # anchor, positive, negative
OPTIONS = {
    "pml": {"class": "ContrastiveLoss"},
    "calibration": {"reduction": "nonzero"},
    "softbin_ap": {"query_weights": "class"},
}
# name of the loss, whether there is a memory, images of a micro-batch
CASES = [
    *((name, False, None) for name in LOSSES.names() if name != UNTRAINED),
    *itertools.product(("roadmap", "blackbox_ap", "contrastive"), (True,), (None,)),
    *itertools.product(("smooth_ap", "proxy_nca"), (False,), (2,)),
    ("sup_ap", True, 4),
    ("triplet_mined", False, 3),
]


class Network(nn.Module):
    """A small network without batch norms."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(12, 10), nn.Tanh(), nn.Linear(10, WIDTH))

    def forward(self, images):
        return nn.functional.normalize(self.layers(images.flatten(1)))


def trained(case: tuple, processes: Processes) -> dict[str, torch.Tensor]:
    """Return losses, memory and all parameters after some steps, in float64."""
    name, remembers, micro_batch = case
    torch.manual_seed(7)
    model = Network().double()
    loss = create_loss(
        name, embedding_dim=WIDTH, num_classes=5, seed=5, **OPTIONS.get(name, {})
    ).double()
    parameters = [*model.parameters(), *loss.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.3, momentum=0.9, weight_decay=1e-3)
    memory = None
    if remembers:
        memory = Memory(MemoryConfig(size=20), LABELS.repeat(2), WIDTH, CPU, torch.float64)
    scaler, config = torch.amp.GradScaler(enabled=False), TrainingConfig(micro_batch=micro_batch)
    step = Stepper(model, loss, optimizer, scaler, config, CPU, 0, memory, processes)
    generator = torch.Generator().manual_seed(1)
    for number in range(STEPS):
        images = torch.randn(SIZE, 3, 2, 2, generator=generator, dtype=torch.float64)
        numbers = np.arange(SIZE) + SIZE * (number % 2) if remembers else None
        labels = TRIPLETS if name == "triplet_mined" else LABELS
        step(images[processes.rows(SIZE)], labels, number, numbers)
    result = {"losses": torch.tensor(step.drain(), dtype=torch.float64)}
    result |= {f"model.{name}": value.detach() for name, value in model.named_parameters()}
    result |= {f"loss.{name}": value.detach() for name, value in loss.named_parameters()}
    return result | ({} if memory is None else {"memory": memory.state_dict()["embeddings"]})


def evaluated(processes: Processes) -> dict[str, Any]:
    """Return embeddings, metrics and scores of the test images, and how many blocks were ranked.

    A block holds 20 queries.
    """
    torch.use_deterministic_algorithms(True)
    model = create_model(ModelConfig(backbone="test_resnet", channels=1, embedding_dim=8), seed=3)
    shown = InputConfig(augmentation="affine_noise", image_size=32, mean=[0.5], std=[0.5])
    evaluator = Evaluator(
        load_dataset("glyphs_tiny", {}),
        partial(create_input, config=shown, channels=1),
        EvaluationConfig(batch_size=100),
        8,
        processes,
    )
    embedded = evaluator.embed(model, CPU)
    rows = embedded["test"].query
    with (
        patch.object(ranks, "BLOCK_BYTES", 20 * 4 * len(rows)),
        patch.object(ranks, "rank_rows", wraps=ranks.rank_rows) as ranked,
    ):
        found = evaluator.measure(embedded, CPU)
    scores = found.queries["test"]
    return {
        "rows": rows.tobytes(),
        "scores": found.scores,
        "queries": [scores.query, scores.label, scores.nearest, *scores.averages.values()],
        "ranked": sum(len(call.args[0]) for call in ranked.call_args_list),
    }


def work(processes: Processes) -> tuple:
    return [trained(case, processes) for case in CASES], evaluated(processes)


@pytest.fixture(scope="module")
def found():
    """Return what processes give, by their number."""
    return {1: [work(Processes())]} | together(work)


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"RANK": "first"}, "RANK='first' (allowed: 0 to 1)"),
        ({"RANK": "2"}, "RANK='2' (allowed: 0 to 1)"),
        ({"RANK": "9" * 5_000}, f"RANK='{'9' * 100}' (allowed: 0 to 1)"),
        ({"WORLD_SIZE": "-1"}, "WORLD_SIZE='-1' (allowed: 2 to 100000)"),
        ({"MASTER_PORT": "x"}, "the processes of the run cannot meet ("),
        ({"MASTER_PORT": None}, "the processes of the run cannot meet ("),
    ],
)
def test_variables_that_describe_no_process_are_named(variables, told, monkeypatch, capsys):
    good = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    for name, value in (good | variables).items():
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    with pytest.raises(RunError) as error:
        Processes.join()
    assert told in str(error.value) and "train --gpus N" in str(error.value)
    # variables left over in a shell: the others never come, and whoever waits knows why
    waits = "waiting for the other processes (0 of 2 is here)" in capsys.readouterr().out
    assert waits == ("cannot meet" in told)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("number", range(len(CASES)), ids=["-".join(map(str, c)) for c in CASES])
def test_parameters_after_some_steps_are_those_of_one_process(found, count, number):
    alone = found[1][0][0][number]
    begin = trained_nothing(CASES[number])
    assert any((alone[name] - value).abs().max() > 1e-4 for name, value in begin.items())
    answers = [answer[0][number] for answer in found[count]]
    for answer in answers:
        assert answer.keys() == alone.keys()
        for name, value in alone.items():
            torch.testing.assert_close(answer[name], value, rtol=1e-12, atol=1e-12, msg=name)
            assert torch.equal(answer[name], answers[0][name]), "processes must not drift apart"


def trained_nothing(case: tuple) -> dict[str, torch.Tensor]:
    """Return the parameters before the first step."""
    torch.manual_seed(7)
    model = Network().double()
    return {f"model.{name}": value.detach() for name, value in model.named_parameters()}


@pytest.mark.parametrize("count", COUNTS)
def test_processes_divide_the_ranking_and_all_get_the_bits_of_one(found, count):
    alone = found[1][0][1]
    several = [answer[1] for answer in found[count]]
    for each in several:
        assert each["rows"] == alone["rows"] and each["scores"] == alone["scores"]
        for one, other in zip(each["queries"], alone["queries"], strict=True):
            assert one.tobytes() == other.tobytes()
    shares = [each["ranked"] for each in several]
    assert sum(shares) == alone["ranked"] and max(shares) - min(shares) < 2 * 20


@pytest.mark.parametrize("total", [0, 1, 7, 8, 9])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_shares_are_consecutive_and_nearly_equal(total, count):
    parts = [share(total, rank, count) for rank in range(count)]
    assert [n for part in parts for n in range(part.start, part.stop)] == list(range(total))
    sizes = [part.stop - part.start for part in parts]
    assert max(sizes) - min(sizes) <= 1 and sizes[0] == max(sizes)


def image_inputs():
    train = load_dataset("glyphs_tiny", {}).train
    pixels = InputConfig(
        augmentation="affine_noise", image_size=32, mean=[0.5], std=[0.5], noise=0.1
    )
    files = InputConfig(augmentation="crop_flip", image_size=24, resize=28, mean=[0.5], std=[0.5])
    return {"pixels": create_input(train, pixels, 1), "files": create_input(train, files, 1)}


@pytest.mark.parametrize("kind", ["pixels", "files"])
@pytest.mark.parametrize("count", [2, 3])
def test_the_shares_of_processes_are_the_batch_to_the_bit(kind, count):
    source, batches = image_inputs()[kind], [np.arange(35), np.arange(40, 58)]
    whole = list(source.train_batches(batches, 3, 1))
    parts = [
        list(source.train_batches(batches, 3, 1, share=Processes(rank, count).rows))
        for rank in range(count)
    ]
    for number, batch in enumerate(whole):
        assert torch.equal(torch.cat([part[number] for part in parts]), batch)


def test_batch_norms_that_look_at_the_batch_and_small_batches_refuse_several_processes():
    norm = nn.BatchNorm2d(3)
    with pytest.raises(ConfigError, match=r"(?s)3 images are too few for 4.*freeze_batch_norm"):
        check_micro_batch(norm, None, 3, processes=4)
    check_micro_batch(norm.eval(), None, 4, processes=4)
