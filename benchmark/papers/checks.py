"""What types cannot check in a paper's files: names of tables, columns, losses, metrics, levels.

A paper of the user's is checked when it is loaded; those of this repository by ``validate``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from benchmark.core.errors import unknown_name
from benchmark.core.registry import registered_names
from benchmark.losses.catalogue import LossFacts, load_catalogue
from benchmark.metrics.names import check_metric
from benchmark.papers.arrangements import BATCH_SIZE, NEEDED, Figure
from benchmark.papers.claims.model import (
    COST_METRICS,
    KEYS,
    MOST_POINTS,
    PRINTED,
    Claim,
    rival_problems,
)
from benchmark.papers.margins import load_margins, margin_of
from benchmark.papers.numbers import COLUMNS, PublishedNumber
from benchmark.papers.vocabulary import Vocabulary
from benchmark.study.data_files import PAPER

if TYPE_CHECKING:
    from benchmark.papers.paper import Paper

LARGEST_BATCH = 10**6
_TWICE = [name for name in COLUMNS if name not in ("value", "std", "n_runs", "unit")]


def paper_problems(paper: Paper, papers: Mapping[str, Paper]) -> list[str]:
    """Return what is wrong with a paper whose files are each of the right form.

    ``papers`` are all by key: names are shared, and footnotes name the tables of others.
    """
    lines = {
        PAPER: version_problems(paper, papers),
        "results.csv": number_problems(paper),
        "implied.yaml": meaning_problems(paper),
        "outside.yaml": row_problems(paper, "outside", [each.rows for each in paper.outside]),
        "tables.yaml": table_problems(paper),
        "footnotes.yaml": footnote_problems(paper, papers),
        "claims.yaml": claims_problems(paper, papers),
        "figures.yaml": figures_problems(paper),
    }
    found = [
        f"{paper.folder / name}{',' if name.endswith('csv') else ':'} {line}"
        for name, part in lines.items()
        for line in part
    ]
    return found + list(shared_file_problems(paper, papers))


def version_problems(paper: Paper, papers: Mapping[str, Paper]) -> Iterator[str]:
    """Yield versions that have the name of another paper, or of a version of it."""
    for key, other in papers.items():
        for source in set(paper.names) & set(other.names) if key != paper.key else ():
            yield f"'{source}' is a version of {key}, too; rename the folder"


def number_problems(paper: Paper) -> Iterator[str]:
    """Yield scores out of range, rows that stand twice, and what no run can ever have."""
    first: dict[tuple[Any, ...], int] = {}
    losses = load_catalogue()
    for each in paper.numbers:
        scores = {"value": each.points, "std": each.sd_points or 0.0} if each.is_score else {}
        for column, points in scores.items():
            if not 0 <= points <= 100:
                yield (
                    f"line {each.line}, column {column}: lies outside 0 to 100 points; "
                    "check its unit (percent or fraction)"
                )
        key = (*(each.field(name) for name in _TWICE), *sorted(each.conditions.items()))
        if first.setdefault(key, each.line) != each.line:
            yield f"line {each.line} repeats line {first[key]} in every fact; keep one of the two"
        if each.version not in (paper.about.versions or [""]):
            words = unknown_name("version", each.version, paper.about.versions)
            yield f"line {each.line}, column version: {words}"
        if each.countable and not each.outside:
            yield from (f"line {each.line}, {line}" for line in cover_problems(each, losses, paper))
        if each.reproducible:
            lines = condition_problems(losses, each.loss, each.conditions, paper.vocabulary)
            yield from (f"line {each.line}, column conditions: {line}" for line in lines)


def cover_problems(
    number: PublishedNumber, losses: Mapping[str, LossFacts], paper: Paper
) -> Iterator[str]:
    """Yield the words for which no study could ever cover a number that studies are to cover."""
    advice = "or say in outside.yaml why no study covers the row"
    words = paper.vocabulary
    if number.loss not in losses:
        named = number.method in words.methods
        known = losses if named else {*losses, *words.methods}
        unknown = unknown_name("loss" if named else "method", number.loss, known)
        yield f"column method: {unknown}; name its loss under 'methods' of {PAPER}, {advice}"
    problem = check_metric(number.metric)
    if problem and number.metric not in words.quantities:
        yield f"column metric: {problem}, {', '.join(words.quantities)}; use one, {advice}"


def condition_problems(
    losses: Mapping[str, LossFacts], loss: str, conditions: Iterable[str], words: Vocabulary
) -> Iterator[str]:
    """Yield what is neither a condition of the vocabulary nor a hyperparameter of the loss."""
    if loss in losses:
        known = {*words.conditions, *losses[loss].schema.get("properties", {})}
        for key in conditions:
            if key not in known:
                yield unknown_name("condition", key, known)


def row_problems(paper: Paper, name: str, entries: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield unknown columns, and entries that choose no row at all."""
    for number, rows in enumerate(entries):
        lines = chosen_problems(rows, paper.numbers, "results.csv", COLUMNS)
        yield from (f"{name}.{number}.rows  {line}" for line in lines)


def meaning_problems(paper: Paper) -> Iterator[str]:
    """Yield what rows cannot mean: no condition of any run, and batch sizes that are none."""
    yield from row_problems(paper, "implied", [each.rows for each in paper.implied])
    options = {key for each in load_catalogue().values() for key in each.schema["properties"]}
    known = {*paper.vocabulary.conditions, *options, BATCH_SIZE}
    for number, entry in enumerate(paper.implied):
        place = f"implied.{number}.means"
        for key in entry.means:
            if key not in known:
                yield f"{place}  {unknown_name('condition', key, known)}"
        size = entry.means.get(BATCH_SIZE, 1)
        if type(size) is not int or not 1 <= size <= LARGEST_BATCH:
            yield f"{place}.{BATCH_SIZE}  is {size!r}; give a whole number of images"


def chosen_problems(
    rows: Mapping[str, Any], numbers: Iterable[PublishedNumber], place: str, known: Iterable[str]
) -> Iterator[str]:
    """Yield columns of ``rows`` that are not ``known``, or that no number of ``place`` fits."""
    known = list(known)
    unknown = [column for column in rows if column not in known]
    yield from (unknown_name("column", column, known) for column in unknown)
    if not unknown and not any(each.fits(rows) for each in numbers):
        yield f"chooses no row of {place}; check its values"


def table_problems(paper: Paper) -> Iterator[str]:
    """Yield unknown tables, and columns that the table does not have."""
    printed = {each.table for each in paper.numbers if each.source == paper.source}
    for name, table in paper.tables.items():
        if name not in printed:
            yield f"{name}  {unknown_name('table', name, printed)}"
            continue
        numbers = paper.table(name)
        known = arrangeable(numbers)
        columns = (*table.sections, *table.rows, *table.columns)
        for column in (*columns, *table.read_as):
            if column not in known:
                yield f"{name}  {unknown_name('column', column, known)}"
        if set(columns) <= known:
            cells = Counter(
                tuple(table.read(each, column) for column in columns) for each in numbers
            )
            for cell, count in cells.items():
                if count > 1:
                    yield (
                        f"{name}  {count} numbers share the cell {', '.join(filter(None, cell))}; "
                        "arrange them by a further column"
                    )


def arrangeable(numbers: Iterable[PublishedNumber]) -> set[str]:
    """Return the columns of some rows of a table, and the conditions that they state."""
    return {*COLUMNS, *(key for each in numbers for key in each.conditions)}


def footnote_problems(paper: Paper, papers: Mapping[str, Paper]) -> Iterator[str]:
    """Yield footnotes at or about tables that are not there, or at none of their rows."""
    tables: dict[str, list[PublishedNumber]] = {}
    for each in papers.values():
        for row in each.numbers:
            tables.setdefault(f"{row.source}/{row.table}", []).append(row)
    for number, rule in enumerate(paper.footnotes):
        place = f"footnotes.{number}"
        if rule.at not in paper.tables:
            yield f"{place}.at  {unknown_name('table', rule.at, paper.tables)}"
        elif there := paper.table(rule.at):  # else tables.yaml is wrong
            lines = chosen_problems(rule.where, there, rule.at, arrangeable(there))
            yield from (f"{place}.where  {line}" for line in lines)
        if rule.also not in tables:
            yield f"{place}.also  {unknown_name('published table', rule.also, tables)}"
        else:
            there = tables[rule.also]
            lines = chosen_problems(rule.also_where, there, rule.also, arrangeable(there))
            yield from (f"{place}.also_where  {line}" for line in lines)


def shared_file_problems(paper: Paper, papers: Mapping[str, Paper]) -> Iterator[str]:
    """Yield tables and figures whose files others make, too: one would replace the other."""
    for kind in ("table", "figure"):
        names = registered_names(f"{kind.upper()}S", f"report/{kind}s")
        owners = dict.fromkeys(names, "this suite")
        for other in papers.values():
            if other.key != paper.key:
                owners |= dict.fromkeys(other.files(kind), other.key)
        for name in paper.files(kind):
            if owner := owners.get(name):
                place = f"{paper.folder}/{kind}s.yaml: {name.removeprefix(f'{paper.source}_')}"
                words = f"is written to {name}, as a {kind} of {owner} is"
                yield f"{place}  {words}; rename one of the folders"


def claims_problems(paper: Paper, papers: Mapping[str, Paper]) -> Iterator[str]:
    """Yield what is wrong with each claim, and names that claims of other papers have."""
    owners = {
        each.name: key for key, other in papers.items() if key != paper.key for each in other.claims
    }
    for claim in paper.claims:
        yield from claim_problems(claim, paper.vocabulary, paper.numbers)
        if owner := owners.get(claim.name):
            yield f"{claim.name}  is the name of a claim of {owner}, too"


def figures_problems(paper: Paper) -> Iterator[str]:
    """Yield what is wrong with each figure."""
    tables = {each.table for each in paper.numbers}
    for figure in paper.figures:
        name = figure.name.removeprefix(f"{paper.source}_")
        for line in figure_problems(figure, paper.vocabulary, tables):
            yield f"{name}.{line}"


def claim_problems(
    claim: Claim, words: Vocabulary, numbers: Iterable[PublishedNumber]
) -> Iterator[str]:
    """Yield keys that do not belong to the kind, and unknown losses, metrics and levels.

    ``numbers``: those that its arms may be held against.
    """
    needed, allowed = KEYS[claim.kind]
    optional = {key for keys in KEYS.values() for part in keys for key in part}
    for key in sorted(optional):
        value = getattr(claim, key)
        given = value is not None and value != () and value != 0.0
        if key in needed and not given:
            yield f"{claim.name}.{key}  is missing; the kind '{claim.kind}' needs it"
        elif given and key not in (*needed, *allowed):
            kinds = [kind for kind, keys in KEYS.items() if key in (*keys[0], *keys[1])]
            yield f"{claim.name}.{key}  is only for the kinds {', '.join(kinds)}"
    losses = load_catalogue()
    for arm in claim.arms:
        if PRINTED in arm.where:
            yield from rival_problems(claim, arm, numbers)
            continue
        if arm.loss not in losses:
            yield f"{claim.name}  {unknown_name('loss', arm.loss, losses)}"
        named = [*arm.where, *arm.prefer]
        for line in condition_problems(losses, arm.loss, named, words):
            yield f"{claim.name}  {line}"
    for metric in claim.metrics:
        problem = check_metric(metric)
        if claim.kind == "cost_ratio" or metric in COST_METRICS:
            known = metric in COST_METRICS
            problem = None if known else unknown_name("cost", metric, COST_METRICS)
            if claim.kind == "monotone" and claim.margin is None:
                problem = f"'{metric}' has no margin; state one with the key 'margin'"
        elif claim.margin is None and problem is None and margin_of(metric, load_margins()) is None:
            problem = f"'{metric}' has no margin; state one in points with the key 'margin'"
        if problem:
            yield f"{claim.name}.metrics  {problem}"
    scores = [metric for metric in claim.metrics if metric not in COST_METRICS]
    if scores and claim.margin is not None and claim.margin > MOST_POINTS:
        yield f"{claim.name}.margin  is of scores; write at most {MOST_POINTS} points"
    # by their text, as their arms are found
    levels = [str(value) for value in (claim.levels.values if claim.levels else ())]
    for level in (*filter(lambda best: best is not None, (claim.best,)), *claim.near):
        if str(level) not in levels:
            yield f"{claim.name}  {unknown_name('level', str(level), levels)}"


def figure_problems(figure: Figure, words: Vocabulary, tables: Iterable[str]) -> Iterator[str]:
    """Yield missing keys of panels, and unknown losses, metrics, conditions and tables."""
    losses, known_tables = load_catalogue(), set(tables)
    for number, panel in enumerate(figure.panels):
        place = f"panels.{number}"
        for key in NEEDED[figure.kind]:
            if not getattr(panel, key):
                yield f"{place}.{key}  is missing; a figure of kind '{figure.kind}' needs it"
        for loss in filter(None, (panel.loss, panel.baseline, panel.loss_against)):
            if loss not in losses:
                yield f"{place}  {unknown_name('loss', loss, losses)}"
        for key in ("baseline", "loss_against"):
            if getattr(panel, key) == panel.loss:
                yield f"{place}.{key}  is the loss of the panel; name another, or leave it out"
        if panel.first and panel.first == panel.second:
            yield f"{place}.second  is '{panel.first}', as the first; name another word"
        if problem := check_metric(panel.metric):
            yield f"{place}.metric  {problem}"
        axis = [name for name in (*panel.x.split(" - "), panel.parameter) if name]
        names = [name for name in axis if name != BATCH_SIZE]
        lines = condition_problems(losses, panel.loss, names, words)
        yield from (f"{place}.x  {line}" for line in lines)
        if panel.published and panel.published.table not in known_tables:
            problem = unknown_name("table", panel.published.table, known_tables)
            yield f"{place}.published.table  {problem}"
