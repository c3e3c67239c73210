"""The papers' studies train what the claims need: each can be decided as published."""

from __future__ import annotations

import csv

import numpy as np
import pandas as pd
import pytest
from made_up_results import LONG_COLUMNS, run_table
from typer.testing import CliRunner

from benchmark.__main__ import app
from benchmark.claims.claim_verdicts import judge_claims
from benchmark.published.loading import load_papers
from benchmark.published.quantities import GapDecrease
from benchmark.study import load_study
from benchmark.study.grid import expand
from benchmark.verdicts.matching import StudyGrid

STUDIES = {
    "roadmap2021v2": "roadmap",
    "smoothap2020": "smooth_ap",
    "fastap2019": "fast_ap",
    "listwise2019": "listwise",
}
LANDMARKS = tuple(
    f"{place}_{level}{suffix}"
    for place in ("roxford5k", "rparis6k", "roxford_1m", "rparis_1m")
    for level in ("medium", "hard")
    for suffix in ("", "+aqe")
)
SPLITS = {
    "vehicleid": ("small", "medium", "large"),
    "vggface2": ("test", "ijbc"),
    "sfm120k": LANDMARKS,
    "landmarks_clean": LANDMARKS,
}
K = (1, 4, 5, 10, 16, 32, 100)
METRICS = (*(f"recall_at_{k}" for k in K), "map_at_r", "map")
COSTS = ("train_seconds", "eval_seconds", "loss_ms", "peak_gpu_mb")
COUNTS = ("updates", "images_forward", "images_backward")


def finished(study) -> pd.DataFrame:
    """Return the long table of a study all of whose runs have finished; the scores are noise."""
    rows: list[tuple] = []
    for name, run in expand(study).items():
        spec = run.spec
        dataset = name.split("/", 1)[0]
        labels = (spec.setting.label, spec.loss.label, spec.loss.name)
        head = (name, dataset, *labels, spec.batch_size, spec.seed, "ok")
        splits = SPLITS.get(dataset, ("test",))
        epochs = (("curve", 1), ("curve", 2), ("last", 2))
        numbers = [(split, *at, metric) for split in splits for at in epochs for metric in METRICS]
        numbers += [("train", "cost", np.nan, metric) for metric in (*COSTS, *COUNTS)]
        rows += [(*head, *number) for number in numbers]
    columns = [*LONG_COLUMNS[:8], "split", "selection", "epoch", "metric"]
    table = pd.DataFrame(rows, columns=columns).reindex(columns=list(LONG_COLUMNS))
    return table.assign(value=np.random.default_rng(0).uniform(0.4, 0.6, len(table)))


@pytest.mark.parametrize("paper", STUDIES)
def test_a_finished_study_leaves_no_claim_of_its_paper_without_runs(paper):
    study = load_study(STUDIES[paper])
    claims = [
        claim for claim in load_papers().claims() if claim.source == paper and not claim.outside
    ]
    gaps = [
        GapDecrease(name, 64, seed, seed, "resnet50") for name in ("cub", "sop") for seed in (1, 2)
    ]
    table, parts = judge_claims(run_table(finished(study)), claims, StudyGrid.of(study), gaps=gaps)
    parts = parts[(parts["reading"] == "published") & (parts["n"] == 0)]
    assert parts.empty, parts[["claim", "part", "note"]].to_string()
    assert len(table) == 2 * len(claims)


def test_no_claim_is_outside():
    """A claim that some study trains is not outside; docs/statistics.md says that none is."""
    assert [claim.name for claim in load_papers().claims() if claim.outside] == []


def test_a_claim_against_copied_numbers_says_that_they_are_printed():
    printed = [
        each for each in load_papers().claims() if any("printed" in arm.where for arm in each.arms)
    ]
    assert len(printed) > 20
    assert [each.name for each in printed if "print" not in each.sentence] == []


def test_one_seed_is_enough_for_no_claim_and_every_study_has_more():
    for paper, name in STUDIES.items():
        few = [block.name for block in load_study(name).blocks if len(block.seeds) < 2]
        assert not few, f"claims of {paper} cannot be decided by {few}"


def test_a_study_none_of_whose_runs_has_finished_is_judged_as_not_run(tmp_path):
    for verb in ("collect", "verdicts", "claims", "build"):
        done = CliRunner().invoke(app, [verb, "smooth_ap", "--results", str(tmp_path)])
        assert done.exit_code == 0, (verb, done.output, done.exception)
    with open(tmp_path / "smooth_ap" / "claims.csv", newline="") as stream:
        assert {row["verdict"] for row in csv.DictReader(stream)} <= {"not_run", "not_asked"}
    assert (tmp_path / "smooth_ap" / "report" / "failed.txt").read_text() == ""
