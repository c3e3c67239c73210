"""The shipped papers: complete, typed, mapped to our names, and with what they claim."""

from __future__ import annotations

import csv
import itertools
from collections import Counter, defaultdict
from operator import attrgetter
from pathlib import Path

import pytest

from benchmark.claims.claim_tests import KINDS
from benchmark.claims.claim_verdicts import list_text
from benchmark.core.options import defaults_of
from benchmark.losses.catalogue import load_catalogue
from benchmark.metrics.metric import METRICS
from benchmark.published.loading import claim_problems, figure_problems, load_papers, paper_problems
from benchmark.published.paper import own_claims, sweep_figures
from benchmark.published.vocabulary import load_vocabulary, margin_of
from benchmark.study import load_study
from benchmark.study.data_files import published_names
from benchmark.verdicts.matching import StudyGrid, match, stated_by

CONFIG = Path(__file__).parents[3] / "workflow" / "config"
SOURCES = {"fastap2019", "listwise2019", "roadmap2021v2", "smoothap2020"}


@pytest.fixture(scope="module")
def numbers():
    return [number for paper in load_papers().values() for number in paper.numbers]


def test_all_numbers_are_there(numbers):
    assert len(numbers) == 1445
    assert {each.source for each in numbers} == {*SOURCES, "roadmap2021v1"}


def test_a_known_row_carries_value_spread_and_number_of_runs():
    (row,) = (
        each
        for each in load_papers()["roadmap2021"].table("table5")
        if (each.loss, each.dataset) == ("fast_ap", "cub")
        and (each.backbone, each.metric) == ("resnet50", "recall_at_1")
    )
    assert (row.points, row.sd_points, row.n_runs) == (61.28, 0.37, 5)
    assert row.rounding == pytest.approx(0.005)


def test_methods_and_datasets_carry_our_names(numbers):
    losses = {each.loss for each in numbers}
    ours = {"smooth_ap", "sup_ap", "fast_ap", "proxy_nca", "normalized_softmax", "roadmap"}
    assert ours <= losses
    assert not {"smoothap", "supap", "fastap"} & losses
    assert {"roxford5k", "rparis6k"} <= {each.dataset for each in numbers}
    (memory,) = {tuple(each.means.items()) for each in numbers if each.method == "xbm"}
    assert memory == (("memory", "xbm"),)


def test_fractions_become_points_and_hours_are_no_scores(numbers):
    faces = load_papers()["smoothap2020"].table("table5")[0]
    assert faces.unit == "fraction"
    assert faces.points == pytest.approx(100 * float(faces.value))
    assert faces.rounding == pytest.approx(0.05)
    assert faces.text == "82.4"
    assert not any(each.is_score for each in numbers if each.unit == "hours")


def test_conditions_and_implied_facts_are_data():
    rows = load_papers()["fastap2019"].table("table5")
    assert {each.conditions["sampling"] for each in rows} == {"random", "hard"}
    assert {each.means["batch_size"] for each in rows} == {"96", "256"}


def test_values_keep_the_digits_of_the_print():
    table = load_papers()["roadmap2021"].table
    assert "82.0" in {each.text for each in table("table1")}
    minutes = next(each for each in table("table2") if each.metric == "minutes_per_epoch")
    assert minutes.text == "6"


def test_the_printed_tables_hold_528_numbers_that_can_be_reproduced():
    assert len(load_papers().countable()) == 528
    asked = load_papers().asked(SOURCES)
    assert len([each for each in asked if each.countable]) == 528
    others = Counter((each.source, each.table) for each in asked if not each.countable)
    bars = dict.fromkeys([("roadmap2021v2", f"fig5{panel}") for panel in "abc"], 5)
    texts = {("roadmap2021v2", "text_4.1"): 1, ("smoothap2020", "text_6.2"): 1}
    assert others == {**bars, **texts}
    assert {each.table for each in load_papers().asked(["roadmap2021v2/table3"])} == {"table3"}


def test_names_cover_papers_and_their_tables():
    assert {"roadmap2021v2", "roadmap2021v2/table3"} <= set(published_names())


def test_every_table_that_a_study_may_name_is_arranged_or_of_an_earlier_version():
    tables = {name for name in published_names() if "/" in name}
    papers = load_papers()
    for paper in papers.values():
        tables -= {f"{source}/{name}" for source in paper.names for name in paper.about.elsewhere}
    arranged = {f"{paper.source}/{name}" for paper, name in papers.arranged(SOURCES)}
    left = {name for name in tables - arranged if not name.startswith("roadmap2021v1")}
    assert left == {"smoothap2020/table4", "smoothap2020/table5"}
    assert arranged <= tables


def test_each_printed_table_declares_the_kinds_of_its_numbers():
    declared = 0
    for paper in load_papers().values():
        kinds = paper.vocabulary.kinds
        for name, table in paper.tables.items():
            found = [number.kind for number in paper.table(name)]
            assert set(table.kinds) == {kind for kind in kinds if kinds[kind] in found}, name
            declared += 1
    assert declared == 20


def test_an_earlier_version_has_other_kinds_under_the_same_name():
    numbers = [number for number in load_papers()["roadmap2021"].numbers if number.version == "v1"]
    words = {number.kind.word for number in numbers if number.metric == "minutes_per_epoch"}
    assert words == {"time"}


def test_a_study_gets_the_tables_of_a_paper_or_single_ones():
    assert [name for _, name in load_papers().arranged(["roadmap2021v2/table3"])] == ["table3"]
    assert len(load_papers().arranged(["fastap2019"])) == 5


def test_the_papers_own_statements_are_there():
    rows = {"datasets.csv": 0, "hyperparameters.csv": 0}
    for paper in load_papers().values():
        for name in rows:
            with open(paper.folder / name, newline="", encoding="utf-8") as stream:
                rows[name] += len(list(csv.DictReader(stream)))
    assert rows == {"datasets.csv": 54, "hyperparameters.csv": 342}


def test_every_judged_published_metric_has_a_margin(numbers):
    assert all(margin_of(each.metric) > 0 for each in numbers if each.is_score)


def test_every_metric_has_a_margin_for_every_score_and_any_k():
    assert all(0 in dict(metric.margin) for metric in METRICS.values())
    found = [margin_of(name) for name in ("recall_at_1", "recall_at_10", "map")]
    assert found == [1.0, 1.0, 1.0]


def test_what_the_repository_says_of_papers_is_right():
    papers = load_papers()
    assert [each for one in papers.values() for each in paper_problems(one, papers)] == []
    words = load_vocabulary()
    own = [claim for claims in own_claims().values() for claim in claims]
    assert [line for claim in own for line in claim_problems(claim, words, ())] == []
    assert [line for each in sweep_figures() for line in figure_problems(each, words, ())] == []


def test_126_sentences_of_four_papers_are_tested_by_every_kind():
    claims = load_papers().claims("")
    assert len(claims) == len({claim.sentence for claim in claims}) == 126
    assert {claim.source for claim in claims} == SOURCES
    assert {claim.kind for claim in claims} == set(KINDS) - {"grows"}


def test_claims_of_the_suites_own_are_asked_of_their_study_alone():
    (study,) = own_claims()
    extra = load_papers().claims(study)[len(load_papers().claims("")) :]
    assert (
        extra == own_claims()[study] == load_papers().claims(f"{study}-on-glyphs_1k")[-len(extra) :]
    )
    assert load_papers().claims("embedded") == load_papers().claims("")
    assert load_papers().claims() == (*load_papers().claims(""), *extra)
    assert len(extra) == 4
    assert len({claim.name for claim in load_papers().claims()}) == len(load_papers().claims())


def test_the_margins_of_calibration_are_what_the_sentences_say():
    (claim,) = (
        each for each in load_papers().claims() if each.name == "any_margin_improves_on_sup_ap"
    )
    alpha = defaults_of(load_catalogue()["roadmap"].config)["alpha"]
    margins = [alpha - arm.where["beta"] for arm in claim.first]
    assert min(margins) == pytest.approx(0.1)
    assert max(margins) == pytest.approx(0.6)


def test_the_listing_names_place_sentence_and_condition_of_every_claim():
    text = list_text(load_papers().claims())
    for claim in load_papers().claims():
        for part in (claim.name, claim.stated_in, claim.sentence, claim.condition):
            assert part in text


def test_a_condition_says_once_what_its_protocols_share():
    conditions = {claim.name: claim.condition for claim in load_papers().claims()}
    assert conditions["class_weights_help"] == (
        "sfm120k instead of landmarks (roxford5k_medium, rparis6k_medium); resnet101; batch 4096"
    )
    assert conditions["fast_ap_rises_with_batch"] == (
        "sop, inshop; resnet18 | vehicleid (large); resnet18"
    )


def test_claims_beside_a_figure_exist():
    names = {claim.name for claim in load_papers().claims()}
    beside = {
        name
        for figure in load_papers().figures()
        for panel in figure.panels
        for name in panel.claims
    }
    assert beside
    assert beside <= names


# Tables that print one set-up again, with another rounding or of other seeds, by batch size.
PRINTED_AGAIN = {
    ("roadmap2021v2", 128): {"table4", "table5", "table6", "table7"},
    ("fastap2019", 96): {"table2", "table6"},
    ("listwise2019", 4096): {"table1", "table2"},
}


@pytest.mark.parametrize("path", sorted(CONFIG.glob("*.yaml")), ids=attrgetter("stem"))
def test_no_runs_answer_numbers_of_two_set_ups(path):
    study = load_study(str(path))
    grid = StudyGrid.of(study).candidates.values()
    answered = defaultdict(list)
    for number in load_papers().asked(study.references.published):
        found = match(stated_by(number), grid)
        if number.is_score and found.candidate and number.countable:
            answered[found.candidate.cell, found.split, number.metric].append(number)
    for (cell, *_), numbers in answered.items():
        for one, other in itertools.combinations(numbers, 2):
            again = PRINTED_AGAIN.get((one.source, cell.batch_size), set())
            rounded = abs(float(one.value) - float(other.value)) < 0.101
            assert rounded or {one.table, other.table} <= again, (cell, one, other)
