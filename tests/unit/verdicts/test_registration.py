"""The registered analysis: written once before the runs, never again, and every change named."""

from __future__ import annotations

import dataclasses
import json

import pytest
from made_up_results import made_up_study
from typer.testing import CliRunner

from benchmark.__main__ import app
from benchmark.core.records import RESULT
from benchmark.metrics.metric import METRICS
from benchmark.published.loading import load_papers
from benchmark.published.paper import Papers
from benchmark.report.notices import notices
from benchmark.stats import samples
from benchmark.study import load_study
from benchmark.study.grid import expand
from benchmark.verdicts import registration
from benchmark.verdicts.matching import StudyGrid
from benchmark.verdicts.registration import FILE, register, registration_state


@pytest.fixture
def study():
    return made_up_study(seeds=(0, 1))


def changes(study, results):
    return registration_state(StudyGrid.of(study), results).changes


def test_an_analysis_is_registered_before_the_first_run_and_nothing_has_changed(study, tmp_path):
    assert "was not registered" in registration_state(StudyGrid.of(study), tmp_path).words
    register(StudyGrid.of(study), tmp_path)
    assert json.loads((study.folder(tmp_path) / FILE).read_text())["runs_before"] == 0
    state = registration_state(StudyGrid.of(study), tmp_path)
    assert "before the first run; nothing that decides a verdict has changed" in state.words
    assert not state.changes


def test_a_registration_is_never_written_over(study, tmp_path):
    register(StudyGrid.of(study), tmp_path)
    before = (study.folder(tmp_path) / FILE).read_bytes()
    other = dataclasses.replace(study, metrics=("map",))
    register(StudyGrid.of(other), tmp_path)
    assert (study.folder(tmp_path) / FILE).read_bytes() == before
    assert changes(other, tmp_path) == (
        "comparison: metrics was ['recall_at_1', 'map_at_r', 'map'], is ['map']",
    )


def test_runs_that_had_ended_before_are_counted(study, tmp_path):
    for run in list(expand(study).values())[:3]:
        folder = tmp_path / run.spec.folder
        folder.mkdir(parents=True)
        (folder / RESULT).write_text("{}")
    register(StudyGrid.of(study), tmp_path)
    words = registration_state(StudyGrid.of(study), tmp_path).words
    assert "when 3 of the study's runs had already ended" in words


def test_every_kind_of_change_is_named(study, tmp_path, monkeypatch):
    register(StudyGrid.of(study), tmp_path)
    block = study.blocks[0]
    more = dataclasses.replace(
        study, seeds=(0, 1, 2), blocks=(dataclasses.replace(block, seeds=(0, 1, 2)),)
    )
    assert changes(more, tmp_path) == (f"seeds: {block.name} was [0, 1], is [0, 1, 2]",)
    training = dataclasses.replace(block.recipe.training, epochs=99)
    recipe = dataclasses.replace(block.recipe, training=training)
    longer = dataclasses.replace(study, blocks=(dataclasses.replace(block, recipe=recipe),))
    assert changes(longer, tmp_path) == (f"runs: {block.name} was edited",)
    looks = dataclasses.replace(study, looks=(2,))
    assert changes(looks, tmp_path) == ("looks: seeds at each was [], is [2]",)
    wide = dataclasses.replace(METRICS["map"], margin=((0.0, 2.0),))
    monkeypatch.setattr(registration, "METRICS", {"map": wide})
    found = changes(study, tmp_path)
    assert "margins: map from 0 was 1.0, is 2.0" in found
    assert "margins: recall_at_* from 95 was removed" in found
    monkeypatch.undo()
    monkeypatch.setattr(samples, "TIMES", 9.0)
    assert changes(study, tmp_path) == ("rule: lent, times its own was 2.0, is 9.0",)
    monkeypatch.undo()
    fewer = load_papers().claims("")[1:]
    monkeypatch.setattr(Papers, "claims", lambda papers, name: fewer)
    (gone,) = changes(study, tmp_path)
    assert gone.startswith("claims: ")
    assert gone.endswith(" was removed")


def test_going_on_to_a_planned_look_is_no_change(tmp_path):
    study = made_up_study(seeds=(0, 1))
    block = dataclasses.replace(study.blocks[0], all_seeds=(0, 1, 2, 3))
    first = dataclasses.replace(study, looks=(2, 4), all_seeds=(0, 1, 2, 3), blocks=(block,))
    register(StudyGrid.of(first), tmp_path)
    later = dataclasses.replace(block, seeds=(0, 1, 2, 3))
    second = dataclasses.replace(first, look=2, seeds=(0, 1, 2, 3), blocks=(later,))
    assert not changes(second, tmp_path)


def edit(study, results, changes):
    path = study.folder(results) / FILE
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_registration_of_schema_1_whose_digest_was_of_its_parts_is_read(study, tmp_path):
    register(StudyGrid.of(study), tmp_path)
    parts = json.loads((study.folder(tmp_path) / FILE).read_text())["parts"]
    edit(study, tmp_path, {"schema": 1, "digest": registration._digest(parts)})
    assert not changes(study, tmp_path)


def test_the_numbers_and_families_of_a_papers_study_are_registered():
    parts = registration.analysis_of(StudyGrid.of(load_study("listwise")))
    assert parts["selection"] == {"headline": "last epoch", "listwise2019": "last"}
    smooth_ap = registration.analysis_of(StudyGrid.of(load_study("smooth_ap")))
    assert smooth_ap["selection"]["smoothap2020"] == "best_recall_at_1"
    assert parts["families"]["listwise2019 table1"] >= 4
    assert len(parts["published numbers"]) == sum(
        count for name, count in parts["families"].items() if name.startswith("listwise")
    )


def test_the_verb_registers_and_says_what_changed(tmp_path):
    done = CliRunner().invoke(app, ["register-analysis", "smoke", "--results", str(tmp_path)])
    assert done.exit_code == 0
    assert "before the first run" in done.output
    assert (tmp_path / "smoke" / FILE).is_file()


def test_the_page_says_whether_anything_changed(study, tmp_path):
    from made_up_inputs import made_up_inputs, written_page

    inputs = made_up_inputs(study)
    register(StudyGrid.of(study), tmp_path)
    state = registration_state(StudyGrid.of(study), tmp_path)
    same = dataclasses.replace(inputs, registered=state)
    assert f"<dd>{state.words}</dd>" in written_page(same, tmp_path)
    assert not any("registered" in line for line in notices(same))
    other = registration_state(StudyGrid.of(dataclasses.replace(study, metrics=("map",))), tmp_path)
    told = notices(dataclasses.replace(inputs, registered=other))
    assert any("1 thing has changed since. comparison: metrics was" in line for line in told)
