"""The retrieval gallery on the page: its pictures as far as they fit, the rest in its folder."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmark.core.errors import BenchmarkError
from benchmark.core.paths import file_below, read_regular
from benchmark.core.privacy import without_paths
from benchmark.report.drawing.drawing import inline_svg
from benchmark.report.gallery.choose import REASONS
from benchmark.report.gallery.record import SIDES, Gallery, PairQueries, Query
from benchmark.report.labels import dataset_label, metric_label
from benchmark.report.page.sanitised import safe_svg

LIMIT = 2_500_000  # bytes of pictures and curves in one page


@dataclass(frozen=True)
class GalleryQuery:
    """A query with its curves as an ``svg`` element and its strips as data addresses."""

    query: Query
    svg: str
    pictures: Mapping[str, str]


@dataclass(frozen=True)
class GalleryPair:
    """The queries of two runs, below a heading."""

    title: str
    metric: str
    record: PairQueries
    queries: list[GalleryQuery]


@dataclass(frozen=True)
class GallerySection:
    """What the page shows; ``reason`` when there is nothing; ``left_out`` counts queries."""

    pairs: list[GalleryPair] = field(default_factory=list)
    reason: str = ""
    left_out: int = 0
    reasons: Mapping[str, str] = field(default_factory=lambda: REASONS)


def load_gallery(folder: Path, limit: int = LIMIT) -> GallerySection:
    """Return the gallery of ``results/<study>/gallery`` with at most ``limit`` bytes."""
    left_out, pairs = 0, []
    try:
        gallery = Gallery.read(folder)
        for record in gallery.pairs:
            queries = []
            for query in record.queries:
                found = _embedded(query, folder)
                size = len(found.svg) + sum(map(len, found.pictures.values()))
                if size > limit:
                    left_out += 1
                else:
                    limit -= size
                    queries.append(found)
            pair = record.pair
            where = dataset_label(pair.dataset, pair.setting)
            title = f"{where} · batch size {pair.batch_size} · seed {pair.seed}"
            pairs.append(GalleryPair(title, metric_label(pair.metric), record, queries))
    except (BenchmarkError, OSError, ValueError) as error:
        return GallerySection(reason=without_paths(str(error)))
    return GallerySection(pairs, gallery.reason, left_out)


def _embedded(query: Query, folder: Path) -> GalleryQuery:
    curve = read_regular(file_below(folder, f"{query.curve}.svg")).decode()
    svg = inline_svg(safe_svg(curve), f"gallery-{query.curve}", query.caption)
    pictures: dict[str, str] = {}
    for which in SIDES:
        content = read_regular(file_below(folder, getattr(query, which).picture))
        pictures[which] = f"data:image/png;base64,{base64.b64encode(content).decode()}"
    return GalleryQuery(query, svg, pictures)
