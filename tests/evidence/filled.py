"""Fill a study with made-up runs close to the printed numbers, to look at its report page.

Scores of one cell spread by 0.3 points, laboratories by 0.4; ten cells have drifted. Every draw is
seeded by the name of what it is for: the same page comes out again.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import evidence
from evidence import ROOT, bounded, call, drawn

SPREAD = 0.003
LABORATORY = 0.004
DRIFTS = 10
elsewhere = evidence.end_scores


def near_printed(printed: dict[str, Any]) -> Any:
    """Return what draws the scores after the last epoch: near the print where there is one."""
    names = sorted(printed, key=lambda name: drawn("drifts", name).random())
    drifts = {}
    for name in names[:DRIFTS]:
        drifts[name] = drawn("drift", name).choice([-0.03, -0.02, 0.02])

    def end_scores(spec: Any, split: str, here: dict[str, float], own: Any) -> dict[str, float]:
        cell = spec["run_id"].rpartition("/")[0]
        if split.endswith(("_medium", "_hard")):  # of landmarks: printed with their own dataset
            condition = cell.partition("/")[2]
            of_condition = [printed[name] for name in printed if name.endswith(condition)]
            here = next((splits[split] for splits in of_condition if split in splits), {})
        moved = drifts.get(cell, 0.0)
        moved += drawn("laboratory", cell, split).gauss(0, LABORATORY)
        near = {name: bounded(here[name] + moved + own.gauss(0, SPREAD)) for name in here}
        return elsewhere(spec, split, {}, own) | near

    return end_scores


def main(study: str, results: Path) -> None:
    """Fill ``results`` anew with the runs of a study and build its page; print where it is."""
    shutil.rmtree(results, ignore_errors=True)
    words = (ROOT / f"workflow/config/{study}.yaml", "--results", results.resolve())
    call((*evidence.SPECIFY, *evidence.MATCH), *words)
    printed = evidence.printed_scores(results / study)
    evidence.end_scores = near_printed(printed)
    for path in sorted(results.glob("runs/**/spec.json")):
        evidence.make_run(path.parent, printed, whole=True)
    call(evidence.BUILD, *words)
    print(results / study / "report" / "index.html")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
