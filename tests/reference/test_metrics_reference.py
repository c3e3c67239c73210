"""Our metrics against the evaluation code of the papers' authors, on embeddings with ties."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from made_up_embeddings import GRADES, judged, made_up, made_up_landmarks, whitening_rows

from benchmark.metrics import expand_queries, landmark_scores, learn_whitening, retrieval_metrics

RECORDED = json.loads((Path(__file__).parent / "authors_metrics.json").read_text(encoding="utf-8"))
EXACT = 1e-6  # their means are float32
AT = (1, 2, 4, 8, 10, 16, 20, 30, 32, 100, 1000)


def measured(case):
    """Return our metrics of a case: ``plain``, or ``plain gallery``, of which a third queries."""
    kind, _, gallery = case.partition(" ")
    labels, rows = made_up(kind)
    if not gallery:
        return retrieval_metrics(rows, labels, recall_at=AT)
    asks = np.arange(len(labels)) % 3 == 0
    return retrieval_metrics(rows[asks], labels[asks], rows[~asks], labels[~asks], AT)


@pytest.mark.parametrize(
    "case", ["plain", "plain gallery", "twins", "twins gallery", "duplicates gallery"]
)
def test_recall_and_map_at_r_are_those_of_roadmap(case):
    ours = measured(case)
    del ours["map"]  # their code cuts it at 2047 neighbours
    assert ours == pytest.approx(RECORDED["labels"][case], abs=EXACT)


def test_roadmap_drops_the_first_image_instead_of_the_query():
    """With copies in other classes their code may keep a query in its own ranking; ours never."""
    labels, rows = made_up("duplicates")
    order = np.argsort(-(rows @ rows.T).round(6), axis=1, kind="stable")
    own = order == np.arange(len(labels))[:, None]
    theirs = RECORDED["labels"]["duplicates"]
    assert _of_rankings(order[:, 1:], labels) == pytest.approx(theirs, abs=EXACT)
    without_query = order[~own].reshape(len(labels), -1)
    ours = measured("duplicates")
    del ours["map"]
    assert ours == pytest.approx(_of_rankings(without_query, labels), abs=EXACT)


def test_ties_between_classes_move_both_within_their_bounds():
    """Which of two equal scores comes first is not defined in their code; ours takes the index."""
    labels, rows = made_up("ties")
    asks = np.arange(len(labels)) % 3 == 0
    scores = (rows[asks] @ rows[~asks].T).astype(np.float64).round(5)
    match = labels[asks][:, None] == labels[~asks]
    misses_first = np.lexsort((match, -scores))
    hits_first = np.lexsort((~match, -scores))
    lowest = _of_rankings(misses_first, labels[~asks], labels[asks])
    highest = _of_rankings(hits_first, labels[~asks], labels[asks])
    ours = measured("ties gallery")
    theirs = RECORDED["labels"]["ties gallery"]
    assert highest["recall_at_1"] - lowest["recall_at_1"] > 0.1  # so that ties are tested
    for name, value in theirs.items():
        low = lowest[name] - EXACT
        high = highest[name] + EXACT
        assert low <= value <= high
        assert low <= ours[name] <= high


@pytest.mark.parametrize("protocol", GRADES)
def test_landmark_map_is_that_of_three_evaluations(protocol):
    queries, gallery, truth = made_up_landmarks("plain")
    found = RECORDED["landmarks"]["plain"]
    ours = _landmarks(queries, gallery, truth, protocol)
    assert ours == pytest.approx(found["revisitop"][protocol], abs=1e-9)
    assert ours == pytest.approx(found["listwise"][protocol], abs=1e-9)
    roadmap = found["roadmap"].get(protocol, ours)
    assert ours == pytest.approx(roadmap, abs=1e-9)


@pytest.mark.parametrize("protocol", GRADES)
def test_ties_of_landmarks_move_all_within_their_bounds(protocol):
    queries, gallery, truth = made_up_landmarks("ties")
    kept, judgements = judged(truth, protocol)
    scores = (queries[kept] @ gallery.T).astype(np.float64).round(5)
    lowest = _nudged_map(scores, judgements, -1e-6)
    highest = _nudged_map(scores, judgements, 1e-6)
    assert highest - lowest > 0.1  # so that ties are tested
    theirs = RECORDED["landmarks"]["ties"].values()
    values = [found[protocol] for found in theirs if protocol in found]
    values.append(_landmarks(queries, gallery, truth, protocol))
    for value in values:
        assert lowest - 1e-9 <= value <= highest + 1e-9


@pytest.mark.parametrize("power", [0.25, 0.5])
@pytest.mark.parametrize("dimensions", [12, 24])
def test_whitening_with_a_power_is_that_of_the_listwise_code(power, dimensions):
    queries, gallery, truth = made_up_landmarks("plain")
    whiten = learn_whitening(whitening_rows(), dimensions, power)
    found = RECORDED["landmarks"]["plain"][f"whitening {power} {dimensions}"]
    _same(found, whiten(queries), whiten(gallery), truth)


@pytest.mark.parametrize(("alpha", "k"), [(2, 10), (3, 5)])
def test_query_expansion_is_that_of_the_listwise_code(alpha, k):
    queries, gallery, truth = made_up_landmarks("plain")
    expanded = expand_queries(queries, gallery, alpha, k)
    found = RECORDED["landmarks"]["plain"][f"expansion {alpha} {k}"]
    _same(found, expanded, gallery, truth)


def test_whitening_comes_before_expansion():
    queries, gallery, truth = made_up_landmarks("plain")
    whiten = learn_whitening(whitening_rows(), 24, 0.25)
    queries = whiten(queries)
    gallery = whiten(gallery)
    found = RECORDED["landmarks"]["plain"]["whitening 0.25 24, expansion 2 10"]
    expanded = expand_queries(queries, gallery, 2, 10)
    _same(found, expanded, gallery, truth)


def _of_rankings(order, labels, asked=None):
    """Return recall and mAP@R of rankings (Q, N): items by falling score."""
    if asked is None:
        counts = np.bincount(labels)[labels] - 1
        asked = labels
    else:
        counts = np.bincount(labels, minlength=asked.max() + 1)[asked]
    match = labels[order] == asked[:, None]
    found = {f"recall_at_{k}": match[:, :k].any(axis=1).mean() for k in AT}
    places = np.arange(1, match.shape[1] + 1)
    precision_of_hits = match.cumsum(axis=1) / places * match
    inside = places <= counts[:, None]
    sums = (precision_of_hits * inside).sum(axis=1)
    has_positive = counts > 0
    averages = sums[has_positive] / counts[has_positive]
    return {**found, "map_at_r": averages.mean()}


def _landmarks(queries, gallery, truth, protocol):
    kept, judgements = judged(truth, protocol)
    return landmark_scores(queries[kept], gallery, judgements)[0]


def _nudged_map(scores, judgements, hair):
    """Return mAP by trapezoids, a hair of score given to relevant items."""
    averages = []
    for row, relevant, ignored in zip(scores, judgements.relevant, judgements.ignored, strict=True):
        nudged = row.copy()
        nudged[relevant] += hair
        averages.append(_trapezoids(nudged, relevant, ignored))
    return np.mean(averages)


def _trapezoids(scores, relevant, ignored):
    """Return AP of one query by the trapezoids of the revisited benchmarks."""
    order = np.argsort(-scores, kind="stable")
    kept = order[~np.isin(order, ignored)]
    ranks = np.flatnonzero(np.isin(kept, relevant))
    earlier = np.arange(len(ranks))
    before = np.where(ranks == 0, 1.0, earlier / np.maximum(ranks, 1))
    after = (earlier + 1) / (ranks + 1)
    return np.mean((before + after) / 2)


def _same(found, queries, gallery, truth):
    """Check scores of some pairs (float32 rows: 1e-6) and the mAP of each protocol."""
    if "scores" in found:
        assert np.allclose(queries[:4] @ gallery[:25].T, found["scores"], atol=1e-6)
    for protocol, value in found["map"].items():
        assert _landmarks(queries, gallery, truth, protocol) == pytest.approx(value, abs=1e-4)
