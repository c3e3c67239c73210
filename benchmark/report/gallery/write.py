"""Make the gallery of a study: pictures, curves, the numbers of every query, and their record."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from benchmark.core.errors import RunError
from benchmark.core.files import begin_folder, replacing, write_text
from benchmark.core.privacy import without_paths
from benchmark.core.records import NEIGHBOURS
from benchmark.report.drawing.drawing import save
from benchmark.report.gallery.choose import Choice, choose, run_pairs
from benchmark.report.gallery.neighbours import Neighbours, load_neighbours
from benchmark.report.gallery.pictures import draw_curves, strip, to_png
from benchmark.report.inputs import Inputs
from benchmark.report.records import (
    GALLERY,
    Gallery,
    PairQueries,
    Query,
    QuerySide,
    RunPair,
    RunSide,
)
from benchmark.report.render.csv import as_text
from benchmark.report.render.table import NothingToShow

TABLE = "queries.csv"


def write_gallery(inputs: Inputs, results: Path, choice: Choice | None = None) -> Gallery:
    """Write ``results/<study>/gallery`` from scratch and return its record.

    Where nothing can be shown, the record says why.
    """
    folder = inputs.study.folder(results) / GALLERY
    begin_folder(folder)
    shown: list[PairQueries] = []
    tables: list[pd.DataFrame] = []
    reasons: list[str] = []
    digests = dict(zip(inputs.runs["run_id"], inputs.runs["spec_digest"], strict=True))
    try:
        for pair in run_pairs(inputs, choice or Choice()):
            try:
                sides = _load_sides(pair, results, digests)
            except RunError as error:
                reasons.append(without_paths(str(error)))
                continue
            shown.append(_show(pair, sides, inputs.base_losses, folder))
            tables.append(_table(pair, sides))
    except NothingToShow as reason:
        reasons.append(str(reason))
    if tables:
        text = pd.concat(tables).to_csv(index=False, float_format="%.6g", lineterminator="\n")
        write_text(folder / TABLE, text)
    gallery = Gallery(inputs.study.name, shown, "" if shown else "; ".join(reasons))
    gallery.write(folder)
    return gallery


def _load_sides(
    pair: RunPair, results: Path, digests: Mapping[str, str]
) -> dict[RunSide, Neighbours]:
    """Return the neighbours of both runs; raise RunError for damaged ones and other queries."""
    sides = {
        side: load_neighbours(results / "runs" / side.run_id / NEIGHBOURS, digests[side.run_id])
        for side in (pair.first, pair.second)
    }
    first, second = sides.values()
    if not np.array_equal(first.queries, second.queries):
        raise RunError(
            f"{pair.first.run_id} and {pair.second.run_id} recorded different queries; "
            "train both again"
        )
    return sides


def _table(pair: RunPair, sides: Mapping[RunSide, Neighbours]) -> pd.DataFrame:
    """Return one row per recorded query with its AP under both losses."""
    first = next(iter(sides.values()))
    values = [neighbours.average_precisions() for neighbours in sides.values()]
    return pd.DataFrame(
        {
            "dataset": pair.dataset,
            "query": first.queries,
            "name": [as_text(without_paths(str(name))) for name in first.names],
            "category": first.categories,
            pair.first.loss: values[0],
            pair.second.loss: values[1],
            "change": values[1] - values[0],
        }
    )


def _show(
    pair: RunPair, sides: Mapping[RunSide, Neighbours], bases: Mapping[str, str], folder: Path
) -> PairQueries:
    first, second = sides.values()
    before, after = first.average_precisions(), second.average_precisions()
    queries = [
        _query(f"{pair.dataset}-{number:02d}", row, reason, sides, bases, folder)
        for number, (row, reason) in enumerate(
            choose(before, after, first.categories).items(), start=1
        )
    ]
    improved, worsened = int((after > before).sum()), int((after < before).sum())
    return PairQueries(pair, len(first.queries), improved, worsened, queries)


def _query(
    stem: str,
    row: int,
    reason: str,
    sides: Mapping[RunSide, Neighbours],
    bases: Mapping[str, str],
    folder: Path,
) -> Query:
    first, *_ = sides.values()
    name = without_paths(str(first.names[row]))
    drawing = draw_curves(row, sides, bases, name)
    save(drawing, folder, f"{stem}-curve")
    both = []
    for which, (side, neighbours) in zip(("first", "second"), sides.items(), strict=True):
        matches, file = neighbours.matches[row], f"{stem}-{which}.png"
        image = strip(neighbours.images[row], neighbours.neighbour_images[row], matches)
        with replacing(folder / file) as temporary:
            temporary.write_bytes(to_png(image))
        value = float(neighbours.average_precisions()[row])
        alt = _alt(side.display, name, neighbours.neighbour_names[row], matches)
        both.append(QuerySide(value, int(matches.sum()), len(matches), file, alt))
    positives = len(first.ranks[row])
    return Query(name, reason, positives, f"{stem}-curve", drawing.caption, *both)


def _alt(display: str, query: str, names: np.ndarray, matches: np.ndarray) -> str:
    """Return what a strip shows, for those who cannot see it."""
    ranked = list(enumerate(zip(names, matches, strict=True), start=1))
    right = ", ".join(str(rank) for rank, (_, match) in ranked if match) or "none"
    wrong = "; ".join(f"{rank} {without_paths(str(n))}" for rank, (n, match) in ranked if not match)
    text = f"{display}: the {len(matches)} nearest to {query}. Right at rank {right}."
    return f"{text} Wrong: {wrong}." if wrong else text
