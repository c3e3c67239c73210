"""The tables that a study writes as CSV, and their types when such a file is read."""

import io
from pathlib import Path

import pandas as pd

from benchmark.core.files import write_text

# Columns that hold texts, whatever these look like: a dataset may be called 2011, a loss NA. Names
# are never missing; the other texts may be.
NAMES = (
    "dataset", "setting", "backbone", "loss", "base_loss", "against", "claim", "paper", "source",
    "table", "row_label",
)  # fmt: skip
TEXTS = (
    *NAMES, "split", "metric", "part", "stated_in", "sentence", "condition", "outside", "reason",
    "note",
)  # fmt: skip


def guess_csv(path: Path) -> pd.DataFrame:
    """Return the table in a file that the suite wrote, with pandas' guesses of types.

    ``TEXTS`` are texts, and an empty field of ``NAMES`` is "". Elsewhere it alone is a missing one.
    """
    return _guess(path.read_text("utf-8"))


def write_csv(path: Path, table: pd.DataFrame) -> pd.DataFrame:
    """Write a table with ten digits; return it as its file says it, so that all agree with it."""
    text = table.to_csv(index=False, float_format="%.10g", lineterminator="\n")
    write_text(path, text)
    return _guess(text)


def _guess(text: str) -> pd.DataFrame:
    if not text.strip():
        return pd.DataFrame()
    header = pd.read_csv(io.StringIO(text), nrows=0).columns
    return pd.read_csv(
        io.StringIO(text),
        dtype=dict.fromkeys(TEXTS, "str"),
        keep_default_na=False,
        na_values={name: [""] for name in header if name not in NAMES},
        low_memory=False,
    )
