"""YAML documents that remember the line of every value, so that problems can be found."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmark.core.errors import ConfigError, Problem, unknown_name
from benchmark.core.plain import YamlError, parse_yaml


@dataclass
class Document:
    """A parsed file: its content, and the line (from 1) of each key."""

    path: Path
    data: dict[str, Any]
    lines: dict[str, int]

    def locate(self, problem: Problem, above: str = "") -> Problem:
        """Return ``problem``, whose key stands below ``above``, with its line.

        A key without a line gets that of the nearest value around it.
        """
        key = ".".join(filter(None, (above, problem.key)))
        around = key
        while around and around not in self.lines:
            around = around.rpartition(".")[0]
        return replace(problem, key=key, line=self.lines.get(around))


def read_document(path: Path) -> Document:
    """Return the document at ``path``; raise ConfigError when it is absent or no mapping.

    A key that is given twice is an error as well.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
        data, lines, twice = parse_yaml(text)
    except OSError as error:
        raise ConfigError(str(path), [f"cannot be read: {error.strerror}"]) from error
    except UnicodeDecodeError as error:
        raise ConfigError(str(path), [f"is not UTF-8 text: {error}"]) from error
    except YamlError as error:
        raise ConfigError(str(path), [f"is not valid YAML: {error}"]) from error
    if not isinstance(data, dict):
        words = "must be a mapping of keys to values, see docs/studies.md"
        raise ConfigError(str(path), [words])
    if twice:
        raise ConfigError(str(path), twice)
    return Document(Path(path), data, lines)


JOINT = "-on-"  # between the name of a study and the other dataset that it runs on


def name_on(study: str | Path, dataset: str) -> str:
    """Return the name or path under which ``study`` on another dataset is loaded."""
    stem, suffix = str(study), ""
    if stem.endswith((".yaml", ".yml")):
        stem, suffix = stem.rpartition(".")[0], ".yaml"
    return f"{stem}{JOINT}{dataset}{suffix}"


def base_of(name: str) -> str:
    """Return the study whose name or path on another dataset this is, "" for any other name."""
    stem, joint, dataset = name.rpartition(JOINT)
    if not joint or not stem or "/" in dataset:
        return ""
    suffix = ".yaml" if dataset.endswith((".yaml", ".yml")) else ""
    return f"{stem}{suffix}"


def nearest_file(kind: str, name: str, folders: Sequence[Path]) -> str:
    """Return the message for a name that has no YAML file in ``folders``."""
    names = {path.stem for folder in folders for path in folder.glob("*.yaml")}
    searched = ", ".join(dict.fromkeys(str(folder) for folder in folders))
    return f"{unknown_name(kind, name, names)} (looked in {searched})"
