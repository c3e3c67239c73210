from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from made_up_inputs import made_up_inputs, write_inputs
from made_up_results import made_up_runs, made_up_study
from typer.testing import CliRunner

from benchmark.errors import ConfigError
from benchmark.references import load_margins
from benchmark.references.published import asked_results
from benchmark.verdicts import References, judge
from benchmark.verdicts.explain import explain
from benchmark.verdicts.search import find_verdicts, key_of

STUDY = made_up_study(losses=("smooth_ap", "sup_ap"), batch_sizes=(32, 128), seeds=(0, 1, 2))
RUNS = made_up_runs(STUDY)


def published(**changes) -> pd.DataFrame:
    """Returns the rows of one printed table as if they were about the made-up study."""
    rows = asked_results(("roadmap2021v2/table3",))
    rows = rows[rows["dataset"] == "cub"].assign(dataset="glyphs_1k", backbone="", embedding_dim="", condition="")
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
    values = RUNS[(RUNS["loss"] == "smooth_ap") & (RUNS["batch_size"] == 32) & (RUNS["metric"] == "recall_at_1")]
    for value in values.loc[values["selection"] == "last", "value"]:
        assert f"{100 * value:.3f}" in text
    assert numbers(text, r"D = ours - reference = ([+-][\d.]+)") == [pytest.approx(row["difference"], abs=5e-4)]
    se, df = numbers(text, r"se = sqrt\(s² \(1/n \+ 1/m\)\) = ([\d.]+), (\d+) degrees")
    assert se == pytest.approx(row["se"], abs=5e-4) and df == row["df"] == 2
    ones = [numbers(text, rf"{side} [+-]1: t = .* = [-\d.]+, p = ([\d.e-]+)")[0] for side in ("above", "below")]
    assert max(ones) == pytest.approx(row["p_equivalence"], rel=0.01)
    assert numbers(text, r"p after Holm = ([\d.e-]+)") == [pytest.approx(row["p_holm"], rel=0.01)]
    assert row["reason"] in text and "no number of runs stated: m = 1" in text and "rounded to ±0.05" in text


def test_frozen_runs_with_the_same_seeds_are_explained_as_pairs(verdicts):
    row = find_verdicts(verdicts, "frozen/sup_ap/bs128/map")[0]
    text = explain(row, verdicts, RUNS)
    differences = -100 * np.array([0.004, -0.003, -0.003])
    se = numbers(text, r"se = sqrt\(d² / n\) = ([\d.]+)")[0]
    assert se == pytest.approx(differences.std(ddof=1) / np.sqrt(3), abs=5e-4)
    assert "frozen earlier" in text


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

    table = judge(RUNS, References(published(), None), load_margins())
    monkeypatch.setattr(benchmark.study, "load_study", lambda name: STUDY)
    monkeypatch.setattr(benchmark.cli.verdicts, "judged", lambda *_: table)
    write_inputs(made_up_inputs(STUDY), RUNS, tmp_path)

    def run(cell):
        return CliRunner().invoke(app, ["explain", cell, "--results", str(tmp_path)])

    assert run("smooth_ap/recall_at_1").output.count("Verdict:") == 1
    several = run("recall_at_1")
    assert several.exit_code == 2 and "verdicts fit 'recall_at_1'" in several.output
    claim = run("sup_ap_beats_smooth_ap").output
    assert "SupAP is better than SmoothAP" in claim and "p after" not in claim
    assert claim.count("verdict:") == 2 and "glyphs_1k r10 batch 32 R@1: sup_ap - smooth_ap" in claim
