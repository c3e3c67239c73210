"""A name stands for one class; a plugin that cannot be imported is named with its line."""

from __future__ import annotations

import importlib
import sys

import pytest

from benchmark.core.errors import ConfigError
from benchmark.core.registry import Registry, import_plugin, plugin_files, registered_names

PLUGIN = """
import registry_of_a_test

@registry_of_a_test.REGISTRY.register("{}")
class First:
    pass

@registry_of_a_test.REGISTRY.register("{}")
class {}:
    pass
"""


WORDLESS = """class Wordless(Exception):
    def __str__(self):
        raise ValueError

raise Wordless
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A registry that plugins in the folder can import."""
    monkeypatch.setitem(sys.modules, "registry_of_a_test", sys.modules[__name__])
    monkeypatch.setattr(sys.modules[__name__], "REGISTRY", Registry("loss", "json"), raising=False)
    yield tmp_path
    sys.modules.pop("benchmark_plugin_mine", None)


@pytest.mark.parametrize("second", ["Second", "First"])
def test_two_classes_of_one_file_cannot_have_one_name(second, here):
    path = here / "mine.py"
    path.write_text(PLUGIN.format("aa", "aa", second))
    told = rf"mine\.py.*\n.*loss registry.*'aa' is registered twice.*{path}; give one"
    for _ in range(2):  # whichever registry asks first, and the next
        with pytest.raises(ConfigError, match=told):
            import_plugin(path)


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"display": 5}, r"display is 5 \(allowed: a str\)"),
        ({"display": "two\nlines"}, r"display is 'two\\nlines' \(allowed: 200 letters of a line\)"),
        ({"kind": "x" * 300}, r"kind is 'x+\.\.\.x+' \(allowed: 200 letters"),
        ({"trains": "no"}, r"trains is 'no' \(allowed: a bool\)"),
        ({"places": (5, None)}, r"places is \(5, None\) \(allowed: a tuple of texts\)"),
        ({"trian": True}, "unknown fact 'trian'; did you mean 'trains'"),
    ],
)
def test_facts_are_of_the_types_of_their_defaults(facts, told):
    registry = Registry("loss", "json", {"kind": "pair", "trains": True, "places": ()})
    with pytest.raises(ConfigError, match=f"loss 'mine'.*\n.*{told}"):
        registry.register("mine", **facts)


@pytest.mark.parametrize("target", [None, 5, "words"])
def test_what_cannot_be_called_is_no_component(target):
    with pytest.raises(ConfigError, match=r"loss registry.*\n.*'mine' is .*register a class or"):
        Registry("loss", "json").register("mine")(target)


@pytest.mark.parametrize(
    "line", ["@TABLES.register('mine')", 'TABLES.register("mine", display="M")(build)']
)
def test_names_are_found_however_they_are_registered(line, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(f"x = 1\n{line}\n")
    monkeypatch.setenv("BENCHMARK_PLUGINS", str(tmp_path))
    assert "mine" in registered_names("TABLES", "report/tables")


def test_a_module_that_is_imported_again_registers_its_classes_again(here, monkeypatch):
    (here / "mine_again.py").write_text(PLUGIN.format("aa", "bb", "Second"))
    monkeypatch.syspath_prepend(str(here))
    first = importlib.import_module("mine_again")
    importlib.reload(first)
    del sys.modules["mine_again"]
    again = importlib.import_module("mine_again")
    assert REGISTRY._entries["bb"].target is again.Second  # noqa: F821
    del sys.modules["mine_again"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("import no_such_module_anywhere\n", "ModuleNotFoundError: .*, line 1; correct"),
        ("\n\n1 / 0\n", "ZeroDivisionError: division by zero, line 3; correct"),
        ("def f(:\n", "SyntaxError: .*line 1"),
        ("import sys\nsys.exit(0)\n", "SystemExit: 0, line 2; correct"),
        ("raise GeneratorExit\n", "GeneratorExit, line 1; correct"),
        ('raise ValueError("\\udcff")\n', r"ValueError: \\udcff, line 1; correct"),
        ('import os\nos.chdir("/")\n', "changes the working directory"),
        ('import os\nos.environ["BENCHMARK_PLUGINS"] = "x"\n', "changes .* or BENCHMARK_PLUGINS"),
        (WORDLESS, "Wordless: without words, line 5; correct"),
    ],
)
def test_a_plugin_that_cannot_be_imported_is_named_with_the_line(text, told, here):
    path = here / "mine.py"
    path.write_text(text)
    for _ in range(2):
        with pytest.raises(ConfigError, match=rf"plugin .*mine\.py.*\n.*{told}"):
            import_plugin(path)


def test_hidden_files_of_other_systems_are_no_plugins(here, monkeypatch):
    (here / "._mine.py").write_bytes(b"\x00\x05\x16\x07")
    monkeypatch.setenv("BENCHMARK_PLUGINS", str(here))
    assert plugin_files() == []
