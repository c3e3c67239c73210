"""The benchmark measures what it says, and compares like with like."""

import importlib
import json
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from perf import bench, evaluation, gpu, losses, studies
from perf.timing import Target, peak_of_process

from benchmark.losses import LOSSES, create_loss


@pytest.mark.parametrize("name", ["smooth_ap", "sup_ap"])
def test_dense_alternatives_equal_the_losses_they_are_compared_with(name):
    rows, labels = losses.batch(24, 8)
    value, slope = gpu.backward(create_loss(name), rows.double(), labels)
    expected = gpu.backward(getattr(losses, f"dense_{name}"), rows.double(), labels)
    assert value.item() == pytest.approx(expected[0].item(), rel=1e-6)
    assert torch.allclose(slope, expected[1], rtol=1e-5, atol=1e-8)


def test_losses_and_evaluation_are_measured_beside_floor_and_library():
    rows = {row["method"]: row for row in losses.beside_library(16, 2, 1.0)}
    others = {losses.FLOOR, "PML FastAP", *losses.OURS}
    assert {losses.LIBRARY, "dense SmoothAP", "dense SupAP", *others} == set(rows)
    assert rows[losses.FLOOR]["times_floor"] == rows[losses.LIBRARY]["times_faster"] == 1.0
    assert others == {row["method"] for row in losses.beside_library(32, 1, 1.0, "quarter")}
    scores = {row["method"]: row for row in evaluation.measure(60, 60, 1, dim=8)}
    assert scores[evaluation.FLOOR]["times_floor"] == 1
    assert scores[evaluation.OURS]["peak_mb"] >= 0


def test_peak_of_process_sees_memory_that_is_given_back():
    grown = peak_of_process(lambda: len(bytearray(b"x") * (256 * 2**20)))
    assert grown > 200 * 2**20


OF_A_GPU = {part: module for part, (module, _) in gpu.PARTS.items()}


@pytest.mark.parametrize(("part", "module"), [*bench.PARTS.items(), *OF_A_GPU.items()])
def test_every_part_is_a_function_that_says_what_it_measures(part, module):
    measure = getattr(importlib.import_module(f"perf.{module}"), part)
    assert callable(measure)
    assert measure.__doc__


def test_a_part_that_fails_is_named_and_the_worst_number_is_shown(tmp_path, monkeypatch):
    def one(quick):
        costs = [Target("cost", value, 3, "x floor") for value in (2.0, 3.5, 1.0)]
        yield {"method": "a", "ms": 1234.5, "targets": costs}

    def two(quick):
        raise ValueError("no room")
        yield

    module = SimpleNamespace(one=one, two=two)
    monkeypatch.setattr(bench, "importlib", SimpleNamespace(import_module=lambda name: module))
    parts = dict.fromkeys(("two", "one"), "module")
    assert bench.run(parts, tmp_path, quick=True, threads=1, seconds={}) == (True, True)
    text = (tmp_path / "bench.md").read_text()
    assert "**two failed:** ValueError: no room" in text
    assert "| a | 1234 |" in text
    assert "| cost | 3.5 | at most 3 x floor | no |" in text


def test_rows_are_written_at_once_and_a_part_goes_on_after_them(tmp_path, monkeypatch):
    seen = []

    def part(quick, earlier):
        seen.append([row["item"] for row in earlier])
        for item in range(len(earlier), 3):
            assert len((tmp_path / "part.jsonl").read_text().splitlines()) == item
            yield {"item": item}

    module = SimpleNamespace(part=part)
    monkeypatch.setattr(bench, "importlib", SimpleNamespace(import_module=lambda name: module))
    settings = {"quick": True, "threads": 1, "going_on": ["part"]}
    # no time at all: no row begins after the first one
    assert bench.run({"part": ""}, tmp_path, **settings, seconds={"part": 0}) == (False, False)
    assert "**part began no row after 0 of its 0 s.**" in (tmp_path / "bench.md").read_text()
    assert bench.run({"part": ""}, tmp_path, **settings, seconds={}) == (False, False)
    assert seen == [[], [0]]
    rows = [json.loads(line) for line in (tmp_path / "part.jsonl").read_text().splitlines()]
    assert [row["item"] for row in rows] == [0, 1, 2]


@pytest.mark.long
def test_the_check_of_a_gpu_runs_in_miniature_on_a_cpu(tmp_path, monkeypatch):
    if gpu.CUDA:
        pytest.skip("there is a GPU")
    monkeypatch.setattr(gpu, "OWN", ["smooth_ap", "fast_ap"])
    assert gpu.main(tmp_path) == 0
    text = (tmp_path / "bench.md").read_text()
    assert "no GPU" in text
    assert all(f"## {part}\n" in text for part in gpu.PARTS)
    # the second call goes on with the networks, and measures one more
    first = (tmp_path / "networks.jsonl").read_text()
    assert gpu.main(tmp_path, ("networks",)) == 0
    both = (tmp_path / "networks.jsonl").read_text()
    assert both.startswith(first)
    assert len(both.splitlines()) == 2


def test_the_values_find_a_loss_that_leaves_autocast_on(monkeypatch):
    def careless(name, **options):
        return Careless()

    class Careless(torch.nn.Module):
        def forward(self, embeddings, labels):
            return losses.dense_smooth_ap(embeddings, labels)

    monkeypatch.setattr(gpu, "OWN", ["careless"])
    monkeypatch.setattr(gpu, "create_loss", careless)
    monkeypatch.setattr(losses, "batch", partial(smaller_batch, losses.batch))
    rows = {row["embeddings"]: row["targets"] for row in gpu.values(True)}
    assert all(bound.margin >= 1 for bound in rows["float32"])
    assert rows["bfloat16"][0].margin < 1


def smaller_batch(batch, size, dimension):
    return batch(size // 8, dimension)


def test_the_catalogue_has_every_loss_and_what_studies_make_of_it():
    cases = studies.cases()
    names = {entry.name for entry in LOSSES} - {"untrained"}
    assert {name for name, *_ in cases} == names
    assert [name for name, options, *_ in cases[: len(names)] if not options] == sorted(names)
    of_studies = cases[len(names) :]
    assert {"nonzero", "pairs"} <= {options.get("reduction") for _, options, *_ in of_studies}
    assert {(settings.micro_batch, settings.staged) for *_, settings, _ in of_studies} == {
        (None, False),
        (studies.PART, False),
        (studies.PART, True),
    }
    memories = {memory.key for *_, memory in of_studies if memory.size}
    assert memories == {"fifo", "image"}


def test_a_loss_that_fails_in_the_catalogue_is_named_and_the_others_go_on(monkeypatch):
    cases = [case for case in studies.cases() if case[0] in ("circle", "smooth_ap")][:2]
    monkeypatch.setattr(studies, "cases", lambda: cases)
    good = studies.create_loss

    def create(name, **options):
        if name == "circle":
            raise ValueError("no room")
        return good(name, **options)

    monkeypatch.setattr(studies, "create_loss", create)
    first, second = studies.catalogue(False)
    assert first["error"] == "ValueError: no room"
    assert first["targets"][0].margin < 1
    assert second["error"] == ""
    assert second["same_bits"] == second["finite"] == 1
    torch.use_deterministic_algorithms(False)
