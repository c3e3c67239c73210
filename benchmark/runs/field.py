"""The field of a challenger: frozen trials and final runs of other losses, with their manifest."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmark.core.errors import ConfigError, ReferenceDataError
from benchmark.core.files import replacing, write_json
from benchmark.core.paths import is_text
from benchmark.core.records import SEPARATOR, Cell, Setting
from benchmark.datasets import loader_of
from benchmark.datasets.features import Features, committed
from benchmark.datasets.io.arrays import read_arrays
from benchmark.runs.run_table import RUN_COLUMNS, RUNS_TABLE, SCORE_COLUMNS, RunTable
from benchmark.study import Study
from benchmark.study.data_files import (
    FINAL,
    MANIFEST,
    TRIALS,
    UNREADABLE,
    field_folder,
    read_rows,
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
from benchmark.study.model import LABEL
from benchmark.study.trials import AUTHORS, EQUAL, FOLD, fresh_seeds, trial_setting

OF_FIELD = ("loss.", "recipe.optimizer.", "recipe.sampler.", "trials.")  # columns that are kept
SHARED = ["dataset", "setting", "batch_size", "seed"]  # of a run of the study and one of the field
MADE_BY = ("code_version", "platform", "kernels", "processor")  # columns that say it
# Numbers of a run, beside its loss and seed: all of them are run for each loss.
CROSSED = {TRIALS: ["trials.fold", "trials.trial"], FINAL: ["trials.budget"]}
FINISHED = ("ok", "diverged")
SPLITS = {TRIALS: "held_out", FINAL: "test"}
LONGEST = 1_000  # letters of a cell
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

    Tables have the columns, types and names that 'freeze' writes, and each run once.
    """
    manifest = read_manifest(folder)
    tables = {}
    for kind in (TRIALS, FINAL):
        problems = list(cell_problems(folder / kind / RUNS_TABLE))
        if not problems:
            try:
                tables[kind] = RunTable.read(folder / kind)
                problems = list(table_problems(tables[kind], kind, manifest))
            except (ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
                problems = [f"cannot be read as tables of runs ({error})"]
        if problems:
            raise ConfigError(f"{folder / kind}", problems)
    return FrozenField(folder, manifest, tables[TRIALS], tables[FINAL])


def cell_problems(path: Path) -> Iterator[str]:
    """Yield the columns and cells of a table that 'freeze' does not write."""
    try:
        header, rows = read_rows(path)
    except UNREADABLE as error:
        yield f"{path.name} cannot be read ({error})"
        return
    settings = header[len(RUN_COLUMNS) :]
    known = [name for name in settings if re.fullmatch(r"[a-z]+(\.[A-Za-z_]\w{0,80}){1,2}", name)]
    of_field = [name for name in known if name.startswith(OF_FIELD)]
    if header[: len(RUN_COLUMNS)] != [*RUN_COLUMNS] or settings != sorted({*of_field}):
        yield f"{path.name} has other columns than 'freeze' writes"
        return
    for row in rows:
        for name in row.keys() - {"line"}:
            text = row[name]
            # a spreadsheet would compute what begins like a formula
            is_plain = isinstance(text, str) and not re.match("[=+@]|-[^0-9]", text)
            if not is_plain or not is_text(text) or len(text) > LONGEST:
                place = f"{path.name}, line {row['line']}"
                yield f"{place}: {name!s:.80} is no plain text of at most {LONGEST:,} letters"
                return


def table_problems(table: RunTable, kind: str, manifest: Manifest) -> Iterator[str]:
    """Yield what makes the runs of a field others than those of its study."""
    runs = table.runs
    scores = table.scores
    numbers = CROSSED[kind]
    if not all(isinstance(value, int) for name in numbers for value in runs[name]):
        yield f"{', '.join(numbers)} are not whole numbers"
        return
    rows = runs.to_dict("records")
    if any(row | named_by(row) != row for row in rows) or not runs["run_id"].is_unique:
        yield "a run is given twice, or its names are not those of its numbers"
    for name, values in expected_values(manifest, kind).items():
        if {*runs[name]} != values:
            yield f"{name} has other values than the study"
    for _, cells in runs.groupby(["trials.dataset", "trials.setting", "batch_size"]):
        if len(cells) != np.prod([cells[name].nunique() for name in ("loss", "seed", *numbers)]):
            yield "not each loss has all runs"
    if not runs["base_loss"].str.fullmatch(LABEL).all():
        yield "a base_loss has letters that no name has"
    if not runs["status"].isin(FINISHED).all():
        yield "a run has no result"
    if [*scores.columns] != [*SCORE_COLUMNS]:
        yield f"the scores have other columns than {', '.join(SCORE_COLUMNS)}"
        return
    finished = runs.loc[runs["status"] == "ok", "run_id"]
    if sorted(scores["run_id"]) != sorted(finished):
        yield "not each finished run has one score"
    same = {"selection": "last", "metric": manifest.file.metrics[0], "split": SPLITS[kind]}
    for name, value in same.items():
        if (scores[name] != value).any():
            yield f"a score has another {name} than '{value}'"
    if not scores["value"].between(0, 1).all():
        yield "a score is not in [0, 1]"
    if np.isinf(runs.select_dtypes("float")).any(axis=None):
        yield "a cost is infinite"


def named_by(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the names of a frozen run that follow from its numbers."""
    dataset = row["trials.dataset"]
    written = Setting.from_label(row["trials.setting"])
    if "trials.trial" in row:
        dataset += f"{FOLD}{row['trials.fold']}"
        setting = trial_setting(written, row["trials.trial"])
    else:
        budget = row["trials.budget"]
        rules = f"{EQUAL}{budget}" if budget else AUTHORS
        setting = Setting(written.backbone, (*written.options, rules))
    cell = Cell(dataset, setting, row["loss"], row["base_loss"], row["batch_size"])
    return {
        "run_id": cell.run_id(row["seed"]),
        "dataset": dataset,
        "setting": setting.label,
        "backbone": setting.backbone,
        "options": setting.options,
    }


def expected_values(manifest: Manifest, kind: str) -> dict[str, set[Any]]:
    """Return which values columns of a table have, all of them, by the study of the field."""
    file = manifest.file
    assert file.rules is not None
    seeds = {seed for entry in file.entries for seed in entry.seeds or file.seeds}
    expected: dict[str, set[Any]] = {
        "loss": file.asked_losses,
        "trials.dataset": {*manifest.data},
        "trials.setting": {
            SEPARATOR.join([manifest.recipes[recipe]["label"], *entry.option_names])
            for entry in file.entries
            for recipe in entry.recipes.values()
        },
        "batch_size": {size for entry in file.entries for size in entry.batch_sizes},
    }
    if kind == FINAL:
        finals = {*fresh_seeds(seeds, file.rules)}
        return expected | {"seed": finals, "trials.budget": {0, *file.rules.trials}}
    return expected | {
        "seed": seeds,
        "trials.fold": {*range(file.rules.folds)},
        "trials.trial": {*range(max(file.rules.trials) + 1)},
    }


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
        settings = [column for column in runs.columns if column.startswith(OF_FIELD)]
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
    arrays = read_arrays(path, "rows")
    numbers = arrays.get("numbers")
    kept = arrays.get("rows")
    wanted = committed(len(rows))
    fits = numbers is not None and np.array_equal(numbers, wanted)
    if not fits or kept is None or kept.dtype.kind != "f" or kept.shape != rows[wanted].shape:
        yield f"{path} does not hold the committed rows"
        return
    unit = []
    for each in (kept, rows[wanted]):
        each = np.asarray(each, np.float64)
        unit.append(each / np.linalg.norm(each, axis=1, keepdims=True))
    cosines = (unit[0] * unit[1]).sum(axis=1)
    wrong = int((~(cosines >= COSINE)).sum())
    if wrong:
        yield (
            f"{wrong} of {len(wanted)} committed rows have a cosine below {COSINE} with those of "
            f"the field (smallest: {cosines.min():.4f})"
        )
