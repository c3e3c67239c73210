"""Which runs belong to a published row."""

from __future__ import annotations

import pandas as pd
import pytest

from benchmark.papers.verdicts.matching import match_published

ROW = {
    "dataset": "sop",
    "loss": "smooth_ap",
    "backbone": "resnet50",
    "embedding_dim": "512",
    "batch_size": 128,
    "condition": "",
    "protocol": "",
}
FACTS = {
    ("sop", setting): {"embedding_dim": 512}
    for setting in ("resnet50", "resnet50~paper", "resnet50~random")
}


def cell(setting="resnet50", loss="smooth_ap", base="smooth_ap", batch_size=128, dataset="sop"):
    return (dataset, setting, loss, base, batch_size)


def find(cells, facts=FACTS, splits=None, **changes):
    splits = {one: {"test"} for one in cells} if splits is None else splits
    return match_published({**ROW, **changes}, cells, splits, facts)


def test_the_cell_with_all_stated_facts_is_found():
    others = [
        cell(batch_size=64),
        cell("resnet18"),
        cell(loss="sup_ap", base="sup_ap"),
        cell(dataset="cub"),
    ]
    match = find([*others, cell()])
    assert match.cell == cell() and match.split == "test"


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ([cell(dataset="cub")], "no run on sop"),
        ([cell(loss="fast_ap", base="fast_ap")], "no run of smooth_ap on sop"),
        ([cell(batch_size=64)], "resnet50, embedding dimension 512, batch size 128"),
        ([cell("resnet101")], "with resnet50"),
        ([cell("resnet50~dim64")], "embedding dimension 512"),
    ],
)
def test_the_reason_names_what_is_missing(cells, words):
    match = find(cells)
    assert match.cell is None and words in match.reason


def test_an_unknown_embedding_dimension_does_not_match_a_stated_one():
    assert find([cell()], facts={}).cell is None
    assert find([cell()], facts={}, embedding_dim="").cell == cell()


def test_a_setting_option_can_state_the_embedding_dimension():
    assert find([cell(), cell("resnet50~dim64")], embedding_dim="64").cell == cell("resnet50~dim64")


def test_facts_can_name_the_backbone_of_a_setting():
    facts = {("sop", "big"): {"backbone": "resnet50", "embedding_dim": 512}}
    assert find([cell("big")], facts=facts).cell == cell("big")


def test_a_condition_needs_an_option_that_meets_it():
    cells = [cell(), cell("resnet50~random")]
    assert find(cells, condition="sampling=random").cell == cell("resnet50~random")
    assert find(cells).cell == cell()
    assert find([cell()], condition="sampling=random").cell is None


def test_a_variant_counts_only_where_the_row_states_its_setting():
    variant = cell(loss="smooth_ap_tau0.1")
    assert find([variant]).cell is None
    assert find([cell(), variant], condition="tau=0.1").cell == variant


def test_the_papers_reading_goes_before_the_authors_code():
    both = [cell("resnet50~authors_code"), cell("resnet50~paper")]
    facts = {("sop", one[1]): {"embedding_dim": 512} for one in both}
    assert find(both, facts=facts).cell == both[1]


def test_facts_that_the_row_leaves_open_do_not_restrict_it():
    assert find([cell()], batch_size=pd.NA, backbone="").cell == cell()


def test_a_row_that_fits_two_cells_is_ambiguous_and_names_them():
    match = find([cell(), cell(batch_size=64)], batch_size=pd.NA)
    assert match.cell is None
    assert "ambiguous" in match.reason and "bs64" in match.reason and "bs128" in match.reason


@pytest.mark.parametrize(
    ("protocol", "splits", "expected"),
    [("small", {"small", "large"}, "small"), ("", {"test"}, "test"), ("", {"gallery"}, "gallery")],
)
def test_the_protocol_names_the_split(protocol, splits, expected):
    assert find([cell()], splits={cell(): splits}, protocol=protocol).split == expected


def test_a_row_without_a_dimension_does_not_take_a_cell_with_one_of_its_own():
    assert find([cell(), cell("resnet50~dim2048")], embedding_dim="").cell == cell()


def test_xbm_is_the_contrastive_loss_with_the_option_of_that_name():
    memory, plain = (
        cell(setting, "contrastive", "contrastive") for setting in ("resnet50~xbm", "resnet50")
    )
    facts = {("sop", one[1]): {"embedding_dim": 512} for one in (memory, plain)}
    assert find([plain, memory], facts=facts, loss="xbm").cell == memory
    assert find([plain, memory], facts=facts, loss="contrastive").cell == plain
    assert find([plain], facts=facts, loss="xbm").cell is None


def test_a_condition_can_be_met_by_what_is_known_of_the_setting():
    facts = {
        ("sop", "resnet50"): {"embedding_dim": 512, "conditions": {"p": "4", "sampling": "hard"}}
    }
    assert find([cell()], facts=facts, condition="p=4;sampling=hard").cell == cell()
    assert find([cell()], facts=facts, condition="p=8").cell is None


def test_implied_facts_count_like_stated_ones():
    cells = [cell(batch_size=96), cell(batch_size=256)]
    assert find(cells, batch_size=pd.NA, implied="batch_size=96").cell == cell(batch_size=96)
    assert find(cells, batch_size=256, implied="batch_size=96").cell == cell(batch_size=256)
    reason = find(cells, batch_size=256, implied="training=landmarks_clean").reason
    assert "training=landmarks_clean" in reason


def test_a_landmark_row_belongs_to_the_set_trained_on_and_names_its_split():
    trained = cell(dataset="sfm120k")
    facts = {
        ("sfm120k", "resnet50"): {"embedding_dim": 512, "evaluates": ("roxford5k", "rparis6k")}
    }
    match = find([trained], facts=facts, dataset="roxford5k", protocol="hard")
    assert match.cell == trained and match.split == "roxford5k_hard"
    assert find([trained], facts=facts, dataset="sop").cell is None


@pytest.mark.parametrize(
    ("protocol", "condition"), [("medium+aqe", ""), ("medium", "expansion=aqe")]
)
def test_expanded_queries_are_another_split_of_the_same_runs(protocol, condition):
    trained = cell(dataset="sfm120k")
    facts = {("sfm120k", "resnet50"): {"embedding_dim": 512, "evaluates": ("roxford5k",)}}
    row = {"dataset": "roxford5k", "facts": facts}
    match = find([trained], protocol=protocol, condition=condition, **row)
    assert match.cell == trained and match.split == "roxford5k_medium+aqe"
    assert find([trained], protocol="medium", **row).split == "roxford5k_medium"
    assert find([trained], protocol="medium", condition="expansion=other", **row).cell is None


def test_an_option_named_like_the_expansion_is_no_plain_run():
    facts = {("sfm120k", "resnet50~aqe"): {"embedding_dim": 512}}
    other = cell("resnet50~aqe", dataset="sfm120k")
    assert find([other], facts=facts, dataset="sfm120k", condition="expansion=aqe").cell is None


def test_timing_runs_serve_rows_that_are_no_scores():
    timing = cell("resnet50~timing")
    facts = {("sop", "resnet50~timing"): {"embedding_dim": 512}}
    assert find([timing], facts=facts, score=False).cell == timing
    assert find([timing], facts=facts, score=True).cell is None
