"""Finding and loading a study by its name or its path."""

import difflib
from pathlib import Path

from benchmark.core.errors import ConfigError
from benchmark.study.checks import Checker, load_known
from benchmark.study.documents import JOINT, base_of, nearest_file, read_document
from benchmark.study.grid import at_look, at_present_look
from benchmark.study.model import ROOT, Study
from benchmark.study.trials import on_other_dataset


def config_folders() -> list[Path]:
    """Return where studies are found by name: below the current folder, then in the repository."""
    folders = [Path("workflow") / "config", ROOT / "workflow" / "config"]
    return folders[:1] if folders[0].resolve() == folders[1] else folders


def find_study(path_or_name: str | Path) -> Path:
    """Return the path of a study file; a name without folder or suffix is a shipped study.

    A study on another dataset (``reality_check-on-sop``) has no file: its path is that of its
    study, with its own name.
    """
    text = str(path_or_name)
    if text.endswith((".yaml", ".yml")) or "/" in text:
        if not Path(text).is_file() and not (Path(base_of(text)).is_file()):
            raise ConfigError(text, [_no_file(Path(text))])
        return Path(text)
    for name in filter(None, (text, base_of(text))):
        for folder in config_folders():
            if (folder / f"{name}.yaml").is_file():
                return folder / f"{text}.yaml"
    problem = nearest_file("study", text, config_folders())
    if Path(f"{text}.yaml").is_file():
        problem += f"; to use the file here, give its path: {text}.yaml"
    raise ConfigError("study", [problem])


def _no_file(path: Path) -> str:
    """Return what to do about a path without a file: the nearest file beside it, or a name."""
    beside = [file.name for file in path.parent.glob("*.y*ml")]
    close = difflib.get_close_matches(path.name, beside, n=1, cutoff=0.5)
    hint = f"did you mean {path.parent / close[0]}? Otherwise " if close else ""
    return f"no such study file; {hint}give a path, or one of: {', '.join(study_names())}"


def study_names() -> list[str]:
    """Return the names of the studies that can be asked for by name."""
    return sorted({path.stem for folder in config_folders() for path in folder.glob("*.yaml")})


def load_study(path_or_name: str | Path, results: Path | None = None) -> Study:
    """Return a validated study; raise one ConfigError with all its problems.

    A study that plans looks has the seeds of the look that its folder below ``results`` says, or
    of the first.

    ``NAME-on-DATASET`` is the study NAME on another dataset that its rules allow. Nothing here
    imports torch: losses are known through their catalogue, the rest through registries that need
    none.
    """
    path = find_study(path_or_name)
    known = load_known()
    if path.is_file():
        study = Checker(read_document(path), known).study()
        return at_look(study, 1) if results is None else at_present_look(study, results)
    document, dataset = read_document(Path(base_of(str(path)))), path.stem.rpartition(JOINT)[2]
    study = Checker(document, known).study()
    instead = study.rules.instead if study.rules else {}
    return Checker(on_other_dataset(document, instead, dataset), known).study()
