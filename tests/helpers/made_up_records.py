"""Records of runs that nobody trained: specifications' results and provenance with made-up
numbers."""

from __future__ import annotations

import dataclasses
from typing import Any

from benchmark.core.recipe import ModelConfig, Recipe, SamplerConfig
from benchmark.core.records import RunSpec
from benchmark.core.results import (
    BatchStream,
    BestScore,
    CurvePoint,
    DatasetContent,
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
        numerics=Numerics("cpu", "float32", 1, None, True),
    )
    return dataclasses.replace(provenance, **changes)
