"""``batch_sizes: [32, all]``: the whole training set as one batch."""

from __future__ import annotations

import numpy as np
import pytest
import yaml
from workplace import small_study

from benchmark.core.errors import ConfigError
from benchmark.datasets import load_dataset, training_images
from benchmark.input.samplers import create_sampler
from benchmark.study import load_study
from benchmark.study.grid import expand


def loaded(folder, **changes):
    study = small_study("small", ["smooth_ap"])
    study["blocks"][0] |= {"batch_sizes": [32, "all"], **changes}
    path = folder / "small.yaml"
    path.write_text(yaml.safe_dump(study, sort_keys=False))
    return load_study(str(path))


def test_all_becomes_the_number_of_training_images(tmp_path):
    sizes = [run.spec.batch_size for run in expand(loaded(tmp_path)).values()]
    assert sizes == [32, 32, 346, 346]


@pytest.mark.parametrize("name", ["glyphs_tiny", "glyphs_1k", "glyphs"])
def test_the_published_number_of_training_glyphs_is_that_of_the_dataset(name):
    assert training_images(name) == len(load_dataset(name).train)


def test_datasets_that_differ_in_it_are_refused_with_what_to_do(tmp_path):
    with pytest.raises(ConfigError, match=r"batch_sizes.1.*name one dataset in the block"):
        loaded(tmp_path, datasets=["glyphs_tiny", "glyphs_1k"])
    with pytest.raises(ConfigError, match=r"batch_sizes.0"):
        loaded(tmp_path, batch_sizes=["everything"])


def test_every_epoch_is_one_batch_of_all_images_in_another_order():
    labels = np.arange(50) // 4
    sampler = create_sampler(
        "m_per_class",
        {"samples_per_class": 4},
        labels=labels,
        categories=None,
        batch_size=50,
        seed=0,
    )
    (first,), (second,) = sampler.epoch(0), sampler.epoch(1)
    assert sorted(first) == sorted(second) == list(range(50))
    assert not np.array_equal(first, second)
