"""The report: one self-contained HTML page per study, with style, script, figures and downloads."""

import base64
import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from benchmark import __version__
from benchmark.core.code_version import mixed
from benchmark.core.paths import without_paths
from benchmark.core.words import DASH, count, duration
from benchmark.metrics.metric import metric_of
from benchmark.report.answer import answer
from benchmark.report.artefacts import AnalysisSummary, Artefact
from benchmark.report.drawing import inline_svg, size_rules
from benchmark.report.gallery import GALLERY, REASONS, SIDES, TABLE, Gallery
from benchmark.report.labels import dataset_label, metric_label
from benchmark.report.notices import notices
from benchmark.report.render import TEMPLATES, to_html
from benchmark.report.study_results import StudyResults
from benchmark.report.table import TONES, Table, TableCell, filled, words
from benchmark.report.tally import counts, judged, published_of
from benchmark.study import Study
from benchmark.study.load import config_folders
from benchmark.study.model import base_of
from benchmark.verdicts.explain import rule
from benchmark.verdicts.verdicts import VERDICTS

EMBEDDED = 300_000  # bytes of one embedded file; a larger one is linked beside the page
LIMIT = 2_500_000  # bytes of the gallery's pictures in one page
ANALYSES = "analyses"
FILES = {"figure.csv": "Numbers of the figure (CSV)", "table.csv": "Table (CSV)"}
KINDS = {"table": {"CSV": "csv", "LaTeX": "tex"}, "figure": {"Numbers (CSV)": "csv"}}
# Tables for a second reading start closed.
FOLDED = ("all_pairs", "best_epoch", "published", "uncertainty")
# What opens the page: the first of each kind that a study has, a table only while it is small.
OPENING = {
    "figure": ("score_by_budget", "whole_set", "metric_by_batch_size"),
    "table": ("headline", "budgets", "comparison"),
}
SMALL = 20  # rows
# Where printed numbers were run they are the question: they come first, all else starts closed.
OPENING_OF_PAPERS = {"table": ("outcomes",), "figure": ("verdicts",)}
OF_PAPERS = ("verdicts", "papers", "claims")
# Sections for a second reading start closed; so do our own frozen runs where they stand alone.
CLOSED = ("cost", "curves", ANALYSES)
# {anchor: (title, tables and figures in reading order)}; all others come in a section of their own.
# "table/paper" stands for all tables that papers print, and so on.
SECTIONS = {
    "sweeps": ("Sweeps", "figure/sweep table/sweep"),
    "budgets": (
        "Equal budgets",
        "figure:score_by_budget table:budgets figure:expected_best table:budget_order "
        "table:budget_options",
    ),
    "results": (
        "Results",
        "table:headline table:comparison figure:metric_by_batch_size figure:whole_set "
        "table:uncertainty table:best_epoch",
    ),
    "tests": ("Tests", "table:paired figure:seed_differences table:all_pairs table:batch_sizes"),
    "datasets": (
        "Over datasets",
        "figure:critical_difference table:ranks figure:performance_profiles",
    ),
    "noise": ("Sources of noise", "figure:noise_sources table:noise"),
    "ablation": ("Ablation", "table:ablation"),
    GALLERY: ("Retrieval gallery", ""),
    "verdicts": (
        "Published numbers and verdicts",
        "table:outcomes figure:verdicts table:published table:outside",
    ),
    "papers": ("The papers' tables and figures", "table/paper figure/paper"),
    "claims": ("Claims of the papers", "table:claims"),
    "missing": ("Runs without a result", "table:missing"),
    "cost": ("Cost", "table:cost figure:loss_cost"),
    "curves": ("Learning curves", "figure:learning_curves"),
    ANALYSES: ("Analyses", ""),
}


class Download(NamedTuple):
    """A link: what it says, the name to save under, and the address."""

    label: str
    name: str
    address: str


def download(label: str, file: str, content: bytes, name: str = "") -> Download:
    """Return the link to ``file`` of a study's folder, saved as ``name`` (default: its own)."""
    address = f"../{file}"
    if len(content) <= EMBEDDED:
        kind = "text/csv" if file.endswith(".csv") else "text/plain"
        address = f"data:{kind};charset=utf-8;base64,{base64.b64encode(content).decode()}"
    return Download(label, name or file.rpartition("/")[2], address)


class AnalysisItem(NamedTuple):
    """One analysis on the page; the figure is an ``svg`` element, the table a ``figure``."""

    name: str
    summary: AnalysisSummary
    figure: str
    table: str
    note: str
    downloads: list[Download]


def load_analysis(folder: Path) -> AnalysisItem:
    """Return what an analysis has left in a folder of its own."""
    name = folder.name
    summary = AnalysisSummary.read(folder)
    svg, table = ((folder / file).read_text("utf-8") for file in ("figure.svg", "table.html"))
    downloads = [
        download(label, f"{ANALYSES}/{name}/{file}", (folder / file).read_bytes(), f"{name}_{file}")
        for file, label in FILES.items()
    ]
    seeds = ", ".join(map(str, summary.seeds))
    note = f"Networks trained for it: {len(summary.runs)}, with seeds {seeds}"
    note += f"; code {summary.code_version}."
    if summary.quick:
        note = "A quick trial on tiny data: its numbers mean nothing."
    elif not summary.runs:
        note = "Nothing was trained for it."
    element = inline_svg(svg, f"analysis-{name}", summary.alt)
    return AnalysisItem(name, summary, element, table, note, downloads)


@dataclass(frozen=True)
class Built:
    """What the page is made of besides numbers; ``failed``: what could not be made, and why."""

    artefacts: list[Artefact]
    gallery: Gallery
    analyses: list[AnalysisItem] = field(default_factory=list)
    failed: Mapping[str, str] = field(default_factory=dict)


def build_page(inputs: StudyResults, built: Built) -> str:
    """Return the whole page; equal parts give equal bytes."""
    verdicts = inputs.verdicts
    study = inputs.study
    printed = judged(published_of(verdicts))
    elements = [each.element for each in built.artefacts]
    elements += [each.figure for each in built.analyses]
    gallery = gallery_section(built.gallery)
    elements += [each["curves"] for each in gallery["pairs"]]
    folder = Path(__file__).with_name("templates")
    style = f"\n{(folder / 'style.css').read_text('utf-8')}{size_rules(elements)}\n"
    script = f"\n{(folder / 'sort.js').read_text('utf-8')}\n"
    # by which a content security policy allows one element
    style_digest, script_digest = (
        f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
        for text in (style, script)
    )
    failures = [f"Not made: {name} ({reason})." for name, reason in built.failed.items()]
    queries = built.gallery.files.get(TABLE)
    opening, sections, rest = _sections(inputs, built)
    place = study.name if study.path.parent in config_folders() else study.path.as_posix()
    source = next(filter(Path.is_file, (study.path, Path(base_of(str(study.path))))), None)
    content = without_paths(source.read_text("utf-8")).encode() if source else b""
    closed = {*CLOSED, "verdicts"}
    if printed:
        closed = {*SECTIONS, "more"} - {*OF_PAPERS}
    return TEMPLATES.get_template("page.html.j2").render(
        inputs=inputs,
        study=study,
        title=f"Made-up runs: {study.title}" if inputs.made_up else study.title,
        place=without_paths(place),
        file=source and download("download it", source.name, content),
        answer=answer(inputs),
        notices=[*failures, *notices(inputs)],
        counts=counts(inputs),
        opening=opening,
        sections=sections,
        rest=rest,
        absent=dict.fromkeys((each.title, each.reason) for each in rest if each.reason),
        closed=closed,
        folded=FOLDED,
        downloads_of=_downloads,
        gallery=gallery,
        gallery_files=[download("Every recorded query (CSV)", f"{GALLERY}/{TABLE}", queries)]
        if queries is not None
        else [],
        analyses=built.analyses,
        tones=TONES,
        sources=[*recipe_tables(inputs)],
        meanings=VERDICTS,
        rule="" if verdicts.empty else rule(verdicts["level"].min()),
        margins=[] if verdicts.empty else sorted(verdicts["margin"].dropna().unique()),
        metric_of=metric_of,
        metric_label=metric_label,
        count=count,
        mixed=mixed,
        duration=duration,
        version=__version__,
        style=style,
        script=script,
        style_digest=style_digest,
        script_digest=script_digest,
    )


def gallery_section(gallery: Gallery, limit: int = LIMIT) -> dict[str, Any]:
    """Return what the page shows of a gallery, with at most ``limit`` bytes of pictures.

    Headings name the setting where the pairs have several: one says nothing.
    """
    left_out = 0
    several = len({record["pair"]["setting"] for record in gallery.pairs}) > 1
    pairs: list[dict[str, Any]] = []
    for record in gallery.pairs:
        pictures: dict[str, str] = {}
        for which in SIDES:
            content = base64.b64encode(gallery.files[record[which]["file"]])
            if len(content) > limit:
                left_out += 1
            else:
                limit -= len(content)
                pictures[which] = f"data:image/png;base64,{content.decode()}"
        curves = gallery.files[record["curves"]["file"]].decode()
        pair = record["pair"]
        where = dataset_label(pair["dataset"], pair["setting"] if several else "")
        title = f"{where} · batch size {pair['batch_size']} · seed {pair['seed']}"
        element = inline_svg(curves, f"curves-{len(pairs)}", record["curves"]["alt"])
        pairs.append({"title": title, "record": record, "pictures": pictures, "curves": element})
    return {"pairs": pairs, "reason": gallery.reason, "left_out": left_out, "reasons": REASONS}


def recipe_tables(inputs: StudyResults) -> Iterator[str]:
    """Yield the tables of where recipes differ from the authors', and of where values come from."""
    study = inputs.study
    if rows := inputs.grid.ledger:
        yield to_html(deviations(study, rows), "recipe_deviations")
    recipes = {block.recipe_name: block.sources for block in study.blocks if block.recipe_name}
    if any(recipes.values()):
        yield to_html(sources(recipes), "recipe_sources")


def sources(recipes: Mapping[str, Mapping[str, str]]) -> Table:
    """Return one section per recipe with the source of each of its parts."""
    silent = ", ".join(sorted(name for name, parts in recipes.items() if not parts))
    notes = [f"No sources are given in: {silent}."] if silent else []
    return filled(
        "Sources of the recipes",
        "What each part of a recipe follows, as its file says. The values themselves stand in the "
        "specification of every run.",
        [
            words("Part of the recipe", itemgetter(0)),
            words("Where its values come from", itemgetter(1)),
        ],
        ((name, row) for name, parts in sorted(recipes.items()) for row in parts.items()),
        notes,
    )


def deviations(study: Study, rows: Sequence[Any]) -> Table:
    """Return one section per recipe with its values that may move a score."""
    stated = [row.equal for row in rows if row.equal != "not stated"]
    return filled(
        "Where our recipes and the authors' differ",
        "Values of the recipes that may move a score: what the paper states (a dash: it says "
        "nothing of it), what the authors' code does, ours, and the expected effect in points, "
        "which is judged and not measured.",
        [
            words("Value", lambda row: row.item or DASH),
            words("Paper", lambda row: row.paper or DASH),
            words("Code", lambda row: row.code or DASH),
            words("Ours", lambda row: row.ours or DASH),
            words("Effect", lambda row: TableCell(row.effect, tone="bad" if row.large else "")),
            words("Reason", lambda row: row.reason),
        ],
        ((row.recipe, row) for row in rows if row.deviates),
        [
            f"Of {len(rows)} values, {len(stated)} are stated by the paper or its code, and "
            f"{stated.count('yes')} of these are equal; 'python -m benchmark fidelity "
            f"{study.name}' prints all of them."
        ],
    )


def _downloads(record: Artefact) -> list[Download]:
    return [
        download(label, f"{record.kind}s/{record.name}.{kind}", record.files[kind].encode())
        for label, kind in KINDS[record.kind].items()
        if record.files
    ]


class PageSection(NamedTuple):
    """A section of the page."""

    anchor: str
    title: str
    records: list[Artefact]


def _sections(
    inputs: StudyResults, built: Built
) -> tuple[list[Artefact], list[PageSection], list[Artefact]]:
    """Return what opens the page, its sections, and what nobody asked or has nothing to show.

    Gallery and analyses bring their own content.
    """
    left = {}
    rest = []
    hidden = "" if judged(inputs.claims) else "claims"
    for each in built.artefacts:
        if each.reason or each.name == hidden or (each.group == "paper" and not each.measured):
            rest.append(each)
        else:
            left[f"{each.kind}:{each.name}"] = each
    opening = []
    printed = judged(published_of(inputs.verdicts))
    for kind, names in (OPENING_OF_PAPERS if printed else OPENING).items():
        keys = [key for name in names if (key := f"{kind}:{name}") in left]
        small = [key for key in keys if kind == "figure" or printed or left[key].rows <= SMALL]
        opening += [left.pop(key) for key in small[:1]]
    grouped = defaultdict(list)
    for key, each in left.items():
        grouped[f"{each.kind}/{each.group}"].append(key)
    anchors = [*SECTIONS]
    sections = []
    if printed:
        anchors = [*OF_PAPERS, *(anchor for anchor in SECTIONS if anchor not in OF_PAPERS)]
    other_content = {GALLERY: built.gallery.pairs, ANALYSES: built.analyses}
    for anchor in anchors:
        title, entries = SECTIONS[anchor]
        keys = [key for entry in entries.split() for key in grouped.get(entry, [entry])]
        here = [left.pop(key) for key in keys if key in left]
        if here or other_content.get(anchor):
            sections.append(PageSection(anchor, title, here))
    if left:
        sections.append(PageSection("more", "More", [*left.values()]))
    if built.gallery.reason:
        title = SECTIONS[GALLERY][0]
        rest.append(Artefact("figure", GALLERY, title, reason=built.gallery.reason))
    return opening, sections, rest
