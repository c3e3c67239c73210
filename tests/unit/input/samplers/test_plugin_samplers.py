"""What the sampler of a plugin gives is checked, and the message names it and its file."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from benchmark.core.errors import BenchmarkError, DataError
from benchmark.core.registry import Entry
from benchmark.input.samplers import SAMPLERS, Sampler, check, create_sampler
from benchmark.training.mining import mine

LABELS = np.repeat(np.arange(4), 3)
BATCH = np.arange(6)
NUMBERS = count()


class Mine(Sampler):
    given: Any = None

    @dataclass(frozen=True)
    class Config:
        pass

    def batches(self, generator: np.random.Generator) -> Any:
        return Mine.given()


WRONG = {
    "it gives None; give a list": lambda: None,
    "it gives 5; give a list": lambda: 5,
    "batch 1 is float64 .6,. of type ndarray": lambda: [BATCH, BATCH.astype(float)],
    "batch 0 is bool": lambda: [BATCH > 2],
    "batch 0 is int64 .2, 3.": lambda: [BATCH.reshape(2, 3)],
    "batch 0 is .0, 1, 2. of type list": lambda: [[0, 1, 2]],
    "of type MaskedArray": lambda: [np.ma.array(BATCH)],
    "numbers from 0 to 12; give numbers of the 12 images, 0 to 11": lambda: [np.array([0, 12])],
    "numbers from -1 to 3": lambda: [np.array([-1, 3])],
    "batch 1 holds no image": lambda: [BATCH, BATCH[:0]],
    "would have no batch": list,
    "a batch holds 7 images; give 2 to 6": lambda: [np.arange(7)],
    "a batch holds 1 images": lambda: [BATCH[:1]],
    "an epoch has 1,206 images, more than 100 times those": lambda: [BATCH] * 201,
    "has other batches when it is asked again": lambda: [BATCH + next(NUMBERS) % 7],
}


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    SAMPLERS.names()
    monkeypatch.setitem(SAMPLERS._entries, "mine", Entry("mine", Mine, "Mine"))


def created() -> Sampler:
    return create_sampler("mine", {}, labels=LABELS, categories=None, batch_size=6, seed=0)


@pytest.mark.parametrize(("told", "given"), WRONG.items(), ids=range(len(WRONG)))
def test_batches_that_are_none_are_refused_with_name_and_file(monkeypatch, told, given):
    monkeypatch.setattr(Mine, "given", given)
    told = told.replace("asked again", "asked for again")
    with pytest.raises(DataError, match=rf"sampler 'mine' \({__file__}\): .*{told}"):
        created()


def test_batches_may_be_parts_or_read_only(monkeypatch):
    BATCH.flags.writeable = False
    monkeypatch.setattr(Mine, "given", lambda: [BATCH[::-1], BATCH])
    first, _ = created().epoch(3)
    assert first.tolist() == [5, 4, 3, 2, 1, 0] and first.flags.writeable


@pytest.mark.parametrize("given", [None, "words", [3]])
def test_a_check_that_gives_no_list_of_texts_is_named(monkeypatch, given):
    monkeypatch.setattr(Mine, "check", classmethod(lambda *_: given))
    with pytest.raises(BenchmarkError, match=rf"sampler 'mine' \({__file__}\): check.. returned"):
        check("mine", {}, 6)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"given": list}, "epoch 2 has no batch; every epoch"),
        ({"pooled": True, "pool": lambda *_: np.array([99])}, "numbers from 99 to 99"),
        ({"pooled": True, "pool": lambda *_: None}, "batch 0 is None"),
    ],
)
def test_a_later_epoch_and_a_pool_are_checked_as_well(monkeypatch, changes, told):
    monkeypatch.setattr(Mine, "given", lambda: [BATCH])
    components = SimpleNamespace(sampler=created(), recipe=None, model=None)
    for name, value in changes.items():
        monkeypatch.setattr(Mine, name, value, raising=False)
    with pytest.raises(DataError, match=rf"sampler 'mine' \({__file__}\): .*{told}"):
        mine(components, 2)


def test_the_constructor_of_another_signature_is_named(monkeypatch):
    monkeypatch.setattr(Mine, "__init__", lambda self, config: None)
    with pytest.raises(BenchmarkError, match=rf"sampler 'mine' \({__file__}\): TypeError"):
        created()


@pytest.mark.parametrize(
    "change",
    [
        lambda: torch.set_default_dtype(torch.float64),
        lambda: torch.set_num_threads(torch.get_num_threads() + 2),
        lambda: torch.set_grad_enabled(False),
    ],
)
def test_a_sampler_that_changes_torch_for_the_whole_program_is_named(monkeypatch, change):
    monkeypatch.setattr(Mine, "given", lambda: [BATCH])
    components = SimpleNamespace(sampler=created(), recipe=None, model=None)
    before = torch.get_default_dtype(), torch.get_num_threads(), torch.is_grad_enabled()
    monkeypatch.setattr(Mine, "given", lambda: change() or [BATCH])
    with pytest.raises(BenchmarkError, match=rf"'mine' \({__file__}\).*sets the whole program's"):
        mine(components, 0)
    assert (torch.get_default_dtype(), torch.get_num_threads(), torch.is_grad_enabled()) == before


def test_an_epoch_of_its_own_making_is_checked(monkeypatch):
    monkeypatch.setattr(Mine, "given", lambda: [BATCH])
    components = SimpleNamespace(sampler=created(), recipe=None, model=None)
    monkeypatch.setattr(Mine, "epoch", lambda *_: [[1, 2]])
    with pytest.raises(DataError, match=rf"'mine' \({__file__}\): batch 0 is .1, 2. of type list"):
        mine(components, 0)
