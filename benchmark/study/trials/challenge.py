"""A study of one loss against the frozen results of others: the same rules, fewer trials."""

import re
import shutil
from pathlib import Path

import yaml

from benchmark.core.code_version import meaning
from benchmark.core.errors import ConfigError, unknown_name
from benchmark.core.files import copy_file, write_text
from benchmark.core.paths import file_below
from benchmark.core.records import RESULT
from benchmark.study.documents import read_document
from benchmark.study.load import find_study, load_study

FIELD = "reality_check"  # the study whose frozen results are the field
TABLES = ["budgets", "paired", "budget_options", "budget_order", "cost"]
FIGURES = ["score_by_budget", "expected_best", "loss_cost"]


def require_new_loss(path: Path) -> None:
    """Raise ConfigError for a file that cannot be a loss, or whose name is taken.

    Without its own, the other loss would be judged.
    """
    from benchmark.losses.catalogue import load_catalogue

    if path.suffix != ".py" or not path.is_file():
        raise ConfigError(str(path), ["is no Python file with a loss; see docs/adding.md"])
    if not re.fullmatch(r"\w[\w.+-]{0,79}", path.stem, re.ASCII):  # it becomes the name of a folder
        raise ConfigError(str(path), ["has a name that no loss can have; rename the file"])
    if path.stem in load_catalogue():
        words = f"'{path.stem}' is a loss already; give yours, and its file, another name"
        raise ConfigError(str(path), [words])


def copied_loss(path: Path, folder: Path) -> Path:
    """Copy a loss's file into a plugin folder of its own below ``folder``; return that folder.

    Its neighbours would be plugins as well, whatever they are. Raise ConfigError for other plugins
    in that folder, which may come from elsewhere.
    """
    plugins = file_below(folder, "plugins")
    cache = plugins / "__pycache__"  # of a module that need not be this one
    if cache.is_dir() and not cache.is_symlink():
        shutil.rmtree(cache)
    others = {each.name for each in plugins.glob("[!.]*.py")} - {path.name}
    others |= {each.name for each in plugins.glob("*") if each.is_dir()}
    if others:
        words = f"holds {', '.join(sorted(others))}, which would be imported; remove all but"
        raise ConfigError(str(plugins), [f"{words} {path.name}"])
    copy_file(path, plugins / path.name)
    return plugins


def require_same_loss(path: Path, folder: Path, results: Path) -> None:
    """Raise ConfigError where runs in ``results`` were made with another loss of this name.

    They count as finished, so that their scores would be told as those of the loss in ``path``.
    ``folder`` has the copy that they were made with; without it nobody can tell.
    """
    copy = folder / "plugins" / path.name
    made = sorted((results / "runs").glob(f"*/*/{path.stem}/*/*/{RESULT}"))
    if made and copy.is_file() and _changed(path, copy):
        runs = f"{results}/runs/*/*/{path.stem}"
        words = f"is another loss than that of its finished runs ({len(made)}); delete {runs} to "
        raise ConfigError(str(path), [f"{words}train it, or give the file another name"])


def _changed(path: Path, copy: Path) -> bool:
    """Say whether a file does something else than its copy; raise ConfigError for no Python."""
    now = meaning(path)
    try:
        return now != meaning(copy)
    except ConfigError:  # the copy is damaged
        return True


def write_challenge(loss: str, trials: int, field: Path, folder: Path) -> Path:
    """Write the study of ``loss`` with ``trials`` below ``folder``; return its path.

    Raise ConfigError where no loss has this name, where the field has none at this budget, and for
    recipes below ``folder``, which would take the place of the field's.
    """
    from benchmark.losses.catalogue import load_catalogue

    study = load_study(FIELD)
    assert study.trials is not None
    budgets = [budget for budget in study.trials.budgets if budget <= trials]
    problems = []
    if loss not in load_catalogue():
        words = unknown_name("loss", loss, load_catalogue())
        problems.append(f"the file registers no loss of its own name: {words}")
    if trials not in budgets:
        allowed = ", ".join(map(str, study.trials.budgets))
        problems.append(f"the field has no results at --trials {trials} (allowed: {allowed})")
    if (folder / "recipes").exists():
        problems.append(f"{folder / 'recipes'} would take the place of the field's; remove it")
    if problems:
        raise ConfigError(f"challenge {loss}", problems)
    data = read_document(find_study(FIELD)).data
    data |= {
        "study": f"challenge_{loss}",
        "title": f"{loss} against the field",
        "question": f"Where does {loss} stand among the losses of {FIELD} after {trials} trials?",
        "rules": {**data["rules"], "trials": budgets},
        "blocks": [{**block, "losses": [loss]} for block in data["blocks"]],
        "comparison": {"baseline": loss},
        "tables": TABLES,
        "figures": FIGURES,
        "references": {"field": field.as_posix()},
    }
    data.pop("losses", None)
    path = folder / f"{data['study']}.yaml"
    write_text(path, yaml.safe_dump(data, sort_keys=False, width=100))
    return path
