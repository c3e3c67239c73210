"""Two runs, or two cells, side by side as one table: settings, origin and scores."""

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.core.errors import ConfigError
from benchmark.core.files import guess_csv
from benchmark.core.records import SPEC, Cell, RunSpec, settings_of
from benchmark.metrics.metric import display_name
from benchmark.runs.folders import RunStatus, status_in
from benchmark.stats.intervals import t_interval
from benchmark.stats.paired import paired_tests

Side = Mapping[int, tuple[RunSpec, RunStatus]]  # by seed
Scores = dict[tuple[str, str], dict[int, float]]  # by split and metric, then seed


def compare_text(first: str, second: str, results: Path, study: str = "*") -> str:
    """Return the table of two runs (dataset/setting/loss/bs32/seed0) or cells (no seed).

    It has what differs between their settings, origins and runs without a score; every score after
    the last epoch, in percent; and, over the seeds that both have, a paired t-test and whether the
    runs saw the same batches. The test is that of the tables of ``study``, a name or a pattern,
    where they are of these runs. Raise ConfigError with near names for a run that is not there.
    """
    problems: list[str] = []
    sides = [runs_called(name, results, problems) for name in (first, second)]
    if problems:
        raise ConfigError("compare", problems)
    facts = [_facts(side) for side in sides]
    scores = [_scores(side) for side in sides]
    tests = _tests_in(results, study, *(next(iter(side.values()))[0].cell for side in sides))
    rows: list[tuple[str, ...]] = [("", "A", "B", "B - A")]
    for name in {**facts[0], **facts[1]}:
        a, b = (each.get(name, "absent") for each in facts)
        if a != b or name == "seeds finished":
            rows.append((name, a, b, ""))
    for split, metric in {**scores[0], **scores[1]}:
        one, two = (each.get((split, metric), {}) for each in scores)
        label = display_name(metric) + ("" if split == "test" else f" on {split}")
        here = [row for row in tests if (row.split, row.metric) == (split, metric)]
        rows.append((label, _mean(one), _mean(two), _test(one, two, here)))
    streams = [
        {seed: each.result.batch_stream for seed, (_, each) in side.items() if each.result}
        for side in sides
    ]
    if common := streams[0].keys() & streams[1].keys():
        same = sum(streams[0][seed] == streams[1][seed] for seed in common)
        rows.append(("same first batches", f"in {same} of {len(common)} common seeds", "", ""))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return "\n".join([f"A: {first}", f"B: {second}", "", *lines])


def runs_called(name: str, results: Path, problems: list[str]) -> Side:
    """Return the runs called ``name``: one, or all seeds of a cell; add a problem for none."""
    root = Path(results) / "runs"
    name = name.rstrip("/").removeprefix(f"{root.as_posix()}/")
    folder = root / name
    single = (folder / SPEC).is_file()
    folders = [folder] if single else [path.parent for path in sorted(folder.glob(f"seed*/{SPEC}"))]
    if not folders:
        runs = [path.parent.relative_to(root).as_posix() for path in root.glob(f"*/*/*/*/*/{SPEC}")]
        cells = [run.rpartition("/")[0] for run in runs]
        close = difflib.get_close_matches(name, dict.fromkeys([*cells, *runs]), n=4, cutoff=0.3)
        near = "; nothing has been run there" if not runs else f"; for example {runs[0]}"
        near = f"; near: {', '.join(close)}" if close else near
        problems.append(f"no run '{name}' below {root}{near}")
    specs = [(path, RunSpec.read(path / SPEC)) for path in folders]
    return {spec.seed: (spec, status_in(path, spec)) for path, spec in specs}


def _facts(side: Side) -> dict[str, str]:
    """Return the settings apart from the seed, what computed the runs, and what is no score."""
    spec = next(iter(side.values()))[0]
    found = {"dataset": spec.dataset.label, "loss": spec.loss.name, "batch_size": spec.batch_size}
    found |= settings_of(spec)
    origin: dict[str, set[str]] = {}
    for _, status in side.values():
        if result := status.result:
            facts = {"code version": result.code_version, "data": result.dataset.fingerprint}
            if source := status.provenance:
                facts |= {"platform": source.platform}
                facts |= {"kernels": source.numerics.kernels}
                facts |= {f"package {name}": version for name, version in source.packages.items()}
            for name, value in facts.items():
                origin.setdefault(name, set()).add(value)
    finished = [str(seed) for seed, (_, status) in sorted(side.items()) if status.result]
    found |= {name: ", ".join(sorted(values)) for name, values in origin.items()}
    found["seeds finished"] = ", ".join(finished) or "none"
    for seed, (_, status) in sorted(side.items()):
        if status.status in ("stale", "failed", "diverged"):
            found[f"seed {seed}"] = f"{status.status}: {status.reason}"
    return {name: str(value) for name, value in found.items()}


def _scores(side: Side) -> Scores:
    """Return the scores after the last epoch, in percent."""
    found: Scores = {}
    for seed, (_, status) in sorted(side.items()):
        for split, metrics in status.result.metrics.last.items() if status.result else ():
            for metric, value in metrics.items():
                found.setdefault((split, metric), {})[seed] = 100 * value
    return found


def _mean(by_seed: Mapping[int, float]) -> str:
    if not by_seed:
        return "no score"
    found = t_interval(by_seed.values())
    return f"{found.mean:.2f}" + (f" ± {found.sd:.2f} (n {found.n})" if found.n > 1 else "")


def _tests_in(results: Path, study: str, *cells: Cell) -> list[Any]:
    """Return the rows of studies' tables that compare two cells.

    First is the study with most losses at their dataset and setting.
    """
    found: list[Any] = []
    for path in sorted(results.glob(f"{study}/stats/paired.csv")):
        table = guess_csv(path)
        for cell in cells:
            table = table[(table.dataset == cell.dataset) & (table.setting == str(cell.setting))]
        losses = len({*table.loss, *table.against})
        for cell in cells:
            pair = (table.loss == cell.loss) | (table.against == cell.loss)
            table = table[pair & (table.batch_size == cell.batch_size)]
        found += table.assign(study=path.parts[-3], losses=losses).itertuples()
    return sorted(found, key=lambda row: -row.losses)


def _test(first: Mapping[int, float], second: Mapping[int, float], tests: list[Any]) -> str:
    """Return the first of ``tests`` that is of these scores, or else a plain one."""
    seeds = sorted(first.keys() & second.keys())
    if not seeds:
        return "no common seed"
    ours, theirs = (np.array([[side[seed] for seed in seeds]]) for side in (first, second))
    row = paired_tests(theirs, ours).iloc[0]
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
    return f"{difference:+.2f} [{difference - half:+.2f}, {difference + half:+.2f}], {p}, n {n}"
