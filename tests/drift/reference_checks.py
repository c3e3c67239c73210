"""The regression check that tests and their own tests share."""

from __future__ import annotations

from collections.abc import Sequence

from benchmark.published.schema import PublishedNumber
from benchmark.runs.run_table import RunTable
from benchmark.stats.samples import Samples
from benchmark.verdicts.explain import drifted_messages, rule
from benchmark.verdicts.frozen import FrozenRuns
from benchmark.verdicts.judging import judged, pairs_of_frozen, pairs_of_numbers
from benchmark.verdicts.matching import StudyGrid


def drift_report(
    table: RunTable,
    *,
    published: Sequence[PublishedNumber] = (),
    grid: StudyGrid | None = None,
    frozen: FrozenRuns | None = None,
) -> str:
    """Return "" when nothing drifted, else a message with every drifted number and the rule."""
    samples = Samples(table)
    sides = pairs_of_numbers(published, samples, grid.candidates if grid else {})
    verdicts = judged(sides + pairs_of_frozen(frozen or {}, samples))
    messages = drifted_messages(verdicts)
    words = [f"{len(messages)} drifted:", *messages, f"rule: {rule(verdicts['level'].min())}"]
    return "\n".join(words) if messages else ""
