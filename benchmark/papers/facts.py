"""What papers and their authors' code say about the values of recipes: ``fidelity.csv``.

The file lies in a paper's folder. The one beside this module holds values of no paper.
"""

from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator

from benchmark.core.plain import YamlError, parse_yaml
from benchmark.papers.numbers import Text
from benchmark.papers.reading import read_csv

FACTS = "fidelity.csv"
# The change of a score that a deviation is expected to make, in points; judged, not measured.
Effect = Literal["none", "below 0.3", "0.3 to 1", "above 1"]
LARGE: tuple[Effect, ...] = ("0.3 to 1", "above 1")


def _as_in_recipes(value: str) -> str:
    """Return a text that is empty or a value as recipes have them, with which it is compared."""
    try:
        if not value or parse_yaml(value).lines:
            return value
        problem = "blank or a comment"
    except YamlError as error:
        problem = str(error)
    raise ValueError(f"is no value of a recipe ({problem}); put a text into quotes")


Stated = Annotated[str, BeforeValidator(_as_in_recipes)]


@dataclass(frozen=True)
class Fact:
    """A row of ``fidelity.csv``.

    recipe     names of recipes, with * for any part; several are separated by spaces
    item       keys such as optimizer.lr, losses.roadmap.delta or options.sota.input.resize
    paper      what the paper states, and ``stated_in`` where; empty: it does not
    code       what the authors' code does; empty: it does not say, or there is none
    effect     of the difference on a score, in points
    """

    recipe: Text
    item: Text
    paper: Stated
    stated_in: str
    code: Stated
    effect: Effect
    reason: str
    line: int = 0

    def is_of(self, recipe: str) -> bool:
        """Return whether the row holds for this recipe."""
        return any(fnmatch(recipe, each) for each in self.recipe.split())

    def is_about(self, item: str) -> bool:
        """Return whether the row holds for this value."""
        return any(fnmatch(item, each) for each in self.item.split())


def read_facts(folder: Path, problems: list[str]) -> tuple[Fact, ...]:
    """Return the facts of a folder, none without a file; add what is wrong to ``problems``."""
    path = folder / FACTS
    return tuple(read_csv(path, Fact, problems)) if path.exists() else ()


def common_facts() -> tuple[Fact, ...]:
    """Return the facts that hold for the recipes of every paper."""
    return read_facts(Path(__file__).parent, [])
