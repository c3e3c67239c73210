from __future__ import annotations

import io
from types import SimpleNamespace

import numpy as np
import pytest
from made_up_inputs import DIGEST, made_up_inputs, write_neighbours_file
from made_up_results import made_up_study
from PIL import Image

from benchmark.core.errors import ConfigError, RunError
from benchmark.report.gallery import (
    CATEGORY,
    GAIN,
    LOSS,
    MATCH,
    MISMATCH,
    RANDOM,
    Choice,
    average_precision,
    choose,
    draw,
    load_neighbours,
    run_pairs,
)
from benchmark.report.table import NothingToShow

STUDY = made_up_study(
    losses=("smooth_ap", "sup_ap", "roadmap"), batch_sizes=(32, 128), seeds=(0, 1)
)


def test_queries_are_chosen_by_gain_loss_draw_and_category_each_once():
    first, change = np.full(20, 0.5), np.linspace(-0.1, 0.2, 20)
    categories = np.repeat([0, 1, 2, 3], [2, 8, 6, 4])
    found = choose(first, first + change, categories, each=2)
    by_reason = {
        reason: [row for row, why in found.items() if why == reason]
        for reason in (GAIN, LOSS, RANDOM)
    }
    assert by_reason[GAIN] == [19, 18] and by_reason[LOSS] == [0, 1]
    assert len(by_reason[RANDOM]) == 2
    shown = {int(categories[row]) for row, why in found.items() if why != CATEGORY}
    further = {int(categories[row]) for row, why in found.items() if why == CATEGORY}
    assert further.isdisjoint(shown)


def test_queries_without_a_value_or_a_change_are_no_gain_and_no_loss():
    first = np.array([0.5, np.nan, 0.5, 0.5])
    found = choose(first, np.array([0.5, 0.9, 0.5, 0.4]), np.full(4, -1), each=3)
    assert found[3] == LOSS and 1 not in found
    assert not {GAIN, CATEGORY} & set(found.values())


def test_average_precision_follows_from_the_ranks(tmp_path):
    assert average_precision(np.array([1, 2, 4])) == pytest.approx((1 + 1 + 3 / 4) / 3)
    assert np.isnan(average_precision(np.array([], dtype=int)))
    arrays = write_neighbours_file(tmp_path / "neighbours.npz", 0)
    found = load_neighbours(tmp_path / "neighbours.npz", DIGEST)
    with pytest.raises(RunError, match=r"none\.npz does not exist or is empty"):
        load_neighbours(tmp_path / "none.npz", DIGEST)
    precision = [i / rank for i, rank in enumerate(found.ranks[0], start=1)]
    assert found.precisions[0] == pytest.approx(np.mean(precision))
    assert found.neighbour_images.shape[:2] == arrays["matches"].shape


def test_the_baseline_is_set_beside_the_best_loss_where_both_ran():
    bad = {("roadmap", 128, 0): "failed", ("roadmap", 128, 1): "missing"}
    inputs = made_up_inputs(STUDY, bad=bad)
    (pair,) = run_pairs(inputs, Choice())
    others = inputs.scores.query("metric == 'recall_at_1' and loss != 'smooth_ap'")
    means = others.groupby(["loss", "batch_size"])["value"].mean()
    assert (pair["second"]["loss"], pair["batch_size"]) == means.idxmax()
    assert pair["first"]["loss"] == "smooth_ap" and pair["seed"] == 0
    chosen = run_pairs(inputs, Choice("roadmap", "smooth_ap", 32, 1))[0]
    first, second = chosen["first"], chosen["second"]
    assert first["run_id"].endswith("roadmap/bs32/seed1")
    assert second["run_id"].endswith("smooth_ap/bs32/seed1")
    score = inputs.scores.query("metric == 'recall_at_1' and run_id == @first['run_id']")
    assert first["score"] == score["value"].item()


def test_pairs_that_cannot_be_made_say_why():
    inputs = made_up_inputs(STUDY)
    with pytest.raises(ConfigError, match="did you mean 'sup_ap'"):
        Choice(second="supap").check(STUDY.losses)
    with pytest.raises(NothingToShow, match="no seed has finished both for smooth_ap"):
        run_pairs(inputs, Choice(seed=9))


def test_right_and_wrong_differ_in_colour_line_and_mark_and_queries_have_a_row_each():
    pictures = np.full((2, 2, 64, 64, 3), 255, np.uint8)
    matches = np.array([[False, False], [True, False]])
    made = SimpleNamespace(images=pictures[0], neighbour_images=pictures, matches=matches)
    image = draw(made, [0, 1])
    drawn = np.asarray(Image.open(io.BytesIO(image)).convert("RGBA"))
    above, below = np.split(drawn, 2)
    assert above.shape == below.shape and (above != below).any()
    right, wrong = np.split(below[:, -2 * 78 :], 2, axis=1)
    edges = [
        (part[0] == colour).all(axis=-1).mean()
        for part, colour in ((right, MATCH), (wrong, MISMATCH))
    ]
    assert edges[0] > 0.85 and 0.3 < edges[1] < 0.7, "solid against dashed"
    marks = [(part[-16:, :, 3] > 0) for part in (right, wrong)]
    assert marks[0].any() and marks[1].any() and (marks[0] != marks[1]).any()
    assert draw(made, [0, 1]) == image and image.startswith(b"\x89PNG")
