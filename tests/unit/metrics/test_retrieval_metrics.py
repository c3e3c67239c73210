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


def random_rows(count: int, seed: int, dim: int = 16) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((count, dim))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def random_set(count: int, classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    labels = np.random.default_rng([seed, 1]).integers(0, classes, count)
    return random_rows(count, seed), labels


def ranking(scores: np.ndarray) -> np.ndarray:
    """Return the items by falling score, equal ones by index."""
    return np.argsort(-scores, kind="stable")


def brute_force(scores: np.ndarray, query_labels, gallery_labels, self_queries: bool) -> dict:
    """The definitions written out: a full ranking per query by (score, index)."""
    found = {"recall_at_1": [], "recall_at_3": [], "map_at_r": [], "map": []}
    for number, row in enumerate(scores):
        order = ranking(row)
        if self_queries:
            order = order[order != number]
        hits = gallery_labels[order] == query_labels[number]
        total = hits.sum()
        if total == 0:
            continue
        places = np.arange(1, len(hits) + 1)
        precision_of_hits = hits.cumsum() / places * hits
        found["recall_at_1"].append(hits[:1].any())
        found["recall_at_3"].append(hits[:3].any())
        found["map"].append(precision_of_hits.sum() / total)
        found["map_at_r"].append(precision_of_hits[:total].sum() / total)
    return {name: np.mean(values) for name, values in found.items() if values}


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
    first = retrieval_metrics(query, [1], gallery, [1, 2, 2, 2])
    last = retrieval_metrics(query, [1], gallery, [2, 2, 2, 1])
    assert first["map"] == 1.0
    assert last["map"] == pytest.approx(1 / 4)
    # item 0 finds its copy (another class) first and item 2 second; item 2 finds 0 before the copy
    got = retrieval_metrics(on_circle(0, 0, 90), [1, 2, 1], recall_at=(1, 2))
    assert got["recall_at_1"] == 0.5
    assert got["recall_at_2"] == 1.0


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
    sets = (query, labels)
    if with_gallery:
        sets += random_set(150, classes, seed=classes + 100)
    ours = retrieval_metrics(*sets)
    theirs = calculator.get_accuracy(*sets)
    for name, their_name in names.items():
        # two libraries' float32 products may order near-ties differently
        assert ours[name] == pytest.approx(theirs[their_name], abs=1e-5), name


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
    axes = np.eye(directions, dtype=np.float32)
    query = axes[rng.integers(0, directions, count)]
    labels = rng.integers(0, classes, count)
    if gallery_count:
        gallery = axes[rng.integers(0, directions, gallery_count)]
        gallery_labels = rng.integers(0, classes, gallery_count)
        sets = (query, labels, gallery, gallery_labels)
        expected = brute_force(query @ gallery.T, labels, gallery_labels, self_queries=False)
    else:
        sets = (query, labels, None, None)
        expected = brute_force(query @ query.T, labels, labels, self_queries=True)
    if not expected:
        with pytest.raises(DataError, match="has a positive"):
            retrieval_metrics(*sets, (1, 3))
        return
    for device in (None, "cpu"):
        got = retrieval_metrics(*sets, (1, 3), device=device)
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
    for row, wanted in zip(scores, chosen, strict=True):
        is_wanted = np.isin(ranking(row), wanted)
        expected.append(np.flatnonzero(is_wanted) + 1)
    counts = np.array([len(wanted) for wanted in chosen])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranks, "COUNTED_ITEMS", counted)
        got = ranks.rank_rows(scores, counts, np.concatenate(chosen))
    assert got.tolist() == np.concatenate(expected).tolist()


@pytest.mark.parametrize("items", [1023, 1024, 1025, 5000])
def test_counting_is_right_around_the_width_of_its_words(items):
    scores = np.linspace(0, 1, items, dtype=np.float32)[None]
    middle = items // 2
    got = ranks.rank_rows(scores, np.array([3]), np.array([0, middle, items - 1]))
    assert got.tolist() == [1, items - middle, items]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("rows_in_block", [2, 7, 1000])
def test_neither_blocks_nor_threads_change_the_result(monkeypatch, rows_in_block, threads):
    query, labels = random_set(101, 6, seed=3)
    expected = retrieval_metrics(query, labels, threads=1)
    monkeypatch.setattr(ranks, "BLOCK_BYTES", rows_in_block * 4 * len(query))
    got = retrieval_metrics(query, labels, threads=threads)
    assert got == pytest.approx(expected, abs=1e-6)


def test_rows_are_normalised_and_labels_may_be_text():
    query, labels = random_set(60, 4, seed=5)
    lengths = np.random.default_rng(0).uniform(0.1, 9, (60, 1))
    names = np.array(["ant", "bee", "cat", "dog"])[labels]
    got = retrieval_metrics(query * lengths, names)
    assert got == pytest.approx(retrieval_metrics(query, labels), abs=1e-6)


def test_queries_without_a_positive_are_left_out_and_counted(caplog):
    query = on_circle(0, 1, 50, 120)
    labels = [1, 1, 2, 3]
    found = evaluate_retrieval(query, labels)
    assert found.queries == 2
    assert found.skipped == 2
    assert found.metrics["recall_at_1"] == 1.0
    assert retrieval_metrics(query, labels) == found.metrics
    assert "2 of 4 queries have no positive" in caplog.text


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((on_circle(0, 1, 2), [1, 2, 3]), "none of the 3 queries has a positive"),
        ((on_circle(0), [5], on_circle(1), [4]), "a gallery with the queries' classes"),
        (([[1, 0], [np.nan, 1]], [1, 1]), "not finite"),
        (([[1, 0], [-np.inf, 1]], [1, 1]), "not finite"),
    ],
)
def test_what_cannot_be_ranked_is_an_error(given, words):
    with pytest.raises(DataError, match=words):
        retrieval_metrics(*given)


def test_a_row_of_zeros_is_like_nothing():
    rows = np.array([[1, 0], [1, 0.1], [0, 0]], dtype=np.float32)
    got = retrieval_metrics(rows, [1, 1, 1], recall_at=(1,))
    assert got["recall_at_1"] == 1.0


def test_importing_the_metrics_imports_neither_torch_nor_faiss():
    code = "import sys, benchmark.metrics; print({'torch', 'faiss'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def judged(*queries: tuple[list[int], list[int]]) -> Judgements:
    """Return the judgements of (relevant, ignored) per query."""
    relevant = [np.array(items, dtype=np.int64) for items, _ in queries]
    ignored = [np.array(items, dtype=np.int64) for _, items in queries]
    return Judgements(tuple(relevant), tuple(ignored))


def landmark_map(query, gallery, judgements) -> float:
    return landmark_scores(query, gallery, judgements)[0]


def slow_map(scores: np.ndarray, judgements: Judgements) -> float:
    """The area under precision and recall, walked along one ranking after the other."""
    areas = []
    for row, relevant, ignored in zip(scores, judgements.relevant, judgements.ignored, strict=True):
        order = ranking(row)
        left = order[~np.isin(order, ignored)]
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
    trapezoids = [
        (1 + 1) / 2,
        (1 / 2 + 2 / 3) / 2,
        (2 / 4 + 3 / 5) / 2,
    ]
    assert got == pytest.approx(np.mean(trapezoids))


@pytest.mark.parametrize(
    ("relevant", "ignored", "lowest", "highest"),
    [
        ([2, 3], [0, 1], 1.0, 1.0),
        ([2, 3], [], 0.0, 0.6),
        ([0, 1], [2, 3], 1.0, 1.0),
    ],
)
def test_ignored_items_count_neither_as_found_nor_as_missed(relevant, ignored, lowest, highest):
    gallery = on_circle(10, 20, 30, 40)
    got = landmark_map(on_circle(0), gallery, judged((relevant, ignored)))
    assert lowest <= got <= highest


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (0, 1.0),
        (1, (0 / 1 + 1 / 2) / 2),
        (2, (0 / 2 + 1 / 3) / 2),
    ],
)
def test_equal_scores_of_landmarks_rank_by_index(place, expected):
    got = landmark_map(on_circle(0), on_circle(20, 20, 20), judged(([place], [])))
    assert got == pytest.approx(expected)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_map_equals_the_slow_version_with_ties_and_junk(data):
    items = data.draw(st.integers(2, 30))
    queries = data.draw(st.integers(1, 6))
    # few directions, so that ties are the rule; axes and their sums, so that scores are exact
    directions = np.array(
        [
            [1, 0, 0, 0],
            [0, 1, 0, 0],
            [0.5, 0.5, 0.5, 0.5],
            [0.5, 0.5, -0.5, -0.5],
        ],
        np.float32,
    )
    count = items + queries
    picks = data.draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    query, gallery = np.split(directions[picks], [queries])
    relevant = "+"
    ignored = "o"
    marks = st.lists(st.sampled_from("+-o"), min_size=items - 1, max_size=items - 1)
    lists = []
    for _ in range(queries):
        drawn = data.draw(marks)
        drawn.insert(data.draw(st.integers(0, items - 1)), relevant)
        of_items = np.array(drawn)
        lists.append((np.flatnonzero(of_items == relevant), np.flatnonzero(of_items == ignored)))
    judgements = judged(*lists)
    got = landmark_map(query, gallery, judgements)
    assert got == pytest.approx(slow_map(query @ gallery.T, judgements), abs=1e-12)


def test_blocks_do_not_change_the_map_of_landmarks(monkeypatch):
    rng = np.random.default_rng(0)
    query = random_rows(23, seed=1, dim=8)
    gallery = random_rows(50, seed=2, dim=8)
    lists = []
    for _ in query:
        chosen = rng.permutation(50)[: rng.integers(2, 30)]
        half = len(chosen) // 2
        lists.append((chosen[:half], chosen[half:]))
    judgements = judged(*lists)
    whole = landmark_map(query, gallery, judgements)
    assert whole == pytest.approx(slow_map(query @ gallery.T, judgements), abs=1e-9)
    monkeypatch.setattr(ranks, "BLOCK_BYTES", 4 * 50 * 3)
    in_blocks = landmark_map(query, gallery, judgements)
    assert in_blocks == pytest.approx(whole, abs=1e-12)


def test_trapezoids_are_never_above_the_mean_precision():
    query = random_rows(20, seed=1, dim=6)
    gallery = random_rows(90, seed=2, dim=6)
    labels = np.arange(20) % 3
    items = np.arange(90) % 3
    lists = [(np.flatnonzero(items == label), []) for label in labels]
    precision = retrieval_metrics(query, labels, gallery, items)["map"]
    trapezoids = landmark_map(query, gallery, judged(*lists))
    assert precision - 0.05 < trapezoids < precision


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
