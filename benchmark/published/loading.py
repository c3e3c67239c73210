"""Load papers: their files as rows, and what is wrong with them, all at once.

A paper of the user is checked when it is loaded. The papers of this repository are checked by its
tests.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from benchmark.core.documents import Document, read_document
from benchmark.core.errors import ConfigError, Problem, ReferenceDataError, unknown
from benchmark.core.files import adapter
from benchmark.core.options import defaults_of, options_of, worded
from benchmark.core.registry import names_of_parts
from benchmark.losses.catalogue import load_catalogue
from benchmark.metrics.metric import check_metric
from benchmark.published.paper import Papers
from benchmark.published.schema import (
    BATCH_SIZE,
    CLAIM_KEYS,
    COLUMNS,
    COST_METRICS,
    KEYS,
    LARGE,
    MOST_POINTS,
    PRINTED,
    SCORE_UNITS,
    Arm,
    Claim,
    Fact,
    Figure,
    Paper,
    PublishedNumber,
    printed_numbers,
)
from benchmark.published.vocabulary import (
    EMBEDDING_DIM,
    Method,
    Vocabulary,
    load_vocabulary,
    margin_of,
)
from benchmark.study.data_files import (
    CUT,
    FIDELITY,
    PACKAGE,
    PAPER,
    RESULTS,
    UNREADABLE,
    paper_folders,
    read_rows,
)

LARGEST_BATCH = 10**6
NEEDED = {  # keys of a panel by kind of figure
    "sweep": ("x",),
    "gain": ("loss_against",),
    "convergence": (),
    "effect": ("parameter", "first", "second"),
}
DIFFERENT = {"baseline": "loss", "loss_against": "loss", "second": "first"}  # keys of a panel
# The parts of a ``Paper`` that are CSV files, and the name of the file of each part.
ROWS = {"numbers": PublishedNumber, "facts": Fact}
LISTS = ("implied", "outside", "footnotes", "remarks")  # each under its own name in its file
FILES = {part: f"{part}.yaml" for part in (*LISTS, "tables", "claims", "figures")}
FILES |= {"about": PAPER, "numbers": RESULTS, "facts": FIDELITY}
_TWICE = [name for name in COLUMNS if name not in ("value", "std", "n_runs", "unit")]
Problems = Iterator[Problem]


def load_papers() -> Papers:
    """Return all papers by key; raise PaperError with every problem of the user's own."""
    return _load(tuple(paper_folders().values()))


@functools.cache
def _load(folders: tuple[Path, ...]) -> Papers:
    opened = [PaperFolder(path) for path in folders]
    papers = {folder.path.name: folder.paper for folder in opened if folder.paper is not None}
    problems = []
    for folder in opened:
        if folder.path.parent != PACKAGE:
            folder.check(papers)
        problems += folder.problems
    if problems:
        raise PaperError(problems)
    return Papers(papers)


class PaperError(ReferenceDataError):
    """What is wrong with the files of papers."""

    def __init__(self, problems: Iterable[tuple[Path, Problem]]):
        super().__init__("\n".join(f"{path}: {problem}" for path, problem in problems))
        self.problems = [problem for _, problem in problems]


class PaperFolder:
    """The folder of a paper: its problems, and the paper if its files have the right form.

    values     the content of the files that can be read, by part of a ``Paper``
    documents  the YAML files, which know the line of each key
    """

    def __init__(self, path: Path):
        self.path = path
        self.problems: list[tuple[Path, Problem]] = []
        self.values: dict[str, Any] = {}
        self.documents: dict[str, Document] = {}
        for part, name in FILES.items():
            if part in ROWS and (part == "numbers" or (path / name).exists()):
                self._read_rows(part)
            elif (path / name).exists():
                self._read_document(part)
        self.paper = self._paper()

    def check(self, papers: Mapping[str, Paper]) -> None:
        """Add the problems of the paper; ``papers`` are all papers by key."""
        if self.paper is not None:
            for problem in paper_problems(self.paper, papers):
                self._add(problem)

    def _add(self, problem: Problem) -> None:
        """Add a problem whose key begins with a part."""
        part, _, below = problem.key.partition(".")
        if part not in LISTS:
            problem = replace(problem, key=below)
        if part in self.documents:
            problem = self.documents[part].locate(problem)
        elif below:
            number, _, column = below.partition(".")
            row = self.values[part][int(number)]
            problem = replace(problem, key=column, line=row["line"])
        self._say(part, problem)

    def _say(self, part: str, problem: Problem) -> None:
        self.problems.append((self.path / FILES[part], problem))

    def _read_document(self, part: str) -> None:
        try:
            document = read_document(self.path / FILES[part])
        except ConfigError as error:
            for problem in error.problems:
                self._say(part, problem)
            return
        self.documents[part] = document
        self.values[part] = document.data
        if part in LISTS:
            self.values[part] = document.data.get(part)
            for name in document.data:
                for problem in unknown(name, "key", [name], [part]):
                    self._say(part, document.locate(problem))

    def _read_rows(self, part: str) -> None:
        """Read a CSV file, whose columns are the fields of its rows without a default."""
        try:
            header, rows = read_rows(self.path / FILES[part])
        except UNREADABLE as error:
            self._say(part, Problem(f"cannot be read as CSV ({error})", code="invalid_file"))
            return
        kind = ROWS[part]
        required = [name for name in options_of(kind) if name not in defaults_of(kind)]
        versions = part == "numbers" and self.values.get("about", {}).get("versions")
        known = [*required, "version"] if versions else required
        for name in dict.fromkeys([*required, *header]):
            problems = [*unknown(name, "column", [name], known)]
            if name not in header:
                problems.append(Problem("this column is missing", name, code="missing"))
            elif header.count(name) > 1:
                problems.append(Problem("this column comes twice; keep one", name, code="repeated"))
            for problem in problems:
                self._say(part, replace(problem, line=1))
        self.values[part] = []
        for row in rows:
            if CUT in (*row, *row.values()):
                words = f"not {len(header)} fields; quote fields that contain commas"
                self._say(part, Problem(words, "", row["line"], "wrong_number_of_fields"))
            else:
                self.values[part].append(row)

    def _paper(self) -> Paper | None:
        place = {"key": self.path.name, "folder": self.path, "vocabulary": load_vocabulary()}
        try:
            paper: Paper = adapter(Paper).validate_python({**place, **self.values})
        except ValidationError as error:
            for problem in worded(Paper, self.values, error):
                part = problem.key.partition(".")[0]
                absent = problem.code == "missing" and part in ROWS  # said of the header
                if part in self.values and not absent:
                    self._add(problem)
        return None if self.problems else completed(paper)


def completed(paper: Paper) -> Paper:
    """Return a paper whose rows carry what follows from its folder and the vocabulary."""
    words = paper.vocabulary.with_words(paper.about)
    source = paper.source
    claims = {name: claim.resolved(name, source, words) for name, claim in paper.claims.items()}
    figures = {
        name: replace(figure, name=f"{source}_{name}", source=source)
        for name, figure in paper.figures.items()
    }
    return replace(
        paper,
        vocabulary=words,
        numbers=tuple(_completed(number, paper, words) for number in paper.numbers),
        claims=claims,
        figures=figures,
    )


def _completed(number: PublishedNumber, paper: Paper, words: Vocabulary) -> PublishedNumber:
    method = words.methods.get(number.method, Method(number.method))
    number = replace(
        number,
        source=paper.key + number.version,
        loss=method.loss,
        dataset=words.datasets.get(number.dataset, number.dataset),
    )
    means = dict(method.means)
    assumes: list[str] = []
    for entry in paper.implied:
        if number.fits(entry.rows):
            means |= {key: str(word) for key, word in entry.means.items()}
            if entry.effect in LARGE:
                assumes += [f"{key} ({entry.effect})" for key in entry.means]
    reasons = [entry.reason for entry in paper.outside if number.fits(entry.rows)]
    kind = words.kinds["quoted"]
    if number.reproducible:
        table = paper.tables.get(number.table)
        kind = words.kind_of(number.metric, table.kinds if table else ())
    outside = " ".join(reasons[0].split()) if reasons else ""
    dim = {EMBEDDING_DIM: number.embedding_dim} if number.embedding_dim else {}
    stated = {**dim, **number.conditions, **means}
    stated.pop(BATCH_SIZE, None)
    return replace(
        number,
        means=means,
        assumes=tuple(assumes),
        kind=kind,
        elsewhere=paper.about.elsewhere.get(number.table, ""),
        outside=outside,
        required=words.requirements(stated),
    )


# Types cannot check names, nor what several files or papers say together. The key of a problem
# begins with its part and, for a CSV file, the number of the row.


def paper_problems(paper: Paper, papers: Mapping[str, Paper]) -> Problems:
    """Yield what is wrong with a paper whose files are each of the right form.

    ``papers`` are all by key: names are shared, and footnotes name the tables of others.
    """
    words = paper.vocabulary
    leads = [lead for lead in paper.selection[1:] if lead]
    splits = set()
    for number in paper.numbers:
        if number.protocol:
            splits.add(f"{number.dataset}_{number.protocol}")
    others = [other for other in papers.values() if other.key != paper.key]
    yield from _shared_names(paper, others)
    yield from unknown("about.epoch.lead", "split", leads, splits)
    tables = {number.table for number in paper.numbers}
    yield from unknown("about.elsewhere", "table", paper.about.elsewhere, tables)
    yield from _number_problems(paper)
    yield from _choice_problems(paper)
    yield from _meaning_problems(paper)
    yield from _table_problems(paper)
    yield from _footnote_problems(paper, papers)
    for name, claim in paper.claims.items():
        for problem in claim_problems(claim, words, paper.numbers):
            yield problem.below(f"claims.{name}")
    for figure in paper.figures.values():
        yield from figure_problems(figure, words, tables)


def _shared_names(paper: Paper, others: Iterable[Paper]) -> Problems:
    """Yield names of sources, claims and files that others have, too."""
    owners = {}
    for kind in ("table", "figure"):
        for name in names_of_parts(kind):
            owners[kind, name] = "this suite"
    for other in others:
        for source in paper.names.keys() & other.names.keys():
            words = f"'{source}' is a version of {other.key}, too; rename the folder"
            yield Problem(words, "about", code="repeated")
        for name in paper.claims.keys() & other.claims.keys():
            words = f"is the name of a claim of {other.key}, too"
            yield Problem(words, f"claims.{name}", code="repeated")
        owners |= dict.fromkeys(other.made, other.key)
    for (kind, name), key in paper.made.items():
        owner = owners.get((kind, name))
        if owner:
            words = f"is written to {name}, as a {kind} of {owner} is; rename one of the folders"
            yield Problem(words, key, code="repeated")


def _number_problems(paper: Paper) -> Problems:
    first: dict[tuple[Any, ...], int] = {}
    words = paper.vocabulary
    versions = paper.about.versions or [""]
    for at, number in enumerate(paper.numbers):
        key = f"numbers.{at}"
        columns = [number.field(name) for name in _TWICE]
        fact = (*columns, *sorted(number.conditions.items()))
        if first.setdefault(fact, number.line) != number.line:
            repeats = f"repeats line {first[fact]} in every fact; keep one of the two"
            yield Problem(repeats, key, code="repeated")
        if number.is_score:
            for column, points in (("value", number.points), ("std", number.sd_points or 0.0)):
                if not 0 <= points <= MOST_POINTS:
                    advised = "lies outside 0 to 100 points; check its unit (percent or fraction)"
                    yield Problem(advised, f"{key}.{column}", code="out_of_range")
        if number.judged:
            yield from unknown(f"{key}.unit", "unit of scores", [number.unit], SCORE_UNITS)
        yield from unknown(f"{key}.version", "version", [number.version], versions)
        if number.countable and not number.outside:  # no study could ever cover it
            advice = "or say in outside.yaml why no study covers the row"
            kind = "loss" if number.method in words.methods else "method"
            known = set(load_catalogue())
            if kind == "method":
                known |= set(words.methods)
            for problem in unknown(f"{key}.method", kind, [number.loss], known):
                named = f"name its loss under 'methods' of {PAPER}, {advice}"
                yield replace(problem, message=f"{problem.message}; {named}")
            unmeasured = check_metric(number.metric)
            if unmeasured and number.metric not in words.quantities:
                quantities = f"{unmeasured}, {', '.join(words.quantities)}; use one, {advice}"
                yield Problem(quantities, f"{key}.metric", code="unknown_name")
        if number.reproducible:
            conditions = f"{key}.conditions"
            yield from _condition_problems(conditions, number.loss, number.conditions, words)


def _condition_problems(
    key: str, loss: str, conditions: Iterable[str], words: Vocabulary
) -> Problems:
    losses = load_catalogue()
    if loss in losses:
        known = {*words.conditions, *options_of(losses[loss].config)}
        yield from unknown(key, "condition", conditions, known)


def _choice_problems(paper: Paper) -> Problems:
    for part in ("implied", "outside", "remarks"):
        for at, entry in enumerate(getattr(paper, part)):
            key = f"{part}.{at}.rows"
            yield from _chosen_problems(key, entry.rows, paper.numbers, RESULTS, COLUMNS)


def _meaning_problems(paper: Paper) -> Problems:
    known = {*paper.vocabulary.conditions, BATCH_SIZE}
    for loss in load_catalogue().values():
        known |= set(options_of(loss.config))
    for at, entry in enumerate(paper.implied):
        key = f"implied.{at}.means"
        size = entry.means.get(BATCH_SIZE, 1)
        yield from unknown(key, "condition", entry.means, known)
        if type(size) is not int or not 1 <= size <= LARGEST_BATCH:
            words = f"is {size!r}; give a whole number of images"
            yield Problem(words, f"{key}.{BATCH_SIZE}", code="int_type")


def _chosen_problems(
    key: str,
    rows: Mapping[str, Any],
    numbers: Iterable[PublishedNumber],
    table: str,
    known: Iterable[str],
) -> Problems:
    """Yield columns of ``rows`` that are not ``known``, or that no number of ``table`` fits."""
    problems = list(unknown(key, "column", rows, known))
    if not problems and not any(number.fits(rows) for number in numbers):
        problems.append(Problem(f"chooses no row of {table}; check its values", key, code="no_row"))
    yield from problems


def _table_problems(paper: Paper) -> Problems:
    printed = {number.table for number in paper.numbers if number.source == paper.source}
    for name, table in paper.tables.items():
        key = f"tables.{name}"
        yield from unknown(key, "table", [name], printed)
        numbers = paper.table(name)
        if not numbers:
            continue
        yield from unknown(f"{key}.kinds", "kind", table.kinds, paper.vocabulary.kinds)
        known = _arrangeable(numbers)
        columns = (*table.sections, *table.rows, *table.columns)
        yield from unknown(key, "column", (*columns, *table.read_as), known)
        if set(columns) <= known:
            cells: Counter[tuple[str, ...]] = Counter()
            for number in numbers:
                cells[tuple(table.read(number, column) for column in columns)] += 1
            for cell, count in cells.items():
                if count > 1:
                    place = ", ".join(filter(None, cell))
                    words = f"{count} numbers share the cell {place}"
                    advice = "arrange them by a further column"
                    yield Problem(f"{words}; {advice}", key, code="repeated")


def _by_table(numbers: Iterable[PublishedNumber]) -> dict[str, list[PublishedNumber]]:
    by_table = defaultdict(list)
    for number in numbers:
        by_table[f"{number.source}/{number.table}"].append(number)
    return by_table


def _arrangeable(numbers: Iterable[PublishedNumber]) -> set[str]:
    return set(COLUMNS).union(*(number.conditions for number in numbers))


def _footnote_problems(paper: Paper, papers: Mapping[str, Paper]) -> Problems:
    tables = _by_table(row for other in papers.values() for row in other.numbers)
    for number, rule in enumerate(paper.footnotes):
        key = f"footnotes.{number}"
        yield from unknown(f"{key}.at", "table", [rule.at], paper.tables)
        yield from unknown(f"{key}.also", "published table", [rule.also], tables)
        at = paper.table(rule.at) if rule.at in paper.tables else []
        also = tables.get(rule.also, [])
        sides = (
            ("where", rule.where, at, rule.at),
            ("also_where", rule.also_where, also, rule.also),
        )
        for side, rows, numbers, table in sides:
            if numbers:
                known = _arrangeable(numbers)
                yield from _chosen_problems(f"{key}.{side}", rows, numbers, table, known)


def claim_problems(claim: Claim, words: Vocabulary, numbers: Iterable[PublishedNumber]) -> Problems:
    """Yield keys that do not belong to the kind, and unknown losses, metrics and levels."""
    needed, allowed = KEYS[claim.kind]
    for key in CLAIM_KEYS:
        given = getattr(claim, key) not in (None, (), 0.0)
        if key in needed and not given:
            missing = f"is missing; the kind '{claim.kind}' needs it"
            yield Problem(missing, key, code="missing")
        elif given and key not in needed + allowed:
            kinds = [kind for kind, keys in KEYS.items() if key in sum(keys, ())]
            only = f"is only for the kinds {', '.join(kinds)}"
            yield Problem(only, key, code="of_another_kind")
    for arm in claim.arms:
        if PRINTED in arm.where:
            yield from _rival_problems(claim, arm, numbers)
        else:
            yield from unknown("", "loss", [arm.loss], load_catalogue())
            yield from _condition_problems("", arm.loss, [*arm.where, *arm.prefer], words)
    for metric in claim.metrics:
        yield from _metric_problems(claim, metric)
    if not set(claim.metrics) <= set(COST_METRICS) and (claim.margin or 0) > MOST_POINTS:
        most = f"is of scores; write at most {MOST_POINTS} points"
        yield Problem(most, "margin", code="less_than_equal")
    # arms are found by the text of their level
    named = [str(level) for level in (claim.best, *claim.near) if level is not None]
    yield from unknown("", "level", named, claim.level_arms)


def _metric_problems(claim: Claim, metric: str) -> Problems:
    cost = metric in COST_METRICS
    problem = check_metric(metric)
    if claim.kind in ("cost_ratio", "costs"):
        yield from unknown("metrics", "cost", [metric], COST_METRICS)
    elif problem and not cost:
        yield Problem(problem, "metrics", code="unknown_name")
    elif (
        claim.margin is None
        and math.isnan(margin_of(metric))
        and (not cost or claim.kind == "monotone")
    ):
        words = f"'{metric}' has no margin; state one with the key 'margin'"
        yield Problem(words, "metrics", code="missing")


def _rival_problems(claim: Claim, arm: Arm, numbers: Iterable[PublishedNumber]) -> Problems:
    table = str(arm.where[PRINTED])
    if claim.kind not in ("beats", "differs_by") or arm not in claim.second:
        words = "a printed number can only be the second of the kinds 'beats' and 'differs_by'"
        yield Problem(words, code="of_another_kind")
    tables = _by_table(numbers)
    yield from unknown("", "printed table", [table], tables)
    if table not in tables:
        return
    places = [(data, scope.protocol) for scope in claim.published for data in scope.datasets]
    for (dataset, protocol), metric in itertools.product(places, claim.metrics):
        found = printed_numbers(arm, dataset, protocol, metric, tables[table])
        if len(found) != 1:
            place = " ".join(filter(None, (dataset, protocol, metric)))
            words = (
                f"{table} prints {len(found)} numbers of {arm.loss} for {place}; an arm needs one "
                "(embedding_dim separates several)"
            )
            yield Problem(words, code="not_one_number")


def figure_problems(figure: Figure, words: Vocabulary, tables: Iterable[str]) -> Problems:
    """Yield missing keys of panels, and unknown losses, metrics, conditions and tables."""
    for number, panel in enumerate(figure.panels):
        place = f"figures.{figure.name.removeprefix(f'{figure.source}_')}.panels.{number}"
        for key in NEEDED[figure.kind]:
            if not getattr(panel, key):
                missing = f"is missing; a figure of kind '{figure.kind}' needs it"
                yield Problem(missing, f"{place}.{key}", code="missing")
        named = filter(None, (panel.loss, panel.baseline, panel.loss_against))
        yield from unknown(place, "loss", named, load_catalogue())
        for key, other in DIFFERENT.items():
            value = getattr(panel, key)
            if value and value == getattr(panel, other):
                same = f"is '{value}', as '{other}' is; name another, or leave it out"
                yield Problem(same, f"{place}.{key}", code="repeated")
        problem = check_metric(panel.metric)
        if problem:
            yield Problem(problem, f"{place}.metric", code="unknown_name")
        axis = (*panel.x.split(" - "), panel.parameter)
        names = [name for name in axis if name not in ("", BATCH_SIZE)]
        yield from _condition_problems(f"{place}.x", panel.loss, names, words)
        if panel.published:
            yield from unknown(f"{place}.published.table", "table", [panel.published.table], tables)
