"""Two runs, or two groups of runs that differ in their seeds alone, side by side: what was asked, and what came out."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.core.errors import ConfigError
from benchmark.core.records import PROVENANCE, RESULT, SPEC, read_json
from benchmark.metrics.names import display_name
from benchmark.stats.intervals import t_interval
from benchmark.stats.paired import paired_tests

_SEED = "seed"
_SHOWN_ELSEWHERE = ("run_id", _SEED, "schema", "setting", "loss.variant")


@dataclass(frozen=True)
class Side:
    """The runs of one side by seed: their specifications, results and provenance."""

    name: str
    specs: dict[int, dict[str, Any]]
    results: dict[int, dict[str, Any]]
    provenance: dict[int, dict[str, Any]]


def compare_text(first: str, second: str, results: Path) -> str:
    """Returns the comparison of two runs (dataset/setting/loss/bs32/seed0) or cells (the same without the seed).

    Differences of the specifications and of what computed them; every score; and, where both sides have a seed in
    common, whether the runs saw the same batches, and a paired t-test over the common seeds. Raises ConfigError with
    near names for a run that is not there.
    """
    sides, problems = [], []
    for name in (first, second):
        try:
            sides.append(load_side(name, results))
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError("compare", problems)
    common = sorted(sides[0].results.keys() & sides[1].results.keys())
    lines = [
        f"A: {sides[0].name} ({_seeds(sides[0])})",
        f"B: {sides[1].name} ({_seeds(sides[1])})",
        "",
    ]
    lines += [
        "specification",
        *_differences(*[_flat(next(iter(side.specs.values()))) for side in sides]),
        "",
    ]
    lines += ["computed by", *_differences(*[_computed_by(side) for side in sides]), ""]
    lines += _scores(sides, common)
    if common:
        lines += ["", _batches(sides, common)]
    return "\n".join(lines)


def load_side(name: str, results: Path) -> Side:
    """Returns the runs called ``name``: one run, or all seeds of a cell; raises ConfigError with near names."""
    root = Path(results) / "runs"
    name = name.rstrip("/").removeprefix(f"{root.as_posix()}/")
    folder = root / name
    found = [folder] if (folder / SPEC).is_file() else sorted(folder.glob("seed*"))
    found = [path for path in found if (path / SPEC).is_file()]
    if not found:
        raise ConfigError("compare", [f"no run '{name}' below {root}{_near(name, root)}"])
    specs = {path: read_json(path / SPEC, "a run specification") for path in found}
    seeds = {path: int(spec[_SEED]) for path, spec in specs.items()}

    def records(file: str) -> dict[int, dict[str, Any]]:
        return {
            seeds[path]: read_json(path / file, "a record of a run")
            for path in found
            if (path / file).is_file()
        }

    return Side(
        name,
        {seeds[path]: spec for path, spec in specs.items()},
        records(RESULT),
        records(PROVENANCE),
    )


def _near(name: str, root: Path) -> str:
    runs = [path.parent.relative_to(root).as_posix() for path in root.glob(f"*/*/*/*/*/{SPEC}")]
    if not runs:
        return "; nothing has been run there"
    cells = [run.rpartition("/")[0] for run in runs]
    close = difflib.get_close_matches(name, dict.fromkeys([*cells, *runs]), n=4, cutoff=0.3)
    return f"; near: {', '.join(close)}" if close else f"; for example {runs[0]}"


def _seeds(side: Side) -> str:
    finished = ", ".join(map(str, sorted(side.results))) or "none"
    return f"seeds finished: {finished}"


def _flat(value: Any, place: str = "") -> dict[str, Any]:
    """Returns {dotted place: value} of the leaves of nested mappings."""
    if not isinstance(value, dict):
        return {place: value}
    inner = (_flat(part, f"{place}.{key}" if place else key) for key, part in value.items())
    return {name: leaf for found in inner for name, leaf in found.items()}


def _differences(first: dict[str, Any], second: dict[str, Any]) -> list[str]:
    places = [place for place in {**first, **second} if place not in _SHOWN_ELSEWHERE]
    lines = [
        f"  {place}: {first.get(place, 'absent')} | {second.get(place, 'absent')}"
        for place in places
        if first.get(place) != second.get(place)
    ]
    return lines or ["  no difference"]


def _computed_by(side: Side) -> dict[str, Any]:
    """Returns the versions behind a side's results, all of them where its runs differ."""
    found: dict[str, set[str]] = {}
    for seed, result in side.results.items():
        source = side.provenance.get(seed, {})
        facts = {"code version": result.get("code_version"), "platform": source.get("platform")}
        facts["vector instructions"] = source.get("numerics", {}).get("instructions")
        facts |= {
            f"package {name}": version for name, version in source.get("packages", {}).items()
        }
        facts["data"] = result.get("dataset", {}).get("fingerprint")
        for name, value in facts.items():
            found.setdefault(name, set()).add(str(value))
    return {name: ", ".join(sorted(values)) for name, values in found.items()}


def _scores(sides: list[Side], common: list[int]) -> list[str]:
    values = [_values(side) for side in sides]
    keys = list(dict.fromkeys([*values[0], *values[1]]))
    lines = ["scores after the last epoch, percent: A | B | B - A, over the common seeds"]
    for split, metric in keys:
        mine = [found.get((split, metric), {}) for found in values]
        shown = " | ".join(_mean(list(found.values())) for found in mine)
        label = f"{display_name(metric)}" + ("" if split == "test" else f" on {split}")
        lines.append(f"  {label}: {shown} | {_test(*mine)}")
    diverged = [
        f"{name} seed {seed}"
        for name, side in zip("AB", sides, strict=True)
        for seed in _diverged(side)
    ]
    return [
        *(lines if keys else ["no scores yet"]),
        *([f"  diverged: {', '.join(diverged)}"] if diverged else []),
    ]


def _values(side: Side) -> dict[tuple[str, str], dict[int, float]]:
    found: dict[tuple[str, str], dict[int, float]] = {}
    for seed, result in sorted(side.results.items()):
        for split, metrics in result.get("metrics", {}).get("last", {}).items():
            for metric, value in metrics.items():
                found.setdefault((split, metric), {})[seed] = float(value)
    return found


def _mean(values: list[float]) -> str:
    if not values:
        return "none"
    found = t_interval(100 * np.array(values))
    return f"{found.mean:.2f}" + (f" ± {found.sd:.2f} (n {found.n})" if found.n > 1 else "")


def _test(first: dict[int, float], second: dict[int, float]) -> str:
    seeds = sorted(first.keys() & second.keys())
    if not seeds:
        return "no common seed"
    pair = [100 * np.array([[side[seed] for seed in seeds]]) for side in (second, first)]
    row = paired_tests(*pair).iloc[0]
    if not np.isfinite(row["p"]):
        return f"{row['difference']:+.2f} ({row['note'] or 'no test'})"
    interval = f"[{row['ci_low']:+.2f}, {row['ci_high']:+.2f}]"
    return f"{row['difference']:+.2f} {interval}, paired t-test p = {row['p']:.2g}, n {len(seeds)}"


def _diverged(side: Side) -> list[int]:
    return sorted(
        seed for seed, result in side.results.items() if result.get("status") == "diverged"
    )


def _batches(sides: list[Side], common: list[int]) -> str:
    streams = [
        [side.results[seed].get("batch_stream", {}).get("sha256") for seed in common]
        for side in sides
    ]
    same = sum(a == b and a is not None for a, b in zip(*streams, strict=True))
    return f"same first batches in {same} of {len(common)} common seeds"
