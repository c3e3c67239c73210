from __future__ import annotations

import dataclasses

import pytest
from made_up_inputs import drawn, paper_inputs, printed_inputs, roadmap_study, variant
from made_up_records import made_up_recipe
from made_up_results import made_up_block, made_up_runs, made_up_study, run_table

from benchmark.papers.loading import load_papers
from benchmark.papers.matching import candidates
from benchmark.papers.paper import all_figures, cite
from benchmark.papers.printed import PanelLine, printed_of, published
from benchmark.papers.schema import Panel, TestSet
from benchmark.papers.verdicts import typed
from benchmark.papers.vocabulary import load_vocabulary
from benchmark.report.drawing import Drawing, to_svg
from benchmark.report.figures import FIGURES
from benchmark.report.figures.printed_figures import paper_figures
from benchmark.report.table import NothingToShow

ASKED = {
    "roadmap2021v2": {"fig4", "fig5", "fig13"},
    "fastap2019": {"A", "fig4", "fig7"},
    "listwise2019": {"fig4", "fig5", "fig6", "fig7", "fig8"},
}
FIRST_TABLE = ["FastAP", "SoftBin", "BlackBox", "SmoothAP", "ROADMAP"]


@pytest.fixture(scope="module")
def inputs():
    return paper_inputs(roadmap_study(seeds=(0, 1)), epochs=2)


@pytest.fixture(scope="module")
def figures(inputs):
    return built(inputs)


def figures_of(study, runs):
    nothing = typed({})
    printed = printed_of(study, run_table(runs), nothing, nothing)
    return built(printed_inputs(study, printed))


def built(inputs):
    return drawn(paper_figures(inputs))


def marks(drawing, side, panel):
    return drawing.data[(drawing.data["side"] == side) & (drawing.data["panel"] == panel)]


def test_the_arranged_figures_are_those_of_the_papers():
    found = {}
    for figure in filter(lambda each: each.source, all_figures()):
        found.setdefault(figure.source, set()).add(figure.name.rpartition("_")[2])
        assert figure.studies
    assert found == ASKED


def test_a_study_shows_the_figures_of_its_paper_and_no_others(figures):
    assert set(figures) == {"roadmap2021v2_fig4", "roadmap2021v2_fig5", "roadmap2021v2_fig13"}
    other = made_up_study()
    assert built(paper_inputs(other)) == {}


def test_differences_have_a_panel_for_each_printed_table_with_all_its_numbers(inputs):
    drawing = FIGURES["verdicts"].target(inputs)
    judged = inputs.verdicts[inputs.verdicts["difference"].notna()]
    titles = [axes.get_title(loc="left") for axes in drawing.figure.axes]
    tables = dict.fromkeys(zip(judged["source"], judged["table"], strict=True))
    assert titles == [cite(*each) for each in tables]
    assert len(titles) > 5
    for axes, (_, table) in zip(drawing.figure.axes, tables, strict=True):
        marks = sum(len(each.get_xdata()) for each in axes.lines if each.get_linestyle() == "None")
        assert marks == (judged["table"] == table).sum()
        assert axes.get_xlabel()
    assert len(drawing.data) == len(judged)
    names = [label.get_text() for label in drawing.figure.axes[0].get_yticklabels()]
    assert [name.split("\n")[0] for name in names] == FIRST_TABLE


def test_drifts_are_named_below_their_row_where_no_mark_is(inputs):
    judged = inputs.verdicts["difference"].notna()
    for word in ("drifted", "inconclusive"):
        verdicts = inputs.verdicts.assign(verdict=inputs.verdicts["verdict"].mask(judged, word))
        drawing = FIGURES["verdicts"].target(dataclasses.replace(inputs, verdicts=verdicts))
        panels = drawing.figure.axes
        assert len(panels) > 5
        assert not any(axes.texts for axes in panels)
        names = [label.get_text() for label in panels[0].get_yticklabels()]
        named = [" ".join(name.split("\n")[1:]) for name in names]
        scores = "drifted: R@1 cub, mAP@R cub"
        assert all(each.startswith(scores if word == "drifted" else "") for each in named)
        assert any(named) == (word == "drifted")


def test_a_sweep_draws_the_variants_that_change_its_hyperparameter_alone(figures, inputs):
    drawing = figures["roadmap2021v2_fig4"]
    weights = marks(drawing, "ours", "weight of the calibration term")
    assert weights[weights["series"] == "ROADMAP"]["x"].tolist() == [0.0, 0.2, 0.5, 0.8]
    runs = inputs.scores
    rows = runs[(runs["loss"] == "roadmap_lambda_0.2") & (runs["metric"] == "map_at_r")]
    shown = weights[weights["x"] == 0.2].iloc[0]
    assert shown["value"] == pytest.approx(100 * rows["value"].mean())
    assert shown["n"] == 2
    assert shown["low"] < shown["value"] < shown["high"]
    level = weights[weights["series"] == "SupAP"]
    assert len(level) == 1
    assert level["x"].isna().all()


def test_published_values_lie_beside_ours_where_they_belong(figures):
    printed = marks(figures["roadmap2021v2_fig4"], "published", "slope of SupAP")
    (row,) = (
        each
        for each in load_papers()["roadmap2021"].table("table6")
        if (each.loss, each.dataset) == ("sup_ap", "inaturalist")
        and (each.batch_size, each.metric) == (224, "map_at_r")
    )
    shown = printed[printed["series"] == "SupAP"][["x", "value"]].to_numpy().tolist()
    assert shown == [[100.0, row.points]]
    gains = marks(figures["roadmap2021v2_fig5"], "published", "iNaturalist")
    assert gains.set_index("x")["value"].to_dict() == {
        32: 18.4,
        64: 16.3,
        128: 10.3,
        224: 5.8,
        384: 3.2,
    }


def test_a_gain_is_paired_by_seed_and_relative_to_the_loss_without_the_term(figures, inputs):
    runs = inputs.scores[inputs.scores["metric"] == "map_at_r"]
    runs = runs[(runs["dataset"] == "cub") & (runs["batch_size"] == 32)]
    with_term, without = (
        runs[runs["loss"] == loss].set_index("seed")["value"] for loss in ("roadmap", "sup_ap")
    )
    shown = marks(figures["roadmap2021v2_fig5"], "ours", "CUB-200-2011").set_index("x")["value"]
    assert shown[32] == pytest.approx((100 * (with_term - without) / without).mean())


def test_a_figure_without_runs_says_why(inputs):
    empty = figures_of(inputs.study, made_up_runs(inputs.study).iloc[:0])
    assert isinstance(empty["roadmap2021v2_fig4"], NothingToShow)
    assert "has finished yet" in str(empty["roadmap2021v2_fig4"])
    plain = dataclasses.replace(inputs.study, blocks=inputs.study.blocks[:2])
    reason = figures_of(plain, made_up_runs(plain, epochs=1))["roadmap2021v2_fig13"]
    assert not isinstance(reason, Drawing) or marks(reason, "ours", "slope").shape[0] <= 1


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
    drawing = figures_of(study, made_up_runs(study, epochs=4))["fastap2019_fig7"]
    assert drawing.data.groupby("series")["x"].max().to_dict() == {
        "batch size 32": 4,
        "batch size 256": 4,
    }
    assert "<svg" in to_svg(drawing)


def test_a_caption_says_that_points_are_moved_and_names_the_backbone(figures):
    study = landmarks(("a", "resnet18", (variant("fast_ap"),), (32, 256)))
    several = figures_of(study, made_up_runs(study))["fastap2019_fig4"].caption
    assert "Points are moved sideways" in several
    alone = figures["roadmap2021v2_fig13"].caption  # a single test set
    assert "moved" not in alone
    assert "Backbone ResNet-50, batch size 128." in alone


def test_an_effect_compares_two_settings_of_the_loss():
    variants = (variant("softbin_ap"), variant("mine", "softbin_ap", ties="aware"))
    study = made_up_study(
        name="listwise",
        blocks=(
            made_up_block(
                variants,
                (4096,),
                (0, 1),
                setting="r101",
                datasets=("sfm120k",),
                recipe=made_up_recipe("resnet101"),
            ),
        ),
        seeds=(0, 1),
    )
    runs = made_up_runs(study, epochs=2)
    runs.loc[runs["split"] == "test", "split"] = "roxford5k_hard"
    drawing = figures_of(study, runs)["listwise2019_fig8"]
    (shown,) = drawing.data.to_dict("records")
    rows = runs[(runs["selection"] == "last") & (runs["metric"] == "map")]
    means = rows.groupby("loss")["value"].mean()
    assert shown["value"] == pytest.approx(100 * (means["softbin_ap"] - means["mine"]))
    assert shown["n"] == 2
    assert shown["series"] == "Revisited Oxford, hard"


def test_x_is_a_hyperparameter_a_difference_of_two_or_the_batch_size():
    losses = (variant("roadmap_beta_0.5", "roadmap", beta=0.5),)
    (cell,) = candidates(made_up_study(blocks=(made_up_block(losses, (64,), (0,)),))).values()

    def axis(x):
        panel = Panel("t", "roadmap", "map_at_r", "resnet50", (TestSet("sop"),), x=x)
        return PanelLine(None, panel, panel.test_sets[0], load_vocabulary())

    assert axis("alpha - beta").x(cell) == 0.4
    assert axis("lambda").x(cell) == 0.5
    assert axis("batch_size").x(cell) == 64
    assert axis("p").x(cell) is None
    changed = cell.changed
    assert all(any(each.covers(name) for each in axis("beta").varied) for name in changed)
    assert not any(each.covers(name) for name in changed for each in axis("rho").varied)
    panel = Panel("t", "roadmap", "map_at_r", "resnet50", (TestSet("sop"),))
    assert list(published("roadmap2021v2", panel, TestSet("sop"), "roadmap")) == []
