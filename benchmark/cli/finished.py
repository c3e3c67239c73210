"""``score --run`` and ``score --study``: finished runs that kept their embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmark.cli import echo, load
from benchmark.core.errors import RunError
from benchmark.core.records import KEPT_ROWS, RESULT
from benchmark.core.results import Result

HOW = (
    "'evaluation: {keep_embeddings: true}' in the recipe keeps them; to have those of a finished "
    "run, delete its result.json and run the study again"
)


def kept_files(
    run: Path | None,
    study: str | None,
    results: Path,
) -> list[Path]:
    """Return the files of embeddings of a run or a study; say how many runs have none.

    Raise RunError if there is none.
    """
    from benchmark.study.grid import expand

    folders = [run] if run else []
    if study is not None:
        folders = [results / run.spec.folder for run in expand(load(study, results)).values()]
    files = [file for folder in folders for file in sorted(folder.glob(KEPT_ROWS.format("*")))]
    without = len(folders) - len({file.parent for file in files})
    sentence = f"{without} of {len(folders)} runs have no embeddings: {HOW}"
    if not files:
        raise RunError(sentence)
    if without:
        echo(sentence, err=True)
    return files


def scores_of(
    files: Sequence[Path],
    recall_at: Sequence[int],
) -> Any:
    """Return a DataFrame: run, split, protocol, metric, value; without landmarks (no labels).

    The protocol ``result.json`` has the scores of the run itself.
    """
    import pandas as pd

    from benchmark.datasets.io.embeddings import read_roles
    from benchmark.metrics import score
    from benchmark.metrics.metric import k_of

    rows: list[tuple[Any, ...]] = []
    for file in files:
        result = Result.read(file.with_name(RESULT))
        split = file.stem.partition("-")[2]
        own = result.metrics.last[split]
        depths = sorted({*recall_at, *filter(None, map(k_of, own))})
        given, _ = read_roles(file, None, {}, labelled=False, leave_out=False)
        if given["labels"] is None:
            continue
        found = [(RESULT, *item) for item in own.items()]
        found += [record[:3] for record in score(**given, recall_at=depths).records]
        rows += [(result.run_id, split, *each) for each in found]
    if not rows:
        raise RunError(f"landmarks need a ground truth: score {files[0]} --ground-truth FILE")
    return pd.DataFrame(rows, columns=["run", "split", "protocol", "metric", "value"])


def as_table(scores: Any) -> str:
    """Return the scores in percent: a line for each run, split and protocol."""
    indexed = scores.set_index([*scores.columns[:4]])["value"]
    table = 100 * indexed.unstack("metric", sort=False)
    return table.reset_index().to_string(index=False, float_format="%.2f", na_rep="")
