"""The retrieval gallery: chosen queries under two losses, with what each ranks first.

The rules that choose runs and queries were fixed before anybody had seen the pictures.
"""

import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image, ImageDraw

from benchmark.core.errors import ConfigError, RunError, unknown_name
from benchmark.core.files import begin_folder, replacing, write_text
from benchmark.core.privacy import without_paths
from benchmark.core.records import NEIGHBOURS, SPEC_DIGEST
from benchmark.core.seeding import derive
from benchmark.report.drawing import Drawing, line, new_figure, save, styled
from benchmark.report.inputs import CONDITION, Inputs
from benchmark.report.labels import loss_label
from benchmark.report.numbers import percent
from benchmark.report.records import (
    GALLERY,
    Gallery,
    PairQueries,
    Query,
    QuerySide,
    RunPair,
    RunSide,
)
from benchmark.report.render import as_text
from benchmark.report.table import NothingToShow
from benchmark.study import Study

GAIN, LOSS, RANDOM, CATEGORY = "largest gain", "largest loss", "random", "category"
REASONS = {
    GAIN: "the queries that the second loss improves most",
    LOSS: "the queries that it worsens most",
    RANDOM: "drawn at random, the same in every gallery of the dataset",
    CATEGORY: "the first query of each of the largest categories not shown yet",
}
EACH = 3  # queries per reason
DATASETS = 4  # that a gallery goes through
SIDE = 64  # pixels of a thumbnail
FRAME = 4
GAP = 6
AFTER_QUERY = 16
DASH = 8
_BAND = 16  # below each picture, for its mark
_COLOURS = 128  # of the palette: enough for thumbnails, a third of the bytes
MATCH, MISMATCH, QUERY = (18, 144, 108, 255), (208, 71, 42, 255), (123, 129, 144, 255)
_TICK = ((-6, 0, -2, 4), (-2, 4, 6, -5))
_CROSS = ((-5, -5, 5, 5), (-5, 5, 5, -5))
WIDTH, HEIGHT = 2.5, 1.9  # inches
_MARKED = 24  # points from which a curve is drawn without markers
TABLE = "queries.csv"


def choose(
    first: np.ndarray, second: np.ndarray, categories: np.ndarray, each: int = EACH
) -> dict[int, str]:
    """Return {row to show: the reason}, in the order of ``REASONS``.

    ``first`` and ``second`` are the AP (Q,) of each query under the two losses; a row without one
    (NaN) is never shown. A query that does not change is neither a gain nor a loss.
    """
    change = second - first
    usable = np.flatnonzero(np.isfinite(change))
    by_change = usable[np.argsort(change[usable], kind="stable")]
    chosen: dict[int, str] = {}

    def add(rows: Iterable[int], reason: str) -> None:
        new = [int(row) for row in rows if int(row) not in chosen]
        chosen.update(dict.fromkeys(new[:each], reason))

    add((row for row in by_change[::-1][:each] if change[row] > 0), GAIN)
    add((row for row in by_change[:each] if change[row] < 0), LOSS)
    order = np.random.default_rng(derive(0, "gallery", len(first))).permutation(len(first))
    add((row for row in order if np.isfinite(change[row])), RANDOM)
    shown = {int(categories[row]) for row in chosen}
    sizes = dict(zip(*np.unique(categories[usable], return_counts=True), strict=True))
    names = [name for name in sizes if name >= 0 and int(name) not in shown]
    names.sort(key=lambda name: (-sizes[name], name))
    add((usable[categories[usable] == name][0] for name in names), CATEGORY)
    return chosen


@dataclass(frozen=True)
class Choice:
    """What the user chose; None leaves it to the results."""

    first: str | None = None
    second: str | None = None
    batch_size: int | None = None
    seed: int | None = None


def run_pairs(inputs: Inputs, choice: Choice) -> list[RunPair]:
    """Return one pair per dataset: the baseline, and the loss with the best mean where both ran.

    The mean is that of the headline metric over the seeds of a setting and batch size; the pair is
    taken there, at the first common seed. Raise NothingToShow when no two losses have a common run,
    ConfigError for an unknown loss.
    """
    losses = inputs.study.losses
    problems = [
        f"--{side}  {unknown_name('loss', name, losses)}"
        for side, name in (("first", choice.first), ("second", choice.second))
        if name is not None and name not in losses
    ]
    if problems:
        raise ConfigError("gallery", problems)
    metric, first = inputs.headline, choice.first or inputs.study.comparison.baseline
    scores = inputs.scores[inputs.scores["metric"] == metric].drop_duplicates("run_id")
    for column, wanted in (("batch_size", choice.batch_size), ("seed", choice.seed)):
        scores = scores[scores[column] == wanted] if wanted is not None else scores
    others = scores[scores["loss"] != first]
    if choice.second:
        others = others[others["loss"] == choice.second]
    means = inputs.last[[*CONDITION, "metric", "loss", "mean"]]
    columns = [*CONDITION, "seed", "metric", "run_id", "value", "loss"]
    pairs = others[columns].merge(means, on=[*CONDITION, "metric", "loss"])
    pairs = pairs.merge(
        scores.loc[scores["loss"] == first, columns],
        on=[*CONDITION, "seed", "metric"],
        suffixes=("_second", "_first"),
    )
    if pairs.empty:
        raise NothingToShow(
            f"no seed has finished both for {first} and for {choice.second or 'any other loss'} "
            "under one setting and batch size"
        )
    best = pairs.sort_values(["mean", "seed"], ascending=[False, True], kind="stable")
    best = best.drop_duplicates("dataset").loc[lambda rows: sorted(rows.index)]
    return [_pair(row, inputs.study) for row in best.head(DATASETS).itertuples()]


def _pair(row: Any, study: Study) -> RunPair:
    first, second = (
        RunSide(loss, loss_label(loss, study), run_id, float(score))
        for loss, run_id, score in (
            (row.loss_first, row.run_id_first, row.value_first),
            (row.loss_second, row.run_id_second, row.value_second),
        )
    )
    where = (row.dataset, row.setting, int(row.batch_size), int(row.seed), row.metric)
    return RunPair(*where, first, second)


@dataclass(frozen=True)
class Neighbours:
    """Of Q queries, the K nearest items each, best first.

    queries      int64 (Q,): numbers of the queries in their image set
    names        (Q,) and ``neighbour_names`` (Q, K): paths or descriptions
    matches      bool (Q, K)
    images       uint8 (Q, S, S, 3) and ``neighbour_images`` (Q, K, S, S, 3): thumbnails
    ranks        per query the ranks of all its positives, ascending
    categories   int64 (Q,), -1 where a dataset has none
    """

    queries: np.ndarray
    names: np.ndarray
    neighbour_names: np.ndarray
    matches: np.ndarray
    images: np.ndarray
    neighbour_images: np.ndarray
    ranks: list[np.ndarray]
    categories: np.ndarray

    def average_precisions(self) -> np.ndarray:
        """Return the AP (Q,) of each query; NaN for one without a positive."""
        return np.array([average_precision(ranks) for ranks in self.ranks])

    def curve(self, row: int) -> tuple[np.ndarray, np.ndarray]:
        """Return (recall, precision) of one query at the rank of each of its positives."""
        ranks = self.ranks[row]
        retrieved = np.arange(1, len(ranks) + 1)
        return retrieved / max(len(ranks), 1), retrieved / ranks


def average_precision(ranks: np.ndarray) -> float:
    """Return the mean of i / r_i over the ascending ranks r_i of the positives; NaN without any."""
    return float(np.mean(np.arange(1, len(ranks) + 1) / ranks)) if len(ranks) else float("nan")


def load_neighbours(path: Path, digest: str) -> Neighbours:
    """Return the content of a ``neighbours.npz`` of a run with this digest of its specification.

    Raise RunError if it is absent or of another specification.
    """
    if not path.is_file():
        raise RunError(f"{path} does not exist; train the run again, which writes it")
    with np.load(path) as stored:
        arrays = dict(stored)
    if (own := str(arrays[SPEC_DIGEST])) != digest:
        cure = "delete the run's result.json and train it again"
        raise RunError(f"{path} is of specification {own}, the run of {digest}; {cure}")
    images = arrays["neighbour_images"]
    return Neighbours(
        queries=arrays["queries"],
        names=arrays["query_names"],
        neighbour_names=arrays["neighbour_names"],
        matches=arrays["matches"],
        images=arrays["query_images"],
        neighbour_images=images.reshape(*arrays["matches"].shape, *images.shape[1:]),
        ranks=np.split(arrays["positive_ranks"], np.cumsum(arrays["positives"])[:-1]),
        categories=arrays["query_categories"],
    )


def strip(query: np.ndarray, retrieved: np.ndarray, matches: np.ndarray) -> Image.Image:
    """Return the strip of uint8 pictures ``query`` (S, S, 3) and ``retrieved`` (K, S, S, 3).

    The ground is transparent. A match has a solid frame and a tick below it, anything else a dashed
    frame and a cross.
    """
    cell = SIDE + 2 * FRAME
    width = cell + AFTER_QUERY + len(retrieved) * (cell + GAP)
    canvas = Image.new("RGBA", (width, cell + _BAND), (0, 0, 0, 0))
    draw = ImageDraw.Draw(canvas)
    _paste(canvas, query, 0)
    draw.rectangle((0, 0, cell - 1, cell - 1), outline=QUERY, width=2)
    for number, (picture, match) in enumerate(zip(retrieved, matches, strict=True)):
        left = cell + AFTER_QUERY + number * (cell + GAP)
        _paste(canvas, picture, left)
        if match:
            edge = (left, 0, left + cell - 1, cell - 1)
            draw.rectangle(edge, outline=MATCH, width=FRAME - 1)
        else:
            _dashed(draw, left, cell)
        x, y = left + cell // 2, cell + _BAND // 2
        for x0, y0, x1, y1 in _TICK if match else _CROSS:
            ends = (x + x0, y + y0, x + x1, y + y1)
            draw.line(ends, fill=MATCH if match else MISMATCH, width=3)
    return canvas


def to_png(image: Image.Image) -> bytes:
    """Return the image as a small PNG: equal images give equal bytes."""
    stream = io.BytesIO()
    palette = image.quantize(_COLOURS, method=Image.Quantize.FASTOCTREE)
    palette.save(stream, format="PNG", optimize=True)
    return stream.getvalue()


def _paste(canvas: Image.Image, pixels: np.ndarray, left: int) -> None:
    picture = Image.fromarray(pixels).convert("RGBA").resize((SIDE, SIDE))
    canvas.paste(picture, (left + FRAME, FRAME))


def _dashed(draw: ImageDraw.ImageDraw, left: int, cell: int) -> None:
    for start in range(0, cell, 2 * DASH):
        stop = min(start + DASH, cell) - 1
        for near in (0, cell - FRAME + 1):
            far = near + FRAME - 2
            draw.rectangle((left + start, near, left + stop, far), fill=MISMATCH)
            draw.rectangle((left + near, start, left + far, stop), fill=MISMATCH)


def draw_curves(
    row: int, sides: Mapping[RunSide, Neighbours], bases: Mapping[str, str], title: str
) -> Drawing:
    """Return the figure of a query with positives; ``bases``: the losses' registry names."""
    parts, told = [], []
    with styled():
        figure, grid = new_figure(WIDTH, HEIGHT)
        axes = grid[0, 0]
        for side, neighbours in sides.items():
            recall, precision = neighbours.curve(row)
            style = line(side.loss, bases.get(side.loss))
            if len(recall) > _MARKED:
                style["marker"] = ""
            # From the first match to the left edge, precision is that of the first match.
            x, y = [0.0, *recall], [precision[0], *precision]
            axes.plot(x, y, label=side.display, markersize=3, **style)
            parts.append(
                pd.DataFrame({"loss": side.loss, "recall": recall, "precision": precision})
            )
            told.append(f"{side.display} {percent(average_precision(neighbours.ranks[row]), 1)}%")
        axes.set_ylim(-0.03, 1.05)
        axes.set_xlim(-0.03, 1.03)
        axes.set_xlabel("recall")
        axes.set_ylabel("precision")
        axes.legend(loc="best", handlelength=2.2)
    words = f"Precision against recall; average precision: {', '.join(told)}."
    return Drawing(title, words, words, figure, pd.concat(parts, ignore_index=True))


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
