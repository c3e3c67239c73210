"""A claim asks its question of runs that can answer it: dataset, backbone and arms of the paper."""

from __future__ import annotations

import numpy as np
import pandas as pd
from made_up_results import candidates_of, long_table, run_table

from benchmark.papers.claim_verdicts import judge_claims, summary_text
from benchmark.papers.claims import Arm, Claim, Scope


def claim(published):
    facts = ("table 1", "ROADMAP is better.", "beats", ("map_at_r",), published)
    arms = {"first": (Arm("roadmap"),), "second": (Arm("smooth_ap"),)}
    return Claim(*facts, name="c", source="roadmap2021v2", **arms)


def verdicts(runs, asked):
    judged, _ = judge_claims(run_table(runs), [asked], candidates_of(runs))
    return judged.set_index(["claim", "reading"])


def on(dataset, backbone, sizes=(32,), **means):
    return long_table(
        means, dataset=dataset, setting=backbone, batch_sizes=sizes, seed=len(backbone)
    )


def test_runs_with_another_backbone_or_dataset_are_shown_and_not_asked():
    condition = (Scope(("cub",), backbone="resnet50", batch_sizes=(64,)),)
    for runs in (
        on("cub", "resnet18", (64,), smooth_ap=0.5, roadmap=0.55),
        on("glyphs", "r", smooth_ap=0.5, roadmap=0.55),
    ):
        found = verdicts(runs, claim(condition))
        assert found.loc["c", "published"]["verdict"] == "not_run"
        here = found.loc["c", "here"]
        assert (here["verdict"], here["parts_holding"]) == ("not_asked", 1)
        assert "the paper says it of cub; resnet50; batch 64" in here["reason"]
        assert np.isnan(here["p_contradicted"]) and here["estimate"] > 0


def test_a_claim_that_is_not_asked_is_never_contradicted_and_counts_in_no_rate():
    condition = (Scope(("cub",), backbone="resnet50"),)
    elsewhere = on("glyphs", "r", smooth_ap=0.6, roadmap=0.5)
    there = on("cub", "resnet50", smooth_ap=0.6, roadmap=0.5)
    here = [verdicts(runs, claim(condition)).loc["c", "here"] for runs in (elsewhere, there)]
    assert [row["verdict"] for row in here] == ["not_asked", "contradicted"]
    both = verdicts(pd.concat([elsewhere, there]), claim(condition)).loc["c", "here"]
    assert both["verdict"] == "contradicted" and both["condition"] == "cub resnet50"
    text = summary_text(verdicts(elsewhere, claim(condition)).reset_index())
    assert "1 not_asked" in text and "luck alone" not in text
