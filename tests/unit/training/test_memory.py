"""The cross-batch memory holds what a plain list or dictionary of past embeddings would hold."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmark.core.recipe import MemoryConfig
from benchmark.training.step import Memory

IMAGES = 9
LABELS = torch.arange(IMAGES) // 3
CPU = torch.device("cpu")
BATCHES = st.lists(
    st.lists(st.integers(0, IMAGES - 1), min_size=1, max_size=7), min_size=1, max_size=12
)


def memory_of(key, size):
    return Memory(MemoryConfig(size=size, key=key), LABELS, 2, CPU)


def embeddings_of(images, time):
    """Each embedding tells its image, and when and where in the batch it was made."""
    places = torch.arange(len(images)) + 10.0 * time
    return torch.stack([torch.tensor(images, dtype=torch.float32), places], dim=1)


def contents(memory, batch):
    """Return what the memory offers to ``batch``: (image, time) of each embedding, sorted, and
    checks labels."""
    embeddings, labels = memory.references(np.array(batch))
    assert labels.tolist() == LABELS[embeddings[:, 0].long()].tolist()
    return sorted(map(tuple, embeddings.tolist()))


def keyed_by_image(known, entries, size):
    for image, time in entries:
        known.pop(image, None)
        known[image] = time
    for image in list(known)[: max(0, len(known) - size)]:
        del known[image]


@settings(max_examples=60, deadline=None)
@given(batches=BATCHES, size=st.integers(1, IMAGES + 2))
def test_keyed_by_image_equals_a_dictionary_in_order_of_writing(batches, size):
    memory = memory_of("image", size)
    known = {}
    for time, batch in enumerate(batches):
        offered = sorted((image, when) for image, when in known.items() if image not in batch)
        assert contents(memory, batch) == offered
        memory.store(embeddings_of(batch, time), np.array(batch))
        keyed_by_image(known, embeddings_of(batch, time).tolist(), min(size, IMAGES))
        assert contents(memory, []) == sorted(known.items())
        assert len(memory) == len(known)


@settings(max_examples=60, deadline=None)
@given(batches=BATCHES, size=st.integers(1, 20))
def test_first_in_first_out_equals_the_end_of_a_list(batches, size):
    memory = memory_of("fifo", size)
    known = []
    for time, batch in enumerate(batches):
        assert contents(memory, batch) == sorted(entry for entry in known if entry[0] not in batch)
        memory.store(embeddings_of(batch, time), np.array(batch))
        known = [*known, *map(tuple, embeddings_of(batch, time).tolist())][-size:]
        assert contents(memory, []) == sorted(known)


@pytest.mark.parametrize("key", ["image", "fifo"])
def test_state_continues_to_the_same_references_in_the_same_order(key):
    generator = np.random.default_rng(0)
    batches = [generator.choice(IMAGES, 4, replace=False) for _ in range(12)]
    whole = memory_of(key, 6)
    first = memory_of(key, 6)
    for time, batch in enumerate(batches):
        whole.store(embeddings_of(batch, time), batch)
        if time == 5:
            second = memory_of(key, 6)
            second.load_state_dict(
                {name: value.clone() for name, value in first.state_dict().items()}
            )
            first = second
        first.store(embeddings_of(batch, time), batch)
        for ours, theirs in zip(whole.references(batch), first.references(batch), strict=True):
            assert torch.equal(ours, theirs)


def test_size_of_minus_one_is_that_of_the_training_set():
    memory = memory_of("image", -1)
    memory.store(embeddings_of(list(range(IMAGES)), 0), np.arange(IMAGES))
    assert len(memory) == IMAGES
    assert memory.state_dict()["embeddings"].shape == (IMAGES, 2)


def test_what_is_remembered_has_no_graph_and_does_not_follow_the_batch():
    memory = memory_of("image", -1)
    embeddings = torch.ones(2, 2, requires_grad=True)
    memory.store(embeddings * 1.0, np.array([0, 1]))
    with torch.no_grad():
        embeddings.zero_()
    remembered, _ = memory.references(np.array([5]))
    assert not remembered.requires_grad
    assert (remembered == 1.0).all()
