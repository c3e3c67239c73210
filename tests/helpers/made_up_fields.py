"""Fields of made-up trials and final runs: of glyphs, and of features in a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from made_up_results import BEST, made_up_finals, made_up_trials

from benchmark.runs.field import freeze_field
from benchmark.runs.run_table import RunTable
from benchmark.study import Study, load_study
from benchmark.study.manifest import MANIFEST, content_digest

RECIPE = {
    "label": "test_resnet",
    "model": {"backbone": "test_resnet", "channels": 1},
    "optimizer": {"lr": 0.001},
    "sampler": {"name": "m_per_class", "params": {"samples_per_class": 4}},
    "evaluation": {"recall_at": [1]},
}
HEAD = {
    **RECIPE,
    "model": {"backbone": "features", "freeze_backbone": True, "embedding_dim": 4},
}
STUDY = {
    "study": "made_up",
    "title": "Made-up losses at equal trials",
    "question": "Which is best?",
    "seeds": [0],
    "rules": {"trials": [1, 4], "folds": 2, "final_seeds": 3},
    "metrics": ["map_at_r"],
    "comparison": {"baseline": "smooth_ap"},
}
COMPUTED = {
    "reason": "",
    "spec_digest": "0123",
    "code_version": "1",
    "platform": "linux",
    "kernels": "portable AVX2",
    "processor": "some",
}
BLOCK = {
    "name": "main",
    "recipe": "tiny",
    "losses": list(BEST),
    "batch_sizes": [32],
}


def study_with_rules(folder: Path, features: dict[str, Any] | None = None) -> Study:
    """Return the study, written to ``folder``, that the made-up trials and final runs are of.

    ``features`` are the parameters of features that stand below the label of the glyphs.
    """
    recipe = RECIPE
    dataset: Any = "glyphs_tiny"
    if features:
        recipe = HEAD
        dataset = {"name": "features", "label": dataset, "params": features}
    (folder / "recipes").mkdir(parents=True, exist_ok=True)
    (folder / "recipes" / "tiny.yaml").write_text(yaml.safe_dump(recipe))
    path = folder / "made_up.yaml"
    block = {**BLOCK, "datasets": [dataset]}
    path.write_text(yaml.safe_dump({**STUDY, "blocks": [block]}))
    return load_study(path)


def made_up_field(
    folder: Path,
    features: dict[str, Any] | None = None,
    **options: Any,
) -> Path:
    """Write the field of the made-up trials and final runs; return its folder."""
    study = study_with_rules(folder.parent / "study", features)
    freeze_field(study, *made_up_tables(), folder, **options)
    return folder


def made_up_tables() -> tuple[RunTable, RunTable]:
    """Return the made-up trials and final runs, with what computed them."""
    tables = []
    for table in (made_up_trials(), made_up_finals()):
        runs = table.runs.assign(**COMPUTED)
        tables.append(RunTable(runs, table.scores))
    return tables[0], tables[1]


def write_features(path: Path, **changes: Any) -> Path:
    """Write features of eight classes, the first four of which train; return their path."""
    rows = np.random.default_rng(0).standard_normal((320, 6)).astype("float32")
    arrays = {
        "embeddings": rows,
        "labels": np.arange(320) % 8,
        "names": np.array([f"image{number}.jpg" for number in range(320)]),
        "split": np.where(np.arange(320) % 8 < 4, "train", "test"),
    }
    np.savez(path, **arrays | changes)
    return path


def sign(folder: Path, content: dict[str, Any]) -> None:
    """Write a manifest with the digest of its content, as somebody who means harm can."""
    signed = {**content, "digest": content_digest(content)}
    (folder / MANIFEST).write_text(json.dumps(signed, indent=1))
