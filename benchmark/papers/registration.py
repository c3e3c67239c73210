"""The registered analysis: what decides the verdicts of a study, written before its first run.

``results/<study>/registration.json`` is written when the workflow starts and never again. Later the
report and ``check`` compare it with the present analysis and name every difference. Planned looks
are registered as a whole, so that going on to the next one changes nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmark.core.files import write_json
from benchmark.core.records import RESULT
from benchmark.papers.forecast import reached_numbers
from benchmark.papers.paper import claims_of
from benchmark.papers.vocabulary import load_margins
from benchmark.stats import samples
from benchmark.stats.intervals import TOLERATED
from benchmark.stats.reproduction import ALPHA, MARKS
from benchmark.study import Study
from benchmark.study.grid import expand

FILE = "registration.json"
SCHEMA = 2
HEADLINE = "last epoch"
Parts = Mapping[str, Mapping[str, Any]]  # part -> name -> plain JSON value


@dataclass(frozen=True)
class Registration:
    """The record: when it was written, and what decides the verdicts by part and name.

    runs_before  runs of the study that had already ended, which other studies may share
    digest       of all the others; in schema 1 of ``parts``
    """

    schema: int
    study: str
    registered: str  # YYYY-MM-DD, UTC
    runs_before: int
    digest: str
    parts: Parts

    @classmethod
    def read(cls, folder: Path) -> Registration | None:
        """Return the registration in a study's folder, or None."""
        path = Path(folder) / FILE
        return cls(**json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else None


def register(study: Study, results: Path) -> Registration:
    """Return the registration of a study, written now unless there is one."""
    folder = study.folder(results)
    found = Registration.read(folder)
    if found is None:
        runs = [Path(results) / run.spec.folder / RESULT for run in expand(study).values()]
        said: dict[str, Any] = {
            "study": study.name,
            "registered": datetime.now(UTC).date().isoformat(),
            "runs_before": sum(path.is_file() for path in runs),
            "parts": analysis_of(study),
        }
        found = Registration(schema=SCHEMA, digest=_digest(said), **said)
        write_json(folder / FILE, asdict(found))
    return found


@dataclass(frozen=True)
class RegistrationState:
    """One sentence for a reader, and every change since the registration."""

    words: str
    changes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join([self.words, *(f"  {change}" for change in self.changes)])


def registration_state(study: Study, results: Path) -> RegistrationState:
    """Return whether the analysis of a study is registered, and what has changed since."""
    found = Registration.read(study.folder(results))
    if found is None:
        words = (
            "The analysis was not registered before the runs: the workflow does that when it "
            "starts, and these results were made without it or before it did."
        )
        return RegistrationState(words)
    when = "before the first run"
    if found.runs_before:
        when = f"when {found.runs_before} of the study's runs had already ended"
    head = f"The analysis was registered on {found.registered}, {when}"
    changes = changes_between(found.parts, analysis_of(study))
    if not changes:
        return RegistrationState(f"{head}; nothing that decides a verdict has changed since.")
    count = "1 thing has" if len(changes) == 1 else f"{len(changes)} things have"
    return RegistrationState(f"{head}; {count} changed since.", tuple(changes))


def analysis_of(study: Study) -> Parts:
    """Return all that decides the verdicts of a study besides its scores, as plain JSON."""
    comparison, frozen = study.comparison, Path(study.references.frozen or ".")
    numbers = [each for each, _ in reached_numbers(study)]
    frozen_text = frozen.read_bytes().decode() if frozen.is_file() else None
    families = Counter(f"{each.source} {each.table}" for each in numbers)
    recipes: dict[str, list[str]] = {}
    seeds: dict[str, list[int]] = {}
    for block in study.blocks:
        seeds[block.name] = list(block.planned_seeds)
        first = [spec for spec in block.specs() if spec.seed == block.seeds[0]]
        recipes.setdefault(block.name, []).extend(spec.digest for spec in first)
    return {
        "margins": {
            f"{metric} from {height:g}": margin
            for metric, heights in load_margins().items()
            for height, margin in heights.items()
        },
        "families": {
            **families,
            "frozen runs": "none" if frozen_text is None else _digest(frozen_text),
        },
        "published numbers": {
            f"{each.source} {each.table} line {each.line}": float(each.value) for each in numbers
        },
        "claims": {claim.name: _digest(asdict(claim)) for claim in claims_of(study.name)},
        "seeds": seeds,
        "looks": {"seeds at each": list(study.looks)},
        "selection": {"headline": HEADLINE},
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
        },
        "runs": {name: _digest(digests) for name, digests in recipes.items()},
    }


def changes_between(before: Parts, now: Parts) -> list[str]:
    """Return every difference in words, part by part."""
    found = []
    for part in dict.fromkeys([*before, *now]):
        old, new = before.get(part, {}), now.get(part, {})
        for name in dict.fromkeys([*old, *new]):
            if name not in new:
                found.append(f"{part}: {name} was removed")
            elif name not in old:
                found.append(f"{part}: {name} was added")
            elif old[name] != new[name]:
                digests = part in ("claims", "runs")
                words = "was edited" if digests else f"was {old[name]}, is {new[name]}"
                found.append(f"{part}: {name} {words}")
    return found


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
