from __future__ import annotations

import dataclasses
import re

import numpy as np
import pandas as pd
import pytest
from made_up_inputs import made_up_inputs, write_inputs
from made_up_results import made_up_runs, made_up_study
from typer.testing import CliRunner

from benchmark.core.errors import ConfigError
from benchmark.papers.references import freeze, load_frozen, load_margins
from benchmark.papers.references.published import asked_results
from benchmark.papers.verdicts import References, judge
from benchmark.papers.verdicts.explain import explain
from benchmark.papers.verdicts.search import find_verdicts, key_of

STUDY = made_up_study(losses=("smooth_ap", "sup_ap"), batch_sizes=(32, 128), seeds=(0, 1, 2))
RUNS = made_up_runs(STUDY)


def published(**changes) -> pd.DataFrame:
    """Returns the rows of one printed table as if they were about the made-up study."""
    rows = asked_results(("roadmap2021v2/table3",))
    rows = rows[rows["dataset"] == "cub"].assign(
        dataset="glyphs_1k", backbone="", embedding_dim="", condition=""
    )
    return rows.assign(batch_size=32, implied="", **changes)


@pytest.fixture(scope="module")
def verdicts() -> pd.DataFrame:
    return judge(RUNS, References(published(), made_up_frozen()), load_margins())


def made_up_frozen() -> pd.DataFrame:
    frozen = RUNS[(RUNS["selection"] == "last") & (RUNS["split"] == "test")].copy()
    frozen["value"] = frozen["value"] + np.where(frozen["seed"] == 0, 0.004, -0.003)
    return frozen


def numbers(text: str, pattern: str) -> list[float]:
    found = re.search(pattern, text)
    assert found, text
    return [float(value) for value in found.groups()]


def test_every_number_of_a_verdict_is_in_its_explanation(verdicts):
    row = find_verdicts(verdicts, "roadmap2021v2/smooth_ap/recall_at_1")[0]
    text = explain(row, verdicts, RUNS)
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
    se, df = numbers(text, r"se = sqrt\(s² \(1/n \+ 1/m\)\) = ([\d.]+), (\d+) degrees")
    assert se == pytest.approx(row["se"], abs=5e-4) and df == row["df"] == 2
    ones = [
        numbers(text, rf"{side} [+-]1: t = .* = [-\d.]+, p = ([\d.e-]+)")[0]
        for side in ("above", "below")
    ]
    assert max(ones) == pytest.approx(row["p_equivalence"], rel=0.01)
    assert numbers(text, r"p after Holm = ([\d.e-]+)") == [pytest.approx(row["p_holm"], rel=0.01)]
    assert (
        row["reason"] in text
        and "no number of runs stated: m = 1" in text
        and "rounded to ±0.05" in text
    )


def test_frozen_runs_with_the_same_seeds_are_explained_as_pairs(verdicts):
    row = find_verdicts(verdicts, "frozen/sup_ap/bs128/map")[0]
    text = explain(row, verdicts, RUNS, made_up_frozen())
    differences = -100 * np.array([0.004, -0.003, -0.003])
    pairs = re.findall(r"seed \d: ([\d.]+) - ([\d.]+) = ([+-][\d.]+)", text)
    assert [float(pair[2]) for pair in pairs] == pytest.approx(differences, abs=5e-4)
    assert all(
        float(ours) - float(then) == pytest.approx(float(gap), abs=2e-3)
        for ours, then, gap in pairs
    )
    mean, sd, count = numbers(text, r"mean ([+-][\d.]+), sd d = ([\d.]+), n = (\d) pairs")
    assert (mean, sd, count) == pytest.approx(
        (row["difference"], differences.std(ddof=1), row["paired_n"]), abs=5e-4
    )
    se, df = numbers(text, r"se = sqrt\(d² / n\) = ([\d.]+), (\d) degrees")
    assert se == pytest.approx(row["se"], abs=5e-4) and se == pytest.approx(
        sd / np.sqrt(3), abs=5e-4
    )
    assert df == row["df"] == 2 and row["reason"] in text and "paired by 3 seeds" in text
    shown = text.split("2. The reference")[1].split("3. Diff")[0]
    assert (
        "frozen earlier" in shown and [f"seed {seed}: " in shown for seed in range(3)] == [True] * 3
    )


def test_frozen_runs_of_other_seeds_are_explained_as_two_groups():
    fewer = made_up_frozen().query("seed < 2")
    table = judge(RUNS, References(None, fewer), load_margins())
    row = find_verdicts(table, "frozen/sup_ap/bs128/map")[0]
    text = explain(row, table, RUNS, fewer)
    assert "two groups, not pairs: our seeds are 0, 1, 2, the frozen ones 0, 1" in text
    assert numbers(text, r"se = sqrt\(s² / n \+ r² / m\) = ([\d.]+)") == [
        pytest.approx(row["se"], abs=5e-4)
    ]


def test_a_number_that_was_not_run_says_so_and_computes_nothing(verdicts):
    other = judge(RUNS, References(published(loss="fast_ap"), None), load_margins())
    text = explain(other.to_dict("records")[0], other, RUNS)
    assert "none: no run of fast_ap" in text and "not run" in text and "se =" not in text


def test_a_verdict_is_found_by_any_words_of_its_row_and_its_own_key(verdicts):
    assert len(find_verdicts(verdicts, "R@1/SmoothAP/roadmap2021v2")) == 1
    assert len(find_verdicts(verdicts, "frozen/smooth*/bs32/map_at_r")) == 1
    for row in verdicts.to_dict("records"):
        assert [key_of(each) for each in find_verdicts(verdicts, key_of(row))] == [key_of(row)]


def test_a_word_that_fits_nothing_is_met_with_near_ones(verdicts):
    with pytest.raises(ConfigError, match=r"'smoth_ap' is in no verdict; near: .*smooth_ap"):
        find_verdicts(verdicts, "glyphs_1k/smoth_ap")
    with pytest.raises(ConfigError, match="no verdict has all of them"):
        find_verdicts(verdicts, "roadmap2021v2/bs128")


def test_explain_verb_prints_one_verdict_lists_several_and_explains_claims(tmp_path, monkeypatch):
    import benchmark.cli.verdicts
    import benchmark.study
    from benchmark.__main__ import app

    frozen = tmp_path / "frozen.csv"
    freeze(RUNS, frozen, metrics=["recall_at_1", "map"])
    table = judge(RUNS, References(published(), load_frozen(frozen)), load_margins())
    study = dataclasses.replace(
        STUDY, references=dataclasses.replace(STUDY.references, frozen=str(frozen))
    )
    monkeypatch.setattr(benchmark.study, "load_study", lambda name: study)
    monkeypatch.setattr(benchmark.cli.verdicts, "judged", lambda *_: table)
    write_inputs(made_up_inputs(STUDY), RUNS, tmp_path)

    def run(cell):
        return CliRunner().invoke(app, ["explain", cell, "--results", str(tmp_path)])

    assert run("roadmap2021v2/smooth_ap/recall_at_1").output.count("Verdict:") == 1
    same = run("frozen/smooth_ap/bs32/recall_at_1").output
    assert same.count("= +0.000") == 4 and "identical at every seed" in same, (
        "three pairs and their mean"
    )
    several = run("recall_at_1")
    assert several.exit_code == 2 and "verdicts fit 'recall_at_1'" in several.output
    claim = run("sup_ap_beats_smooth_ap").output
    assert "SupAP is better than SmoothAP" in claim and "p after" not in claim
    assert (
        claim.count("verdict:") == 2
        and "glyphs_1k resnet10t batch 32 R@1: sup_ap - smooth_ap" in claim
    )
