"""Many reported numbers against published ones: a table from a file, judged as one family."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmark.core.errors import ConfigError, Problem, unknown
from benchmark.datasets.io.arrays import read_arrays
from benchmark.metrics.metric import display_name
from benchmark.stats.judgement import JudgedCase, answers, question

OF_ROWS = (
    "name",
    "ours",
    "ours_1",
    "published",
)
RUN = re.compile(r"ours(_\d+)?")  # the runs of ours are ours_1, ours_2, ...
TABLES = (".csv", ".tsv")
MOST_ROWS = 1_000  # each number is judged anew at the tipping points of all others


def read_cases(
    path: Path,
    defaults: Mapping[str, Any],
    default_margin: Callable[[str, float], float],
) -> list[JudgedCase]:
    """Return the case of each row of a CSV file with commas, semicolons or tabs.

    The heading has names of ``OF_ROWS`` and of ``defaults``, which stand for a column that is
    missing, or an empty cell. Raise ConfigError with the problems of all rows, DataError for
    another file.
    """
    columns = read_arrays(path, "ours")
    names = [re.sub(r"[\s-]+", "_", name.lower()) for name in columns]
    others = [name for name in names if not RUN.fullmatch(name)]
    problems = [*unknown("", "column", others, [*OF_ROWS, *defaults])]
    if len(set(names)) < len(names) or path.suffix.lower() not in TABLES:
        problems.append(Problem("needs a .csv or .tsv file with each column once, in any case"))
    rows = [] if problems else [*zip(*columns.values(), strict=True)]
    if not problems and not 0 < len(rows) <= MOST_ROWS:
        problems.append(Problem(f"{len(rows)} rows of numbers; allowed: 1 to {MOST_ROWS}"))
    cases = []
    for line, row in enumerate([] if problems else rows, start=2):
        # a column of whole numbers has come as such
        given = {name: str(cell) for name, cell in zip(names, row, strict=True) if cell != ""}
        ours = [given.pop(name) for name in names if RUN.fullmatch(name) and name in given]
        texts = {"name": f"line {line}", **defaults, **given, "family": str(len(rows))}
        try:
            cases.append(question(ours=ours, default_margin=default_margin, **texts))
        except ConfigError as error:
            problems += [replace(problem, line=line) for problem in error.problems]
    if problems:
        raise ConfigError(f"--table {path}", problems)
    return cases


def judge_table(cases: list[JudgedCase]) -> list[dict[str, Any]]:
    """Return the name, the metric and the answer of ``judge`` of each case of a table."""
    answered = zip(cases, answers(cases), strict=True)
    return [
        {"name": case.name, "metric": display_name(case.metric), **answer}
        for case, answer in answered
    ]
