"""Judging the claims on a study's runs: two readings of each, and the parts that they rest on.

A claim is asked of runs that can answer it: on a dataset and a backbone of the paper, by arms that
are the paper's. Of other runs, such as those on other data, the same comparison is shown without
any verdict: not asked.
"""

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from benchmark.papers.candidates import Candidates, candidates
from benchmark.papers.claims.kinds import parts_of
from benchmark.papers.claims.measurements import Condition, Measurements
from benchmark.papers.claims.model import Claim
from benchmark.papers.claims.parts import AGAINST, JudgedClaim, Part, TestedPart, decide
from benchmark.papers.library import claims_of
from benchmark.papers.printed.gap import GapDecrease
from benchmark.papers.verdicts.vocabulary import CONTRADICTED, INCONCLUSIVE, NOT_ASKED, SUPPORTED
from benchmark.runs.table import RunTable
from benchmark.stats.families import discoveries
from benchmark.stats.looks import level_of
from benchmark.study import Study

PUBLISHED, HERE = "published", "here"
FALSE_DISCOVERIES = 0.05
READINGS = {
    PUBLISHED: "on the datasets, backbone and batch sizes of the paper, every one of them",
    HERE: "on those of the paper's datasets and backbones that this study ran",
}


COLUMNS = [item.name for item in fields(JudgedClaim)][:-2]
PART_COLUMNS = ["claim", "reading", *[item.name for item in fields(TestedPart)][:-1]]


def judge_claims(
    table: RunTable,
    claims: Iterable[Claim],
    candidates: Candidates,
    spend: Callable[[float], float] = float,
    gaps: Iterable[GapDecrease] = (),
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the verdicts (``COLUMNS``; one per claim and reading) and ``PART_COLUMNS``.

    ``spend`` gives the level of one look for an alpha, where several looks are planned; ``gaps``
    are the decomposability gaps that an analysis measured. Among the claims of one reading, those
    called contradicted are false at a rate of at most ``FALSE_DISCOVERIES`` (Benjamini and
    Hochberg 1995).
    """
    source = Measurements(table, candidates, gaps)
    listed = [replace(claim, alpha=spend(claim.alpha)) for claim in claims]
    level, rate_level = spend(AGAINST), spend(FALSE_DISCOVERIES)
    rows, parts = [], []
    for reading in READINGS:
        asked = [_asked(claim, source, reading) for claim in listed]
        decisions = [
            _decide(claim, question, reading, level)
            for claim, question in zip(listed, asked, strict=True)
        ]
        q = discoveries([each.p_contradicted for each in decisions])
        for claim, question, found, rate in zip(listed, asked, decisions, q, strict=True):
            decision = _controlled(found, float(rate), rate_level, len(q[np.isfinite(q)]))
            rows.append(replace(decision, q_contradicted=float(rate), **_about(claim, reading)))
            if reading == HERE:
                here = (f"{each.dataset} {each.backbone}".strip() for each in question.conditions)
                rows[-1] = replace(rows[-1], condition=", ".join(dict.fromkeys(here)))
            head = {"claim": claim.name, "reading": reading}
            parts += [{**head, **vars(each)} for each in decision.tested]
    order = {claim.name: number for number, claim in enumerate(listed)}
    tables = (pd.DataFrame(rows, columns=COLUMNS), pd.DataFrame(parts, columns=PART_COLUMNS))
    judged, tested = (
        table.sort_values("claim", key=lambda names: names.map(order), kind="stable")
        for table in tables
    )
    return judged.reset_index(drop=True), tested.reset_index(drop=True)


@dataclass(frozen=True)
class _Question:
    """What a claim is asked: its conditions and parts, and whether the runs can answer it."""

    conditions: list[Condition]
    parts: list[Part]
    can_answer: bool = True


def _decide(claim: Claim, question: _Question, reading: str, level: float) -> JudgedClaim:
    """Return the decision; what was left out "here" is named and keeps it from being supported."""
    asked = question.parts
    run = [part for part in asked if len(part.values) or part.wins is not None] or asked
    left_out = len(asked) - len(run) if reading == HERE else 0
    decision = decide(run if left_out else asked, claim.alpha, level)
    if not question.can_answer:
        shown = decision.decisive.text if decision.decisive else decision.reason
        reason = f"the paper says it of {claim.condition}; the same comparison here: {shown}"
        return replace(decision, verdict=NOT_ASKED, reason=reason, p_contradicted=np.nan)
    if not left_out:
        return decision
    verdict = INCONCLUSIVE if decision.verdict == SUPPORTED else decision.verdict
    reason = f"{decision.reason}; {left_out} without runs left out"
    return replace(decision, verdict=verdict, reason=reason)


def _controlled(decision: JudgedClaim, rate: float, level: float, claims: int) -> JudgedClaim:
    """Return the decision after the control of false discoveries over ``claims`` tested claims."""
    if decision.verdict != CONTRADICTED or rate <= level:
        return decision
    words = f"contradicted alone, not among {claims} claims (q = {rate:.2g})"
    return replace(decision, verdict=INCONCLUSIVE, reason=f"{decision.reason}; {words}")


def _asked(claim: Claim, source: Measurements, reading: str) -> _Question:
    """Return what a claim is asked.

    Where the paper's batch sizes give no part with runs, "here" takes any size: they may have been
    run with the loss, but not with the options that the claim is about. Where no run can answer,
    the same comparison on other data is shown. What is outside is not asked as published.
    """
    if claim.outside and reading == PUBLISHED:
        return _Question([], [Part("", note=claim.outside)])
    attempts: list[Callable[[Claim], list[Condition]]] = [source.published]
    if reading == HERE:
        sizes, places = (False, True), (False, True)
        attempts = [
            partial(source.here, every_size=size, anywhere=place)
            for place, size in itertools.product(places, sizes)
        ]
    for number, attempt in enumerate(attempts):
        conditions = attempt(claim)
        parts = [part for each in conditions for part in parts_of(claim, source, each)]
        if any(len(part.values) or part.wins is not None for part in parts):
            return _Question(conditions, parts, can_answer=number < 2)
    if parts:
        return _Question(conditions, parts)
    datasets = dict.fromkeys(name for scope in claim.published for name in scope.datasets)
    nothing = "no run belongs to it" if reading == HERE else f"no run on {', '.join(datasets)}"
    return _Question(conditions, [Part("", note=nothing)])


def _about(claim: Claim, reading: str) -> dict[str, Any]:
    """Return the columns that say what a row is about."""
    names = ("stated_in", "sentence", "kind", "condition", "outside", "alpha")
    columns = {name: getattr(claim, name) for name in names}
    return {"claim": claim.name, "paper": claim.source, "reading": reading, **columns}


def judge_study_claims(
    study: Study, table: RunTable, gaps: Iterable[GapDecrease]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the verdicts on the claims of the papers and of the study, and their parts."""
    spend = partial(level_of, study)
    return judge_claims(table, claims_of(study.name), candidates(study), spend, gaps)
