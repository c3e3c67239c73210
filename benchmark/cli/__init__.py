"""The verbs of ``python -m benchmark``: functions with ``@app.command()``, one file per area.

Modules here import nothing heavy at the top: a verb imports what it needs when it is called.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core

from benchmark.core.errors import ConfigError, RunError, printable, shortened
from benchmark.core.records import RESULTS

if TYPE_CHECKING:
    from benchmark.runs.run_table import RunTable
    from benchmark.study import Study

# The verbs that help lists; it names the others, which are single steps of a workflow.
PANELS = {
    "Use": "run plan finish add-seeds challenge conform judge replay score",
    "Look closer": "check explain compare claims analyse gallery fidelity",
    "Data": "data folder features validate",
}


class Verbs(typer.core.TyperGroup):
    """A group that lists its verbs by purpose, the most used first."""

    def format_commands(self, context: Any, formatter: Any) -> None:
        """Write one line for each verb, in panels."""
        for panel, names in PANELS.items():
            with formatter.section(panel):
                lines = [
                    (name, self.commands[name].get_short_help_str(61)) for name in names.split()
                ]
                formatter.write_dl(lines)
        shown = {name for name, command in self.commands.items() if not command.hidden}
        steps = shown - set(" ".join(PANELS.values()).split())
        with formatter.section("Single steps"):
            formatter.write_text(", ".join(sorted(steps)))


class Verb(typer.core.TyperCommand):
    """A command with files to write (``file_to_write``); none of them is a file that it reads."""

    def parse_args(self, context: Any, args: list[str]) -> list[str]:
        """Return the rest of the arguments; raise BadParameter for a file that is named twice."""
        rest = super().parse_args(context, args)
        for output in context.meta.get(OUTPUTS, ()):
            path = context.params[output]
            for name, other in _files_of(context.params):
                if name != output and _identity(path) == _identity(other):
                    message = f"'{path}' is the file of {name} as well; choose another place"
                    raise typer.BadParameter(message, param_hint=f"--{output}")
        return rest


def _files_of(parameters: dict[str, Any]) -> Iterator[tuple[str, Path]]:
    """Yield the name of a parameter and a file that it names; then what studies and papers are."""
    from benchmark.study.data_files import data_files, paper_folders
    from benchmark.study.load import find_study

    for name, value in parameters.items():
        if isinstance(value, (str, Path)):
            yield name, Path(value)
    files = data_files("build", paper_folders())
    if study := parameters.get("study"):
        files.append(find_study(study))
        files += Path(parameters.get("results", RESULTS), files[-1].stem).glob("*.csv")
    yield from (("a study or paper", file) for file in files)


def _identity(path: Path) -> object:
    """Return what all names of one file share, also by links."""
    real = os.path.realpath(path)
    if not os.path.exists(real):
        return real
    status = os.stat(real)
    return status.st_dev, status.st_ino


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
    """Return the path; raise RunError for a URL (``Path`` shortens s3://bucket to s3:/bucket)."""
    if re.match(r"\w{2,}:/", path.as_posix()):
        raise RunError(f"--results {path} is a URL; name a folder on this machine")
    return path


Results = Annotated[
    Path, typer.Option(help="root of the results", file_okay=False, callback=_folder)
]

OUTPUTS = "outputs"  # names of the options of files to write, in a context
MAX_SEED = 2**32 - 1  # as in studies
MAX_PROCESSES = 1_000
MAX_THREADS = 10_000  # as in recipes


def folder_to_write(path: Path | None) -> Path | None:
    """Return the folder of an option; raise BadParameter if its path has a file."""
    if path is not None:
        folder = _nearest_existing(path)
        if not folder.is_dir():
            raise typer.BadParameter(f"'{folder}' is not a folder; choose another place")
    return path


def _nearest_existing(path: Path) -> Path:
    """Return the path, or the nearest folder above it that exists."""
    path = path.absolute()
    while not path.exists():
        path = path.parent
    return path


def file_to_write(
    context: typer.Context, option: typer.CallbackParam, path: Path | None
) -> Path | None:
    """Return the file of an option; raise BadParameter if it cannot or must not be written."""
    if path is not None:
        context.meta.setdefault(OUTPUTS, []).append(option.name)
        if os.path.lexists(path) and not path.is_file():
            raise typer.BadParameter(f"'{path}' is not a file; choose another place")
        if path.suffix in (".py", ".yaml", ".yml"):
            raise typer.BadParameter(f"'{path}' is a program or a study; choose another place")
        folder_to_write(path.parent)
        try:
            with contextlib.suppress(FileNotFoundError):
                path.lstat()  # an OSError if no disk takes such a name
            tempfile.TemporaryFile(dir=_nearest_existing(path.parent)).close()
        except OSError as error:
            message = f"'{path}' cannot be written ({error.strerror}); choose another place"
            raise typer.BadParameter(message) from error
    return path


def place_to_write(
    context: typer.Context, option: typer.CallbackParam, path: Path | None
) -> Path | None:
    """Return the file or the present folder of an option; raise BadParameter as above."""
    if path is not None and path.is_dir():
        return path
    return file_to_write(context, option, path)


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
    """Return KEY=VALUE as a dictionary; values are YAML, but for the keys in ``texts``."""
    from benchmark.core.documents import YamlError, parse_yaml

    wrong = [pair for pair in pairs if "=" not in pair or pair.startswith("=")]
    if wrong:
        raise ConfigError(option, [f"'{pair}' (allowed: KEY=VALUE)" for pair in wrong])
    values: dict[str, Any] = dict(pair.split("=", 1) for pair in pairs)
    try:
        for key, text in values.items():
            if key not in texts:
                values[key] = parse_yaml(text).value
    except YamlError as error:
        raise ConfigError(option, [f"{error} (allowed: KEY=VALUE)"]) from error
    return values


def echo(text: object, *, err: bool = False) -> None:
    """Print a line, with escapes for characters that control a terminal (names may have some).

    A line of ``err`` is a message, and is shortened.
    """
    line = printable(str(text))
    typer.echo(shortened(line) if err else line, err=err)
