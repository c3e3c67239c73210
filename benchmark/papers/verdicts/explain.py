"""The whole calculation behind one verdict, as text: what the rule computed, step by step."""

from __future__ import annotations

import math
from collections.abc import Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined

from benchmark.metrics.names import display_name
from benchmark.papers.verdicts.records import Verdict
from benchmark.papers.verdicts.vocabulary import EPOCHS, VERDICTS
from benchmark.runs.table import RunTable
from benchmark.stats.reproduction import STANDARD_ERRORS
from benchmark.stats.samples import Spread
from benchmark.stats.sensitivity import MARKS

TEMPLATE = "explain.txt.j2"


def explain(verdict: Verdict, verdicts: Sequence[Verdict], table: RunTable) -> str:
    """Return how ``verdict``, one of ``verdicts`` on the runs in ``table``, came about."""
    each, test, row = verdict.comparison, verdict.test, verdict.row()
    family = [other.test for other in verdicts if other.comparison.family == each.family]
    runs = table.runs
    if each.cell is not None:
        runs = runs[runs["run_id"].isin([each.cell.run_id(seed) for seed in set(runs["seed"])])]
    network = row["setting"] or row["backbone"]
    size = f"batch size {row['batch_size']}" if row["batch_size"] is not None else ""
    environment = Environment(
        loader=PackageLoader("benchmark.papers.verdicts", ""),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(TEMPLATE).render(
        verdict=verdict,
        epoch=EPOCHS[each.selection],
        each=each,
        test=test,
        outcome=verdict.outcome,
        reference=each.reference,
        number=each.reference.number,
        then=each.reference.sample,
        place=" ".join(dict.fromkeys(each.family)),
        metric=display_name(each.metric),
        facts=[fact for fact in (row["dataset"], network, row["loss"], size) if fact],
        runs=() if each.note else list(runs.sort_values("seed").itertuples()),
        way=STANDARD_ERRORS[int(test.case)] if test else None,
        spreads=_spreads(verdict),
        rounding=each.reference.rounding if math.isfinite(each.reference.rounding) else 0.0,
        plain=verdict.plain,
        assumptions=MARKS,
        inside=test is not None and test.p_equivalence <= verdict.level,
        rank=1 + sum(bool(test and other and other.p_drift < test.p_drift) for other in family),
        alpha=verdict.level,
        level=f"{100 * verdict.level:g}%",
        confidence=f"{100 * (1 - 2 * verdict.level):g}%",
        meaning=VERDICTS[verdict.outcome.verdict],
        known=math.isfinite,
        f3=lambda value: f"{value:.3f}",
    )


def _spreads(verdict: Verdict) -> list[tuple[str, str, Spread]]:
    """Return letter, meaning and spread of each variance that the standard error is made of."""
    each = verdict.comparison
    known = [
        ("v", "one run of ours", each.spread),
        ("r", "one run of the reference", each.reference.spread),
        ("w", "one difference by seed", each.paired.spread),
    ]
    used = STANDARD_ERRORS[int(verdict.test.case)].square if verdict.test else ""
    return [(letter, what, spread) for letter, what, spread in known if f"{letter} " in used]
