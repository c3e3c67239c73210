"""Frozen references: the raw headline scores of a study's runs, kept with the repository.

Every single value is kept, never only a mean, so that a later comparison has both spreads. The file
has one row per run, split and metric, scores in [0, 1]; a diverged run has one row without a value.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Literal

import pandas as pd
from pydantic import BeforeValidator, Field

from benchmark.core.cells import CELL_COLUMNS, Cell, Setting
from benchmark.core.errors import ReferenceDataError
from benchmark.core.files import write_text
from benchmark.core.paths import open_regular
from benchmark.papers.numbers import Count, empty_as_none
from benchmark.papers.reading import read_csv
from benchmark.runs.table import RunTable
from benchmark.stats.samples import VERSIONS, Sample, Score

_SHOWN = 5
Value = Annotated[Annotated[float, Field(ge=0, le=1 + 1e-9)] | None, BeforeValidator(empty_as_none)]
# By cell, split and metric; a cell whose runs all diverged has one entry without these names.
FrozenRuns = Mapping[Score, Sample]


@dataclass(frozen=True)
class FrozenScore:
    """One row of the file."""

    dataset: str
    setting: str
    loss: str
    base_loss: str
    batch_size: Count
    seed: Count
    status: Literal["ok", "diverged"]
    split: str
    metric: str
    value: Value
    spec_digest: str
    code_version: str
    platform: str
    line: int

    @property
    def cell(self) -> Cell:
        """The cell of the run."""
        setting = Setting.from_label(self.setting)
        return Cell(self.dataset, setting, self.loss, self.base_loss, self.batch_size)


def load_frozen(path: Path) -> FrozenRuns:
    """Return the frozen scores at ``path``; raise ReferenceDataError with all problems."""
    problems: list[str] = []
    if not path.is_file():
        problems.append(f"{path} does not exist; write it with 'python -m benchmark freeze STUDY'")
    rows = read_csv(path, FrozenScore, problems) if not problems else []
    groups: dict[Score, dict[int, FrozenScore]] = {}
    bases: dict[str, tuple[str, int]] = {}
    for row in rows:
        if (row.status == "ok") == (row.value is None):
            problems.append(
                f"{path}, line {row.line}, column value: a finished run has a score, others none"
            )
        group = groups.setdefault((row.cell, row.split, row.metric), {})
        if row.seed in group:
            first = group[row.seed].line
            problems.append(f"{path}, line {row.line} repeats the run of line {first}; keep one")
        group[row.seed] = row
        base, line = bases.setdefault(row.loss, (row.base_loss, row.line))
        if base != row.base_loss:
            problems.append(f"{path}, line {row.line}: '{row.loss}' is '{base}' in line {line}")
    if not rows and not problems:
        problems.append(
            f"{path} holds no runs; write it again with 'python -m benchmark freeze STUDY'"
        )
    if problems:
        raise ReferenceDataError("\n".join(problems))
    diverged: dict[Cell, set[int]] = {}
    for row in rows:
        if row.status == "diverged":
            diverged.setdefault(row.cell, set()).add(row.seed)
    samples = {
        key: _sample(list(group.values()), len(diverged.get(key[0], ())))
        for key, group in sorted(groups.items())
    }
    scored = {key[0] for key, each in samples.items() if each.n}
    return {key: each for key, each in samples.items() if each.n or key[0] not in scored}


def _sample(rows: list[FrozenScore], diverged: int) -> Sample:
    ok = [row for row in rows if row.value is not None]
    versions = {name: tuple(sorted({getattr(row, name) for row in rows})) for name in VERSIONS}
    values = {row.seed: 100 * row.value for row in ok if row.value is not None}
    return Sample(values, versions, diverged)


def freeze(
    table: RunTable, path: Path, *, metrics: list[str] | None = None, partial: bool = False
) -> int:
    """Write the headline scores of ``table`` to ``path``; return the number of runs frozen.

    Runs that are missing, failed or stale would leave holes that nobody sees later: they are
    refused, with their names, unless ``partial``. A diverged run is a result and is kept as such.
    """
    runs = table.runs
    holes = runs[~runs["status"].isin(["ok", "diverged"])]
    if len(holes) and not partial:
        shown = [f"  {row.run_id}: {row.status}" for row in holes.head(_SHOWN).itertuples()]
        shown += [f"  and {len(holes) - _SHOWN} more"] if len(holes) > _SHOWN else []
        words = f"{len(holes)} of {len(runs)} runs have no result, nothing was frozen:"
        advice = "run the study to its end first, or accept the holes with --partial"
        raise ReferenceDataError("\n".join([words, *shown, advice]))
    about = runs[["run_id", "status", *VERSIONS]]
    scores = table.test_scores("last", metrics).merge(about, on="run_id")
    diverged = runs[runs["status"] == "diverged"].assign(split="", metric="", value=float("nan"))
    columns = [item.name for item in fields(FrozenScore) if item.name != "line"]
    frozen = pd.concat([scores, diverged])[columns].sort_values(
        [*CELL_COLUMNS, "seed", "split", "metric"]
    )
    if frozen.empty:
        raise ReferenceDataError(
            "no finished run has a score, nothing was frozen; run the study first"
        )
    if path.is_file():
        header = ",".join(columns).encode()
        with open_regular(path) as stream:
            before = stream.read(len(header))
        if before not in (b"", header):
            raise ReferenceDataError(
                f"{path} holds something else than frozen runs; choose another"
            )
    write_text(path, frozen.to_csv(index=False, float_format="%.17g", lineterminator="\n"))
    return len(frozen.drop_duplicates([*CELL_COLUMNS, "seed"]))
