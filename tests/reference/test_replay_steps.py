"""Our recipes and training loop take the optimisation steps of the ROADMAP authors' code."""

from __future__ import annotations

import runpy
import sys

import numpy as np
import pytest
import replay_steps
from long_lists import long_but
from replay_steps import CASES, FOLDER, Deviation, main, read, replay

SEED, RECORDED = read(FOLDER / "authors_steps.npz")


# With a memory; the steps with another rate have batches alone.
QUICK = ("sop_xbm_pair",)


@pytest.mark.parametrize("case", long_but(QUICK, CASES))
def test_losses_and_embeddings_are_the_authors(case):
    assert replay(case, SEED, *RECORDED[case]).within


def test_two_steps_with_another_rate_are_off(tmp_path, monkeypatch):
    """The first loss agrees whatever the rate; the second does not."""
    losses, probe = RECORDED["sop_resnet_smooth_ap"]
    file = tmp_path / "steps.npz"
    parts = {"seed": SEED, "sop_resnet_smooth_ap/losses": losses[:2]}
    np.savez(file, **parts, **{"sop_resnet_smooth_ap/probe": probe})
    case = replay_steps.Case("roadmap_sop_resnet50", "smooth_ap", lr=1.1e-3)
    monkeypatch.setitem(replay_steps.CASES, "sop_resnet_smooth_ap", case)
    assert main(file) == 1


@pytest.mark.parametrize("found", [Deviation(2e-9, 0.0), Deviation(0.0, 2e-8)])
def test_a_deviation_above_a_tolerance_or_not_a_number_is_off(found):
    assert not found.within
    assert not Deviation(float("nan"), 0.0).within
    assert Deviation(1e-9, 1e-8).within


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"seed": 1}, "cases none; it may have sop_resnet_roadmap"),
        ({"sop_resnet_roadmap/losses": np.ones(2)}, "'seed' is not one whole number"),
        ({"seed": 1, "other/losses": np.ones(2)}, r"cases \['other'\]"),
        ({"seed": 1, "sop_xbm_pair/losses": np.ones(2)}, "'sop_xbm_pair/probe' is missing"),
        ({"seed": 1, "sop_xbm_pair/losses": np.ones((2, 2))}, "must be float64 with 1 axes"),
    ],
)
def test_a_file_that_is_no_record_ends_with_what_is_wrong(tmp_path, content, words):
    np.savez(tmp_path / "steps.npz", **content)
    with pytest.raises(SystemExit, match=words):
        main(tmp_path / "steps.npz")


def test_a_torn_or_other_file_ends_with_a_message(tmp_path):
    torn = tmp_path / "torn.npz"
    torn.write_bytes((FOLDER / "authors_steps.npz").read_bytes()[:20_000])
    with pytest.raises(SystemExit, match="no record of training steps"):
        read(torn)
    with pytest.raises(SystemExit, match="no record of training steps"):
        read(FOLDER / "README.md")


@pytest.mark.long
def test_a_record_of_another_seed_length_and_subset_of_cases_agrees_until_it_is_changed(
    tmp_path, capsys
):
    name = "sop_resnet_smooth_ap"
    losses, probe = replay_steps.trained(name, 5, 3, (7, 32))
    for shift, status in ((0.0, 0), (2e-9, 1)):
        parts = {f"{name}/losses": losses + shift, f"{name}/probe": probe}
        np.savez(tmp_path / "steps.npz", seed=np.int64(5), **parts)
        assert main(tmp_path / "steps.npz") == status


@pytest.mark.parametrize("command", ["replay_steps", "replay_samplers", "replay_losses"])
def test_a_command_ends_with_2_and_one_line_for_a_file_it_cannot_read(
    command, tmp_path, monkeypatch, capsys
):
    path = tmp_path / "other.npz"
    path.write_text("nothing of the kind")
    monkeypatch.setattr(sys, "argv", [f"{command}.py", str(path)])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(FOLDER / f"{command}.py"), run_name="__main__")
    (said,) = capsys.readouterr().err.splitlines()
    assert ended.value.code == 2
    assert str(path) in said
