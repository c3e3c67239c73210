"""mAP@K with its three denominators, nDCG@K, R-precision and MRR beside other libraries and codes.

Formulas of repositories are written again from what these compute.
"""

from __future__ import annotations

import ir_measures
import numpy as np
import pytest
import torch
from pytorch_metric_learning.utils.accuracy_calculator import (
    AccuracyCalculator,
)
from sklearn.metrics import ndcg_score

from benchmark.core.errors import DataError
from benchmark.metrics import score
from benchmark.metrics.protocols import meanings, written_metric

KS = (1, 3, 7, 50, 10**8)
# Sums of float32 products differ by rounding between libraries; no score here is that near another.
ROUNDING = 1e-6


@pytest.fixture(scope="module", params=[0, 1])
def world(request):
    """Rows, labels, and the numbers of queries and gallery; classes have 1 to 20 images."""
    rng = np.random.default_rng(request.param)
    labels = np.repeat(np.arange(20), np.arange(1, 21))
    rows = rng.standard_normal((20, 8))[labels] + rng.standard_normal((len(labels), 8))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    order = rng.permutation(len(labels))
    return rows.astype(np.float32), labels, order[:80], order[80:]


def values(world, protocol, map_at=KS):
    rows, labels, query, gallery = world
    found = score(rows, labels, query=query, gallery=gallery, map_at=map_at)
    return {each.metric: each.value for each in found.records if each.protocol == protocol}


def rankings(world):
    """Return the similarities and hits (Q, G) of the queries that have a positive."""
    rows, labels, query, gallery = world
    similar = rows[query].astype(float) @ rows[gallery].astype(float).T
    hits = labels[query][:, None] == labels[gallery]
    some = hits.any(axis=1)
    return similar[some], hits[some]


def ranks_of_hits(world):
    """Return the ranks of the positives of each query, from 1."""
    similar, hits = rankings(world)
    order = np.argsort(-similar, axis=1)
    return [np.flatnonzero(row) + 1 for row in np.take_along_axis(hits, order, axis=1)]


def test_ir_measures_agree_on_map_and_ndcg_at_k_r_precision_and_mrr(world):
    similar, hits = rankings(world)
    run = {}
    relevant = {}
    for number, (scores, found) in enumerate(zip(similar, hits, strict=True)):
        names = [f"item{item}" for item in range(len(scores))]
        run[str(number)] = dict(zip(names, scores.tolist(), strict=True))
        relevant[str(number)] = dict(zip(names, found.astype(int).tolist(), strict=True))
    measures = {"r_precision": ir_measures.Rprec, "mrr": ir_measures.RR}
    for k in KS[:-1]:
        measures[f"map_at_{k}"] = ir_measures.AP @ k
        measures[f"ndcg_at_{k}"] = ir_measures.nDCG @ k
    theirs = ir_measures.calc_aggregate(measures.values(), relevant, run)
    found = values(world, "gallery")
    for name, measure in measures.items():
        assert found[name] == pytest.approx(theirs[measure], abs=ROUNDING), name


def test_scikit_learn_agrees_on_ndcg(world):
    similar, hits = rankings(world)
    found = values(world, "gallery")
    for k in KS:
        assert found[f"ndcg_at_{k}"] == pytest.approx(ndcg_score(hits, similar, k=k), abs=ROUNDING)


def test_the_library_agrees_on_r_precision_and_mrr(world):
    rows, labels, _, _ = world
    kept = labels > 0  # the library leaves out a class of one image, too
    calculator = AccuracyCalculator(
        include=("r_precision", "mean_reciprocal_rank"),
        k=int(kept.sum()) - 1,
        device=torch.device("cpu"),
    )
    theirs = calculator.get_accuracy(rows[kept], labels[kept])
    found = {
        each.metric: each.value
        for each in score(rows[kept], labels[kept]).records
        if each.protocol == "others"
    }
    assert found["r_precision"] == pytest.approx(theirs["r_precision"], abs=ROUNDING)
    assert found["mrr"] == pytest.approx(theirs["mean_reciprocal_rank"], abs=ROUNDING)


def of_gldv2(ranks, k):
    """Return what GLDv2's code adds up: its sum divides by min(P, K)."""
    total = 0.0
    hits = 0
    for place in range(1, k + 1):
        if place in ranks:
            hits += 1
            total += hits / place
    return total / min(len(ranks), k)


def of_metu(ranks, k):
    """Return what METU's code adds up: ranks strictly below K, divided by P."""
    return sum((number + 1) / rank for number, rank in enumerate(ranks) if rank < k) / len(ranks)


def of_hashing(ranks, k):
    """Return what DeepHash-pytorch adds up: the mean over the positives among the first K."""
    first = [(number + 1) / rank for number, rank in enumerate(ranks) if rank <= k]
    return np.mean(first) if first else 0.0


def test_the_codes_of_gldv2_metu_and_hashing_have_the_three_denominators(
    world,
):
    ranks = [set(each) for each in ranks_of_hits(world)]
    ordered = [sorted(each) for each in ranks]
    found = values(world, "gallery", (1, 3, 7, 50))
    for k in (1, 3, 7, 50):
        gldv2 = np.mean([of_gldv2(each, k) for each in ranks])
        metu = np.mean([of_metu(each, k + 1) for each in ordered])
        hashing = np.mean([of_hashing(each, k) for each in ordered])
        assert found[f"map_min_at_{k}"] == pytest.approx(gldv2, abs=ROUNDING)
        assert found[f"map_at_{k}"] == pytest.approx(metu, abs=ROUNDING)
        assert found[f"map_found_at_{k}"] == pytest.approx(hashing, abs=ROUNDING)
    # the three differ where they may
    assert found["map_at_3"] < found["map_min_at_3"] < found["map_found_at_3"]


def test_a_k_beyond_the_gallery_looks_at_all_of_it(world):
    found = values(world, "gallery", (10**8, len(world[3])))
    for name in ("map_at", "map_min_at", "map_found_at"):
        assert found[f"{name}_100000000"] == pytest.approx(found["map"])
        assert found[f"{name}_{len(world[3])}"] == pytest.approx(found["map"])


def test_equal_scores_rank_in_the_order_of_the_rows():
    """Four items have one score; the positives stand at the places 2 and 4 of the file."""
    rows = np.array([[1, 0], [1, 1], [1, 1], [1, 1], [1, 1]], np.float32)
    found = score(
        rows,
        [0, 1, 0, 1, 0],
        query=[0],
        gallery=[1, 2, 3, 4],
        map_at=(2, 3),
    )
    ours = {each.metric: each.value for each in found.records if each.protocol == "gallery"}
    assert ours["map_at_2"] == pytest.approx(1 / 2 / 2)
    assert ours["map_found_at_3"] == pytest.approx(1 / 2)
    assert ours["mrr"] == pytest.approx(1 / 2)
    assert ours["ndcg_at_2"] == pytest.approx(1 / np.log2(3) / (1 + 1 / np.log2(3)))


def test_a_query_without_a_positive_counts_0_in_each_of_them(world):
    rows, labels, query, gallery = world
    hidden = np.where(
        np.isin(np.arange(len(labels)), query[:20]),
        100 + np.arange(210),
        labels,
    )
    changed = (rows, hidden, query, gallery)
    left_out = values(changed, "gallery")
    zero = values(changed, "gallery_zero")
    share = len(rankings(changed)[0]) / len(query)
    for metric in (
        "map_at_3",
        "map_min_at_3",
        "map_found_at_3",
        "ndcg_at_3",
        "mrr",
        "r_precision",
    ):
        assert zero[metric] == pytest.approx(left_out[metric] * share)


@pytest.mark.parametrize("map_at", [(0,), (1.5,), 5, (True,), ("5",), [[1]], (-1, 3)])
def test_a_k_that_is_none_is_an_error_that_names_the_argument(map_at):
    with pytest.raises(DataError, match=r"map_at is .*whole numbers from 1"):
        score(np.eye(4, 2, dtype=np.float32) + 1, [0, 0, 1, 1], map_at=map_at)


def test_a_metric_is_known_by_its_name_and_by_what_is_shown():
    for name, meaning in meanings("metrics").items():
        expected = f"{name[:-1]}20" if name.endswith("_k") else name
        shown = f"{meaning['shown'][:-1]}20" if name.endswith("_k") else meaning["shown"]
        for text in (expected, shown, f" {shown.upper()} ", shown.lower()):
            assert written_metric(text) == expected
    for text in ("map_at_0", "mAP@", "R@1.5", "NMI", "", "mAP@10000000000"):
        assert written_metric(text) is None
