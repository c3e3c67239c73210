from __future__ import annotations

import dataclasses
import re
import xml.etree.ElementTree as ElementTree

import matplotlib
import numpy as np
import pandas as pd
import pytest
from made_up_inputs import WENT_WRONG, inputs_of_trials, inputs_over_datasets, made, made_up_inputs
from made_up_results import LOSSES, made_up_runs, made_up_study

from benchmark.losses.catalogue import load_catalogue
from benchmark.report.drawing import (
    COLOURS,
    DOUBLE,
    FONT,
    GRID,
    INK,
    STYLES,
    Drawing,
    inline_svg,
    legend_below,
    line,
    new_figure,
    plain,
    save,
    style_of,
    to_svg,
)
from benchmark.report.figures import FIGURES
from benchmark.report.figures.batch_size_figures import far_below
from benchmark.report.figures.panels import panel_title
from benchmark.report.figures.printed_figures import _DARKEST, _LEVELS, _LIGHTEST
from benchmark.report.study_results import rows_of
from benchmark.report.table import NothingToShow


@pytest.fixture(scope="module")
def inputs():
    return made_up_inputs(bad=WENT_WRONG, references=True)


@pytest.fixture(scope="module")
def drawings(inputs):
    possible = (inputs, inputs_over_datasets(), inputs_of_trials())
    found = {entry.name: draw_first(entry.name, possible) for entry in FIGURES}
    for drawing in found.values():
        drawing.figure.draw_without_rendering()
    return found


def draw_first(name, possible):
    """Return the figure of the first inputs that have something to show in it."""
    for inputs in possible:
        try:
            return draw(name, inputs)
        except NothingToShow as error:
            reason = error
    raise AssertionError(f"no made-up inputs for {name}: {reason}")


def draw(name, inputs):
    return FIGURES[name].target(inputs)


def test_every_built_in_loss_has_its_own_colour_and_marker():
    assert set(LOSSES) <= set(STYLES)
    colours = {found.colour for found in STYLES.values()}
    markers = {found.marker for found in STYLES.values()}
    assert len(colours) == len(markers) == len(STYLES)


def test_no_two_registered_losses_share_colour_and_marker():
    styles = [style_of(name) for name in load_catalogue()]
    assert len({(found.colour, found.marker) for found in styles}) == len(styles) > 30


def test_styles_follow_from_the_label_alone():
    assert style_of("my_loss") == style_of("my_loss")
    assert style_of("my_loss").colour not in {f.colour for f in STYLES.values()}
    variant = style_of("smooth_ap_tau0.1", "smooth_ap")
    assert variant.colour == STYLES["smooth_ap"].colour
    assert variant.open
    assert line("smooth_ap_tau0.1", "smooth_ap")["markerfacecolor"] == "white"


def test_colours_stay_apart_in_greyscale_or_by_marker():
    greys = {}
    for name, found in STYLES.items():
        red, green, blue = matplotlib.colors.to_rgb(found.colour)
        greys[name] = 0.299 * red + 0.587 * green + 0.114 * blue
    assert max(greys.values()) < 0.75, "too faint on white"
    assert len({(found.marker, str(found.dash)) for found in STYLES.values()}) == len(STYLES)


def test_colours_stand_out_from_white_paper_and_from_a_dark_page():
    def luminance(colour):
        parts = [
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
            for part in to_rgb(colour)
        ]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    to_rgb = matplotlib.colors.to_rgb
    levels = matplotlib.colormaps[_LEVELS](np.linspace(_DARKEST, _LIGHTEST, 8))
    for colour in [*(found.colour for found in STYLES.values()), *COLOURS.values(), *levels]:
        level = luminance(colour) + 0.05
        assert 1.05 / level > 2 and level / (luminance("#16181d") + 0.05) > 2.5, colour


def test_drawing_leaves_the_users_matplotlib_settings_alone(inputs):
    before = dict(matplotlib.rcParams)
    draw("loss_cost", inputs)
    assert dict(matplotlib.rcParams) == before


def test_equal_inputs_give_equal_files(inputs, tmp_path):
    for folder in ("first", "second"):
        save(draw("loss_cost", inputs), tmp_path / folder, "loss_cost", "A title")
    files = [*(tmp_path / "first").iterdir()]
    assert len(files) == 3
    for file in files:
        assert file.read_bytes() == (tmp_path / "second" / file.name).read_bytes(), file.name


def test_text_is_readable_at_print_size_and_nothing_is_clipped(drawings):
    assert FONT >= 7
    for name, drawing in drawings.items():
        figure = drawing.figure
        assert figure.get_figwidth() <= DOUBLE, name
        whole = figure.bbox
        for text in figure.findobj(matplotlib.text.Text):
            if not text.get_text() or not text.get_visible():
                continue
            assert text.get_fontsize() >= 7, (name, text.get_text())
        for axes in figure.axes:
            box = axes.get_tightbbox()
            assert whole.x0 - 1 <= box.x0 and box.x1 <= whole.x1 + 1, name
            assert whole.y0 - 1 <= box.y0 and box.y1 <= whole.y1 + 1, name


def test_legends_stay_off_the_panels(drawings):
    for name, drawing in drawings.items():
        for legend in drawing.figure.legends:
            box = legend.get_window_extent()
            for axes in drawing.figure.axes:
                assert not box.overlaps(axes.get_window_extent()), name


def test_axes_are_labelled_with_units_and_captions_and_alternatives_are_there(drawings):
    for name, drawing in drawings.items():
        assert drawing.caption.endswith(".") and len(drawing.alt) > 40, name
        labels = [axes.get_ylabel() + axes.get_xlabel() for axes in drawing.figure.axes]
        assert re.search(r"\(.+\)", "\n".join(labels)), name


def test_numbers_behind_a_figure_match_the_runs(drawings, inputs):
    place = {"loss": "sup_ap", "metric": "map", "batch_size": 32}
    row = rows_of(drawings["metric_by_batch_size"].data, **place).iloc[0]
    assert row["mean"] == pytest.approx(rows_of(inputs.scores, **place)["value"].mean())
    summary = rows_of(inputs.last, **place).iloc[0]
    assert row["low"] == pytest.approx(summary["ci_low"])
    assert row["high"] == pytest.approx(summary["ci_high"])
    pairs = drawings["seed_differences"].data
    assert pairs.difference.to_numpy() == pytest.approx(pairs.value - pairs.value_against)
    assert set(pairs.loss.astype(str)) == set(LOSSES) - {"smooth_ap"}


def test_one_evaluated_epoch_is_no_learning_curve():
    study = made_up_study(losses=("smooth_ap",), batch_sizes=(32,), seeds=(0, 1))
    runs = made_up_runs(study, epochs=1)
    with pytest.raises(NothingToShow, match="one epoch only"):
        draw("learning_curves", made_up_inputs(study, runs=runs))


def test_a_loss_with_one_evaluated_epoch_is_left_out_of_the_learning_curves(inputs):
    one = inputs.curves["batch_size"].eq(32) & inputs.curves["epoch"].gt(1)
    drawing = draw("learning_curves", dataclasses.replace(inputs, curves=inputs.curves[~one]))
    assert [axes.get_title(loc="left") for axes in drawing.figure.axes] == ["batch size 128"]


def test_rows_of_differences_are_the_losses_that_the_panels_have():
    losses = ("smooth_ap", "sup_ap", "roadmap")
    # nine panels, of which six are drawn
    inputs = made_up_inputs(made_up_study(losses=losses, batch_sizes=(32, 64, 128), seeds=(0, 1)))
    differences = inputs.differences
    small = differences["batch_size"] < 128
    only_large = differences[~(small & differences["loss"].eq("roadmap"))]
    drawing = draw("seed_differences", dataclasses.replace(inputs, differences=only_large))
    names = [label.get_text() for label in drawing.figure.axes[0].get_yticklabels()]
    assert names == ["SupAP"]


@pytest.mark.parametrize("name", ["critical_difference", "performance_profiles"])
def test_a_place_with_one_loss_has_no_panel_of_ranks(name):
    inputs = inputs_over_datasets()
    frame = "ranks" if name == "critical_difference" else "profiles"
    table = getattr(inputs, frame)
    alone = table[table["loss"] == table["loss"].iloc[0]]
    both = pd.concat([table, alone.assign(batch_size=999)])
    panels = draw(name, inputs).figure.axes
    assert len(draw(name, dataclasses.replace(inputs, **{frame: both})).figure.axes) == len(panels)
    with pytest.raises(NothingToShow, match="several losses"):
        draw(name, dataclasses.replace(inputs, **{frame: alone}))


def test_batches_are_compared_with_the_whole_set_only_under_both_options():
    inputs = inputs_over_datasets()
    assert draw("whole_set", inputs).figure.axes
    settings = inputs.summary["setting"] != "r10~steps"
    one = dataclasses.replace(inputs, summary=inputs.summary[settings])
    with pytest.raises(NothingToShow, match="'images' and 'steps'"):
        draw("whole_set", one)


def test_a_long_setting_breaks_before_its_options():
    setting = "resnet101_listwise_triplets~batch1024"
    lines = panel_title(("landmarks_clean", setting), True).splitlines()
    assert lines[-2:] == ["resnet101_listwise_triplets", "~batch1024"]


def test_score_axes_stay_between_0_and_100_percent():
    study = made_up_study(losses=("smooth_ap", "sup_ap"), batch_sizes=(32,), seeds=(0, 1))
    runs = made_up_runs(study)
    runs.loc[runs["seed"] == 1, "value"] *= 0.5
    for axes in draw("metric_by_batch_size", made_up_inputs(study, runs=runs)).figure.axes:
        low, high = axes.get_ylim()
        assert 0 <= low < high <= 100


def test_a_loss_without_results_leaves_the_others_in_place():
    bad = {("roadmap", size, seed): "diverged" for size in (32, 128) for seed in range(5)}
    data = draw("metric_by_batch_size", made_up_inputs(bad=bad)).data
    assert set(data.loss.astype(str)) == set(LOSSES) - {"roadmap"}


def test_inlined_figures_have_unique_ids_resolved_references_and_page_colours(drawings):
    seen: set[str] = set()
    for name, drawing in drawings.items():
        element = inline_svg(to_svg(drawing), name, 'An "alternative" & more')
        tree = ElementTree.fromstring(element)
        ids = {node.attrib["id"] for node in tree.iter() if "id" in node.attrib}
        assert not ids & seen, name
        seen |= ids
        references = re.findall(r'(?:url\(#|href="#)([^)"]+)', element)
        assert references and set(references) <= ids, name
        assert tree.attrib["aria-label"] == 'An "alternative" & more'
        assert "width" not in tree.attrib
        assert INK not in element
        assert GRID not in element
        assert "#ffffff" not in element
        assert "currentColor" in element


def test_a_dollar_sign_of_a_text_starts_no_formula():
    figure, axes = new_figure(3.0, 2.0)
    odd = r"$\frac{1}{$"
    panel = axes[0, 0]
    panel.plot([1, 10], [1, 1000], label=odd)
    panel.set_yscale("log")
    panel.set_title(odd)
    panel.set_xlabel(r"10 \$ or $5$")
    panel.set_xticks([1, 10], [plain(odd), "b"])
    legend_below(figure)
    drawing = Drawing("c", "a", figure, pd.DataFrame())
    assert "<svg" in to_svg(drawing)
    assert panel.get_title() == r"\$\frac{1}{\$"
    assert panel.get_xlabel() == r"10 \$ or \$5\$"


def test_a_picture_of_endless_width_is_shown_at_some_size():
    svg = f'<svg viewBox="0 0 {"9" * 400} 10" width="1"><g/></svg>'
    assert 'class="wide-0"' in inline_svg(svg, "a", "b")


def test_a_figure_without_data_takes_its_old_files_away_and_leaves_the_reason(tmp_path):
    chosen = {"batch_sizes": (32,), "seeds": (0, 1), "figures": ("loss_cost",)}
    inputs = made_up_inputs(made_up_study(losses=("smooth_ap",), **chosen))
    made("figure", inputs, tmp_path)
    assert (tmp_path / "loss_cost.svg").is_file()
    without_costs = dataclasses.replace(inputs, costs=inputs.costs.iloc[:0])
    (record,) = made("figure", without_costs, tmp_path).values()
    assert not (tmp_path / "loss_cost.svg").exists()
    assert record.title == "Cost of the loss"
    assert "no finished run has recorded the time" in record.reason


def test_a_loss_far_below_all_others_is_named_and_does_not_stretch_the_axis():
    losses = ("smooth_ap", "sup_ap", "roadmap", "calibration")
    study = made_up_study(losses=losses, batch_sizes=(32,), seeds=(0, 1))
    runs = made_up_runs(study)
    runs.loc[runs["loss"] == "calibration", "value"] -= 0.1
    axes = draw("metric_by_batch_size", made_up_inputs(study, runs=runs)).figure.axes[0]
    assert "Calibration" in axes.texts[0].get_text()
    lowest = min(line.get_ydata().min() for line in axes.lines if len(line.get_ydata()))
    assert lowest >= axes.get_ylim()[0]


@pytest.mark.parametrize(("low", "far"), [(50.0, ["d"]), (79.0, [])])
def test_the_lowest_of_four_losses_is_far_below_where_it_doubles_the_axis(low, far):
    panel = pd.DataFrame({"loss": [*"abcd"], "mean": [82.0, 81.0, 80.0, low]})
    assert far_below(panel) == far
