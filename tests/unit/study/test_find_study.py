"""Studies that are not there, and names that a study cannot have."""

from __future__ import annotations

import pytest

from benchmark.core.errors import ConfigError
from benchmark.study import load_study


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("study: small\nblocks: [\n", "is not valid YAML: .* in line 3"),
        ("- a\n- b\n", "must be a mapping"),
    ],
)
def test_a_file_that_is_no_mapping_says_so_with_its_line(text, message, write_study):
    with pytest.raises(ConfigError, match=message):
        load_study(write_study(text))


def test_unknown_study_names_the_nearest():
    with pytest.raises(ConfigError, match="unknown study 'embeded'; did you mean 'embedded'"):
        load_study("embeded")


def test_missing_path_lists_the_shipped_studies(tmp_path):
    with pytest.raises(ConfigError, match=r"no such study file.*embedded, .*smoke"):
        load_study(tmp_path / "none.yaml")


@pytest.mark.parametrize("name", ["runs", "Runs", "cache", "mlartifacts", "mlflow.db", "reference"])
def test_a_study_cannot_be_called_like_something_else_in_the_results(name, study_data, write_study):
    path = write_study({**study_data, "study": name}, name)
    with pytest.raises(ConfigError, match=f"'{name}' is the name of something else"):
        load_study(path)
