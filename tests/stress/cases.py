"""What is killed: every loss, the memory, every sampler, multi-stage backpropagation and images in
files, each in a run of seconds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from archives import save
from tiny_runs import tiny_spec

from benchmark.core.records import DatasetChoice, RunSpec
from benchmark.input.samplers import SAMPLERS
from benchmark.losses import LOSSES

# Two epochs, and a checkpoint after every step, so that a kill finds something to tear.
TRAINING = {"epochs": 2, "checkpoint_seconds": 0.0}
FROZEN = {"freeze_batch_norm": True}
SAMPLER_PARAMS = {
    "m_per_class": {"samples_per_class": 4},
    "category_pairs": {"samples_per_class": 8, "batches_per_pair": 2},
    "random": {},
    "class_windows": {},
    "category_windows": {},
    "category_and_rest": {},
    "mined_triplets": {"pool": 60, "triplets": 64},
}
# Glyphs have no category of the classes without one: those of the folder ``plugins`` beside this
# file have.
WITH_REST = {"name": "glyphs_with_rest", "params": {}}


def cases() -> dict[str, RunSpec]:
    """Returns the specification of each case by its name; that of a loss alone is the loss's
    name."""
    trained = [each.name for each in LOSSES if each.facts["kind"] not in ("none", "triplets")]
    found = {name: tiny_spec(name, training=TRAINING) for name in trained}
    found |= {
        f"sampler {name}": tiny_spec(
            "smooth_ap", training=TRAINING, sampler={"name": name, "params": params}
        )
        for name, params in SAMPLER_PARAMS.items()
    }
    rest = "sampler category_and_rest"
    found[rest] = replace(found[rest], dataset=WITH_REST)
    found["memory by image"] = tiny_spec("roadmap", training=TRAINING, memory={"size": -1})
    late = {"size": 100, "key": "fifo", "start_epoch": 1.0}
    found["memory fifo, noise"] = tiny_spec("blackbox_ap", training=TRAINING, memory=late)
    parts = {**TRAINING, "micro_batch": 12}
    found["micro-batches"] = tiny_spec("smooth_ap", training=parts, model=FROZEN)
    found["files, workers"] = _on_files()
    found["micro-batches, memory"] = tiny_spec(
        "contrastive", training=parts, model=FROZEN, memory={"size": -1}
    )
    return found


def with_pictures(spec: RunSpec, root: Path) -> RunSpec:
    """Returns ``spec``; one on a folder gets ``root``, where twelve classes of twelve small JPEGs
    are written."""
    if spec.dataset.name != "folder":
        return spec
    for label in range(12):
        for number in range(12):
            save(root / f"class{label}" / f"{number}.jpg", seed=12 * label + number, size=(44, 40))
    return replace(spec, dataset=DatasetChoice("folder", "folder", {"root": str(root)}))


def _on_files() -> RunSpec:
    """Returns a run whose images are decoded and augmented by two other processes."""
    images = {
        "augmentation": "crop_flip",
        "image_size": 32,
        "mean": [0.5],
        "std": [0.5],
        "workers": 2,
    }
    spec = tiny_spec("smooth_ap", training=TRAINING, model={"channels": 3}, input=images)
    return replace(spec, dataset=DatasetChoice("folder", "folder", {}), batch_size=16)


def missing_samplers() -> set[str]:
    """Returns the registered samplers that have no case."""
    return set(SAMPLERS.names()) - set(SAMPLER_PARAMS)
