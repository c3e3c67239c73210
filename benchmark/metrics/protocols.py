"""What the ranks of a query's positives come to under each protocol and metric.

``protocols.yaml`` says what each of them means, and who uses it. A protocol is what is left of a
ranking when some items are taken out; each ranking is computed once, by ``positive_ranks``.
"""

import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmark.core.documents import read_document
from benchmark.core.results import Array
from benchmark.metrics.metric import METRICS, Ranked, trapezoids
from benchmark.metrics.ranks import BLOCK_BYTES, positive_ranks
from benchmark.metrics.rows import EmbeddedRows, products, watched

SPARED = 8  # of the memory of a block, for positives that are many
MAPPED_BLOCK_BYTES = 4 * BLOCK_BYTES  # of scores, where each block reads the gallery again


@functools.cache
def meanings(section: str) -> dict[str, dict[str, Any]]:
    """Return {name: its sentence and users} of the section "protocols" or "metrics"."""
    return read_document(Path(__file__).with_name("protocols.yaml")).data[section]


def family_of(metric: str) -> str:
    """Return a metric's name in ``protocols.yaml``: recall_at_k for recall_at_10."""
    return re.sub(r"_[0-9]+$", "_k", metric)


def at_depth(family: str, k: str) -> str:
    """Return a name of ``protocols.yaml`` with K in the place of its last k, if it has one."""
    return re.sub("k$", k, family)


def written_metric(text: str) -> str | None:
    """Return the name of the metric that people write as ``text``; None if there is none.

    Names are those of ``protocols.yaml`` or what is shown, in any letter case: map_at_c, mAP@100.
    """
    short = re.sub(r"(?i)^recall@", "R@", text.strip())
    for name, meaning in meanings("metrics").items():
        for known in (name, meaning["shown"]):
            pattern = re.sub("k$", "([1-9][0-9]{0,8})", re.escape(known), flags=re.IGNORECASE)
            if found := re.fullmatch(pattern, short, re.IGNORECASE):
                return at_depth(name, found[found.lastindex or 0])
    return None


class Record(NamedTuple):
    """One metric under one protocol.

    protocol, metric  names of ``protocols.yaml``, with K: ``others``, ``recall_at_10``
    value    in [0, 1]: mean of ``scores``
    sd       standard deviation over the draws of a random gallery, else None
    queries  number of scores in a draw
    meaning  of the protocol: what it ``says``, and who it is ``used_by``
    scores   float64 (S,): of each query in each draw, or of each class
    classes  int64 (S,): the class of each
    """

    protocol: str
    metric: str
    value: float
    sd: float | None
    queries: int
    meaning: dict[str, Any]
    scores: Array
    classes: Array


# Scores of queries (Q,) by metric, NaN without a positive, and their classes (Q,).
Found = tuple[dict[str, Array], Array]


def records_of(protocol: str, draws: Sequence[Found]) -> list[Record]:
    """Return the records of a protocol; queries without a positive are left out."""
    records = []
    meaning = meanings("protocols")[protocol]
    for metric in draws[0][0]:
        of_draws = [scores[metric] for scores, _ in draws]
        scores = np.concatenate(of_draws)
        some = ~np.isnan(scores)
        classes = np.concatenate([labels for _, labels in draws])
        sd = None
        if len(draws) > 1:
            means = [np.nanmean(of_draw) for of_draw in of_draws]
            sd = float(np.std(means, ddof=1))
        mean = float(np.nanmean(scores))
        count = int(some.sum()) // len(draws)
        record = Record(
            protocol,
            metric,
            mean,
            sd,
            count,
            meaning,
            scores[some],
            classes[some],
        )
        records.append(record)
    return records


def with_class_means(scores: dict[str, Array], classes: Array) -> dict[str, Array]:
    """Return scores (Q,) with the mean mAP@R of each class, at its first query that has one.

    Scores of rows without a class have no size of it, ``map_at_c``, and stay as they are.
    """
    if "map_at_c" not in scores:
        return scores
    values = scores["map_at_r"]
    some = np.flatnonzero(~np.isnan(values))
    _, first, index = np.unique(classes[some], return_index=True, return_inverse=True)
    means = np.full(len(values), np.nan)
    sums = np.bincount(index, values[some])
    means[some[first]] = sums / np.bincount(index)
    return {**scores, "map_at_r_by_class": means}


class Depths(NamedTuple):
    """The K of recall@K, and those of mAP@K and nDCG@K."""

    recall_at: Sequence[int]
    map_at: Sequence[int] = ()


def graded_ndcg(ranked: Ranked, shared: Array, k: int) -> Array:
    """Return the nDCG@K (Q,) of positives that gain 2^s - 1; they have ``shared`` s labels (P,)."""
    gains = np.exp2(shared) - 1
    query = np.repeat(ranked.starts, ranked.counts)
    best = gains[np.lexsort((-gains, query))]
    places = np.arange(len(gains)) - query + 1
    gain = ranked.total((ranked.ranks <= k) * gains / np.log2(ranked.ranks + 1))
    return gain / ranked.total((places <= k) * best / np.log2(places + 1))


def measured(
    ranked: Ranked,
    depths: Depths,
    sizes: Array | None,
    shared: Array | None = None,
) -> dict[str, Array]:
    """Return {metric: (Q,)}: ``METRICS``, and what other libraries print under their names.

    ``sizes`` (Q,): images of the query's class, the query counted; None: labels are sets.
    ``shared`` (P,): labels that each positive shares with its query, if they are wanted.
    """
    scores = {}
    counts = ranked.counts
    for k in depths.recall_at:
        scores[f"recall_at_{k}"] = METRICS["recall_at_k"].per_query(ranked, k)
        hits = ranked.ranks <= k
        scores[f"found_at_{k}"] = ranked.total(hits) / counts
    numbers = np.rint(ranked.precision * ranked.ranks)
    scores["map"] = METRICS["map"].per_query(ranked, 0)
    areas = trapezoids(numbers, ranked.ranks)
    scores["map_trapezoid"] = ranked.total(areas) / counts
    scores["map_at_r"] = METRICS["map_at_r"].per_query(ranked, 0)
    within = ranked.ranks <= np.repeat(counts, counts)
    hits = np.maximum(ranked.total(within), 1)
    scores["map_at_r_found"] = scores["map_at_r"] * counts / hits
    if sizes is not None:
        in_size = ranked.ranks <= np.repeat(sizes, counts)
        scores["map_at_c"] = ranked.total(in_size * ranked.precision) / sizes
    scores["r_precision"] = ranked.total(within) / counts
    scores["mrr"] = 1 / ranked.nearest
    for k in depths.map_at:
        first = ranked.ranks <= k
        precisions = ranked.total(first * ranked.precision)
        most = np.minimum(counts, k)
        scores[f"map_at_{k}"] = precisions / counts
        scores[f"map_min_at_{k}"] = precisions / most
        scores[f"map_found_at_{k}"] = precisions / np.maximum(ranked.total(first), 1)
        gain = ranked.total(first / np.log2(ranked.ranks + 1))
        best = np.cumsum(1 / np.log2(np.arange(most.max(initial=0)) + 2))
        scores[f"ndcg_at_{k}"] = gain / best[most - 1]
        if shared is not None:
            scores[f"ndcg_graded_at_{k}"] = graded_ndcg(ranked, shared, k)
    return scores


Counted = Sequence[Array]  # of the queries of a block: number of positives, ranks of positives


def changed(
    way: str,
    block: Counted,
    other: Counted,
    span: int,
) -> Counted:
    """Return counts and ranks of a block's positives after a change of the ranking.

    ""          nothing changes
    "hit"       the query comes first and is a positive
    "miss"      the query comes first and is not a positive
    "category"  items of ``other`` that are not positives leave
    any other   all items of ``other`` leave

    Ranks are below ``span``.
    """
    counts, ranks = block
    if not way:
        return block
    if way == "hit":
        starts = np.cumsum(counts) - counts
        return counts + 1, np.insert(ranks + 1, starts, 1)
    if way == "miss":
        return counts, ranks + 1
    starts = np.arange(len(counts)) * span
    kept = np.repeat(starts, counts) + ranks
    removed = np.repeat(starts, other[0]) + other[1]
    if way == "category":
        removed = np.setdiff1d(removed, kept, assume_unique=True)
    kept = np.setdiff1d(kept, removed, assume_unique=True)
    rows = kept // span
    before = np.searchsorted(removed, starts)
    ahead = np.searchsorted(removed, kept) - before[rows]
    left = np.bincount(rows, minlength=len(counts))
    return left, kept % span - ahead


def ranked(
    query: EmbeddedRows,
    gallery: EmbeddedRows,
    ways: Mapping[str, str],
    depths: Depths,
    threads: int | None = None,
) -> dict[str, Found]:
    """Return what each protocol finds when the queries search a gallery.

    ``gallery is query`` means that each row queries all the others. ``ways``: the way of
    ``changed`` of each protocol. Rows of a class below 0 are no queries. Memory: one block of
    scores for each likeness. Rows with "sets" are alike if they share a label, and of one class 0.
    """
    sets = "sets" in query.alike
    memory = BLOCK_BYTES
    if sets:
        memory //= SPARED  # positives may be nearly all items
    if gallery.kept is None:
        memory = MAPPED_BLOCK_BYTES
    classes = query.alike[""]
    span = len(gallery.number) + 2
    blocks = {}
    for likeness in ["", *ways.values()]:
        if likeness in query.alike:
            asked_for = likeness or ("sets" if sets else "")
            queries = query.like(asked_for)
            items = queries if gallery is query else gallery.like(asked_for)
            multiply = products if likeness else watched
            blocks[likeness] = positive_ranks(queries, items, threads, multiply, memory)
    found: dict[str, dict[str, Array]] = {protocol: {} for protocol in ways}
    for numbers, *block in blocks.pop(""):
        others = {likeness: next(ranking)[1:] for likeness, ranking in blocks.items()}
        for protocol, way in ways.items():
            counts, ranks = changed(way, block[:2], others.get(way, block), span)
            some = counts > 0
            positives = Ranked.of(counts[some], ranks)
            sizes = None if sets else positives.counts + (way != "hit")
            shared = block[2] if sets and not way else None
            for metric, scores in measured(positives, depths, sizes, shared).items():
                empty = np.full(len(classes), np.nan)
                found[protocol].setdefault(metric, empty)[numbers[some]] = scores
    whole = {}
    asked = classes >= 0
    if sets:
        classes = np.zeros_like(classes)
    for protocol, by_metric in found.items():
        of_asked = {metric: values[asked] for metric, values in by_metric.items()}
        whole[protocol] = (with_class_means(of_asked, classes[asked]), classes[asked])
    return whole


def random_gallery(labels: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (indices of the queries, indices of the gallery): one random image of each class.

    labels: int64 (N,)
    """
    order = np.random.default_rng(seed).permutation(len(labels))
    gallery = np.sort(order[np.unique(labels[order], return_index=True)[1]])
    return np.setdiff1d(np.arange(len(labels)), gallery), gallery
