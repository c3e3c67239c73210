from __future__ import annotations

import json

import pandas as pd
import pytest
from made_up_inputs import (
    DIGEST,
    made_up_inputs,
    write_collected,
    write_neighbours_file,
    written_page,
)
from made_up_results import made_up_runs, made_up_study
from typer.testing import CliRunner

from benchmark.report.gallery import load_neighbours, write_gallery
from benchmark.report.page import gallery_section

STUDY = made_up_study(
    losses=("smooth_ap", "sup_ap"),
    batch_sizes=(32,),
    seeds=(0, 1),
    tables=("comparison",),
    figures=(),
)


def recorded(results, queries=(12, 12)):
    for seed, (loss, count) in enumerate(zip(("smooth_ap", "sup_ap"), queries, strict=True)):
        folder = results / "runs" / "glyphs_1k" / "r10" / loss / "bs32" / "seed0"
        write_neighbours_file(folder / "neighbours.npz", seed, queries=count)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    results = tmp_path_factory.mktemp("results")
    recorded(results)
    return results, write_gallery(made_up_inputs(STUDY), results)


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
    exact = load_neighbours(path, DIGEST).precisions
    assert table["sup_ap"].to_numpy() == pytest.approx(exact, abs=1e-5)
    pictures = [pair["first"], pair["second"]]
    for picture in pictures:
        assert picture["alt"].count("right at rank") == len(pair["queries"])
    assert {path.name for path in folder.iterdir()} == {
        *("gallery.json", "queries.csv", *(picture["file"] for picture in pictures))
    }
    assert all(query["name"].startswith("…/query") for query in pair["queries"])


def test_gallery_is_part_of_the_report_and_its_names_cannot_become_markup(made):
    results, gallery = made
    queries = gallery.pairs[0]["queries"]
    page = written_page(made_up_inputs(STUDY), results / "made_up", gallery)
    section = page.split('<section id="gallery"')[1].split("</section>")[0]
    assert section.count("data:image/png;base64,") == 2
    assert section.count('<th scope="row">') == len(queries)
    assert "<b>" not in section and "&lt;b&gt;" in section and "largest gain" in section
    assert "Download" in section and section.count("<img") == section.count('alt="')


def test_pictures_beyond_the_limit_stay_in_the_folder(made):
    everything = gallery_section(made[1])
    largest = max(map(len, everything["pairs"][0]["pictures"].values()))
    some = gallery_section(made[1], limit=largest)
    assert [len(each["pairs"][0]["pictures"]) for each in (everything, some)] == [2, 1]
    assert (everything["left_out"], some["left_out"]) == (0, 1)


@pytest.mark.parametrize("case", ["no files", "other queries", "another run", "no common seed"])
def test_a_gallery_that_cannot_be_made_says_why_in_its_place(tmp_path, case):
    bad = {("sup_ap", 32, seed): "missing" for seed in (0, 1)} if "seed" in case else None
    inputs = made_up_inputs(STUDY, bad=bad)
    if case == "other queries":
        recorded(tmp_path, queries=(12, 9))
    if case == "another run":
        recorded(tmp_path)
        inputs.runs["spec_digest"] = "f" * 16
    gallery = write_gallery(inputs, tmp_path)
    expected = {
        "no files": "does not exist",
        "other queries": "recorded different queries",
        "another run": f"is of specification {DIGEST}, the run of {'f' * 16}",
        "no common seed": "no seed has",
    }
    assert expected[case] in gallery.reason and not gallery.pairs
    page = written_page(inputs, tmp_path / "made_up", gallery)
    assert expected[case] in page.split('<section id="gallery"')[1].split("</section>")[0]


def test_gallery_verb_makes_it_and_takes_other_losses(tmp_path, monkeypatch):
    import benchmark.study
    from benchmark.__main__ import app

    monkeypatch.setattr(benchmark.study, "load_study", lambda name, results=None: STUDY)
    write_collected(made_up_inputs(STUDY), made_up_runs(STUDY), tmp_path)
    recorded(tmp_path)
    command = [
        "gallery",
        "made_up",
        "--first",
        "sup_ap",
        "--second",
        "smooth_ap",
        "--results",
        str(tmp_path),
    ]
    done = CliRunner().invoke(app, command)
    assert (
        done.exit_code == 0
        and "SmoothAP against SupAP" in done.output
        and "of 12 queries" in done.output
    )
