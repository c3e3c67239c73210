"""Reading ``claims.yaml``: checked against its JSON Schema and the names that exist, all problems at once."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

from benchmark.core.errors import ConfigError, unknown_name
from benchmark.core.options import problems
from benchmark.losses.catalogue import load_catalogue
from benchmark.metrics.names import check_metric
from benchmark.papers.claims.model import Arm, Claim, Condition
from benchmark.papers.references.published import published_results

FILE = Path(__file__).parent / "claims.yaml"
SCHEMA = Path(__file__).parent / "claims.schema.json"
COST_METRICS = ("seconds_per_epoch", "train_seconds", "loss_ms")
ALPHA = 0.05
_OPTIONS = ("by", "margin", "best", "near", "between")
_CONDITION = re.compile(r"[\w|]+=[\w.+-]+(;[\w|]+=[\w.+-]+)*")


def load_claims(path: Path | None = None) -> tuple[Claim, ...]:
    """Returns the claims of ``path`` (default: the papers'), in the order of the file; raises ConfigError."""
    path = Path(path or FILE)
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), _Unique)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(str(path), [f"cannot be read as YAML ({error})"]) from error
    found = problems(json.loads(SCHEMA.read_text(encoding="utf-8")), data)
    if not found:
        claims = tuple(_claim(name, entry) for name, entry in data.items())
        papers = set(published_results()["paper"])
        found = [problem for claim in claims for problem in _unknown(claim, papers)]
    if found:
        raise ConfigError(str(path), found)
    return claims


class _Unique(yaml.SafeLoader):
    """YAML in which a key that is given twice is an error: the first claim would vanish without a word."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        keys = [self.construct_object(key, deep=deep) for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key '{key}' is given twice", node.start_mark
                )
        return super().construct_mapping(node, deep)


def _claim(name: str, entry: dict[str, Any]) -> Claim:
    conditions = tuple(
        Condition(
            tuple(item["datasets"]),
            item.get("protocol", ""),
            item.get("backbone", ""),
            tuple(sorted(item.get("batch_sizes", ()))),
            item.get("instead_of", ""),
        )
        for item in entry["published"]
    )
    return Claim(
        name=name,
        paper=entry["paper"],
        place=entry["place"],
        sentence=" ".join(entry["sentence"].split()),
        kind=entry["kind"],
        metrics=tuple(entry["metrics"]),
        published=conditions,
        alpha=float(entry.get("alpha", ALPHA)),
        first=tuple(_arm(item) for item in entry.get("first", ())),
        second=tuple(_arm(item) for item in entry.get("second", ())),
        levels=_levels(entry["levels"]) if "levels" in entry else {},
        options={key: entry[key] for key in _OPTIONS if key in entry},
        outside=" ".join(entry.get("outside", "").split()).rstrip("."),
    )


def _arm(item: str | dict[str, Any]) -> Arm:
    if isinstance(item, str):
        return Arm(item)
    conditions = item.get("condition", "")
    dim = item.get("embedding_dim")
    return Arm(
        item["loss"],
        (conditions,) if isinstance(conditions, str) else tuple(conditions),
        item.get("backbone", ""),
        "" if dim is None else str(dim),
        item.get("batch_size"),
    )


def _levels(entry: dict[str, Any]) -> dict[str, Arm]:
    same = {level: _arm(item) for level, item in entry.get("same_as", {}).items()}
    return {
        level: same.get(level) or Arm(entry["loss"], (f"{entry['key']}={level}",))
        for level in entry["values"]
    }


def _unknown(claim: Claim, papers: set[str]) -> list[str]:
    """Returns what a schema cannot know: names of papers, losses, metrics and levels that do not exist."""
    found = []
    if claim.paper not in papers:
        found.append(f"{claim.name}.paper  {unknown_name('paper', claim.paper, papers)}")
    losses = load_catalogue()
    for arm in claim.arms:
        if arm.loss not in losses:
            found.append(f"{claim.name}  {unknown_name('loss', arm.loss, losses)}")
        for condition in filter(None, arm.conditions):
            if not _CONDITION.fullmatch(condition):
                found.append(
                    f"{claim.name}  condition '{condition}' is not of the form key=value;key=value"
                )
    for metric in claim.metrics:
        if claim.kind == "cost_ratio" and metric not in COST_METRICS:
            found.append(f"{claim.name}.metrics  {unknown_name('cost', metric, COST_METRICS)}")
        problem = None if claim.kind == "cost_ratio" else check_metric(metric)
        if problem:
            found.append(f"{claim.name}.metrics  {problem}")
    for level in [claim.options.get("best"), *claim.options.get("near", ())]:
        if level is not None and level not in claim.levels:
            found.append(f"{claim.name}  {unknown_name('level', level, claim.levels)}")
    return found
