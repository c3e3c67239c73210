"""``score`` of whole numbers and codes beside rankings in exact arithmetic, ties by position."""

from __future__ import annotations

import numpy as np
import pytest

from benchmark.metrics import score

ROWS = 120
CLASSES = 20
DEPTHS = (1, 3, 10)


def drawn(width, low, high, seed=0):
    """Return whole numbers (ROWS, width) that lean towards their class, and labels."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(ROWS) % CLASSES)
    rows = rng.standard_normal((CLASSES, width))[labels]
    rows += 1.5 * rng.standard_normal(rows.shape)
    middle = (low + high) / 2
    rows = np.rint(middle + rows * (high - low) / 4).clip(low, high)
    return rows.astype(np.int64), labels


def bits(width, seed=0):
    rows, labels = drawn(width, -9, 9, seed)
    return (rows > 0).astype(np.int64), labels


def signs(width, seed=0):
    rows, labels = bits(width, seed)
    return 2 * rows - 1, labels


def squared_distances(queries, items):
    """Return exact squared distances (Q, N) of rows of whole numbers, as Python numbers."""
    differences = queries.astype(object)[:, None] - items.astype(object)
    return (differences**2).sum(axis=2)


def scores_of(order, is_positive):
    """Return the metrics of one ranking, or None without a positive."""
    hits = is_positive[order]
    places = np.flatnonzero(hits) + 1
    if not len(places):
        return None
    precision = np.arange(1, len(places) + 1) / places
    found = {f"recall_at_{k}": float(places[0] <= k) for k in DEPTHS}
    found["map"] = precision.mean()
    found["map_at_r"] = precision[places <= len(places)].sum() / len(places)
    return found


def exact(rows, labels, query=None, gallery=None):
    """Return the metrics of rows ranked by exact distance, equal ones by their position."""
    every = np.arange(len(rows))
    together = query is None
    query = every if together else query
    gallery = every if together else gallery
    distances = squared_distances(rows[query], rows[gallery])
    of_queries = []
    for number, row in zip(query, distances, strict=True):
        order = [item for item in np.argsort(row, kind="stable") if gallery[item] != number]
        found = scores_of(np.array(order), labels[gallery] == labels[number])
        if found is not None:
            of_queries.append(found)
    return {name: np.mean([each[name] for each in of_queries]) for name in of_queries[0]}


def values(found, protocol):
    return {each.metric: each.value for each in found.records if each.protocol == protocol}


def check(stored, numbers, labels, protocols, **sides):
    """Hold the protocols of stored rows against exact rankings of whole numbers."""
    found = score(stored, labels, recall_at=DEPTHS, **sides)
    expected = exact(numbers, labels, **sides)
    for protocol in protocols:
        ours = values(found, protocol)
        assert {name: ours[name] for name in expected} == pytest.approx(expected, abs=1e-12), (
            protocol
        )


SINGLE, HALF, DOUBLE = np.float32, np.float16, np.float64


@pytest.mark.parametrize("width", [12, 24, 64])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", [HALF, SINGLE, DOUBLE])
def test_signs_rank_by_all_distances_as_exact_numbers_do(width, seed, kind):
    numbers, labels = signs(width, seed)
    protocols = ["others", "others_euclidean", "others_hamming"]
    check(numbers.astype(kind), numbers, labels, protocols)


@pytest.mark.parametrize("width", [12, 24, 64])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", [HALF, SINGLE, DOUBLE])
def test_bits_rank_by_distance_as_exact_numbers_do(width, seed, kind):
    numbers, labels = bits(width, seed)
    check(numbers.astype(kind), numbers, labels, ["others_euclidean", "others_hamming"])


@pytest.mark.parametrize(
    ("width", "low", "high"),
    [
        (12, 0, 3),
        (12, -2, 2),
        (3, 0, 255),
        (64, 2000, 2003),  # sums above 2^24, which float32 rounds, and many ties
        (300, 0, 255),
        (4, 0, 2_000_000),
    ],
)
@pytest.mark.parametrize("kind", [SINGLE, DOUBLE])
def test_whole_numbers_rank_by_distance_as_exact_numbers_do(width, low, high, kind):
    numbers, labels = drawn(width, low, high)
    check(numbers.astype(kind), numbers, labels, ["others_euclidean"])


@pytest.mark.parametrize(
    "scale",
    [
        1 / 8,
        0.5,
        3,
        0.1,
        7e-5,
        1e-50,
        1e38,
        1e200,
        1e-300,
    ],
)
def test_codes_at_any_scale_rank_as_the_codes_do(scale):
    for numbers, labels in (signs(24), bits(24)):
        protocols = ["others_euclidean", "others_hamming"]
        check(numbers * float(scale), numbers, labels, protocols)
        if 1e-40 < scale < 1e38:
            check((numbers * scale).astype(SINGLE), numbers, labels, protocols)


def test_halves_and_eighths_of_whole_numbers_rank_exactly():
    for parts in (2, 8):
        numbers, labels = drawn(16, -40, 40)
        for kind in (HALF, SINGLE, DOUBLE):
            check((numbers / parts).astype(kind), numbers, labels, ["others_euclidean"])


def test_codes_of_unit_length_rank_exactly_and_by_hamming_distance_alone():
    numbers, labels = signs(20)
    rows = (numbers / np.sqrt(20)).astype(SINGLE)
    check(rows, numbers, labels, ["others", "others_hamming"])
    assert values(score(rows, labels), "others_euclidean") == {}


@pytest.mark.parametrize("codes", [signs, bits])
def test_queries_search_a_gallery_of_codes_exactly(codes, monkeypatch, tmp_path):
    numbers, labels = codes(16)
    query = np.arange(0, ROWS, 3)
    gallery = np.setdiff1d(np.arange(ROWS), query)
    protocols = ["gallery_euclidean", "gallery_hamming"]
    check(numbers.astype(SINGLE), numbers, labels, protocols, query=query, gallery=gallery)
    np.save(tmp_path / "rows.npy", numbers.astype(HALF))
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    monkeypatch.setattr("benchmark.metrics.rows.IN_MEMORY", 0)
    monkeypatch.setattr("benchmark.metrics.rows.BLOCK", 13)
    check(mapped, numbers, labels, protocols, query=query, gallery=gallery)


@pytest.mark.parametrize(
    "rows",
    [
        [[0, 1], [1, 2]],  # not a code: three values
        [[-1, 1], [0, 1]],
        [[0.5, 1], [1, 0.5]],
        [[0.3, 1.7], [0.2, 0.1]],
        [[0, 0], [0, 0]],
    ],
)
def test_rows_that_are_no_code_have_no_hamming_distance(rows):
    found = score(np.array(rows * 2, SINGLE), [0, 1, 0, 1])
    assert values(found, "others_hamming") == {}
    assert values(found, "others_euclidean")


@pytest.mark.parametrize("kind", [SINGLE, DOUBLE])
@pytest.mark.parametrize("power", [-120, -40, 0, 40, 120])
def test_rows_of_any_length_have_the_same_scores(kind, power):
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 12
    rows = rng.standard_normal((12, 8))[labels]
    rows += rng.standard_normal(rows.shape)
    rows = rows.astype(kind)
    first = score(rows, labels)
    scaled = np.ldexp(rows, power * (8 if kind is DOUBLE else 1))
    second = score(scaled, labels)
    assert second.facts["rows equal to an earlier one"] == 0
    for one, other in zip(first.records, second.records, strict=True):
        assert one[:2] == other[:2]
        assert one.value == pytest.approx(other.value, abs=1e-12)


def test_lengths_are_shown_at_any_scale():
    rows = np.array([[3.0, 4], [0, 5], [5, 0], [4, 3]]) * 1e-50
    facts = score(rows, [0, 0, 1, 1]).facts
    assert facts["smallest, median, largest length"] == pytest.approx([5e-50] * 3, rel=1e-4)
