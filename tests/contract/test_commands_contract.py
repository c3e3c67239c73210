"""Every verb of the command line says what it does and shows a call that the command line
accepts."""

from __future__ import annotations

import re
import shlex

import pytest
import typer

from benchmark.__main__ import app

GROUP = typer.main.get_command(app)


def commands(command, path=()):
    """Yields (path, command) of everything that can be called."""
    for name, child in getattr(command, "commands", {}).items():
        if getattr(child, "invoke_without_command", False) or not hasattr(child, "commands"):
            yield (*path, name), child
        yield from commands(child, (*path, name))


@pytest.mark.parametrize(
    ("path", "command"), [pytest.param(*each, id=" ".join(each[0])) for each in commands(GROUP)]
)
def test_every_verb_has_help_with_examples_that_parse(path, command):
    examples = re.findall(r"Example: python -m benchmark (.+?)(?=\n\n|$)", command.help or "", re.S)
    assert examples, f"the help of '{' '.join(path)}' has no example"
    for example in examples:
        words = shlex.split(example)
        assert tuple(words[: len(path)]) == path
        context = command.make_context(path[-1], words[len(path) :], resilient_parsing=False)
        assert context is not None
