"""Reading the arrangements, names and footnotes; every problem of a file at once."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from benchmark.core.errors import ReferenceDataError, unknown_name
from benchmark.papers.references import published_results

FOLDER = Path(__file__).parent
FIELDS = (
    "row_label",
    "dataset",
    "protocol",
    "backbone",
    "embedding_dim",
    "batch_size",
    "metric",
    "condition",
)
_KEYS = ("title", "sections", "rows", "columns", "read_as")
_PLACES = {"table": "table", "fig": "figure", "text_": "section"}
_FOOTNOTE_KEYS = ("at", "where", "also", "also_where", "text")


@dataclass(frozen=True)
class Arrangement:
    """One printed table: which published columns make its sections, rows and columns.

    read_as     {column: {printed value: the value it is arranged under}}
    deviations  sentences on what our runs of this paper knowingly do otherwise
    """

    paper: str
    table: str
    source: str
    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    sections: tuple[str, ...] = ()
    read_as: dict[str, dict[str, str]] = field(default_factory=dict)
    deviations: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Returns the name of its files: "roadmap2021v2_table1"."""
        return f"{self.paper}_{self.table}"

    @property
    def key(self) -> str:
        """Returns how a study asks for it: "roadmap2021v2/table1"."""
        return f"{self.paper}/{self.table}"

    @property
    def place(self) -> str:
        """Returns where the table stands, for people: "ROADMAP, table 1"."""
        return place(self.paper, self.table)


@functools.cache
def arrangements() -> dict[str, Arrangement]:
    """Returns every arranged table by its key, in the order of the files; raises ReferenceDataError."""
    found: dict[str, Arrangement] = {}
    for path in sorted(FOLDER.glob("*.yaml")):
        if path.stem not in ("names", "footnotes"):
            found.update({each.key: each for each in read_arrangements(path)})
    return found


def arrangements_for(published: tuple[str, ...]) -> list[Arrangement]:
    """Returns the arranged tables among ``published``, the names in a study's references."""
    return [
        each for each in arrangements().values() if each.key in published or each.paper in published
    ]


def read_arrangements(path: Path) -> list[Arrangement]:
    """Returns the arrangements of one paper's file, which is named like the paper in the published results."""
    data = _yaml(path)
    published = results()
    printed = set(published.loc[published["paper"] == path.stem, "table"])
    problems = (
        [] if printed else [unknown_name("paper", path.stem, sorted(set(published["paper"])))]
    )
    tables = data.get("tables") if isinstance(data, dict) else None
    if not isinstance(tables, dict) or "paper" not in data:
        raise _error(path, [*problems, "needs the keys paper (its citation) and tables"])
    for table, entry in tables.items():
        if printed and table not in printed:
            problems.append(f"tables: {unknown_name('table', table, sorted(printed))}")
        problems += [
            f"tables.{table}.{key}: unknown; allowed: {', '.join(_KEYS)}"
            for key in set(entry) - set(_KEYS)
        ]
        problems += [
            f"tables.{table}.{key}: is missing"
            for key in ("title", "rows", "columns")
            if key not in entry
        ]
        asked = [
            *entry.get("sections", []),
            *entry.get("rows", []),
            *entry.get("columns", []),
            *entry.get("read_as", {}),
        ]
        problems += [
            f"tables.{table}: {unknown_name('column', name, FIELDS)}"
            for name in asked
            if name not in FIELDS
        ]
    if problems:
        raise _error(path, problems)
    return [
        Arrangement(
            paper=path.stem,
            table=table,
            source=data["paper"],
            title=entry["title"],
            rows=tuple(entry["rows"]),
            columns=tuple(entry["columns"]),
            sections=tuple(entry.get("sections", ())),
            read_as=entry.get("read_as", {}),
            deviations=tuple(data.get("deviations", ())),
        )
        for table, entry in tables.items()
    ]


@functools.cache
def results() -> pd.DataFrame:
    """Returns the published results, read once; never changed in place."""
    return published_results()


@functools.cache
def names() -> dict[str, dict[str, str]]:
    """Returns {published column: {value: printed name}}, and under "field" the names of the columns themselves."""
    return _yaml(FOLDER / "names.yaml")


def paper_name(paper: str) -> str:
    """Returns a paper for people: "Smooth-AP"."""
    return names()["paper"].get(paper, paper)


def place(paper: str, table: str) -> str:
    """Returns a place in a paper for people: "ROADMAP, table 1", "Smooth-AP, section 6.2"."""
    prefix, word = next(
        ((p, word) for p, word in _PLACES.items() if table.startswith(p)), ("", "table")
    )
    return f"{paper_name(paper)}, {word} {table.removeprefix(prefix)}"


def place_in_short(paper: str, where: str) -> str:
    """Returns the printed place of a claim for people: "section 6.4, table 5" of a paper is "Smooth-AP, table 5"."""
    printed = re.search(r"(table|figure)s? .*", where)
    return f"{paper_name(paper)}, {printed.group() if printed else where}"


@functools.cache
def footnote_rules(path: Path = FOLDER / "footnotes.yaml") -> tuple[dict[str, Any], ...]:
    """Returns the entries of the footnote file, each with the keys at, where, also, also_where and text."""
    table = results()
    known = set(table["paper"] + "/" + table["table"])
    problems, found = [], []
    for number, entry in enumerate(_yaml(path), start=1):
        problems += [
            f"entry {number}, key {key}: unknown; allowed: {', '.join(_FOOTNOTE_KEYS)}"
            for key in set(entry) - set(_FOOTNOTE_KEYS)
        ]
        problems += [
            f"entry {number}, key {key}: {unknown_name('published table', entry.get(key, ''), sorted(known))}"
            for key in ("at", "also")
            if entry.get(key) not in known
        ]
        found.append({"where": {}, "also_where": {}, "text": "", **entry})
    if problems:
        raise _error(path, problems)
    return tuple(found)


def _yaml(path: Path) -> Any:
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ReferenceDataError(f"{path} cannot be read as YAML ({error})") from error


def _error(path: Path, problems: list[str]) -> ReferenceDataError:
    return ReferenceDataError(f"{path}: " + "; ".join(problems))
