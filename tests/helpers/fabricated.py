"""Run folders without training: a specification and the files that a finished or running run
leaves."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from made_up_records import TIMING, made_up_provenance, made_up_result

from benchmark.core.code_version import code_version
from benchmark.core.recipe import ModelConfig, Recipe, SamplerConfig
from benchmark.core.records import (
    METRICS,
    PROVENANCE,
    RESULT,
    SPEC,
    DatasetChoice,
    LossChoice,
    RunSpec,
    Setting,
)
from benchmark.core.results import BestScore, CurvePoint, EpochRecord, Metrics, Weights

DATASET, SETTING = "glyphs_tiny", "resnet10t"


def make_spec(
    loss: str = "smooth_ap", batch_size: int = 32, seed: int = 0, **params: object
) -> RunSpec:
    """Returns a complete specification."""
    return RunSpec(
        dataset=DatasetChoice(DATASET, DATASET, {"root": "/home/somebody/data/glyphs"}),
        setting=Setting(SETTING),
        loss=LossChoice(loss, loss, {"tau": 0.01, **params}),
        batch_size=batch_size,
        seed=seed,
        recipe=Recipe(
            model=ModelConfig(backbone="resnet10t"),
            sampler=SamplerConfig(name="m_per_class", params={"samples": 4}),
        ),
    )


def make_epochs(spec: RunSpec, epochs: int = 5) -> list[EpochRecord]:
    """Returns the lines of metrics.jsonl; values rise with the epoch and differ by seed."""
    return [
        EpochRecord(
            epoch=epoch,
            step=10 * epoch,
            loss=1.0 / epoch,
            learning_rate=0.002,
            images_per_second=500.0,
            loss_ms=0.5,
            seconds=2.0,
            evaluation={
                "test": {"recall_at_1": 0.5 + 0.05 * epoch + 0.01 * spec.seed, "map_at_r": 0.3}
            },
        )
        for epoch in range(1, epochs + 1)
    ]


def write_epochs(folder: Path, records: list[EpochRecord]) -> None:
    """Writes metrics.jsonl as training does: anew, atomically."""
    EpochRecord.write_all(folder / METRICS, records)


def write_run(
    results: Path, spec: RunSpec, *, status: str = "ok", code: str | None = None, epochs: int = 5
) -> Path:
    """Writes the folder of a finished run and returns it."""
    folder = Path(results) / spec.folder
    records = make_epochs(spec, epochs)
    if status == "diverged":
        records[-1] = dataclasses.replace(records[-1], loss=None, evaluation=None)
    version = code or code_version()
    best = records[-2].evaluation["test"]["recall_at_1"]
    spec.write(folder / SPEC)
    write_epochs(folder, records)
    made_up_provenance(
        spec,
        timing=dataclasses.replace(TIMING, total_seconds=11.0),
        platform="linux-x86_64-py3.11-torch2.13-cpu",
        code_version=version,
        weights=Weights("resnet10t", "/home/somebody/weights.pt", "c" * 16, 1000),
    ).write(folder / PROVENANCE)
    made_up_result(
        spec,
        status=status,
        reason="loss is nan at step 40" if status == "diverged" else "",
        epochs=epochs,
        steps=10 * epochs,
        metrics=Metrics(
            records[-1].evaluation or {}, {"test": {"recall_at_1": BestScore(best, epochs - 1)}}
        ),
        curve=[CurvePoint(item.epoch, item.loss, item.evaluation or {}) for item in records],
        code_version=version,
    ).write(folder / RESULT)
    return folder


def make_specs(losses: int = 2, seeds: int = 2) -> dict[str, RunSpec]:
    """Returns {run_id: specification} for a small grid."""
    names = [
        "smooth_ap",
        "sup_ap",
        "roadmap",
        "fast_ap",
        "softbin_ap",
        "triplet",
        "contrastive",
        "calibration",
    ]
    specs = [
        make_spec(loss, size, seed)
        for loss in names[:losses]
        for size in (32, 128)
        for seed in range(seeds)
    ]
    return {spec.run_id: spec for spec in specs}
