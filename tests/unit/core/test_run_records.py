"""Records are written and read back; a damaged file is an error that names the path and the key."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from fabricated import make_epochs, make_spec
from made_up_records import made_up_provenance, made_up_result

from benchmark.core.cells import Cell, Setting
from benchmark.core.errors import RunError
from benchmark.core.records import RunSpec, digest_of
from benchmark.core.results import Costs, EpochRecord, Provenance, Result


@pytest.fixture
def spec() -> RunSpec:
    return make_spec()


def broken(path: Path, record: Result | Provenance, where: str, value: object) -> Path:
    """Writes ``record`` with another value at the dotted place ``where``."""
    record.write(path)
    data = json.loads(path.read_text())
    *parents, key = where.split(".")
    inner = data
    for parent in parents:
        inner = inner[int(parent) if isinstance(inner, list) else parent]
    if value is ...:
        del inner[key]
    else:
        inner[key] = value
    path.write_text(json.dumps(data))
    return path


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
    assert digest_of(path) == spec.digest and digest_of(tmp_path / "none.json") is None
    path.write_text(path.read_text().replace('"seed": 0', '"seed": 1'))
    assert digest_of(path) != spec.digest


def test_whole_numbers_of_a_recipe_keep_the_digest(spec, tmp_path):
    """1 and 1.0 are equal numbers with different bytes: reading must not change one into the
    other."""
    spec.write(tmp_path / "spec.json")
    data = json.loads((tmp_path / "spec.json").read_text())
    data["recipe"]["optimizer"]["lr"] = 1
    (tmp_path / "spec.json").write_text(json.dumps(data))
    assert RunSpec.read(tmp_path / "spec.json").digest == digest_of(tmp_path / "spec.json")


@pytest.mark.parametrize("value", [math.nan, math.inf, -0.1, 7, "high", "0.5", None, True, [0.5]])
@pytest.mark.parametrize("where", ["metrics.last.test.map", "curve.1.test.recall_at_1"])
def test_a_score_that_is_none_is_refused(spec, tmp_path, where, value):
    path = broken(tmp_path / "result.json", made_up_result(spec), where, value)
    with pytest.raises(RunError) as caught:
        Result.read(path)
    key = where.replace("curve.1.", "curve.1.scores.")
    assert str(path) in str(caught.value) and key in str(caught.value)


@pytest.mark.parametrize("value", [math.nan, None])
def test_a_loss_that_is_not_finite_belongs_to_a_diverged_run(spec, tmp_path, value):
    path = broken(tmp_path / "result.json", made_up_result(spec), "curve.1.loss", value)
    with pytest.raises(RunError, match="the loss of epoch 2"):
        Result.read(path)
    diverged = made_up_result(spec, status="diverged", reason="loss became nan")
    found = Result.read(broken(path, diverged, "curve.1.loss", value)).curve[1].loss
    assert found is None or math.isnan(found)


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("status", "great"),
        ("status", ...),
        ("spec_digest", "../../elsewhere"),
        ("spec_digest", "0123456789ABCDEF"),
        ("spec_digest", "0123456789abcdef\n"),
        ("epochs", "two"),
        ("epochs", True),
        ("metrics", None),
        ("metrics.best.test.recall_at_1", 0.5),
        ("dataset.counts", {"test": 9}),
        ("batch_stream", ...),
    ],
)
def test_another_shape_is_refused_by_the_name_of_its_key(spec, tmp_path, where, value):
    path = broken(tmp_path / "result.json", made_up_result(spec), where, value)
    with pytest.raises(RunError) as caught:
        Result.read(path)
    assert str(path) in str(caught.value) and where in str(caught.value)


@pytest.mark.parametrize(
    ("where", "value"), [("timing.total_seconds", "long"), ("memory", {}), ("packages.torch", 2)]
)
def test_provenance_of_another_shape_is_refused(spec, tmp_path, where, value):
    path = broken(tmp_path / "provenance.json", made_up_provenance(spec), where, value)
    with pytest.raises(RunError) as caught:
        Provenance.read(path)
    assert str(path) in str(caught.value) and where in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b"null", b"[" * 100_000])
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
    assert sorted([larger, cell]) == [cell, larger] and len({cell, cell, larger}) == 2


def test_of_very_many_wrong_values_the_number_is_told(spec, tmp_path):
    """Each of them in words takes a kilobyte: a file of 20 MB would fill the memory."""
    path = broken(tmp_path / "result.json", made_up_result(spec), "curve", [1] * 2000)
    with pytest.raises(RunError, match="2,000 of its values are wrong") as caught:
        Result.read(path)
    assert "curve" not in str(caught.value)
