"""The decrease of the decomposability gap, from what 'analyse decomposability_gap' left below a study's results."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

GAP = "gap_decrease"  # the printed quantity, and the name of the frame among the statistics
ANALYSES, ANALYSIS = "analyses", "decomposability_gap"
SCHEMA = 1
COLUMNS = ("dataset", "batch_size", "seed", "decrease")
PLAIN, CALIBRATED = "sup_ap", "roadmap"


def gap_decreases(folder: Path, unreadable: list[str] | None = None) -> pd.DataFrame:
    """Returns one row per dataset, batch size and seed (``COLUMNS``) of the analyses in a study's results folder.

    ``decrease`` is 100 (1 - gap of ROADMAP / gap of SupAP) in percent, trained and measured at one batch size. Quick
    trials and files of another schema are left out; so are files that cannot be read, named in ``unreadable``.
    """
    found = [pd.DataFrame(columns=list(COLUMNS))]
    for summary in sorted((Path(folder) / ANALYSES).glob(f"{ANALYSIS}*/summary.json")):
        try:
            found.append(_decreases(summary))
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            if unreadable is not None:
                unreadable.append(f"{ANALYSES}/{summary.parent.name} (cannot be read)")
    joined = pd.concat([part for part in found if len(part)] or found, ignore_index=True)
    # a dataset that is named ("decomposability_gap-cub") was asked for: it goes before the study's first
    return joined.drop_duplicates(["dataset", "batch_size", "seed"], keep="last", ignore_index=True)


def _decreases(summary: Path) -> pd.DataFrame:
    facts = json.loads(summary.read_text(encoding="utf-8"))
    if facts["schema"] != SCHEMA or facts["quick"]:
        return pd.DataFrame(columns=list(COLUMNS))
    (dataset,) = {run["run_id"].partition("/")[0] for run in facts["runs"]}
    means = pd.read_csv(summary.parent / "figure.csv")
    means = means[(means["kind"] == "gap") & (means["trained_at"] == means["measured_at"])]
    gaps = means.pivot(index=["trained_at", "seed"], columns="loss", values="gap")
    decrease = 100 * (1 - gaps[CALIBRATED] / gaps[PLAIN])
    rows = decrease.rename("decrease").rename_axis(index=["batch_size", "seed"]).reset_index()
    return rows.assign(dataset=dataset).astype({"batch_size": int, "seed": int})[list(COLUMNS)]
