"""All verdicts of a study, from its collected runs and the references that it names."""

from __future__ import annotations

from pathlib import Path

from benchmark.core.errors import ConfigError, unknown_name
from benchmark.papers.candidates import candidates
from benchmark.papers.frozen import load_frozen
from benchmark.papers.library import asked_numbers
from benchmark.papers.margins import load_margins
from benchmark.papers.verdicts.deviations import with_deviations
from benchmark.papers.verdicts.judge import judge_frozen, judge_numbers
from benchmark.papers.verdicts.records import Verdict
from benchmark.runs.table import RunTable
from benchmark.stats.analysis import SELECTIONS
from benchmark.stats.looks import level_of
from benchmark.stats.samples import Samples
from benchmark.study import Study


def frozen_path(study: Study) -> Path | None:
    """Return the file of the study's frozen runs, or None for a study that names none."""
    return Path(study.references.frozen) if study.references.frozen else None


def judge_study(study: Study, table: RunTable, selection: str = "last") -> list[Verdict]:
    """Return the verdicts on all reference numbers of a study.

    ``selection`` "best" judges published numbers under the rule of some papers, the best test
    epoch. Frozen runs are judged under "last" only. Frozen runs that do not exist yet are no error.
    """
    if selection not in SELECTIONS:
        raise ConfigError("--selection", [unknown_name("selection rule", selection, SELECTIONS)])
    samples, margins, level = Samples(table, selection), load_margins(), level_of(study)
    numbers = asked_numbers(study.references.published)
    verdicts = judge_numbers(numbers, samples, candidates(study), margins, level)
    verdicts = with_deviations(verdicts, study)
    frozen = frozen_path(study)
    if selection == "last" and frozen is not None and frozen.is_file():
        verdicts += judge_frozen(load_frozen(frozen), samples, margins, level)
    return verdicts
