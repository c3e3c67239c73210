"""A recording whose arrays do not fit each other is made again, never analysed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmark.analyses.recording import Recording

GOOD: dict[str, Any] = {
    "batches": np.ones((4, 2), np.float32),
    "batch_labels": np.zeros(4, np.int64),
    "sizes": np.array([2, 2]),
    "query": np.ones((3, 2), np.float32),
    "query_labels": np.zeros(3, np.int64),
    "gallery": np.ones((5, 2), np.float32),
    "gallery_labels": np.zeros(5, np.int64),
}


def test_a_sound_recording_is_taken():
    first, second = Recording(**GOOD).steps()
    assert len(first[0]) == len(second[1]) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"batch_labels": np.zeros(3, np.int64)},
        {"query_labels": np.zeros(2, np.int64)},
        {"gallery_labels": np.zeros(2, np.int64)},
        {"sizes": np.array([], np.int64)},
        {"sizes": np.array([4, 0])},
        {"sizes": np.array([8, -4])},
        {"sizes": np.array([4, 4])},
        {"query": np.full((3, 2), np.nan, np.float32)},
        {"gallery": np.ones((5, 3), np.float32)},
        {"query": np.ones((0, 2), np.float32), "query_labels": np.zeros(0, np.int64)},
    ],
)
def test_arrays_that_do_not_fit_are_refused(wrong):
    with pytest.raises(ValueError, match=r"numbers for|images in all|and a gallery"):
        Recording(**{**GOOD, **wrong})
