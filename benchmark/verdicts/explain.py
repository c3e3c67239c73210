"""Verdicts as text: the rule, drifted numbers, counts, and the calculation behind one verdict."""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Iterable, Sequence
from math import isfinite, isnan
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined

from benchmark.core.errors import ConfigError
from benchmark.metrics.metric import display_name
from benchmark.published.laboratories import known_of_laboratories
from benchmark.runs.run_table import RunTable
from benchmark.stats.reproduction import (
    ALPHA,
    DRIFTED,
    MARKS,
    STANDARD_ERRORS,
    STANDING,
    applies,
    compare,
)
from benchmark.verdicts.pair_tests.equivalence import evidence_of, reasons, tests_of
from benchmark.verdicts.pairs import Pair, frame_of
from benchmark.verdicts.verdicts import (
    BY_TEST,
    EPOCHS,
    FROZEN,
    PRINT_IN_CLAIMS,
    VERDICTS,
    by_source,
)

QUESTIONS = (
    "The verdict answers whether our runs and the reference differ by more than the margin. "
    "Standing answers whether the printed number is one that the method does not give, whoever "
    "trains it: the verdict is the same where laboratories differ by 0.5 points, an assumption, "
    "and where the value is the best of three runs."
)


def rule(level: float = ALPHA) -> str:
    """Return the rule of all verdicts that are tested at ``level``."""
    looks = ""
    if level < ALPHA:
        looks = f"; several looks are planned, which together are wrong in at most {ALPHA:.0%}"
    return (
        f"reproduced: {100 * (1 - 2 * level):g}% interval of ours - reference inside the margin; "
        f"drifted: beyond the margin by a one-sided test at {100 * level:g}% after Holm over the "
        f"table; else inconclusive{looks}"
    )


def standing(row: Any) -> str:
    """Return whether and how far a verdict stands, in words; "" for a verdict without marks."""
    if row.stands is None:
        return ""
    broken = [name for name in row.changes_under.split() if name in STANDING]
    words = f"does not stand under {' and '.join(broken)}" if broken else "stands"
    if isfinite(row.tip_laboratory):
        words += f", holds up to laboratories {row.tip_laboratory:.1f} points apart"
    return words


def drifted_messages(verdicts: pd.DataFrame) -> list[str]:
    """Return one message per drifted number: cell, both values, difference and why."""

    def score(mean: float, sd: float, n: float) -> str:
        if pd.isna(mean):
            return f"no score (n {n:.0f})"
        spread = "" if pd.isna(sd) else f"sd {sd:.2f}, "
        return f"{mean:.2f} ({spread}n {n:.0f})"

    messages = []
    for row in _rows(verdicts[verdicts["verdict"] == DRIFTED]):
        source = row.source if row.source == row.table else f"{row.source} {row.table}"
        reference_n = row.reference_n
        beside = ""
        if pd.isna(reference_n):
            reference_n = 1
            beside = ", stated as one value"
        theirs = score(row.reference_mean, row.reference_sd, reference_n)
        verdict = f"{row.verdict} {row.direction}".strip()
        parts = [
            f"{row.dataset}/{row.setting}/{row.loss}/bs{row.batch_size:.0f} {row.split} "
            f"{row.metric}",
            f"ours {score(row.ours_mean, row.ours_sd, row.ours_n)}",
            f"{source} {theirs}{beside}",
            "" if pd.isna(row.difference) else f"difference {row.difference:+.2f}",
            f"{verdict}: {row.reason}",
            standing(row),
        ]
        messages.append("  ".join(filter(None, parts)))
    return messages


def summary_text(verdicts: pd.DataFrame) -> str:
    """Return the counts per table, every drifted number and the rule, as text for a terminal."""
    if verdicts.empty:
        return "this study compares losses: it names no printed numbers and no frozen runs"
    lines = []
    for heading, words, meanings in by_source(verdicts):
        lines.append(heading)
        lines += [f"  {(words == word).sum():4d} {word}: {meanings[word]}" for word in meanings]
    counts = pd.crosstab([verdicts["source"], verdicts["table"]], verdicts["verdict"])
    lines += ["", counts.reindex(columns=list(VERDICTS), fill_value=0).to_string()]
    lines += ["", f"rule: {rule(verdicts['level'].min())}"]
    drifts = (verdicts["verdict"] == DRIFTED).sum()
    if drifts:
        lines += [QUESTIONS, f"{fails(verdicts).sum()} of {drifts} drifts stand"]
    if interim := int(verdicts["interim"].sum()):
        lines.append(f"interim: {interim} of them, whose runs have not all ended: nothing is final")
    if drifted := drifted_messages(verdicts):
        lines += ["", *(f"drifted: {message}" for message in drifted)]
    return "\n".join(lines)


def fails(verdicts: pd.DataFrame) -> pd.Series[bool]:
    """Return which rows are drifts that stand. A drift by divergence always stands."""
    return (verdicts["verdict"] == DRIFTED) & verdicts["stands"].ne(False)


def find_verdicts(verdicts: pd.DataFrame, words: str) -> pd.DataFrame:
    """Return the verdicts that every word of ``words`` fits; raise ConfigError with near names.

    Words are separated by "/", in any order and number. They are words of a printed table
    (roadmap2021v2/table1/SmoothAP) or of runs (glyphs_1k/sup_ap/bs32/map_at_r). A word fits a field
    that equals it, letter case and signs apart. A word with "*" is a pattern. A word that equals no
    field fits each field that it is a part of.
    """
    if verdicts.empty:
        why = "there are no verdicts: the study names no references, or nothing of it has been run"
        advice = "'python -m benchmark check STUDY' says which"
        raise ConfigError(f"cell {words}", [f"{why}; {advice}"])
    names = []
    for row in _rows(verdicts):
        fields = (*_fields(row), row.row_label, row.backbone, display_name(row.metric))
        names.append({plain(field) for field in fields if field})
    vocabulary: set[str] = set().union(*names)
    problems = []
    chosen = list(range(len(verdicts)))
    for word in filter(None, map(plain, words.split("/"))):
        if "*" in word:
            fitting = set(fnmatch.filter(vocabulary, word))
        elif word in vocabulary:
            fitting = {word}
        else:
            fitting = {name for name in vocabulary if word in name}
        if not fitting:
            near = difflib.get_close_matches(word, vocabulary, n=4, cutoff=0.5)
            hint = f"; near: {', '.join(near)}" if near else ""
            problems.append(f"'{word}' is in no verdict{hint}")
        chosen = [index for index in chosen if names[index] & fitting]
    if not chosen and not problems:
        problems.append(
            f"no verdict has all words of '{words}', though each is in some verdict; leave one out"
        )
    if problems:
        raise ConfigError(f"cell {words}", problems)
    return verdicts.iloc[chosen]


def key_of(row: Any) -> str:
    """Return the words that find the verdict of a row alone, as far as any words can."""
    return "/".join(plain(word) for word in dict.fromkeys(_fields(row)) if word)


def plain(word: str) -> str:
    """Return a word as it is compared: small letters; other signs than "*~.+@-" as "_"."""
    return re.sub(r"[^\w*~.@+-]+", "_", word.strip().lower()).strip("_")


def _rows(verdicts: pd.DataFrame) -> Iterable[Any]:
    return verdicts.itertuples()


def _fields(row: Any) -> list[str]:
    """Return the words of a verdict: where the number is printed, and the runs behind it."""
    label = "" if row.source == FROZEN else row.row_label
    return [row.source, row.table, label, *_facts(row, "bs{:.0f}"), row.split, row.metric]


def _facts(row: Any, size: str) -> list[str]:
    batch = "" if isnan(row.batch_size) else size.format(row.batch_size)
    return [row.dataset, row.setting or row.backbone, row.loss, batch]


def explain(verdicts: pd.DataFrame, at: int, pairs: Sequence[Pair], table: RunTable) -> str:
    """Return how the verdict in the row ``at`` came about; ``pairs`` belong to all ``verdicts``.

    The verdict and its reason are read from the row. The calculation is made again.
    """
    (row,) = _rows(verdicts.loc[[at]])
    table_name = (row.source, row.table)
    pair = pairs[at]
    family = [one for one in pairs if (one.source, one.table) == table_name]
    position = family.index(pair)
    numbers = frame_of(family)
    _, tests, worlds = tests_of(numbers, row.level)

    test = tests.at(position)
    if reasons(numbers, tests, row.level)[position] not in BY_TEST:
        worlds = {}
    runs = table.runs
    if pair.cell is not None:
        ids = [pair.cell.run_id(seed) for seed in set(runs["seed"])]
        runs = runs[runs["run_id"].isin(ids)]
    way = STANDARD_ERRORS[int(test.case)]
    variances = [  # letter, meaning and spread
        ("v", "one run of ours", pair.ours.spread),
        ("r", "one run of the reference", pair.reference_spread),
        ("w", "one difference by seed", pair.paired_spread),
    ]
    environment = Environment(
        loader=PackageLoader("benchmark.verdicts", ""),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("explain.txt.j2").render(
        row=row,
        pair=pair,
        identical=numbers["identical"][position],
        test=test,
        plain=compare(evidence_of(numbers, plain=True), row.level).at(position),
        worlds={name: world.at(position) for name, world in worlds.items()},
        epoch=EPOCHS[row.selection],
        place=" ".join(dict.fromkeys(table_name)),
        metric=display_name(row.metric),
        facts=_facts(row, "batch size {:.0f}"),
        runs=runs.sort_values("seed").itertuples(),
        way=way,
        variances=variances,
        rounding=row.rounding if isfinite(row.rounding) else 0.0,
        assumptions=MARKS,
        deciding=STANDING,
        questions=QUESTIONS,
        print_in_claims=PRINT_IN_CLAIMS,
        laboratories=known_of_laboratories,
        asked=applies(row.reference_n, pair.then is None),
        rank=1 + (tests.p_drift < test.p_drift).sum(),
        meaning=VERDICTS[row.verdict],
        known=isfinite,
        f3=lambda value: f"{value:.3f}",
    )
