"""The field of a challenger: frozen trials and final runs of other losses, with their manifest."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmark.core.errors import ConfigError, ReferenceDataError
from benchmark.core.files import replacing, write_json
from benchmark.datasets import loader_of
from benchmark.datasets.features import Features, committed
from benchmark.datasets.io.arrays import read_arrays
from benchmark.runs.run_table import RUN_COLUMNS, SCORE_COLUMNS, RunTable
from benchmark.study import Study
from benchmark.study.data_files import (
    FINAL,
    MANIFEST,
    TRIALS,
    field_folder,
)
from benchmark.study.manifest import (
    FEATURES,
    ROWS,
    TABLES,
    UNSTATED,
    VERSION,
    Manifest,
    content_digest,
    file_digest,
    ranges_of,
    read_manifest,
    recipe_contents,
    study_content,
)
from benchmark.study.model import StudyFile

# columns that are kept
OF_FIELD = r"(loss|recipe\.optimizer|recipe\.sampler|trials)\.\w{1,80}"
SHARED = ["dataset", "setting", "batch_size", "seed"]  # of a run of the study and one of the field
MADE_BY = ("code_version", "platform", "kernels", "processor")  # columns that say it
FINISHED = ("ok", "diverged")
NUMBERS = ["trials.fold", "trials.trial", "trials.budget"]
SPLITS = {TRIALS: "held_out", FINAL: "test"}
# A cell that a spreadsheet does not compute, and that a terminal shows.
PLAIN = r"(?![=+@]|-\D)[^\x00-\x1f\x7f-\x9f]{0,1000}"
COSINE = 0.9999  # of a committed row and the same row elsewhere, at least


@dataclass(frozen=True)
class FrozenField:
    """A field: its folder, its manifest, and its tables of trials and final runs."""

    folder: Path
    manifest: Manifest
    trials: RunTable
    final: RunTable


def read_field(folder: Path) -> FrozenField:
    """Return the field in a folder, from wherever it is; raise ConfigError or DataError.

    Its tables have exactly the runs of its study, and cells that no page or spreadsheet computes.
    """
    manifest = read_manifest(folder)
    tables = {}
    for kind in (TRIALS, FINAL):
        try:
            tables[kind] = RunTable.read(folder / kind)
            problems = [*table_problems(tables[kind], kind, manifest)]
        except (ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
            problems = [f"cannot be read as tables of runs ({error!s:.200})"]
        if problems:
            raise ConfigError(f"{folder / kind}", problems)
    return FrozenField(folder, manifest, tables[TRIALS], tables[FINAL])


def table_problems(table: RunTable, kind: str, manifest: Manifest) -> Iterator[str]:
    """Yield what the tables of a field have, and 'freeze' does not write for its study."""
    runs = table.runs
    scores = table.scores
    settings = runs.columns[len(RUN_COLUMNS) :]
    if [*runs.columns, *scores.columns] != [*RUN_COLUMNS, *settings, *SCORE_COLUMNS]:
        yield "has other columns"
    if not settings.str.fullmatch(OF_FIELD).all():
        yield "has columns that are no settings"
    cells = map(str, runs.to_numpy().ravel())
    if wrong := [cell for cell in cells if not re.fullmatch(PLAIN, cell)]:
        yield f"has cells that are no plain text, such as {wrong[0]!r:.80}"
    sizes = "/bs" + runs["batch_size"].astype(str) + "/seed" + runs["seed"].astype(str)
    names = runs["dataset"] + "/" + runs["setting"] + "/" + runs["loss"] + sizes
    if not runs["run_id"].is_unique or (runs["run_id"] != names).any():
        yield "has a run twice, or one whose name is not that of its numbers"
    numbers = runs.columns.intersection(NUMBERS)
    if not all(isinstance(value, int) for value in runs[numbers].to_numpy().ravel()):
        yield f"has {', '.join(numbers)} that are no whole numbers"
    if Counter(runs["loss"]) != runs_of_losses(manifest.file, kind):
        yield "has not all runs of its study, or others"
    costs = runs.select_dtypes("float").to_numpy()
    if not runs["status"].isin(FINISHED).all() or np.isinf(costs).any():
        yield "has runs without a result, or with infinite costs"
    if sorted(scores["run_id"]) != sorted(runs.loc[runs["status"] == "ok", "run_id"]):
        yield "has not one score of each finished run"
    kinds = scores[["selection", "metric", "split"]]
    is_other = kinds != ["last", manifest.file.metrics[0], SPLITS[kind]]
    if is_other.any(axis=None) or not scores["value"].between(0, 1).all():
        yield "has scores of another kind, or outside of [0, 1]"


def runs_of_losses(file: StudyFile, kind: str) -> Counter[str]:
    """Return how many trials, or final runs, each loss has in the field of a study."""
    rules = file.rules
    assert rules is not None
    runs: Counter[str] = Counter()
    for entry in file.entries:
        count = rules.final_seeds * (1 + len(rules.trials))
        if kind == TRIALS:
            count = rules.folds * (1 + max(rules.trials)) * len(entry.seeds or file.seeds)
        count *= len(entry.datasets) * len(entry.batch_sizes)
        runs.update(dict.fromkeys(entry.losses, count))
    return runs


def with_field(table: RunTable, study: Study) -> RunTable:
    """Return the table of a study with the frozen runs of the losses that it does not run.

    Only cells that differ from a cell of the study in the loss alone are added: a study of four
    trials gets the first four trials of the field.
    """
    field = read_field(field_folder(study.references.field))
    frozen = field.trials if study.trials else field.final
    compared = table.runs[SHARED].drop_duplicates()
    others = frozen.runs.merge(compared, on=SHARED)
    is_here = others["loss"].isin(table.runs["loss"])
    others = others[~is_here]
    runs = pd.concat([table.runs, others], ignore_index=True).astype(object)
    is_known = runs.notna()
    runs = runs.where(is_known, None).astype(dict(table.runs.dtypes))
    is_added = frozen.scores["run_id"].isin(others["run_id"])
    scores = pd.concat([table.scores, frozen.scores[is_added]], ignore_index=True)
    return RunTable(runs, scores)


def freeze_field(
    study: Study,
    trials: RunTable,
    final: RunTable,
    folder: Path,
    *,
    licence: str = UNSTATED,
    with_features: bool = False,
) -> int:
    """Write the field of a study with rules to ``folder``; return the number of runs.

    Raise ReferenceDataError if a run has no result, because nobody would notice it later.
    """
    for name, table in ((TRIALS, trials), (FINAL, final)):
        runs = table.runs
        has_result = runs["status"].isin(FINISHED)
        holes = runs[~has_result]
        if len(holes):
            raise ReferenceDataError(
                f"{len(holes)} runs have no result (first: {holes['run_id'].iloc[0]}), nothing was "
                "frozen; run the study to its end first"
            )
        settings = [column for column in runs.columns if re.fullmatch(OF_FIELD, column)]
        scores = table.scores
        is_kept = scores["selection"] == "last"
        is_kept &= scores["metric"] == study.metrics[0]
        is_kept &= scores["split"] == SPLITS[name]
        kept = RunTable(runs[[*RUN_COLUMNS, *settings]], scores[is_kept])
        kept.write(folder / name)
    runs = pd.concat([trials.runs, final.runs])
    content: dict[str, Any] = {
        "version": VERSION,
        "licence": licence,
        "study": study_content(study),
        "recipes": recipe_contents(study),
        "ranges": ranges_of(study),
        "made_by": {name: sorted({*runs[name]} - {""}) for name in MADE_BY},
        **data_content(study, folder, with_features),
    }
    names = [*TABLES]
    if content["features"]:
        names += [ROWS, FEATURES] if with_features else [ROWS]
    content["files"] = {name: file_digest(folder / name) for name in names}
    content = json.loads(json.dumps(content))  # lists, as a reader has them
    write_json(folder / MANIFEST, content | {"digest": content_digest(content)})
    return len(runs)


def data_content(study: Study, folder: Path, with_features: bool) -> dict[str, Any]:
    """Return what the data of a study are known by; write the rows that a field has of features."""
    assert study.trials is not None
    digests = {}
    identity = None
    for dataset in (each for block in study.trials.blocks for each in block.datasets):
        loader = loader_of(dataset.name, dataset.params)
        digests[dataset.label] = loader.load().fingerprint
        if isinstance(loader, Features):
            identity = loader.identity
            rows = loader.given["embeddings"]
            numbers = committed(len(rows))
            write_arrays(folder / ROWS, numbers=numbers, rows=rows[numbers])
            if with_features:
                write_arrays(folder / FEATURES, **loader.given)
    if identity and len(digests) > 1:
        raise ReferenceDataError(f"a field of features has one dataset, not {', '.join(digests)}")
    if not with_features and (folder / FEATURES).exists():
        raise ReferenceDataError(
            f"{folder / FEATURES} would travel with the field: --with-features, or delete it"
        )
    return {"data": digests, "features": asdict(identity) if identity else None}


def write_arrays(path: Path, **arrays: Any) -> None:
    """Write arrays as ``.npz``, those of objects as texts."""
    for name, values in arrays.items():
        arrays[name] = np.array(values.tolist()) if values.dtype.hasobject else values
    with replacing(path) as temporary, temporary.open("wb") as stream:
        np.savez(stream, **arrays)


def have_equal_bits(field: FrozenField, params: dict[str, Any]) -> bool:
    """Return whether features are those of a field: the same digest, not only the same rows.

    Raise ConfigError with all that differs if they are other features: names, labels, split, shape
    or the committed rows.
    """
    known = field.manifest.features
    assert known is not None
    loader = loader_of("features", params)
    if [loader.load().fingerprint] == [*field.manifest.data.values()]:
        return True
    assert isinstance(loader, Features)
    found = loader.identity
    problems = [
        f"{name} are not those of the field"
        for name in ("names", "labels", "split")
        if getattr(found, name) != getattr(known, name)
    ]
    if found.shape == known.shape:
        problems += row_problems(field.folder / ROWS, loader.given["embeddings"])
    else:
        shapes = " instead of ".join(str(list(each.shape)) for each in (found, known))
        problems.append(f"the shape is {shapes}")
    if problems:
        raise ConfigError(str(params["file"]), problems)
    return False


def row_problems(path: Path, rows: np.ndarray) -> Iterator[str]:
    """Yield how many of the committed rows in a file are not those of ``rows`` (N, D)."""
    kept = read_arrays(path, "rows").get("rows")
    own = rows[committed(len(rows))].astype(np.float64)
    if kept is None or kept.dtype.kind != "f" or kept.shape != own.shape:
        yield f"{path} does not hold the committed rows"
        return
    kept = kept.astype(np.float64)
    lengths = np.linalg.norm(kept, axis=1) * np.linalg.norm(own, axis=1)
    cosines = (kept * own).sum(axis=1) / lengths
    wrong = int((~(cosines >= COSINE)).sum())
    if wrong:
        yield (
            f"{wrong} of {len(own)} committed rows have a cosine below {COSINE} with those of "
            f"the field (smallest: {cosines.min():.4f})"
        )
