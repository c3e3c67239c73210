"""What the page embeds of other steps: the retrieval gallery as far as it fits, the analyses."""

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmark.core.errors import BenchmarkError, RunError
from benchmark.core.paths import file_below, read_regular
from benchmark.core.privacy import without_paths
from benchmark.report.drawing.drawing import inline_svg
from benchmark.report.gallery.choose import REASONS
from benchmark.report.labels import dataset_label, metric_label
from benchmark.report.page.files import Download, download, safe_html, safe_svg
from benchmark.report.records import SIDES, SUMMARY, AnalysisSummary, Gallery, PairQueries, Query

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


FOLDER = "analyses"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
FILES = {"figure.csv": "Numbers of the figure (CSV)", "table.csv": "Table (CSV)"}


@dataclass(frozen=True)
class AnalysisItem:
    """One analysis on the page; ``reason`` in place of the rest when its files cannot be read."""

    name: str
    title: str
    reason: str = ""
    summary: AnalysisSummary | None = None
    figure: str = ""  # an svg element
    table: str = ""  # a figure element
    note: str = ""
    downloads: tuple[Download, ...] = ()


def load_analyses(study: Path) -> list[AnalysisItem]:
    """Return the analyses in a study's folder by name; none where there are none."""
    found = sorted((study / FOLDER).glob(f"*/{SUMMARY}"))
    return [_load(study, path.parent.name) for path in found]


def _load(study: Path, name: str) -> AnalysisItem:
    folder = study / FOLDER / name
    if not _NAME.fullmatch(name):
        words = f"{name!a} is no name of an analysis; remove that folder, or name it after one"
        return AnalysisItem(re.sub(r"[^A-Za-z0-9_.+-]", "_", name), ascii(name), reason=words)
    try:
        summary = AnalysisSummary.read(folder)
        _check_place(summary, name, study.name)
        svg = read_regular(file_below(study, f"{FOLDER}/{name}/figure.svg")).decode()
        table = file_below(study, f"{FOLDER}/{name}/table.html")
        return AnalysisItem(
            name=name,
            title=summary.title,
            summary=summary,
            figure=inline_svg(safe_svg(svg), f"analysis-{name}", summary.alt),
            table=safe_html(read_regular(table).decode(), f"analysis-{summary.name}")
            if table.is_file()
            else "",
            note=_note(summary),
            downloads=tuple(
                download(label, study, f"{FOLDER}/{name}/{file}", f"{name}_{file}")
                for file, label in FILES.items()
                if (folder / file).is_file()
            ),
        )
    except (BenchmarkError, OSError, ValueError) as error:
        return AnalysisItem(name, name, reason=without_paths(str(error)))


def _check_place(summary: AnalysisSummary, name: str, study: str) -> None:
    """Raise RunError unless the record is of this study and of the analysis in its folder's name.

    Of an analysis on another dataset the folder is called NAME-LABEL.
    """
    if summary.study != study or not f"{name}-".startswith(f"{summary.name}-"):
        raise RunError(
            f"it is the analysis '{summary.name}' of the study '{summary.study}'; remove its "
            f"folder, or make it with 'python -m benchmark analyse {name} {study}'"
        )


def _note(summary: AnalysisSummary) -> str:
    if summary.quick:
        return "A quick trial on tiny data: its numbers mean nothing."
    if not summary.runs:
        return "Nothing was trained for it."
    seeds = ", ".join(map(str, summary.seeds))
    trained = f"Networks trained for it: {len(summary.runs)}, with seeds {seeds}"
    return f"{trained}; code {summary.code_version}."
