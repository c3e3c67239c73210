"""Throughput and overhead are measured on both sides alike, and shares are those of the run
folders."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
import yaml
from perf import photographs
from perf.imagefolder import image_folder_batches
from perf.interleave import compare
from perf.loops import Training, bench_spec
from perf.workflow import CONFIG, share_of_useful_time, shortened

from benchmark.core.recipe_input import InputConfig
from benchmark.datasets.base import ImageSet
from benchmark.datasets.io.images import ReducingOpener
from benchmark.input.create import create_input
from benchmark.study import load_study
from benchmark.study.grid import expand

GLYPH = {"augmentation": "affine_noise", "image_size": 32, "mean": [0.5], "std": [0.5]}


def test_ratio_is_ours_over_the_alternative_without_the_first_measurement():
    ours, theirs = iter([9.0, 4.0, 6.0, 4.0]), iter([9.0, 2.0, 2.0, 2.0])
    measurement = compare("x", lambda: next(ours), lambda: next(theirs), 3, at_least=2.5)
    row, (target,) = measurement.row, measurement.targets
    assert (row["ours"], row["alternative"], row["ratio"]) == (4.0, 2.0, 2.0)
    assert (target.value, target.bound, target.at_least, target.met) == (2.0, 2.5, True, False)
    assert compare("x", lambda: 1.0, lambda: 1.0, 1, at_least=None).targets == []


def test_both_loops_train_on_the_same_batches(tmp_path):
    training = Training(bench_spec({"name": "glyphs_tiny", "params": {}}, 64, 1, GLYPH), tmp_path)
    ready = list(training.read())
    assert [len(batch) for batch in ready] == [len(targets) for targets in training.labels]
    before = [parameter.detach().clone() for parameter in training.bare.network.parameters()]
    assert training.ours(ready) > 0
    assert training.plain(ready) > 0
    after = training.bare.network.parameters()
    assert any(not torch.equal(old, new) for old, new in zip(before, after, strict=True))
    assert torch.are_deterministic_algorithms_enabled()


def test_torchvisions_pipeline_gives_the_same_images_where_nothing_is_random(tmp_path):
    paths = photographs.write_jpegs(tmp_path, (80, 64), 8)
    config = InputConfig(
        augmentation="crop_flip",
        image_size=32,
        resize=32,
        crop_area=[1.0, 1.0],
        crop_aspect=[1.25, 1.25],
        flip=False,
    )
    source = create_input(
        ImageSet(np.zeros(8, np.int64), paths, ReducingOpener(tmp_path, paths)), config, 3
    )
    (ours,) = source.train_batches([np.arange(8)], 0, 0)
    chosen = InputConfig(**{**vars(config), "crop_area": (1.0, 1.0), "crop_aspect": (1.25, 1.25)})
    ((theirs, _),) = image_folder_batches(tmp_path, chosen, [paths])()
    # torchvision mirrors half of the images
    gaps = torch.minimum(
        (ours - theirs).abs().mean((1, 2, 3)), (ours - theirs.flip(3)).abs().mean((1, 2, 3))
    )
    assert gaps.max() < 0.1


def test_useful_share_is_training_and_evaluation_over_all_cores_time(tmp_path):
    for seed, (train, evaluate) in enumerate([(6.0, 2.0), (7.0, 1.0)]):
        folder = tmp_path / f"runs/d/s/l/bs32/seed{seed}"
        folder.mkdir(parents=True)
        timing = {
            "startup_seconds": 1.0,
            "train_seconds": train,
            "eval_seconds": evaluate,
            "total_seconds": 9.5,
        }
        (folder / "provenance.json").write_text(json.dumps({"timing": timing}))
    found = share_of_useful_time(tmp_path, wall_seconds=10.0, cores=2)
    assert found == {"runs": 2, "useful": 0.8, "startup": 1.0, "overhead": 2.0, "outside": 0.5}


@pytest.mark.parametrize("name", ["smoke", "embedded"])
def test_a_shortened_study_is_valid_and_plans_its_losses_and_seeds(name, tmp_path):
    study = shortened(yaml.safe_load((CONFIG / f"{name}.yaml").read_text()), 2, [3])
    path = tmp_path / f"{name}.yaml"
    path.write_text(yaml.safe_dump(study, sort_keys=False))
    specs = [run.spec for run in expand(load_study(path)).values()]
    assert {spec.seed for spec in specs} == {3}
    assert {spec.loss.label for spec in specs} == {"smooth_ap", "sup_ap"}


def test_a_folder_without_runs_has_no_share(tmp_path):
    with pytest.raises(FileNotFoundError, match="no finished run"):
        share_of_useful_time(tmp_path, 1.0, 1)
