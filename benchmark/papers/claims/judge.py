"""Judging the claims on a study's long table: two readings of each, and the parts that they rest on."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import pandas as pd

from benchmark.papers.claims.kinds import KINDS
from benchmark.papers.claims.model import Claim
from benchmark.papers.claims.parts import Decision, Part, Tested, decide
from benchmark.papers.claims.series import Place, Series
from benchmark.papers.verdicts.matching import Facts
from benchmark.stats.runs import checked

PUBLISHED, HERE = "published", "here"
READINGS = {
    PUBLISHED: "on the datasets, backbone and batch sizes of the paper; every one of them has to be there",
    HERE: "does it hold here: on whatever this study ran, stand-in data included; parts without runs are left out",
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
    "place",
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
    *PART_COLUMNS[2:11],  # of the part that decides
    "p_against",
]


def judge_claims(
    runs: pd.DataFrame, claims: Iterable[Claim], facts: Facts
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns the verdicts (``COLUMNS``, a row per claim and reading) and their parts (``PART_COLUMNS``).

    ``runs`` is the long table, ``facts`` what the study knows of its settings (``benchmark.papers.verdicts.facts``).
    """
    series = Series(checked(runs), facts)
    rows, parts = [], []
    for claim in claims:
        for reading in READINGS:
            places, found = _asked(claim, series, reading)
            run = [part for part in found if len(part.values)] or found
            left_out = len(found) - len(run) if reading == HERE else 0
            decision = decide(run if left_out else found, claim.alpha)
            rows.append(_row(claim, reading, places, decision, left_out))
            parts += [
                {"claim": claim.name, "reading": reading, **_numbers(item)}
                for item in decision.tested
            ]
    return pd.DataFrame(rows, columns=COLUMNS), pd.DataFrame(parts, columns=PART_COLUMNS)


def _asked(claim: Claim, series: Series, reading: str) -> tuple[list[Place], list[Part]]:
    """Returns where a claim is asked, and its parts. Where the paper's batch sizes give none, "here" takes any size:
    they may have been run with the loss, but not with the options that the claim is about. What is outside has no
    place where it could be asked as published."""
    if claim.outside and reading == PUBLISHED:
        return [], [Part("", note=claim.outside)]
    attempts = (
        [series.published]
        if reading == PUBLISHED
        else [series.here, partial(series.here, every_size=True)]
    )
    for attempt in attempts:
        places = attempt(claim)
        parts = parts_of(claim, series, places, reading)
        if any(len(part.values) for part in parts):
            break
    return places, parts


def parts_of(claim: Claim, series: Series, places: Iterable[Place], reading: str) -> list[Part]:
    """Returns the parts of a claim over ``places``; one that says why, when there is no place."""
    parts = [part for place in places for part in KINDS[claim.kind](claim, series, place)]
    if not parts:
        reason = (
            "no run belongs to it"
            if reading == HERE
            else "no run on " + ", ".join(_datasets(claim))
        )
        return [Part("", note=reason)]
    return parts


def _datasets(claim: Claim) -> list[str]:
    return list(dict.fromkeys(name for condition in claim.published for name in condition.datasets))


def _row(
    claim: Claim, reading: str, places: list[Place], decision: Decision, left_out: int
) -> dict:
    condition = claim.condition
    if reading == HERE:
        condition = ", ".join(
            dict.fromkeys(f"{place.dataset} {place.backbone}".strip() for place in places)
        )
    decisive = _numbers(decision.decisive) if decision.decisive else {}
    return {
        **decisive,
        "claim": claim.name,
        "paper": claim.paper,
        "place": claim.place,
        "sentence": claim.sentence,
        "kind": claim.kind,
        "reading": reading,
        "condition": condition,
        "verdict": decision.verdict,
        "reason": decision.reason + (f"; {left_out} without runs left out" if left_out else ""),
        "outside": claim.outside,
        "parts": len(decision.tested),
        "parts_run": sum(item.n > 0 for item in decision.tested),
        "parts_holding": decision.holding,
        "alpha": claim.alpha,
    }


def _numbers(item: Tested) -> dict:
    return {
        "part": item.part.label,
        "n": item.n,
        "estimate": item.shown(item.mean),
        "ci_low": item.shown(item.ci_low),
        "ci_high": item.shown(item.ci_high),
        "unit": item.part.unit,
        "low": item.shown(item.part.low),
        "high": item.shown(item.part.high),
        "p": item.p,
        "p_against": item.p_against,
        "note": item.part.note,
    }
