"""Which runs belong to a published number: data are compared, never names."""

from __future__ import annotations

import pytest
from made_up_results import candidate

from benchmark.published.vocabulary import load_vocabulary
from benchmark.verdicts.matching import Stated, match

DIM = "recipe.model.embedding_dim"
SAMPLER = ("recipe.sampler.name",)
HARD = {"recipe__sampler__name": "category_pairs"}
RANDOM = {"recipe__sampler__name": "m_per_class"}
MEMORY = {"by_option": ("recipe.memory.size", "recipe.memory.key"), "recipe__memory__size": -1}


def find(candidates, splits=None, *, embedding_dim="512", conditions=None, **changes):
    conditions = dict(conditions or {})
    if embedding_dim:
        conditions["embedding_dim"] = embedding_dim
    stated = {
        "dataset": "sop",
        "loss": "smooth_ap",
        "backbone": "resnet50",
        "batch_size": 128,
        "requirements": load_vocabulary().requirements(conditions),
    }
    if splits is None:
        splits = {each.cell: {"test"} for each in candidates}
    return match(Stated(**{**stated, **changes}), candidates, splits)


def test_the_cell_with_all_stated_facts_is_found():
    plain = candidate()
    others = [
        candidate(batch_size=64),
        candidate("resnet18"),
        candidate(loss="sup_ap"),
        candidate(dataset="cub"),
    ]
    found = find([*others, plain])
    assert found.candidate == plain
    assert found.split == "test"


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ([candidate(dataset="cub")], "no run on sop"),
        ([candidate(loss="fast_ap")], "no run of smooth_ap on sop"),
        ([candidate(batch_size=64)], "resnet50, batch size 128, embedding dimension 512"),
        ([candidate("resnet101")], "with resnet50"),
        ([candidate(embedding_dim=64)], "embedding dimension 512"),
    ],
)
def test_the_reason_names_what_is_missing(cells, words):
    found = find(cells)
    assert found.candidate is None
    assert words in found.reason


def test_an_unknown_embedding_dimension_does_not_match_a_stated_one():
    headless = candidate(embedding_dim=None)
    assert find([headless]).candidate is None
    assert find([headless], embedding_dim="").candidate == headless


def test_an_option_can_change_the_embedding_dimension_whatever_its_name():
    small = candidate("resnet50~mine", embedding_dim=64, by_option=(DIM,))
    assert find([candidate(), small], embedding_dim="64").candidate == small
    misnamed = candidate("resnet50~dim64", by_option=("recipe.model.pooling",))
    assert find([misnamed], embedding_dim="64").candidate is None


def test_the_backbone_is_that_of_the_recipe_and_not_the_label_s():
    big = candidate("big", backbone="resnet50")
    assert find([big, candidate("resnet50", backbone="resnet18")]).candidate == big


def test_a_condition_is_met_by_settings_and_accounts_for_their_change():
    plain = candidate(**HARD)
    random = candidate("resnet50~r", by_option=SAMPLER, **RANDOM)
    assert find([plain, random], conditions={"sampling": "random"}).candidate == random
    assert find([plain, random], conditions={"sampling": "hard"}).candidate == plain
    assert find([plain, random]).candidate == plain
    assert find([plain], conditions={"sampling": "random"}).candidate is None


def test_a_variant_counts_only_where_its_hyperparameter_is_stated():
    plain = candidate(loss__tau=0.01)
    variant = candidate(loss="mine", base_loss="smooth_ap", loss__tau=0.1, by_variant=("loss.tau",))
    assert find([variant]).candidate is None
    assert find([plain, variant], conditions={"tau": "0.1"}).candidate == variant
    assert find([plain, variant], conditions={"tau": "0.01"}).candidate == plain
    assert find([variant], conditions={"tau": "0.10"}).candidate == variant, "numbers are numbers"


def test_a_hyperparameter_may_change_together_with_the_stated_one():
    changed = ("loss.lambda_", "loss.weights")
    variant = candidate(loss="roadmap", loss__lambda_=0.2, by_variant=changed)
    assert find([variant], loss="roadmap", conditions={"lambda": "0.2"}).candidate == variant
    both = candidate(loss="roadmap", loss__lambda_=0.2, by_variant=(*changed, "loss.rho"))
    assert find([both], loss="roadmap", conditions={"lambda": "0.2"}).candidate is None


def test_the_papers_reading_goes_after_plain_runs_and_before_the_authors_code():
    crop = ("recipe.input.crop_area",)
    code = candidate("resnet50~authors_code", by_option=crop, loss__tau=0.1)
    paper = candidate("resnet50~paper", by_option=crop, loss__tau=0.2)
    assert find([code, paper]).candidate == paper
    assert find([code, paper, candidate()]).candidate == candidate()


def test_facts_that_are_left_open_do_not_restrict():
    assert find([candidate()], batch_size=None, backbone="").candidate == candidate()


def test_a_number_that_fits_two_cells_is_ambiguous_and_names_them():
    found = find([candidate(), candidate(batch_size=64)], batch_size=None)
    assert found.candidate is None
    assert "ambiguous" in found.reason
    assert "bs64" in found.reason
    assert "bs128" in found.reason


def test_cells_that_differ_in_their_name_alone_are_the_same_runs():
    plain = candidate(**RANDOM)
    named = candidate("resnet50~random", by_option=SAMPLER, **RANDOM)
    assert find([plain, named], conditions={"sampling": "random"}).candidate == named


@pytest.mark.parametrize(
    ("protocol", "splits", "expected"),
    [
        ("small", {"small", "large"}, "small"),
        ("", {"test"}, "test"),
        ("", {"gallery"}, "gallery"),
    ],
)
def test_the_protocol_names_the_split(protocol, splits, expected):
    plain = candidate()
    assert find([plain], splits={plain.cell: splits}, protocol=protocol).split == expected


def test_a_number_without_a_dimension_does_not_take_a_cell_with_one_of_its_own():
    large = candidate("resnet50~large", embedding_dim=2048, by_option=(DIM,))
    assert find([candidate(), large], embedding_dim="").candidate == candidate()


def test_a_memory_is_told_by_its_size():
    memory = candidate("resnet50~any_name", "contrastive", **MEMORY)
    plain = candidate("resnet50", "contrastive", recipe__memory__size=None)
    asked = {"loss": "contrastive", "conditions": {"memory": "xbm"}}
    assert find([plain, memory], **asked).candidate == memory
    assert find([plain, memory], loss="contrastive").candidate == plain
    assert find([plain], **asked).candidate is None


def test_images_of_a_class_are_those_of_the_sampler():
    four = candidate(recipe__sampler__samples_per_class=4, **HARD)
    assert find([four], conditions={"p": "4", "sampling": "hard"}).candidate == four
    assert find([four], conditions={"p": "8"}).candidate is None


def test_a_setup_is_an_option_by_name_and_covers_only_what_it_stands_for():
    changed = ("recipe.input.image_size", "recipe.model.pooling")
    sota = candidate("resnet50~sota", by_option=changed)
    assert find([candidate(), sota], conditions={"setup": "sota"}).candidate == sota
    both = candidate("resnet50~sota~long", by_option=(*changed, "recipe.training.epochs"))
    assert find([both], conditions={"setup": "sota"}).candidate is None


def test_the_reason_names_conditions():
    reason = find([candidate()], conditions={"training": "landmarks_clean"}).reason
    assert "training=landmarks_clean" in reason


def test_a_landmark_number_belongs_to_the_set_trained_on_and_names_its_split():
    trained = candidate(dataset="sfm120k", evaluated_on=("roxford5k", "rparis6k"))
    found = find([trained], dataset="roxford5k", protocol="hard")
    assert found.candidate == trained
    assert found.split == "roxford5k_hard"
    assert find([trained], dataset="sop").candidate is None


@pytest.mark.parametrize(
    ("protocol", "conditions"),
    [
        ("medium+aqe", {}),
        ("medium", {"expansion": "aqe"}),
    ],
)
def test_expanded_queries_are_another_split_of_the_same_runs(protocol, conditions):
    trained = candidate(dataset="sfm120k", evaluated_on=("roxford5k",))
    found = find([trained], dataset="roxford5k", protocol=protocol, conditions=conditions)
    assert found.candidate == trained
    assert found.split == "roxford5k_medium+aqe"
    plain = find([trained], dataset="roxford5k", protocol="medium")
    assert plain.split == "roxford5k_medium"
    unknown = {"protocol": "medium", "conditions": {"expansion": "other"}}
    assert find([trained], dataset="roxford5k", **unknown).candidate is None


def test_settings_that_do_not_matter_may_differ():
    timing = candidate("resnet50~timing", by_option=("recipe.training.epochs",))
    assert find([timing], free=("recipe.training.epochs",)).candidate == timing
    assert find([timing]).candidate is None
