"""Every analysis leaves the files that pages read; networks are made up, nothing is trained."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from benchmark.__main__ import app
from benchmark.analyses import ANALYSES, analysis, decomposability_gap
from benchmark.analyses.analysis import Analysis, Context, Recording, doubled, make
from benchmark.core.errors import ConfigError
from benchmark.published.quantities import gap_decreases
from benchmark.report.drawing import new_figure
from benchmark.study import load_study
from benchmark.study.grid import expand
from benchmark.verdicts.verdicts import CLAIM_VERDICTS

KEYS = {
    "schema",
    "name",
    "title",
    "places",
    "caption",
    "alt",
    "table_caption",
    "table_notes",
    "sentences",
    "claims",
    "code_version",
    "platform",
    "study",
    "quick",
    "seeds",
    "runs",
}


def clusters(rng, classes, each, spread):
    centers = np.repeat(rng.normal(size=(classes, 16)), each, axis=0)
    rows = centers + spread * rng.normal(size=centers.shape)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    labels = np.repeat(np.arange(classes), each)
    return rows.astype(np.float32), labels


def made_up(spec, folder, say):
    """Stand for a training: clusters, tighter for ROADMAP, so that the gap decreases."""
    rng = np.random.default_rng(spec.seed)
    spread = 0.35 if spec.loss.name == "roadmap" else 0.7
    steps = [clusters(rng, spec.batch_size // 4, 4, spread) for _ in range(3)]
    query, labels = clusters(rng, 24, 8, spread)
    return Recording(
        np.concatenate([rows for rows, _ in steps]),
        np.concatenate([labels for _, labels in steps]),
        np.full(3, spec.batch_size),
        query,
        labels,
        np.zeros((0, 16), np.float32),
        np.zeros(0, np.int64),
    )


@pytest.fixture
def smoke(tmp_path, monkeypatch):
    monkeypatch.setattr(analysis, "recorded", made_up)
    monkeypatch.setattr(decomposability_gap, "QUERIES", 40)
    return Context(load_study("smoke"), tmp_path, quick=True, say=lambda line: None)


@pytest.mark.parametrize("name", ANALYSES.names())
def test_an_analysis_leaves_figure_table_and_summary(name, smoke, tmp_path):
    make(name, smoke, tmp_path / name)
    summary = json.loads((tmp_path / name / "summary.json").read_text())
    assert set(summary) == KEYS
    assert summary["name"] == name
    assert summary["claims"]
    assert summary["places"]
    for claim in summary["claims"]:
        assert claim["verdict"] in CLAIM_VERDICTS
        assert claim["sentence"] in summary["sentences"]
    names = [claim["name"] for claim in summary["claims"]]
    assert len(set(names)) == len(names)
    assert len(pd.read_csv(tmp_path / name / "table.csv"))
    assert len(pd.read_csv(tmp_path / name / "figure.csv"))
    assert "<svg" in (tmp_path / name / "figure.svg").read_text()
    untrained = ("toy_ranking", "surrogates", "worked_examples", "complexity")
    trains = name not in (*untrained, "batch_composition")
    assert bool(summary["runs"]) == trains
    assert summary["seeds"] == ([0] if trains else [])


def test_the_decreases_that_tables_read_are_those_that_the_analysis_states(smoke, tmp_path):
    results = smoke.study.folder(tmp_path)
    folder = results / "analyses" / "decomposability_gap"
    several = Context(smoke.study, tmp_path, (0, 1), quick=True)
    summary = make("decomposability_gap", several, folder)
    assert gap_decreases(results) == [], "a quick trial means nothing"
    replace(summary, quick=False).write(folder)
    found = gap_decreases(results)
    assert {each.dataset for each in found} == {"glyphs_tiny"}
    assert sorted({each.batch_size for each in found}) == [16, 32]
    at_32 = [each for each in found if each.batch_size == 32]
    assert [each.seed for each in at_32] == [0, 1]
    (claim,) = (claim for claim in summary.claims if claim.name == "decrease_at_32")
    mean = np.mean([each.decrease for each in at_32])
    assert f"a relative decrease in percent of {mean:+.1f}" in claim.found


def test_equal_inputs_give_equal_files(smoke, tmp_path):
    for place in ("one", "two"):
        make("operating_region", smoke, tmp_path / place)
    for file in ("figure.svg", "figure.csv", "table.csv", "summary.json"):
        one = tmp_path / "one" / file
        two = tmp_path / "two" / file
        assert one.read_bytes() == two.read_bytes()


def test_a_clear_decrease_over_several_seeds_is_supported_and_over_one_seed_undecided(
    smoke, tmp_path
):
    several = Context(smoke.study, tmp_path, (0, 1, 2), quick=True)
    for seen, verdict in ((several, "supported"), (smoke, "inconclusive")):
        summary = make("decomposability_gap", seen, tmp_path / verdict)
        verdicts = {claim.name: claim.verdict for claim in summary.claims}
        assert verdicts["decrease_at_32"] == verdict


def test_an_analysis_of_a_plugin_brings_its_own_words(smoke, tmp_path, monkeypatch):
    words = {
        "caption": "Of {n}.",
        "alt": "A line.",
        "table": "Numbers.",
        "claims": {"one_{n}": ["Fig. 1", "it is {n}", "It is {n}."]},
    }
    figure, _ = new_figure(1.0, 1.0)
    data = pd.DataFrame({"x": [1.0]})
    rows = [("", ["a", -0.0])]
    claims = {"one_{n}": [(None, {"n": 2})]}
    made = Analysis(figure, data, ["word", "number"], rows, {"n": 1}, claims, words=words)
    ANALYSES.names()
    monkeypatch.setitem(ANALYSES._entries, "mine", None)
    ANALYSES.register("mine", display="Mine")(lambda context: made)
    summary = make("mine", smoke, tmp_path)
    assert summary.title == "Mine"
    assert summary.caption == "Of 1."
    (claim,) = summary.claims
    assert claim.name == "one_2"
    assert claim.says == "it is 2"
    assert claim.verdict == "inconclusive"
    table = (tmp_path / "table.csv").read_text().splitlines()
    assert table[1] == "a,0"


def test_the_run_of_a_study_is_the_one_that_is_trained():
    study = load_study("smoke")
    seen = Context(study, "results")
    run = expand(study)["glyphs_tiny/test_resnet_smoke/roadmap/bs32/seed1"]
    assert seen.spec("roadmap", 32, 1).digest == run.digest
    assert seen.seeds == (0, 1)


def test_another_dataset_of_the_study_brings_the_recipe_of_its_first_block():
    study = load_study("roadmap")
    runs = expand(study)
    for label in ("cub", "sop", "inaturalist"):
        seen = Context(study, "results", dataset=None if label == "cub" else label)
        assert seen.spec("sup_ap", 64, 0).dataset.label == label
        assert seen.block.batch_sizes == (64,)
        for loss in ("smooth_ap", "sup_ap", "roadmap", "fast_ap"):
            run = runs[f"{label}/resnet50/{loss}/bs64/seed0"]
            assert seen.spec(loss, 64, 0).digest == run.digest
    params = seen.spec("sup_ap", 64, 0).loss.params
    assert params["offset"] == 1.0, "the recipe of iNaturalist sets it"
    assert params["start"] == 0.0, "the recipe of iNaturalist sets it"
    with pytest.raises(ConfigError, match="did you mean 'sop'"):
        Context(study, "results", dataset="sap")


def test_batch_sizes_double_up_to_twice_the_largest():
    assert doubled((32, 128)) == [32, 64, 128, 256]


def test_the_list_names_every_analysis_and_what_it_follows():
    done = CliRunner().invoke(app, ["analyse", "--list"])
    assert done.exit_code == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == ANALYSES.names()
    assert "Smooth-AP Fig. 4" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "NAME is missing"),
        (["toy_rankin"], "did you mean 'toy_ranking'"),
    ],
)
def test_a_missing_or_wrong_name_says_what_is_allowed(arguments, words):
    done = CliRunner().invoke(app, ["analyse", *arguments])
    assert isinstance(done.exception, ConfigError)
    assert words in str(done.exception)


def test_the_verb_prints_sentences_and_datasets_lie_side_by_side(tmp_path):
    arguments = ["analyse", "toy_ranking", "smoke", "--quick", "--results", str(tmp_path)]
    for dataset, name in ((None, "toy_ranking"), ("glyphs_tiny", "toy_ranking-glyphs_tiny")):
        more = ["--dataset", dataset] if dataset else []
        done = CliRunner().invoke(app, [*arguments, *more])
        assert done.exit_code == 0, done.output
        assert "This agrees with the paper." in done.stdout
        assert (tmp_path / "smoke" / "analyses-quick" / name / "summary.json").is_file()


def test_another_value_of_a_hyperparameter_is_another_training(smoke):
    plain = smoke.spec("smooth_ap", 16, 0)
    same = smoke.spec("smooth_ap", 16, 0, tau=0.01)
    other = smoke.spec("smooth_ap", 16, 0, tau=0.1)
    assert plain.digest == same.digest
    assert plain.digest != other.digest
    assert plain.run_id != other.run_id
    assert other.loss.params == {**plain.loss.params, "tau": 0.1}
