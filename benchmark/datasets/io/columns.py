"""Tables of others as columns: comma, semicolon or tab; numbers where all cells are numbers."""

import codecs
import csv
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmark.core.errors import DataError
from benchmark.core.files import check_regular
from benchmark.core.results import Array

MOST_BYTES = 2**25
LONGEST = 1_000  # letters of a cell
SEPARATORS = ",;\t"
REFUSED = "|: "  # separators elsewhere
QUOTED = re.compile('"[^"]*"')
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
WHOLE = re.compile("0|-?[1-9][0-9]*")
MISSING = {"", "nan", "-nan", "na", "n/a", "#n/a", "<na>", "null", "none", "nat", "-", "?"}


def read_columns(path: Path, name: str) -> dict[str, Array]:
    """Return the columns of a table by heading; ``name`` is that of a single column without one.

    Blanks around cells are cut. A column holds whole numbers if each cell that is not ``MISSING``
    is one as it is written (01 is not), else texts. Raise DataError if the lines do not fit.
    """
    check_regular(path, MOST_BYTES)
    with path.open("rb") as start:
        if start.read(2) in UTF_16:
            raise DataError(f"{path} is in UTF-16; save it in UTF-8")
    with path.open(encoding="utf-8-sig", newline="") as file:
        heading = QUOTED.sub("", file.readline()).strip(" ")
        if heading.lower().startswith("sep="):
            raise DataError(f"{path}: line 1, {heading.strip()!r:.80}, is no heading; delete it")
        second = QUOTED.sub("", file.readline()).strip()
        used = [mark for mark in SEPARATORS if mark in heading]
        hidden = set(second) & {*SEPARATORS, *(set(heading) & set(REFUSED))}
        if len(used) > 1 or (hidden and not used):
            raise DataError(
                f"{path}: line {1 if used else 2} has {used or hidden}, which leaves open what "
                f"separates cells; use one of {SEPARATORS!r} in each line, and quote cells that "
                "hold one"
            )
        file.seek(0)
        reader = csv.reader(file, delimiter="".join(used) or "\0", strict=True)
        rows = [[cell.strip() for cell in row] or [""] for row in reader]
    while rows and not any(rows[-1]):
        rows.pop()
    for line, row in enumerate(rows, start=1):
        if len(row) != len(rows[0]) or max(map(len, row)) > LONGEST:
            raise DataError(
                f"{path}: line {line} has {len(row)} cells, the heading {len(rows[0])}, or a cell "
                f"has more than {LONGEST:,} letters"
            )
    names = rows.pop(0)
    if len(names) == 1 and names[0].lstrip("-").isdecimal():  # no heading
        rows.insert(0, names)
        names = [name]
    if len(set(names)) < len(names):
        raise DataError(f"{path}: two columns have one heading: {', '.join(names):.200}")
    return dict(zip(names, map(_column, zip(*rows, strict=True)), strict=True))


def _column(cells: Sequence[str]) -> Array:
    known = {cell for cell in cells if cell.lower() not in MISSING}
    values: list[str | int] = [*cells]
    if all(map(WHOLE.fullmatch, known)):
        values = [int(cell) if cell in known else cell for cell in cells]
    return np.array(values, dtype=object)
