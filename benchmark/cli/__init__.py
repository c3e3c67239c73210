"""The verbs of ``python -m benchmark``: functions with ``@app.command()``, one file per area.

Modules here import nothing heavy at the top: a verb imports what it needs when it is called.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core

from benchmark.core.errors import ConfigError, RunError, printable

if TYPE_CHECKING:
    from benchmark.runs.run_table import RunTable
    from benchmark.study import Study

# The verbs that help lists; it names the others, which are single steps of a workflow.
PANELS = {
    "Use": "run plan finish add-seeds challenge conform judge score",
    "Look closer": "check explain compare claims analyse gallery fidelity",
    "Data": "data folder validate",
}


class Verbs(typer.core.TyperGroup):
    """Lists verbs by what they are for, most used first."""

    def format_commands(self, context: Any, formatter: Any) -> None:
        """Write one line a verb, in panels."""
        for panel, names in PANELS.items():
            with formatter.section(panel):
                listed = [(name, self.commands[name]) for name in names.split()]
                formatter.write_dl([(name, each.get_short_help_str(61)) for name, each in listed])
        steps = [name for name, each in self.commands.items() if not each.hidden]
        steps = sorted(set(steps) - set(" ".join(PANELS.values()).split()))
        with formatter.section("Single steps"):
            formatter.write_text(", ".join(steps))


app = typer.Typer(
    cls=Verbs,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Reproducibility suite for ranking losses: train, evaluate, compare with the papers. "
    "Shells complete the installed command 'ranking-benchmark', which is the same.",
)

StudyName = Annotated[str, typer.Argument(help="name or path of a study")]


def _folder(path: Path) -> Path:
    """Return the path; refuse URLs such as s3://bucket, which ``Path`` shortens to s3:/bucket."""
    if re.match(r"\w{2,}:/", path.as_posix()):
        raise RunError(f"--results {path} is a URL; name a folder on this machine")
    return path


Results = Annotated[
    Path, typer.Option(help="root of the results", file_okay=False, callback=_folder)
]

MAX_SEED = 2**32 - 1  # as in studies
MAX_PROCESSES = 1_000
MAX_THREADS = 10_000  # as in recipes


def folder_to_write(path: Path | None) -> Path | None:
    """Return the folder of an option; raise BadParameter when a file is in its place."""
    if path is not None:
        there = next(each for each in (path.absolute(), *path.absolute().parents) if each.exists())
        if not there.is_dir():
            raise typer.BadParameter(f"'{there}' is not a folder; choose another place")
    return path


def file_to_write(path: Path | None) -> Path | None:
    """Return the file of an option; raise BadParameter where it cannot be, or replaces another."""
    if path is not None:
        if os.path.lexists(path) and not path.is_file():
            raise typer.BadParameter(f"'{path}' is not a file; choose another place")
        if path.suffix == ".py":
            raise typer.BadParameter(f"'{path}' is a program; choose another place")
        folder_to_write(path.parent)
        there = next(each for each in path.absolute().parents if each.exists())
        try:
            with contextlib.suppress(FileNotFoundError):
                path.lstat()  # no disk may take such a name
            tempfile.TemporaryFile(dir=there).close()
        except OSError as error:
            words = f"'{path}' cannot be written ({error.strerror}); choose another place"
            raise typer.BadParameter(words) from error
    return path


def load(study: str, results: Path | None = None) -> Study:
    """Return the study of this name or path, at the look that its results have reached."""
    from benchmark.study import load_study

    return load_study(study, results)


def load_runs(study: str, results: Path) -> tuple[Study, RunTable]:
    """Return the study, and the tables of its runs."""
    from benchmark.runs.run_table import RunTable

    loaded = load(study, results)
    return loaded, RunTable.read(loaded.folder(results))


def parse_pairs(option: str, pairs: Sequence[str], texts: Collection[str] = ()) -> dict[str, Any]:
    """Return KEY=VALUE as a dictionary; values are read as YAML, and as they are for ``texts``."""
    from benchmark.core.documents import YamlError, parse_yaml

    wrong = [pair for pair in pairs if "=" not in pair or pair.startswith("=")]
    if wrong:
        raise ConfigError(option, [f"'{pair}' (allowed: KEY=VALUE)" for pair in wrong])
    found = dict(pair.split("=", 1) for pair in pairs)
    try:
        return {key: text if key in texts else parse_yaml(text)[0] for key, text in found.items()}
    except YamlError as error:
        raise ConfigError(option, [f"{error} (allowed: KEY=VALUE)"]) from error


def echo(text: object, *, err: bool = False) -> None:
    """Print a line; names in it may come from files, with characters that steer a terminal."""
    typer.echo(printable(str(text)), err=err)
