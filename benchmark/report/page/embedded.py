"""What the page embeds of other steps: downloads, the gallery as far as it fits, analyses."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmark.report.drawing.drawing import inline_svg
from benchmark.report.gallery.choose import REASONS
from benchmark.report.labels import dataset_label, metric_label
from benchmark.report.records import (
    GALLERY_FILE,
    SIDES,
    SUMMARY,
    AnalysisSummary,
    Gallery,
    PairQueries,
    Query,
)

EMBEDDED = 300_000  # bytes of one embedded file; a larger one is linked beside the page


@dataclass(frozen=True)
class Download:
    """A link: what it says, the name to save under, and the address."""

    label: str
    name: str
    address: str


def download(label: str, study: Path, file: str, name: str = "") -> Download:
    """Return the link to ``file`` of a study's folder, saved as ``name`` (default: its own)."""
    path = study / file
    content = path.read_bytes()
    address = f"../{file}"
    if len(content) <= EMBEDDED:
        kind = "text/csv" if path.suffix == ".csv" else "text/plain"
        address = f"data:{kind};charset=utf-8;base64,{base64.b64encode(content).decode()}"
    return Download(label, name or path.name, address)


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
    if not (folder / GALLERY_FILE).is_file():
        command = f"python -m benchmark gallery {folder.parent.name}"
        return GallerySection(reason=f"run '{command}', or the workflow, which makes it")
    left_out, pairs = 0, []
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
    return GallerySection(pairs, gallery.reason, left_out)


def _embedded(query: Query, folder: Path) -> GalleryQuery:
    curve = (folder / f"{query.curve}.svg").read_text("utf-8")
    svg = inline_svg(curve, f"gallery-{query.curve}", query.caption)
    pictures: dict[str, str] = {}
    for which in SIDES:
        content = (folder / getattr(query, which).picture).read_bytes()
        pictures[which] = f"data:image/png;base64,{base64.b64encode(content).decode()}"
    return GalleryQuery(query, svg, pictures)


FOLDER = "analyses"
FILES = {"figure.csv": "Numbers of the figure (CSV)", "table.csv": "Table (CSV)"}


@dataclass(frozen=True)
class AnalysisItem:
    """One analysis on the page; the figure is an ``svg`` element, the table a ``figure`` or ""."""

    name: str
    summary: AnalysisSummary
    figure: str
    table: str
    note: str
    downloads: tuple[Download, ...]


def load_analyses(study: Path) -> list[AnalysisItem]:
    """Return the analyses in a study's folder by name; none where there are none."""
    found = sorted((study / FOLDER).glob(f"*/{SUMMARY}"))
    return [_load(study, path.parent) for path in found]


def _load(study: Path, folder: Path) -> AnalysisItem:
    name, summary = folder.name, AnalysisSummary.read(folder)
    svg, table = (folder / "figure.svg").read_text("utf-8"), folder / "table.html"
    downloads = [
        download(label, study, f"{FOLDER}/{name}/{file}", f"{name}_{file}")
        for file, label in FILES.items()
        if (folder / file).is_file()
    ]
    return AnalysisItem(
        name,
        summary,
        inline_svg(svg, f"analysis-{name}", summary.alt),
        table.read_text("utf-8") if table.is_file() else "",
        _note(summary),
        tuple(downloads),
    )


def _note(summary: AnalysisSummary) -> str:
    if summary.quick:
        return "A quick trial on tiny data: its numbers mean nothing."
    if not summary.runs:
        return "Nothing was trained for it."
    seeds = ", ".join(map(str, summary.seeds))
    trained = f"Networks trained for it: {len(summary.runs)}, with seeds {seeds}"
    return f"{trained}; code {summary.code_version}."
