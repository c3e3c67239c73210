"""What a claim's file may say: nothing twice, numbers that are some, names that are names."""

from __future__ import annotations

import numpy as np
import pytest
from paper_folders import FILES, changed, load_paper, problems, write_paper

from benchmark.papers.claim_tests import Part
from benchmark.papers.claim_verdicts import decide

SWEEP = (
    FILES["claims.yaml"].replace("kind: beats", "kind: best_at").partition("  first")[0]
    + "  levels: {loss: fast_ap, key: bins, values: [5, 10]}\n  best: 10\n"
)
RATIO = changed("claims.yaml", "kind: beats", "kind: cost_ratio\n  between: [1.0, 2.0]").replace(
    "metrics: [recall_at_1]", "metrics: [train_seconds]"
)


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("second: [smooth_ap]", "second: [smooth_ap, smooth_ap]", "second"),
        ("second: [smooth_ap]", "second: [smooth_ap, {loss: smooth_ap}]", "second"),
        ("[{loss: sup_ap, where: {tau: 0.1}}]", "[sup_ap, fast_ap, sup_ap]", "first"),
        ("[recall_at_1]", "[recall_at_1, map_at_r, recall_at_1]", "metrics"),
        ("datasets: [cub]", "datasets: [cub, cub]", "published.0.datasets"),
        ("batch_sizes: [64]", "batch_sizes: [64, 32, 64]", "published.0.batch_sizes"),
        (
            "[{datasets: [cub], batch_sizes: [64]}]",
            "[{datasets: [cub]}, {datasets: [cub]}]",
            "published",
        ),
    ],
)
def test_nothing_comes_twice_in_a_claim(tmp_path, old, new, key):
    text = problems(tmp_path, claims=changed("claims.yaml", old, new))
    assert f"toy_beats_smooth_ap.{key} (line " in text and "comes twice; keep one" in text


@pytest.mark.parametrize("values", ["[5, 10, 5]", "[5, 10, 5.0]", "[5, 10, '5']"])
def test_no_level_comes_twice(tmp_path, values):
    text = problems(tmp_path, claims=SWEEP.replace("[5, 10]", values))
    assert "toy_beats_smooth_ap.levels.values" in text and "comes twice; keep one" in text


@pytest.mark.parametrize("best", ["10.0", "true", "[10]"])
def test_the_best_level_is_one_of_those_that_are_written(tmp_path, best):
    """Levels are found by their text: 10.0 is equal to 10, and was a KeyError after the runs."""
    load_paper(write_paper(tmp_path / "right", claims=SWEEP))
    claims = SWEEP.replace("best: 10", f"best: {best}").replace("[5, 10]", "[1, 10]")
    assert "unknown level" in problems(tmp_path, claims=claims)


def test_parts_of_one_label_are_told_apart():
    """Two scopes of one dataset, one of them with its protocol, have parts of one label."""
    values = np.array([0.5, -0.6, 0.1, -0.2, 0.3])
    same = np.array([1.0, 1.0, 1.0])
    found = decide([Part("a", values), Part("a", values.copy()), Part("a", same)], 0.05)
    assert found.verdict == "inconclusive" and "1 could not be tested (first: a" in found.reason


@pytest.mark.parametrize(
    ("text", "key"),
    [
        *(
            (FILES["claims.yaml"] + f"  by: {value}\n", "by")
            for value in (".inf", "-.inf", ".nan", "-1.0e+308", "101", "true")
        ),
        *((SWEEP + f"  margin: {value}\n", "margin") for value in (".inf", ".nan", "0", "1e300")),
        *(
            (RATIO.replace("[1.0, 2.0]", value), "between")
            for value in ("[.inf, .inf]", "[.nan]", "[3, 1]", "[2, 2]", "[0, 1]", "[1, 1e300]")
        ),
        *(
            (changed("claims.yaml", "[64]", value), "batch_sizes")
            for value in ("[-32]", "[0]", "[true]", "[64.5]", f"[{10**30}]")
        ),
        *(
            (changed("claims.yaml", "{tau: 0.1}", f"{{tau: 0.1}}, {key}: {value}"), key)
            for key in ("embedding_dim", "batch_size")
            for value in ("-5", "0", "true")
        ),
    ],
)
def test_a_number_that_means_nothing_is_refused(tmp_path, text, key):
    load_paper(write_paper(tmp_path / "right", claims=RATIO))
    message = problems(tmp_path, claims=text)
    assert "claims.yaml: toy_beats_smooth_ap." in message and f"{key}" in message


def test_a_margin_of_scores_has_a_hundred_points_at_most(tmp_path):
    text = problems(tmp_path, claims=SWEEP + "  margin: 101\n")
    assert "toy_beats_smooth_ap.margin  " in text and "100 points" in text
    seconds = FILES["claims.yaml"].replace("kind: beats", "kind: monotone").partition("  second")[0]
    seconds = seconds.replace("[recall_at_1]", "[train_seconds]") + "  margin: 101\n"
    load_paper(write_paper(tmp_path / "right", claims=seconds))


@pytest.mark.parametrize("name", ["''", "' '", '"a\\nb|c"', "a/b", "a" * 81])
def test_the_name_of_a_claim_is_one(tmp_path, name):
    text = problems(tmp_path, claims=changed("claims.yaml", "toy_beats_smooth_ap", name))
    assert "claims.yaml" in text and "should match pattern" in text


@pytest.mark.parametrize(
    ("file", "old"),
    [
        ("claims.yaml", "The toy loss is better than SmoothAP."),
        ("claims.yaml", "section 4, table 1"),
        ("paper.yaml", "A toy"),
        ("outside.yaml", "no time"),
    ],
)
def test_blanks_are_no_text(tmp_path, file, old):
    text = problems(tmp_path, **{file.partition(".")[0]: changed(file, old, f"'{' ' * 40}'")})
    assert file in text and "String should have at least" in text
