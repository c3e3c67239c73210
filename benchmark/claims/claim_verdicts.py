"""Judging the claims on a study's runs: two readings of each, and the parts that they rest on.

A claim is tested on runs that can answer it: on a dataset and a backbone of the paper, by arms that
are the paper's. Of other runs, such as those on other data, the same comparison is shown without
any verdict: not asked. Scores are at the epoch that the paper reports, as for its numbers; for
claims of no paper at the last one.

A sentence becomes *parts*: one comparison under one condition, reduced to one number per seed (a
difference of paired runs, a slope over batch sizes, a log ratio). Two one-sided t-tests judge a
part (``range_test`` of ``benchmark.stats``), with a variance that sister parts share. A loss that
diverges loses its comparison without any test.

- supported: **every** part holds at ``alpha``. An intersection-union test: no correction is needed,
  since one false part is enough to keep the sentence from being supported.
- contradicted: **some** part shows the opposite at 5%, after Holm over the parts that could be
  tested. It goes before supported: a sentence about everything is wrong if it is wrong once.
- not_run: no part has runs; inconclusive: everything else. One seed gives no test.

A sentence about k of n parts (``enough``) is supported when k hold and contradicted when
n - k + 1 fail (partial conjunctions, Benjamini and Heller 2008); k = n gives the rules above.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
import pandas as pd

from benchmark.claims.claim_tests import ClaimCondition, ClaimPart, Measurements, parts_of
from benchmark.core.words import count
from benchmark.published.quantities import GapDecrease, convergence_of, costs_of, relative_gaps
from benchmark.published.schema import PRINTED, Claim
from benchmark.runs.run_table import RunTable
from benchmark.stats.intervals import discoveries, spread
from benchmark.stats.planning import level_of
from benchmark.stats.samples import Samples, shared_spreads
from benchmark.verdicts.judging import rule_of
from benchmark.verdicts.matching import StudyGrid
from benchmark.verdicts.verdicts import (
    CLAIM_VERDICTS,
    CONTRADICTED,
    EPOCHS,
    INCONCLUSIVE,
    NOT_ASKED,
    NOT_RUN,
    PRINT_IN_CLAIMS,
    SUPPORTED,
)

AGAINST = 0.05
FALSE_DISCOVERIES = 0.05
SHOWN = 40  # parts of one reading that are explained
PUBLISHED = "published"
HERE = "here"
READINGS = {
    PUBLISHED: "on the datasets, backbone and batch sizes of the paper, every one of them",
    HERE: "on those of the paper's datasets and backbones that this study ran",
}
_TESTED = (
    "part", "n", "estimate", "ci_low", "ci_high", "unit", "low", "high", "p", "p_against",
)  # fmt: skip
PART_COLUMNS = ["claim", "reading", *_TESTED, "note"]
# Of ``claims.csv``: the condition is as published, in the reading "here" the data that were asked
# or shown; q is adjusted for the false discovery rate over all claims; from "part" on, the columns
# are those of the part that decides.
COLUMNS = [
    "claim", "paper", "stated_in", "sentence", "kind", "reading", "condition", "selection",
    "verdict", "reason", "outside", "parts", "parts_run", "parts_holding", "alpha",
    "p_contradicted", "q_contradicted", *_TESTED,
]  # fmt: skip


@dataclass(frozen=True)
class Decision:
    """The verdict on a sentence, with the part that decides and all ``tested`` ones.

    p_contradicted  smallest p of the tests that a part is the opposite, after Holm
    q_contradicted  the same, adjusted for the false discovery rate over all claims
    parts           number of parts that the sentence needs; of those that have runs; that hold
    condition       the conditions that were asked
    """

    verdict: str
    reason: str
    decisive: ClaimPart | None
    p_contradicted: float = np.nan
    q_contradicted: float = np.nan
    tested: tuple[ClaimPart, ...] = ()
    parts: int = 0
    parts_run: int = 0
    parts_holding: int = 0
    condition: str = ""


def decide(
    parts: Sequence[ClaimPart],
    alpha: float,
    against_at: float = AGAINST,
    enough: tuple[int, int] | None = None,
) -> Decision:
    """Return the verdict on a claim from its parts.

    A claim is supported if every part holds at ``alpha``, and contradicted if a part fails at
    ``against_at``. With ``enough`` (k, n) the claim needs k of n parts.
    """
    cells = {}
    for at, part in enumerate(parts):
        n = len(part.values)
        cells[at] = (spread(part.values) if n > 1 else np.nan, n)
    spreads = shared_spreads(cells, lambda at: parts[at].sisters or at)
    tested = tuple(part.tested(alpha, spreads[at]) for at, part in enumerate(parts))
    run = [part for part in tested if part.is_run]
    judged = [part for part in run if np.isfinite(part.p_fails)]
    holding = sum(part.p_fails <= alpha for part in judged)
    decision = partial(
        Decision, tested=tested, parts=len(tested), parts_run=len(run), parts_holding=holding
    )
    if not run:
        reason = "; ".join(dict.fromkeys(part.note for part in tested)) or "no run"
        return decision(NOT_RUN, reason, None)
    needed, total = enough or (len(tested), len(tested))
    fatal = total - needed + 1  # so many false parts make the sentence false
    lost = [part for part in judged if part.wins is False]
    if len(lost) >= fatal:
        return decision(CONTRADICTED, lost[0].text, lost[0], 0.0)
    if not judged:
        why = "one seed decides nothing: run at least 2"
        if any(part.n > 1 for part in run):
            why = "no spread between the seeds, no test"
        return decision(INCONCLUSIVE, f"{why}; {run[0].text}", run[0])
    p_contradicted = np.nan
    if len(judged) >= fatal:
        worst = sorted(judged, key=attrgetter("p_opposite"))[fatal - 1]
        p_contradicted = min(1.0, (len(judged) - fatal + 1) * worst.p_opposite)
        if p_contradicted <= against_at:
            test = f"Holm p = {p_contradicted:.2g} against, of {count(len(judged), 'part')}"
            return decision(CONTRADICTED, f"{worst.text}; {test}", worst, p_contradicted)
    best = sorted(judged, key=attrgetter("p_fails"))[:needed]
    weakest = max(best, key=attrgetter("p_fails"))
    p_supported = (len(tested) - needed + 1) * weakest.p_fails
    if len(best) == needed and p_supported <= alpha:
        reason = f"{count(holding, 'part')}, weakest: {weakest.text}"
        return decision(SUPPORTED, reason, weakest, p_contradicted)
    holds = f"{holding} of {count(len(tested), 'part')} at p <= {alpha:g}"
    if enough:
        holds += f", {needed} of {total} needed"
    missing = [part for part in tested if np.isnan(part.p_fails)]
    if missing:
        lacking = missing[0].note or "one seed or no spread"
        holds += f"; {len(missing)} could not be tested (first: {missing[0].part}: {lacking})"
    reason = f"{holds}; weakest: {weakest.text}, p = {weakest.p:.2g}"
    return decision(INCONCLUSIVE, reason, weakest, p_contradicted)


def judge_study_claims(
    grid: StudyGrid, table: RunTable, gaps: Sequence[GapDecrease]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the verdicts on the claims of the papers and of the study, and their parts."""
    spend = partial(level_of, grid.study)
    return judge_claims(table, grid.papers.claims(grid.study.name), grid, spend, gaps)


def judge_claims(
    table: RunTable,
    claims: Iterable[Claim],
    grid: StudyGrid,
    spend: Callable[[float], float] = float,
    gaps: Sequence[GapDecrease] = (),
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the verdicts (``COLUMNS``; one per claim and reading) and ``PART_COLUMNS``.

    ``spend`` gives the level of one look for an alpha, where several looks are planned; ``gaps``
    are the decomposability gaps that an analysis measured. Among the claims of one reading, those
    called contradicted are false at a rate of at most ``FALSE_DISCOVERIES`` (Benjamini and
    Hochberg 1995).
    """
    level = spend(AGAINST)
    listed = [replace(claim, alpha=spend(claim.alpha)) for claim in claims]
    rules = {rule_of(grid.papers, claim.source) for claim in listed}
    gap_sizes = relative_gaps(gaps, table.statuses())
    costs = {**costs_of(table), **convergence_of(table), **gap_sizes}
    measured = {rule: Measurements(grid, Samples(table, *rule), costs) for rule in rules}
    decided = {}
    for reading in READINGS:
        decisions = []
        for claim in listed:
            measurements = measured[rule_of(grid.papers, claim.source)]
            decisions.append(_judged(claim, measurements, reading, level))
        decided[reading] = _controlled(decisions, spend(FALSE_DISCOVERIES))
    rows = []
    parts = []
    for (at, claim), reading in itertools.product(enumerate(listed), READINGS):
        decision = decided[reading][at]
        decisive = vars(decision.decisive) if decision.decisive else {}
        facts = {"claim": claim.name, "paper": claim.source, "reading": reading}
        facts["selection"] = rule_of(grid.papers, claim.source)[0]
        rows.append({**vars(claim), **decisive, **vars(decision), **facts})
        parts += [{**vars(part), **facts} for part in decision.tested]
    return pd.DataFrame(rows, columns=COLUMNS), pd.DataFrame(parts, columns=PART_COLUMNS)


def _controlled(decisions: Sequence[Decision], level: float) -> list[Decision]:
    """Return the decisions, of which false contradictions have at most the rate ``level``."""
    rates = discoveries([decision.p_contradicted for decision in decisions])
    controlled = []
    for decision, rate in zip(decisions, rates, strict=True):
        decision = replace(decision, q_contradicted=rate)
        if decision.verdict == CONTRADICTED and rate > level:
            among = f"not among {np.isfinite(rates).sum()} claims (q = {rate:.2g})"
            reason = f"{decision.reason}; contradicted alone, {among}"
            decision = replace(decision, verdict=INCONCLUSIVE, reason=reason)
        controlled.append(decision)
    return controlled


def _judged(claim: Claim, measurements: Measurements, reading: str, level: float) -> Decision:
    """Return the decision before the control of false discoveries.

    A claim with ``outside`` is not tested as published. The reading "here" takes every batch size
    if the paper's batch sizes give no part with runs: their runs may have the loss without the
    options that the claim is about. It leaves out parts without runs. The reason counts these
    parts, and the claim is then not supported. If no run can answer, the same comparison on other
    data is shown.
    """
    if reading == PUBLISHED:
        datasets = dict.fromkeys(name for scope in claim.published for name in scope.datasets)
        nothing = ClaimPart("", note=claim.outside or f"no run on {', '.join(datasets)}")
        parts = []
        if not claim.outside:
            parts = parts_under(measurements.published(claim), claim, measurements)
        decision = decide(parts or [nothing], claim.alpha, level, claim.enough)
        return replace(decision, condition=claim.condition)
    for anywhere, every_size in itertools.product((False, True), (False, True)):
        conditions = measurements.here(claim, every_size=every_size, anywhere=anywhere)
        parts = parts_under(conditions, claim, measurements)
        run = [part for part in parts if part.is_run]
        if run:
            break
    nothing = ClaimPart("", note="no run belongs to it")
    decision = decide(run or parts or [nothing], claim.alpha, level, claim.enough)
    left_out = len(parts) - len(run)
    if run and anywhere:
        shown = decision.decisive.text if decision.decisive else decision.reason
        reason = f"the paper says it of {claim.condition}; the same comparison here: {shown}"
        decision = replace(decision, verdict=NOT_ASKED, reason=reason, p_contradicted=np.nan)
    elif run and left_out:
        verdict = INCONCLUSIVE if decision.verdict == SUPPORTED else decision.verdict
        reason = f"{decision.reason}; {left_out} without runs left out"
        decision = replace(decision, verdict=verdict, reason=reason)
    data = [f"{condition.dataset} {condition.backbone}".strip() for condition in conditions]
    return replace(decision, condition=", ".join(dict.fromkeys(data)))


def parts_under(
    conditions: Iterable[ClaimCondition], claim: Claim, measurements: Measurements
) -> list[ClaimPart]:
    """Return the parts of a claim under all of these conditions."""
    parts = []
    for condition in conditions:
        parts += parts_of(claim, measurements, condition)
    return parts


def summary_text(verdicts: pd.DataFrame) -> str:
    """Return the counts of each reading, and every verdict with its reason.

    Claims that were not run or not asked are counted alone. The reason is given for claims that no
    run can decide.
    """
    lines = []
    for reading, meaning in READINGS.items():
        rows = verdicts[verdicts["reading"] == reading]
        counts = ", ".join(f"{(rows['verdict'] == word).sum()} {word}" for word in CLAIM_VERDICTS)
        lines.append(f"{reading} ({meaning}): {counts}")
        if tested := int(rows["p_contradicted"].notna().sum()):
            lines.append(f"  {luck(tested)}")
        shown = rows[~rows["verdict"].isin([NOT_RUN, NOT_ASKED])]
        if reading == PUBLISHED:
            outside = rows[(rows["verdict"] == NOT_RUN) & (rows["outside"] != "")]
            outside = outside.assign(verdict="outside", reason=outside["outside"])
            shown = pd.concat([shown, outside])
        for row in shown.itertuples():
            lines.append(f"  {row.verdict:12s} {row.claim}: {row.reason}")
    return "\n".join(lines)


def luck(tested: int) -> str:
    """Return how many of ``tested`` claims luck alone would contradict, and what is done."""
    return (
        f"if all {tested} tested claims were true on their edge, luck alone would contradict "
        f"{AGAINST * tested:.1f}; at most {FALSE_DISCOVERIES:.0%} of those called contradicted are "
        "false on average"
    )


def list_text(claims: Iterable[Claim]) -> str:
    """Return the claims with where they are stated, their conditions and kinds of test."""
    lines = []
    for claim in claims:
        lines += [
            f"{claim.name}  ({claim.source}, {claim.stated_in})",
            f"  {claim.sentence}",
            f"  {claim.kind}, {', '.join(claim.metrics)}; {claim.condition}",
        ]
        if claim.outside:
            lines.append(f"  not decided as published: {claim.outside}")
        lines.append("")
    return "\n".join(lines).rstrip()


def explain_claim(verdicts: pd.DataFrame, parts: pd.DataFrame) -> str:
    """Return the sentence of one claim and, per reading, every part with its test."""
    rows = verdicts.to_dict("records")
    lines = [
        f"{rows[0]['claim']} ({rows[0]['paper']}, {rows[0]['stated_in']})",
        f"  {rows[0]['sentence']}",
    ]
    for row in rows:
        asked = parts[parts["reading"] == row["reading"]].to_dict("records")
        verdict = str(row["verdict"])
        lines += [
            "",
            f"{row['reading']}: {READINGS[row['reading']]}",
            f"  where: {row['condition'] or 'nowhere'}, scores {EPOCHS[row['selection']]}",
            *(f"  {_explained(part)}" for part in asked[:SHOWN]),
        ]
        if len(asked) > SHOWN:
            lines.append(f"  and {len(asked) - SHOWN} more in claims_parts.csv")
        lines += [
            f"  {row['parts_holding']:.0f} of {row['parts']:.0f} parts hold at p <= "
            f"{row['alpha']:g}; {row['parts_run']:.0f} have runs",
            f"  verdict: {verdict.replace('_', ' ')} ({CLAIM_VERDICTS[verdict]})",
            f"    {row['reason']}",
        ]
    if parts["part"].str.contains(f"{PRINTED}=").any():
        lines += ["", PRINT_IN_CLAIMS]
    return "\n".join(lines)


def _explained(part: dict[Any, Any]) -> str:
    label = part["part"] or "no part"
    if not part["n"]:
        return f"{label}: not run ({part['note']})"
    low = part["low"]
    high = part["high"]
    claimed = f"above {low:g}" if pd.isna(high) else f"from {low:g} to {high:g}"
    estimate = f"{part['estimate']:.3f} {part['unit']}, n {part['n']:.0f}"
    text = f"{label}: {estimate}; claimed: {claimed}"
    if pd.isna(part["p"]):
        return f"{text}; no test ({part['note'] or 'one seed or no spread'})"
    interval = f"[{part['ci_low']:.3f}, {part['ci_high']:.3f}]"
    tests = f"test of the claim: p = {part['p']:.3g}; of its opposite: p = {part['p_against']:.3g}"
    return f"{text}; interval {interval}; {tests}"
