"""The losses equal the authors' published code in value and gradient."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from replay_losses import case_named, compare, compared, main, read_cases

from benchmark.losses import create_loss

FOLDER = Path(__file__).parent
FILES = ("official_losses.npz", "later_losses.npz")
DATA = {name: dict(np.load(FOLDER / name)) for name in FILES}
EVERY = [(name, *item) for name in FILES for item in compared(DATA[name])]
BATCHES = ["balanced32/10", "imbalanced48/10", "random96/10"]


@pytest.mark.parametrize(("file", "batch", "name"), EVERY)
def test_value_and_gradient_equal_published_code(file, batch, name):
    comparison = compare(DATA[file], batch, name, case_named(name))
    assert comparison.agrees, comparison


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("weights", [None, [1.0, 1.0]])
def test_roadmap_equals_weighted_published_parts(batch, weights):
    data = DATA[FILES[0]]
    shares = weights or [0.5, 0.5]
    parts = [f"{batch}/{case}" for case in ("supap_paper", "calibration_pml")]
    rows = torch.tensor(data[f"{batch}/embeddings"], requires_grad=True)
    loss = create_loss("roadmap", reduction="nonzero", weights=weights)
    value = loss(rows, torch.tensor(data[f"{batch}/labels"]))
    value.backward()
    expected = sum(w * data[f"{part}/loss"].item() for w, part in zip(shares, parts, strict=True))
    gradient = sum(
        w * torch.tensor(data[f"{part}/grad"]) for w, part in zip(shares, parts, strict=True)
    )
    assert value.item() == pytest.approx(expected, rel=1e-9)
    assert (rows.grad - gradient).norm() < 1e-9 * gradient.norm()


@pytest.mark.parametrize(("file", "batch", "name"), EVERY)
def test_float32_stays_close_to_published_float64(file, batch, name):
    data = dict(DATA[file])
    data[f"{batch}/embeddings"] = data[f"{batch}/embeddings"].astype(np.float32)
    comparison = compare(data, batch, name, case_named(name))
    # tau 0.01 magnifies the rounding of a score (6e-8) a hundred times; the sums average it out
    assert comparison.value < 1e-4 and comparison.gradient < 1e-3, comparison


def test_replay_of_a_file_tells_what_agrees_what_differs_and_what_it_does_not_know(
    tmp_path, monkeypatch, capsys
):
    batch = "balanced32/0"
    data = DATA[FILES[1]]
    found = {key: value for key, value in data.items() if key.startswith(batch)}
    kept = {key: found[key] for key in (f"{batch}/embeddings", f"{batch}/labels")}
    for name, source in (("rs_at_k_1_2_4_8_16", 0), ("pnp_o", 1e-6), ("mine", 0)):
        origin = "pnp_d_s" if name == "mine" else name
        kept[f"{batch}/{name}/loss"] = found[f"{batch}/{origin}/loss"] * (1 + source)
        kept[f"{batch}/{name}/grad"] = found[f"{batch}/{origin}/grad"]
    path = tmp_path / "more.npz"
    cases = tmp_path / "cases.yaml"
    np.savez(path, **kept)
    monkeypatch.setattr("sys.argv", ["replay_losses.py", str(path)])
    assert main() == 1
    mine, differs, agrees = capsys.readouterr().out.splitlines()
    assert "unknown case" in mine
    assert differs.endswith("DIFFERS")
    assert agrees.endswith("agrees")
    cases.write_text("mine: {loss: pnp, options: {variant: D_s}}")
    assert compare(kept, batch, "mine", read_cases(cases)["mine"]).agrees
