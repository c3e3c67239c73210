"""All claims on the runs of one study, at the level of its looks."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pandas as pd

from benchmark.papers.candidates import candidates
from benchmark.papers.claims.judge import judge_claims
from benchmark.papers.library import claims_of
from benchmark.papers.printed.gap import gap_decreases
from benchmark.runs.table import RunTable
from benchmark.stats.looks import level_of
from benchmark.study import Study


def judge_study_claims(study: Study, folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the verdicts on the claims of the papers and of the study, and their parts.

    ``folder`` is that of the study's results.
    """
    table, spend, gaps = RunTable.read(folder), partial(level_of, study), gap_decreases(folder)
    return judge_claims(table, claims_of(study.name), candidates(study), spend, gaps)
