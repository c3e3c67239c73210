"""Published datasets are found without a folder in the study; your own folders are not guessed."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmark.core.environment import DATA
from benchmark.core.errors import DataError
from benchmark.datasets import check_dataset_params, load_dataset, with_root


def root(name, **params):
    return with_root(name, params).get("root")


def test_the_variable_comes_before_the_folder_data_and_a_given_root_before_both(monkeypatch):
    monkeypatch.delenv(DATA.name, raising=False)
    assert root("sop") == str(Path("data") / "sop")
    monkeypatch.setenv(DATA.name, "/big/disk")
    assert root("sop") == str(Path("/big/disk/sop")) == root("sop", root=None)
    assert root("sop", root="elsewhere") == "elsewhere"


@pytest.mark.parametrize("name", ["folder", "glyphs_tiny"])
def test_datasets_that_are_not_unpacked_from_archives_keep_their_parameters(name):
    assert with_root(name) == {}


def test_a_published_dataset_needs_no_parameter_to_be_valid_and_says_where_it_was_looked_for(
    monkeypatch, tmp_path
):
    assert check_dataset_params("cub", {}) == []
    assert check_dataset_params("cub", {"rot": "x"}) != []
    monkeypatch.setenv(DATA.name, str(tmp_path))
    with pytest.raises(DataError, match="cub"):
        load_dataset("cub", {})
