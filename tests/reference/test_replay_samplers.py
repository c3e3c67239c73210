"""Our samplers draw what the authors' samplers drew, within chance."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from replay_samplers import agrees, case_of, compare

FOLDER = Path(__file__).parent
RECORDED = {
    name: (figures, file)
    for file in ("authors_samplers.json", "more_samplers.json")
    for name, figures in json.loads((FOLDER / file).read_text(encoding="utf-8")).items()
}


@pytest.mark.parametrize("case", RECORDED)
def test_every_figure_is_within_its_tolerance(case):
    off = [row for row in compare(case, RECORDED[case][0], seed=3) if not agrees(*row[1:])]
    assert off == []


def test_an_epoch_that_ends_on_the_large_classes_is_off():
    """A sampler that does not shuffle its batches is told from one that does."""
    case = "m_per_class bs64 4/class"
    rows = compare(case, RECORDED[case][0], seed=3)
    theirs, tolerance = next(
        (row[1], row[3]) for row in rows if row[0] == "mean_class_size_first_half"
    )
    assert not agrees(theirs, 55.0, tolerance)


def test_a_case_names_a_sampler_and_its_parameters():
    assert case_of("hierarchical bs96 4/class 2/pair 3 categories") == (
        "category_pairs",
        {"samples_per_class": 4, "batches_per_pair": 2, "nb_categories": 3},
        96,
    )
    with pytest.raises(SystemExit, match="random bs8"):
        case_of("random bs8")
