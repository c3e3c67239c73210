"""The retrieval gallery: a picture of what each of two losses ranks first for chosen queries.

The rules that choose runs and queries were fixed before anybody had seen the pictures.
"""

import io
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image, ImageDraw

from benchmark.core.errors import ConfigError, RunError, unknown_name
from benchmark.core.files import begin_folder, replacing, write_text
from benchmark.core.privacy import without_paths
from benchmark.core.records import NEIGHBOURS, SPEC_DIGEST
from benchmark.core.seeding import derive
from benchmark.report.inputs import CONDITION, Inputs
from benchmark.report.labels import loss_label
from benchmark.report.records import (
    GALLERY,
    SIDES,
    Gallery,
    PairQueries,
    Picture,
    Query,
    QuerySide,
    RunPair,
    RunSide,
)
from benchmark.report.render import as_text
from benchmark.report.table import NothingToShow

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
NUMBER = 18  # before each query, for the number of its row
_COLOURS = 256  # of the palette: enough for thumbnails, a third of the bytes
MATCH, MISMATCH, QUERY = (18, 144, 108, 255), (208, 71, 42, 255), (123, 129, 144, 255)
_TICK = ((-6, 0, -2, 4), (-2, 4, 6, -5))
_CROSS = ((-5, -5, 5, 5), (-5, 5, 5, -5))
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
    best = best.drop_duplicates("dataset").loc[lambda rows: sorted(rows.index)].head(DATASETS)
    return [
        RunPair(
            *(row["dataset"], row["setting"], int(row["batch_size"]), int(row["seed"]), metric),
            *(
                RunSide(
                    row[f"loss_{which}"],
                    loss_label(row[f"loss_{which}"], inputs.study),
                    row[f"run_id_{which}"],
                    float(row[f"value_{which}"]),
                )
                for which in SIDES
            ),
        )
        for row in best.to_dict("records")
    ]


@dataclass(frozen=True)
class Neighbours:
    """Of Q queries, the K nearest items each, best first.

    queries      int64 (Q,): numbers of the queries in their image set
    names        (Q,): paths or descriptions
    matches      bool (Q, K)
    images       uint8 (Q, S, S, 3) and ``neighbour_images`` (Q, K, S, S, 3): thumbnails
    ranks        per query the ranks of all its positives, ascending
    categories   int64 (Q,), -1 where a dataset has none
    precisions   AP (Q,) of each query; NaN for one without a positive
    """

    queries: np.ndarray
    names: np.ndarray
    matches: np.ndarray
    images: np.ndarray
    neighbour_images: np.ndarray
    ranks: list[np.ndarray]
    categories: np.ndarray
    precisions: np.ndarray


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
    ranks = np.split(arrays["positive_ranks"], np.cumsum(arrays["positives"])[:-1])
    return Neighbours(
        queries=arrays["queries"],
        names=arrays["query_names"],
        matches=arrays["matches"],
        images=arrays["query_images"],
        neighbour_images=images.reshape(*arrays["matches"].shape, *images.shape[1:]),
        ranks=ranks,
        categories=arrays["query_categories"],
        precisions=np.array([average_precision(each) for each in ranks]),
    )


def draw(neighbours: Neighbours, rows: Iterable[int]) -> Image.Image:
    """Return the picture of these queries, one a row: its number, the query and its neighbours.

    The ground is transparent. A match has a solid frame and a tick below it, anything else a dashed
    frame and a cross.
    """
    rows, cell = list(rows), SIDE + 2 * FRAME
    across = neighbours.matches.shape[1]
    size = (NUMBER + cell + AFTER_QUERY + across * (cell + GAP), len(rows) * (cell + _BAND))
    canvas = Image.new("RGBA", size, (0, 0, 0, 0))
    pen = ImageDraw.Draw(canvas)
    for line, row in enumerate(rows):
        top = line * (cell + _BAND)
        pen.text((0, top + SIDE // 2), str(line + 1), fill=QUERY)
        canvas.paste(_thumbnail(neighbours.images[row]), (NUMBER + FRAME, top + FRAME))
        pen.rectangle((NUMBER, top, NUMBER + cell - 1, top + cell - 1), outline=QUERY, width=2)
        for number, match in enumerate(neighbours.matches[row]):
            left = NUMBER + cell + AFTER_QUERY + number * (cell + GAP)
            place = (left + FRAME, top + FRAME)
            canvas.paste(_thumbnail(neighbours.neighbour_images[row, number]), place)
            if match:
                edge = (left, top, left + cell - 1, top + cell - 1)
                pen.rectangle(edge, outline=MATCH, width=FRAME - 1)
            else:
                _dashed(pen, left, top, cell)
            x, y = left + cell // 2, top + cell + _BAND // 2
            for x0, y0, x1, y1 in _TICK if match else _CROSS:
                ends = (x + x0, y + y0, x + x1, y + y1)
                pen.line(ends, fill=MATCH if match else MISMATCH, width=3)
    return canvas


def to_png(image: Image.Image) -> bytes:
    """Return the image as a small PNG: equal images give equal bytes."""
    stream = io.BytesIO()
    palette = image.quantize(_COLOURS, method=Image.Quantize.FASTOCTREE)
    palette.save(stream, format="PNG", optimize=True)
    return stream.getvalue()


def _thumbnail(pixels: np.ndarray) -> Image.Image:
    return Image.fromarray(pixels).resize((SIDE, SIDE))


def _dashed(pen: ImageDraw.ImageDraw, left: int, top: int, cell: int) -> None:
    for start in range(0, cell, 2 * DASH):
        stop = min(start + DASH, cell) - 1
        for near in (0, cell - FRAME + 1):
            far = near + FRAME - 2
            pen.rectangle((left + start, top + near, left + stop, top + far), fill=MISMATCH)
            pen.rectangle((left + near, top + start, left + far, top + stop), fill=MISMATCH)


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
                first, second = (
                    load_neighbours(
                        results / "runs" / side.run_id / NEIGHBOURS, digests[side.run_id]
                    )
                    for side in (pair.first, pair.second)
                )
                if not np.array_equal(first.queries, second.queries):
                    names = f"{pair.first.run_id} and {pair.second.run_id}"
                    raise RunError(f"{names} recorded different queries; train both again")
            except RunError as error:
                reasons.append(without_paths(str(error)))
                continue
            shown.append(_show(pair, first, second, folder))
            tables.append(_table(pair, first, second))
    except NothingToShow as reason:
        reasons.append(str(reason))
    if tables:
        text = pd.concat(tables).to_csv(index=False, float_format="%.6g", lineterminator="\n")
        write_text(folder / TABLE, text)
    gallery = Gallery(inputs.study.name, shown, "" if shown else "; ".join(reasons))
    gallery.write(folder)
    return gallery


def _table(pair: RunPair, first: Neighbours, second: Neighbours) -> pd.DataFrame:
    """Return one row per recorded query with its AP under both losses."""
    return pd.DataFrame(
        {
            "dataset": pair.dataset,
            "query": first.queries,
            "name": [as_text(without_paths(str(name))) for name in first.names],
            "category": first.categories,
            pair.first.loss: first.precisions,
            pair.second.loss: second.precisions,
            "change": second.precisions - first.precisions,
        }
    )


def _show(pair: RunPair, first: Neighbours, second: Neighbours, folder: Path) -> PairQueries:
    change = second.precisions - first.precisions
    chosen = choose(first.precisions, second.precisions, first.categories)
    queries = [
        Query(
            without_paths(str(first.names[row])),
            reason,
            len(first.ranks[row]),
            *(
                QuerySide(
                    float(side.precisions[row]), int(side.matches[row].sum()), side.matches.shape[1]
                )
                for side in (first, second)
            ),
        )
        for row, reason in chosen.items()
    ]
    pictures = [
        _picture(f"{pair.dataset}-{which}.png", side, neighbours, chosen, folder)
        for which, side, neighbours in zip(
            SIDES, (pair.first, pair.second), (first, second), strict=True
        )
    ]
    better, worse = int((change > 0).sum()), int((change < 0).sum())
    return PairQueries(pair, len(first.queries), better, worse, queries, *pictures)


def _picture(
    file: str, side: RunSide, neighbours: Neighbours, rows: Iterable[int], folder: Path
) -> Picture:
    """Write what a loss ranks first; the picture's words are for those who cannot see it."""
    with replacing(folder / file) as temporary:
        temporary.write_bytes(to_png(draw(neighbours, rows)))
    told = []
    for number, row in enumerate(rows, start=1):
        ranks = ", ".join(str(rank + 1) for rank in np.flatnonzero(neighbours.matches[row]))
        told.append(f"query {number}: right at rank {ranks or 'none'}")
    return Picture(file, f"{side.display}, the nearest to each query. {'; '.join(told)}.")
