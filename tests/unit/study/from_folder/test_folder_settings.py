"""Settings of a folder study: every size of dataset gets batches, epochs and measures that work on
it."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from benchmark.input.samplers import create_sampler
from benchmark.study.own import ImageFacts, Network, settings

SCRATCH = Network()
PRETRAINED = Network("resnet50.tv_in1k", "resnet50", "its weights")


def seen(
    per_class: list[int], *, grey: bool = False, side: int = 200, tests: int = 500
) -> ImageFacts:
    counts = {
        "train": {"images": sum(per_class), "classes": len(per_class)},
        "test": {"images": tests, "classes": 9},
    }
    return ImageFacts(counts, np.array(per_class), grey, side, 0.001)


def chosen(facts: ImageFacts, network: Network = SCRATCH, **wishes):
    return SimpleNamespace(
        **settings(facts, network, **{"gpus": 0, "seeds": None, "side": None, **wishes})
    )


SIZES = {
    "two pairs": [2, 2],
    "three classes, uneven": [2, 3, 90],
    "few large classes": [700, 650],
    "many pairs": [2] * 3000,
    "long tail": [500, 200, 80, *[6] * 40, *[2] * 100],
    "birds": [60] * 100,
    "products": [5] * 11000,
}


@pytest.mark.parametrize("per_class", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("network", [SCRATCH, PRETRAINED], ids=["scratch", "pretrained"])
def test_every_batch_size_fills_batches_with_two_classes_or_more(per_class, network):
    found = chosen(seen(per_class), network)
    labels = np.repeat(np.arange(len(per_class)), per_class)
    for size in found.batch_sizes:
        sampler = create_sampler(
            "m_per_class",
            {"samples_per_class": found.samples},
            labels=labels,
            categories=None,
            batch_size=size,
            seed=0,
        )
        assert all(len(np.unique(labels[batch])) >= 2 for batch in sampler.epoch(0))


def test_few_large_classes_fill_a_batch_with_more_images_of_each():
    found = chosen(seen([700, 650]))
    assert (found.samples, found.batch_sizes) == (16, [32])


def test_classes_of_two_images_are_drawn_in_pairs():
    assert chosen(seen([2] * 3000)).samples == 2


def test_a_small_dataset_gets_more_epochs_seeds_and_batch_sizes_than_a_large_one():
    small = chosen(seen([40] * 50))
    large = chosen(seen([40] * 5000))
    assert (small.epochs, len(small.seeds), small.batch_sizes) == (20, 5, [16, 64])
    assert (large.epochs, len(large.seeds), large.batch_sizes) == (2, 3, [128])


@pytest.mark.parametrize(("tests", "recall_at"), [(8, [1, 2]), (60, [1, 10]), (500, [1, 10, 100])])
def test_recall_is_measured_well_below_the_number_of_test_images(tests, recall_at):
    assert chosen(seen([40] * 50, tests=tests)).recall_at == recall_at


def test_the_size_of_the_input_follows_the_images_the_network_and_the_machine():
    facts = seen([40] * 50)
    assert chosen(facts).side == 64
    assert chosen(seen([40] * 50, side=28)).side == 32
    assert chosen(facts, PRETRAINED).side == 128
    assert chosen(facts, PRETRAINED, gpus=1).side == 224
    assert chosen(facts, PRETRAINED, side=160).side == 160
    assert (
        chosen(facts, Network("swin", "swin", "its weights", fixed_side=384), side=160).side == 384
    )


def test_grey_images_get_one_channel_unless_the_weights_are_for_colour():
    facts = seen([40] * 50, grey=True)
    assert (chosen(facts).channels, chosen(facts, PRETRAINED).channels) == (1, 3)
