"""The last words of a workflow come, whatever is wrong with what they are made of."""

from __future__ import annotations

from made_up_results import made_up_study

from benchmark.core.errors import ConfigError
from benchmark.report.summary import last_words


def test_the_words_of_the_import_follow_those_of_the_study(tmp_path):
    (tmp_path / "log").write_bytes(b"warning: \xff\n")
    words = last_words(lambda: made_up_study(seeds=(0,)), tmp_path, tmp_path / "log", finished=True)
    assert "missing" in words
    assert words.endswith("\nwarning: \N{REPLACEMENT CHARACTER}")


def test_an_error_is_told_in_words(tmp_path):
    def reported():
        raise ConfigError("small-selected.yaml", ["is damaged"])

    words = last_words(reported, tmp_path, tmp_path / "log", finished=True)
    assert words.startswith("small-selected.yaml: 1 problem")
