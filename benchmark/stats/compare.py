"""Two runs, or two cells, side by side: settings, origin and scores."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.core.errors import ConfigError
from benchmark.core.records import SPEC, RunSpec, settings_of
from benchmark.core.results import Provenance, Result
from benchmark.metrics.names import display_name
from benchmark.runs.status import RunStatus, status_in
from benchmark.stats.intervals import t_interval
from benchmark.stats.paired import paired_tests


@dataclass(frozen=True)
class ComparedRuns:
    """One run, or the runs of one cell: their records by seed, and what became of them."""

    name: str
    specs: Mapping[int, RunSpec]
    statuses: Mapping[int, RunStatus]

    @property
    def results(self) -> dict[int, Result]:
        """The results that ``collect`` would take."""
        return {seed: each.result for seed, each in self.statuses.items() if each.result}

    @property
    def provenance(self) -> dict[int, Provenance]:
        """What computed them."""
        return {seed: each.provenance for seed, each in self.statuses.items() if each.provenance}

    @property
    def settings(self) -> dict[str, Any]:
        """What was asked for, apart from the seed."""
        spec = next(iter(self.specs.values()))
        names = {
            "dataset": spec.dataset.label,
            "loss": spec.loss.name,
            "batch_size": spec.batch_size,
        }
        return {**names, **settings_of(spec)}

    @property
    def origin(self) -> dict[str, str]:
        """The versions of code, packages and data behind the results, all where runs differ."""
        found: dict[str, set[str]] = {}
        for seed, result in self.results.items():
            facts = {"code version": result.code_version, "data": result.dataset.fingerprint}
            if source := self.provenance.get(seed):
                facts |= {"platform": source.platform}
                facts |= {"vector instructions": str(source.numerics.instructions)}
                facts |= {f"package {name}": version for name, version in source.packages.items()}
            for name, value in facts.items():
                found.setdefault(name, set()).add(value)
        return {name: ", ".join(sorted(values)) for name, values in found.items()}

    @property
    def scores(self) -> dict[tuple[str, str], dict[int, float]]:
        """The scores after the last epoch in percent, by split and metric, then seed."""
        found: dict[tuple[str, str], dict[int, float]] = {}
        for seed, result in sorted(self.results.items()):
            for split, metrics in result.metrics.last.items():
                for metric, value in metrics.items():
                    found.setdefault((split, metric), {})[seed] = 100 * value
        return found


def compare_text(first: str, second: str, results: Path) -> str:
    """Return the comparison of two runs (dataset/setting/loss/bs32/seed0) or cells (no seed).

    Differences of settings and origin; every score; and, over the seeds that both have, whether the
    runs saw the same batches, and a paired t-test. Raise ConfigError with
    near names for a run that is not there.
    """
    problems: list[str] = []
    found = [load_runs(name, results, problems) for name in (first, second)]
    if problems:
        raise ConfigError("compare", problems)
    ours, theirs = (each for each in found if each is not None)
    lines = [
        *_head("A", ours),
        *_head("B", theirs),
        "",
        "specification",
        *_differences(ours.settings, theirs.settings),
        "",
        "computed by",
        *_differences(ours.origin, theirs.origin),
        "",
        *_scores(ours, theirs),
    ]
    if common := sorted(ours.results.keys() & theirs.results.keys()):
        streams = ([side.results[seed].batch_stream for seed in common] for side in (ours, theirs))
        same = sum(a == b for a, b in zip(*streams, strict=True))
        lines += ["", f"same first batches in {same} of {len(common)} common seeds"]
    return "\n".join(lines)


def load_runs(name: str, results: Path, problems: list[str]) -> ComparedRuns | None:
    """Return the runs called ``name``: one, or all seeds of a cell; add a problem for none."""
    root = Path(results) / "runs"
    name = name.rstrip("/").removeprefix(f"{root.as_posix()}/")
    folder = root / name
    single = (folder / SPEC).is_file()
    folders = [folder] if single else [path.parent for path in sorted(folder.glob(f"seed*/{SPEC}"))]
    if not folders:
        problems.append(f"no run '{name}' below {root}{_near(name, root)}")
        return None
    specs = {path: RunSpec.read(path / SPEC) for path in folders}
    return ComparedRuns(
        name,
        {spec.seed: spec for spec in specs.values()},
        {spec.seed: status_in(path, spec) for path, spec in specs.items()},
    )


def _near(name: str, root: Path) -> str:
    runs = [path.parent.relative_to(root).as_posix() for path in root.glob(f"*/*/*/*/*/{SPEC}")]
    if not runs:
        return "; nothing has been run there"
    cells = [run.rpartition("/")[0] for run in runs]
    close = difflib.get_close_matches(name, dict.fromkeys([*cells, *runs]), n=4, cutoff=0.3)
    return f"; near: {', '.join(close)}" if close else f"; for example {runs[0]}"


def _head(label: str, side: ComparedRuns) -> list[str]:
    seeds = f"seeds finished: {', '.join(map(str, sorted(side.results))) or 'none'}"
    unusable = [
        f"  seed {seed} is {found.status}: {found.reason}"
        for seed, found in sorted(side.statuses.items())
        if found.status in ("stale", "failed")
    ]
    return [f"{label}: {side.name} ({seeds})", *unusable]


def _differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    lines = [
        f"  {key}: {first.get(key, 'absent')} | {second.get(key, 'absent')}"
        for key in {**first, **second}
        if first.get(key) != second.get(key)
    ]
    return lines or ["  no difference"]


def _scores(ours: ComparedRuns, theirs: ComparedRuns) -> list[str]:
    first, second = ours.scores, theirs.scores
    if not first and not second:
        return ["no scores yet"]
    lines = ["scores after the last epoch, percent: A | B | B - A, over the common seeds"]
    for split, metric in {**first, **second}:
        a, b = (scores.get((split, metric), {}) for scores in (first, second))
        label = display_name(metric) + ("" if split == "test" else f" on {split}")
        lines.append(f"  {label}: {_mean(a)} | {_mean(b)} | {_test(a, b)}")
    diverged = [
        f"{name} seed {seed}"
        for name, side in (("A", ours), ("B", theirs))
        for seed, result in sorted(side.results.items())
        if result.status == "diverged"
    ]
    return [*lines, f"  diverged: {', '.join(diverged)}"] if diverged else lines


def _mean(by_seed: Mapping[int, float]) -> str:
    if not by_seed:
        return "none"
    found = t_interval(list(by_seed.values()))
    return f"{found.mean:.2f}" + (f" ± {found.sd:.2f} (n {found.n})" if found.n > 1 else "")


def _test(first: Mapping[int, float], second: Mapping[int, float]) -> str:
    seeds = sorted(first.keys() & second.keys())
    if not seeds:
        return "no common seed"
    ours, theirs = (np.array([[side[seed] for seed in seeds]]) for side in (first, second))
    row = paired_tests(theirs, ours).iloc[0]
    if not np.isfinite(row["p"]):
        return f"{row['difference']:+.2f} ({row['note'] or 'no test'})"
    interval = f"[{row['ci_low']:+.2f}, {row['ci_high']:+.2f}]"
    return f"{row['difference']:+.2f} {interval}, paired t-test p = {row['p']:.2g}, n {len(seeds)}"
