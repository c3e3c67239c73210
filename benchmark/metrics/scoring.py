"""``benchmark.metrics.score``: facts about embeddings, then their scores under every protocol."""

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmark.core.errors import DataError
from benchmark.core.results import Array
from benchmark.core.seeding import derive
from benchmark.metrics.protocols import (
    Found,
    Record,
    random_gallery,
    ranked,
    records_of,
    with_class_means,
)
from benchmark.metrics.retrieval import landmark_scores
from benchmark.metrics.rows import PLACES, EmbeddedRows, look
from benchmark.metrics.sets import numbered

if TYPE_CHECKING:
    from benchmark.datasets.base import Judgements

KINDS = ("camera", "category")  # in this order
ZERO = ("others", "gallery")  # protocols that may also count a query without a positive as 0
ONE = {"one_per_class": ""}
ITSELF = {"itself_hit": "hit", "itself_miss": "miss"}
TYPES = ("float16", "float32", "float64")
DRAWS = 10
POOLED = 100_000  # rows of queries and gallery that are also searched as one set


class Scores(NamedTuple):
    """What ``score`` found: facts about the rows, records, and what is left out, and why."""

    facts: dict[str, Any]
    records: list[Record]
    left_out: list[str]

    def add(
        self,
        protocol: str,
        draws: Sequence[Found],
    ) -> None:
        """Add the records of a protocol, unless none of its queries has a positive."""
        if np.isnan(draws[0][0]["map"]).all():
            self.left_out.append(f"{protocol}: no query has a positive")
        else:
            self.records.extend(records_of(protocol, draws))


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
    """Return the scores of embeddings (N, D) with ``labels`` (N,) under every protocol they allow.

    ``query`` and ``gallery``: the rows that search, and those that are searched; masks (N,) or
    indices. All rows are also searched as one set, if they are at most ``POOLED``. ``cameras`` and
    ``categories`` (N,) of the rows: what protocols leave out; ``names`` (N,): what facts call them.
    ``ground_truth``: of landmarks, by level the numbers of its queries and their judgements; labels
    may then be None, and other rows of the gallery are distractors. Embeddings may be mapped from a
    file: they are read in blocks. Raise DataError for sizes that do not fit and rows that are not
    finite, and where no query has a positive.
    """
    if embeddings.dtype not in TYPES or len(embeddings.shape) != 2:
        kind = f"{embeddings.dtype} {embeddings.shape}"
        allowed = f"{', '.join(TYPES)} (rows, dimensions)"
        raise DataError(f"embeddings are {kind}; allowed: {allowed}")
    every = np.arange(embeddings.shape[0])
    if min(recall_at, default=1) < 1:
        raise DataError(f"recall_at is {recall_at!r}; whole numbers from 1 are needed")
    groups = {
        "": labels,
        "camera": cameras,
        "category": categories,
    }
    alike = {}
    for kind, each in groups.items():
        if each is not None:
            alike[kind] = numbered(kind or "labels", embeddings, each, {})
    classes = alike.setdefault("", every)
    if "camera" in alike:
        alike["camera"] += classes * (alike["camera"].max() + 1)
    facts, alike["itself"], far = look(embeddings, classes, every if names is None else names)
    found = Scores(facts, [], [])
    rank = functools.partial(ranked, recall_at=recall_at, threads=threads)
    of = functools.partial(EmbeddedRows, embeddings, alike)
    sides = [_chosen(each, every) for each in (query, gallery) if each is not None]
    for level, (used, judged) in (ground_truth or {}).items():
        if not len(used):
            continue
        if len(sides) < 2 or max(used) >= len(sides[0]):
            raise DataError("landmarks: query and gallery are needed, in the order of their lists")
        rows = embeddings[sides[0][used]]
        kept = landmark_scores(rows, embeddings[sides[1]], judged)[1]
        scores = {"map_trapezoid": kept.averages["map"].astype(float)}
        found.records.extend(records_of(level, [(scores, used)]))

    def search(
        pair: str,
        rows: EmbeddedRows,
        items: EmbeddedRows,
    ) -> None:
        if rows.centre is not None:
            pair += "_euclidean"
        ways = {pair: ""}
        if rows.centre is None:
            ways |= {f"{pair}_other_{kind}": kind for kind in KINDS if kind in alike}
            inside = int(np.isin(rows.alike["itself"], items.alike["itself"]).sum())
            if rows is items:
                ways |= ITSELF
            elif inside:
                facts["queries that equal a row of the gallery"] = inside
                ways["gallery_without_itself"] = "itself"
        for protocol, each in rank(rows, items, ways).items():
            found.add(protocol, [each])
            skipped = int(np.isnan(each[0]["map"]).sum())
            if protocol in ZERO and 0 < skipped < len(each[1]):
                facts[f"{pair}: queries without a positive"] = skipped
                zeros = {metric: np.nan_to_num(scores) for metric, scores in each[0].items()}
                found.add(f"{pair}_zero", [(with_class_means(zeros, each[1]), each[1])])
        words = f"{pair}: queries with equal scores of different rows in the first {PLACES} places"
        facts[words] = f"{sum(items.tied)} of {len(items.tied)} looked at"

    together = not sides or len(every) <= POOLED
    if not together:
        found.left_out.append(f"all {len(every):,} rows as one set: above {POOLED:,}")
    for centre in [None] if far is None else [None, far]:
        if labels is not None and sides:
            search("gallery", *[of(side, centre) for side in sides])
        if labels is not None and together:
            whole = of(every, centre)
            search("others", whole, whole)
    if labels is not None and together and facts["classes"] < len(every):
        draws = []
        for draw in range(DRAWS):
            rest, one = random_gallery(classes, derive(0, "score gallery", draw))
            draws.append(rank(of(rest), of(one), ONE)["one_per_class"])
        found.add("one_per_class", draws)
    if not found.records:
        raise DataError(f"score: {'; '.join(found.left_out)}")
    return found


def _chosen(rows: Any, every: Array) -> Array:
    """Return rows given as a mask or as indices, as indices; raise DataError for others."""
    try:
        return every[rows]
    except (IndexError, TypeError) as error:
        raise DataError(f"query and gallery must be masks {every.shape} or indices") from error
