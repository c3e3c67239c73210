"""All verdicts of a study, from its collected runs and the references that it names."""

from __future__ import annotations

from pathlib import Path

from benchmark.core.errors import ConfigError, unknown_name
from benchmark.papers.candidates import candidates
from benchmark.papers.frozen import load_frozen
from benchmark.papers.library import asked_numbers
from benchmark.papers.margins import load_margins
from benchmark.papers.numbers import PublishedNumber
from benchmark.papers.paper import load_papers
from benchmark.papers.verdicts.deviations import with_deviations
from benchmark.papers.verdicts.judge import judge_frozen, judge_numbers
from benchmark.papers.verdicts.records import Verdict
from benchmark.runs.table import ONE_BEST, RunTable
from benchmark.stats.looks import level_of
from benchmark.stats.samples import Samples
from benchmark.study import Study

PAPERS, OTHER = "paper", "other"
RULES = (PAPERS, OTHER, "last", "best", ONE_BEST)


def frozen_path(study: Study) -> Path | None:
    """Return the file of the study's frozen runs, or None for a study that names none."""
    return Path(study.references.frozen) if study.references.frozen else None


def judge_study(study: Study, table: RunTable, selection: str = PAPERS) -> list[Verdict]:
    """Return the verdicts on all reference numbers of a study.

    ``selection`` "paper" judges the numbers of each paper at the epoch that its authors report,
    the last one where they do not say; "other" at the other reading of each: the last epoch, or the
    best epoch of each metric. The other words hold for all papers alike. Frozen runs are judged at
    their last epoch, and not under "other" or "best". Those that do not exist yet are no error.
    """
    if selection not in RULES:
        raise ConfigError("--selection", [unknown_name("selection rule", selection, RULES)])
    margins, found, level = load_margins(), candidates(study), level_of(study)
    by_rule: dict[str, list[PublishedNumber]] = {}
    for number in asked_numbers(study.references.published):
        by_rule.setdefault(rule_of(number, selection), []).append(number)
    verdicts = []
    for rule, numbers in by_rule.items():
        verdicts += judge_numbers(numbers, Samples(table, rule), found, margins, level)
    verdicts = with_deviations(verdicts, study)
    frozen = frozen_path(study)
    if selection in (PAPERS, "last") and frozen is not None and frozen.is_file():
        verdicts += judge_frozen(load_frozen(frozen), Samples(table), margins, level)
    return verdicts


def rule_of(number: PublishedNumber, selection: str) -> str:
    """Return the rule by which the epoch of our runs is chosen for a published number."""
    if selection not in (PAPERS, OTHER):
        return selection
    papers = {source: paper for paper in load_papers().values() for source in paper.names}
    own = papers[number.source].selection
    if selection == PAPERS:
        return own
    return "best" if own == "last" else "last"
