"""The last words of a study: runs by status, verdicts, and where the report lies."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

from benchmark.errors import BenchmarkError
from benchmark.plan import plan
from benchmark.records import STATUSES
from benchmark.study import Study


def closing_words(study: Study, results: Path, *, finished: bool) -> str:
    """Returns what a person wants to read when a study ends; ``finished`` is False after a failure."""
    found = plan(study, results)
    total = Counter()
    for row in found.rows:
        total.update(row.statuses)
    words = ", ".join(f"{total[status]} {status}" for status in STATUSES if total[status])
    lines = ["", f"study {study.name}: {found.runs} runs: {words}"]
    lines += [f"  {status} {run_id}: {reason}" for run_id, status, reason in found.problems[:10]]
    counts = verdict_counts(study.folder(results) / "verdicts.csv")
    if counts:
        lines.append("verdicts: " + ", ".join(f"{count} {name}" for name, count in counts.items()))
    report = study.folder(results) / "report" / "index.html"
    if report.is_file():
        state = "report" if finished else "report (with what there is)"
        lines.append(f"{state}: {report.resolve()}")
    if not finished:
        lines.append("the study did not finish; the same command continues it, finished runs are kept")
    return "\n".join(lines)


def verdict_counts(path: Path) -> dict[str, int]:
    """Returns the number of rows per verdict in ``verdicts.csv``; empty when there is no such file."""
    if not path.is_file():
        return {}
    with open(path, newline="", encoding="utf-8") as stream:
        reader = csv.DictReader(stream)
        if "verdict" not in (reader.fieldnames or ()):
            raise BenchmarkError(f"{path} has no column 'verdict'; write it again with 'benchmark verdicts STUDY'")
        return dict(Counter(row["verdict"] for row in reader).most_common())
