"""A stand-in's runs take the place of numbers whose data a study could have, and of no others."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_up_candidates import candidate

from benchmark.papers.candidates import candidates
from benchmark.papers.paper import load_papers
from benchmark.papers.printed.cells import stand_in_candidate
from benchmark.study import load_study

HERE = {"dataset": "glyphs_1k", "backbone": "test_resnet", "embedding_dim": 128}
GRID = [candidate(loss=loss, **HERE) for loss in ("softbin_ap", "smooth_ap")]


def numbers(source: str, dataset: str):
    return [
        each
        for paper in load_papers().values()
        for each in paper.numbers
        if (each.source, each.dataset) == (source, dataset) and each.is_score and each.reproducible
    ]


def filled(source: str, dataset: str) -> list:
    found = numbers(source, dataset)
    return [each for each in found if stand_in_candidate(each, "glyphs_1k", GRID) is not None]


@pytest.mark.parametrize(
    ("source", "dataset"),
    [
        ("listwise2019", "roxford5k"),
        ("listwise2019", "rparis_1m"),
        ("smoothap2020", "vggface2"),
        ("smoothap2020", "ijbc"),
    ],
)
def test_numbers_of_datasets_that_a_study_has_are_filled(source, dataset):
    assert filled(source, dataset)


@pytest.mark.parametrize("name", ["fast_ap", "listwise"])
def test_every_number_that_a_stand_in_could_have_is_filled(name):
    study = load_study(f"{name}-on-glyphs_1k")
    grid = list(candidates(study).values())
    asked = [
        each
        for paper in load_papers().values()
        for each in paper.numbers
        if each.source in study.references.published and each.reproducible and each.stand_in
    ]
    assert [each for each in asked if stand_in_candidate(each, "glyphs_1k", grid) is None] == []


def test_numbers_that_no_stand_in_has_stay_without_runs():
    number = filled("listwise2019", "roxford5k")[0]
    assert stand_in_candidate(replace(number, stand_in=False), "glyphs_1k", GRID) is None


def test_transformers_fill_the_numbers_of_transformers():
    facts = {"loss": "roadmap", "dataset": "glyphs_1k", "embedding_dim": None}
    small = candidate("a", backbone="test_vit", **facts)
    grid = [candidate("b", backbone="test_resnet", **facts), small]
    rows = [
        each
        for each in load_papers()["roadmap2021"].table("table7")
        if each.loss == "roadmap" and each.batch_size == 384
    ]
    assert {stand_in_candidate(each, "glyphs_1k", grid).cell for each in rows} == {small.cell}


def test_a_condition_is_given_up_only_where_the_stand_in_cannot_vary_it():
    sampler = ("recipe.sampler.name",)
    facts = {"loss": "fast_ap", "batch_size": 96, **HERE}
    hard = candidate("r", recipe__sampler__name="category_pairs", **facts)
    random = candidate("r~x", recipe__sampler__name="random", by_option=sampler, **facts)
    row = next(
        each
        for each in load_papers()["fastap2019"].table("table5")
        if each.backbone == "resnet50" and each.conditions["sampling"] == "random"
    )
    assert stand_in_candidate(row, "glyphs_1k", [hard, random]) == random
    assert stand_in_candidate(row, "glyphs_1k", [hard]) == hard
