"""Finding and loading a study by its name or its path."""

from __future__ import annotations

from pathlib import Path

from benchmark.errors import ConfigError
from benchmark.study.checks import Checker
from benchmark.study.documents import nearest_file, read_document
from benchmark.study.format import ROOT
from benchmark.study.known import load_known
from benchmark.study.model import Study


def config_folders() -> list[Path]:
    """Returns where studies are looked for by name: below the current folder, then in the repository."""
    folders = [Path("workflow") / "config", ROOT / "workflow" / "config"]
    return folders[:1] if folders[0].resolve() == folders[1] else folders


def find_study(path_or_name: str | Path) -> Path:
    """Returns the path of a study file; a name without folder or suffix is one of the shipped studies."""
    text = str(path_or_name)
    if text.endswith((".yaml", ".yml")) or "/" in text:
        if not Path(text).is_file():
            raise ConfigError(text, ["no such study file; give a path, or one of: " + ", ".join(study_names())])
        return Path(text)
    for folder in config_folders():
        if (folder / f"{text}.yaml").is_file():
            return folder / f"{text}.yaml"
    raise ConfigError("study", [nearest_file("study", text, config_folders())])


def study_names() -> list[str]:
    """Returns the names of the studies that can be asked for by name."""
    return sorted({path.stem for folder in config_folders() for path in folder.glob("*.yaml")})


def load_study(path_or_name: str | Path) -> Study:
    """Returns a validated study; raises one ConfigError with all its problems.

    Nothing here imports torch: losses are known through their catalogue, the rest through registries
    that need none.
    """
    return Checker(read_document(find_study(path_or_name)), load_known()).study()
