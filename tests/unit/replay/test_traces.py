"""A trace is a stranger's file, the recorder changes no bit, and two traces are compared."""

from __future__ import annotations

import json
import subprocess
import sys

import planted
import pytest
import torch
from test_replayed_faults import causes, recipe_of
from tiny_runs import curve, tiny_spec, write_spec_in

from benchmark.core.records import RESULT, LossChoice
from benchmark.replay.comparison import against_recipe, against_trace, expected
from benchmark.replay.recorder import Recorder
from benchmark.replay.trace import read_trace
from benchmark.training.run import train

SMOOTH_AP = LossChoice("smooth_ap", "smooth_ap", {"tau": 0.01, "include_query": True})


@pytest.fixture
def trace(tmp_path):
    return planted.train(tmp_path / "trace.pt")


def judged(path) -> list:
    return list(against_recipe(read_trace(path), recipe_of("smooth_ap", {}), SMOOTH_AP, 24))


def changed(path, change) -> None:
    content = torch.load(path, weights_only=True)
    change(content)
    torch.save(content, path)


def test_a_trace_that_is_cut_off_is_said_to_be(trace, messages):
    trace.write_bytes(trace.read_bytes()[:5000])
    with messages.raised():
        read_trace(trace)


def test_a_trace_of_another_version_is_said_to_be(trace, messages):
    changed(trace, lambda content: content.update(version=99))
    with messages.raised():
        read_trace(trace)


@pytest.mark.parametrize("content", [torch.zeros(3), {}, {"version": 1}, [1]])
def test_what_is_no_trace_is_said_to_be_none(tmp_path, content, messages):
    torch.save(content, tmp_path / "trace.pt")
    with messages.raised():
        read_trace(tmp_path / "trace.pt")


def test_code_in_a_trace_is_not_run(tmp_path):
    class Evil:
        def __reduce__(self):
            return (print, ("run",))

    torch.save({"version": 1, "steps": [Evil()]}, tmp_path / "trace.pt")
    with pytest.raises(Exception, match="no trace"):
        read_trace(tmp_path / "trace.pt")


def test_what_is_not_finite_is_named_and_the_rest_is_judged(trace):
    def change(content):
        content["steps"][1]["embeddings"][0, 0] = torch.nan

    changed(trace, change)
    assert read_trace(trace).problems == ["steps 2 embeddings is not finite, and left out"]
    assert {x.outcome for x in judged(trace)} == {"equal"}


@pytest.mark.parametrize(
    ("key", "part"),
    [
        ("labels", "loss"),
        ("embeddings", "network"),
        ("inputs", "input"),
        ("updates", "update of the head"),
        ("gradients", "gradient"),
        ("loss", "loss"),
    ],
)
def test_a_part_that_is_missing_is_said_and_the_rest_is_judged(trace, key, part):
    def change(content):
        for step in content["steps"]:
            del step[key]

    changed(trace, change)
    outcomes = {x.part: x.outcome for x in judged(trace)}
    assert outcomes[part] in ("not recorded", "not decided")
    assert "equal" in outcomes.values()
    assert "differs" not in outcomes.values()


def test_the_recorder_changes_no_bit_of_a_run(tmp_path):
    results = []
    for name, steps in (("plain", 0), ("traced", 3)):
        folder = tmp_path / name
        folder.mkdir()
        spec = write_spec_in(folder, tiny_spec("cosine_contrastive", memory={"size": -1}))

        def recorder(folder=folder, steps=steps, **parts):
            return Recorder(folder / "trace.pt", steps=steps, **parts)

        train(spec, recorder=recorder if steps else None)
        results.append(((folder / RESULT).read_bytes(), curve(folder)))
    assert results[0] == results[1]
    wanted = expected(str(tmp_path / "traced" / "spec.json"), None, {})
    found = list(against_recipe(read_trace(tmp_path / "traced" / "trace.pt"), *wanted))
    assert {x.outcome for x in found} == {"equal"}, found


def test_two_traces_of_one_program_part_where_it_was_changed(tmp_path):
    paths = [tmp_path / name for name in "abc"]
    planted.train(paths[0])
    planted.train(paths[1])
    planted.train(paths[2], head=1.0 + 1e-4)
    same = against_trace(*map(read_trace, paths[:2]))
    assert {x.outcome for x in same} == {"equal"}
    found = against_trace(read_trace(paths[0]), read_trace(paths[2]))
    assert (found[0].part, found[0].says) == ("update", "from step 1 on")
    assert found[0].size < 1e-4
    assert found[1].part == "network"  # of the step behind


def test_the_command_prints_the_recorder_and_compares(trace, tmp_path):
    def call(*words) -> str:
        command = [sys.executable, "-m", "benchmark", "replay", *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    source = call("--recorder")
    assert "import benchmark" not in source
    assert "from benchmark" not in source
    compile(source, "recorder.py", "exec")
    spec = write_spec_in(tmp_path, tiny_spec("smooth_ap"))
    answer = json.loads(call(trace, "--as", spec, "--json"))
    assert answer["first"] == "batch"  # tiny_spec has batches of 32
    assert {"part", "outcome", "size", "cause"} <= set(answer["rows"][0])
    assert "No part differs" in call(trace, trace)


def test_a_recipe_alone_has_no_loss_and_no_batch_size(trace):
    recipe, loss, size = expected("glyphs_test_resnet", None, {})
    assert (loss, size) == (None, None)
    found = list(against_recipe(read_trace(trace), recipe, loss, size))
    assert [x.outcome for x in found if x.part == "loss"] == ["not decided"]
    assert causes(found)[0] == "other_image_size"


def test_parameters_that_do_not_learn_and_updates_without_gradients_are_left_out(tmp_path):
    network = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 3))
    network[0].requires_grad_(False)
    other = torch.nn.Linear(2, 2)
    optimizers = [torch.optim.SGD(each.parameters(), lr=0.1) for each in (other, network)]
    recorder = Recorder(tmp_path / "trace.pt", model=network, optimizers=optimizers)
    for _ in range(2):
        rows = network(torch.ones(6, 4))
        loss = rows.square().sum()
        recorder.step(inputs=None, labels=range(6), embeddings=rows, loss=loss)
        loss.backward()
        for optimizer in (*optimizers, *optimizers):  # of the last two no gradient is new
            optimizer.step()
    recorder.close()
    trace = read_trace(tmp_path / "trace.pt")
    assert list(trace.shapes) == ["model.1.weight", "model.1.bias"]
    assert [len(step.updates) for step in trace.steps] == [1, 1]
    (update,) = trace.steps[0].updates
    assert torch.allclose(update.after, update.before - 0.1 * update.gradient)


@pytest.mark.parametrize("source", ["mine.yaml", "recipes/none.yaml"])
def test_a_recipe_of_a_file_lies_in_a_folder_of_recipes(tmp_path, monkeypatch, source, messages):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recipes").mkdir()
    for place in (".", "recipes"):  # a file of the same name is not taken in its place
        (tmp_path / place / "mine.yaml").write_text("extends: glyphs_test_resnet\n")
    with messages.raised():
        expected(source, None, {})
    assert expected("recipes/mine.yaml", None, {})[0].model.backbone == "test_resnet"


def test_a_trace_that_nobody_wrote_is_said_to_be_missing(tmp_path, messages):
    with messages.raised():
        read_trace(tmp_path / "trace.pt")
