from __future__ import annotations

import numpy as np
import pytest
from made_up_neighbours import SHOWN, write_neighbours_file
from made_up_results import made_up_runs, made_up_study

from benchmark.core.errors import ConfigError, RunError
from benchmark.report.gallery.choose import CATEGORY, GAIN, LOSS, RANDOM, choose
from benchmark.report.gallery.neighbours import average_precision, load_neighbours
from benchmark.report.gallery.pairs import Asked, pairs
from benchmark.report.gallery.strip import RIGHT, WRONG, strip, to_png
from benchmark.report.tables.inputs import tidy
from benchmark.report.tables.table import NothingToShow

STUDY = made_up_study(
    losses=("smooth_ap", "sup_ap", "roadmap"), batch_sizes=(32, 128), seeds=(0, 1)
)


def test_queries_are_chosen_by_gain_loss_chance_and_category_each_once():
    first, change = np.full(20, 0.5), np.linspace(-0.1, 0.2, 20)
    categories = np.repeat([0, 1, 2, 3], [2, 8, 6, 4])
    found = choose(first, first + change, categories, each=2)
    by_reason = {
        reason: [item.row for item in found if item.reason == reason]
        for reason in (GAIN, LOSS, RANDOM)
    }
    assert by_reason[GAIN] == [19, 18] and by_reason[LOSS] == [0, 1]
    rows = [item.row for item in found]
    assert len(rows) == len(set(rows)) and len(by_reason[RANDOM]) == 2
    shown = {int(categories[item.row]) for item in found if item.reason != CATEGORY}
    assert {int(categories[item.row]) for item in found if item.reason == CATEGORY}.isdisjoint(
        shown
    )


def test_queries_without_a_value_or_a_change_are_no_gain_and_no_loss():
    first = np.array([0.5, np.nan, 0.5, 0.5])
    found = choose(first, np.array([0.5, 0.9, 0.5, 0.4]), np.full(4, -1), each=3)
    assert [item.row for item in found if item.reason == GAIN] == []
    assert [item.row for item in found if item.reason == LOSS] == [3]
    assert 1 not in [item.row for item in found] and not any(
        item.reason == CATEGORY for item in found
    )


def test_average_precision_and_the_curve_follow_from_the_ranks(tmp_path):
    assert average_precision(np.array([1, 2, 4])) == pytest.approx((1 + 1 + 3 / 4) / 3)
    assert np.isnan(average_precision(np.array([], dtype=int)))
    arrays = write_neighbours_file(tmp_path / "neighbours.npz", 0)
    found = load_neighbours(tmp_path / "neighbours.npz")
    recall, precision = found.curve(0)
    assert recall[-1] == 1 and precision.tolist() == [
        i / rank for i, rank in enumerate(found.ranks[0], start=1)
    ]
    assert found.quality()[0] == pytest.approx(precision.mean())
    assert found.found_images.shape[:2] == arrays["matches"].shape


def test_without_ranks_the_share_of_matches_among_those_shown_is_what_can_be_said(tmp_path):
    arrays = write_neighbours_file(tmp_path / "neighbours.npz", 0, exact=False)
    found = load_neighbours(tmp_path / "neighbours.npz")
    assert found.ranks is None and found.quality() == pytest.approx(arrays["matches"].mean(axis=1))
    k, precision = found.curve(2)
    assert k.tolist() == list(range(1, SHOWN + 1)) and precision[-1] == arrays["matches"][2].mean()


def test_a_file_that_is_absent_torn_or_incomplete_names_itself_and_the_cure(tmp_path):
    path = tmp_path / "neighbours.npz"
    for content in (None, b"PK torn"):
        if content:
            path.write_bytes(content)
        with pytest.raises(RunError, match=r"neighbours\.npz.* again"):
            load_neighbours(path)
    np.savez(path, queries=np.arange(2))
    with pytest.raises(RunError, match="lacks scores"):
        load_neighbours(path)


def test_the_baseline_is_set_beside_the_best_loss_where_both_ran():
    runs = tidy(
        made_up_runs(STUDY, bad={("roadmap", 128, 0): "failed", ("roadmap", 128, 1): "missing"})
    )
    (pair,) = pairs(runs, STUDY, Asked())
    values = runs[
        (runs["selection"] == "last") & (runs["metric"] == "recall_at_1") & (runs["status"] == "ok")
    ]
    means = (
        values[values["loss"] != "smooth_ap"]
        .groupby(["loss", "batch_size"], observed=True)["value"]
        .mean()
    )
    assert (
        (pair.second, pair.batch_size) == means.idxmax()
        and pair.first == "smooth_ap"
        and pair.seed == 0
    )
    chosen = pairs(runs, STUDY, Asked("roadmap", "smooth_ap", 32, 1))[0]
    assert chosen.first_run.endswith("roadmap/bs32/seed1") and chosen.second_run.endswith(
        "smooth_ap/bs32/seed1"
    )


def test_pairs_that_cannot_be_made_say_why():
    runs = tidy(made_up_runs(STUDY))
    with pytest.raises(ConfigError, match="did you mean 'sup_ap'"):
        pairs(runs, STUDY, Asked(second="supap"))
    with pytest.raises(NothingToShow, match="no seed has finished both for smooth_ap"):
        pairs(runs, STUDY, Asked(seed=9))


def test_right_and_wrong_differ_in_colour_line_and_mark():
    pictures = np.full((2, 64, 64, 3), 255, np.uint8)
    drawn = np.asarray(strip(pictures[0], pictures, np.array([True, False])))
    right, wrong = np.split(drawn[:, -2 * 78 :], 2, axis=1)
    edges = [
        (part[0] == colour).all(axis=-1).mean() for part, colour in ((right, RIGHT), (wrong, WRONG))
    ]
    assert edges[0] > 0.85 and 0.3 < edges[1] < 0.7, "solid against dashed"
    marks = [(part[-16:, :, 3] > 0) for part in (right, wrong)]
    assert marks[0].any() and marks[1].any() and (marks[0] != marks[1]).any()
    image = strip(pictures[0], pictures, np.array([True, False]))
    assert to_png(image) == to_png(image) and to_png(image).startswith(b"\x89PNG")
