"""Every verb of the command line says what it does and shows a call that the command line
accepts."""

from __future__ import annotations

import inspect
import os
import re
import shlex
import typing

import pytest
import typer
from typer.testing import CliRunner

from benchmark.__main__ import app, main

GROUP = typer.main.get_command(app)


def commands(command, path=()):
    """Yields (path, command) of everything that can be called."""
    for name, child in getattr(command, "commands", {}).items():
        if child.hidden:  # an old name
            continue
        if getattr(child, "invoke_without_command", False) or not hasattr(child, "commands"):
            yield (*path, name), child
        yield from commands(child, (*path, name))


every_verb = pytest.mark.parametrize(
    ("path", "command"), [pytest.param(*each, id=" ".join(each[0])) for each in commands(GROUP)]
)


@every_verb
def test_every_verb_has_help_with_examples_that_parse(path, command):
    examples = re.findall(r"Example: python -m benchmark (.+?)(?=\n\n|$)", command.help or "", re.S)
    assert examples, f"the help of '{' '.join(path)}' has no example"
    for example in examples:
        words = shlex.split(example)
        assert tuple(words[: len(path)]) == path
        context = command.make_context(path[-1], words[len(path) :], resilient_parsing=False)
        assert context is not None


@every_verb
def test_every_whole_number_of_the_command_line_has_two_ends(path, command):
    verb = inspect.unwrap(command.callback)
    hints = typing.get_type_hints(verb, include_extras=True)
    for name, parameter in inspect.signature(verb).parameters.items():
        kind = hints[name]
        given = parameter.default
        if hasattr(kind, "__metadata__"):
            (given,), kind = kind.__metadata__, kind.__origin__
        if re.search(r"\bint\b", str(kind)):
            assert given.min is not None and given.min >= 0, name
            assert given.max is not None and given.max < 2**32, name


@pytest.mark.parametrize(
    "words",
    [
        "analyse toy_ranking --seed 4294967296",
        "analyse toy_ranking --seed -5",
        "fill small --workers 99999999999",
        "gallery small --seed -1",
    ],
)
def test_a_number_that_nothing_can_hold_is_refused_with_its_ends(words):
    path, *given = words.split()
    with pytest.raises(typer.BadParameter, match=r"\d+$"):
        GROUP.commands[path].make_context(path, given)


@pytest.mark.parametrize("place", ["file", "file/new"])
@pytest.mark.parametrize(
    "words",
    [
        "analyse toy_ranking",
        "folder init .",
        "train --spec s.json",
    ],
)
def test_a_folder_to_write_is_looked_at_before_anything_is_computed(tmp_path, words, place):
    (tmp_path / "file").write_text("x")
    found = dict(commands(GROUP))
    words = words.split()
    path = max((each for each in found if tuple(words[: len(each)]) == each), key=len)
    given = words[len(path) :]
    with pytest.raises(typer.BadParameter, match="file"):
        found[path].make_context(path[-1], [*given, "--out", str(tmp_path / place)])
    found[path].make_context(path[-1], [*given, "--out", str(tmp_path / "new" / "folder")])


@pytest.mark.parametrize("place", ["folder", "pipe", "file/new", "n" * 300, "/proc/new"])
@pytest.mark.parametrize("words", ["conform a.py --as fast_ap --json", "fidelity --csv"])
def test_a_file_to_write_is_looked_at_before_anything_is_computed(tmp_path, words, place):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    os.mkfifo(tmp_path / "pipe")
    name, *given = words.split()
    command = dict(commands(GROUP))[name,]
    with pytest.raises(typer.BadParameter):
        command.make_context(name, [*given, str(tmp_path / place)])
    for fit in ("file", "new/file"):
        command.make_context(name, [*given, str(tmp_path / fit)])


@pytest.mark.parametrize("verb", ["run", "challenge"])
@pytest.mark.parametrize("cores", ["0", "-1", "1.5", "", "many", "9" * 30])
def test_cores_are_a_number_or_all(verb, cores, tmp_path):
    what = "smoke" if verb == "run" else str(tmp_path / "mine.py")
    done = CliRunner().invoke(app, [verb, what, "--cores", cores, "--results", str(tmp_path)])
    assert done.exit_code == 2
    assert "--cores" in done.output


@pytest.mark.parametrize("words", [["--root", ""], ["--root="], [""]])
def test_an_empty_argument_is_no_folder(words, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["benchmark", "data", "check", "cub", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "an argument is empty" in capsys.readouterr().err


def test_a_working_folder_that_is_gone_is_said_at_once(tmp_path, monkeypatch, capsys):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    os.rmdir(tmp_path / "gone")
    monkeypatch.setattr("sys.argv", ["benchmark", "validate", "smoke"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("error: ")
