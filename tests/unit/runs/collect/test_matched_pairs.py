"""Losses are compared seed by seed: runs of one seed that saw other batches, or moved house, are
pointed out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from benchmark.core.results import BatchStream, Numerics, Weights
from benchmark.runs.collect import collect

SAME = BatchStream(50, "5a3e")
OTHER = BatchStream(50, "07e4")


@pytest.fixture
def collected(study, results):
    """Returns a function that collects the study and gives its provenance."""

    def record() -> dict[str, Any]:
        collect(study, results)
        return json.loads((results / "four" / "provenance.json").read_text())

    return record


@pytest.fixture
def warnings_of(collected):
    """Returns a function that collects the study and gives the warnings of its provenance."""
    return lambda: collected()["warnings"]


def test_losses_that_saw_the_same_batches_need_no_warning(runs, finish, warnings_of):
    for run in runs.values():
        finish(run, batch_stream=BatchStream(50, f"seed {run.spec.seed}"))
    assert not warnings_of()


def test_a_pair_that_saw_different_batches_is_named(runs, finish, warnings_of):
    for run in runs.values():
        alone = run.spec.seed == 1 and run.spec.loss.name == "roadmap"
        finish(run, batch_stream=OTHER if alone else SAME)
    (warning,) = warnings_of()
    assert (
        "in 1 of 2 groups" in warning
        and "batch size 32, seed 1" in warning
        and "not paired" in warning
    )


def test_a_diverged_run_that_saw_fewer_batches_is_no_mismatch(runs, finish, warnings_of):
    first, *others = runs.values()
    finish(
        first,
        status="diverged",
        reason="loss became nan",
        batch_stream=BatchStream(20, "cafe"),
    )
    for run in others:
        finish(run, batch_stream=SAME)
    assert not warnings_of()


def test_a_pair_that_started_from_different_weights_is_named(runs, finish, warnings_of):
    for run in runs.values():
        alone = run.spec.seed == 1 and run.spec.loss.name == "roadmap"
        digest = "07e4" if alone else f"seed {run.spec.seed}"
        finish(run, provenance={"weights": Weights("test_resnet", "from scratch", digest, 9)})
    (warning,) = warnings_of()
    assert (
        "in 1 of 2 groups" in warning
        and "different weights" in warning
        and "batch size 32, seed 1" in warning
    )


def test_networks_that_are_meant_to_differ_are_no_mismatch(runs, finish, warnings_of):
    for run in runs.values():
        kind = run.spec.loss.name
        weights = Weights(kind, "from scratch", f"that of {kind}", 9)
        finish(run, provenance={"weights": weights})
    assert not warnings_of()


def test_a_run_continued_on_another_kind_of_machine_is_named(runs, finish, warnings_of):
    first, second, *_ = runs.values()
    finish(first, provenance={"machines": ["some processor", "another processor"]})
    finish(second, provenance={"machines": ["some processor"]})
    (warning,) = warnings_of()
    assert "another kind of machine: 1 " in warning and first.spec.run_id in warning


def test_a_run_continued_with_other_packages_is_named(runs, finish, warnings_of):
    first, second, *_ = runs.values()
    finish(first, provenance={"package_digests": ["3f", "a7"]})
    finish(second, provenance={"package_digests": ["3f"]})
    (warning,) = warnings_of()
    assert "other versions of packages: 1 " in warning and first.spec.run_id in warning


def test_runs_with_other_vector_instructions_are_counted_apart(runs, finish, collected):
    for run, used in zip(runs.values(), ("AVX512", "AVX512", "AVX2", None), strict=True):
        finish(run, provenance={"numerics": Numerics("cpu", "float32", 1, used, True)})
    found = {machine.get("instructions"): machine["runs"] for machine in collected()["hardware"]}
    assert found == {"AVX512": 2, "AVX2": 1, None: 1}
