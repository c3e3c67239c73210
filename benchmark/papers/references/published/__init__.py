"""The published numbers as a typed table, with the papers' names mapped to ours in this one place.

The files lie beside this module; ``NOTES.md`` states their provenance and every known inconsistency.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from benchmark.core.errors import ReferenceDataError, unknown_name
from benchmark.papers.references.published.rows import chosen, read_entries
from benchmark.papers.references.reading import (
    check_choices,
    check_numbers,
    check_unique,
    problem,
    read_table,
)

FOLDER = Path(__file__).parent
COLUMNS = (
    "paper", "table", "row_label", "method", "provenance", "dataset", "protocol", "backbone", "embedding_dim",
    "batch_size", "metric", "value", "std", "n_runs", "unit", "comment",
)  # fmt: skip
PROVENANCES = ("own", "retrained", "copied", "unclear")
REPRODUCIBLE = ("own", "retrained")  # the others were not trained by the paper that prints them

# The papers whose numbers the studies cover; of ROADMAP the second version.
PAPERS = ("fastap2019", "listwise2019", "smoothap2020", "roadmap2021v2")

# Published method -> loss name. A method that is not listed keeps its name (roadmap, xbm, margin, ...).
METHOD_LOSSES = {
    "smoothap": "smooth_ap",
    "supap": "sup_ap",
    "fastap": "fast_ap",
    "proxynca": "proxy_nca",
    "nsoftmax": "normalized_softmax",
}
DATASETS = {"roxford": "roxford5k", "rparis": "rparis6k"}

# Factor from the printed unit to percentage points. Units that are not scores (hours, counts, ...) have none.
SCORE_UNITS = {"percent": 1.0, "fraction": 100.0}
OTHER_UNITS = (
    "count", "thousand", "hours", "days", "minutes", "min_per_epoch", "ms", "GiB", "factor", "p_value",
)  # fmt: skip
_SCORE = re.compile(r"recall_at_\d+|map_at_r|map")
_CONDITION = re.compile(r"(sampling|tau|\|P\|)=([\w.]*\w)")


def published_results(path: Path | None = None) -> pd.DataFrame:
    """Returns one row per published number; raises ReferenceDataError naming file, line and column.

    Besides the columns of the file (texts; empty means not stated) with ``embedding_dim`` as printed,
    ``batch_size`` and ``n_runs`` nullable integers and ``value``, ``std`` floats as printed:
    ``loss``       our name of the method
    ``score``      True for a recall or (m)AP of a whole test set: what a verdict can judge
    ``points``     the value in percentage points, NaN unless ``score``; ``sd_points`` its printed spread
    ``rounding``   half a unit of the last printed digit, in percentage points
    ``condition``  "key=value" facts of the row beyond its columns, separated by ";" (sampling=random)
    ``implied``    the same for facts that the row means without stating them (implied.yaml says why)
    ``line``       line in the file
    """
    path = Path(path or FOLDER / "results.csv")
    table = read_table(path, COLUMNS)
    check_choices(path, table, "provenance", PROVENANCES)
    check_choices(path, table, "unit", (*SCORE_UNITS, *OTHER_UNITS))
    for column in ("paper", "table", "method", "metric", "value"):
        empty = table[table[column] == ""]
        if len(empty):
            raise problem(path, empty["line"].iloc[0], column, "is empty; every row needs it")
    printed = table["value"]
    for column, integer, required in (
        ("value", False, True),
        ("std", False, False),
        ("n_runs", True, False),
        ("batch_size", True, False),
    ):
        table[column] = check_numbers(path, table, column, integer=integer, required=required)
    check_unique(
        path, table, [name for name in COLUMNS if name not in ("value", "std", "n_runs", "unit")]
    )
    table["loss"] = table["method"].replace(METHOD_LOSSES)
    table["dataset"] = table["dataset"].replace(DATASETS)
    factor = table["unit"].map(SCORE_UNITS).astype(float)
    table["score"] = factor.notna() & table["metric"].map(
        lambda name: _SCORE.fullmatch(name) is not None
    )
    factor = factor.where(table["score"])
    table["points"] = table["value"].astype(float) * factor
    table["sd_points"] = table["std"].astype(float) * factor
    table["rounding"] = printed.map(half_last_digit) * factor
    table["condition"] = table["comment"].map(
        lambda text: ";".join(
            f"{key.strip('|').lower()}={value}" for key, value in _CONDITION.findall(text)
        )
    )
    table["implied"] = ""
    for entry in read_entries(FOLDER / "implied.yaml", "implied"):
        table.loc[chosen(table, entry["rows"]), "implied"] = entry["implied"]
    outside = table[table["score"] & ~table["points"].between(0, 100)]
    if len(outside):
        raise problem(
            path,
            outside["line"].iloc[0],
            "value",
            "lies outside 0 to 100 points; check its unit (percent or fraction)",
        )
    return table


@functools.cache
def published_names() -> tuple[str, ...]:
    """Returns what a study can ask for: "paper" for all its printed tables, or "paper/table" for one."""
    table = published_results()
    printed = table[table["table"].str.startswith("table") & table["provenance"].isin(REPRODUCIBLE)]
    return tuple(sorted({*printed["paper"], *(printed["paper"] + "/" + printed["table"])}))


def asked_results(names: Iterable[str]) -> pd.DataFrame:
    """Returns the rows of the printed tables in ``names`` that can be reproduced (own or retrained numbers).

    Figures and running text repeat the tables and are left out. Raises ReferenceDataError for an unknown name.
    """
    names = list(names)
    for name in names:
        if name not in published_names():
            raise ReferenceDataError(
                f"references.published: {unknown_name('published table', name, published_names())}"
            )
    table = published_results()
    asked = table["paper"].isin(names) | (table["paper"] + "/" + table["table"]).isin(names)
    printed = table["table"].str.startswith("table") & table["provenance"].isin(REPRODUCIBLE)
    return table[asked & printed].reset_index(drop=True)


def countable_results() -> pd.DataFrame:
    """Returns the numbers that studies are to cover, with ``outside``: why none does, or "".

    They are the numbers of the printed tables of the four papers that their authors trained themselves (own or
    retrained); of the two versions of the ROADMAP paper the second one counts, which repeats the first.
    """
    table = published_results()
    printed = table["table"].str.startswith("table") & table["provenance"].isin(REPRODUCIBLE)
    table = table[printed & table["paper"].isin(PAPERS)].reset_index(drop=True)
    table["outside"] = ""
    for entry in read_entries(FOLDER / "outside.yaml", "reason"):
        table.loc[chosen(table, entry["rows"]) & (table["outside"] == ""), "outside"] = entry[
            "reason"
        ]
    return table


def half_last_digit(printed: str) -> float:
    """Returns half a unit of the last digit of a printed number: "81.2" -> 0.05."""
    digits = len(printed.partition(".")[2])
    return 0.5 * 10.0**-digits


def load_published_table(name: str) -> pd.DataFrame:
    """Returns "datasets" or "hyperparameters": the papers' own statements, texts as printed."""
    columns = {
        "datasets": (
            "paper",
            "dataset",
            "split",
            "n_images",
            "n_classes",
            "images_per_class",
            "comment",
        ),
        "hyperparameters": ("paper", "scope", "backbone", "name", "value", "source"),
    }[name]
    return read_table(FOLDER / f"{name}.csv", columns)
