"""A study of four runs and a function that writes the folder of a run as training leaves it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from made_up_records import made_up_provenance, made_up_result
from mlflow_servers import (  # noqa: F401
    clean_tracking,
    hanging_server,
    quick_logger,
    real_server,
)
from workplace import small_study

from benchmark.core.records import PROVENANCE, RESULT
from benchmark.study import Study, load_study
from benchmark.study.grid import Run, expand


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """A study of two losses and two seeds."""
    path = tmp_path / "four.yaml"
    path.write_text(yaml.safe_dump(small_study("four", ["smooth_ap", "roadmap"])))
    return load_study(path)


@pytest.fixture
def runs(study: Study) -> dict[str, Run]:
    """The four runs by id."""
    return expand(study)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """The results root."""
    return tmp_path / "results"


@pytest.fixture
def finish(results: Path) -> Callable[..., Path]:
    """Return what writes result.json and provenance.json of a run; keywords change the result."""

    def write(run: Run, provenance: dict[str, Any] | None = None, **changes: Any) -> Path:
        folder = results / run.spec.folder
        made_up_result(run.spec, 0.5 + run.spec.seed / 10000, **changes).write(folder / RESULT)
        made_up_provenance(run.spec, **(provenance or {})).write(folder / PROVENANCE)
        return folder

    return write
