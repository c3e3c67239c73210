"""``benchmark.metrics.score``: facts about embeddings, then their scores under every protocol."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmark.core.errors import DataError
from benchmark.core.results import Array
from benchmark.core.seeding import derive
from benchmark.metrics.given import check_embeddings, check_others, check_plain, chosen
from benchmark.metrics.label_sets import numbered_sets
from benchmark.metrics.protocols import (
    Depths,
    Found,
    Record,
    random_gallery,
    ranked,
    records_of,
    with_class_means,
)
from benchmark.metrics.reranking import reranked
from benchmark.metrics.retrieval import landmark_scores
from benchmark.metrics.rows import PLACES, EmbeddedRows, examine
from benchmark.metrics.sets import check_both, checked_depths, listed, numbered

if TYPE_CHECKING:
    from benchmark.datasets.base import Judgements

LIKENESSES = ("camera", "category")  # in this order
ZERO = ("others", "gallery")  # protocols that may also count a query without a positive as 0
ONE = {"one_per_class": ""}
OF_CLASSES = ("one_per_class", "map_at_r_by_class", "map_at_c")
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
        ways = {pair + name: "" for name in rows.space.names}
        if pair in ways:
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
        tied = f"queries with equal scores of different rows in the first {PLACES} places"
        tied = f"{pair}{rows.space.names[0]}: {tied}"
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
    junk: Any = (),
    distractors: Any = (),
    recall_at: Sequence[int] = (1, 10),
    map_at: Sequence[int] = (),
    label_sets: bool = False,
    rerank: bool = False,
    threads: int | None = None,
) -> Scores:
    """Return the scores of embeddings (N, D) with ``labels`` (N,) under every possible protocol.

    query, gallery       rows that search, and rows that are searched: masks (N,) or indices
    cameras, categories  (N,) of the rows: protocols leave out items that share them
    names                (N,): names of the rows in facts
    junk                 labels of rows that are left out everywhere
    distractors          labels of rows that are no positive and no query, but stay in the gallery
    label_sets           labels are sets: a matrix (N, C) of 0 and 1, or texts such as "sea|sky";
                         rows are positives of each other if they share a label
    rerank               also score the ranking by k-reciprocal neighbours (``reranking``)
    recall_at, map_at    K of recall@K; K of mAP@K and nDCG@K
    ground_truth         of landmarks: level -> numbers of its queries, and their judgements; labels
                         may then be None, and other rows of the gallery are distractors

    All rows are also searched as one set if there are at most ``POOLED``. Embeddings may be mapped
    from a file, because they are read in blocks. Raise DataError for sizes that do not fit, for
    rows that are not finite, and if no query has a positive.
    """
    of_rows = {"labels": labels, "cameras": cameras, "categories": categories, "names": names}
    roles = {"query": query, "gallery": gallery}
    check_plain({"embeddings": embeddings, **roles, **of_rows})
    check_embeddings(embeddings)
    every = np.arange(embeddings.shape[0])
    check_others(len(every), ground_truth if labels is None else labels, names, threads)
    check_both("query and gallery", query, gallery)
    sides = [chosen(role, rows, len(every)) for role, rows in roles.items() if rows is not None]
    depths = Depths(checked_depths(recall_at), checked_depths(map_at, "map_at"))
    alike: dict[str, Any] = {}
    lost: list[str] = []
    if label_sets:
        if len(junk) or len(distractors):
            raise DataError("junk and distractors are labels of one class a row, not sets of them")
        labels, alike["sets"] = numbered_sets(embeddings, labels)
        lost = [*OF_CLASSES]
        for likeness, given in zip(LIKENESSES, (cameras, categories), strict=True):
            lost += [f"other_{likeness}"] if given is not None else []
        cameras = categories = None
    for likeness, values in {"": labels, "camera": cameras, "category": categories}.items():
        if values is not None:
            alike[likeness] = numbered(likeness or "labels", embeddings, values, {})
    classes = alike.setdefault("", every)
    if names is None:
        names = every
    label_of = listed(every if labels is None else labels).astype(object)
    is_junk = _labelled("junk", label_of, junk)
    is_distractor = _labelled("distractors", label_of, distractors)
    is_minus_one = (label_of == -1) | (label_of == "-1")
    kept = every[~is_junk]
    searching = [rows[~is_junk[rows]] for rows in sides]
    if not all(map(len, (kept, *searching))):
        raise DataError("junk: no row is left that searches or is searched")
    classes[is_distractor] = -1 - every[is_distractor]  # no two are of one class
    facts, alike["itself"], spaces = examine(embeddings, kept, np.maximum(classes, -1), names)
    marked = {
        "rows left out as junk": is_junk,
        "distractors": is_distractor,
        "rows labelled -1": is_minus_one & ~is_junk & ~is_distractor,
    }
    if label_sets:
        facts["labels"] = alike["sets"].shape[1]
        facts["different sets of labels"] = facts.pop("classes")
        facts["sets with one row"] = facts.pop("classes with one row")
    facts |= {name: int(rows.sum()) for name, rows in marked.items() if rows.any()}
    if "camera" in alike:
        alike["camera"] += classes * (alike["camera"].max() + 1)
    left_out = [f"{name}: rows with sets of labels have no class" for name in lost]
    scores = Scores(facts, [], left_out)
    rank = functools.partial(ranked, depths=depths, threads=threads)
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
        found = landmark_scores(queries, embeddings[sides[1]], judged)[1]
        by_metric = {"map_trapezoid": found.averages["map"].astype(float)}
        scores.records.extend(records_of(level, [(by_metric, used)]))
    together = not sides or len(kept) <= POOLED
    if not together:
        scores.left_out.append(f"all {len(kept):,} rows as one set: above {POOLED:,}")
    for space in spaces if labels is not None else []:
        if sides:
            queries, items = (rows_of(rows, space) for rows in searching)
            scores.add_pair("gallery", queries, items, rank)
        if together:
            whole = rows_of(kept, space)
            scores.add_pair("others", whole, whole, rank)
    if rerank:
        if labels is None:
            raise DataError("rerank needs labels; a ground truth has protocols of its own")
        again = reranked(embeddings, alike, searching or [kept])
        pair = "gallery_rerank" if sides else "others_rerank"
        ways = {pair: "", f"{pair}_other_camera": "camera"}
        if "camera" not in alike:
            ways = {pair: ""}
        for protocol, of_protocol in rank(again[0], again[-1], ways).items():
            scores.add(protocol, [of_protocol])
    if together and not label_sets and facts["classes"] < (classes[kept] >= 0).sum():
        draws = []
        for draw in range(DRAWS):
            parts = random_gallery(classes[kept], derive(0, "score gallery", draw))
            rest, one_each = (rows_of(kept[part], spaces[0]) for part in parts)
            draws.append(rank(rest, one_each, ONE)["one_per_class"])
        scores.add("one_per_class", draws)
    protocols = {record.protocol for record in scores.records}
    if sides:  # who gives both asks what the queries find in the gallery
        protocols = {name for name in protocols if not name.startswith(("others", "one_per_class"))}
    if protocols <= set(ITSELF):
        raise DataError(f"score: {'; '.join(scores.left_out)}")
    return scores


def _labelled(role: str, labels: Array, wanted: Any) -> Array:
    """Return which rows have one of the wanted labels; raise DataError for a label of no row."""
    found = np.zeros(len(labels), bool)
    for label in np.atleast_1d(np.array(wanted, dtype=object)):
        rows = labels == label
        if not np.any(rows):
            raise DataError(f"{role}: no row has the label {label!r:.80}")
        found |= rows
    return found
