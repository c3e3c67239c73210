"""Run folders without training: a specification and the files that a finished or running run leaves."""

from __future__ import annotations

import json
from pathlib import Path

from benchmark.core.files import write_json, write_text
from benchmark.core.provenance import code_version
from benchmark.core.recipe import complete_recipe
from benchmark.core.records import METRICS, PROVENANCE, RESULT, SPEC, RunSpec, run_id

DATASET, SETTING = "glyphs_tiny", "resnet10t"


def make_spec(
    loss: str = "smooth_ap", batch_size: int = 32, seed: int = 0, **params: object
) -> RunSpec:
    """Returns a complete specification."""
    recipe = {
        "model": {"backbone": "resnet10t"},
        "sampler": {"name": "m_per_class", "params": {"samples": 4}},
    }
    return RunSpec(
        run_id=run_id(DATASET, SETTING, loss, batch_size, seed),
        dataset={"name": DATASET, "params": {"root": "/home/somebody/data/glyphs"}},
        setting=SETTING,
        loss={"name": loss, "variant": loss, "params": {"tau": 0.01, **params}},
        batch_size=batch_size,
        seed=seed,
        recipe=complete_recipe(recipe),
    )


def make_epochs(spec: RunSpec, epochs: int = 5) -> list[dict]:
    """Returns the lines of metrics.jsonl; values rise with the epoch and differ by seed."""
    return [
        {
            "epoch": epoch,
            "step": 10 * epoch,
            "loss": 1.0 / epoch,
            "learning_rate": 0.002,
            "images_per_second": 500.0,
            "loss_ms": 0.5,
            "seconds": 2.0,
            "evaluation": {
                "test": {"recall_at_1": 0.5 + 0.05 * epoch + 0.01 * spec.seed, "map_at_r": 0.3}
            },
        }
        for epoch in range(1, epochs + 1)
    ]


def write_epochs(folder: Path, lines: list[dict]) -> None:
    """Writes metrics.jsonl as training does: anew, atomically."""
    write_text(folder / METRICS, "".join(json.dumps(line) + "\n" for line in lines))


def write_run(
    results: Path, spec: RunSpec, *, status: str = "ok", code: str | None = None, epochs: int = 5
) -> Path:
    """Writes the folder of a finished run and returns it."""
    folder = Path(results) / spec.folder
    lines = make_epochs(spec, epochs)
    if status == "diverged":
        lines[-1] |= {"loss": None, "evaluation": None}
    version = code or code_version()
    last = lines[-1]["evaluation"] or {}
    best = lines[-2]["evaluation"]["test"]["recall_at_1"]
    spec.write(folder / SPEC)
    write_epochs(folder, lines)
    write_json(
        folder / PROVENANCE,
        {
            "timing": {"total_seconds": 11.0, "images_per_second": 500.0},
            "memory": {"peak_rss_mb": 300.0},
            "platform": "linux-x86_64-py3.11-torch2.13-cpu",
            "code_version": version,
            "weights": {"checkpoint": "/home/somebody/weights.pt"},
        },
    )
    result = {
        "schema": 1,
        "run_id": spec.run_id,
        "spec_digest": spec.digest,
        "status": status,
        "reason": "loss is nan at step 40" if status == "diverged" else "",
        "epochs": epochs,
        "steps": 10 * epochs,
        "metrics": {
            "last": last,
            "best": {"test": {"recall_at_1": {"value": best, "epoch": epochs - 1}}},
        },
        "curve": [
            {"epoch": line["epoch"], "loss": line["loss"], **(line["evaluation"] or {})}
            for line in lines
        ],
        "dataset": {"name": DATASET, "fingerprint": "f" * 16, "counts": {}},
        "code_version": version,
    }
    write_json(folder / RESULT, result)
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
