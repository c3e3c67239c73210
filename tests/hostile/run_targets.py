"""Readers of what runs and steps leave: specifications, records, tables, checkpoints."""

from __future__ import annotations

import functools
import io
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from made_up_records import made_up_provenance, made_up_result

from benchmark.core.records import METRICS, PROVENANCE, RESULT, SPEC, RunSpec
from benchmark.core.results import EpochRecord, Provenance, Result
from benchmark.runs.collect import collect
from benchmark.runs.plan import plan
from benchmark.runs.specs import outdated, write_specs
from benchmark.runs.status import status_of
from benchmark.runs.study_provenance import read_study_provenance
from benchmark.runs.table import RunTable
from benchmark.runs.tracking.content import artifacts, final_points, final_tags, read_finished
from benchmark.study import Study, load_study
from benchmark.study.grid import expand
from hostile.study_targets import small_study
from hostile.targets import BYTES, JSON, TEXT, Target

EPOCH = EpochRecord(1, 10, 0.5, 1e-3, 100.0, 0.4, 2.0, {"test": {"recall_at_1": 0.5}})


@functools.cache
def study() -> Study:
    """Return a study of two runs, whose file is gone."""
    import yaml

    data = small_study(seeds=[0])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.yaml")
        path.write_text(yaml.safe_dump(data))
        return load_study(path)


def finish(results: Path) -> None:
    """Write the folders of finished runs of the study."""
    runs = expand(study())
    write_specs(runs, results)
    for run in runs.values():
        folder = results / run.spec.folder
        made_up_result(run.spec).write(folder / RESULT)
        made_up_provenance(run.spec).write(folder / PROVENANCE)
        EpochRecord.write_all(folder / METRICS, [EPOCH])


def read_record(file: str) -> Callable[[Path, bytes], None]:
    """Return a reader of one file of a run folder, through every step that looks at it."""

    def read(results: Path, content: bytes) -> None:
        runs = expand(study())
        run, other = runs.values()
        path = results / run.spec.folder / file
        good = path.read_bytes()
        path.write_bytes(content)
        try:
            counts = collect(study(), results)
            assert counts["ok"] >= 1, "one damaged run spoiled the other"
            assert status_of(other, results).status == "ok"
            RunTable.read(study().folder(results))
            plan(study(), results)
            outdated(runs, results)
            if finished := read_finished(run.spec, path.parent):
                final_points(finished), final_tags(finished), artifacts(run.spec, finished)
            write_specs(runs, results)
            if file == SPEC:
                path.write_bytes(content)
                RunSpec.read(path)
        finally:
            path.write_bytes(good)

    return read


def parse(reader: Callable[[Path], object]) -> Callable[[Path, bytes], None]:
    """Return a reader of one record alone, which is much faster than all steps."""

    def read(folder: Path, content: bytes) -> None:
        (folder / "x.json").write_bytes(content)
        reader(folder / "x.json")

    return read


@functools.cache
def record_seeds(file: str) -> Callable[[], Mapping[str, bytes]]:
    """Return a function that gives a good file of that name."""

    @functools.cache
    def seeds() -> Mapping[str, bytes]:
        with tempfile.TemporaryDirectory() as folder:
            finish(Path(folder))
            run = next(iter(expand(study()).values()))
            return {file: (Path(folder) / run.spec.folder / file).read_bytes()}

    return seeds


def read_table(file: str) -> Callable[[Path, bytes], None]:
    """Return a reader of one of the two tables of a study, through its views."""

    def read(results: Path, content: bytes) -> None:
        folder = study().folder(results)
        path = folder / file
        good = path.read_bytes()
        path.write_bytes(content)
        try:
            table = RunTable.read(folder)
            for cell in table.cells():
                table.settings(cell)
            for view in (table.statuses, table.attempts, table.test_scores, table.costs):
                view()
        finally:
            path.write_bytes(good)

    return read


def _collected(results: Path) -> None:
    finish(results)
    collect(study(), results)


@functools.cache
def table_seeds(file: str) -> Callable[[], Mapping[str, bytes]]:
    """Return a function that gives a good table of that name."""

    @functools.cache
    def seeds() -> Mapping[str, bytes]:
        with tempfile.TemporaryDirectory() as folder:
            _collected(Path(folder))
            return {file: (study().folder(Path(folder)) / file).read_bytes()}

    return seeds


def read_checkpoint(folder: Path, content: bytes) -> None:
    """Continue from a checkpoint; it is always refused with a message or read."""
    from benchmark.training.checkpoint import CHECKPOINT, Identity, load_checkpoint

    path = folder / CHECKPOINT
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    state, message = load_checkpoint(folder, Identity("0", "0", "0", "0"))
    assert message or state is None


def read_weights(folder: Path, content: bytes) -> None:
    """Read the weights of a network and fit them to another."""
    import torch

    from benchmark.models.vision_ops import prepare_torchvision
    from benchmark.models.weights import load_weights, read_checkpoint

    prepare_torchvision()
    path = folder / "x.pth"
    path.write_bytes(content)
    network = torch.nn.Linear(2, 2)
    network.default_cfg = {}
    load_weights(network, read_checkpoint(str(path)), "x.pth")


def torch_seeds() -> Mapping[str, bytes]:
    """Return a checkpoint as training writes it, and a state dict."""
    import torch

    network = torch.nn.Linear(2, 2)
    identity = dict.fromkeys(("spec_digest", "code_version", "dataset_fingerprint"), "0")
    identity["platform"] = "0"
    state = {"epoch": 1, "position": 3, "model": network.state_dict()}
    contents = {
        "checkpoint": {"identity": identity, "state": state},
        "weights": network.state_dict(),
        "wrapped": {"state_dict": network.state_dict()},
    }
    seeds = {}
    for name, value in contents.items():
        stream = io.BytesIO()
        torch.save(value, stream)
        seeds[name] = stream.getvalue()
    return seeds


READERS = (RunSpec.read, Result.read, Provenance.read)
RECORDS = (SPEC, RESULT, PROVENANCE, METRICS)
TARGETS = (
    *(
        Target(f"record {name}", read_record(name), record_seeds(name), JSON, finish)
        for name in RECORDS[:3]
    ),
    *(
        Target(f"parse {name}", parse(reader), record_seeds(name), JSON, share=0.3)
        for name, reader in zip(RECORDS, READERS, strict=False)
    ),
    Target(f"record {METRICS}", read_record(METRICS), record_seeds(METRICS), TEXT, finish),
    *(
        Target(f"table {name}", read_table(name), table_seeds(name), TEXT, _collected)
        for name in ("runs.csv", "scores.csv")
    ),
    Target("checkpoint", read_checkpoint, torch_seeds, BYTES),
    Target("weights", read_weights, torch_seeds, BYTES),
    Target(
        "study provenance",
        parse(read_study_provenance),
        table_seeds("provenance.json"),
        JSON,
    ),
)
