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
    rows = centres[labels]
    rows += noise * rng.standard_normal(rows.shape)
    return rows.astype(np.float32), labels


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def cosines(queries, items):
    return unit(queries).astype(float) @ unit(items).astype(float).T


def queries_and_gallery(rows, every):
    """Return the places of each ``every``-th row and those of the others."""
    places = np.arange(len(rows))
    is_query = places % every == 0
    return places[is_query], places[~is_query]


def values(found, protocol):
    return {each.metric: each.value for each in found.records if each.protocol == protocol}


def orders(rows, items=None, euclidean=False):
    """Return the rankings (Q, N) of faiss; without items, of the others."""
    dimensions = rows.shape[1]
    index = faiss.IndexFlatL2(dimensions) if euclidean else faiss.IndexFlatIP(dimensions)
    index.add(rows if items is None else items)
    _, found = index.search(rows, index.ntotal)
    if items is not None:
        return found
    return np.stack([row[row != number] for number, row in enumerate(found)])


def hits_of(labels, order):
    return labels[order] == labels[:, None]


def average_precision(hits):
    """Return the average precision of a ranking with these hits, by scikit-learn."""
    scores = -np.arange(len(hits))
    return average_precision_score(hits, scores)


def test_the_library_agrees_on_the_mean_of_the_means_of_classes():
    rows, labels = made_up()
    calculator = AccuracyCalculator(
        include=("mean_average_precision_at_r",),
        avg_of_avgs=True,
        k=len(rows) - 1,
        device=torch.device("cpu"),
    )
    theirs = calculator.get_accuracy(unit(rows), labels)["mean_average_precision_at_r"]
    found = values(score(unit(rows), labels), "others")
    assert found["map_at_r_by_class"] == pytest.approx(theirs, abs=ROUNDING)


def test_ir_measures_agree_on_hit_rate_recall_of_all_and_map_of_query_and_gallery():
    rows, labels = made_up()
    query, gallery = queries_and_gallery(rows, every=4)
    found = values(score(rows, labels, query=query, gallery=gallery), "gallery")
    names = gallery.astype(str)
    run = {}
    relevant = {}
    for number, similar in zip(query, cosines(rows[query], rows[gallery]), strict=True):
        same_class = (labels[gallery] == labels[number]).astype(int)
        run[str(number)] = dict(zip(names, similar.tolist(), strict=True))
        relevant[str(number)] = dict(zip(names, same_class.tolist(), strict=True))
    measures = {
        "recall_at_10": ir_measures.Success @ 10,
        "found_at_10": ir_measures.R @ 10,
        "map": ir_measures.AP,
    }
    theirs = ir_measures.calc_aggregate(measures.values(), relevant, run)
    for name, measure in measures.items():
        assert found[name] == pytest.approx(theirs[measure], abs=ROUNDING)


@pytest.mark.parametrize(
    ("protocol", "euclidean"),
    [
        ("others", False),
        ("others_euclidean", True),
    ],
)
def test_faiss_neighbours_give_the_same_recalls_by_cosine_and_by_distance(protocol, euclidean):
    rows, labels = made_up()
    rows *= np.linspace(0.5, 2, len(rows), dtype=np.float32)[:, None]
    order = orders(rows if euclidean else unit(rows), euclidean=euclidean)
    hits = hits_of(labels, order)
    found = values(score(rows, labels, recall_at=(1, 4)), protocol)
    for k in (1, 4):
        first = hits[:, :k]
        assert found[f"recall_at_{k}"] == pytest.approx(first.any(axis=1).mean())
        assert found[f"found_at_{k}"] == pytest.approx(first.sum(axis=1).mean() / 5)


def test_the_three_functions_called_map_at_r_are_their_authors_formulas():
    rows, labels = made_up()
    hits = hits_of(labels, orders(unit(rows)))
    places = np.arange(1, len(rows))
    precision_of_hits = np.cumsum(hits, axis=1) / places * hits
    first_5 = precision_of_hits[:, :5].sum(axis=1)  # R = 5 others of the class
    first_6 = precision_of_hits[:, :6].sum(axis=1)  # the class has 6 images
    hits_among_5 = hits[:, :5].sum(axis=1)
    found = values(score(rows, labels), "others")
    assert found["map_at_r"] == pytest.approx(np.mean(first_5 / 5))
    assert found["map_at_c"] == pytest.approx(np.mean(first_6 / 6))
    assert found["map_at_r_found"] == pytest.approx(np.mean(first_5 / np.maximum(hits_among_5, 1)))


def test_one_random_image_a_class_is_what_ten_galleries_drawn_so_give_on_average():
    rows, labels = made_up(classes=60)
    records = {(each.protocol, each.metric): each for each in score(rows, labels).records}
    found = records["one_per_class", "recall_at_1"]
    rng = np.random.default_rng(1)
    images = np.arange(len(rows)).reshape(60, 6)
    shares = []
    for _ in range(200):
        gallery = rng.permuted(images, axis=1)[:, 0]
        query = np.setdiff1d(images, gallery)
        scores = retrieval_metrics(rows[query], labels[query], rows[gallery], labels[gallery], (1,))
        shares.append(scores["recall_at_1"])
    sd = np.std(shares, ddof=1)
    assert found.queries == 300
    assert len(found.scores) == 3000
    # four standard errors of a mean of ten and one of 200; and the chi-square range of ten draws
    standard_error = sd * np.sqrt(1 / 10 + 1 / 200)
    assert abs(found.value - np.mean(shares)) < 4 * standard_error
    assert 0.4 * sd < found.sd < 1.9 * sd


def test_images_of_the_own_class_and_camera_leave_the_ranking():
    rows, labels = made_up()
    cameras = np.random.default_rng(2).integers(0, 3, len(rows))
    found = score(rows, labels, cameras=cameras, recall_at=(1, 5))
    nearest = []
    among_five = []
    averages = []
    for number, order in enumerate(orders(unit(rows))):
        hits = labels[order] == labels[number]
        same_camera = cameras[order] == cameras[number]
        hits = hits[~(hits & same_camera)]
        if hits.any():
            averages.append(average_precision(hits))
            nearest.append(hits[0])
            among_five.append(hits[:5].any())
    ours = values(found, "others_other_camera")
    assert ours["map"] == pytest.approx(np.mean(averages))
    assert ours["recall_at_1"] == pytest.approx(np.mean(nearest))
    assert ours["recall_at_5"] == pytest.approx(np.mean(among_five))


def test_other_classes_of_the_own_category_leave_the_ranking():
    rows, labels = made_up()
    categories = labels // 10
    query, gallery = queries_and_gallery(rows, every=3)
    found = score(rows, labels, query=query, gallery=gallery, categories=categories)
    averages = []
    rankings = orders(unit(rows[query]), unit(rows[gallery]))
    for number, order in zip(query, rankings, strict=True):
        ranking = gallery[order]
        hits = labels[ranking] == labels[number]
        other_category = categories[ranking] != categories[number]
        averages.append(average_precision(hits[hits | other_category]))
    ours = values(found, "gallery_other_category")
    assert ours["map"] == pytest.approx(np.mean(averages))


@pytest.mark.parametrize(
    ("protocol", "counts_as_hit"),
    [
        ("itself_hit", True),
        ("itself_miss", False),
    ],
)
def test_a_query_that_finds_itself_counts_as_a_hit_or_as_a_miss(protocol, counts_as_hit):
    rows, labels = made_up()
    hits = hits_of(labels, orders(unit(rows)))
    with_itself = np.insert(hits, 0, counts_as_hit, axis=1)
    averages = [average_precision(row) for row in with_itself]
    found = values(score(rows, labels), protocol)
    assert found["recall_at_1"] == counts_as_hit
    assert found["map"] == pytest.approx(np.mean(averages))


def test_the_size_of_a_class_counts_the_query_once_in_every_protocol():
    rows, labels = made_up()
    precision = {"others": [], "itself_hit": [], "itself_miss": []}
    for hits in hits_of(labels, orders(unit(rows))):
        rankings = {
            "others": hits,
            "itself_hit": np.insert(hits, 0, True),
            "itself_miss": np.insert(hits, 0, False),
        }
        for protocol, ranking in rankings.items():
            first = ranking[:6]  # a class has six images
            precision[protocol].append((np.cumsum(first) / np.arange(1, 7) * first).sum() / 6)
    found = score(rows, labels)
    for protocol, of_queries in precision.items():
        assert values(found, protocol)["map_at_c"] == pytest.approx(np.mean(of_queries))


def test_queries_that_are_in_the_gallery_are_counted_and_can_leave_it():
    rows, labels = made_up()
    query = np.arange(0, len(rows), 5)
    every = np.arange(len(rows))
    found = score(rows, labels, query=query, gallery=every)
    assert found.facts["queries that equal a row of the gallery"] == len(query)
    with_itself = values(found, "gallery")
    assert with_itself["recall_at_1"] == 1
    without_itself = values(found, "gallery_without_itself")
    hits = hits_of(labels, orders(unit(rows)))
    assert without_itself["recall_at_1"] == hits[query, 0].mean()


def test_a_query_without_a_positive_is_left_out_or_counts_as_0():
    rows, labels = made_up()
    labels[:12] = 1000 + np.arange(12)
    found = score(rows, labels)
    left_out = values(found, "others")
    zero = values(found, "others_zero")
    assert found.facts["others: queries without a positive"] == 12
    assert found.facts["classes with one row"] == 12
    for metric in ("recall_at_1", "map", "map_at_r"):
        assert zero[metric] == pytest.approx(left_out[metric] * 228 / 240)
    # 12 classes of one row and 38 others
    assert zero["map_at_r_by_class"] == pytest.approx(left_out["map_at_r_by_class"] * 38 / 50)


@pytest.mark.parametrize(
    ("level", "relevant", "ignored"),
    [
        ("easy", ["easy"], ["junk", "hard"]),
        ("medium", ["easy", "hard"], ["junk"]),
        ("hard", ["hard"], ["junk", "easy"]),
    ],
)
def test_landmarks_have_a_score_a_level_by_trapezoids(level, relevant, ignored):
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((4 + 30, 8)).astype(np.float32)
    query = np.arange(4)
    gallery = np.arange(4, 34)
    graded = [
        {"easy": np.array([q, q + 4]), "hard": np.array([q + 8]), "junk": np.array([q + 12])}
        for q in query
    ]
    found = score(rows, None, query=query, gallery=gallery, ground_truth=judged_levels(graded))
    order = orders(unit(rows[query]), unit(rows[gallery]))
    averages = []
    for row, grades in zip(order, graded, strict=True):
        out = np.concatenate([grades[grade] for grade in ignored])
        positives = np.concatenate([grades[grade] for grade in relevant])
        ranked = row[~np.isin(row, out)]
        places = np.flatnonzero(np.isin(ranked, positives))
        earlier = np.arange(len(places))
        before = np.where(places == 0, 1.0, earlier / np.maximum(places, 1))
        after = (earlier + 1) / (places + 1)
        averages.append(np.mean((before + after) / 2))
    assert values(found, level) == {"map_trapezoid": pytest.approx(np.mean(averages))}


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([np.float16, np.float32, np.float64]))
def test_neither_order_nor_the_length_of_all_rows_changes_a_score(seed, kind):
    rng = np.random.default_rng(seed)
    per_class = int(rng.integers(2, 6))
    rows, labels = made_up(classes=8, per_class=per_class, seed=seed)
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
    rows = np.pad(rows, ((0, 4), (0, 2)))
    rows[-4:, -2:] = [
        [1, 0],
        [1, 0],
        [0, 1],
        [0, 1],
    ]
    labels = np.append(labels, [90, 90, 91, 91])
    with_one_class = values(score(rows[:-2], labels[:-2]), "others")
    with_two_classes = values(score(rows, labels), "others")
    count = len(rows)
    for metric in ("recall_at_1", "map_at_r"):
        # a class of equal rows far from all others scores 1 in each query
        sum_of_one = with_one_class[metric] * (count - 2)
        sum_of_two = with_two_classes[metric] * count
        assert sum_of_two == pytest.approx(sum_of_one + 2)


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
    found = score(rows, labels, query=query, gallery=gallery, recall_at=(1, 10, 100))
    ours = values(found, "gallery")
    theirs = retrieval_metrics(rows[query], labels[query], rows[gallery], labels[gallery])
    assert {name: ours[name] for name in theirs} == pytest.approx(theirs, abs=1e-12)


def test_facts_count_single_images_copies_lengths_and_ties():
    rows, labels = made_up()
    rows[5] = rows[0]
    rows[11] = rows[0]
    rows[12] = rows[6]
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
    signs = score(np.sign(rows), labels)
    assert not signs.facts[words].startswith("0 of ")


def test_rows_of_length_1_have_no_second_table_for_distances():
    rows, labels = made_up()
    found = score(unit(rows).astype(np.float16), labels)
    protocols = {each.protocol for each in found.records}
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
        ({"embeddings": [[1.0, 0.0]] * 4}, r"list \(\); allowed: float16"),
        ({"embeddings": np.ones((0, 2), np.float32)}, r"float32 \(0, 2\)"),
        ({"embeddings": np.ones((4, 0), np.float32)}, r"float32 \(4, 0\)"),
        ({"labels": [1, 2]}, "labels"),
        ({"labels": None}, "labels .*None; give one a row"),
        ({"names": ["a", "b"]}, "names .*4, one a row"),
        ({"threads": -1}, "threads .*-1"),
        ({"threads": 0}, "threads .*0"),
        ({"query": [[0, 1], [2, 3]], "gallery": [1]}, r"query has shape \(2, 2\)"),
        ({"query": 3, "gallery": [1]}, r"query has shape \(\)"),
        ({"query": [0.0, 1.0], "gallery": [1]}, "query .* none of"),
        ({"query": [True, 2], "gallery": [1]}, "query .* none of"),
        ({"query": [-1], "gallery": [1]}, "query .*whole numbers from -1 to -1, which is none of"),
        ({"query": [2, 2], "gallery": [1]}, "query .* none of: .* each once"),
        ({"query": [], "gallery": [1]}, "query .* none of"),
        ({"query": [False] * 4, "gallery": [1]}, "query .* with a True"),
        ({"query": [0], "gallery": ["yes", "no", "no", "no"]}, "gallery .* none of"),
        ({"cameras": [1, 2]}, "camera"),
        ({"recall_at": (0, 1)}, "whole numbers from 1"),
        ({"recall_at": (1.5,)}, "whole numbers from 1"),
        ({"recall_at": 5}, "whole numbers from 1"),
        ({"query": [0, 9], "gallery": [1]}, "mask"),
        ({"query": [True, False], "gallery": [1]}, "mask"),
        ({"query": [0, 1]}, r"query and gallery .*\(2,\), None.*give both"),
        ({"gallery": [0, 1]}, r"query and gallery .*None, \(2,\).*give both"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_is_allowed(change, words):
    given = {"embeddings": np.eye(4, 2, dtype=np.float32), "labels": [0, 0, 1, 1]}
    with pytest.raises(DataError, match=words):
        score(**(given | change))


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("name", ["embeddings", "labels", "query", "cameras", "names"])
@pytest.mark.parametrize("kind", [np.ma.MaskedArray, np.matrix])
def test_arrays_that_would_lose_their_mask_or_keep_two_dimensions_are_refused(name, kind):
    given = {
        "embeddings": np.eye(4, 2, dtype=np.float32) + 1,
        "labels": np.array([0, 0, 1, 1]),
        "query": np.array([0, 1]),
        "gallery": np.array([2, 3]),
        "cameras": np.arange(4),
        "names": np.arange(4),
    }
    with pytest.raises(DataError, match=f"^{name} are a numpy {kind.__name__}; give a plain"):
        score(**(given | {name: kind(given[name])}))


def test_labels_of_torch_may_have_been_trained():
    rows, labels = made_up()
    expected = score(rows, labels)
    tensor = torch.tensor(labels, dtype=torch.float32, requires_grad=True)
    found = score(rows, tensor)
    assert [each.value for each in found.records] == [each.value for each in expected.records]


@pytest.mark.parametrize(
    "query",
    [
        [True, False, True, False],
        [1, 0, 1, 0],
        np.array([1, 0, 1, 0], np.uint8),
        [0, 2],
        np.array([0, 2], np.uint64),
        ["TRUE", " false", "True", "false "],
        torch.tensor([True, False, True, False]),
    ],
)
def test_roles_are_masks_or_numbers_of_rows(query):
    rows = np.array([[1, 0], [0.9, 0.1], [0, 1], [0.2, 1]], np.float32)
    found = score(rows, [0, 0, 1, 1], query=query, gallery=[1, 3])
    counted = {each.queries for each in found.records if each.protocol == "gallery"}
    assert counted == {2}
    assert values(found, "gallery")["recall_at_1"] == 1


@pytest.mark.parametrize("query", [[0, 1], [1, 0]])
def test_a_role_that_is_a_mask_and_numbers_of_rows_is_an_error(query):
    with pytest.raises(DataError, match="both of: a mask"):
        score(np.eye(2, dtype=np.float32), [0, 0], query=query, gallery=[True, True])


def test_a_ground_truth_that_speaks_of_more_rows_is_an_error():
    graded = [{"easy": np.array([3]), "hard": np.array([], int), "junk": np.array([9])}]
    rows = np.eye(6, dtype=np.float32)
    with pytest.raises(DataError, match=r"have \[1, 5\] rows, .* number 0 and 9"):
        score(rows, None, query=[0], gallery=range(1, 6), ground_truth=judged_levels(graded))


def test_a_protocol_in_which_no_query_has_a_positive_is_named_as_left_out():
    rows = unit(np.eye(4) + 0.5)
    found = score(rows, [0, 0, 1, 1], cameras=[0, 0, 1, 1])
    assert found.left_out == ["others_other_camera: no query has a positive"]
    assert {each.protocol for each in found.records} >= {"others", "one_per_class"}


def test_queries_that_find_nothing_in_the_gallery_are_an_error_whatever_they_find_elsewhere():
    with pytest.raises(DataError, match="gallery: no query has a positive"):
        score(unit(np.eye(4) + 0.5), [0, 0, 1, 1], query=[0, 1], gallery=[2, 3])


def test_a_set_in_which_each_row_finds_only_itself_is_an_error():
    rows, _ = made_up()
    with pytest.raises(DataError, match="others: no query has a positive"):
        score(rows, np.arange(len(rows)))
    with pytest.raises(DataError, match="others: no query has a positive"):
        score(rows, np.arange(len(rows)), cameras=np.arange(len(rows)) % 2)


def test_queries_and_a_gallery_of_many_rows_are_not_searched_as_one_set(monkeypatch):
    monkeypatch.setattr("benchmark.metrics.scoring.POOLED", 3)
    rows = unit(np.eye(4) + 0.5)
    found = score(rows, [0, 0, 1, 1], query=[0, 2], gallery=[1, 3])
    assert {each.protocol for each in found.records} == {"gallery"}
    assert found.left_out == ["all 4 rows as one set: above 3"]
    with pytest.raises(DataError, match="above 3; gallery: no query has a positive"):
        score(rows, [0, 0, 1, 1], query=[0, 1], gallery=[2, 3])


def test_every_protocol_and_metric_that_comes_out_has_a_sentence_and_users():
    rows, labels = made_up()
    labels[-1] = 99
    half = np.arange(len(rows)) < 100
    found = score(rows, labels, cameras=labels % 2, categories=labels // 3, map_at=(10,))
    more = score(rows, labels, query=half, gallery=np.arange(len(rows)), cameras=labels % 2)
    sets = score(rows, np.eye(41)[labels % 41], label_sets=True, map_at=(10,))
    families = set()
    for each in [*found.records, *more.records, *sets.records]:
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
