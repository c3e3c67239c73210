"""The colours of words on the page: a verdict, a judged claim, the status of a run."""

from __future__ import annotations

TONES = {
    "reproduced": "good",
    "supported": "good",
    "drifted": "bad",
    "contradicted": "bad",
    "inconclusive": "unsure",
    "not_run": "muted",
    "not_asked": "muted",
    "ok": "good",
    "diverged": "bad",
    "failed": "bad",
    "stale": "unsure",
    "missing": "muted",
}
