"""The regression check that tests and their own tests share."""

from __future__ import annotations

from collections.abc import Sequence

from benchmark.papers.candidates import Candidates
from benchmark.papers.frozen import FrozenRuns
from benchmark.papers.margins import load_margins
from benchmark.papers.numbers import PublishedNumber
from benchmark.papers.verdicts.judge import judge_frozen, judge_numbers
from benchmark.papers.verdicts.records import table_of
from benchmark.papers.verdicts.words import drifted_messages, rule
from benchmark.runs.table import RunTable
from benchmark.stats.samples import Samples


def drift_report(
    table: RunTable,
    *,
    published: Sequence[PublishedNumber] = (),
    candidates: Candidates | None = None,
    frozen: FrozenRuns | None = None,
) -> str:
    """Return "" when nothing drifted, else a message with every drifted number and the rule."""
    samples, margins = Samples(table), load_margins()
    verdicts = judge_numbers(published, samples, candidates or {}, margins)
    judged = table_of(verdicts + judge_frozen(frozen or {}, samples, margins))
    messages = drifted_messages(judged)
    words = [f"{len(messages)} drifted:", *messages, f"rule: {rule(judged['level'].min())}"]
    return "\n".join(words) if messages else ""
