"""One verdict: found by a few words about it, and the whole calculation behind it as text."""

from __future__ import annotations

import difflib
import fnmatch
import math
import re
from collections.abc import Iterable, Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined

from benchmark.core.errors import ConfigError
from benchmark.metrics.names import display_name
from benchmark.papers.verdicts.records import FROZEN, Verdict
from benchmark.papers.verdicts.vocabulary import EPOCHS, VERDICTS
from benchmark.runs.table import RunTable
from benchmark.stats.reproduction import STANDARD_ERRORS
from benchmark.stats.samples import Spread
from benchmark.stats.sensitivity import MARKS, applies


def find_verdicts(verdicts: Sequence[Verdict], words: str) -> list[Verdict]:
    """Return the verdicts that every word of ``words`` fits; raise ConfigError with near names.

    Words are separated by "/": those of a table (roadmap2021v2/table1/SmoothAP) and those of a run
    (glyphs_1k/sup_ap/bs32/map_at_r), in any order and number. A word fits a field that equals it,
    letter case and signs apart; with "*" it is a pattern. Where no field equals a word, it may be a
    part of one.
    """
    if not verdicts:
        why = "there are no verdicts: the study names no references, or nothing of it has been run"
        advice = "'python -m benchmark check STUDY' says which"
        raise ConfigError(f"cell {words}", [f"{why}; {advice}"])
    names = [_names(each) for each in verdicts]
    vocabulary = set().union(*names)
    problems, chosen = [], list(range(len(verdicts)))
    for word in filter(None, map(plain, words.split("/"))):
        fitting = _fitting(word, vocabulary)
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
    return [verdicts[index] for index in chosen]


def key_of(verdict: Verdict) -> str:
    """Return the words that find this verdict alone, as far as any words can."""
    return "/".join(plain(word) for word in dict.fromkeys(_fields(verdict)) if word)


def plain(word: str) -> str:
    """Return a word as it is compared: small letters; other signs than "*~.+@-" as "_"."""
    return re.sub(r"[^\w*~.@+-]+", "_", word.strip().lower()).strip("_")


def _fitting(word: str, names: Iterable[str]) -> set[str]:
    if "*" in word:
        return set(fnmatch.filter(names, word))
    return {name for name in names if name == word} or {name for name in names if word in name}


def _fields(each: Verdict) -> list[str]:
    """Return the words of a verdict: where it is printed, and the runs behind it."""
    label = "" if each.source == FROZEN else each.row_label
    words = [each.source, each.table, label, *_facts(each, "bs{}"), each.split, each.metric]
    return [word or "" for word in words]


def _facts(each: Verdict, size: str) -> list[str]:
    """Return dataset, network, loss and batch size."""
    batch = "" if each.batch_size is None else size.format(each.batch_size)
    return [each.dataset, each.setting or each.backbone, each.loss, batch]


def _names(each: Verdict) -> set[str]:
    words = [*_fields(each), each.row_label, each.backbone, display_name(each.metric)]
    return {plain(word) for word in words if word}


TEMPLATE = "explain.txt.j2"


def explain(verdict: Verdict, verdicts: Sequence[Verdict], table: RunTable) -> str:
    """Return how ``verdict``, one of ``verdicts`` on the runs in ``table``, came about."""
    family, runs = (verdict.source, verdict.table), table.runs
    rank = 1 + sum(
        other.p_drift < verdict.p_drift
        for other in verdicts
        if (other.source, other.table) == family
    )
    if verdict.cell is not None:
        ids = [verdict.cell.run_id(seed) for seed in set(runs["seed"])]
        runs = runs[runs["run_id"].isin(ids)]
    environment = Environment(
        loader=PackageLoader("benchmark.papers.verdicts", ""),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(TEMPLATE).render(
        each=verdict,
        epoch=EPOCHS[verdict.selection],
        place=" ".join(dict.fromkeys(family)),
        metric=display_name(verdict.metric),
        facts=list(filter(None, _facts(verdict, "batch size {}"))),
        runs=() if verdict.note else list(runs.sort_values("seed").itertuples()),
        way=STANDARD_ERRORS[int(verdict.test.case)] if verdict.test else None,
        spreads=_spreads(verdict),
        rounding=verdict.rounding if math.isfinite(verdict.rounding) else 0.0,
        assumptions=MARKS,
        asked=applies(verdict.reference_n, verdict.then is None),
        inside=verdict.p_equivalence <= verdict.level,
        rank=rank,
        level=f"{100 * verdict.level:g}%",
        confidence=f"{100 * (1 - 2 * verdict.level):g}%",
        meaning=VERDICTS[verdict.verdict],
        known=math.isfinite,
        f3=lambda value: f"{value:.3f}",
    )


def _spreads(verdict: Verdict) -> list[tuple[str, str, Spread]]:
    """Return letter, meaning and spread of each variance that the standard error is made of."""
    known = [
        ("v", "one run of ours", verdict.spread),
        ("r", "one run of the reference", verdict.reference_spread),
        ("w", "one difference by seed", verdict.paired_spread),
    ]
    used = STANDARD_ERRORS[int(verdict.test.case)].square if verdict.test else ""
    return [(letter, what, spread) for letter, what, spread in known if f"{letter} " in used]
