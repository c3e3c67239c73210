"""The retrieval gallery: what each of two losses ranks first for chosen queries, and their curves.

The rules that choose runs and queries were fixed before anybody had seen the pictures.
"""

import io
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image, ImageDraw

from benchmark.core.errors import ConfigError, unknown_name
from benchmark.core.files import begin_folder, replacing, write_json, write_text
from benchmark.core.paths import without_paths
from benchmark.core.recipe import UNTRAINED
from benchmark.core.records import NEIGHBOURS, Setting
from benchmark.core.seeding import derive
from benchmark.report.drawing import (
    DOUBLE,
    Drawing,
    legend_below,
    line,
    new_figure,
    styled,
    to_svg,
)
from benchmark.report.render import as_text
from benchmark.report.study_results import CONDITION, StudyResults, rows_of
from benchmark.report.table import NothingToShow

GALLERY = "gallery"
TABLE = "queries.csv"
SIDES = ("first", "second")
GAIN = "largest gain"
LOSS = "largest loss"
RANDOM = "random"
CATEGORY = "category"
REASONS = {
    GAIN: "the queries that the second loss improves most",
    LOSS: "the queries that it worsens most",
    RANDOM: "drawn at random, the same in every gallery of the dataset",
    CATEGORY: "the first query of each of the largest categories not shown yet",
}
EACH = 3  # queries per reason
DATASETS = 4  # that a gallery goes through
# What two runs of a pair have in common at least; "network" is a setting without its options.
NETWORK = ["dataset", "split", "network", "seed", "metric"]
ACROSS = 4  # panels of curves in a row
HALVES = (0, 0.5, 1)  # ticks of recall and precision
# pixels of a thumbnail and of what is around it
SIDE = 64
FRAME = 4
CELL = SIDE + 2 * FRAME
# to the next picture, and room for the number of the row
GAP = 6
AFTER_QUERY = 16
NUMBER = 26
BAND = 16  # below each picture, for its mark
DASH = 8
MATCH = (18, 144, 108, 255)
MISMATCH = (208, 71, 42, 255)
QUERY = (123, 129, 144, 255)
TICK = ((-6, 0, -2, 4), (-2, 4, 6, -5))
CROSS = ((-5, -5, 5, 5), (-5, 5, 5, -5))
Facts = dict[str, Any]  # of gallery.json


@dataclass(frozen=True)
class Gallery:
    """The gallery of a study, as in gallery.json; ``reason`` says why there is none.

    ``pairs``: two runs that differ in their loss alone ("pair"), counts of the queries, the chosen
    ones, and each side's picture. ``files``: contents by name, as far as the page needs them.
    """

    pairs: list[Facts]
    reason: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)


def choose(
    first: np.ndarray, second: np.ndarray, categories: np.ndarray, each: int = EACH
) -> dict[int, str]:
    """Return {row to show: the reason}, in the order of ``REASONS``; rows without an AP never.

    ``first`` and ``second`` are the AP (Q,) of each query under the two losses.
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
    sizes = Counter(categories[usable].tolist())
    names = [name for name in sizes if name >= 0 and name not in shown]
    names.sort(key=lambda name: (-sizes[name], name))
    add((usable[categories[usable] == name][0] for name in names), CATEGORY)
    return chosen


@dataclass(frozen=True)
class PairChoice:
    """What the user chose; None leaves it to the results."""

    first: str | None = None
    second: str | None = None
    batch_size: int | None = None
    seed: int | None = None

    def check(self, losses: Collection[str]) -> None:
        """Raise ConfigError for a loss that the study does not have."""
        problems = [
            f"--{side}  {unknown_name('loss of this study', name, losses)}"
            for side, name in (("first", self.first), ("second", self.second))
            if name is not None and name not in losses
        ]
        if problems:
            raise ConfigError("gallery", problems)


def run_pairs(inputs: StudyResults, choice: PairChoice) -> list[Facts]:
    """Return one pair per dataset: the baseline, and the loss with the best mean where both ran.

    It is taken at the setting and batch size of that mean, at the first common seed. A network
    before training belongs to every batch size and option of its recipe, and comes first unless
    it was asked for as the second; where it is asked for, there is a pair per dataset and network.
    The names of a pair's files begin with its ``name``.
    """
    metric = inputs.headline
    first = choice.first or inputs.study.comparison.baseline
    scores = rows_of(inputs.scores, metric=metric).drop_duplicates("run_id")
    networks = [Setting.from_label(label).backbone for label in scores["setting"]]
    untrained = scores["loss"].map(inputs.base_losses) == UNTRAINED
    scores = scores.assign(network=networks, untrained=untrained)
    if choice.batch_size is not None:
        scores = scores[(scores["batch_size"] == choice.batch_size) | scores["untrained"]]
    if choice.seed is not None:
        scores = rows_of(scores, seed=choice.seed)
    rivals = scores[scores["loss"] != first]
    if choice.second is not None:
        rivals = rows_of(rivals, loss=choice.second)
    columns = [*NETWORK, "setting", "batch_size", "run_id", "value", "loss", "untrained"]
    means = inputs.last[[*CONDITION, "metric", "loss", "mean"]]
    pairs = (
        rivals[columns]
        .merge(means, on=[*CONDITION, "metric", "loss"])
        .merge(rows_of(scores, loss=first)[columns], on=NETWORK, suffixes=("_second", "_first"))
    )
    alike = (pairs["setting_second"] == pairs["setting_first"]) & (
        pairs["batch_size_second"] == pairs["batch_size_first"]
    )
    pairs = pairs.assign(alike=alike)
    pairs = pairs[alike | pairs["untrained_second"] | pairs["untrained_first"]]
    if pairs.empty:
        raise NothingToShow(
            f"no seed has finished both for {first} and for {choice.second or 'any other loss'} "
            "under one setting and batch size"
        )
    order = ["untrained_second", "alike", "mean", "seed"]
    best = pairs.sort_values(order, ascending=[True, False, False, True], kind="stable")
    place = ["dataset"]
    if UNTRAINED in (choice.first, choice.second):
        place.append("network")
    best = best.drop_duplicates(place).loc[lambda rows: sorted(rows.index)].head(DATASETS)
    found = []
    for row in best.to_dict("records"):
        trained = "first" if row["untrained_second"] else "second"
        pair = {name: row[name] for name in ("dataset", "seed", "metric")}
        pair["name"] = "-".join(row[column] for column in place)
        pair |= {name: row[f"{name}_{trained}"] for name in ("setting", "batch_size")}
        swapped = row["untrained_second"] and choice.second is None
        for which, source in zip(SIDES, SIDES[::-1] if swapped else SIDES, strict=True):
            loss, run_id, score = (row[f"{key}_{source}"] for key in ("loss", "run_id", "value"))
            pair[which] = {
                "loss": loss,
                "base": inputs.base_losses[loss],
                "display": inputs.label(loss),
                "run_id": run_id,
                "score": score,
            }
        found.append(pair)
    return found


@dataclass(frozen=True)
class Neighbours:
    """Of Q queries, the K nearest items each, best first; ``images`` are thumbnails, uint8.

    ``ranks``: of all positives of a query, ascending; ``precisions``: AP, NaN without a positive.
    """

    queries: np.ndarray
    names: np.ndarray
    matches: np.ndarray
    images: np.ndarray
    neighbour_images: np.ndarray
    ranks: list[np.ndarray]
    categories: np.ndarray
    precisions: np.ndarray


def curve_of(ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return recall and precision (P + 1,) at the ascending ranks (P,) of all positives.

    Drawn as steps that reach back to the recall before: the area under them is the AP.
    """
    number = np.arange(len(ranks) + 1)
    precision = number[1:] / ranks
    return number / len(ranks), np.concatenate([precision[:1], precision])


def draw_curves(pair: Facts, sides: Mapping[str, Neighbours], rows: Iterable[int]) -> Drawing:
    """Return a panel per query with its precision-recall curve and AP under each loss."""
    rows = list(rows)
    lines = math.ceil(len(rows) / ACROSS)
    alt = "Precision-recall curves."
    with styled():
        figure, grid = new_figure(DOUBLE, 1.5 * lines + 0.4, lines, ACROSS)
        for axes in grid.flat[len(rows) :]:
            axes.set_visible(False)
        for number, (axes, row) in enumerate(zip(grid.flat, rows, strict=False), start=1):
            found = [f"{100 * side.precisions[row]:.1f}%" for side in sides.values()]
            axes.set(title=f"{number}: AP {' and '.join(found)}", xlim=(0, 1), ylim=(0, 1.03))
            axes.set(xticks=HALVES, yticks=HALVES)
            alt += f" Query {number}: AP {' and '.join(found)}."
            for which, side in sides.items():
                look = line(pair[which]["loss"], pair[which]["base"]) | {"marker": ""}
                look |= {"drawstyle": "steps-pre", "label": pair[which]["display"]}
                axes.plot(*curve_of(side.ranks[row]), **look)
        for axes in grid[-1]:
            axes.set_xlabel("recall")
        for axes in grid[:, 0]:
            axes.set_ylabel("precision")
        legend_below(figure)
    return Drawing("", alt, figure, pd.DataFrame())


def average_precision(ranks: np.ndarray) -> float:
    """Return the mean of i / r_i over the ascending ranks r_i of the positives; NaN without any."""
    return float(np.mean(np.arange(1, len(ranks) + 1) / ranks)) if len(ranks) else float("nan")


def load_neighbours(path: Path) -> Neighbours:
    """Return what ``neighbours.npz`` of a run has."""
    with np.load(path) as stored:
        arrays = dict(stored)
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


def draw(neighbours: Neighbours, rows: Iterable[int]) -> bytes:
    """Return the PNG of these queries, one a row: its number, the query and its neighbours.

    A match has a solid frame and a tick, anything else a dashed frame and a cross.
    """
    rows = list(rows)
    across = neighbours.matches.shape[1]
    size = (NUMBER + CELL + AFTER_QUERY + across * (CELL + GAP), len(rows) * (CELL + BAND))
    canvas = Image.new("RGBA", size, (0, 0, 0, 0))
    pen = ImageDraw.Draw(canvas)
    for above, row in enumerate(rows):
        top = above * (CELL + BAND)
        place = (NUMBER // 2, top + CELL // 2)
        pen.text(place, str(above + 1), fill=QUERY, font_size=16, anchor="mm")
        _framed(canvas, neighbours.images[row], NUMBER, top, QUERY)
        for number, match in enumerate(neighbours.matches[row]):
            left = NUMBER + CELL + AFTER_QUERY + number * (CELL + GAP)
            colour = MATCH if match else MISMATCH
            _framed(canvas, neighbours.neighbour_images[row, number], left, top, colour)
            x = left + CELL // 2
            y = top + CELL + BAND // 2
            for x0, y0, x1, y1 in TICK if match else CROSS:
                pen.line((x + x0, y + y0, x + x1, y + y1), fill=colour, width=3)
    stream = io.BytesIO()
    palette = canvas.quantize(256, method=Image.Quantize.FASTOCTREE)  # a third of the bytes
    palette.save(stream, format="PNG", optimize=True)
    return stream.getvalue()


def _framed(
    canvas: Image.Image, pixels: np.ndarray, left: int, top: int, colour: tuple[int, ...]
) -> None:
    pen = ImageDraw.Draw(canvas)
    right = left + CELL - 1
    bottom = top + CELL - 1
    pen.rectangle((left, top, right, bottom), outline=colour, width=FRAME - 1)
    for start in range(DASH, CELL, 2 * DASH) if colour == MISMATCH else ():
        stop = start + DASH - 1
        pen.rectangle((left + start, top, left + stop, bottom), fill=(0, 0, 0, 0))
        pen.rectangle((left, top + start, right, top + stop), fill=(0, 0, 0, 0))
    thumbnail = Image.fromarray(pixels).resize((SIDE, SIDE))
    canvas.paste(thumbnail, (left + FRAME, top + FRAME))


def write_gallery(inputs: StudyResults, results: Path, choice: PairChoice) -> Gallery:
    """Write ``results/<study>/gallery`` from scratch and return its record."""
    begin_folder(folder := inputs.study.folder(results) / GALLERY)
    shown: list[Facts] = []
    tables: list[pd.DataFrame] = []
    reasons: list[str] = []
    contents: dict[str, bytes] = {}
    pairs: list[Facts] = []
    try:
        pairs = run_pairs(inputs, choice)
    except NothingToShow as reason:
        reasons.append(str(reason))
    for pair in pairs:
        runs = [pair[which]["run_id"] for which in SIDES]
        paths = [results / "runs" / run / NEIGHBOURS for run in runs]
        absent = [path for path in paths if not path.is_file() or not path.stat().st_size]
        if absent:
            cure = "train the run again, which writes it"
            reasons.append(without_paths(f"{absent[0]} does not exist or is empty; {cure}"))
            continue
        first, second = map(load_neighbours, paths)
        if not first.images.size:
            reasons.append(f"{pair['dataset']} has features and no images to show")
            continue
        if not np.array_equal(first.queries, second.queries):
            reasons.append(f"{' and '.join(runs)} recorded different queries; train both again")
            continue
        facts, table, pictures = _show(pair, first, second)
        shown.append(facts)
        tables.append(table)
        contents |= pictures
    for file, content in contents.items():
        with replacing(folder / file) as temporary:
            temporary.write_bytes(content)
    if tables:
        text = pd.concat(tables).to_csv(index=False, float_format="%.6g", lineterminator="\n")
        write_text(folder / TABLE, text)
        contents[TABLE] = text.encode()
    why = "" if shown else "; ".join(dict.fromkeys(reasons))
    record = {"study": inputs.study.name, "pairs": shown, "reason": why, "schema": 3}
    write_json(folder / "gallery.json", record)
    return Gallery(shown, why, contents)


def _show(
    pair: Facts, first: Neighbours, second: Neighbours
) -> tuple[Facts, pd.DataFrame, dict[str, bytes]]:
    """Return what is shown of two runs, all recorded queries, and the pictures by file name."""
    sides = dict(zip(SIDES, (first, second), strict=True))
    change = second.precisions - first.precisions
    names = [without_paths(str(name)) for name in first.names]
    table = pd.DataFrame(
        {
            "dataset": pair["dataset"],
            "query": first.queries,
            "name": [*map(as_text, names)],
            "category": first.categories,
            pair["first"]["loss"]: first.precisions,
            pair["second"]["loss"]: second.precisions,
            "change": change,
        }
    )
    chosen = choose(first.precisions, second.precisions, first.categories)
    queries = []
    for row, reason in chosen.items():
        query = {"name": names[row], "reason": reason, "positives": len(first.ranks[row])}
        for which, side in sides.items():
            query[which] = {
                "average_precision": float(side.precisions[row]),
                "matches": int(side.matches[row].sum()),
                "retrieved": len(side.matches[row]),
            }
        queries.append(query)
    facts: Facts = {
        "pair": pair,
        "recorded": len(table),
        "queries": queries,
        "improved": int((change > 0).sum()),
        "worsened": int((change < 0).sum()),
    }
    pictures = {}
    for which, side in sides.items():
        alt = f"{pair[which]['display']}, the nearest to each query."
        for number, row in enumerate(chosen, start=1):
            ranks = ", ".join(str(rank + 1) for rank in np.flatnonzero(side.matches[row]))
            alt += f" Query {number}: right at rank {ranks or 'none'}."
        facts[which] = {"file": f"{pair['name']}-{which}.png", "alt": alt}
        pictures[facts[which]["file"]] = draw(side, chosen)
    curves = draw_curves(pair, sides, chosen)
    facts["curves"] = {"file": f"{pair['name']}-curves.svg", "alt": curves.alt}
    pictures[facts["curves"]["file"]] = to_svg(curves).encode()
    return facts, table, pictures
