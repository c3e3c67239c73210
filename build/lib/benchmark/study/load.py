"""Finding and loading a study by its name or its path."""

import difflib
from pathlib import Path

from benchmark.core.documents import nearest_file, read_document
from benchmark.core.errors import ConfigError
from benchmark.losses import catalogue
from benchmark.study.checks import Checker
from benchmark.study.grid import at_look, look_state
from benchmark.study.model import JOINT, ROOT, Study, base_of
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
        if not Path(text).is_file() and not Path(base_of(text)).is_file():
            beside = [file.name for file in Path(text).parent.glob("*.y*ml")]
            close = difflib.get_close_matches(Path(text).name, beside, n=1, cutoff=0.5)
            hint = f"did you mean {Path(text).parent / close[0]}? Otherwise " if close else ""
            words = f"no such study file; {hint}give a path, or one of: {', '.join(study_names())}"
            raise ConfigError(text, [words])
        return Path(text)
    for name in filter(None, (text, base_of(text))):
        for folder in config_folders():
            if (folder / f"{name}.yaml").is_file():
                return folder / f"{text}.yaml"
    problem = nearest_file("study", text, config_folders())
    if Path(f"{text}.yaml").is_file():
        problem += f"; to use the file here, give its path: {text}.yaml"
    raise ConfigError("study", [problem])


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
    losses = catalogue.load_catalogue()
    if path.is_file():
        study = Checker(read_document(path), losses).study()
        return at_look(study, look_state(study.folder(results))["look"] if results else 1)
    document, dataset = read_document(Path(base_of(str(path)))), path.stem.rpartition(JOINT)[2]
    study = Checker(document, losses).study()
    instead = study.rules.instead if study.rules else {}
    return Checker(on_other_dataset(document, instead, dataset), losses).study()
