from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping

import numpy as np
import pytest
from made_up_results import grid_of, made_up_runs, made_up_study, run_table
from typer.testing import CliRunner

from benchmark.core.errors import ConfigError
from benchmark.published.loading import load_papers
from benchmark.stats.samples import Samples
from benchmark.verdicts.explain import explain, find_verdicts, key_of
from benchmark.verdicts.frozen import freeze, load_frozen
from benchmark.verdicts.judging import judged, pairs_of_frozen, pairs_of_numbers
from benchmark.verdicts.pairs import typed
from benchmark.verdicts.verdicts import VERDICT

STUDY = made_up_study(losses=("smooth_ap", "sup_ap"), batch_sizes=(32, 128), seeds=(0, 1, 2))
RUNS = made_up_runs(STUDY)
TABLE = run_table(RUNS)
SAMPLES = Samples(TABLE)


def published(**changes):
    """Return one printed table beside our runs, as if it were about the made-up study."""
    facts = {"dataset": "glyphs_1k", "backbone": "", "embedding_dim": "", "batch_size": 32}
    numbers = [
        dataclasses.replace(each, **{**facts, **changes})
        for each in load_papers().asked(["roadmap2021v2/table3"])
        if each.dataset == "cub"
    ]
    return pairs_of_numbers(numbers, SAMPLES, grid_of(RUNS).candidates)


@pytest.fixture(scope="module")
def sides():
    return published() + pairs_of_frozen(made_up_frozen(), SAMPLES)


@pytest.fixture(scope="module")
def verdicts(sides):
    return judged(sides)


def explained(verdicts, words, sides):
    """Return the first verdict that the words find, and its explanation."""
    row = find_verdicts(verdicts, words).iloc[0]
    return row, explain(verdicts, row.name, sides, TABLE)


def made_up_frozen(seeds=(0, 1, 2)) -> Mapping:
    """Return frozen runs that differ from the made-up ones by 0.4 or -0.3 points."""
    frozen = {}
    for cell in TABLE.statuses():
        for metric in STUDY.metrics:
            now = SAMPLES.sample(cell, "test", metric)
            then = {seed: now.by_seed[seed] + (0.4 if seed == 0 else -0.3) for seed in seeds}
            frozen[cell, "test", metric] = dataclasses.replace(now, by_seed=then)
    return frozen


def numbers(text: str, pattern: str) -> list[float]:
    found = re.search(pattern, text)
    assert found, text
    return [float(value) for value in found.groups()]


def test_every_number_of_a_verdict_is_in_its_explanation(verdicts, sides):
    row, text = explained(verdicts, "roadmap2021v2/smooth_ap/recall_at_1", sides)
    values = RUNS[
        (RUNS["loss"] == "smooth_ap")
        & (RUNS["batch_size"] == 32)
        & (RUNS["metric"] == "recall_at_1")
    ]
    for value in values.loc[values["selection"] == "last", "value"]:
        assert f"{100 * value:.3f}" in text
    assert numbers(text, r"D = ours - reference = ([+-][\d.]+)") == [
        pytest.approx(row["difference"], abs=5e-4)
    ]
    se, df = numbers(text, r"se = sqrt\(v \(1/n \+ 1/m\)\) = ([\d.]+), df of v = ([\d.]+) degrees")
    assert se == pytest.approx(row["se"], abs=5e-4)
    assert df == pytest.approx(row["df"], rel=0.01)
    sd, lent, borrowed, together = numbers(
        text,
        r"own: sd ([\d.]+) with 2 .*\n.*cells: sd ([\d.]+), of which ([\d.]+) .*\n.*= ([\d.]+)²",
    )
    by_hand = (2 * sd**2 + borrowed * lent**2) / (2 + borrowed)
    assert together**2 == pytest.approx(by_hand, rel=0.02)
    assert df == pytest.approx(2 + borrowed)
    assert "7. The plain test" in text
    assert "with 2 degrees of freedom: test of step 4: p = " in text
    assert "8. Does the verdict stand" in text
    assert "the published spread is twice what was assumed: " in text
    ones = [
        numbers(text, rf"{side} [+-]1: t = .* = [-\d.]+, p = ([\d.e-]+)")[0]
        for side in ("above", "below")
    ]
    assert max(ones) == pytest.approx(row["p_equivalence"], rel=0.01)
    assert numbers(text, r"p after Holm = ([\d.e-]+)") == [pytest.approx(row["p_holm"], rel=0.01)]
    assert row["reason"] in text
    assert "no number of runs stated: m = 1" in text
    assert "rounded to ±0.05" in text


def test_frozen_runs_with_the_same_seeds_are_explained_as_pairs(verdicts, sides):
    row, text = explained(verdicts, "frozen/sup_ap/bs128/map", sides)
    differences = -100 * np.array([0.004, -0.003, -0.003])
    pairs = re.findall(r"seed \d: ([\d.]+) - ([\d.]+) = ([+-][\d.]+)", text)
    assert [float(pair[2]) for pair in pairs] == pytest.approx(differences, abs=5e-4)
    assert all(
        float(ours) - float(then) == pytest.approx(float(gap), abs=2e-3)
        for ours, then, gap in pairs
    )
    assert numbers(text, r"k = (\d) pairs") == [row["paired_n"]]
    assert numbers(text, r"own: sd ([\d.]+)") == [pytest.approx(differences.std(ddof=1), abs=5e-4)]
    assert row["difference"] == pytest.approx(differences.mean())
    se, df = numbers(text, r"se = sqrt\(w / k\) = ([\d.]+), df of w = ([\d.]+) degrees")
    # All cells differ by the same, so that the shared spread is the cell's own.
    assert se == pytest.approx(differences.std(ddof=1) / np.sqrt(3), abs=5e-4)
    assert se == pytest.approx(row["se"], abs=5e-4)
    assert df == pytest.approx(row["df"], rel=0.01)
    assert row["reason"] in text
    assert "paired by 3 seeds" in text
    assert "best of three runs: does not apply" in text
    shown = text.split("2. The reference")[1].split("3. Diff")[0]
    assert "frozen earlier" in shown
    assert [f"seed {seed}: " in shown for seed in range(3)] == [True] * 3


def test_frozen_runs_of_other_seeds_are_explained_as_two_groups():
    frozen = {
        key: dataclasses.replace(then, by_seed={seed + 7: at for seed, at in then.by_seed.items()})
        for key, then in made_up_frozen((0, 1)).items()
    }
    sides = pairs_of_frozen(frozen, SAMPLES)
    row, text = explained(judged(sides), "frozen/sup_ap/bs128/map", sides)
    assert "two groups, not pairs: our seeds are 0, 1, 2, the frozen ones 7, 8" in text
    assert numbers(text, r"se = sqrt\(v / n \+ r / m\) = ([\d.]+)") == [
        pytest.approx(row["se"], abs=5e-4)
    ]


def test_a_number_that_was_not_run_says_so_and_computes_nothing():
    other = published(loss="fast_ap")
    text = explain(judged(other), 0, other, TABLE)
    assert "none: no run of fast_ap" in text
    assert "not run" in text
    assert "se =" not in text


def test_a_verdict_is_found_by_any_words_of_its_row_and_its_own_key(verdicts):
    assert len(find_verdicts(verdicts, "R@1/SmoothAP/roadmap2021v2")) == 1
    assert len(find_verdicts(verdicts, "frozen/smooth*/bs32/map_at_r")) == 1
    for row in verdicts.itertuples():
        assert find_verdicts(verdicts, key_of(row)).index == [row.Index]


def test_a_word_that_fits_nothing_is_met_with_near_ones(verdicts):
    with pytest.raises(ConfigError, match=r"'smoth_ap' is in no verdict; near: .*smooth_ap"):
        find_verdicts(verdicts, "glyphs_1k/smoth_ap")
    with pytest.raises(ConfigError, match="no verdict has all words"):
        find_verdicts(verdicts, "roadmap2021v2/bs128")


def test_explain_verb_prints_one_verdict_lists_several_and_explains_claims(tmp_path, monkeypatch):
    import benchmark.study
    from benchmark.__main__ import app

    frozen = tmp_path / "frozen.csv"
    freeze(TABLE, frozen, metrics=["recall_at_1", "map"])
    references = dataclasses.replace(STUDY.references, frozen=str(frozen))
    study = dataclasses.replace(STUDY, references=references)
    monkeypatch.setattr(benchmark.study, "load_study", lambda name, results=None: study)
    TABLE.write(study.folder(tmp_path))

    def run(cell):
        return CliRunner().invoke(app, ["explain", cell, "--results", str(tmp_path)])

    same = run("frozen/smooth_ap/bs32/recall_at_1").output
    assert same.count("Verdict:") == 1
    assert "identical under 3 common seeds" in same
    assert same.count("= +0.000") == 4, "three pairs and D"
    several = run("recall_at_1")
    assert several.exit_code == 2
    assert "verdicts fit 'recall_at_1'" in several.output
    claim = run("sup_ap_beats_smooth_ap").output
    assert "SupAP is better than SmoothAP" in claim
    assert "p after" not in claim
    assert claim.count("verdict:") == 2
    assert "; claimed: above 0; " in claim
    assert re.search(r"test of the claim: p = [\d.e-]+; of its opposite: p = [\d.e-]+\n", claim)
    assert "glyphs_1k resnet10t batch 32 R@1: sup_ap - smooth_ap" in claim
    near = run("sup_ap_beats_smoothap").exception
    assert isinstance(near, ConfigError)
    assert "near: sup_ap_beats_smooth_ap" in str(near)


def test_a_study_without_references_has_nothing_to_explain():
    with pytest.raises(ConfigError, match="names no references"):
        find_verdicts(typed({}, VERDICT), "glyphs_1k/sup_ap")


def test_frozen_runs_on_disk_are_explained_like_those_in_memory(tmp_path):
    freeze(TABLE, tmp_path / "frozen.csv")
    sides = pairs_of_frozen(load_frozen(tmp_path / "frozen.csv"), SAMPLES)
    assert "code version 1.0+abc1234" in explain(judged(sides), 0, sides, TABLE)
