"""Makes the gallery of a study: pictures, curves, the numbers of every kept query, and one file that describes them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmark.core.errors import RunError
from benchmark.core.files import replacing, write_json, write_text
from benchmark.core.privacy import without_paths
from benchmark.core.records import NEIGHBOURS
from benchmark.report.figures.drawing import save
from benchmark.report.gallery.choose import REASONS, choose
from benchmark.report.gallery.curves import draw_curves
from benchmark.report.gallery.neighbours import Neighbours, load_neighbours
from benchmark.report.gallery.pairs import Asked, Pair, pairs
from benchmark.report.gallery.strip import strip, to_png
from benchmark.report.tables.labels import loss_label
from benchmark.report.tables.table import NothingToShow

GALLERY = "gallery.json"  # written last: its presence says that the other files are whole
SCHEMA = 1


def write_gallery(
    runs: pd.DataFrame, study: Any, results: Path, asked: Asked | None = None
) -> dict[str, Any]:
    """Writes ``results/<study>/gallery`` from scratch and returns the content of its ``gallery.json``.

    ``runs`` is the long table (``benchmark.report.tables.inputs.tidy``). Where nothing can be shown the file says why.

    gallery.json   schema, study, reason (empty when there are places), reasons {why shown: meaning}, places
    of a place     dataset, setting, batch_size, seed, metric, exact (whether average precision is of the whole
                   ranking), kept (queries that the runs kept), improved, worsened; first and second: loss, display,
                   run_id, score; queries
    of a query     number, name, reason, positives (None when not kept), curve (files without their ending), caption,
                   and for first and second: quality, right (matches among those shown), picture (file), alt
    """
    folder = study.folder(Path(results)) / "gallery"
    shutil.rmtree(folder, ignore_errors=True)
    found: dict[str, Any] = {
        "schema": SCHEMA,
        "study": study.name,
        "reason": "",
        "reasons": REASONS,
        "places": [],
    }
    kept: list[pd.DataFrame] = []
    lost: list[str] = []
    try:
        for pair in pairs(runs, study, asked or Asked()):
            try:
                place, table = _place(pair, study, Path(results), folder)
            except RunError as error:
                lost.append(without_paths(str(error)))
                continue
            found["places"].append(place)
            kept.append(table)
        found["reason"] = "" if found["places"] else "; ".join(lost)
    except NothingToShow as reason:
        found["reason"] = str(reason)
    if kept:
        table = pd.concat(kept, ignore_index=True)
        write_text(
            folder / "queries.csv",
            table.to_csv(index=False, float_format="%.6g", lineterminator="\n"),
        )
    write_json(folder / GALLERY, found)
    return found


def _place(
    pair: Pair, study: Any, results: Path, folder: Path
) -> tuple[dict[str, Any], pd.DataFrame]:
    sides = [
        load_neighbours(results / "runs" / run / NEIGHBOURS)
        for run in (pair.first_run, pair.second_run)
    ]
    if not np.array_equal(sides[0].queries, sides[1].queries):
        raise RunError(
            f"{pair.first_run} and {pair.second_run} kept different queries; train both again"
        )
    quality = [side.quality() for side in sides]
    change = quality[1] - quality[0]
    exact = all(side.ranks is not None for side in sides)
    table = pd.DataFrame(
        {
            "dataset": pair.dataset,
            "query": sides[0].queries,
            "name": [without_paths(str(name)) for name in sides[0].names],
            "category": sides[0].categories,
            pair.first: quality[0],
            pair.second: quality[1],
            "change": change,
        }
    ).rename(columns={} if exact else {"change": "change_among_shown"})
    labels = (pair.first, pair.second)
    shown = {
        loss_label(loss, study): (loss, study.losses[loss].name, side)
        for loss, side in zip(labels, sides, strict=True)
    }
    queries = [
        _query(f"{pair.dataset}-{number:02d}", item.row, item.reason, sides, shown, folder)
        for number, item in enumerate(choose(*quality, sides[0].categories), start=1)
    ]
    place = {
        **{
            name: getattr(pair, name)
            for name in ("dataset", "setting", "batch_size", "seed", "metric")
        },
        "exact": exact,
        "kept": len(sides[0].queries),
        "improved": int((change > 0).sum()),
        "worsened": int((change < 0).sum()),
        "first": _side(pair.first, study, pair.first_run, pair.first_score),
        "second": _side(pair.second, study, pair.second_run, pair.second_score),
        "queries": queries,
    }
    return place, table


def _side(loss: str, study: Any, run: str, score: float) -> dict[str, Any]:
    return {"loss": loss, "display": loss_label(loss, study), "run_id": run, "score": score}


def _query(
    stem: str, row: int, reason: str, sides: list[Neighbours], shown: dict[str, tuple], folder: Path
) -> dict[str, Any]:
    name = without_paths(str(sides[0].names[row]))
    drawing = draw_curves(row, shown, name)
    save(drawing, folder, f"{stem}-curve")
    record = {
        "number": int(sides[0].queries[row]),
        "name": name,
        "reason": reason,
        "positives": None if sides[0].ranks is None else len(sides[0].ranks[row]),
        "curve": f"{stem}-curve",
        "caption": drawing.caption,
    }
    for key, (display, (_, _, side)) in zip(("first", "second"), shown.items(), strict=True):
        matches = side.matches[row]
        file = f"{stem}-{key}.png"
        with replacing(folder / file) as temporary:
            temporary.write_bytes(to_png(strip(side.images[row], side.found_images[row], matches)))
        record[key] = {
            "quality": float(side.quality()[row]),
            "right": int(matches.sum()),
            "shown": len(matches),
            "picture": file,
            "alt": _alt(display, name, side.found_names[row], matches),
        }
    return record


def _alt(display: str, query: str, names: np.ndarray, matches: np.ndarray) -> str:
    """Returns what the strip shows, for those who cannot see it."""
    right = [str(place) for place, match in enumerate(matches, start=1) if match]
    wrong = [
        f"{place} {without_paths(str(name))}"
        for place, (name, match) in enumerate(zip(names, matches, strict=True), start=1)
        if not match
    ]
    text = f"{display}: the {len(matches)} nearest to {query}. Right at rank {', '.join(right) or 'none'}."
    return text + (f" Wrong: {'; '.join(wrong)}." if wrong else "")
