"""All claims on the runs of one study, at the level of its looks."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pandas as pd

from benchmark.papers.candidates import candidates
from benchmark.papers.claims.judge import judge_claims
from benchmark.papers.library import all_claims
from benchmark.papers.printed.gap import gap_decreases
from benchmark.runs.table import RunTable
from benchmark.stats.looks import level_of
from benchmark.study import Study


def judge_study_claims(study: Study, folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the verdicts on all papers' claims, and the parts that they rest on.

    ``folder`` is that of the study's results.
    """
    table, spend, gaps = RunTable.read(folder), partial(level_of, study), gap_decreases(folder)
    return judge_claims(table, all_claims(), candidates(study), spend, gaps)
