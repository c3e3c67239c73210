"""The tables that the steps of a study write as CSV, read back with the types they had."""

from pathlib import Path

import pandas as pd

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
    """Return the table in a file that a step wrote, with pandas' guesses of types.

    ``TEXTS`` are texts, and an empty field of ``NAMES`` is "". Elsewhere it alone is a missing one.
    """
    header = pd.read_csv(path, nrows=0).columns
    return pd.read_csv(
        path,
        dtype=dict.fromkeys(TEXTS, "str"),
        keep_default_na=False,
        na_values={name: [""] for name in header if name not in NAMES},
        low_memory=False,
    )
