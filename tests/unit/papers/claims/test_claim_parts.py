"""The one test behind every claim, against SciPy and by its rules."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from benchmark.papers.claim_tests import RATIO, Part
from benchmark.papers.claim_verdicts import decide
from benchmark.stats.reproduction import RangeTest, range_test
from benchmark.stats.samples import Spread


def one_part(part: Part, alpha: float) -> RangeTest:
    """Return the test of one part."""
    return range_test(part.values, part.low, part.high, alpha, own_spread(part))


def own_spread(part: Part) -> Spread:
    """Return the spread of a part without sisters."""
    return Spread(sd=part.values.std(ddof=1), df=len(part.values) - 1)


GOOD = np.array([1.0, 1.2, 0.8, 1.1, 0.9])
NOISE = np.array([0.5, -0.6, 0.1, -0.2, 0.3])


def test_p_values_are_those_of_one_sided_t_tests():
    tested = one_part(Part("a", NOISE, low=-1.0), 0.05)
    greater = stats.ttest_1samp(NOISE, -1.0, alternative="greater")
    less = stats.ttest_1samp(NOISE, -1.0, alternative="less")
    assert tested.p == pytest.approx(greater.pvalue)
    assert tested.p_against == pytest.approx(less.pvalue)
    interval = stats.ttest_1samp(NOISE, 0).confidence_interval(0.90)
    assert (tested.ci_low, tested.ci_high) == pytest.approx((interval.low, interval.high))


def test_a_part_inside_a_range_needs_both_one_sided_tests():
    tested = one_part(Part("a", NOISE, low=-1.0, high=0.5), 0.05)
    above = stats.ttest_1samp(NOISE, -1.0, alternative="greater").pvalue
    below = stats.ttest_1samp(NOISE, 0.5, alternative="less").pvalue
    assert tested.p == pytest.approx(max(above, below))
    outside = min(1 - above, 1 - below)
    assert tested.p_against == pytest.approx(min(1.0, 2 * outside))


def test_every_part_has_to_hold_for_a_supported_sentence():
    assert decide([Part("a", GOOD), Part("b", GOOD)], 0.05).verdict == "supported"
    found = decide([Part("a", GOOD), Part("b", NOISE)], 0.05)
    assert (found.verdict, found.parts_holding) == ("inconclusive", 1)
    assert found.decisive.part == "b"
    assert "1 of 2 parts" in found.reason


def test_one_reversed_part_contradicts_whatever_the_others_say():
    found = decide([Part("a", GOOD), Part("b", -GOOD)], 0.05)
    assert found.verdict == "contradicted"
    assert found.reason.startswith("b ")


def test_contradicting_evidence_is_corrected_for_the_number_of_parts():
    values = np.array([-1.0, -2.5, 0.2, -1.4, -0.6])
    alone = one_part(Part("a", values), 0.05).p_against
    assert 0.01 < alone < 0.05
    assert decide([Part("a", values)], 0.05).verdict == "contradicted"
    assert (
        decide([Part("a", values), *[Part(str(n), NOISE) for n in range(5)]], 0.05).verdict
        == "inconclusive"
    )


def test_one_seed_never_decides():
    found = decide([Part("a", np.array([5.0]))], 0.05)
    assert found.verdict == "inconclusive"
    assert "one seed" in found.reason


def test_seeds_without_spread_never_decide():
    found = decide([Part("a", np.array([5.0, 5.0, 5.0]))], 0.05)
    assert found.verdict == "inconclusive"
    assert "no spread" in found.reason


def test_a_missing_part_keeps_a_sentence_from_being_supported_but_not_from_being_contradicted():
    missing = Part("b", note="no run on cub")
    found = decide([Part("a", GOOD), missing], 0.05)
    assert found.verdict == "inconclusive"
    assert "no run on cub" in found.reason
    assert decide([Part("a", -GOOD), missing], 0.05).verdict == "contradicted"


def test_nothing_run_is_not_run_with_each_reason_once():
    found = decide([Part("a", note="no run on cub"), Part("b", note="no run on cub")], 0.05)
    assert (found.verdict, found.reason, found.decisive) == ("not_run", "no run on cub", None)


def test_a_stricter_level_asks_for_more_evidence():
    assert decide([Part("a", GOOD)], 0.05).verdict == "supported"
    assert decide([Part("a", GOOD - 0.7)], 0.05).verdict == "supported"
    assert decide([Part("a", GOOD - 0.7)], 0.0005).verdict == "inconclusive"


def test_ratios_are_shown_as_ratios():
    part = Part("a", np.log([2.9, 3.0, 3.1]), low=np.log(2.5), high=np.log(3.5), unit=RATIO)
    tested = part.tested(0.05, own_spread(part))
    assert (tested.estimate, tested.low) == pytest.approx((3.0, 2.5), abs=0.01)
    assert np.isnan(replace(part, high=np.inf).tested(0.05, own_spread(part)).high)
    assert "3.00 [" in tested.text


def test_parts_of_one_label_are_told_apart():
    """Two scopes of one dataset, one of them with its protocol, have parts of one label."""
    same = np.array([1.0, 1.0, 1.0])
    found = decide([Part("a", NOISE), Part("a", NOISE.copy()), Part("a", same)], 0.05)
    assert found.verdict == "inconclusive" and "1 could not be tested (first: a" in found.reason
