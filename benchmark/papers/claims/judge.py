"""Judging the claims on a study's runs: two readings of each, and the parts that they rest on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from benchmark.papers.candidates import Candidates
from benchmark.papers.claims.kinds import parts_of
from benchmark.papers.claims.measurements import Condition, Measurements
from benchmark.papers.claims.model import Claim
from benchmark.papers.claims.parts import Decision, Part, TestedPart, decide
from benchmark.papers.verdicts.vocabulary import CONTRADICTED, INCONCLUSIVE, SUPPORTED
from benchmark.runs.table import RunTable
from benchmark.stats.families import discoveries

PUBLISHED, HERE = "published", "here"
FALSE_DISCOVERIES = 0.05
READINGS = {
    PUBLISHED: "on the datasets, backbone and batch sizes of the paper, every one of them",
    HERE: "does it hold here: on whatever this study ran, stand-in data included",
}
PART_COLUMNS = [
    "claim",
    "reading",
    "part",
    "n",  # seeds
    "estimate",  # in unit; ratios as such, not as logarithms
    "ci_low",  # of confidence 1 - 2 alpha
    "ci_high",
    "unit",
    "low",  # the sentence says that the mean lies between low and high (empty: open)
    "high",
    "p",  # that it does not
    "p_against",  # that it does, before Holm
    "note",
]
COLUMNS = [
    "claim",
    "paper",
    "stated_in",
    "sentence",
    "kind",
    "reading",
    "condition",  # as published; in the reading "here" the datasets that were run
    "verdict",
    "reason",
    "outside",  # why no run of the suite can decide it as published
    "parts",
    "parts_run",
    "parts_holding",
    "alpha",  # level at which each part has to hold
    "p_contradicted",  # smallest p that some part shows the opposite, after Holm over the parts
    "q_contradicted",  # the same, adjusted for the false discovery rate over all claims
    *PART_COLUMNS[2:12],  # of the part that decides
]


def judge_claims(
    table: RunTable, claims: Iterable[Claim], candidates: Candidates
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the verdicts (``COLUMNS``; one per claim and reading) and ``PART_COLUMNS``.

    Among the claims of one reading, those called contradicted are false at a rate of at most
    ``FALSE_DISCOVERIES`` (Benjamini and Hochberg 1995).
    """
    source, listed = Measurements(table, candidates), list(claims)
    rows, parts = [], []
    for reading in READINGS:
        asked = [_asked(claim, source, reading) for claim in listed]
        decisions = [
            _decide(claim, questions, reading)
            for claim, (_, questions) in zip(listed, asked, strict=True)
        ]
        q = discoveries([each.against for each in decisions])
        for claim, (conditions, _), found, rate in zip(listed, asked, decisions, q, strict=True):
            decision = _controlled(found, float(rate), len(q[np.isfinite(q)]))
            rows.append(_row(claim, reading, conditions, decision, float(rate)))
            head = {"claim": claim.name, "reading": reading}
            parts += [{**head, **_numbers(each)} for each in decision.tested]
    order = {claim.name: number for number, claim in enumerate(listed)}
    verdicts, tested = (
        pd.DataFrame(rows, columns=COLUMNS),
        pd.DataFrame(parts, columns=PART_COLUMNS),
    )
    return _by_claim(verdicts, order), _by_claim(tested, order)


def _by_claim(table: pd.DataFrame, order: Mapping[str, int]) -> pd.DataFrame:
    sort = table["claim"].map(order).sort_values(kind="stable")
    return table.loc[sort.index].reset_index(drop=True)


def _decide(claim: Claim, asked: list[Part], reading: str) -> Decision:
    """Return the decision; what was left out "here" is named and keeps it from being supported."""
    run = [part for part in asked if len(part.values) or part.wins is not None] or asked
    left_out = len(asked) - len(run) if reading == HERE else 0
    decision = decide(run if left_out else asked, claim.alpha)
    if not left_out:
        return decision
    verdict = INCONCLUSIVE if decision.verdict == SUPPORTED else decision.verdict
    reason = f"{decision.reason}; {left_out} without runs left out"
    return replace(decision, verdict=verdict, reason=reason)


def _controlled(decision: Decision, rate: float, claims: int) -> Decision:
    """Return the decision after the control of false discoveries over ``claims`` tested claims."""
    if decision.verdict != CONTRADICTED or rate <= FALSE_DISCOVERIES:
        return decision
    words = f"contradicted alone, not among {claims} claims (q = {rate:.2g})"
    return replace(decision, verdict=INCONCLUSIVE, reason=f"{decision.reason}; {words}")


def _asked(claim: Claim, source: Measurements, reading: str) -> tuple[list[Condition], list[Part]]:
    """Return the conditions under which a claim is asked, and its parts.

    Where the paper's batch sizes give none, "here" takes any size: they may have been run with the
    loss, but not with the options that the claim is about. What is outside is not asked as
    published.
    """
    if claim.outside and reading == PUBLISHED:
        return [], [Part("", note=claim.outside)]
    attempts: list[Callable[[Claim], list[Condition]]] = [source.published]
    if reading == HERE:
        attempts = [source.here, partial(source.here, every_size=True)]
    for attempt in attempts:
        conditions = attempt(claim)
        parts = [part for each in conditions for part in parts_of(claim, source, each)]
        if any(len(part.values) or part.wins is not None for part in parts):
            break
    if parts:
        return conditions, parts
    datasets = dict.fromkeys(name for scope in claim.published for name in scope.datasets)
    nothing = "no run belongs to it" if reading == HERE else f"no run on {', '.join(datasets)}"
    return conditions, [Part("", note=nothing)]


def _row(
    claim: Claim, reading: str, conditions: list[Condition], decision: Decision, rate: float
) -> dict[str, object]:
    condition = claim.condition
    if reading == HERE:
        here = (f"{each.dataset} {each.backbone}".strip() for each in conditions)
        condition = ", ".join(dict.fromkeys(here))
    return {
        **(_numbers(decision.decisive) if decision.decisive else {}),
        "claim": claim.name,
        "paper": claim.source,
        "stated_in": claim.stated_in,
        "sentence": claim.sentence,
        "kind": claim.kind,
        "reading": reading,
        "condition": condition,
        "verdict": decision.verdict,
        "reason": decision.reason,
        "outside": claim.outside,
        "parts": len(decision.tested),
        "parts_run": sum(each.test.n > 0 or each.part.wins is not None for each in decision.tested),
        "parts_holding": decision.holding,
        "alpha": claim.alpha,
        "p_contradicted": decision.against,
        "q_contradicted": rate,
    }


def _numbers(each: TestedPart) -> dict[str, object]:
    part, test = each.part, each.test
    return {
        "part": part.label,
        "n": test.n,
        "estimate": each.in_unit(test.mean),
        "ci_low": each.in_unit(test.ci_low),
        "ci_high": each.in_unit(test.ci_high),
        "unit": part.unit,
        "low": each.in_unit(part.low),
        "high": each.in_unit(part.high),
        "p": test.p,
        "p_against": test.p_against,
        "note": part.note,
    }
