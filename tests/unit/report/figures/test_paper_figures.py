from __future__ import annotations

import dataclasses

import pytest
from made_up_papers import paper_inputs, roadmap_study, variant
from made_up_records import made_up_recipe
from made_up_results import made_up_block, made_up_study

from benchmark.core.errors import ReferenceDataError
from benchmark.papers.references import published_results
from benchmark.report.figures.drawing import Drawing, to_svg
from benchmark.report.figures.papers.arrangement import KINDS, Panel, Place, paper_figures
from benchmark.report.figures.papers.points import Asked, Points, published_points, x_of
from benchmark.report.figures.papers.render import build_paper_figures, draw
from benchmark.report.tables.table import NothingToShow

ASKED = {
    "roadmap2021v2": {"fig4", "fig5", "fig13"},
    "fastap2019": {"fig4", "fig7"},
    "listwise2019": {"fig4", "fig5", "fig7", "fig8"},
}


@pytest.fixture(scope="module")
def inputs():
    return paper_inputs(roadmap_study(seeds=(0, 1)), epochs=2)


@pytest.fixture(scope="module")
def figures(inputs):
    return build_paper_figures(inputs.runs, inputs.study)


def marks(drawing, side, panel):
    return drawing.data[(drawing.data["side"] == side) & (drawing.data["panel"] == panel)]


def test_the_arranged_figures_are_those_of_the_papers():
    found = {}
    for figure in paper_figures():
        found.setdefault(figure.paper, set()).add(figure.figure)
        assert figure.kind in KINDS and figure.studies
    assert found == ASKED


def test_a_study_shows_the_figures_of_its_paper_and_no_others(figures):
    assert set(figures) == {"roadmap2021v2_fig4", "roadmap2021v2_fig5", "roadmap2021v2_fig13"}
    other = made_up_study()
    assert build_paper_figures(paper_inputs(other).runs, other) == {}


def test_a_sweep_draws_the_variants_that_change_its_hyperparameter_alone(figures, inputs):
    drawing = figures["roadmap2021v2_fig4"]
    weights = marks(drawing, "ours", "weight of the calibration term")
    assert weights[weights["series"] == "ROADMAP"]["x"].tolist() == [0.0, 0.2, 0.5, 0.8]
    runs = inputs.runs
    rows = runs[
        (runs["loss"] == "roadmap_lambda_0.2")
        & (runs["selection"] == "last")
        & (runs["metric"] == "map_at_r")
    ]
    shown = weights[weights["x"] == 0.2].iloc[0]
    assert shown["value"] == pytest.approx(100 * rows["value"].mean()) and shown["n"] == 2
    assert shown["low"] < shown["value"] < shown["high"]
    level = weights[weights["series"] == "SupAP"]
    assert len(level) == 1 and level["x"].isna().all()


def test_published_values_lie_beside_ours_where_they_belong(figures):
    printed = marks(figures["roadmap2021v2_fig4"], "published", "slope of SupAP")
    table = published_results().query(
        "paper == 'roadmap2021v2' and table == 'table6' and metric == 'map_at_r'"
    )
    row = table[
        (table["loss"] == "sup_ap")
        & (table["dataset"] == "inaturalist")
        & (table["batch_size"] == 224)
    ]
    assert printed[printed["series"] == "SupAP"][["x", "value"]].to_numpy().tolist() == [
        [100.0, row["points"].iloc[0]]
    ]
    gains = marks(figures["roadmap2021v2_fig5"], "published", "iNaturalist")
    assert gains.set_index("x")["value"].to_dict() == {
        32: 18.4,
        64: 16.3,
        128: 10.3,
        224: 5.8,
        384: 3.2,
    }


def test_a_gain_is_paired_by_seed_and_relative_to_the_loss_without_the_term(figures, inputs):
    runs = inputs.runs[(inputs.runs["selection"] == "last") & (inputs.runs["metric"] == "map_at_r")]
    runs = runs[(runs["dataset"] == "cub") & (runs["batch_size"] == 32)]
    with_term, without = (
        runs[runs["loss"] == loss].set_index("seed")["value"] for loss in ("roadmap", "sup_ap")
    )
    shown = marks(figures["roadmap2021v2_fig5"], "ours", "CUB-200-2011").set_index("x")["value"]
    assert shown[32] == pytest.approx((100 * (with_term - without) / without).mean())


def test_a_figure_without_runs_says_why(inputs):
    empty = build_paper_figures(inputs.runs.iloc[:0], inputs.study)
    assert isinstance(empty["roadmap2021v2_fig4"], NothingToShow)
    assert "has finished yet" in str(empty["roadmap2021v2_fig4"])
    plain = dataclasses.replace(inputs.study, blocks=inputs.study.blocks[:2])
    reason = build_paper_figures(inputs.runs, plain)["roadmap2021v2_fig13"]
    assert not isinstance(reason, Drawing) or marks(reason, "ours", "slope").shape[0] <= 1


def test_on_stand_in_data_equal_panels_are_drawn_once_without_published_values():
    made = paper_inputs(roadmap_study(seeds=(0, 1), stand_in="glyphs_1k"), epochs=2)
    drawing = build_paper_figures(made.runs, made.study)["roadmap2021v2_fig5"]
    assert set(drawing.data["panel"]) == {"glyphs_1k"} and set(drawing.data["side"]) == {"ours"}
    assert "stand-in data (glyphs_1k)" in drawing.caption


def landmarks(*blocks):
    made = [
        made_up_block(
            losses,
            sizes,
            (0, 1),
            name=name,
            setting=setting,
            datasets=("sop",),
            recipe=made_up_recipe("resnet18"),
        )
        for name, setting, losses, sizes in blocks
    ]
    return made_up_study(name="fast_ap", blocks=tuple(made), seeds=(0, 1))


def test_convergence_has_one_curve_for_each_batch_size():
    study = landmarks(("a", "resnet18", (variant("fast_ap"),), (32, 256)))
    made = paper_inputs(study, epochs=4)
    figure = next(each for each in paper_figures() if each.name == "fastap2019_fig7")
    drawing = draw(figure, Points(made.runs, study))
    assert drawing.data.groupby("series")["x"].max().to_dict() == {
        "batch size 32": 4,
        "batch size 256": 4,
    }
    assert "<svg" in to_svg(drawing)


def test_an_effect_compares_two_settings_whether_variants_or_options():
    study = landmarks(
        ("plain", "resnet18", (variant("softbin_ap"),), (256,)),
        ("tied", "resnet18", (variant("softbin_ap_tied", "softbin_ap", ties="aware"),), (256,)),
    )
    made = paper_inputs(study, epochs=2)
    panel = Panel(
        "t",
        "softbin_ap",
        "map",
        "resnet18",
        (Place("sop"),),
        parameter="ties",
        first="ignore",
        second="aware",
    )
    found = Points(made.runs, study).effect(panel, Place("sop"))
    runs = made.runs[(made.runs["selection"] == "last") & (made.runs["metric"] == "map")]
    means = runs.groupby("loss", observed=True)["value"].mean()
    assert (
        found["value"] == pytest.approx(100 * (means["softbin_ap"] - means["softbin_ap_tied"]))
        and found["n"] == 2
    )


def test_x_is_a_hyperparameter_a_difference_of_two_or_the_batch_size():
    cell = Asked("sop", "resnet50", 64, variant("roadmap_beta_0.5", "roadmap", beta=0.5))
    panel = Panel("t", "roadmap", "map_at_r", "resnet50", (Place("sop"),), x="alpha - beta")
    assert x_of(panel)(cell) == 0.4
    assert x_of(dataclasses.replace(panel, x="rho"))(cell) is None
    assert x_of(dataclasses.replace(panel, x="batch_size"))(cell) is None
    assert (
        x_of(dataclasses.replace(panel, x="batch_size"))(Asked("sop", "r", 64, variant("roadmap")))
        == 64
    )
    assert published_points(panel, Place("sop"), "roadmap2021v2", "roadmap") == []


def test_a_wrong_file_is_refused_with_every_problem(tmp_path):
    path = tmp_path / "figures.yaml"
    path.write_text(
        "a_fig1: {kind: swep, title: t, studies: [], panels: []}\n"
        "b_fig1: {kind: sweep, title: t, studies: [], panels: [{title: t, colour: red, series: [{data: x}]}]}\n"
    )
    with pytest.raises(ReferenceDataError) as error:
        paper_figures(path)
    for part in (
        "did you mean 'sweep'",
        "colour: unknown",
        "x: is missing",
        "series.0: needs dataset",
    ):
        assert part in str(error.value)
