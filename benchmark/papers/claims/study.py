"""All claims on the runs of one study, at the level of its looks."""

from __future__ import annotations

from functools import partial

import pandas as pd

from benchmark.papers.candidates import candidates
from benchmark.papers.claims.judge import judge_claims
from benchmark.papers.library import all_claims
from benchmark.runs.table import RunTable
from benchmark.stats.looks import level_of
from benchmark.study import Study


def judge_study_claims(study: Study, table: RunTable) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the verdicts on all papers' claims, and the parts that they rest on."""
    return judge_claims(table, all_claims(), candidates(study), partial(level_of, study))
