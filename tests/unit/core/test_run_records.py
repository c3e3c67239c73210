"""Records are written and read back; a damaged file is an error that names the path and the key."""

from __future__ import annotations

import json

import numpy as np
import pytest
from made_up_records import made_up_provenance, made_up_result, make_epochs, make_spec

from benchmark.core.errors import RunError
from benchmark.core.records import Cell, RunSpec, Setting, digest_of
from benchmark.core.results import (
    Costs,
    EpochRecord,
    Provenance,
    QueryScores,
    Result,
    joined,
    read_query_scores,
    write_query_scores,
)
from benchmark.study import load_study
from benchmark.study.grid import expand


@pytest.fixture
def spec() -> RunSpec:
    return make_spec()


def test_every_record_is_read_back_as_it_was_written(spec, tmp_path):
    for record in (spec, made_up_result(spec), made_up_provenance(spec)):
        record.write(tmp_path / "record.json")
        assert type(record).read(tmp_path / "record.json") == record
    records = make_epochs(spec)
    EpochRecord.write_all(tmp_path / "metrics.jsonl", records)
    assert EpochRecord.read_all(tmp_path / "metrics.jsonl") == records


def test_the_digest_of_a_file_is_that_of_its_specification(spec, tmp_path):
    path = tmp_path / "spec.json"
    spec.write(path)
    assert digest_of(path) == spec.digest
    assert digest_of(tmp_path / "none.json") is None
    path.write_text(path.read_text().replace('"seed": 0', '"seed": 1'))
    assert digest_of(path) != spec.digest


@pytest.mark.parametrize("name", ["roadmap", "listwise"])
def test_the_specifications_of_a_study_are_read_back(name, tmp_path):
    runs = expand(load_study(name)).values()
    for spec in {run.spec.setting: run.spec for run in runs}.values():
        spec.write(tmp_path / "spec.json")
        assert RunSpec.read(tmp_path / "spec.json") == spec


def test_whole_numbers_of_a_recipe_keep_the_digest(spec, tmp_path):
    """1 and 1.0 are equal numbers with different bytes: reading must not change one into the
    other."""
    spec.write(tmp_path / "spec.json")
    data = json.loads((tmp_path / "spec.json").read_text())
    data["recipe"]["optimizer"]["lr"] = 1
    (tmp_path / "spec.json").write_text(json.dumps(data))
    assert RunSpec.read(tmp_path / "spec.json").digest == digest_of(tmp_path / "spec.json")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b"null"])
def test_what_is_no_record_is_an_error_that_names_the_file(tmp_path, content):
    path = tmp_path / "file.json"
    path.write_bytes(content)
    for read in (Result.read, Provenance.read, RunSpec.read):
        with pytest.raises(RunError, match=r"file\.json"):
            read(path)


def test_costs_are_time_and_memory_together(spec):
    provenance = made_up_provenance(spec)
    costs = provenance.costs
    assert isinstance(costs, Costs)
    assert (costs.loss_ms, costs.peak_rss_mb, costs.peak_gpu_mb) == (0.5, 700.0, 0.0)


def test_cells_name_their_runs_and_are_ordered():
    cell = Cell("sop", Setting("resnet50", ("sota", "long")), "roadmap", "roadmap", 64)
    assert cell.run_id(3) == "sop/resnet50~sota~long/roadmap/bs64/seed3"
    assert Setting.from_label(cell.setting.label) == cell.setting
    larger = Cell("sop", Setting("resnet50", ("sota", "long")), "roadmap", "roadmap", 128)
    assert sorted([larger, cell]) == [cell, larger]
    assert len({cell, cell, larger}) == 2


DIGEST = "0123456789abcdef"
NEAREST = np.array([1, 3, 1, 20])
AVERAGE = np.array([1.0, 0.5, 0.75, 0.05])
SCORES = QueryScores(
    np.arange(4), np.array([7, 7, 9, 9]), NEAREST, {"map": AVERAGE, "map_at_r": AVERAGE / 2}
)


@pytest.fixture
def folder(tmp_path):
    write_query_scores(tmp_path, DIGEST, {"test": SCORES})
    return tmp_path


def test_recall_at_any_k_and_averages_come_back(folder):
    found = read_query_scores(folder, DIGEST)["test"]
    assert found.of("recall_at_1").tolist() == [1, 0, 1, 0]
    assert found.of("recall_at_10").tolist() == [1, 1, 1, 0]
    assert found.of("map") == pytest.approx(AVERAGE)
    assert found.of("loss") is None
    assert found.label.tolist() == [7, 7, 9, 9]


def test_a_run_from_before_the_file_has_none(tmp_path):
    assert read_query_scores(tmp_path, DIGEST) is None


def test_repeats_are_joined_under_the_numbers_of_their_queries():
    found = joined([SCORES, SCORES], [np.arange(4), np.array([3, 2, 1, 0])])
    assert found.query.tolist() == [0, 1, 2, 3, 3, 2, 1, 0]
    assert found.of("map").mean() == pytest.approx(0.575)


def test_scores_of_another_specification_are_none(folder):
    assert read_query_scores(folder, "f" * 16) is None
