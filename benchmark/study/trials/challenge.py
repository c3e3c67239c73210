"""A study of one loss against the frozen results of others: the same rules, fewer trials."""

from pathlib import Path

import yaml

from benchmark.core.code_version import meaning
from benchmark.core.errors import ConfigError, unknown_name
from benchmark.core.files import copy_file, write_text
from benchmark.core.records import RESULT
from benchmark.study.data_files import FINAL, TRIALS, field_folder
from benchmark.study.documents import read_document
from benchmark.study.load import find_study, load_study

FIELD = "reality_check"  # the study whose frozen results are the field
TABLES = ["budgets", "paired", "budget_options", "budget_order", "cost"]
FIGURES = ["score_by_budget", "expected_best", "loss_cost"]


def require_challenger(path: Path, folder: Path, results: Path) -> None:
    """Raise ConfigError for a file that is no new loss, or has changed since its runs were made.

    The finished runs of the loss before would count as those of this one. ``folder`` has the copy
    of the file that they were made with.
    """
    from benchmark.losses.catalogue import load_catalogue

    copy = _copy(path, folder)
    made = list((results / "runs").glob(f"*/*/{path.stem}/*/*/{RESULT}"))
    problem = ""
    if path.suffix != ".py" or not path.is_file():
        problem = "is no Python file with a loss; see docs/adding.md"
    elif path.stem in load_catalogue():
        problem = f"'{path.stem}' is a loss already; give yours, and its file, another name"
    elif made and copy.is_file() and meaning(path) != meaning(copy):
        problem = (
            f"is another loss than that of its finished runs ({len(made)}); delete "
            f"{results}/runs/*/*/{path.stem} to train it, or give the file another name"
        )
    if problem:
        raise ConfigError(str(path), [problem])


def copied_loss(path: Path, folder: Path) -> Path:
    """Copy a loss's file into a plugin folder of its own below ``folder``; return that folder.

    Its neighbours would be plugins as well, whatever they are.
    """
    copy_file(path, _copy(path, folder))
    return _copy(path, folder).parent


def _copy(path: Path, folder: Path) -> Path:
    return folder / "plugins" / path.name


def write_challenge(loss: str, trials: int, field: Path, folder: Path) -> Path:
    """Write the study of ``loss`` with ``trials`` below ``folder``; return its path.

    Raise ConfigError where no loss has this name, and where the field has no results at this
    budget or is none.
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
    problems += [
        f"--field {field} has no folder '{kind}' of frozen results, as results/reference/{FIELD}"
        for kind in (TRIALS, FINAL)
        if not field_folder(field.as_posix(), kind).is_dir()
    ]
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
