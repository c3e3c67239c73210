"""A memory or an evaluation that cannot work is found when the study is read."""

from __future__ import annotations

import pytest

from benchmark.core.errors import ConfigError
from benchmark.study import load_study


@pytest.fixture
def problem_of(write_study):
    """Returns a function that loads a study with one problem and returns it."""

    def problem(study) -> str:
        with pytest.raises(ConfigError) as caught:
            load_study(write_study(study))
        (found,) = caught.value.problems
        return str(found)

    return problem


def test_loss_without_references_is_refused(study_data, problem_of):
    block = study_data["blocks"][0]
    block |= {"option": "xbm", "override": {"memory": {"size": -1}}}
    block["losses"] = [*block["losses"], "proxy_nca"]
    problem = problem_of(study_data)
    assert problem.startswith("blocks.0.losses (line ")
    assert "'proxy_nca' takes no references" in problem


def test_library_class_without_references_is_refused_by_its_variant(study_data, problem_of):
    block = study_data["blocks"][0]
    block |= {"option": "xbm", "override": {"memory": {"size": -1}}}
    block["losses"] = [*block["losses"], "angle", "pairs"]
    study_data["losses"] = study_data.get("losses", {}) | {
        "angle": {"loss": "pml", "class": "ArcFaceLoss"},
        "pairs": {"loss": "pml", "class": "ContrastiveLoss"},
    }
    assert "'pml' takes no references" in problem_of(study_data)


def test_losses_with_references_take_a_memory(study_data, write_study):
    study_data["blocks"][0] |= {
        "option": "xbm",
        "override": {"memory": {"size": 60000, "key": "fifo"}},
    }
    assert load_study(write_study(study_data)).blocks[0].recipe.memory.size == 60000


@pytest.mark.parametrize(
    ("memory", "words"),
    [
        ({"size": 0}, "memory.size (line 0 remembers nothing"),
        ({"size": -2}, "memory.size (line Input should be greater than or equal to -1, not -2"),
        (
            {"size": 9, "start_epoch": 1000},
            "memory.start_epoch (line 1000 is not before the end of the training",
        ),
        (
            {"size": 9, "key": "class"},
            "memory.key (line unknown key 'class'; known: fifo, image",
        ),
    ],
)
def test_memory_that_would_do_nothing_is_refused(memory, words, study_data, problem_of):
    study_data["blocks"][0] |= {"option": "xbm", "override": {"memory": memory}}
    place, message = words.split(" (line ")
    problem = problem_of(study_data)
    assert f"override.{place} (line " in problem
    assert message in problem


def test_query_expansion_names_the_key_that_is_wrong(study_data, problem_of):
    override = {"evaluation": {"query_expansion": {"alpha": 2.0, "k": 0}}}
    study_data["blocks"][0] |= {"option": "expanded", "override": override}
    problem = problem_of(study_data)
    assert "override.evaluation.query_expansion.k (line " in problem
    assert "greater than or equal to 1" in problem


def test_whitening_keeps_no_more_dimensions_than_the_head_gives(
    study_data, recipe_data, problem_of, write_study
):
    recipe_data["model"]["embedding_dim"] = 32
    study_data["blocks"][0] |= {"option": "white", "override": {"evaluation": {"whitening": 33}}}
    problem = problem_of(study_data)
    assert "override.evaluation.whitening (line " in problem
    assert "33 dimensions are more than the 32 of model.embedding_dim" in problem
    study_data["blocks"][0]["override"] = {"evaluation": {"whitening": 32}}
    assert load_study(write_study(study_data)).blocks[0].recipe.evaluation.whitening == 32


def test_whitening_of_a_network_without_a_head_is_left_to_training(study_data, write_study):
    study_data["blocks"][0] |= {"option": "white", "override": {"evaluation": {"whitening": 4096}}}
    assert load_study(write_study(study_data)).blocks[0].recipe.model.embedding_dim is None
