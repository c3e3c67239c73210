"""``conform --step`` passes right steps of every style, and names what is wrong with others."""

from __future__ import annotations

import multiprocessing
import sys
from pathlib import Path

import pytest
import torch
from long_lists import long_but

from benchmark.losses.conformance import processes, step_of_parts
from benchmark.losses.conformance.formulas import reference
from benchmark.losses.conformance.processes import SCALING
from benchmark.losses.conformance.whole_batch import DIM, SmallNetwork

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER))
torch.set_num_threads(1)
SMOOTH_AP = reference("smooth_ap", {})
OFF = "off by"
RIGHT = {  # and what is said of batch norm, of the next step
    "at_once": ("one pass", "nothing is left"),
    "grad_cache": (OFF, "nothing is left"),
    "parts_against_constants": (OFF, "nothing is left"),
    "joined_graphs": (OFF, "nothing is left"),
    "Queue": ("one pass", "with rows of the step before"),
    "gathered": ("one pass", "nothing is left"),
}
OWN_LOSSES = "of the losses of 5 parts, not the loss of the whole batch"
FAULTS = {  # the first check that fails, and its words
    "mean_over_parts": ("whole batch", f"the mean {OWN_LOSSES}"),
    "sum_over_parts": ("whole batch", f"the sum {OWN_LOSSES}"),
    "parts_by_size": (
        "whole batch",
        f"the sum (0.1667 to 0.2083 x) {OWN_LOSSES}",
    ),
    "whole_loss_for_each_part": (
        "whole batch",
        "3 x the gradient of the whole batch: multiplied",
    ),
    "nothing_left": ("whole batch", "no gradient reaches the parameters"),
    "last_part_alone": (
        "whole batch",
        "of 20 of 24 rows is lost (rows 0 to 19)",
    ),
    "first_part_lost": (
        "whole batch",
        "of 5 of 24 rows is lost (rows 0 to 4)",
    ),
    "divided_by_parts": (
        "whole batch",
        "0.25 x the gradient of the whole batch: divided",
    ),
    "own_rows_in_the_queue": (
        "whole batch",
        "in its own memory, and ranked twice",
    ),
    "shuffled_labels": ("whole batch", "cosine 0.1581"),
    "uneven_part_left_out": ("uneven parts", "cosine 0.9"),
    "LeftFromBefore": ("next step", "cosine"),
    "another_dropout": (
        "dropout",
        "restore the state of the random numbers",
    ),
}
FAULTS_IN_PROCESSES = {
    "gradient_times_processes": "2 x the gradient of the whole batch: multiplied by the number of",
    "gathered_without_gradient": "0.5 x the gradient of the whole batch: divided by the number of",
    "gathered_without_own_rows": "raised RuntimeError: element 0 of tensors does not require grad",
}


def findings(file, name, *, in_processes=False):
    _, *found = step_of_parts.findings(f"{FOLDER / file}:{name}", SMOOTH_AP, in_processes)
    return {outcome.check: outcome for outcome in found}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_step_passes(name):
    found = findings("right_steps.py", name)
    of_norm, of_next = RIGHT[name]
    assert {outcome.result for outcome in found.values()} <= {
        "passed",
        "not applicable",
    }
    assert of_norm in found["batch norm"].note
    assert (found["batch norm"].result == "passed") == (of_norm != OFF)
    assert of_next in found["next step"].note
    assert found["dropout"].result == "passed"


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_named(name):
    failed = [
        each for each in findings("planted_steps.py", name).values() if each.result == "failed"
    ]
    check, words = FAULTS[name]
    assert failed[0].check == check
    assert words in failed[0].note


@pytest.fixture
def quick_start(monkeypatch):
    """Start the two processes from one that has imported what they need."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["benchmark.losses.conformance.step_of_parts"])
    monkeypatch.setattr(processes.multiprocessing, "get_context", lambda _: context)


@pytest.mark.parametrize("name", long_but(["gathered"], ["gathered_times_processes"]))
def test_a_right_step_in_two_processes_passes(name, quick_start):
    found = findings("right_steps.py", name, in_processes=True)[SCALING]
    assert found.result == "passed", found.note


def test_a_step_on_its_own_half_of_the_batch_is_no_fault(quick_start):
    found = findings("right_steps.py", "grad_cache", in_processes=True)[SCALING]
    assert (found.result, found.note) == (
        "not applicable",
        "each process ranks its own half of the batch",
    )


@pytest.mark.parametrize("name", FAULTS_IN_PROCESSES)
def test_a_fault_in_two_processes_is_named(name, quick_start):
    found = findings("planted_steps.py", name, in_processes=True)[SCALING]
    assert found.result == "failed"
    assert FAULTS_IN_PROCESSES[name] in found.note


def test_there_are_more_parameters_than_rows_so_that_factors_can_be_solved():
    parameters = sum(each.numel() for each in SmallNetwork().parameters())
    assert parameters == DIM * (DIM + 1) + (DIM + 1) * DIM // 2
    assert parameters > 2 * 132
