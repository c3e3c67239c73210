"""A run that was stopped, in whatever way, continues to the bits of one that was left alone."""

from __future__ import annotations

import dataclasses
import json
import signal
from pathlib import Path

import pytest
from archives import save
from tiny_runs import curve, held, stopped_after, tiny_spec, write_spec_in
from torch import nn
from workplace import STUCK

from benchmark.core.interrupts import EXIT_INTERRUPTED
from benchmark.core.records import PROVENANCE, RESULT, DatasetChoice, RunSpec
from benchmark.losses import LOSSES
from benchmark.training import components
from benchmark.training.run import train
from benchmark.training.state import CHECKPOINT

PLAIN = ("smooth_ap", "sup_ap", "roadmap", "sup_ndcg", "contrastive", "pml")
# Losses with parameters or random numbers, and some without: a contract says that these keep no
# state.
LOSS_NAMES = [
    each.name
    for each in LOSSES
    if each.facts["kind"] == "proxy" or each.facts["stochastic"] or each.name in PLAIN
]
MINED = {"name": "mined_triplets", "params": {"pool": 100, "triplets": 96, "margin": 0.5}}
FROZEN = {"freeze_backbone": True}
FILES = {"augmentation": "crop_flip", "image_size": 32}
OFTEN = {"checkpoint_seconds": 0.0}
# What a run does besides, with dropout in its network.
OPTIONS = {
    "memory of all images": ("contrastive", {"memory": {"size": -1}}),
    "first in, first out, from the second epoch": (
        "roadmap",
        {"memory": {"size": 100, "key": "fifo", "start_epoch": 1.0}},
    ),
    "micro-batches and small memory": (
        "smooth_ap",
        {
            "training": {"micro_batch": 12},
            "model": {"freeze_batch_norm": True},
            "memory": {"size": 100},
        },
    ),
    "levels of relevance, memory": ("sup_ndcg", {"memory": {"size": -1}}),
    "diverges": ("smooth_ap", {"optimizer": {"lr": 1e30}, "schedule": {"name": "constant"}}),
}
KINDS = {
    **{loss: (loss, {}) for loss in LOSS_NAMES},
    **OPTIONS,
    "mined triplets": ("triplet_mined", {"sampler": MINED}),
    "frozen backbone": (
        "sup_ap",
        {"model": FROZEN, "input": {"augmentation": "none"}, "memory": {"size": 64}},
    ),
    "files": ("smooth_ap", {"input": {**FILES, "workers": 0}}),
    "files, a worker": ("smooth_ap", {"input": {**FILES, "workers": 1}}),
    "many checkpoints": ("blackbox_ap", {"training": OFTEN}),
}
# Plain, with random numbers, with parameters, of the library.
OF_EACH_KIND = ("smooth_ap", "blackbox_ap", "proxy_nca_others", "proxy_anchor")
OTHER_LOSSES = [loss for loss in LOSS_NAMES if loss not in OF_EACH_KIND]
# The numbers of steps after which a run is stopped: in its first epoch, or in its second.
STOPS = [
    ("smooth_ap", 1),
    *((loss, 13) for loss in OF_EACH_KIND),
    *(pytest.param(loss, 1, marks=pytest.mark.long) for loss in OF_EACH_KIND[1:]),
    *(pytest.param(loss, 13, marks=pytest.mark.long) for loss in OTHER_LOSSES),
    *((kind, 13) for kind in OPTIONS if kind != "diverges"),
    ("diverges", 3),
    ("mined triplets", 2),
    *(pytest.param("mined triplets", steps, marks=pytest.mark.long) for steps in (1, 4)),
    ("frozen backbone", 5),
    ("files", 3),
    ("files, a worker", 3),
]


@pytest.fixture(scope="module")
def images(tmp_path_factory) -> Path:
    """Return a folder of eight classes of eight small pictures."""
    root = tmp_path_factory.mktemp("images")
    for number in range(64):
        save(root / f"class{number // 8}" / f"{number}.png", seed=number, size=(44, 40))
    return root


@pytest.fixture(scope="module")
def left_alone(images, tmp_path_factory):
    """Return a function that returns (folder, specification) of a kind of run, trained once."""
    known: dict[str, tuple[Path, RunSpec]] = {}

    def of(kind: str) -> tuple[Path, RunSpec]:
        if kind not in known:
            loss, sections = KINDS[kind]
            spec = tiny_spec(loss, **sections)
            if kind.startswith("files"):
                dataset = DatasetChoice("folder", "folder", {"root": str(images)})
                spec = dataclasses.replace(spec, dataset=dataset, batch_size=16)
            known[kind] = (tmp_path_factory.mktemp("alone"), spec)
            train(write_spec_in(known[kind][0], spec))
        return known[kind]

    return of


@pytest.fixture(autouse=True)
def dropout(request, monkeypatch):
    """Put dropout before the head of the networks of OPTIONS, so that they draw, too."""
    create = components.create_model

    def with_dropout(*arguments):
        model = create(*arguments)
        model.head = nn.Sequential(nn.Dropout(0.5), model.head)
        return model

    if "kind" in request.fixturenames and request.getfixturevalue("kind") in OPTIONS:
        monkeypatch.setattr(components, "create_model", with_dropout)


def timing(folder: Path) -> dict[str, float]:
    return json.loads((folder / PROVENANCE).read_text())["timing"]


def assert_same(folder: Path, alone: Path) -> None:
    assert (folder / RESULT).read_bytes() == (alone / RESULT).read_bytes()
    assert curve(folder) == curve(alone)
    assert not (folder / CHECKPOINT).exists()


@pytest.mark.parametrize(("kind", "steps"), STOPS)
def test_a_run_that_was_asked_to_stop_continues_to_the_same_bits(
    kind, steps, left_alone, tmp_path, monkeypatch
):
    alone, spec = left_alone(kind)
    path = stopped_after(steps, tmp_path, spec, monkeypatch)
    assert (tmp_path / CHECKPOINT).exists()
    assert not (tmp_path / RESULT).exists()
    train(path)
    assert_same(tmp_path, alone)
    found = timing(tmp_path)
    assert found["resumed"] == 1
    assert found["images_forward"] == timing(alone)["images_forward"], "mined ones are kept"


@pytest.mark.parametrize(
    ("sign", "status"),
    [
        (signal.SIGKILL, -signal.SIGKILL),
        pytest.param(signal.SIGTERM, EXIT_INTERRUPTED, marks=pytest.mark.long),
    ],
)
def test_a_process_that_got_a_signal_continues_to_the_same_bits(sign, status, left_alone, tmp_path):
    alone, spec = left_alone("many checkpoints")
    with held(tmp_path, spec) as (process, go_on):
        process.send_signal(sign)
        go_on()
        assert process.wait(STUCK) == status
    assert not (tmp_path / RESULT).exists()
    train(tmp_path / "spec.json")
    assert_same(tmp_path, alone)


@pytest.mark.parametrize("kind", ["diverges"])
def test_the_clock_of_checkpoints_decides_nothing_about_a_diverged_run(kind, left_alone, tmp_path):
    alone, spec = left_alone(kind)
    training = dataclasses.replace(spec.recipe.training, checkpoint_seconds=0.0)
    often = dataclasses.replace(spec, recipe=dataclasses.replace(spec.recipe, training=training))
    found = train(write_spec_in(tmp_path, often))
    assert found.status == "diverged"
    expected = json.loads((alone / RESULT).read_text())
    assert dataclasses.asdict(found)["curve"] == expected["curve"]


@pytest.mark.parametrize("workers", [1, 3])
def test_workers_change_no_bit(workers, left_alone, tmp_path):
    alone, spec = left_alone("files")
    view = dataclasses.replace(spec.recipe.input, workers=workers)
    spec = dataclasses.replace(spec, recipe=dataclasses.replace(spec.recipe, input=view))
    train(write_spec_in(tmp_path, spec))
    results = [json.loads((folder / RESULT).read_text()) for folder in (tmp_path, alone)]
    assert {**results[0], "spec_digest": None} == {**results[1], "spec_digest": None}
    assert curve(tmp_path) == curve(alone)
