"""``score`` beside other libraries and formulas written again; what must hold for any rows."""

from __future__ import annotations

import faiss
import ir_measures
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator
from sklearn.metrics import average_precision_score

from benchmark.core.errors import DataError
from benchmark.datasets.landmarks import judged_levels
from benchmark.metrics import retrieval_metrics, score
from benchmark.metrics.protocols import meanings

# Sums of float32 products differ by rounding between libraries; no score here is that near another.
ROUNDING = 1e-6


def made_up(classes=40, per_class=6, dimensions=16, seed=0, noise=1.2):
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(classes), per_class)
    centres = rng.standard_normal((classes, dimensions))
    rows = centres[labels] + noise * rng.standard_normal((len(labels), dimensions))
    return rows.astype(np.float32), labels


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def values(found, protocol):
    return {each.metric: each.value for each in found.records if each.protocol == protocol}


def orders(rows, items=None, euclidean=False):
    """Return the rankings (Q, N) of faiss; without items, of the others."""
    index = faiss.IndexFlatL2(rows.shape[1]) if euclidean else faiss.IndexFlatIP(rows.shape[1])
    index.add(rows if items is None else items)
    found = index.search(rows, index.ntotal)[1]
    if items is not None:
        return found
    return np.stack([row[row != number] for number, row in enumerate(found)])


def hits_of(labels, gallery_labels, order):
    return gallery_labels[order] == labels[:, None]


def test_the_library_agrees_on_precision_at_1_both_averages_and_map():
    rows, labels = made_up()
    found = values(score(unit(rows), labels), "others")
    for by_class, name in ((False, "map_at_r"), (True, "map_at_r_by_class")):
        calculator = AccuracyCalculator(
            include=("precision_at_1", "mean_average_precision_at_r", "mean_average_precision"),
            avg_of_avgs=by_class,
            k=len(rows) - 1,
            device=torch.device("cpu"),
        )
        theirs = calculator.get_accuracy(unit(rows), labels)
        assert found[name] == pytest.approx(theirs["mean_average_precision_at_r"], abs=ROUNDING)
        if not by_class:
            assert found["recall_at_1"] == pytest.approx(theirs["precision_at_1"], abs=ROUNDING)
            assert found["map"] == pytest.approx(theirs["mean_average_precision"], abs=ROUNDING)


def test_ir_measures_agree_on_hit_rate_recall_of_all_and_map_of_query_and_gallery():
    rows, labels = made_up()
    query = np.arange(0, len(rows), 4)
    gallery = np.setdiff1d(np.arange(len(rows)), query)
    found = values(score(rows, labels, query=query, gallery=gallery), "gallery")
    products = unit(rows[query]).astype(float) @ unit(rows[gallery]).astype(float).T
    run = [
        ir_measures.ScoredDoc(str(q), str(g), products[q, g])
        for q in range(len(query))
        for g in range(len(gallery))
    ]
    relevant = [
        ir_measures.Qrel(str(q), str(g), int(labels[query[q]] == labels[gallery[g]]))
        for q in range(len(query))
        for g in range(len(gallery))
    ]
    names = {"recall_at_10": "Success@10", "found_at_10": "R@10", "map": "AP"}
    measures = [ir_measures.parse_measure(name) for name in names.values()]
    theirs = {str(m): v for m, v in ir_measures.calc_aggregate(measures, relevant, run).items()}
    for ours, name in names.items():
        assert found[ours] == pytest.approx(theirs[name], abs=ROUNDING)


def test_scikit_learn_agrees_on_map():
    rows, labels = made_up(classes=20)
    products = unit(rows).astype(float) @ unit(rows).astype(float).T
    others = ~np.eye(len(rows), dtype=bool)
    expected = [
        average_precision_score(labels[keep] == label, row[keep])
        for row, keep, label in zip(products, others, labels, strict=True)
    ]
    assert values(score(rows, labels), "others")["map"] == pytest.approx(np.mean(expected))


@pytest.mark.parametrize("euclidean", [False, True])
def test_faiss_neighbours_give_the_same_recalls_by_cosine_and_by_distance(euclidean):
    rows, labels = made_up()
    rows *= np.linspace(0.5, 2, len(rows), dtype=np.float32)[:, None]
    order = orders(rows if euclidean else unit(rows), euclidean=euclidean)
    hits = hits_of(labels, labels, order)
    protocol = "others_euclidean" if euclidean else "others"
    found = values(score(rows, labels, recall_at=(1, 4)), protocol)
    for k in (1, 4):
        assert found[f"recall_at_{k}"] == pytest.approx(hits[:, :k].any(axis=1).mean())
        assert found[f"found_at_{k}"] == pytest.approx((hits[:, :k].sum(axis=1) / 5).mean())


def test_the_three_functions_called_map_at_r_are_their_authors_formulas():
    rows, labels = made_up()
    hits = hits_of(labels, labels, orders(unit(rows)))
    found = values(score(rows, labels), "others")
    of_size = []
    of_found = []
    plain = []
    for row in hits:
        right = np.cumsum(row) * row / np.arange(1, len(row) + 1)
        plain.append(right[:5].sum() / 5)  # R = 5 others of the class
        of_size.append(right[:6].sum() / 6)  # the class has 6 images
        of_found.append(right[:5].sum() / max(row[:5].sum(), 1))
    assert found["map_at_r"] == pytest.approx(np.mean(plain))
    assert found["map_at_c"] == pytest.approx(np.mean(of_size))
    assert found["map_at_r_found"] == pytest.approx(np.mean(of_found))


def test_one_random_image_a_class_is_what_ten_galleries_drawn_so_give_on_average():
    rows, labels = made_up(classes=60)
    found = next(
        each
        for each in score(rows, labels).records
        if (each.protocol, each.metric) == ("one_per_class", "recall_at_1")
    )
    rng = np.random.default_rng(1)
    shares = []
    for _ in range(200):
        gallery = np.array([rng.choice(np.flatnonzero(labels == label)) for label in range(60)])
        query = np.setdiff1d(np.arange(len(rows)), gallery)
        scores = retrieval_metrics(rows[query], labels[query], rows[gallery], labels[gallery], (1,))
        shares.append(scores["recall_at_1"])
    sd = np.std(shares, ddof=1)
    assert found.queries == 300
    assert len(found.scores) == 3000
    # four standard errors of a mean of ten and one of 200; and the chi-square range of ten draws
    assert abs(found.value - np.mean(shares)) < 4 * sd * np.sqrt(1 / 10 + 1 / 200)
    assert 0.4 * sd < found.sd < 1.9 * sd


def test_images_of_the_own_class_and_camera_leave_the_ranking():
    rows, labels = made_up()
    cameras = np.random.default_rng(2).integers(0, 3, len(rows))
    found = score(rows, labels, cameras=cameras, recall_at=(1, 5))
    order = orders(unit(rows))
    expected = {1: [], 5: []}
    averages = []
    for number, row in enumerate(order):
        same = labels[row] == labels[number]
        row = row[~(same & (cameras[row] == cameras[number]))]
        hits = labels[row] == labels[number]
        if hits.any():
            averages.append(
                (np.cumsum(hits) * hits / np.arange(1, len(row) + 1)).sum() / hits.sum()
            )
            for k in expected:
                expected[k].append(hits[:k].any())
    ours = values(found, "others_other_camera")
    assert ours["map"] == pytest.approx(np.mean(averages))
    assert ours["recall_at_1"] == pytest.approx(np.mean(expected[1]))
    assert ours["recall_at_5"] == pytest.approx(np.mean(expected[5]))


def test_other_classes_of_the_own_category_leave_the_ranking():
    rows, labels = made_up()
    categories = labels // 10
    query = np.arange(0, len(rows), 3)
    gallery = np.setdiff1d(np.arange(len(rows)), query)
    found = score(rows, labels, query=query, gallery=gallery, categories=categories)
    expected = []
    for number, row in zip(
        query, gallery[orders(unit(rows[query]), unit(rows[gallery]))], strict=True
    ):
        same = labels[row] == labels[number]
        row = row[same | (categories[row] != categories[number])]
        hits = labels[row] == labels[number]
        expected.append((np.cumsum(hits) * hits / np.arange(1, len(row) + 1)).sum() / hits.sum())
    assert values(found, "gallery_other_category")["map"] == pytest.approx(np.mean(expected))


def test_a_query_that_finds_itself_counts_as_a_hit_or_as_a_miss():
    rows, labels = made_up()
    found = score(rows, labels)
    order = np.column_stack([np.arange(len(rows)), orders(unit(rows))])
    hits = hits_of(labels, labels, order)
    places = np.arange(1, len(rows) + 1)
    hit = values(found, "itself_hit")
    assert hit["recall_at_1"] == 1
    assert hit["map"] == pytest.approx((np.cumsum(hits, 1) * hits / places).sum(1).mean() / 6)
    hits[:, 0] = False
    miss = values(found, "itself_miss")
    assert miss["recall_at_1"] == 0
    assert miss["map"] == pytest.approx((np.cumsum(hits, 1) * hits / places).sum(1).mean() / 5)


def test_queries_that_are_in_the_gallery_are_counted_and_can_leave_it():
    rows, labels = made_up()
    query = np.arange(0, len(rows), 5)
    every = np.arange(len(rows))
    found = score(rows, labels, query=query, gallery=every)
    assert found.facts["queries that equal a row of the gallery"] == len(query)
    assert values(found, "gallery")["recall_at_1"] == 1
    hits = hits_of(labels, labels, orders(unit(rows)))[query]
    assert values(found, "gallery_without_itself")["recall_at_1"] == hits[:, 0].mean()


def test_a_query_without_a_positive_is_left_out_or_counts_as_0():
    rows, labels = made_up()
    labels = np.where(np.arange(len(labels)) < 12, 1000 + np.arange(len(labels)), labels)
    found = score(rows, labels)
    left_out = values(found, "others")
    zero = values(found, "others_zero")
    assert found.facts["others: queries without a positive"] == 12
    assert found.facts["classes with one row"] == 12
    for metric in ("recall_at_1", "map", "map_at_r"):
        assert zero[metric] == pytest.approx(left_out[metric] * (240 - 12) / 240)
    # 12 classes of one row and 38 others
    assert zero["map_at_r_by_class"] == pytest.approx(left_out["map_at_r_by_class"] * 38 / 50)


def test_landmarks_have_a_score_a_level_by_trapezoids():
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((4 + 30, 8)).astype(np.float32)
    graded = [
        {"easy": np.array([q, q + 4]), "hard": np.array([q + 8]), "junk": np.array([q + 12])}
        for q in range(4)
    ]
    levels = judged_levels(graded)
    found = score(rows, None, query=np.arange(4), gallery=np.arange(4, 34), ground_truth=levels)
    order = orders(unit(rows[:4]), unit(rows[4:]))
    for level, relevant, ignored in (
        ("easy", ("easy",), ("junk", "hard")),
        ("medium", ("easy", "hard"), ("junk",)),
        ("hard", ("hard",), ("junk", "easy")),
    ):
        averages = []
        for row, grades in zip(order, graded, strict=True):
            out = np.concatenate([grades[grade] for grade in ignored])
            hits = np.isin(row[~np.isin(row, out)], np.concatenate([grades[g] for g in relevant]))
            places = np.flatnonzero(hits)
            before = [1.0 if p == 0 else i / p for i, p in enumerate(places)]
            after = [(i + 1) / (p + 1) for i, p in enumerate(places)]
            averages.append(np.mean((np.array(before) + after) / 2))
        assert values(found, level) == {"map_trapezoid": pytest.approx(np.mean(averages))}


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([np.float16, np.float32, np.float64]))
def test_neither_order_nor_the_length_of_all_rows_changes_a_score(seed, kind):
    rng = np.random.default_rng(seed)
    rows, labels = made_up(classes=8, per_class=int(rng.integers(2, 6)), seed=seed)
    rows = rows.astype(kind)
    order = rng.permutation(len(rows))
    first = score(rows, labels)
    second = score(rows[order] * kind(4), labels[order])
    for protocol in ("others", "others_euclidean", "itself_miss"):
        # the last bits of products depend on their place
        assert values(first, protocol) == pytest.approx(values(second, protocol), abs=1e-12)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_a_class_that_is_there_twice_far_away_leaves_the_scores_of_the_others(seed):
    rows, labels = made_up(classes=6, seed=seed)
    rows = np.column_stack([rows, np.zeros((len(rows), 2), np.float32)])
    away = np.zeros((4, rows.shape[1]), np.float32)
    away[:, -2:] = [[1, 0], [1, 0], [0, 1], [0, 1]]
    more = np.concatenate([rows, away])
    names = np.concatenate([labels, [90, 90, 91, 91]])
    one = score(np.concatenate([rows, away[:2]]), names[:-2])
    two = score(more, names)
    count = len(rows)
    for metric in ("recall_at_1", "map_at_r"):
        first = values(one, "others")[metric]
        second = values(two, "others")[metric]
        # a class of equal rows far from all others scores 1 in each query
        assert second * (count + 4) == pytest.approx(first * (count + 2) + 2)


def test_retrieval_metrics_give_the_same_numbers():
    rows, labels = made_up()
    rows[7] = rows[3]
    ours = values(score(rows, labels, recall_at=(1, 10, 100)), "others")
    theirs = retrieval_metrics(rows, labels)
    assert {name: ours[name] for name in theirs} == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_equal_rows_on_both_sides_give_the_numbers_of_retrieval_metrics(seed):
    rows, labels = made_up(seed=seed)
    query = np.sort(np.random.default_rng(seed).choice(240, 100, replace=False))
    gallery = np.setdiff1d(np.arange(240), query)
    rows[gallery[-20:]] = rows[query[:20]]  # no two are equal on one side
    ours = values(
        score(rows, labels, query=query, gallery=gallery, recall_at=(1, 10, 100)), "gallery"
    )
    theirs = retrieval_metrics(rows[query], labels[query], rows[gallery], labels[gallery])
    assert {name: ours[name] for name in theirs} == pytest.approx(theirs, abs=1e-12)


def test_facts_count_single_images_copies_lengths_and_ties():
    rows, labels = made_up()
    rows[5] = rows[0]
    rows[11] = rows[0]
    rows[12] = rows[6]
    labels = labels.copy()
    labels[239] = 77
    names = [f"image{number}.jpg" for number in range(len(rows))]
    facts = score(rows, labels, names=names).facts
    assert facts["rows"] == 240
    assert facts["classes"] == 41
    assert facts["classes with one row"] == 1
    assert facts["rows equal to an earlier one"] == 3
    assert facts["the first of them"] == ["image5.jpg", "image11.jpg", "image12.jpg"]
    assert facts["of them with another label"] == 2  # rows 11 and 12
    lengths = np.linalg.norm(rows, axis=1)
    expected = [lengths.min(), np.median(lengths), lengths.max()]
    assert facts["smallest, median, largest length"] == pytest.approx(expected, abs=1e-4)
    words = "others: queries with equal scores of different rows in the first 100 places"
    assert facts[words].startswith("0 of ")
    signs = np.sign(rows)
    assert not score(signs, labels).facts[words].startswith("0 of ")


def test_rows_of_length_1_have_no_second_table_for_distances():
    rows, labels = made_up()
    protocols = {each.protocol for each in score(unit(rows).astype(np.float16), labels).records}
    assert "others" in protocols
    assert "others_euclidean" not in protocols


def test_rows_that_are_not_finite_are_counted_and_named():
    rows, labels = made_up()
    rows[3, 1] = np.nan
    rows[9, 2] = np.inf
    with pytest.raises(DataError, match="2 rows are not finite, from row 3"):
        score(rows, labels)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"embeddings": np.ones((4, 2), np.int64)}, "int64 .* allowed: float16"),
        ({"embeddings": np.ones(4, np.float32)}, r"float32 \(4,\)"),
        ({"labels": [1, 2]}, "labels"),
        ({"cameras": [1, 2]}, "camera"),
        ({"recall_at": (0, 1)}, "whole numbers from 1"),
        ({"query": [0, 9], "gallery": [1]}, "masks"),
        ({"query": [True, False], "gallery": [1]}, "masks"),
        ({"query": [0, 1]}, "give both"),
        ({"gallery": [0, 1]}, "give both"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_is_allowed(change, words):
    given = {"embeddings": np.eye(4, 2, dtype=np.float32), "labels": [0, 0, 1, 1]}
    with pytest.raises(DataError, match=words):
        score(**(given | change))


def test_a_protocol_in_which_no_query_has_a_positive_is_named_as_left_out():
    rows = np.eye(4, dtype=np.float32)
    found = score(rows, [0, 0, 1, 1], query=[0, 1], gallery=[2, 3])
    assert found.left_out == ["gallery: no query has a positive"]
    assert {each.protocol for each in found.records} >= {"others", "one_per_class"}


def test_queries_and_a_gallery_of_many_rows_are_not_searched_as_one_set(monkeypatch):
    monkeypatch.setattr("benchmark.metrics.scoring.POOLED", 3)
    found = score(np.eye(4, dtype=np.float32), [0, 0, 1, 1], query=[0, 2], gallery=[1, 3])
    assert {each.protocol for each in found.records} == {"gallery"}
    assert found.left_out == ["all 4 rows as one set: above 3"]
    with pytest.raises(DataError, match="above 3; gallery: no query has a positive"):
        score(np.eye(4, dtype=np.float32), [0, 0, 1, 1], query=[0, 1], gallery=[2, 3])


def test_every_protocol_and_metric_that_comes_out_has_a_sentence_and_users():
    rows, labels = made_up()
    labels[-1] = 99
    half = np.arange(len(rows)) < 100
    found = score(rows, labels, cameras=labels % 2, categories=labels // 3)
    more = score(rows, labels, query=half, gallery=np.arange(len(rows)), cameras=labels % 2)
    families = set()
    for each in [*found.records, *more.records]:
        assert each.meaning["says"]
        assert each.meaning["used_by"]
        families.add(each.metric.replace("_10", "_k").replace("_1", "_k"))
    assert families == set(meanings("metrics"))


def test_a_mapped_set_that_is_read_in_blocks_gives_the_same_records(tmp_path, monkeypatch):
    rows, labels = made_up()
    np.save(tmp_path / "rows.npy", rows.astype(np.float16))
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    whole = score(rows.astype(np.float16), labels)
    monkeypatch.setattr("benchmark.metrics.rows.IN_MEMORY", 0)
    monkeypatch.setattr("benchmark.metrics.rows.BLOCK", 50)
    parts = score(mapped, labels)
    for first, second in zip(whole.records, parts.records, strict=True):
        assert first[:2] == second[:2]
        assert first.value == pytest.approx(second.value, abs=1e-12)
    assert whole.facts == parts.facts
