"""What types cannot check in a paper's files: names of tables, columns, losses, metrics, levels.

A paper of the user's is checked when it is loaded; those of this repository by ``validate``.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from benchmark.core.errors import unknown_name
from benchmark.core.options import options_of
from benchmark.core.registry import names_of_parts
from benchmark.losses.catalogue import load_catalogue
from benchmark.metrics.metric import check_metric
from benchmark.papers.claims import (
    COST_METRICS,
    KEYS,
    MOST_POINTS,
    PRINTED,
    Arm,
    Claim,
    printed_numbers,
)
from benchmark.papers.numbers import BATCH_SIZE, COLUMNS, Figure, PublishedNumber
from benchmark.papers.vocabulary import Vocabulary, margin_of
from benchmark.study.data_files import PAPER

if TYPE_CHECKING:
    from benchmark.papers.paper import Implied, Outside, Paper, Remark

LARGEST_BATCH = 10**6
NEEDED = {  # keys of a panel by kind of figure
    "sweep": ("x",),
    "gain": ("loss_against",),
    "convergence": (),
    "effect": ("parameter", "first", "second"),
}
_TWICE = [name for name in COLUMNS if name not in ("value", "std", "n_runs", "unit")]
Lines = Iterator[str]


def paper_problems(paper: Paper, papers: Mapping[str, Paper]) -> list[str]:
    """Return what is wrong with a paper whose files are each of the right form.

    ``papers`` are all by key: names are shared, and footnotes name the tables of others.
    """
    others = {key: other for key, other in papers.items() if key != paper.key}
    words, tables = paper.vocabulary, {each.table for each in paper.numbers}
    leads = [lead for lead in paper.selection[1:] if lead]
    splits = {f"{each.dataset}_{each.protocol}" for each in paper.numbers if each.protocol}
    lines: dict[str, Iterable[str]] = {
        PAPER: (
            *(
                f"'{source}' is a version of {key}, too; rename the folder"
                for key, other in others.items()
                for source in set(paper.names) & set(other.names)
            ),
            *_unknown("epoch.lead  ", "split", leads, splits),
        ),
        "results.csv": _number_problems(paper),
        "implied.yaml": _meaning_problems(paper),
        "outside.yaml": _row_problems(paper, "outside", paper.outside),
        "remarks.yaml": _row_problems(paper, "remarks", paper.remarks),
        "tables.yaml": _table_problems(paper),
        "footnotes.yaml": _footnote_problems(paper, papers),
        "claims.yaml": (
            line
            for claim in paper.claims
            for line in (
                *claim_problems(claim, words, paper.numbers),
                *(
                    f"{claim.name}  is the name of a claim of {key}, too"
                    for key, other in others.items()
                    if claim.name in (each.name for each in other.claims)
                ),
            )
        ),
        "figures.yaml": (
            f"{figure.name.removeprefix(f'{paper.source}_')}.{line}"
            for figure in paper.figures
            for line in figure_problems(figure, words, tables)
        ),
    }
    found = [
        f"{paper.folder / name}{',' if name.endswith('csv') else ':'} {line}"
        for name, part in lines.items()
        for line in part
    ]
    for kind in ("table", "figure"):  # whose files others make, too: one would replace the other
        names = names_of_parts(kind)
        owners = dict.fromkeys(names, "this suite")
        for other in others.values():
            owners |= dict.fromkeys(other.files(kind), other.key)
        found += [
            f"{paper.folder}/{kind}s.yaml: {name.removeprefix(f'{paper.source}_')}  is written to "
            f"{name}, as a {kind} of {owners[name]} is; rename one of the folders"
            for name in paper.files(kind)
            if name in owners
        ]
    return found


def _unknown(place: str, kind: str, names: Iterable[Any], known: Iterable[str]) -> Lines:
    """Yield each of ``names`` that is not ``known``, with the nearest one that is."""
    known = list(known)
    yield from (f"{place}{unknown_name(kind, name, known)}" for name in names if name not in known)


def _number_problems(paper: Paper) -> Lines:
    first: dict[tuple[Any, ...], int] = {}
    losses, words, versions = load_catalogue(), paper.vocabulary, paper.about.versions or [""]
    advice = "or say in outside.yaml why no study covers the row"
    for each in paper.numbers:
        place = f"line {each.line}, column"
        scores = {"value": each.points, "std": each.sd_points or 0.0} if each.is_score else {}
        for column, points in scores.items():
            if not 0 <= points <= 100:
                advised = "check its unit (percent or fraction)"
                yield f"{place} {column}: lies outside 0 to 100 points; {advised}"
        key = (*(each.field(name) for name in _TWICE), *sorted(each.conditions.items()))
        if first.setdefault(key, each.line) != each.line:
            yield f"line {each.line} repeats line {first[key]} in every fact; keep one of the two"
        yield from _unknown(f"{place} version: ", "version", [each.version], versions)
        if each.countable and not each.outside:  # no study could ever cover it
            named = each.method in words.methods
            known = losses if named else {*losses, *words.methods}
            for line in _unknown("", "loss" if named else "method", [each.loss], known):
                yield f"{place} method: {line}; name its loss under 'methods' of {PAPER}, {advice}"
            problem = check_metric(each.metric)
            if problem and each.metric not in words.quantities:
                yield f"{place} metric: {problem}, {', '.join(words.quantities)}; use one, {advice}"
        if each.reproducible:
            yield from _condition_problems(
                f"{place} conditions: ", each.loss, each.conditions, words
            )


def _condition_problems(
    place: str, loss: str, conditions: Iterable[str], words: Vocabulary
) -> Lines:
    if loss in (losses := load_catalogue()):
        known = {*words.conditions, *options_of(losses[loss].config)}
        yield from _unknown(place, "condition", conditions, known)


def _row_problems(paper: Paper, name: str, entries: Iterable[Implied | Outside | Remark]) -> Lines:
    for at, entry in enumerate(entries):
        place = f"{name}.{at}.rows  "
        yield from _chosen_problems(place, entry.rows, paper.numbers, "results.csv", COLUMNS)


def _meaning_problems(paper: Paper) -> Lines:
    yield from _row_problems(paper, "implied", paper.implied)
    options = {key for each in load_catalogue().values() for key in options_of(each.config)}
    known = {*paper.vocabulary.conditions, *options, BATCH_SIZE}
    for at, entry in enumerate(paper.implied):
        place, size = f"implied.{at}.means", entry.means.get(BATCH_SIZE, 1)
        yield from _unknown(f"{place}  ", "condition", entry.means, known)
        if type(size) is not int or not 1 <= size <= LARGEST_BATCH:
            yield f"{place}.{BATCH_SIZE}  is {size!r}; give a whole number of images"


def _chosen_problems(
    place: str,
    rows: Mapping[str, Any],
    numbers: Iterable[PublishedNumber],
    table: str,
    known: Iterable[str],
) -> Lines:
    """Yield columns of ``rows`` that are not ``known``, or that no number of ``table`` fits."""
    lines = list(_unknown(place, "column", rows, known))
    if not lines and not any(each.fits(rows) for each in numbers):
        lines.append(f"{place}chooses no row of {table}; check its values")
    yield from lines


def _table_problems(paper: Paper) -> Lines:
    printed = {each.table for each in paper.numbers if each.source == paper.source}
    for name, table in paper.tables.items():
        yield from _unknown(f"{name}  ", "table", [name], printed)
        if numbers := paper.table(name):
            known = _arrangeable(numbers)
            columns = (*table.sections, *table.rows, *table.columns)
            yield from _unknown(f"{name}  ", "column", (*columns, *table.read_as), known)
            cells = Counter(tuple(table.read(each, key) for key in columns) for each in numbers)
            yield from (
                f"{name}  {count} numbers share the cell {', '.join(filter(None, cell))}; "
                "arrange them by a further column"
                for cell, count in cells.items()
                if count > 1 and set(columns) <= known
            )


def _arrangeable(numbers: Iterable[PublishedNumber]) -> set[str]:
    return {*COLUMNS, *(key for each in numbers for key in each.conditions)}


def _footnote_problems(paper: Paper, papers: Mapping[str, Paper]) -> Lines:
    tables: dict[str, list[PublishedNumber]] = {}
    for row in (row for each in papers.values() for row in each.numbers):
        tables.setdefault(f"{row.source}/{row.table}", []).append(row)
    for number, rule in enumerate(paper.footnotes):
        place = f"footnotes.{number}."
        yield from _unknown(f"{place}at  ", "table", [rule.at], paper.tables)
        yield from _unknown(f"{place}also  ", "published table", [rule.also], tables)
        at = paper.table(rule.at) if rule.at in paper.tables else []
        sides = (
            ("where", rule.where, at, rule.at),
            ("also_where", rule.also_where, tables.get(rule.also, []), rule.also),
        )
        for side, where, there, table in sides:
            if there:
                known = _arrangeable(there)
                yield from _chosen_problems(f"{place}{side}  ", where, there, table, known)


def claim_problems(claim: Claim, words: Vocabulary, numbers: Iterable[PublishedNumber]) -> Lines:
    """Yield keys that do not belong to the kind, and unknown losses, metrics and levels."""
    name, needed, allowed = claim.name, *KEYS[claim.kind]
    for key in sorted({key for keys in KEYS.values() for part in keys for key in part}):
        given = getattr(claim, key) not in (None, (), 0.0)
        if key in needed and not given:
            yield f"{name}.{key}  is missing; the kind '{claim.kind}' needs it"
        elif given and key not in (*needed, *allowed):
            kinds = [kind for kind, keys in KEYS.items() if key in (*keys[0], *keys[1])]
            yield f"{name}.{key}  is only for the kinds {', '.join(kinds)}"
    for arm in claim.arms:
        if PRINTED in arm.where:
            yield from _rival_problems(claim, arm, list(numbers))
            continue
        yield from _unknown(f"{name}  ", "loss", [arm.loss], load_catalogue())
        yield from _condition_problems(f"{name}  ", arm.loss, [*arm.where, *arm.prefer], words)
    for metric in claim.metrics:
        problem, cost = check_metric(metric), metric in COST_METRICS
        if claim.kind in ("cost_ratio", "costs") or cost:
            problem = None if cost else unknown_name("cost", metric, COST_METRICS)
            if claim.kind == "monotone" and claim.margin is None:
                problem = f"'{metric}' has no margin; state one with the key 'margin'"
        elif claim.margin is None and problem is None and margin_of(metric) is None:
            problem = f"'{metric}' has no margin; state one in points with the key 'margin'"
        if problem:
            yield f"{name}.metrics  {problem}"
    if not set(claim.metrics) <= set(COST_METRICS) and (claim.margin or 0) > MOST_POINTS:
        yield f"{name}.margin  is of scores; write at most {MOST_POINTS} points"
    # by their text, as their arms are found
    named = [str(each) for each in (claim.best, *claim.near) if each is not None]
    yield from _unknown(f"{name}  ", "level", named, claim.level_arms)


def _rival_problems(claim: Claim, arm: Arm, numbers: list[PublishedNumber]) -> Lines:
    table = str(arm.where[PRINTED])
    if claim.kind not in ("beats", "differs_by") or arm not in claim.second:
        kinds = "the kinds 'beats' and 'differs_by'"
        yield f"{claim.name}  a printed number can only be the second of {kinds}"
    tables = {f"{each.source}/{each.table}" for each in numbers}
    unknown = list(_unknown(f"{claim.name}  ", "printed table", [table], tables))
    yield from unknown
    rows = [each for each in numbers if f"{each.source}/{each.table}" == table]
    places = [(data, scope.protocol) for scope in claim.published for data in scope.datasets]
    for place in () if unknown else itertools.product(places, claim.metrics):
        (dataset, protocol), metric = place
        found = printed_numbers(arm, dataset, protocol, metric, rows)
        if len(found) != 1:
            yield (
                f"{claim.name}  {table} prints {len(found)} numbers of {arm.loss} for "
                f"{' '.join(filter(None, (dataset, protocol, metric)))}; an arm needs one "
                "(embedding_dim separates several)"
            )


def figure_problems(figure: Figure, words: Vocabulary, tables: Iterable[str]) -> Lines:
    """Yield missing keys of panels, and unknown losses, metrics, conditions and tables."""
    for number, panel in enumerate(figure.panels):
        place, problem = f"panels.{number}", check_metric(panel.metric)
        for key in NEEDED[figure.kind]:
            if not getattr(panel, key):
                yield f"{place}.{key}  is missing; a figure of kind '{figure.kind}' needs it"
        named = filter(None, (panel.loss, panel.baseline, panel.loss_against))
        yield from _unknown(f"{place}  ", "loss", named, load_catalogue())
        for key in ("baseline", "loss_against"):
            if getattr(panel, key) == panel.loss:
                yield f"{place}.{key}  is the loss of the panel; name another, or leave it out"
        if panel.first and panel.first == panel.second:
            yield f"{place}.second  is '{panel.first}', as the first; name another word"
        if problem:
            yield f"{place}.metric  {problem}"
        axis = (*panel.x.split(" - "), panel.parameter)
        names = [name for name in axis if name not in ("", BATCH_SIZE)]
        yield from _condition_problems(f"{place}.x  ", panel.loss, names, words)
        printed = [panel.published.table] if panel.published else []
        yield from _unknown(f"{place}.published.table  ", "table", printed, tables)
