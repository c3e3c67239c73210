"""Inputs of tables, figures and reports computed from made-up runs by the project's own statistics and verdicts."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pandas as pd
from long_tables import write_long
from made_up_results import made_up_runs, made_up_study

from benchmark.core.files import write_json
from benchmark.papers.references import load_margins
from benchmark.papers.references.published import asked_results
from benchmark.papers.verdicts import References, judge
from benchmark.report.tables.inputs import Inputs, tidy
from benchmark.stats import analyse, write_stats

WENT_WRONG = {
    ("roadmap", 128, 3): "diverged",
    ("fast_ap", 32, 0): "missing",
    ("blackbox_ap", 32, 1): "failed",
}


def made_up_inputs(
    study=None, *, bad=None, references=False, runs: pd.DataFrame | None = None
) -> Inputs:
    """Returns inputs in memory; with ``references``, one published table (not run) is judged too."""
    study = study or made_up_study()
    runs = made_up_runs(study, bad=bad) if runs is None else runs
    stats = analyse(runs, dataclasses.asdict(study.comparison), study.metrics)
    published = asked_results(("smoothap2020/table2",)) if references else None
    stats["verdicts"] = judge(
        runs, References(published, _frozen(runs) if references else None), load_margins()
    )
    return Inputs(study, tidy(runs), stats, made_up_provenance())


def made_up_provenance() -> dict:
    """Returns a provenance record in the shape that collecting writes."""
    return {
        "study": "made_up",
        "runs": {"ok": 77},
        "code_versions": {"1.0+abc1234": 77},
        "platforms": {"linux-x86_64": 77},
        "packages": {"torch": {"2.13.0": 77}, "numpy": {"2.4.6": 70, "2.3.0": 7}},
        "hardware": [
            {
                "cpu": "A processor",
                "cores": 4,
                "usable_cores": 2,
                "memory_gb": 7.5,
                "gpus": [],
                "runs": 77,
            }
        ],
        "weights": [],
        "datasets": {
            "glyphs_1k": {"fingerprints": {"0123abcd": 77}, "counts": {"train_images": 5000}}
        },
        "total_seconds": 4000.0,
        "errors": [],
        "warnings": [],
    }


def write_inputs(inputs: Inputs, runs: pd.DataFrame, results: Path) -> Path:
    """Writes what the inputs were made of as the files of a study's results folder; returns that folder."""
    folder = results / inputs.study.name
    folder.mkdir(parents=True)
    write_long(runs, folder)
    write_stats(
        {name: table for name, table in inputs.stats.items() if name != "verdicts"},
        folder / "stats",
    )
    inputs.stats["verdicts"].to_csv(folder / "verdicts.csv", index=False)
    write_json(folder / "provenance.json", dict(inputs.provenance))
    return folder


def _frozen(runs: pd.DataFrame) -> pd.DataFrame:
    """Returns frozen reference rows: the last-epoch scores themselves, one loss two points higher."""
    from benchmark.papers.references import freeze, load_frozen

    shifted = runs.copy()
    fast = shifted["loss"] == "fast_ap"
    shifted.loc[fast, "value"] = shifted.loc[fast, "value"].astype(float) + 0.02
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "frozen.csv"
        freeze(shifted, path, metrics=["recall_at_1", "map_at_r", "map"], partial=True)
        return load_frozen(path)
