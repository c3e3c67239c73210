"""Names of components, and the folders with those of other people."""

from __future__ import annotations

import pytest

from benchmark.core.errors import ConfigError
from benchmark.core.registry import Registry, plugin_files, registered_names


def test_entries_come_sorted_with_their_facts():
    registry = Registry("loss", "json", {"kind": "pair"})
    registry.register("b", display="B", kind="proxy")(int)
    registry.register("a")(str)
    facts = [(entry.name, entry.target, entry.display, entry.facts) for entry in registry]
    assert facts == [("a", str, "a", {"kind": "pair"}), ("b", int, "B", {"kind": "proxy"})]
    with pytest.raises(ConfigError, match="unknown loss 'aa'; did you mean 'a'"):
        registry["aa"]


@pytest.mark.parametrize(
    "line", ["@TABLES.register('mine')", 'TABLES.register("mine", display="M")(build)']
)
def test_names_are_found_however_they_are_registered(line, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(f"x = 1\n{line}\n")
    monkeypatch.setenv("BENCHMARK_PLUGINS", str(tmp_path))
    assert "mine" in registered_names("TABLES")


def test_a_folder_of_plugins_that_is_missing_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("BENCHMARK_PLUGINS", str(tmp_path / "nowhere"))
    with pytest.raises(ConfigError, match=r"BENCHMARK_PLUGINS.*\n.*no such folder: .*nowhere"):
        plugin_files()


def test_hidden_files_of_other_systems_are_no_plugins(tmp_path, monkeypatch):
    (tmp_path / "._mine.py").write_bytes(b"\x00\x05\x16\x07")
    monkeypatch.setenv("BENCHMARK_PLUGINS", str(tmp_path))
    assert plugin_files() == []
