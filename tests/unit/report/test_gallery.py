"""The gallery: which runs and queries it shows, its pictures and files."""

from __future__ import annotations

import dataclasses
import io
import json
from collections import defaultdict
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from made_up_inputs import (
    made_up_inputs,
    statuses,
    two_losses,
    write_collected,
    write_neighbours_file,
)
from made_up_results import made_up_block, made_up_runs, made_up_study
from PIL import Image
from typer.testing import CliRunner

from benchmark.core.errors import ConfigError
from benchmark.core.records import NEIGHBOURS
from benchmark.report.gallery import (
    CATEGORY,
    GAIN,
    LOSS,
    MATCH,
    MISMATCH,
    RANDOM,
    SIDES,
    PairChoice,
    average_precision,
    choose,
    curve_of,
    draw,
    draw_curves,
    load_neighbours,
    run_pairs,
    write_gallery,
)
from benchmark.report.page import Built, build_page, gallery_section
from benchmark.report.table import NothingToShow
from benchmark.study.model import Variant

STUDY = made_up_study(
    losses=("smooth_ap", "sup_ap", "roadmap"), batch_sizes=(32, 128), seeds=(0, 1)
)


def test_queries_are_chosen_by_gain_loss_draw_and_category_each_once():
    first = np.full(20, 0.5)
    change = np.linspace(-0.1, 0.2, 20)
    categories = np.repeat([0, 1, 2, 3], [2, 8, 6, 4])
    found = choose(first, first + change, categories, each=2)
    rows = defaultdict(list)
    for row, reason in found.items():
        rows[reason].append(row)
    assert rows[GAIN] == [19, 18]
    assert rows[LOSS] == [0, 1]
    assert len(rows[RANDOM]) == 2
    shown = categories[rows[GAIN] + rows[LOSS] + rows[RANDOM]]
    further = categories[rows[CATEGORY]]
    assert not set(further) & set(shown)


def test_queries_without_a_value_or_a_change_are_no_gain_and_no_loss():
    first = np.array([0.5, np.nan, 0.5, 0.5])
    second = np.array([0.5, 0.9, 0.5, 0.4])
    no_category = np.full(4, -1)
    found = choose(first, second, no_category, each=3)
    assert found[3] == LOSS
    assert 1 not in found
    assert not {GAIN, CATEGORY} & set(found.values())


def test_average_precision_follows_from_the_ranks(tmp_path):
    mean = (1 + 1 + 3 / 4) / 3
    assert average_precision(np.array([1, 2, 4])) == pytest.approx(mean)
    assert np.isnan(average_precision(np.array([], dtype=int)))
    arrays = write_neighbours_file(tmp_path / "neighbours.npz", 0)
    found = load_neighbours(tmp_path / "neighbours.npz")
    assert found.precisions[0] == average_precision(found.ranks[0])
    assert found.neighbour_images.shape[:2] == arrays["matches"].shape


def test_the_baseline_is_set_beside_the_best_loss_where_both_ran():
    bad = statuses("roadmap 128 0 failed \n roadmap 128 1 missing")
    inputs = made_up_inputs(STUDY, bad=bad)
    (pair,) = run_pairs(inputs, PairChoice())
    others = inputs.scores.query("metric == 'recall_at_1' and loss != 'smooth_ap'")
    means = others.groupby(["loss", "batch_size"])["value"].mean()
    assert (pair["second"]["loss"], pair["batch_size"]) == means.idxmax()
    assert pair["first"]["loss"] == "smooth_ap"
    assert pair["seed"] == 0
    chosen = run_pairs(inputs, PairChoice("roadmap", "smooth_ap", 32, 1))[0]
    first = chosen["first"]
    second = chosen["second"]
    assert first["run_id"].endswith("roadmap/bs32/seed1")
    assert second["run_id"].endswith("smooth_ap/bs32/seed1")
    score = inputs.scores.query("metric == 'recall_at_1' and run_id == @first['run_id']")
    assert first["score"] == score["value"].item()


def untrained_inputs(**options):
    """Returns inputs of SmoothAP and SupAP, and of their network before training, in an option."""

    def block(losses, sizes, setting):
        variants = tuple(Variant(loss, loss, {}) for loss in losses.split())
        return made_up_block(variants, sizes, (0, 1), setting=setting, name=setting)

    blocks = (
        block("smooth_ap sup_ap", (32, 128), "r10"),
        block("untrained", (32,), "r10~plain"),
        block("smooth_ap", (64,), "r10~other"),
        block("smooth_ap", (64,), "r11"),
    )
    return made_up_inputs(made_up_study(blocks=blocks), **options)


def test_a_network_before_training_belongs_to_every_batch_size_and_option_of_its_recipe():
    inputs = untrained_inputs()
    (pair,) = run_pairs(inputs, PairChoice("untrained", "smooth_ap"))
    own = inputs.scores.query("metric == 'recall_at_1' and loss == 'smooth_ap'")
    means = own[own["setting"] != "r11"].groupby(["setting", "batch_size"])["value"].mean()
    assert (pair["setting"], pair["batch_size"]) == means.idxmax()
    assert pair["first"]["run_id"] == "glyphs_1k/r10~plain/untrained/bs32/seed0"
    for size in (32, 128):
        (pair,) = run_pairs(inputs, PairChoice("untrained", "sup_ap", size, 1))
        assert pair["second"]["run_id"] == f"glyphs_1k/r10/sup_ap/bs{size}/seed1"
        assert pair["first"]["run_id"].endswith("untrained/bs32/seed1")
    (reverse,) = run_pairs(inputs, PairChoice("smooth_ap", "untrained"))
    assert reverse["second"]["loss"] == "untrained"
    assert reverse["setting"] != "r10~plain"


def test_a_trained_rival_goes_before_the_untrained_network_which_comes_first_without_one():
    (pair,) = run_pairs(untrained_inputs(), PairChoice())
    assert pair["first"]["loss"] == "smooth_ap"
    assert pair["second"]["loss"] == "sup_ap"
    gone = statuses("""
        sup_ap  32   0  missing
        sup_ap  32   1  missing
        sup_ap  128  0  missing
        sup_ap  128  1  missing
    """)
    (pair,) = run_pairs(untrained_inputs(bad=gone), PairChoice())
    assert pair["first"]["loss"] == "untrained"
    assert pair["second"]["loss"] == "smooth_ap"


def test_the_area_under_a_curve_is_the_average_precision():
    ranks = np.array([1, 2, 4, 9])
    recall, precision = curve_of(ranks)
    assert recall.tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert precision.tolist() == [1, 1, 1, 3 / 4, 4 / 9]
    # steps that reach back: each precision counts from the recall before it
    area = np.sum(np.diff(recall) * precision[1:])
    assert area == pytest.approx(average_precision(ranks))


def test_every_query_has_a_curve_under_both_losses_and_its_ap(tmp_path):
    for seed, name in enumerate(("first", "second")):
        write_neighbours_file(tmp_path / f"{name}.npz", seed)
    sides = {name: load_neighbours(tmp_path / f"{name}.npz") for name in SIDES}
    names = {"smooth_ap": "SmoothAP", "sup_ap": "SupAP"}
    shown = [{"loss": loss, "base": loss, "display": label} for loss, label in names.items()]
    drawing = draw_curves(dict(zip(SIDES, shown, strict=True)), sides, [3, 0])
    lines = [line.get_xydata() for axes in drawing.figure.axes for line in axes.lines]
    assert len(lines) == 4
    assert all(line[-1, 0] == 1 for line in lines)
    assert lines[0] == pytest.approx(np.transpose(curve_of(sides["first"].ranks[3])))
    first, second = (100 * sides[side].precisions[3] for side in SIDES)
    titles = [axes.get_title("left") for axes in drawing.figure.axes]
    assert titles[0] == f"1: AP {first:.1f}% and {second:.1f}%"
    assert titles[1].startswith("2: AP ")
    assert f"Query 1: AP {first:.1f}%" in drawing.alt


def test_pairs_that_cannot_be_made_say_why():
    inputs = made_up_inputs(STUDY)
    with pytest.raises(ConfigError, match="did you mean 'sup_ap'"):
        PairChoice(second="supap").check(STUDY.losses)
    with pytest.raises(NothingToShow, match="no seed has finished both for smooth_ap"):
        run_pairs(inputs, PairChoice(seed=9))


def test_right_and_wrong_differ_in_colour_line_and_mark_and_queries_have_a_row_each():
    pictures = np.full((2, 2, 64, 64, 3), 255, np.uint8)
    matches = np.array([[False, False], [True, False]])
    made = SimpleNamespace(images=pictures[0], neighbour_images=pictures, matches=matches)
    image = draw(made, [0, 1])
    drawn = np.asarray(Image.open(io.BytesIO(image)).convert("RGBA"))
    above, below = np.split(drawn, 2)
    assert above.shape == below.shape
    assert (above != below).any()
    right, wrong = np.split(below[:, -2 * 78 :], 2, axis=1)
    edges = [
        (part[0] == colour).all(axis=-1).mean()
        for part, colour in ((right, MATCH), (wrong, MISMATCH))
    ]
    assert edges[0] > 0.85 and 0.3 < edges[1] < 0.7, "solid against dashed"
    marks = [(part[-16:, :, 3] > 0) for part in (right, wrong)]
    assert marks[0].any()
    assert marks[1].any()
    assert (marks[0] != marks[1]).any()
    assert draw(made, [0, 1]) == image
    assert image.startswith(b"\x89PNG")


SMALL = two_losses(tables=("comparison",), figures=())


def recorded(results, queries=(12, 12)):
    for seed, (loss, count) in enumerate(zip(("smooth_ap", "sup_ap"), queries, strict=True)):
        folder = results / "runs" / "glyphs_1k" / "r10" / loss / "bs32" / "seed0"
        write_neighbours_file(folder / "neighbours.npz", seed, queries=count)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    results = tmp_path_factory.mktemp("results")
    recorded(results)
    return results, write_gallery(made_up_inputs(SMALL), results, PairChoice())


def test_gallery_leaves_a_picture_a_loss_and_the_numbers_of_every_recorded_query(made):
    results, gallery = made
    folder = results / "made_up" / "gallery"
    assert json.loads((folder / "gallery.json").read_text())["schema"] == 3
    assert gallery.reason == ""
    (pair,) = gallery.pairs
    table = pd.read_csv(folder / "queries.csv")
    assert len(table) == pair["recorded"] == 12
    assert pair["improved"] == (table["change"] > 0).sum() <= 12 - pair["worsened"]
    path = results / "runs" / pair["pair"]["second"]["run_id"] / "neighbours.npz"
    exact = load_neighbours(path).precisions
    assert table["sup_ap"].to_numpy() == pytest.approx(exact, abs=1e-5)
    pictures = [pair["first"], pair["second"]]
    for picture in pictures:
        assert picture["alt"].count("right at rank") == len(pair["queries"])
    assert {path.name for path in folder.iterdir()} == {
        *("gallery.json", "queries.csv", "glyphs_1k-curves.svg"),
        *(picture["file"] for picture in pictures),
    }
    assert all(query["name"].startswith("…/query") for query in pair["queries"])


def test_gallery_is_part_of_the_report_and_its_names_cannot_become_markup(made):
    gallery = made[1]
    queries = gallery.pairs[0]["queries"]
    page = build_page(made_up_inputs(SMALL), Built([], gallery))
    section = page.split('<section id="gallery"')[1].split("</section>")[0]
    assert section.count("data:image/png;base64,") == 2
    assert section.count("<svg") == 1
    assert "Precision-recall curves. Query 1: AP" in section
    assert section.count('<th scope="row">') == len(queries)
    assert "<b>" not in section
    assert "&lt;b&gt;" in section
    assert "largest gain" in section
    assert "Download" in section
    assert section.count("<img") == section.count('alt="')


def test_the_names_of_images_are_no_formulas_in_the_table_of_queries(tmp_path):
    pair = run_pairs(made_up_inputs(SMALL), PairChoice())[0]
    for seed, which in enumerate(SIDES):
        path = tmp_path / "runs" / pair[which]["run_id"] / NEIGHBOURS
        arrays = write_neighbours_file(path, seed)
        names = np.array([f"=cmd|' /C calc'!A{row}.png" for row in range(len(arrays["queries"]))])
        np.savez_compressed(path, **{**arrays, "query_names": names})
    written = write_gallery(made_up_inputs(SMALL), tmp_path, PairChoice())
    table = pd.read_csv(io.BytesIO(written.files["queries.csv"]))
    assert set(table["name"].str[:5]) == {"'=cmd"}


def test_headings_name_the_setting_where_pairs_have_several(made):
    pair = made[1].pairs[0]
    other = {**pair, "pair": {**pair["pair"], "setting": "resnet50"}}

    def titles(*pairs):
        shown = gallery_section(dataclasses.replace(made[1], pairs=pairs))
        return [each["title"] for each in shown["pairs"]]

    assert "r10" not in titles(pair)[0]
    here, there = titles(pair, other)
    assert "r10" in here
    assert "resnet50" in there


def test_pictures_beyond_the_limit_stay_in_the_folder(made):
    everything = gallery_section(made[1])
    pictures = everything["pairs"][0]["pictures"]
    assert len(pictures) == 2
    assert everything["left_out"] == 0
    some = gallery_section(made[1], limit=max(map(len, pictures.values())))
    assert len(some["pairs"][0]["pictures"]) == 1
    assert some["left_out"] == 1


NO_GALLERY = {
    "no files": "does not exist",
    "other queries": "recorded different queries",
    "no common seed": "no seed has",
}


@pytest.mark.parametrize("case", NO_GALLERY)
def test_a_gallery_that_cannot_be_made_says_why_in_its_place(tmp_path, case):
    inputs = made_up_inputs(SMALL)
    if case == "no common seed":
        missing = statuses("sup_ap 32 0 missing \n sup_ap 32 1 missing")
        inputs = made_up_inputs(SMALL, bad=missing)
    if case == "other queries":
        recorded(tmp_path, queries=(12, 9))
    gallery = write_gallery(inputs, tmp_path, PairChoice())
    assert NO_GALLERY[case] in gallery.reason
    assert not gallery.pairs
    page = build_page(inputs, Built([], gallery))
    assert NO_GALLERY[case] in page.split('<section id="rest"')[1]


def test_gallery_verb_makes_it_and_takes_other_losses(tmp_path, monkeypatch):
    import benchmark.study
    from benchmark.__main__ import app

    monkeypatch.setattr(benchmark.study, "load_study", lambda name, results=None: SMALL)
    write_collected(made_up_inputs(SMALL), made_up_runs(SMALL), tmp_path)
    recorded(tmp_path)
    command = "gallery made_up --first sup_ap --second smooth_ap --results"
    done = CliRunner().invoke(app, [*command.split(), str(tmp_path)])
    assert done.exit_code == 0
    assert "SmoothAP against SupAP" in done.output
    assert "of 12 queries" in done.output
