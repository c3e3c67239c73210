"""README's numbers are those of the frozen runs, computed again."""

from __future__ import annotations

import re

import pandas as pd
import pytest
from pages import ROOT

from benchmark.stats.paired import compare, corrected

README = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
NAMES = {
    "smooth_ap": "SmoothAP", "sup_ap": "SupAP", "roadmap": "ROADMAP", "fast_ap": "FastAP",
    "softbin_ap": "SoftBinAP", "blackbox_ap": "BlackBoxAP", "calibration": "Calibration",
    "triplet_semihard": "Triplet (semi-hard)",
}  # fmt: skip


@pytest.fixture(scope="module")
def scores():
    frozen = pd.read_csv(ROOT / "results" / "reference" / "embedded.csv")
    ok = frozen[frozen["status"] == "ok"]
    names = ok[["dataset", "setting", "loss"]].agg("/".join, axis=1)
    return ok.assign(run_id=names + ok["batch_size"].astype(str) + ok["seed"].astype(str))


@pytest.fixture(scope="module")
def steps(scores):
    found = compare(scores, None, 0.05, ("smooth_ap", "sup_ap", "roadmap"))
    found = found[found["kind"] == "ablation"]
    family = found["metric"] + found["dataset"] + found["split"]
    table = corrected(found.assign(family=family), 0.05)
    return table[table["metric"] == "recall_at_1"].set_index(["step", "batch_size"])


def points(share):
    return f"{100 * share:+.1f}"


def test_the_table_has_the_mean_and_spread_of_every_loss(scores):
    here = scores[scores["metric"] == "recall_at_1"].groupby(["loss", "batch_size"])["value"]
    mean = 100 * here.mean()
    sd = 100 * here.std()
    for loss, name in NAMES.items():
        row = next(line for line in README.split("| |") if line.strip(" |").startswith(name))
        printed = re.findall(r"(\d+\.\d\d) ± (\d+\.\d\d)", row)[:2]
        keys = [(loss, 32), (loss, 128)]
        assert printed == [(f"{mean[key]:.2f}", f"{sd[key]:.2f}") for key in keys], loss


@pytest.mark.parametrize(
    ("step", "size", "digits"), [("1", 32, 3), ("total", 32, 3), ("2", 32, 2), ("2", 128, 2)]
)
def test_the_steps_of_the_ablation_are_those_of_the_frozen_runs(steps, step, size, digits):
    row = steps.loc[step, size]
    low = points(row["ci_low"])
    high = points(row["ci_high"])
    assert f"{points(row['difference'])} [{low}, {high}]" in README.replace(" points ", " ")
    assert f" {row['p_holm']:.{digits}f}" in README
    assert row["significant"] == (step != "2")
