"""Judging the claims on a study's runs: two readings of each, and the parts that they rest on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import pandas as pd

from benchmark.papers.candidates import Candidates
from benchmark.papers.claims.kinds import parts_of
from benchmark.papers.claims.measurements import Condition, Measurements
from benchmark.papers.claims.model import Claim
from benchmark.papers.claims.parts import Decision, Part, TestedPart, decide
from benchmark.runs.table import RunTable

PUBLISHED, HERE = "published", "here"
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
    *PART_COLUMNS[2:12],  # of the part that decides
]


def judge_claims(
    table: RunTable, claims: Iterable[Claim], candidates: Candidates
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the verdicts (``COLUMNS``; one per claim and reading) and ``PART_COLUMNS``."""
    source = Measurements(table, candidates)
    rows, parts = [], []
    for claim in claims:
        for reading in READINGS:
            conditions, asked = _asked(claim, source, reading)
            run = [part for part in asked if len(part.values)] or asked
            left_out = len(asked) - len(run) if reading == HERE else 0
            decision = decide(run if left_out else asked, claim.alpha)
            rows.append(_row(claim, reading, conditions, decision, left_out))
            head = {"claim": claim.name, "reading": reading}
            parts += [{**head, **_numbers(each)} for each in decision.tested]
    return pd.DataFrame(rows, columns=COLUMNS), pd.DataFrame(parts, columns=PART_COLUMNS)


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
        if any(len(part.values) for part in parts):
            break
    if parts:
        return conditions, parts
    datasets = dict.fromkeys(name for scope in claim.published for name in scope.datasets)
    nothing = "no run belongs to it" if reading == HERE else f"no run on {', '.join(datasets)}"
    return conditions, [Part("", note=nothing)]


def _row(
    claim: Claim, reading: str, conditions: list[Condition], decision: Decision, left_out: int
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
        "reason": decision.reason + (f"; {left_out} without runs left out" if left_out else ""),
        "outside": claim.outside,
        "parts": len(decision.tested),
        "parts_run": sum(each.test.n > 0 for each in decision.tested),
        "parts_holding": decision.holding,
        "alpha": claim.alpha,
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
