"""The queries whose scores differ between two runs, or between the means of two cells."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmark.core.errors import BenchmarkError
from benchmark.core.query_scores import QueryScores, read_query_scores
from benchmark.core.records import RunSpec
from benchmark.core.results import Result
from benchmark.datasets import load_dataset
from benchmark.metrics.names import display_name
from benchmark.stats.intervals import Floats
from benchmark.stats.queries import query_interval

SHOWN = 5  # queries named in each direction
COUNTED = ("recall_at_1", "map")
NAMED = "map"  # by whose change queries are named


def changed_queries(first: Floats, second: Floats) -> dict[str, NDArray[np.int64]]:
    """Return the indices of the queries (Q,) that are "better" and "worse" in ``second``.

    The largest change comes first.
    """
    change = second - first
    rising = np.argsort(change, kind="stable")
    falling = rising[::-1]
    return {"better": falling[change[falling] > 0], "worse": rising[change[rising] < 0]}


def changes(
    spec: RunSpec, first: Sequence[tuple[Path, Result]], second: Sequence[tuple[Path, Result]]
) -> list[str]:
    """Return lines on the queries of two sides: run folders and results, seed by seed.

    How many are better and worse, the difference with its interval over classes, and the queries
    that changed most, by name where the dataset of ``spec`` is at hand.
    """
    if any(result.status != "ok" for _, result in (*first, *second)):
        return []
    ours, theirs = (_kept(side) for side in (first, second))
    if ours is None or theirs is None:
        return ["", "queries: their scores were not kept by all of these runs"]
    lines = ["", "queries, B against A, mean over the common seeds"]
    names = _names(spec)
    for split in [split for split in ours if split in theirs]:
        a, b = ours[split], theirs[split]
        one = a[0]
        if not all(
            np.array_equal(one.query, each.query) and np.array_equal(one.label, each.label)
            for each in (*a, *b)
        ):
            lines.append(f"  {split}: the runs were asked other queries")
            continue
        for metric in COUNTED:
            before, after = _mean(a, metric), _mean(b, metric)
            if before is None or after is None:
                continue
            found = changed_queries(before, after)
            interval = query_interval(100 * (after - before), one.label)
            lines.append(
                f"  {_label(split, metric)}: {len(found['better'])} better, "
                f"{len(found['worse'])} worse of {interval.queries}; {interval.mean:+.2f} "
                f"[{interval.low:+.2f}, {interval.high:+.2f}] over {interval.classes} classes"
            )
            if metric == NAMED:
                lines += _named(found, one, before, after, names.get(split))
    return lines


def _kept(side: Sequence[tuple[Path, Result]]) -> dict[str, list[QueryScores]] | None:
    """Return the scores by split, run by run; None when some run did not keep them."""
    found: dict[str, list[QueryScores]] = {}
    for folder, result in side:
        splits = read_query_scores(folder, result.spec_digest, result.metrics.last)
        if splits is None:
            return None
        for split, scores in splits.items():
            found.setdefault(split, []).append(scores)
    return found


def _mean(scores: Sequence[QueryScores], metric: str) -> Floats | None:
    values = [each.of(metric) for each in scores]
    known = [each for each in values if each is not None]
    return np.mean(known, axis=0) if len(known) == len(values) else None


def _label(split: str, metric: str) -> str:
    return display_name(metric) + ("" if split == "test" else f" on {split}")


def _named(
    changed: Mapping[str, NDArray[np.int64]],
    scores: QueryScores,
    before: Floats,
    after: Floats,
    names: Sequence[str] | None,
) -> list[str]:
    lines = []
    for word, chosen in changed.items():
        for index in chosen[:SHOWN]:
            number = int(scores.query[index])
            name = f"query {number} of class {int(scores.label[index])}"
            name = names[number] if names is not None else name
            lines.append(f"    {word}  AP {before[index]:.3f} -> {after[index]:.3f}  {name}")
    return lines


def _names(spec: RunSpec) -> Mapping[str, Sequence[str]]:
    """Return the names of the queries by split; none of a dataset that is not here."""
    try:
        protocols = load_dataset(spec.dataset.name, spec.dataset.params).protocols
    except BenchmarkError:
        return {}
    return {
        split: protocol.query.names
        for split, protocol in protocols.items()
        if protocol.instances is None
    }
