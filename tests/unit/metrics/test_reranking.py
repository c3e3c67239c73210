"""k-reciprocal re-ranking beside its formulas, written plainly for two or three dozen rows."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmark.__main__ import app
from benchmark.core.errors import DataError
from benchmark.datasets.landmarks import judged_levels
from benchmark.metrics import score
from benchmark.metrics.protocols import meanings

K1, K2, SHARE = 20, 6, 0.3


def made_up(seed, per_class=12):
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(8), per_class)
    rows = rng.standard_normal((8, 6))[labels] + rng.standard_normal((len(labels), 6))
    order = rng.permutation(len(labels))
    return (
        rows.astype(np.float32),
        labels,
        order[: per_class * 2],
        order[per_class * 2 :],
    )


def plain(rows, queries):
    """Return the final distances of the first rows to the others (Zhong et al., CVPR 2017).

    They are (Q, N - Q); without queries all rows search all, (N, N).
    """
    unit = rows.astype(float) / np.linalg.norm(rows, axis=1, keepdims=True)
    count = len(rows)
    squared = np.array([[np.sum((one - other) ** 2) for other in unit] for one in unit])
    distance = squared / squared.max(axis=1, keepdims=True)
    # a row is its own nearest; others follow in their order where distances are equal
    ranking = [
        sorted(
            range(count),
            key=lambda other: (other != row, distance[row, other], other),
        )
        for row in range(count)
    ]

    def reciprocal(row, most):
        nearest = ranking[row][: most + 1]
        return {other for other in nearest if row in ranking[other][: most + 1]}

    weights = np.zeros((count, count))
    for row in range(count):
        own = reciprocal(row, K1)
        expanded = set(own)
        for candidate in own:
            theirs = reciprocal(candidate, round(K1 / 2))
            if 3 * len(own & theirs) > 2 * len(theirs):
                expanded |= theirs
        members = sorted(expanded)
        weights[row, members] = np.exp(-distance[row, members])
        weights[row] /= weights[row].sum()
    averaged = np.array([weights[ranking[row][:K2]].mean(axis=0) for row in range(count)])
    searching = range(queries or count)
    final = np.empty((len(searching), count - queries))
    for query in searching:
        for item in range(queries, count):
            least = np.minimum(averaged[query], averaged[item]).sum()
            most = np.maximum(averaged[query], averaged[item]).sum()
            jaccard = 1 - least / most
            final[query, item - queries] = (1 - SHARE) * jaccard + SHARE * distance[query, item]
    return final


def mean_average_precision(distances, hits):
    """Return the mAP and R@1 of the queries that have a positive."""
    averages = []
    first = []
    for row, of_query in zip(distances, hits, strict=True):
        order = np.argsort(row, kind="stable")
        order = order[np.isfinite(row[order])]
        places = np.flatnonzero(of_query[order]) + 1
        if len(places):
            averages.append(np.mean(np.arange(1, len(places) + 1) / places))
            first.append(places[0] == 1)
    return np.mean(averages), np.mean(first)


def values(found, protocol):
    return {each.metric: each.value for each in found.records if each.protocol == protocol}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("block", [None, 1])
def test_the_scores_are_those_of_the_plain_formulas(seed, block, monkeypatch):
    if block:
        monkeypatch.setattr("benchmark.metrics.reranking.block_size", lambda _: 7)
    rows, labels, query, gallery = made_up(seed)
    found = score(rows, labels, query=query, gallery=gallery, rerank=True)
    final = plain(rows[np.append(query, gallery)], len(query))
    hits = labels[query][:, None] == labels[gallery]
    average, first = mean_average_precision(final, hits)
    ours = values(found, "gallery_rerank")
    assert ours["map"] == pytest.approx(average, abs=1e-12)
    assert ours["recall_at_1"] == pytest.approx(first)
    # it is another ranking
    assert abs(ours["map"] - values(found, "gallery")["map"]) > 1e-3


def test_items_of_the_own_class_and_camera_leave_the_new_ranking():
    rows, labels, query, gallery = made_up(7)
    cameras = np.arange(len(rows)) % 3
    found = score(
        rows,
        labels,
        query=query,
        gallery=gallery,
        cameras=cameras,
        rerank=True,
    )
    final = plain(rows[np.append(query, gallery)], len(query))
    hits = labels[query][:, None] == labels[gallery]
    final[hits & (cameras[query][:, None] == cameras[gallery])] = np.inf
    average, _ = mean_average_precision(final, hits)
    ours = values(found, "gallery_rerank_other_camera")
    assert ours["map"] == pytest.approx(average, abs=1e-12)


def test_a_set_is_re_ranked_without_the_query_itself():
    rows, labels, _, _ = made_up(3)
    found = score(rows, labels, rerank=True)
    final = plain(rows, 0)
    np.fill_diagonal(final, np.inf)
    hits = labels[:, None] == labels
    np.fill_diagonal(hits, False)
    average, first = mean_average_precision(final, hits)
    ours = values(found, "others_rerank")
    assert ours["map"] == pytest.approx(average, abs=1e-12)
    assert ours["recall_at_1"] == pytest.approx(first)
    assert "gallery_rerank" not in {each.protocol for each in found.records}


def test_equal_rows_and_few_rows_have_scores():
    rows, labels, query, gallery = made_up(4)
    rows[gallery] = rows[gallery[0]]  # more equal rows than neighbours
    found = score(rows, labels, query=query, gallery=gallery, rerank=True)
    assert 0 < values(found, "gallery_rerank")["map"] < 1
    few = score(rows[:4], [0, 0, 1, 1], query=[0, 2], gallery=[1, 3], rerank=True)
    assert values(few, "gallery_rerank")["recall_at_10"] == 1


def test_more_rows_than_memory_is_meant_for_are_refused_with_their_number(
    monkeypatch,
):
    monkeypatch.setattr("benchmark.metrics.reranking.MOST_ROWS", 95)
    rows, labels, query, gallery = made_up(0)
    with pytest.raises(DataError, match=r"rerank: 96 rows .*\(allowed: 95\)"):
        score(rows, labels, query=query, gallery=gallery, rerank=True)
    score(rows, labels, query=query, gallery=gallery)


def test_it_needs_labels_and_takes_sets_of_them():
    rows, labels, query, gallery = made_up(0)
    given = {"query": query, "gallery": gallery, "rerank": True}
    graded = [
        {
            "easy": np.array([0]),
            "hard": np.array([], int),
            "junk": np.array([], int),
        }
    ]
    truth = judged_levels(graded * len(query))
    with pytest.raises(DataError, match="rerank needs labels"):
        score(rows, None, ground_truth=truth, **given)
    expected = values(score(rows, labels, **given), "gallery_rerank")
    found = values(
        score(rows, np.eye(8)[labels], label_sets=True, **given),
        "gallery_rerank",
    )
    assert found["map"] == pytest.approx(expected["map"], abs=1e-12)


def test_its_row_says_that_it_uses_the_test_set(tmp_path):
    rows, labels, query, gallery = made_up(0)
    np.savez(
        tmp_path / "a.npz",
        embeddings=rows,
        labels=labels,
        query=query,
        gallery=gallery,
    )
    words = [
        "score",
        str(tmp_path / "a.npz"),
        "--rerank",
        "--json",
        str(tmp_path / "s.json"),
    ]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    says = " ".join(done.output.split())
    assert "k1 = 20, k2 = 6, lambda = 0.3" in says
    assert "uses the other queries and the gallery of the test set" in says
    found = json.loads((tmp_path / "s.json").read_text())["records"]
    ours = next(each for each in found if each["protocol"] == "gallery_rerank")
    assert ours["meaning"] == meanings("protocols")["gallery_rerank"]
