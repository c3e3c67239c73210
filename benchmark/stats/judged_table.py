"""Many reported numbers against published ones: a table from a file, judged as one family."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmark.core.errors import ConfigError, Problem, unknown
from benchmark.datasets.io.arrays import read_arrays
from benchmark.metrics.metric import display_name, metric_named
from benchmark.stats.judgement import JudgedCase, answers, question

# The arguments of ``question``; more runs of ours are ours_1, ours_2, ...
COLUMNS = (
    "name",
    "metric",
    "ours",
    "ours_1",
    "n",
    "published",
    "published_n",
    "spread",
    "published_spread",
    "margin",
)
RUN = re.compile(r"ours(_\d+)?")
MOST_ROWS = 1_000  # each number is judged anew at the tipping points of all others
SHOWN = 20  # problems


def read_cases(
    path: Path,
    defaults: Mapping[str, Any],
    default_margin: Callable[[str, float], float],
) -> list[JudgedCase]:
    """Return the case of each row of a CSV file with commas, semicolons or tabs.

    The heading has names of ``COLUMNS``. A column that is missing, or an empty cell, has the value
    of ``defaults``. Raise ConfigError with the problems of all rows,
    DataError for another file.
    """
    columns = read_arrays(path, "ours")
    names = [re.sub(r"[\s-]+", "_", name.lower()) for name in columns]
    others = [name for name in names if not RUN.fullmatch(name)]
    problems = [*unknown("", "column", others, COLUMNS)]
    cases = []
    # a column of whole numbers has come as such
    rows = [] if problems else zip(*columns.values(), strict=True)
    for line, row in enumerate(rows, start=2):
        given = {name: str(cell) for name, cell in zip(names, row, strict=True) if cell != ""}
        ours = [given.pop(name) for name in names if RUN.fullmatch(name) and name in given]
        name = given.pop("name", f"line {line}")
        texts = {**defaults, **given}
        metric = display_name(metric_named(texts["metric"]))
        try:
            case = question(ours=ours, default_margin=default_margin, **texts)
        except ConfigError as error:
            problems += [replace(problem, line=line) for problem in error.problems]
        else:
            cases.append(replace(case, name=name, metric=metric))
    if not problems and not 0 < len(cases) <= MOST_ROWS:
        problems.append(Problem(f"{len(cases)} rows of numbers; allowed: 1 to {MOST_ROWS}"))
    if more := problems[SHOWN:]:
        problems[SHOWN:] = [Problem(f"and {len(more)} more")]
    if problems:
        raise ConfigError(f"--table {path}", problems)
    return [replace(case, family=len(cases)) for case in cases]


def judge_table(cases: list[JudgedCase]) -> list[dict[str, Any]]:
    """Return the name, the metric and the answer of ``judge`` of each case of a table."""
    answered = zip(cases, answers(cases), strict=True)
    return [{"name": case.name, "metric": case.metric, **answer} for case, answer in answered]
