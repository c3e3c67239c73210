"""The folder of things that are computed once per machine."""

from __future__ import annotations

import os
from pathlib import Path

from benchmark.core.records import RESULTS

CACHE_VARIABLE = "BENCHMARK_CACHE"


def cache_folder() -> Path:
    """Returns the folder named by BENCHMARK_CACHE, by default ``results/cache``."""
    return Path(os.environ.get(CACHE_VARIABLE) or RESULTS / "cache")
