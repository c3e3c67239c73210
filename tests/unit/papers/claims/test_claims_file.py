"""The papers' claims as they stand in claims.yaml, and what is wrong with a file that is not like it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from benchmark.core.errors import ConfigError
from benchmark.losses.catalogue import load_catalogue
from benchmark.papers.claims import list_text, load_claims
from benchmark.papers.claims.kinds import KINDS
from benchmark.papers.claims.load import FILE

GOOD = {
    "paper": "fastap2019",
    "place": "table 5",
    "sentence": "Hard sampling is better than random sampling.",
    "kind": "beats",
    "metrics": ["recall_at_1"],
    "published": [{"datasets": ["sop"]}],
    "first": ["fast_ap"],
    "second": ["smooth_ap"],
}


def problems(tmp_path: Path, claims: dict) -> str:
    path = tmp_path / "claims.yaml"
    path.write_text(yaml.safe_dump(claims))
    with pytest.raises(ConfigError) as caught:
        load_claims(path)
    return str(caught.value)


def test_at_least_25_sentences_of_four_papers_are_tested_by_every_kind():
    claims = load_claims()
    assert len(claims) >= 25
    assert {claim.paper for claim in claims} == {
        "roadmap2021v2",
        "smoothap2020",
        "fastap2019",
        "listwise2019",
    }
    assert {claim.kind for claim in claims} == set(KINDS) - {"grows"}


def test_every_sentence_stands_once():
    sentences = [claim.sentence for claim in load_claims()]
    assert len(set(sentences)) == len(sentences)


def test_a_level_that_stands_for_the_plain_loss_is_its_default():
    options = {"lambda": "lambda_"}
    checked = 0
    for claim in load_claims():
        for arm in claim.arms:
            if len(arm.conditions) > 1 and arm.conditions[1] == "":
                key, _, value = arm.conditions[0].partition("=")
                fields = load_catalogue()[arm.loss].schema["properties"]
                if (
                    options.get(key, key) in fields and key != "query_weights"
                ):  # those are the recipe's
                    assert str(fields[options.get(key, key)]["default"]) in (value, f"{value}.0"), (
                        claim.name
                    )
                    checked += 1
    assert checked > 8


def test_the_margins_of_calibration_are_what_the_sentences_say():
    (any_margin,) = (
        claim for claim in load_claims() if claim.name == "any_margin_improves_on_sup_ap"
    )
    alpha = load_catalogue()["roadmap"].schema["properties"]["alpha"]["default"]
    margins = [alpha - float(arm.conditions[0].removeprefix("beta=")) for arm in any_margin.first]
    assert min(margins) == pytest.approx(0.1) and max(margins) == pytest.approx(0.6)


def test_the_listing_names_place_sentence_and_condition_of_every_claim():
    claims = load_claims()
    text = list_text(claims)
    for claim in claims:
        assert (
            claim.name in text
            and claim.place in text
            and claim.sentence in text
            and claim.condition in text
        )


def test_a_good_claim_loads(tmp_path):
    path = tmp_path / "claims.yaml"
    path.write_text(yaml.safe_dump({"one": GOOD}))
    (claim,) = load_claims(path)
    assert (claim.alpha, claim.first[0].loss, claim.condition) == (0.05, "fast_ap", "sop")


def test_all_problems_of_a_file_are_told_at_once(tmp_path):
    text = problems(
        tmp_path,
        {
            "one": {**GOOD, "metrics": []},
            "two": {**GOOD, "kind": "wins"},
            "three": {key: value for key, value in GOOD.items() if key != "second"},
            "four": {**GOOD, "claim": "better"},
        },
    )
    for name in ("one.metrics", "two.kind", "three", "four"):
        assert name in text
    assert "4 problems" in text


def test_all_unknown_names_are_told_at_once_with_the_nearest(tmp_path):
    levels = {"loss": "fast_ap", "key": "bins", "values": ["5", "10"]}
    sweep = {key: value for key, value in GOOD.items() if key not in ("first", "second")}
    text = problems(
        tmp_path,
        {
            "one": {**GOOD, "paper": "fastap2018"},
            "two": {**GOOD, "first": ["fastap"]},
            "three": {**GOOD, "metrics": ["recall"]},
            "four": {**sweep, "kind": "best_at", "levels": levels, "best": "20"},
            "five": {**GOOD, "kind": "cost_ratio", "metrics": ["seconds"], "between": [1.0]},
            "six": {**GOOD, "first": [{"loss": "fast_ap", "condition": "random"}]},
        },
    )
    assert "did you mean 'fastap2019'?" in text
    assert "did you mean 'fast_ap'?" in text
    assert "unknown metric 'recall'" in text
    assert "unknown level '20'" in text
    assert "unknown cost 'seconds'" in text
    assert "condition 'random' is not of the form" in text


def test_options_belong_to_their_kinds(tmp_path):
    text = problems(
        tmp_path, {"one": {**GOOD, "best": "10"}, "two": {**GOOD, "between": [1.0, 2.0]}}
    )
    assert "one.best" in text and "two.between" in text


def test_a_claim_that_is_given_twice_is_an_error(tmp_path):
    path = tmp_path / "claims.yaml"
    path.write_text("one: {paper: a}\none: {paper: b}\n")
    with pytest.raises(ConfigError, match="'one' is given twice"):
        load_claims(path)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"nowhere\.yaml"):
        load_claims(tmp_path / "nowhere.yaml")


def test_the_shipped_file_lies_beside_the_code():
    assert FILE.is_file()


def test_a_condition_says_once_what_its_protocols_share():
    claims = {claim.name: claim.condition for claim in load_claims()}
    assert claims["class_weights_help"] == (
        "sfm120k instead of landmarks (roxford5k_medium, rparis6k_medium); resnet101; batch 4096"
    )
    assert (
        claims["fast_ap_rises_with_batch"] == "sop, inshop; resnet18 | vehicleid (large); resnet18"
    )
