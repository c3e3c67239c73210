"""Classes and clusters of MATLAB files are whole numbers, however they are stored."""

from __future__ import annotations

import numpy as np
import pytest

from benchmark.datasets.io.matlab import whole_numbers


@pytest.mark.parametrize("values", [[1, 2], [1.0, 2.0], np.array([1, 2], np.uint8)])
def test_whole_numbers_of_any_type_are_taken(values):
    found = whole_numbers(values)
    assert found.dtype == np.int64 and found.tolist() == [1, 2]


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 1e300, 1.5, 1 + 2j, "1", None])
def test_other_values_are_refused(wrong):
    with pytest.raises(ValueError, match="its numbers are not whole ones"):
        whole_numbers([1, wrong])


def test_truths_are_no_numbers():
    with pytest.raises(ValueError, match="not whole ones"):
        whole_numbers([True, False])
