"""Metrics: their names, retrieval by labels against tables by hand, brute force and a library, and
the landmark benchmarks' own mAP against a slow version of the rule."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmark.core.errors import DataError
from benchmark.datasets.base import Judgements
from benchmark.metrics import evaluate_retrieval, landmark_scores, ranks, retrieval_metrics
from benchmark.metrics.metric import METRICS, check_metric, display_name, metric_of


def on_circle(*degrees: float) -> np.ndarray:
    angles = np.deg2rad(np.array(degrees))
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def random_set(count: int, classes: int, seed: int, dim: int = 16) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, dim)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True), rng.integers(0, classes, count)


def brute_force(
    scores: np.ndarray, query_labels, gallery_labels, recall_at, self_queries: bool
) -> dict:
    """The definitions written out: a full ranking per query by (score, index)."""
    found = {f"recall_at_{k}": [] for k in recall_at} | {"map_at_r": [], "map": []}
    for i, row in enumerate(scores):
        items = [j for j in range(len(row)) if not (self_queries and i == j)]
        order = sorted(items, key=lambda j: (-row[j], j))
        hits = [gallery_labels[j] == query_labels[i] for j in order]
        total = sum(hits)
        if total == 0:
            continue
        precision = [sum(hits[: n + 1]) / (n + 1) for n in range(len(hits))]
        found["map"].append(sum(p for p, hit in zip(precision, hits, strict=True) if hit) / total)
        first = list(zip(precision, hits, strict=True))[:total]
        found["map_at_r"].append(sum(p for p, hit in first if hit) / total)
        for k in recall_at:
            found[f"recall_at_{k}"].append(any(hits[:k]))
    return {name: float(np.mean(values)) if values else None for name, values in found.items()}


def test_a_ranking_worked_out_by_hand():
    query = on_circle(0)
    gallery = on_circle(10, 20, 30, 40, 50)
    got = retrieval_metrics(query, [1], gallery, [2, 1, 1, 2, 1], recall_at=(1, 2, 3))
    # positives at ranks 2, 3 and 5: precisions 1/2, 2/3 and 3/5; the first R = 3 places hold two of
    # them
    assert got["recall_at_1"] == 0.0
    assert got["recall_at_2"] == 1.0
    assert got["recall_at_3"] == 1.0
    assert got["map"] == pytest.approx((1 / 2 + 2 / 3 + 3 / 5) / 3)
    assert got["map_at_r"] == pytest.approx((1 / 2 + 2 / 3) / 3)


def test_every_item_queries_the_others_and_never_itself():
    # neighbours in order: 0 -> 1, 2, 3; 10 -> 0, 30, 60; 30 -> 10, 0 and 60 tie (0 first); 60 ->
    # 30, 10, 0
    got = retrieval_metrics(on_circle(0, 10, 30, 60), [1, 2, 1, 2], recall_at=(1, 2))
    assert got["recall_at_1"] == 0.0
    assert got["map"] == pytest.approx((1 / 2 + 1 / 3 + 1 / 2 + 1 / 2) / 4)
    assert got["map_at_r"] == 0.0


def test_equal_scores_rank_by_index_and_duplicates_of_the_query_stay():
    query = on_circle(0)
    gallery = on_circle(5, 5, 5, 5)
    assert retrieval_metrics(query, [1], gallery, [1, 2, 2, 2])["map"] == 1.0
    assert retrieval_metrics(query, [1], gallery, [2, 2, 2, 1])["map"] == pytest.approx(1 / 4)
    # item 0 finds its copy (another class) first and item 2 second; item 2 finds 0 before the copy
    got = retrieval_metrics(on_circle(0, 0, 90), [1, 2, 1], recall_at=(1, 2))
    assert (got["recall_at_1"], got["recall_at_2"]) == (0.5, 1.0)


@pytest.mark.parametrize("classes", [1, 3, 40])
@pytest.mark.parametrize("with_gallery", [False, True])
def test_equals_the_accuracy_calculator_of_pytorch_metric_learning(classes, with_gallery):
    calculator_module = pytest.importorskip("pytorch_metric_learning.utils.accuracy_calculator")
    names = {
        "recall_at_1": "precision_at_1",
        "map_at_r": "mean_average_precision_at_r",
        "map": "mean_average_precision",
    }
    calculator = calculator_module.AccuracyCalculator(include=tuple(names.values()), k=None)
    query, labels = random_set(211, classes, seed=classes)
    gallery, gallery_labels = random_set(150, classes, seed=classes + 100)
    if with_gallery:
        ours = retrieval_metrics(query, labels, gallery, gallery_labels)
        theirs = calculator.get_accuracy(query, labels, gallery, gallery_labels)
    else:
        ours = retrieval_metrics(query, labels)
        theirs = calculator.get_accuracy(query, labels)
    for own, other in names.items():
        # two libraries' float32 products may order near-ties differently
        assert ours[own] == pytest.approx(theirs[other], abs=1e-5), own


@settings(max_examples=60, deadline=None)
@given(
    count=st.integers(2, 40),
    gallery_count=st.integers(0, 30),
    classes=st.integers(1, 5),
    directions=st.integers(1, 6),
    seed=st.integers(0, 2**32 - 1),
)
def test_equals_brute_force_with_ties(count, gallery_count, classes, directions, seed):
    rng = np.random.default_rng(seed)
    # few directions on the axes: scores are exactly 0 or 1, so ties are everywhere and products are
    # exact
    query = np.eye(directions, dtype=np.float32)[rng.integers(0, directions, count)]
    labels = rng.integers(0, classes, count)
    gallery = None
    gallery_labels = None
    items = query
    item_labels = labels
    if gallery_count:
        items = gallery = np.eye(directions, dtype=np.float32)[
            rng.integers(0, directions, gallery_count)
        ]
        item_labels = gallery_labels = rng.integers(0, classes, gallery_count)
    expected = brute_force(query @ items.T, labels, item_labels, (1, 3), gallery is None)
    if expected["map"] is None:
        with pytest.raises(DataError, match="has a positive"):
            retrieval_metrics(query, labels, gallery, gallery_labels, (1, 3))
        return
    for device in (None, "cpu"):
        got = retrieval_metrics(query, labels, gallery, gallery_labels, (1, 3), device=device)
        assert got == pytest.approx(expected, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(
    row_count=st.integers(1, 20),
    items=st.integers(1, 60),
    levels=st.integers(1, 80),
    counted=st.sampled_from([0, 3, 1000]),
    seed=st.integers(0, 2**32 - 1),
)
def test_ranks_by_counting_and_by_sorting_follow_score_then_index(
    row_count, items, levels, counted, seed
):
    rng = np.random.default_rng(seed)
    scores = (rng.integers(0, levels, (row_count, items)) / levels).astype(np.float32)
    chosen = [np.flatnonzero(rng.random(items) < rng.random()) for _ in range(row_count)]
    expected = []
    for row, own in zip(scores, chosen, strict=True):
        rank = np.empty(items, dtype=int)
        rank[np.lexsort((np.arange(items), -row))] = np.arange(1, items + 1)
        expected += sorted(rank[own].tolist())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranks, "COUNTED_ITEMS", counted)
        counts = np.array([len(own) for own in chosen])
        got = ranks.rank_rows(scores, counts, np.concatenate(chosen))
    assert got.tolist() == expected


@pytest.mark.parametrize("items", [1023, 1024, 1025, 5000])
def test_counting_is_right_around_the_width_of_its_words(items):
    scores = np.linspace(0, 1, items, dtype=np.float32)[None]
    got = ranks.rank_rows(scores, np.array([3]), np.array([0, items // 2, items - 1]))
    assert got.tolist() == [1, items - items // 2, items]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("rows_in_block", [2, 7, 1000])
def test_neither_blocks_nor_threads_change_the_result(monkeypatch, rows_in_block, threads):
    query, labels = random_set(101, 6, seed=3)
    expected = retrieval_metrics(query, labels, threads=1)
    monkeypatch.setattr(ranks, "BLOCK_BYTES", rows_in_block * 4 * len(query))
    assert retrieval_metrics(query, labels, threads=threads) == pytest.approx(expected, abs=1e-6)


def test_rows_are_normalised_and_labels_may_be_text():
    query, labels = random_set(60, 4, seed=5)
    lengths = np.random.default_rng(0).uniform(0.1, 9, (60, 1))
    names = np.array(["ant", "bee", "cat", "dog"])[labels]
    expected = retrieval_metrics(query, labels)
    assert retrieval_metrics(query * lengths, names) == pytest.approx(expected, abs=1e-6)


def test_queries_without_a_positive_are_left_out_and_counted(caplog):
    query = on_circle(0, 1, 50, 120)
    labels = [1, 1, 2, 3]
    found = evaluate_retrieval(query, labels)
    assert (found.queries, found.skipped, found.metrics["recall_at_1"]) == (2, 2, 1.0)
    assert retrieval_metrics(query, labels) == found.metrics
    assert "2 of 4 queries have no positive" in caplog.text


def test_what_cannot_be_ranked_is_an_error():
    with pytest.raises(DataError, match="none of the 3 queries has a positive"):
        retrieval_metrics(on_circle(0, 1, 2), [1, 2, 3])
    with pytest.raises(DataError, match="a gallery with the queries' classes"):
        retrieval_metrics(on_circle(0), [5], on_circle(1), [4])
    for value in (np.nan, -np.inf):
        query, labels = random_set(9, 2, seed=1)
        query[4, 2] = value
        with pytest.raises(DataError, match="not finite"):
            retrieval_metrics(query, labels)
    zeros = np.array([[1, 0], [1, 0.1], [0, 0]], dtype=np.float32)  # the last is like nothing
    assert retrieval_metrics(zeros, [1, 1, 1], recall_at=(1,))["recall_at_1"] == 1.0


def test_importing_the_metrics_imports_neither_torch_nor_faiss():
    code = (
        "import sys, benchmark.metrics; print([n for n in ('torch', 'faiss') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def judged(*queries: tuple[list[int], list[int]]) -> Judgements:
    """Return the judgements of (relevant, ignored) per query."""
    relevant, ignored = zip(*queries, strict=True)
    return Judgements(
        *(tuple(np.array(part, dtype=np.int64) for part in lists) for lists in (relevant, ignored))
    )


def landmark_map(query, gallery, judgements) -> float:
    return landmark_scores(query, gallery, judgements)[0]


def slow_map(scores: np.ndarray, judgements: Judgements) -> float:
    """The area under precision and recall, walked along one ranking after the other."""
    areas = []
    for row, relevant, ignored in zip(scores, judgements.relevant, judgements.ignored, strict=True):
        left = [item for item in range(len(row)) if item not in ignored]
        left.sort(key=lambda item: (-row[item], item))
        area = 0.0
        hits = 0
        precision_before = 1.0
        for place, item in enumerate(left, start=1):
            hit = item in relevant
            hits += hit
            precision = hits / place
            if hit:
                area += (precision_before + precision) / 2 / len(relevant)
            precision_before = precision
        areas.append(area)
    return sum(areas) / len(areas)


def test_map_worked_out_by_hand():
    gallery = on_circle(10, 20, 30, 40, 50, 60)
    # the ranking is 10, 20, ...; without the ignored 20 the relevant 10, 40 and 60 come 1st, 3rd
    # and 5th
    got = landmark_map(on_circle(0), gallery, judged(([0, 3, 5], [1])))
    trapezoids = (1 + 1) / 2, (1 / 2 + 2 / 3) / 2, (2 / 4 + 3 / 5) / 2
    assert got == pytest.approx(sum(trapezoids) / 3)


def test_ignored_items_count_neither_as_found_nor_as_missed():
    gallery = on_circle(10, 20, 30, 40)
    assert landmark_map(on_circle(0), gallery, judged(([2, 3], [0, 1]))) == 1.0
    assert landmark_map(on_circle(0), gallery, judged(([2, 3], []))) < 0.6
    assert landmark_map(on_circle(0), gallery, judged(([0, 1], [2, 3]))) == 1.0


def test_equal_scores_of_landmarks_rank_by_index():
    gallery = on_circle(20, 20, 20)
    got = [landmark_map(on_circle(0), gallery, judged(([place], []))) for place in range(3)]
    assert got == pytest.approx([1.0, (0 / 1 + 1 / 2) / 2, (0 / 2 + 1 / 3) / 2])


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_map_equals_the_slow_version_with_ties_and_junk(data):
    items = data.draw(st.integers(2, 30))
    queries = data.draw(st.integers(1, 6))
    # few directions, so that ties are the rule; axes and their sums, so that scores are exact
    directions = np.array(
        [[1, 0, 0, 0], [0, 1, 0, 0], [0.5, 0.5, 0.5, 0.5], [0.5, 0.5, -0.5, -0.5]], np.float32
    )
    picks = data.draw(
        st.lists(st.integers(0, 3), min_size=items + queries, max_size=items + queries)
    )
    rows = directions[picks]
    lists = []
    for _ in range(queries):
        marks = data.draw(st.lists(st.sampled_from("+-o"), min_size=items - 1, max_size=items - 1))
        marks.insert(data.draw(st.integers(0, items - 1)), "+")
        lists.append([[i for i, m in enumerate(marks) if m == kind] for kind in "+o"])
    judgements = judged(*lists)
    got = landmark_map(rows[:queries], rows[queries:], judgements)
    assert got == pytest.approx(slow_map(rows[:queries] @ rows[queries:].T, judgements), abs=1e-12)


def test_blocks_do_not_change_the_map_of_landmarks(monkeypatch):
    rng = np.random.default_rng(0)
    query = rng.standard_normal((23, 8))
    gallery = rng.standard_normal((50, 8))
    chosen = [rng.permutation(50)[: rng.integers(2, 30)] for _ in query]
    judgements = judged(*((part[: len(part) // 2], part[len(part) // 2 :]) for part in chosen))
    whole = landmark_map(query, gallery, judgements)
    monkeypatch.setattr(ranks, "BLOCK_BYTES", 4 * 50 * 3)
    assert landmark_map(query, gallery, judgements) == pytest.approx(whole, abs=1e-12)
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (query, gallery)]
    assert whole == pytest.approx(slow_map(unit[0] @ unit[1].T, judgements), abs=1e-9)


def test_trapezoids_are_never_above_the_mean_precision():
    rng = np.random.default_rng(1)
    query = rng.standard_normal((20, 6))
    gallery = rng.standard_normal((90, 6))
    labels = np.arange(20) % 3
    items = np.arange(90) % 3
    judgements = judged(*((np.flatnonzero(items == label), []) for label in labels))
    plain = retrieval_metrics(query, labels, gallery, items)["map"]
    assert plain - 0.05 < landmark_map(query, gallery, judgements) < plain


@pytest.mark.parametrize(
    ("name", "shown", "family"),
    [
        ("recall_at_1", "R@1", "recall_at_k"),
        ("recall_at_999999999", "R@999999999", "recall_at_k"),
        ("map_at_r", "mAP@R", "map_at_r"),
        ("map", "mAP", "map"),
    ],
)
def test_a_metric_has_a_family_and_a_display_name(name, shown, family):
    assert check_metric(name) is None
    assert display_name(name) == shown
    assert metric_of(name) is METRICS[family]


UNKNOWN = ["recall_at_0", "recall_at_01", "recall_at_1\u0663", "recall_at_1000000000", "recall_at_"]


@pytest.mark.parametrize("name", [*UNKNOWN, "recall@1", "map_at_k", "maps", "", 3])
def test_an_unknown_metric_is_named_with_those_that_exist(name):
    problem = check_metric(name)
    assert f"unknown metric '{name}'" in problem
    assert "recall_at_K" in problem
    assert "map_at_r" in problem
