"""A study of four runs and a function that writes the folder of a run as training leaves it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmark.study import Study, load_study
from benchmark.study.grid import Run, expand


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """Returns a study of two losses and two seeds."""
    block = {
        "name": "main",
        "datasets": ["glyphs_tiny"],
        "recipe": "glyphs_smoke",
        "losses": ["smooth_ap", "roadmap"],
        "batch_sizes": [32],
    }
    data = {
        "study": "four",
        "title": "Four runs",
        "seeds": [0, 1],
        "blocks": [block],
        "metrics": ["recall_at_1"],
        "comparison": {"baseline": "smooth_ap"},
    }
    path = tmp_path / "four.yaml"
    path.write_text(yaml.safe_dump(data))
    return load_study(path)


@pytest.fixture
def runs(study: Study) -> dict[str, Run]:
    """Returns the four runs by id."""
    return expand(study)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Returns the results root."""
    return tmp_path / "results"


@pytest.fixture
def finish(results: Path) -> Callable[..., Path]:
    """Returns a function that writes result.json and provenance.json of a run; keywords change the result."""

    def write(run: Run, provenance: dict[str, Any] | None = None, **changes: Any) -> Path:
        folder = results / run.spec.folder
        folder.mkdir(parents=True, exist_ok=True)
        value = 0.5 + run.spec.seed / 10
        result = {
            "schema": 1,
            "run_id": run.spec.run_id,
            "spec_digest": run.digest,
            "status": "ok",
            "reason": "",
            "epochs": 2,
            "steps": 20,
            "metrics": {
                "last": {"test": {"recall_at_1": value, "map": 0.25}},
                "best": {"test": {"recall_at_1": {"value": value + 0.1, "epoch": 1}}},
            },
            "curve": [
                {"epoch": 1, "loss": 0.9, "test": {"recall_at_1": value + 0.1}},
                {"epoch": 2, "loss": 0.8, "test": {"recall_at_1": value}},
            ],
            "dataset": {
                "name": "glyphs_tiny",
                "fingerprint": "f00d",
                "counts": {"test": {"images": 9}},
            },
            "code_version": "0.1.0+aaa",
        }
        source = {
            "timing": {
                "total_seconds": 12.0,
                "train_seconds": 8.0,
                "eval_seconds": 2.0,
                "images_per_second": 500.0,
            },
            "memory": {"peak_rss_mb": 700.0},
            "platform": "linux-cpu",
            "hardware": {"cpu": "some"},
            "packages": {"torch": "2.13.0"},
            "weights": None,
        }
        (folder / "result.json").write_text(json.dumps({**result, **changes}))
        (folder / "provenance.json").write_text(json.dumps({**source, **(provenance or {})}))
        return folder

    return write
