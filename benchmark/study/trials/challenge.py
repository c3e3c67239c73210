"""A study of one loss against the frozen results of others: the same rules, fewer trials."""

from pathlib import Path

import yaml

from benchmark.core.code_version import meaning
from benchmark.core.errors import ConfigError
from benchmark.core.files import copy_file, write_text
from benchmark.core.records import RESULT
from benchmark.study.documents import read_document
from benchmark.study.load import find_study, load_study

FIELD = "reality_check"  # the study whose frozen results are the field
TABLES = ["budgets", "paired", "budget_options", "budget_order", "cost"]
FIGURES = ["score_by_budget", "expected_best", "loss_cost"]


def write_challenge(loss: Path, trials: int, field: Path, results: Path) -> tuple[Path, Path]:
    """Write the study of a loss's file with ``trials``; return its path, and the plugin folder.

    Both lie in ``results/challenges``. Raise ConfigError for a file that is no new loss, or has
    changed since its runs were made: those of the loss before would count as runs of this one.
    """
    from benchmark.losses.catalogue import load_catalogue

    name, folder = loss.stem, results / "challenges" / loss.stem
    copy = folder / "plugins" / loss.name  # alone: its neighbours would be plugins as well
    made = list((results / "runs").glob(f"*/*/{name}/*/*/{RESULT}"))
    rules = load_study(FIELD).trials
    budgets = rules.budgets if rules else ()
    problems = []
    if loss.suffix != ".py" or not loss.is_file():
        problems.append("is no Python file with a loss; see docs/adding.md")
    elif name in load_catalogue():
        problems.append(f"'{name}' is a loss already; give yours, and its file, another name")
    elif made and copy.is_file() and meaning(loss) != meaning(copy):
        problems.append(
            f"is another loss than that of its finished runs ({len(made)}); delete "
            f"{results}/runs/*/*/{name} to train it, or give the file another name"
        )
    if trials not in budgets:
        allowed = ", ".join(map(str, budgets))
        problems.append(f"the field has no results at --trials {trials} (allowed: {allowed})")
    if problems:
        raise ConfigError(str(loss), problems)
    copy_file(loss, copy)
    data = read_document(find_study(FIELD)).data
    data |= {
        "study": f"challenge_{name}",
        "title": f"{name} against the field",
        "question": f"Where does {name} stand among the losses of {FIELD} after {trials} trials?",
        "rules": {**data["rules"], "trials": [each for each in budgets if each <= trials]},
        "blocks": [{**block, "losses": [name]} for block in data["blocks"]],
        "comparison": {"baseline": name},
        "tables": TABLES,
        "figures": FIGURES,
        "references": {"field": field.as_posix()},
    }
    data.pop("losses", None)
    path = folder / f"{data['study']}.yaml"
    write_text(path, yaml.safe_dump(data, sort_keys=False, width=100))
    return path, copy.parent
