"""Rows that are junk and rows that distract, beside the rules of Market-1501's own evaluation."""

from __future__ import annotations

import numpy as np
import pytest

from benchmark.core.errors import DataError
from benchmark.metrics import score

DEPTHS = (1, 5)


def people(seed=0, as_text=False):
    """Return rows, labels with junk (-1) and distractors (0), cameras, and masks."""
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.repeat(np.arange(1, 16), 5), [-1] * 12, [0] * 20])
    centres = rng.standard_normal((17, 8))
    rows = centres[labels] + rng.standard_normal((len(labels), 8))
    cameras = rng.integers(0, 3, len(labels))
    order = rng.permutation(len(labels))
    rows = rows[order].astype(np.float32)
    labels = labels[order]
    query = rng.random(len(labels)) < 0.3
    if as_text:
        labels = np.where(labels == -1, "junk", np.where(labels == 0, "other", labels.astype(str)))
    return rows, labels, cameras[order], query


def market(rows, labels, cameras, query, gallery, junk, distractors, other_camera):
    """Return mean scores by Market-1501's rules, one query after the other.

    Junk is taken out of each ranking, and so are images of the person by the query's own camera;
    the average precision adds trapezoids up, image by image.
    """
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    found = []
    for number in query:
        if labels[number] in junk or labels[number] in distractors:
            continue
        order = gallery[np.argsort(-(unit[gallery] @ unit[number]), kind="stable")]
        recall = precision = average = hits = place = 0.0
        first = None
        is_good = [
            labels[item] == labels[number]
            and item != number
            and not (other_camera and cameras[item] == cameras[number])
            for item in order
        ]
        for item, good in zip(order, is_good, strict=True):
            is_own = labels[item] == labels[number] and not good
            if labels[item] in junk or is_own:
                continue
            before = precision if place else 1.0
            place += 1
            hits += good
            precision = hits / place
            if good:
                first = first or place
                average += (hits / sum(is_good) - recall) * (before + precision) / 2
                recall = hits / sum(is_good)
        if first is not None:
            found.append([average, *(first <= k for k in DEPTHS)])
    return dict(
        zip(("map_trapezoid", "recall_at_1", "recall_at_5"), np.mean(found, 0), strict=True)
    )


def values(found, protocol):
    return {each.metric: each.value for each in found.records if each.protocol == protocol}


@pytest.mark.parametrize("as_text", [False, True])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("marks", ["both", "junk", "distractors"])
def test_rankings_follow_the_rules_of_market(seed, as_text, marks):
    rows, labels, cameras, query = people(seed, as_text)
    junk = (["junk"] if as_text else [-1]) if marks != "distractors" else []
    distractors = (["other"] if as_text else [0]) if marks != "junk" else []
    given = {"junk": junk, "distractors": distractors, "cameras": cameras, "recall_at": DEPTHS}
    found = score(rows, labels, query=query, gallery=~query, **given)
    every = np.arange(len(rows))
    searches = {"gallery": (every[query], every[~query]), "others": (every, every)}
    for pair, sides in searches.items():
        for protocol, other_camera in ((pair, False), (f"{pair}_other_camera", True)):
            expected = market(rows, labels, cameras, *sides, junk, distractors, other_camera)
            ours = values(found, protocol)
            assert {name: ours[name] for name in expected} == pytest.approx(expected, abs=1e-12)


def test_junk_is_as_if_it_had_never_been_there():
    rows, labels, cameras, query = people()
    kept = labels != -1
    marked = score(rows, labels, query=query, gallery=~query, cameras=cameras, junk=-1)
    without = score(
        rows[kept],
        labels[kept],
        query=query[kept],
        gallery=~query[kept],
        cameras=cameras[kept],
    )
    assert [each[:5] for each in marked.records] == [each[:5] for each in without.records]
    assert marked.facts == {**without.facts, "rows left out as junk": 12}


def test_a_distractor_is_never_a_query_and_stays_in_every_gallery():
    rows, labels, _, query = people()
    found = score(rows, labels, query=query, gallery=~query, distractors=np.array([0]), junk=[-1])
    for each in found.records:
        if each.protocol.startswith("itself") or each.protocol == "others":
            assert each.queries == 75 or each.metric == "map_at_r_by_class"
        if each.protocol == "one_per_class" and each.metric != "map_at_r_by_class":
            assert each.queries == 75 - 15
    assert found.facts["classes"] == 15
    assert found.facts["distractors"] == 20
    assert "others: queries without a positive" not in found.facts


def test_all_distractors_are_in_the_gallery_of_one_image_a_class():
    between = [[1, 1], [1, 1.1], [1.1, 1], [1.2, 1]]
    rows = np.array([[1, 0], [0, 1], *between], np.float32)
    found = score(rows, [1, 1, 0, 0, 0, 0], distractors=[0], recall_at=(4, 5))
    ours = values(found, "one_per_class")
    assert ours["recall_at_4"] == 0
    assert ours["recall_at_5"] == 1


def test_equal_distractors_have_no_other_label():
    rows, labels, _, _ = people()
    places = np.flatnonzero(labels == 0)
    rows[places[1]] = rows[places[0]]
    facts = score(rows, labels, distractors=[0]).facts
    assert facts["rows equal to an earlier one"] == 1
    assert facts["of them with another label"] == 0


@pytest.mark.parametrize("as_text", [False, True])
def test_rows_labelled_minus_one_are_a_fact_until_something_is_said_about_them(as_text):
    rows, labels, _, _ = people()
    if as_text:
        labels = labels.astype(str)
    minus_one = "-1" if as_text else -1
    assert score(rows, labels).facts["rows labelled -1"] == 12
    for said in ({"junk": [minus_one]}, {"distractors": [minus_one]}):
        assert "rows labelled -1" not in score(rows, labels, **said).facts
    assert "rows labelled -1" not in score(rows[:9], np.arange(9) % 3).facts


@pytest.mark.parametrize(
    "sides",
    [
        {},
        {"query": [0, 1], "gallery": [2, 3]},
        {"query": [2, 3], "gallery": [0, 1]},
    ],
)
def test_junk_that_leaves_nothing_to_search_is_an_error(sides):
    labels = [7, 7, 8, 8] if sides else [7] * 4
    with pytest.raises(DataError, match="junk: no row is left"):
        score(np.eye(4, dtype=np.float32), labels, junk=[7], **sides)
