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
from benchmark.report.figures.loss_figures import panel_title
from benchmark.report.figures.printed_figures import _DARKEST, _LEVELS, _LIGHTEST
from benchmark.report.table import NothingToShow


@pytest.fixture(scope="module")
def inputs():
    return made_up_inputs(bad=WENT_WRONG, references=True)


@pytest.fixture(scope="module")
def drawings(inputs):
    possible = (inputs, inputs_over_datasets(), inputs_of_trials())
    return {entry.name: draw_first(entry.name, possible) for entry in FIGURES}


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
    assert (
        len({found.colour for found in STYLES.values()})
        == len({found.marker for found in STYLES.values()})
        == len(STYLES)
    )


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
    draw("learning_curves", inputs)
    assert dict(matplotlib.rcParams) == before


def test_equal_inputs_give_equal_files(inputs, tmp_path):
    for name in ("metric_by_batch_size", "verdicts"):
        for part in ("a", "b"):
            save(draw(name, inputs), tmp_path / part, name, "A title")
        for one in (tmp_path / "a").iterdir():
            assert one.read_bytes() == (tmp_path / "b" / one.name).read_bytes(), one.name


def test_text_is_readable_at_print_size_and_nothing_is_clipped(drawings):
    assert FONT >= 7
    for name, drawing in drawings.items():
        figure = drawing.figure
        assert figure.get_figwidth() <= DOUBLE, name
        figure.draw_without_rendering()
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
        drawing.figure.draw_without_rendering()
        for legend in drawing.figure.legends:
            box = legend.get_window_extent()
            for axes in drawing.figure.axes:
                assert not box.overlaps(axes.get_window_extent()), name


def test_axes_are_labelled_with_units_and_captions_and_alternatives_are_there(drawings):
    for name, drawing in drawings.items():
        assert drawing.caption.endswith(".") and len(drawing.alt) > 40, name
        labels = {axes.get_ylabel() for axes in drawing.figure.axes} | {
            a.get_xlabel() for a in drawing.figure.axes
        }
        assert any(re.search(r"\(.+\)", label) for label in labels), name


def test_numbers_behind_a_figure_match_the_runs(drawings, inputs):
    chosen = inputs.scores.query("loss == 'sup_ap' and metric == 'map' and batch_size == 32")
    data = drawings["metric_by_batch_size"].data
    row = data[(data.loss == "sup_ap") & (data.metric == "map") & (data.batch_size == 32)].iloc[0]
    assert row["mean"] == pytest.approx(chosen["value"].mean())
    summary = inputs.summary.query(
        "loss == 'sup_ap' and metric == 'map' and batch_size == 32 and selection == 'last'"
    )
    assert (row["low"], row["high"]) == pytest.approx(
        (summary.ci_low.iloc[0], summary.ci_high.iloc[0])
    )
    pairs = drawings["seed_differences"].data
    assert (pairs.value - pairs.value_against).tolist() == pytest.approx(pairs.difference.tolist())
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
    study = made_up_study(batch_sizes=(32, 64, 128), seeds=(0, 1))  # nine panels, six are drawn
    inputs = made_up_inputs(study)
    only_large = inputs.differences["loss"].eq("roadmap") & inputs.differences["batch_size"].lt(128)
    for rows, shown in ((inputs.differences, True), (inputs.differences[~only_large], False)):
        drawing = draw("seed_differences", dataclasses.replace(inputs, differences=rows))
        names = [label.get_text() for label in drawing.figure.axes[0].get_yticklabels()]
        assert ("ROADMAP" in names) == shown
        assert "SupAP" in names


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
    runs.loc[runs["seed"] == 1, "value"] = (
        runs.loc[runs["seed"] == 1, "value"].clip(upper=0.99) * 0.5
    )
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
    chosen = {"seeds": (0, 1), "figures": ("seed_differences",)}
    inputs = made_up_inputs(made_up_study(losses=("smooth_ap", "sup_ap"), **chosen))
    made("figure", inputs, tmp_path)
    assert (tmp_path / "seed_differences.svg").is_file()
    one = made_up_inputs(made_up_study(losses=("smooth_ap",), **chosen))
    (record,) = made("figure", one, tmp_path).values()
    assert not (tmp_path / "seed_differences.svg").exists()
    assert record.title == "Differences to the baseline by seed"
    assert "no seed has finished" in record.reason


def test_a_loss_far_below_all_others_is_named_and_does_not_stretch_the_axis():
    study = made_up_study(losses=("smooth_ap", "sup_ap", "roadmap", "calibration"))
    for loss, named in (("calibration", True), ("none", False)):
        runs = made_up_runs(study)
        runs.loc[runs["loss"] == loss, "value"] -= 0.2
        runs.loc[runs["loss"] == "calibration", "value"] += 0.15
        axes = draw("metric_by_batch_size", made_up_inputs(study, runs=runs)).figure.axes[0]
        words = [text.get_text() for text in axes.texts]
        assert any("not drawn:\nCalibration " in text for text in words) == named
        ends = [line.get_ydata().min() for line in axes.lines if len(line.get_ydata())]
        assert min(ends) >= axes.get_ylim()[0]
