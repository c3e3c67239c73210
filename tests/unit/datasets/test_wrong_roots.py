"""What loading says where the root of a published dataset is wrong."""

from __future__ import annotations

import shutil

import archives
import pytest
from archives import loading_message as message

from benchmark.datasets import DATASETS

EVERY = sorted(archives.MAKERS)


@pytest.mark.parametrize("name", EVERY)
def test_a_root_one_level_too_high_or_too_deep_gets_the_right_one(make, name):
    root = make(name)
    below = next(path for path in root.iterdir() if path.is_dir())
    for wrong in (root.parent, below):
        text = message(name, wrong)
        assert f"this is not the dataset's root, but {root} is; give it as root" in text
        assert "1 problem" in text


@pytest.mark.parametrize("name", EVERY)
def test_a_root_that_is_not_there_or_empty_says_what_to_do(tmp_path, name):
    assert "no such directory" in message(name, tmp_path / "nothing")
    text = message(name, tmp_path)
    assert "not the dataset's root" in text
    assert f"python -m benchmark data prepare {name} --source" in text


@pytest.mark.parametrize("name", EVERY)
def test_a_half_unpacked_root_names_what_is_missing_and_where_it_comes_from(make, name):
    root = make(name)
    archive = DATASETS[name].target.archives[-1]
    proof = root / archive.provides[-1]
    shutil.rmtree(proof) if proof.is_dir() else proof.unlink()
    text = message(name, root)
    assert "only partly unpacked" in text
    assert f"\n      {archive.provides[-1]} (of {archive.file})" in text
