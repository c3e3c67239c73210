"""``benchmark.metrics.score``: facts about embeddings, then their scores under every protocol."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmark.core.errors import DataError
from benchmark.core.results import Array
from benchmark.core.seeding import derive
from benchmark.metrics.given import check_embeddings, check_others, chosen
from benchmark.metrics.protocols import (
    Found,
    Record,
    random_gallery,
    ranked,
    records_of,
    with_class_means,
)
from benchmark.metrics.retrieval import landmark_scores
from benchmark.metrics.rows import PLACES, EmbeddedRows, examine
from benchmark.metrics.sets import check_both, checked_depths, numbered

if TYPE_CHECKING:
    from benchmark.datasets.base import Judgements

LIKENESSES = ("camera", "category")  # in this order
ZERO = ("others", "gallery")  # protocols that may also count a query without a positive as 0
ONE = {"one_per_class": ""}
ITSELF = {"itself_hit": "hit", "itself_miss": "miss"}
DRAWS = 10
POOLED = 100_000  # most rows of queries and gallery that are also searched as one set
Rank = Callable[[EmbeddedRows, EmbeddedRows, Mapping[str, str]], dict[str, Found]]


class Scores(NamedTuple):
    """The result of ``score``: facts about the rows, records, and what is left out, and why."""

    facts: dict[str, Any]
    records: list[Record]
    left_out: list[str]

    def add(self, protocol: str, draws: Sequence[Found]) -> None:
        """Add the records of a protocol, unless no query has a positive."""
        if np.isnan(draws[0][0]["map"]).all():
            self.left_out.append(f"{protocol}: no query has a positive")
        else:
            self.records.extend(records_of(protocol, draws))

    def add_pair(self, pair: str, rows: EmbeddedRows, items: EmbeddedRows, rank: Rank) -> None:
        """Add the records and facts of all protocols in which ``rows`` search ``items``."""
        if rows.centre is not None:
            pair += "_euclidean"
        ways = {pair: ""}
        if rows.centre is None:
            likenesses = [likeness for likeness in LIKENESSES if likeness in rows.alike]
            ways |= {f"{pair}_other_{likeness}": likeness for likeness in likenesses}
            inside = int(np.isin(rows.alike["itself"], items.alike["itself"]).sum())
            if rows is items:
                ways |= ITSELF
            elif inside:
                self.facts["queries that equal a row of the gallery"] = inside
                ways["gallery_without_itself"] = "itself"
        for protocol, (by_metric, classes) in rank(rows, items, ways).items():
            self.add(protocol, [(by_metric, classes)])
            skipped = int(np.isnan(by_metric["map"]).sum())
            if protocol in ZERO and 0 < skipped < len(classes):
                self.facts[f"{pair}: queries without a positive"] = skipped
                zeros = {metric: np.nan_to_num(values) for metric, values in by_metric.items()}
                self.add(f"{pair}_zero", [(with_class_means(zeros, classes), classes)])
        tied = f"{pair}: queries with equal scores of different rows in the first {PLACES} places"
        self.facts[tied] = f"{sum(items.tied)} of {len(items.tied)} looked at"


def score(
    embeddings: Any,
    labels: Any,
    *,
    query: Any = None,
    gallery: Any = None,
    cameras: Any = None,
    categories: Any = None,
    names: Any = None,
    ground_truth: "Mapping[str, tuple[Array, Judgements]] | None" = None,
    recall_at: Sequence[int] = (1, 10),
    threads: int | None = None,
) -> Scores:
    """Return the scores of embeddings (N, D) with ``labels`` (N,) under every possible protocol.

    query, gallery       rows that search, and rows that are searched: masks (N,) or indices
    cameras, categories  (N,) of the rows: protocols leave out items that share them
    names                (N,): names of the rows in facts
    ground_truth         of landmarks: level -> numbers of its queries, and their judgements; labels
                         may then be None, and other rows of the gallery are distractors

    All rows are also searched as one set if there are at most ``POOLED``. Embeddings may be mapped
    from a file, because they are read in blocks. Raise DataError for sizes that do not fit, for
    rows that are not finite, and if no query has a positive.
    """
    check_embeddings(embeddings)
    every = np.arange(embeddings.shape[0])
    check_others(len(every), ground_truth if labels is None else labels, names, threads)
    check_both("query and gallery", query, gallery)
    roles = {"query": query, "gallery": gallery}
    sides = [chosen(role, rows, len(every)) for role, rows in roles.items() if rows is not None]
    depths = checked_depths(recall_at)
    alike = {}
    for likeness, values in {"": labels, "camera": cameras, "category": categories}.items():
        if values is not None:
            alike[likeness] = numbered(likeness or "labels", embeddings, values, {})
    classes = alike.setdefault("", every)
    if "camera" in alike:
        alike["camera"] += classes * (alike["camera"].max() + 1)
    if names is None:
        names = every
    facts, alike["itself"], far = examine(embeddings, classes, names)
    scores = Scores(facts, [], [])
    rank = functools.partial(ranked, recall_at=depths, threads=threads)
    rows_of = functools.partial(EmbeddedRows, embeddings, alike)
    for level, (used, judged) in (ground_truth or {}).items():
        if not len(used):
            continue
        highest = np.concatenate([*judged.relevant, *judged.ignored]).max()
        if not sides or max(used) >= len(sides[0]) or highest >= len(sides[1]):
            raise DataError(
                f"landmarks: query and gallery have {[*map(len, sides)]} rows, the ground truth "
                f"speaks of number {max(used)} and {highest}; give both in the order of its lists"
            )
        queries = embeddings[sides[0][used]]
        kept = landmark_scores(queries, embeddings[sides[1]], judged)[1]
        by_metric = {"map_trapezoid": kept.averages["map"].astype(float)}
        scores.records.extend(records_of(level, [(by_metric, used)]))
    together = not sides or len(every) <= POOLED
    if not together:
        scores.left_out.append(f"all {len(every):,} rows as one set: above {POOLED:,}")
    centres: list[Array | None] = [None]
    if far is not None:
        centres.append(far)
    if labels is None:
        centres = []
    for centre in centres:
        if sides:
            queries = rows_of(sides[0], centre)
            scores.add_pair("gallery", queries, rows_of(sides[1], centre), rank)
        if together:
            whole = rows_of(every, centre)
            scores.add_pair("others", whole, whole, rank)
    if labels is not None and together and facts["classes"] < len(every):
        draws = []
        for draw in range(DRAWS):
            rest, one_each = random_gallery(classes, derive(0, "score gallery", draw))
            draws.append(rank(rows_of(rest), rows_of(one_each), ONE)["one_per_class"])
        scores.add("one_per_class", draws)
    if not scores.records:
        raise DataError(f"score: {'; '.join(scores.left_out)}")
    return scores
