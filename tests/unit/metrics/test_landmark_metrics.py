"""The landmark benchmarks' own mAP, against a table worked out by hand and a slow version of the
rule."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmark.datasets.base import Judgements
from benchmark.metrics import landmark_map, ranks, retrieval_metrics


def on_circle(*degrees: float) -> np.ndarray:
    angles = np.deg2rad(np.array(degrees))
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def judged(*queries: tuple[list[int], list[int]]) -> Judgements:
    """Return the judgements of (relevant, ignored) per query."""
    relevant, ignored = zip(*queries, strict=True)
    return Judgements(
        *(tuple(np.array(part, dtype=np.int64) for part in lists) for lists in (relevant, ignored))
    )


def slow_map(scores: np.ndarray, judgements: Judgements) -> float:
    """The area under precision and recall, walked along one ranking after the other."""
    areas = []
    for row, relevant, ignored in zip(scores, judgements.relevant, judgements.ignored, strict=True):
        left = [item for item in range(len(row)) if item not in ignored]
        left.sort(key=lambda item: (-row[item], item))
        area, hits, precision_before = 0.0, 0, 1.0
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


def test_equal_scores_rank_by_index():
    gallery = on_circle(20, 20, 20)
    got = [landmark_map(on_circle(0), gallery, judged(([place], []))) for place in range(3)]
    assert got == pytest.approx([1.0, (0 / 1 + 1 / 2) / 2, (0 / 2 + 1 / 3) / 2])


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_map_equals_the_slow_version_with_ties_and_junk(data):
    items, queries = data.draw(st.integers(2, 30)), data.draw(st.integers(1, 6))
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
        lists.append(
            (
                [i for i, m in enumerate(marks) if m == "+"],
                [i for i, m in enumerate(marks) if m == "o"],
            )
        )
    judgements = judged(*lists)
    got = landmark_map(rows[:queries], rows[queries:], judgements)
    assert got == pytest.approx(slow_map(rows[:queries] @ rows[queries:].T, judgements), abs=1e-12)


def test_blocks_do_not_change_the_result(monkeypatch):
    rng = np.random.default_rng(0)
    query, gallery = rng.standard_normal((23, 8)), rng.standard_normal((50, 8))
    chosen = [rng.permutation(50)[: rng.integers(2, 30)] for _ in query]
    judgements = judged(*((part[: len(part) // 2], part[len(part) // 2 :]) for part in chosen))
    whole = landmark_map(query, gallery, judgements)
    monkeypatch.setattr(ranks, "BLOCK_BYTES", 4 * 50 * 3)
    assert landmark_map(query, gallery, judgements) == pytest.approx(whole, abs=1e-12)
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (query, gallery)]
    assert whole == pytest.approx(slow_map(unit[0] @ unit[1].T, judgements), abs=1e-9)


def test_trapezoids_are_never_above_the_mean_precision():
    rng = np.random.default_rng(1)
    query, gallery = rng.standard_normal((20, 6)), rng.standard_normal((90, 6))
    labels, items = np.arange(20) % 3, np.arange(90) % 3
    judgements = judged(*((np.flatnonzero(items == label), []) for label in labels))
    plain = retrieval_metrics(query, labels, gallery, items)["map"]
    assert plain - 0.05 < landmark_map(query, gallery, judgements) < plain
