"""What callers hand to the metrics: shapes that belong together, labels as they are, any length."""

from __future__ import annotations

import numpy as np
import pytest

from benchmark.core.errors import DataError
from benchmark.datasets.base import Judgements
from benchmark.metrics import (
    expand_queries,
    landmark_scores,
    nearest_neighbours,
    retrieval_metrics,
)

RNG = np.random.default_rng(0)
LABELS = np.repeat(np.arange(6), 4)
CENTRES = RNG.normal(size=(6, 16))
NOISE = RNG.normal(size=(24, 16))
ROWS = (CENTRES[LABELS] + 0.9 * NOISE).astype(np.float32)
QUERY = ROWS[::2]
QUERY_LABELS = LABELS[::2]
EXPECTED = retrieval_metrics(QUERY, QUERY_LABELS, ROWS, LABELS)
EXPECTED_OF_ALL = retrieval_metrics(ROWS, LABELS)


@pytest.mark.parametrize(
    ("given", "sizes"),
    [
        ((QUERY, LABELS, ROWS, LABELS), ["(24,)", "(12, 16)"]),
        ((QUERY, QUERY_LABELS, ROWS, QUERY_LABELS), ["(12,)", "(24, 16)"]),
        ((QUERY, LABELS, ROWS, QUERY_LABELS), ["(24,)", "(12, 16)"]),
        ((ROWS[1:], LABELS), ["(24,)", "(23, 16)"]),
        ((QUERY, QUERY_LABELS, None, LABELS), ["None", "(24,)"]),
        ((QUERY, QUERY_LABELS, ROWS), ["(24, 16)", "None"]),
        ((ROWS, LABELS[:, None]), ["(24, 1)", "(24, 16)"]),
        ((ROWS, np.eye(6)[LABELS]), ["(24, 6)", "(24, 16)"]),
        ((QUERY, QUERY_LABELS, ROWS[:, :8], LABELS), ["(12, 16)", "(24, 8)"]),
        ((ROWS[0], LABELS[:16]), ["(16,)"]),
        ((ROWS[:, :, None], LABELS), ["(24, 16, 1)"]),
        ((ROWS[:0], LABELS[:0]), ["(0, 16)"]),
        ((ROWS, 3), ["()", "(24, 16)"]),
    ],
)
def test_shapes_that_do_not_belong_together_are_an_error_that_names_them(given, sizes):
    with pytest.raises(DataError) as error:
        retrieval_metrics(*given)
    for size in sizes:
        assert size in str(error.value)


@pytest.mark.parametrize(
    "recall_at",
    [
        (0,),
        (-1,),
        (1, 0),
        (0.01,),
        (2.0,),
        (True,),
        ("1",),
        5,
        "1",
        [[1]],
    ],
)
def test_a_k_that_is_no_whole_number_from_one_is_an_error(recall_at):
    with pytest.raises(DataError, match="whole numbers from 1"):
        retrieval_metrics(ROWS, LABELS, recall_at=recall_at)


@pytest.mark.parametrize("kind", ["u1", "i1", "i2", "u4", "i8", "u8", "f4", "f8", "O", "U", "S"])
def test_labels_of_any_type_of_whole_numbers_or_text_are_taken(kind):
    query_labels = QUERY_LABELS.astype(kind)
    labels = LABELS.astype(kind)
    assert retrieval_metrics(QUERY, query_labels, ROWS, labels) == EXPECTED
    of_lists = retrieval_metrics(QUERY, query_labels.tolist(), ROWS, tuple(labels.tolist()))
    assert of_lists == EXPECTED


@pytest.mark.parametrize("offset", [0, 2**53, 2**62, 2**63 - 8])
def test_whole_numbers_of_two_types_are_compared_exactly(offset):
    unsigned = QUERY_LABELS.astype("u8") + np.uint64(offset)
    assert retrieval_metrics(QUERY, unsigned, ROWS, LABELS + offset) == EXPECTED
    # none of 2**63 + 1, 2, ... is among them, though all are equal as float64
    others = np.uint64(2**63) + np.arange(1, 13, dtype="u8")
    with pytest.raises(DataError, match="none of the 12 queries"):
        retrieval_metrics(QUERY, others, ROWS, LABELS + offset)


def test_whole_numbers_of_any_size_and_python_objects_are_compared_exactly():
    huge = [10**30 + label for label in LABELS.tolist()]
    assert retrieval_metrics(ROWS, huge) == EXPECTED_OF_ALL
    mixed = LABELS.astype(object)
    mixed[:3] = [np.uint8(0), 0, np.int64(0)]
    assert retrieval_metrics(ROWS, mixed) == EXPECTED_OF_ALL


@pytest.mark.parametrize(
    "missing", [np.nan, None, np.datetime64("NaT"), np.float32("nan"), 0.5, np.inf]
)
def test_a_missing_label_is_an_error_that_says_how_to_leave_it_out(missing):
    labels = LABELS.astype(object)
    labels[23] = missing
    with pytest.raises(DataError, match=r"row 23 .*embeddings\[known\], labels\[known\]"):
        retrieval_metrics(ROWS, labels)
    with pytest.raises(DataError, match=r"gallery: .*row 23 "):
        retrieval_metrics(QUERY, QUERY_LABELS, ROWS, labels.tolist())


def test_missing_labels_of_a_float_array_are_an_error():
    labels = np.where(LABELS >= 3, np.nan, LABELS)
    with pytest.raises(DataError, match="row 12 is nan"):
        retrieval_metrics(ROWS, labels)


@pytest.mark.parametrize("labels", [LABELS.astype(str), [str(label) for label in LABELS]])
def test_text_is_not_compared_with_numbers(labels):
    with pytest.raises(DataError, match="numbers and some text"):
        retrieval_metrics(QUERY, QUERY_LABELS, ROWS, labels)
    with pytest.raises(DataError, match="numbers and some text"):
        retrieval_metrics(ROWS, [*LABELS[:-1].tolist(), "5"])


@pytest.mark.parametrize("power", [-300, -140, -120, -84, -40, 40, 84, 120])
def test_embeddings_of_any_length_give_the_same_bits(power):
    scale = 2.0**power  # changes no digit
    wide = ROWS.astype(np.float64) * scale
    assert retrieval_metrics(wide, LABELS) == EXPECTED_OF_ALL
    lengths = np.where(np.arange(24) % 3 == 0, scale, 1.0)[:, None]
    mixed = retrieval_metrics(ROWS * lengths, LABELS)
    assert mixed == EXPECTED_OF_ALL


@pytest.mark.parametrize("scale", [1e-38, 1e-30, 1e-25, 3e-23, 1e25, 1e37])
def test_single_precision_may_be_tiny_or_huge(scale):
    scaled = ROWS * np.float32(scale)
    # at 1e-38 most digits of the components are lost before they get here
    tolerance = 1e-3 if scale < 1e-37 else 1e-12
    got = retrieval_metrics(scaled, LABELS)
    assert got == pytest.approx(EXPECTED_OF_ALL, abs=tolerance)


NARROW = ROWS[:, :8]
JUDGEMENTS = Judgements(
    relevant=(np.array([0]),) * 12,
    ignored=(np.array([], dtype=int),) * 12,
)


@pytest.mark.parametrize(
    ("metric", "given", "words"),
    [
        (nearest_neighbours, (QUERY, np.arange(3), 2, NARROW), r"\(12, 16\) and \(24, 8\)"),
        (expand_queries, (QUERY, NARROW, 2.0, 3), r"\(12, 16\) and \(24, 8\)"),
        (landmark_scores, (QUERY, NARROW, JUDGEMENTS), r"\(12, 16\) and \(24, 8\)"),
        (landmark_scores, (QUERY, ROWS, JUDGEMENTS, NARROW), r"\(12, 16\) and \(24, 8\)"),
        (landmark_scores, (ROWS, ROWS, JUDGEMENTS), "12 judgements for 24 queries"),
    ],
)
def test_the_other_metrics_name_shapes_that_do_not_belong_together(metric, given, words):
    with pytest.raises(DataError, match=words):
        metric(*given)


def test_labels_of_landmark_queries_have_one_for_each():
    with pytest.raises(DataError, match="24 labels for 12 queries"):
        landmark_scores(QUERY, ROWS, JUDGEMENTS, labels=LABELS)
