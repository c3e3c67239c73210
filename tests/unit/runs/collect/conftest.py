"""A study of four runs and a function that writes the folder of a run as training leaves it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from made_up_records import made_up_provenance, made_up_result

from benchmark.core.records import PROVENANCE, RESULT
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
    """Returns a function that writes result.json and provenance.json of a run; keywords change the
    result."""

    def write(run: Run, provenance: dict[str, Any] | None = None, **changes: Any) -> Path:
        folder = results / run.spec.folder
        made_up_result(run.spec, 0.5 + run.spec.seed / 10000, **changes).write(folder / RESULT)
        made_up_provenance(run.spec, **(provenance or {})).write(folder / PROVENANCE)
        return folder

    return write
