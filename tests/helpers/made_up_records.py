"""Runs that nobody trained: their records with made-up numbers, and the files that they leave."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

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
)  # fmt: skip
from benchmark.core.results import (
    BatchStream,
    BestScore,
    CurvePoint,
    DatasetContent,
    EpochRecord,
    Hardware,
    MemoryUse,
    Metrics,
    Numerics,
    Provenance,
    Result,
    Timing,
    Weights,
)

TIMING = Timing(
    startup_seconds=2.0,
    train_seconds=8.0,
    eval_seconds=2.0,
    total_seconds=12.0,
    images_per_second=500.0,
    loss_ms=0.5,
    resumed=0,
)


def made_up_recipe(
    backbone: str = "resnet10t",
    embedding_dim: int | None = None,
    sampler: str = "random",
    **sampling: Any,
) -> Recipe:
    """Return a recipe with the defaults of everything else; ``sampling`` are the sampler's
    parameters."""
    return Recipe(
        model=ModelConfig(backbone=backbone, embedding_dim=embedding_dim),
        sampler=SamplerConfig(name=sampler, params=sampling),
    )


def made_up_result(spec: RunSpec, value: float = 0.5, **changes: Any) -> Result:
    """Return a result of two epochs, the first of which scores 0.1 more; ``changes`` replace
    fields."""
    scores = [{"recall_at_1": value + 0.1}, {"recall_at_1": value}]
    result = Result(
        run_id=spec.run_id,
        spec_digest=spec.digest,
        code_version="0.1.0+aaa",
        status="ok",
        reason="",
        epochs=2,
        steps=20,
        metrics=Metrics(
            {"test": {**scores[-1], "map": 0.25}},
            {"test": {"recall_at_1": BestScore(value + 0.1, 1)}},
        ),
        curve=[
            CurvePoint(number, 1 - number / 10, {"test": metrics})
            for number, metrics in enumerate(scores, start=1)
        ],
        batch_stream=BatchStream(20, "b" * 64),
        dataset=DatasetContent(spec.dataset.name, "f00d", {"test": {"images": 9}}),
    )
    return dataclasses.replace(result, **changes)


def made_up_provenance(spec: RunSpec, **changes: Any) -> Provenance:
    """Return the provenance of a run on one CPU; ``changes`` replace fields."""
    provenance = Provenance(
        run_id=spec.run_id,
        spec_digest=spec.digest,
        code_version="0.1.0+aaa",
        timing=TIMING,
        memory=MemoryUse(peak_rss_mb=700.0, peak_gpu_mb=0.0),
        platform="linux-cpu",
        hardware=Hardware("some", 4, 2, 7.5, []),
        machines=["some (AVX2)"],
        packages={"torch": "2.13.0"},
        package_digests=["0123456789ab"],
        weights=Weights(spec.recipe.model.backbone, "from scratch", "c" * 16, 1000),
        numerics=Numerics("cpu", "float32", 1, "portable AVX2", True),
    )
    return dataclasses.replace(provenance, **changes)


DATASET = "glyphs_tiny"
SETTING = "resnet10t"
GRID = ("smooth_ap", "sup_ap", "roadmap", "fast_ap", "softbin_ap", "triplet", "contrastive")


def make_spec(
    loss: str = "smooth_ap", batch_size: int = 32, seed: int = 0, **params: object
) -> RunSpec:
    """Return a complete specification."""
    return RunSpec(
        dataset=DatasetChoice(DATASET, DATASET, {"root": "/home/somebody/data/glyphs"}),
        setting=Setting(SETTING),
        loss=LossChoice(loss, loss, {"tau": 0.01, **params}),
        batch_size=batch_size,
        seed=seed,
        recipe=made_up_recipe(sampler="m_per_class", samples=4),
    )


def make_specs(losses: int = 2, seeds: int = 2) -> dict[str, RunSpec]:
    """Return {run_id: specification} for a small grid."""
    cells = [(loss, size) for loss in GRID[:losses] for size in (32, 128)]
    specs = [make_spec(*cell, seed) for cell in cells for seed in range(seeds)]
    return {spec.run_id: spec for spec in specs}


def make_epochs(spec: RunSpec, epochs: int = 5) -> list[EpochRecord]:
    """Return the lines of metrics.jsonl; values rise with the epoch and differ by seed."""
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
    """Write metrics.jsonl as training does: anew, atomically."""
    EpochRecord.write_all(folder / METRICS, records)


def write_run(
    results: Path, spec: RunSpec, *, status: str = "ok", code: str | None = None, epochs: int = 5
) -> Path:
    """Write the folder of a finished run and return it."""
    folder = Path(results) / spec.folder
    records = make_epochs(spec, epochs)
    if status == "diverged":
        records[-1] = dataclasses.replace(records[-1], loss=None, evaluation=None)
    version = code or code_version()
    best = BestScore(records[-2].evaluation["test"]["recall_at_1"], epochs - 1)
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
        metrics=Metrics(records[-1].evaluation or {}, {"test": {"recall_at_1": best}}),
        curve=[CurvePoint(item.epoch, item.loss, item.evaluation or {}) for item in records],
        code_version=version,
    ).write(folder / RESULT)
    return folder
