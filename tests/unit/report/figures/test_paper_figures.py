from __future__ import annotations

import dataclasses

import pytest
from made_up_inputs import drawn, paper_inputs, printed_inputs, roadmap_inputs, variant
from made_up_records import made_up_recipe
from made_up_results import made_up_block, made_up_runs, made_up_study, run_table

from benchmark.published.loading import load_papers
from benchmark.published.schema import Panel, TestSet
from benchmark.published.vocabulary import load_vocabulary
from benchmark.report.drawing import Drawing, to_svg
from benchmark.report.figures import FIGURES
from benchmark.report.figures.printed_figures import paper_figures
from benchmark.report.study_results import rows_of
from benchmark.report.table import NothingToShow
from benchmark.verdicts.matching import StudyGrid
from benchmark.verdicts.pairs import typed
from benchmark.verdicts.printed import PanelLine, printed_of, published
from benchmark.verdicts.verdicts import VERDICT

ASKED = {
    "roadmap2021v2": {"fig4", "fig5", "fig13"},
    "fastap2019": {"A", "fig4", "fig7"},
    "listwise2019": {"fig4", "fig5", "fig6", "fig7", "fig8"},
}
FIRST_TABLE = ["FastAP", "SoftBin", "BlackBox", "SmoothAP", "ROADMAP"]


@pytest.fixture(scope="module")
def inputs():
    return roadmap_inputs()


@pytest.fixture(scope="module")
def figures(inputs):
    return built(inputs)


def figures_of(study, runs):
    nothing = typed({}, VERDICT)
    printed = printed_of(StudyGrid.of(study), run_table(runs), nothing, nothing)
    return built(printed_inputs(study, printed))


def built(inputs):
    return drawn(paper_figures(inputs))


def names_of_rows(axes):
    return [label.get_text() for label in axes.get_yticklabels()]


def marks(drawing, side, panel):
    return rows_of(drawing.data, side=side, panel=panel)


def cell_of(number):
    return number.loss, number.dataset, number.batch_size, number.metric


def test_the_arranged_figures_are_those_of_the_papers():
    found = {}
    for figure in load_papers().figures():
        if figure.source:
            name = figure.name.rpartition("_")[2]
            found.setdefault(figure.source, set()).add(name)
            assert figure.studies
    assert found == ASKED


def test_a_study_shows_the_figures_of_its_paper_and_no_others(figures):
    assert set(figures) == {"roadmap2021v2_fig4", "roadmap2021v2_fig5", "roadmap2021v2_fig13"}
    other = made_up_study()
    assert built(paper_inputs(other)) == {}


def test_differences_have_a_panel_for_each_printed_table_with_all_its_numbers(inputs):
    drawing = FIGURES["verdicts"].target(inputs)
    judged = inputs.verdicts[inputs.verdicts["difference"].notna()]
    panels = drawing.figure.axes
    papers = load_papers()
    tables = dict(list(judged.groupby(["source", "table"])))
    assert len(panels) == len(tables) > 5
    for axes, (source, table) in zip(
        panels, sorted(tables, key=lambda name: papers.in_print(*name)), strict=True
    ):
        numbers = tables[source, table]
        assert axes.get_title(loc="left") == papers.cite(source, table)
        marks = [line for line in axes.lines if line.get_linestyle() == "None"]
        assert sum(len(line.get_xdata()) for line in marks) == len(numbers)
        assert axes.get_xlabel()
    assert len(drawing.data) == len(judged)
    names = [name.split("\n")[0] for name in names_of_rows(panels[0])]
    assert names == FIRST_TABLE
    (lines,) = panels[0].child_axes
    row = ["R@1 cub", "mAP@R cub", "R@1 sop", "mAP@R sop", "R@1 inaturalist", "mAP@R inaturalist"]
    assert names_of_rows(lines)[: len(row)] == row


def test_drifts_are_named_below_their_row_where_no_mark_is(inputs):
    judged = inputs.verdicts["difference"].notna()
    for word in ("drifted", "inconclusive"):
        verdict = inputs.verdicts["verdict"].mask(judged, word)
        verdicts = inputs.verdicts.assign(verdict=verdict)
        drawing = FIGURES["verdicts"].target(dataclasses.replace(inputs, verdicts=verdicts))
        panels = drawing.figure.axes
        assert len(panels) > 5
        assert not any(axes.texts for axes in panels)
        for name in names_of_rows(panels[0]):
            named = " ".join(name.split("\n")[1:])
            assert named.startswith("drifted: R@1 cub, mAP@R cub") == (word == "drifted")


def test_a_sweep_draws_the_variants_that_change_its_hyperparameter_alone(figures, inputs):
    drawing = figures["roadmap2021v2_fig4"]
    weights = marks(drawing, "ours", "weight of the calibration term")
    swept = rows_of(weights, series="ROADMAP")
    assert swept["x"].tolist() == [0.0, 0.2, 0.5, 0.8]
    rows = rows_of(inputs.scores, loss="roadmap_lambda_0.2", metric="map_at_r")
    shown = weights[weights["x"] == 0.2].iloc[0]
    assert shown["value"] == pytest.approx(100 * rows["value"].mean())
    assert shown["n"] == 2
    assert shown["low"] < shown["value"] < shown["high"]
    level = weights[weights["series"] == "SupAP"]
    assert len(level) == 1
    assert level["x"].isna().all()


def test_published_values_lie_beside_ours_where_they_belong(figures):
    printed = marks(figures["roadmap2021v2_fig4"], "published", "slope of SupAP")
    place = ("sup_ap", "inaturalist", 224, "map_at_r")
    table = load_papers()["roadmap2021"].table("table6")
    (row,) = [each for each in table if place == cell_of(each)]
    (shown,) = printed[printed["series"] == "SupAP"].to_dict("records")
    assert shown["x"] == 100.0
    assert shown["value"] == row.points
    gains = marks(figures["roadmap2021v2_fig5"], "published", "iNaturalist")
    assert gains["x"].tolist() == [32, 64, 128, 224, 384]
    assert gains["value"].tolist() == [18.4, 16.3, 10.3, 5.8, 3.2]


def test_a_gain_is_paired_by_seed_and_relative_to_the_loss_without_the_term(figures, inputs):
    runs = rows_of(inputs.scores, metric="map_at_r", dataset="cub", batch_size=32)
    by_loss = runs.set_index(["loss", "seed"])["value"]
    with_term = by_loss["roadmap"]
    without = by_loss["sup_ap"]
    shown = marks(figures["roadmap2021v2_fig5"], "ours", "CUB-200-2011").set_index("x")["value"]
    gains = 100 * (with_term - without) / without
    assert shown[32] == pytest.approx(gains.mean())


def test_a_figure_without_runs_says_why(inputs):
    empty = figures_of(inputs.study, made_up_runs(inputs.study).iloc[:0])
    assert isinstance(empty["roadmap2021v2_fig4"], NothingToShow)
    assert "has finished yet" in str(empty["roadmap2021v2_fig4"])
    plain = dataclasses.replace(inputs.study, blocks=inputs.study.blocks[:2])
    reason = figures_of(plain, made_up_runs(plain, epochs=1))["roadmap2021v2_fig13"]
    assert not isinstance(reason, Drawing) or marks(reason, "ours", "slope").shape[0] <= 1


def one_block(name, losses, size, dataset, backbone):
    """Return a study of one block: two seeds of each loss."""
    recipe = {"setting": backbone, "recipe": made_up_recipe(backbone)}
    block = made_up_block(losses, size, (0, 1), datasets=(dataset,), **recipe)
    return made_up_study(name=name, blocks=(block,), seeds=(0, 1))


@pytest.fixture(scope="module")
def fast_ap():
    return one_block("fast_ap", (variant("fast_ap"),), (32, 256), "sop", "resnet18")


def test_convergence_has_one_curve_for_each_batch_size(fast_ap):
    drawing = figures_of(fast_ap, made_up_runs(fast_ap, epochs=4))["fastap2019_fig7"]
    last = drawing.data.groupby("series")["x"].max()
    assert last.to_dict() == {"batch size 32": 4, "batch size 256": 4}
    assert "<svg" in to_svg(drawing)


def test_a_caption_says_that_points_are_moved_and_names_the_backbone(figures, fast_ap):
    several = figures_of(fast_ap, made_up_runs(fast_ap))["fastap2019_fig4"].caption
    assert "Points are moved sideways" in several
    alone = figures["roadmap2021v2_fig13"].caption  # a single test set
    assert "moved" not in alone
    assert "Backbone ResNet-50, batch size 128." in alone


def test_an_effect_compares_two_settings_of_the_loss():
    variants = (variant("softbin_ap"), variant("mine", "softbin_ap", ties="aware"))
    study = one_block("listwise", variants, (4096,), "sfm120k", "resnet101")
    runs = made_up_runs(study, epochs=2)
    runs.loc[runs["split"] == "test", "split"] = "roxford5k_hard"
    drawing = figures_of(study, runs)["listwise2019_fig8"]
    (shown,) = drawing.data.to_dict("records")
    rows = rows_of(runs, selection="last", metric="map")
    means = rows.groupby("loss")["value"].mean()
    difference = means["softbin_ap"] - means["mine"]
    assert shown["value"] == pytest.approx(100 * difference)
    assert shown["n"] == 2
    assert shown["series"] == "Revisited Oxford, hard"


def test_x_is_a_hyperparameter_a_difference_of_two_or_the_batch_size():
    losses = (variant("roadmap_beta_0.5", "roadmap", beta=0.5),)
    block = made_up_block(losses, (64,), (0,))
    (cell,) = StudyGrid.of(made_up_study(blocks=(block,))).candidates.values()

    def axis(x):
        panel = Panel("t", "roadmap", "map_at_r", "resnet50", (TestSet("sop"),), x=x)
        return PanelLine(None, panel, panel.test_sets[0], load_vocabulary())

    assert axis("alpha - beta").x(cell) == 0.4
    assert axis("lambda").x(cell) == 0.5
    assert axis("batch_size").x(cell) == 64
    assert axis("p").x(cell) is None
    for name in cell.changed:
        assert any(option.covers(name) for option in axis("beta").varied)
        assert not any(option.covers(name) for option in axis("rho").varied)
    panel = Panel("t", "roadmap", "map_at_r", "resnet50", (TestSet("sop"),))
    assert list(published("roadmap2021v2", panel, TestSet("sop"), "roadmap")) == []
