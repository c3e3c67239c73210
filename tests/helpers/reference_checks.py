"""The regression check that tests and their own tests share."""

from __future__ import annotations

import pandas as pd

from benchmark.papers.references import load_margins
from benchmark.papers.verdicts import References, drifted_messages, judge
from benchmark.papers.verdicts.summary import RULE


def drift_report(
    runs: pd.DataFrame,
    *,
    published: pd.DataFrame | None = None,
    frozen: pd.DataFrame | None = None,
    facts: dict | None = None,
) -> str:
    """Returns "" when nothing drifted, else a message with every drifted number and the rule."""
    messages = drifted_messages(
        judge(runs, References(published, frozen), load_margins(), facts=facts)
    )
    return "\n".join([f"{len(messages)} drifted:", *messages, f"rule: {RULE}"]) if messages else ""
