"""Everything that tables, figures and the report are made of, read once from a study's results folder."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from benchmark.core.errors import RunError
from benchmark.core.privacy import public, without_paths
from benchmark.core.records import LONG_COLUMNS, read_json
from benchmark.papers.printed.study import FILES, Printed
from benchmark.runs.table import RUNS_TABLE, RunTable

STATS = ("summary", "paired", "ablation", "gain")
_WORDS = (
    "run_id",
    "dataset",
    "setting",
    "loss",
    "base_loss",
    "status",
    "split",
    "selection",
    "metric",
)


@dataclass(frozen=True)
class Inputs:
    """The long table, the statistics by name, the provenance, and what was not there.

    Among the statistics are "verdicts" and "claims".

    A file that is missing gives an empty frame and its name in ``missing``: the page says so.
    """

    study: Any
    runs: pd.DataFrame
    stats: dict[str, pd.DataFrame]
    provenance: dict[str, Any] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    printed: Printed = field(default_factory=Printed)


def load_inputs(study: Any, results: Path) -> Inputs:
    """Returns the inputs of ``study`` below ``results``; raises RunError when a file there is unreadable."""
    folder = study.folder(Path(results))
    missing: list[str] = []
    if (folder / RUNS_TABLE).is_file():
        runs = RunTable.read(folder).long()
    else:
        missing.append(RUNS_TABLE)
        runs = pd.DataFrame(columns=list(LONG_COLUMNS))
    stats = {name: _read(folder, f"stats/{name}.csv", missing) for name in STATS}
    stats["verdicts"] = _read(folder, "verdicts.csv", missing)
    stats["claims"] = _read(folder, "claims.csv", [])  # only papers' studies have any
    there = [(folder / name).is_file() for name in FILES]
    missing += [name for name, found in zip(FILES, there, strict=True) if not found]
    printed = Printed.read(folder) if all(there) else Printed()
    provenance = {}
    if (folder / "provenance.json").is_file():
        provenance = public(read_json(folder / "provenance.json", "the provenance of a study"))
    else:
        missing.append("provenance.json")
    return Inputs(study, tidy(runs), stats, provenance, tuple(missing), printed)


def tidy(runs: pd.DataFrame) -> pd.DataFrame:
    """Returns the long table with number columns as numbers and words as categories (small and fast)."""
    runs = runs.copy()
    for column in ("value", "epoch", "batch_size", "seed"):
        runs[column] = pd.to_numeric(runs[column], errors="coerce")
    runs = runs.astype({"batch_size": "int64", "seed": "int64"})
    for column in (*_WORDS, "spec_digest", "code_version", "platform", "reason"):
        runs[column] = runs[column].astype(object).fillna("").astype(str).astype("category")
    if runs["reason"].str.contains(r"[/\\\\]").any():
        runs["reason"] = runs["reason"].astype(str).map(without_paths).astype("category")
    return runs


def _read(folder: Path, name: str, missing: list[str]) -> pd.DataFrame:
    path = folder / name
    if not path.is_file():
        missing.append(name)
        return pd.DataFrame()
    try:
        return pd.read_csv(path, low_memory=False)
    except pd.errors.EmptyDataError:
        missing.append(f"{name} (empty)")
        return pd.DataFrame()
    except (OSError, ValueError) as error:
        raise RunError(
            f"{path} cannot be read ({error}); delete it and run the study again"
        ) from error
