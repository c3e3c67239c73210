"""The registered analysis: what decides the verdicts of a study, written before its first run.

``results/<study>/registration.json`` is written when the workflow starts and never again. Later the
report and ``check`` compare it with the present analysis and name every difference. Planned looks
are registered as a whole, so that going on to the next one changes nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmark.core.files import write_json
from benchmark.core.records import RESULT
from benchmark.metrics.metric import METRICS
from benchmark.stats import samples
from benchmark.stats.intervals import TOLERATED
from benchmark.stats.reproduction import ALPHA, MARKS
from benchmark.study.grid import expand
from benchmark.verdicts.judging import rule_of
from benchmark.verdicts.matching import StudyGrid, reached_numbers
from benchmark.verdicts.pair_tests import tests_in_order

FILE = "registration.json"
Parts = Mapping[str, Mapping[str, Any]]  # part -> name -> plain JSON value


def register(grid: StudyGrid, results: Path) -> None:
    """Write the registration of a study, unless there is one.

    ``runs_before`` are runs of the study that had already ended, which other studies may share;
    ``digest`` is of all the others, in schema 1 of ``parts``.
    """
    study = grid.study
    path = study.folder(results) / FILE
    if not path.is_file():
        runs = [results / run.spec.folder / RESULT for run in expand(study).values()]
        said: dict[str, Any] = {
            "study": study.name,
            "registered": datetime.now(UTC).date().isoformat(),
            "runs_before": sum(run.is_file() for run in runs),
            "parts": analysis_of(grid),
        }
        write_json(path, {"schema": 2, "digest": _digest(said), **said})


@dataclass(frozen=True)
class RegistrationState:
    """One sentence for a reader, and every change since the registration."""

    words: str
    changes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join([self.words, *(f"  {change}" for change in self.changes)])


def registration_state(grid: StudyGrid, results: Path) -> RegistrationState:
    """Return whether the analysis of a study is registered, and what has changed since."""
    path = grid.study.folder(results) / FILE
    if not path.is_file():
        return RegistrationState(
            "The analysis was not registered before the runs: the workflow does that when it "
            "starts, and these results were made without it or before it did."
        )
    registered = json.loads(path.read_text(encoding="utf-8"))
    before = registered["parts"]
    now = analysis_of(grid)
    changes = []
    for part in dict.fromkeys([*before, *now]):
        old = before.get(part, {})
        new = now.get(part, {})
        for name in dict.fromkeys([*old, *new]):
            words = f"was {old.get(name)}, is {new.get(name)}"
            if name not in new or name not in old:
                words = f"was {'added' if name in new else 'removed'}"
            elif part in ("claims", "runs"):  # digests
                words = "was edited"
            if old.get(name) != new.get(name):
                changes.append(f"{part}: {name} {words}")
    when = "before the first run"
    if registered["runs_before"]:
        when = f"when {registered['runs_before']} of the study's runs had already ended"
    since = "nothing that decides a verdict has changed since."
    if changes:
        since = f"{len(changes)} thing{'s have' if len(changes) > 1 else ' has'} changed since."
    head = f"The analysis was registered on {registered['registered']}, {when}"
    return RegistrationState(f"{head}; {since}", tuple(changes))


def analysis_of(grid: StudyGrid) -> Parts:
    """Return all that decides the verdicts of a study besides its scores, as plain JSON."""
    study = grid.study
    comparison = study.comparison
    frozen = Path(study.references.frozen or ".")
    numbers = [number for number, _ in reached_numbers(grid)]
    frozen_digest = _digest(frozen.read_bytes().decode()) if frozen.is_file() else "none"
    families = Counter(f"{number.source} {number.table}" for number in numbers)
    published = {}
    rules = {}
    for number in numbers:
        line = f"{number.source} {number.table} line {number.line}"
        published[line] = float(number.value)
        rules[number.source] = " ".join(rule_of(grid.papers, number.source)).strip()
    recipes: dict[str, list[str]] = defaultdict(list)
    for block in study.blocks:
        first = (spec for spec in block.specs() if spec.seed == block.seeds[0])
        recipes[block.name] += [spec.digest for spec in first]
    return {
        "margins": {
            f"{metric.at('*')} from {height:g}": margin
            for metric in METRICS.values()
            for height, margin in metric.margin
        },
        "families": {**families, "frozen runs": frozen_digest},
        "published numbers": published,
        "claims": {claim.name: _digest(asdict(claim)) for claim in grid.papers.claims(study.name)},
        "seeds": {block.name: list(block.planned_seeds) for block in study.blocks},
        "looks": {"seeds at each": list(study.looks)},
        "selection": {"headline": "last epoch", **rules},
        "comparison": {
            "baseline": comparison.baseline,
            "ablation": list(comparison.ablation),
            "alpha": comparison.alpha,
            "metrics": list(study.metrics),
        },
        "rule": {
            "level": ALPHA,
            "lent degrees of freedom": samples.LIMIT,
            "lent, times its own": samples.TIMES,
            "lent, share of the sisters'": samples.SHARE,
            "level of outliers": samples.OUTLIER,
            "tolerated divergence": TOLERATED,
            "sensitivity": sorted(MARKS),
            **{f"test {entry.name}": entry.display for entry in tests_in_order()[:-1]},
        },
        "runs": {name: _digest(digests) for name, digests in recipes.items()},
    }


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
