from __future__ import annotations

import dataclasses

import pandas as pd
import pytest
from made_up_inputs import drawn, printed_inputs, sweep_study
from made_up_results import made_up_runs, run_table

from benchmark.published.loading import load_papers
from benchmark.published.paper import sweep_figures
from benchmark.report.drawing import to_svg
from benchmark.report.figures.printed_figures import paper_figures, title_of
from benchmark.study import load_study
from benchmark.verdicts.matching import StudyGrid
from benchmark.verdicts.pairs import typed
from benchmark.verdicts.printed import printed_of
from benchmark.verdicts.verdicts import VERDICT

BINS = {"paper": "fastap2019", "stated_in": "section 5.3"}
SLOPE = {"paper": "roadmap2021v2", "stated_in": "section 4.3, figure 4b"}


@pytest.fixture(scope="module")
def study():
    return sweep_study()


@pytest.fixture(scope="module")
def figures(study):
    claims = pd.DataFrame(
        [
            {
                "claim": "fast_ap_bins_hardly_matter",
                "reading": "published",
                "verdict": "not_run",
                **BINS,
            },
            {
                "claim": "fast_ap_bins_hardly_matter",
                "reading": "here",
                "verdict": "supported",
                **BINS,
            },
            {
                "claim": "rho_10_to_100_improves_on_smooth_ap",
                "reading": "here",
                "verdict": "inconclusive",
                **SLOPE,
            },
            {"claim": "large_rho_hurts", "reading": "here", "verdict": "supported", **SLOPE},
        ]
    )
    return built(study, claims=claims)


def built(study, epochs=8, claims=None):
    """Return the papers' figures of made-up runs by name."""
    nothing = typed({}, VERDICT)
    runs = run_table(made_up_runs(study, epochs=epochs))
    inputs = printed_inputs(study, printed_of(StudyGrid.of(study), runs, nothing, nothing), claims)
    return drawn(paper_figures(inputs))


def marks(drawing, panel):
    found = drawing.data[(drawing.data["side"] == "ours") & (drawing.data["panel"] == panel)]
    return found["x"].tolist()


def test_sweeps_over_hyperparameters_batches_and_options_take_the_right_runs(figures):
    losses = figures["sweeps_losses"]
    recipe = figures["sweeps_recipe"]
    assert marks(losses, "FastAP's bins") == [5, 10, 20]
    assert marks(recipe, "FastAP's batch size") == [32, 64, 128]
    assert marks(recipe, "images per class") == [4, 8]
    assert marks(recipe, "sampling") == [0, 1], "an axis of words has places, not numbers"
    assert set(figures["sweeps_convergence"].data["series"]) == {
        f"batch size {size}" for size in (32, 64, 128)
    }


def test_a_panel_says_what_its_claims_came_to_here(figures):
    axes = {
        each.get_title(loc="left").split("\n")[0]: each
        for each in figures["sweeps_losses"].figure.axes
    }
    assert (
        axes["FastAP's bins"].get_title(loc="left")
        == "FastAP's bins\nFastAP, section 5.3: supported"
    )
    slope = axes["SupAP's slope"].get_title(loc="left").split("\n", 1)[1].replace("\n", " ")
    assert slope == "ROADMAP, figure 4b: 1 supported, 1 inconclusive", (
        "claims of one place share a line"
    )
    assert "\n" not in axes["SupAP's temperature"].get_title(loc="left")
    assert "<svg" in to_svg(figures["sweeps_losses"])
    assert title_of(sweep_figures()[0], load_papers()).startswith("Sweeps")


def test_other_studies_on_the_same_data_do_not_show_the_sweeps(study):
    other = dataclasses.replace(study, name="embedded")
    assert not set(built(other)) & {each.name for each in sweep_figures()}


def test_every_panel_of_the_sweeps_has_runs_in_the_study_and_claims_that_exist():
    shipped = load_study("sweeps")
    found = built(shipped, 2)
    known = {claim.name for claim in load_papers().claims()}
    for figure in sweep_figures():
        assert not figure.source
        assert set(claim for panel in figure.panels for claim in panel.claims) <= known
        for panel in figure.panels:
            assert len(set(marks(found[figure.name], panel.title))) >= 2, panel.title
    assert load_papers().figures()[-len(sweep_figures()) :] == sweep_figures()
    assert all(figure.source for figure in load_papers().figures()[: -len(sweep_figures())])
