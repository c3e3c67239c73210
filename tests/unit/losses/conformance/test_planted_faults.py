"""The conformance suite passes right implementations of every style and catches planted faults."""

from __future__ import annotations

import multiprocessing
import sys
from functools import cache
from pathlib import Path

import pytest
import torch
from long_lists import long_but

from benchmark.losses import LOSSES, create_loss
from benchmark.losses.conformance import processes, suite
from benchmark.losses.conformance.check_outcomes import in_common
from benchmark.losses.conformance.formulas import NAMES, reference
from benchmark.losses.conformance.suite import CHECKS, LossUnderTest, all_findings, load

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER))
torch.set_num_threads(1)

RIGHT = long_but(
    ["dense_smooth_ap", "float32_inside", "ModuleWithReferences", "OwnGraph", "equal_classes_only"],
    ["query_by_query", "from_distances", "of_cosines"],
)
FAULTS = (
    "ascending_ranks",
    "precision_instead_of_loss",
    "rank_from_zero",
    "itself_not_counted",
    "self_counted_twice",
    "temperature_multiplied",
    "query_left_out",
    "sum_over_queries",
    "all_images_in_the_mean",
    "half_gradient",
    "no_gradient",
    "scores_in_half_precision",
    "distance_without_a_gradient_at_zero",
    "noisy_scores",
    "gradient_of_ranks_stopped",
    "divided_by_the_batch",
    "classes_by_position",
    "wrong_beyond_a_block",
    "classes_weigh_the_same",
    "embeddings_overwritten",
    "FactorIgnored",
    "GradientOfTheLastCall",
    "MaskOfTheFirstBatch",
    "EverySecondCall",
    "EveryGraphKept",
    "own_entry_hidden_among_references",
    "normalised_by_the_batch",
)
FAULTS_IN_PROCESSES = long_but(
    ["gradient_times_processes"],
    ["gathered_without_gradient", "gathered_in_the_wrong_order"],
)
FAULTS_OF_OTHERS = (
    "sup_ap_without_the_half_step",
    "sup_ap_with_a_jump_at_the_margin",
    "sup_ap_with_ties_won",
    "sup_ap_with_soft_positive_ranks",
    "fast_ap_with_the_query_in_its_histogram",
    "fast_ap_of_distances",
    "softbin_ap_with_precision_in_the_middle",
    "softbin_ap_with_classes_weighing_the_same",
    "blackbox_ap_with_another_step",
    "blackbox_ap_uphill",
    "blackbox_ap_with_ties_in_order",
    "roadmap_with_sums",
)
NO_MARGIN = {"blackbox_ap": {"margin": 0.0}}  # draws random numbers otherwise


def findings(file, name, loss="smooth_ap", *, processes=False):
    return all_findings(load(f"{FOLDER / file}:{name}", formula_of(loss)), processes)


@cache
def formula_of(loss):
    """Return the reference of a loss, whose answers are kept: they take most of the time."""
    return reference(loss, NO_MARGIN.get(loss, {}))


def failed(found):
    return [f"{item.check}: {item.note}" for item in found if item.result == "failed"]


@pytest.fixture
def quick(monkeypatch):
    """Leave out the batch of 384 images and the search for a smaller one: they take longest.

    The losses of the suite take all batches.
    """
    batches = suite.unusual_batches()
    fewer = batches | {"perfect ranking": batches["perfect ranking"][:1]}
    monkeypatch.setattr(suite, "unusual_batches", lambda: fewer)
    monkeypatch.setattr(suite, "MOST_TRIALS", 0)


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_implementation_passes(name, quick):
    found = list(findings("right_losses.py", name))
    assert failed(found) == []
    results = {item.check: item.result for item in found}
    assert results["values, float32"] == results["gradients, float32"] == "passed"
    refused = {"OwnGraph": "values, float64", "equal_classes_only": "unequal classes"}
    if name in refused:
        assert results[refused[name]] == "not applicable"
    assert (results["references"] == "passed") == (
        name in ("dense_smooth_ap", "ModuleWithReferences")
    )


ROWS = {"order of images", "perfect ranking", "values, float64", "ties", "autocast"}


@pytest.mark.parametrize(
    ("failed", "words"),
    [
        (ROWS, "positives of other rows"),
        (ROWS - {"perfect ranking", "order of images"}, "right where the ranking is perfect"),
        (ROWS - {"order of images"}, "wrong even where the ranking is perfect"),
        (ROWS | {"determinism"}, "one batch has two values"),
        ({"gradients, float64", "gradients, float32", "ties"}, "gradients are not"),
        ({"values, float32", "autocast"}, "right in float64 alone"),
        ({"classes of one image", "unequal classes"}, "unequal classes alone"),
        ({"ties", "duplicates"}, "equal scores alone"),
        ({"memory"}, ""),
    ],
)
def test_what_failed_checks_have_in_common_is_one_line(failed, words):
    found = in_common(failed, set(CHECKS))
    assert words in found
    assert bool(found) == bool(words)


def test_nothing_is_said_of_checks_that_were_not_made():
    assert in_common({"values, float64"}, {"values, float64"}) == ""


def test_the_library_whose_queries_take_positives_of_other_rows_is_told_so(quick):
    name = "pytorch_metric_learning.losses:SmoothAPLoss"
    found = all_findings(load(name, formula_of("smooth_ap")), processes=False)
    outcomes = {outcome.check: outcome.result for outcome in found}
    failed = {check for check, result in outcomes.items() if result == "failed"}
    assert "positives of other rows" in in_common(failed, set(outcomes))


@pytest.fixture
def quick_start(monkeypatch):
    """Start the two processes from one that has imported what they need."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["benchmark.losses.conformance.suite"])
    monkeypatch.setattr(processes.multiprocessing, "get_context", lambda _: context)


def test_a_loss_that_gathers_with_its_gradient_passes_in_two_processes(quick_start):
    *_, found = findings("right_losses.py", "gathered", processes=True)
    assert (found.check, found.result) == ("scaling over processes", "passed"), found.note


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_caught(name, quick):
    assert any(item.result == "failed" for item in findings("planted_faults.py", name))


@pytest.mark.parametrize("name", FAULTS_IN_PROCESSES)
def test_a_fault_that_shows_in_two_processes_only_is_caught_there(name, quick_start):
    found = list(findings("planted_faults.py", name, processes=True))
    assert [item.check for item in found if item.result == "failed"] == ["scaling over processes"]


@pytest.mark.parametrize("name", FAULTS_OF_OTHERS)
def test_a_planted_fault_in_another_loss_is_caught(name, quick):
    loss = next(loss for loss in NAMES if name.startswith(loss))
    found = findings("planted_faults_of_others.py", name, loss)
    assert any(item.result == "failed" for item in found)


def test_every_ranking_loss_of_the_suite_has_a_reference():
    ranking = {
        entry.name
        for entry in LOSSES
        if entry.facts["kind"] == "ranking"
        and entry.target.__module__.startswith("benchmark.losses.")
    }
    assert ranking - set(NAMES) == set()


@pytest.mark.parametrize("name", NAMES)
def test_the_losses_of_the_suite_pass(name):
    entry = LOSSES[name]
    source = f"{entry.target.__module__}:{entry.target.__qualname__}"
    found = list(all_findings(load(source, formula_of(name)), False))
    assert failed(found) == []
    assert {item.check: item.result for item in found}["references"] == "passed"


def test_a_random_loss_is_compared_by_its_means():
    loss = create_loss("blackbox_ap", margin=0.05)
    case = suite.mixed("three classes", [4, 3, 2], 6, 1)
    for margin, wrong in ((0.05, False), (0.5, True)):
        candidate = LossUnderTest("", loss, reference("blackbox_ap", {"margin": margin}))
        assert bool(candidate.wrong("value", case, torch.float32)) == wrong
        assert bool(candidate.wrong("gradient", case, torch.float32)) == wrong


def test_the_smallest_failing_batch_is_small():
    found = next(item for item in findings("planted_faults.py", "query_left_out") if item.case)
    assert found.result == "failed"
    assert len(found.case.labels) <= 4


def test_the_smallest_failing_batch_fails_in_the_same_way():
    """This loss is finite and wrong on ordinary batches, and NaN where a class has one image."""
    found = {item.check: item for item in findings("planted_faults.py", "itself_not_counted")}
    for kind in ("value", "gradient"):
        item = found[f"{kind}s, float32"]
        drawn, smaller = item.note.splitlines()
        assert drawn.startswith(f"six classes of four: {kind}")
        assert smaller.startswith(f"  on {len(item.case.labels)} of its 24 rows: {kind}")
        assert "nan" not in item.note
    assert "value nan" in found["classes of one image"].note.splitlines()[1]
