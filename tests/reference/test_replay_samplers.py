"""Our samplers draw what the authors' samplers drew, within chance."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
from long_lists import long_but
from replay_samplers import agrees, case_of, compare

FOLDER = Path(__file__).parent
RECORDED = {
    name: (figures, file)
    for file in ("authors_samplers.json", "more_samplers.json")
    for name, figures in json.loads((FOLDER / file).read_text(encoding="utf-8")).items()
}


# One of each sampler.
QUICK = ("hierarchical bs32 4/class 10/pair", "m_per_class bs64 4/class", "windows bs96 5/pair")


@cache
def rows_of(case):
    return compare(case, RECORDED[case][0], seed=3)


@pytest.mark.parametrize("case", long_but(QUICK, RECORDED))
def test_every_figure_is_within_its_tolerance(case):
    assert [row for row in rows_of(case) if not agrees(*row[1:])] == []


def test_an_epoch_that_ends_on_the_large_classes_is_off():
    """A sampler that does not shuffle its batches is told from one that does."""
    rows = rows_of("m_per_class bs64 4/class")
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
