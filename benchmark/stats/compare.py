"""Two runs, or two cells, side by side as one table: settings, origin and scores."""

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmark.core.errors import ConfigError
from benchmark.core.files import guess_csv
from benchmark.core.records import SPEC, Cell, RunSpec, settings_of
from benchmark.core.results import BatchStream
from benchmark.metrics.metric import display_name
from benchmark.runs.folders import RunStatus, status_in
from benchmark.stats.intervals import t_interval
from benchmark.stats.paired import paired_tests
from benchmark.stats.samples import BySeed

Side = Mapping[int, tuple[RunSpec, RunStatus]]  # by seed
Scores = dict[tuple[str, str], dict[int, float]]  # by split and metric, then seed


def compare_text(first: str, second: str, results: Path, study: str = "*") -> str:
    """Return the table of two runs (dataset/setting/loss/bs32/seed0) or cells (no seed).

    The table has differences of settings, origins and runs without a score; every score after the
    last epoch, in percent; and, over the seeds that both sides have, a paired t-test and whether
    the runs saw the same batches. The test is taken from the tables of ``study``, a name or a
    pattern, if they have these runs. Raise ConfigError with near names for a run that is not there.
    """
    problems: list[str] = []
    sides = [runs_called(name, results, problems) for name in (first, second)]
    if problems:
        raise ConfigError("compare", problems)
    facts = pd.DataFrame(map(_facts, sides)).fillna("absent")
    scores_a, scores_b = map(_scores, sides)
    streams_a, streams_b = map(_batch_streams, sides)
    tests = _tests_in(results, study, *map(_cell, sides))
    rows: list[tuple[str, ...]] = [("", "A", "B", "B - A")]
    for name, (fact_a, fact_b) in facts.items():
        if fact_a != fact_b or name == "seeds finished":
            rows.append((str(name), fact_a, fact_b, ""))
    for split, metric in {**scores_a, **scores_b}:
        by_seed_a = scores_a.get((split, metric), {})
        by_seed_b = scores_b.get((split, metric), {})
        label = display_name(metric)
        if split != "test":
            label = f"{label} on {split}"
        tests_of_score = [row for row in tests if (row.split, row.metric) == (split, metric)]
        test = _test(by_seed_a, by_seed_b, tests_of_score)
        rows.append((label, _mean(by_seed_a), _mean(by_seed_b), test))
    common = streams_a.keys() & streams_b.keys()
    if common:
        same = sum(streams_a[seed] == streams_b[seed] for seed in common)
        rows.append(("same first batches", f"in {same} of {len(common)} common seeds", "", ""))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return "\n".join([f"A: {first}", f"B: {second}", "", *lines])


def _cell(side: Side) -> Cell:
    spec, _ = next(iter(side.values()))
    return spec.cell


def _batch_streams(side: Side) -> dict[int, BatchStream]:
    """Return what the first batches of each finished run were, by seed."""
    streams = {}
    for seed, (_, status) in side.items():
        if status.result:
            streams[seed] = status.result.batch_stream
    return streams


def runs_called(name: str, results: Path, problems: list[str]) -> Side:
    """Return the runs called ``name``: one run, or all seeds of a cell.

    Add a problem if there is no such run.
    """
    root = results / "runs"
    name = name.rstrip("/").removeprefix(f"{root.as_posix()}/")
    folder = root / name
    if (folder / SPEC).is_file():
        folders = [folder]
    else:
        folders = [path.parent for path in sorted(folder.glob(f"seed*/{SPEC}"))]
    if not folders:
        run_folders = [path.parent for path in root.glob(f"*/*/*/*/*/{SPEC}")]
        runs = [path.relative_to(root).as_posix() for path in run_folders]
        cells = [run.rpartition("/")[0] for run in runs]
        names = dict.fromkeys([*cells, *runs])
        close = difflib.get_close_matches(name, names, n=4, cutoff=0.3)
        if close:
            near = f"; near: {', '.join(close)}"
        elif runs:
            near = f"; for example {runs[0]}"
        else:
            near = "; nothing has been run there"
        problems.append(f"no run '{name}' below {root}{near}")
    side = {}
    for path in folders:
        spec = RunSpec.read(path / SPEC)
        side[spec.seed] = (spec, status_in(path, spec))
    return side


def _facts(side: Side) -> dict[str, str]:
    """Return the settings without the seed, the origin of the runs, and runs without a score."""
    spec, _ = next(iter(side.values()))
    facts = {
        "dataset": spec.dataset.label,
        "loss": spec.loss.name,
        "batch_size": spec.batch_size,
        **settings_of(spec),
    }
    origins: dict[str, set[str]] = {}
    finished = []
    for seed, (_, status) in sorted(side.items()):
        result = status.result
        if result is None:
            continue
        finished.append(str(seed))
        origin = {"code version": result.code_version, "data": result.dataset.fingerprint}
        source = status.provenance
        if source:
            origin["platform"] = source.platform
            origin["kernels"] = source.numerics.kernels
            for package, version in source.packages.items():
                origin[f"package {package}"] = version
        for name, value in origin.items():
            origins.setdefault(name, set()).add(value)
    for name, values in origins.items():
        facts[name] = ", ".join(sorted(values))
    facts["seeds finished"] = ", ".join(finished) or "none"
    for seed, (_, status) in sorted(side.items()):
        if status.status in ("stale", "failed", "diverged"):
            facts[f"seed {seed}"] = f"{status.status}: {status.reason}"
    return {name: str(value) for name, value in facts.items()}


def _scores(side: Side) -> Scores:
    """Return the scores after the last epoch, in percent."""
    scores: Scores = {}
    for seed, (_, status) in sorted(side.items()):
        if status.result is None:
            continue
        for split, metrics in status.result.metrics.last.items():
            for metric, value in metrics.items():
                scores.setdefault((split, metric), {})[seed] = 100 * value
    return scores


def _mean(by_seed: BySeed) -> str:
    if not by_seed:
        return "no score"
    interval = t_interval(by_seed.values())
    if interval.n > 1:
        return f"{interval.mean:.2f} ± {interval.sd:.2f} (n {interval.n})"
    return f"{interval.mean:.2f}"


def _tests_in(results: Path, study: str, *cells: Cell) -> list[Any]:
    """Return the rows of studies' tables that compare two cells.

    The study with the most losses at their dataset and setting comes first.
    """
    tests: list[Any] = []
    for path in sorted(results.glob(f"{study}/stats/paired.csv")):
        table = guess_csv(path)
        for cell in cells:
            same_setting = table.setting == str(cell.setting)
            table = table[(table.dataset == cell.dataset) & same_setting]
        losses = len({*table.loss, *table.against})
        for cell in cells:
            pair = (table.loss == cell.loss) | (table.against == cell.loss)
            table = table[pair & (table.batch_size == cell.batch_size)]
        tests += table.assign(study=path.parts[-3], losses=losses).itertuples()
    return sorted(tests, key=lambda row: -row.losses)


def _test(first: BySeed, second: BySeed, tests: list[Any]) -> str:
    """Return the first of ``tests`` that is of these scores, or else a plain test."""
    seeds = sorted(first.keys() & second.keys())
    if not seeds:
        return "no common seed"
    scores_a = np.array([[first[seed] for seed in seeds]])
    scores_b = np.array([[second[seed] for seed in seeds]])
    row = paired_tests(scores_b, scores_a).iloc[0]
    difference = row["difference"]
    n = len(seeds)
    p = f"plain t-test p = {row['p']:.3g}"
    if not np.isfinite(row["p"]):
        return f"{difference:+.2f} ({row['note'] or 'no test'})"
    half = row["ci_high"] - difference
    for test in tests:
        if test.n == n and np.isclose(100 * abs(test.difference), abs(difference)):
            half = 50 * (test.ci_high - test.ci_low)
            p = f"p = {test.p:.3g} of study '{test.study}', {p}"
            break
    low = difference - half
    high = difference + half
    return f"{difference:+.2f} [{low:+.2f}, {high:+.2f}], {p}, n {n}"
