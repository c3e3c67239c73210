"""Views that hold out training classes: no test image, each class held out once."""

from __future__ import annotations

import numpy as np
import pytest

from benchmark.core.errors import DataError
from benchmark.datasets import load_dataset


def test_folds_share_out_the_training_classes_and_show_no_test_image():
    whole = load_dataset("glyphs_tiny")
    views = [
        load_dataset("class_folds", {"of": "glyphs_tiny", "folds": 3, "fold": fold})
        for fold in range(3)
    ]
    held = [view.protocols["held_out"].query for view in views]
    assert sorted(name for part in held for name in part.names) == sorted(whole.train.names)
    for view, part in zip(views, held, strict=True):
        assert not set(view.train.names) & set(part.names)
        assert sorted([*view.train.names, *part.names]) == sorted(whole.train.names)
        for images in (view.train, part):
            assert np.array_equal(np.unique(images.labels), np.arange(images.labels.max() + 1))
    assert len({view.fingerprint for view in [*views, whole]}) == 4


def test_a_fold_that_does_not_exist_is_refused():
    with pytest.raises(DataError, match="fold 5 of 2 of 'glyphs_tiny' does not exist"):
        load_dataset("class_folds", {"of": "glyphs_tiny", "fold": 5})
