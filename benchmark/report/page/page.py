"""Put the page together: sections, inlined style, script and figures, and files to download."""

import base64
import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmark import __version__
from benchmark.metrics.names import metric_of
from benchmark.papers.verdicts import NOT_ASKED, NOT_RUN, VERDICTS, rule
from benchmark.report.drawing import inline_svg, size_rules
from benchmark.report.gallery import REASONS, TABLE
from benchmark.report.inputs import Inputs
from benchmark.report.labels import confidence, dataset_label, loss_label, metric_label
from benchmark.report.numbers import count, duration
from benchmark.report.page.answer import (
    answer,
    claim_counts,
    claims_heading,
    run_counts,
    verdict_counts,
)
from benchmark.report.page.notices import notices
from benchmark.report.page.recipes import recipe_deviations, recipe_sources
from benchmark.report.records import (
    GALLERY,
    SIDES,
    AnalysisSummary,
    Artefact,
    Gallery,
    PairQueries,
)
from benchmark.report.render import environment, to_html
from benchmark.report.table import TONES

EMBEDDED = 300_000  # bytes of one embedded file; a larger one is linked beside the page
LIMIT = 2_500_000  # bytes of the gallery's pictures in one page
ANALYSES = "analyses"
FILES = {"figure.csv": "Numbers of the figure (CSV)", "table.csv": "Table (CSV)"}
FOLDED = ("all_pairs", "best_epoch", "uncertainty")  # tables for a second reading start closed
LONG = 60  # rows from which the flat list of reference numbers starts closed as well
# What papers say comes first where there is something to compare with it, else after the ablation.
OF_PAPERS = ("claims", "verdicts")
# {anchor: (title, tables and figures in reading order)}; all others come in a section of their own.
# "table/paper" stands for all tables that papers print, and so on.
SECTIONS = {
    "claims": ("Claims of the papers", ("table:claims",)),
    "verdicts": (
        "Published numbers and verdicts",
        ("figure:verdicts", "table:published", "table:outside"),
    ),
    "papers": ("The papers' tables and figures", ("table/paper", "figure/paper")),
    "sweeps": ("Sweeps", ("figure/sweep", "table/sweep")),
    "budgets": (
        "Equal budgets",
        (
            "figure:score_by_budget",
            "table:budgets",
            "figure:expected_best",
            "table:budget_order",
            "table:budget_options",
        ),
    ),
    "results": (
        "Results",
        (
            "table:comparison",
            "figure:metric_by_batch_size",
            "figure:whole_set",
            "table:uncertainty",
            "table:best_epoch",
        ),
    ),
    "tests": ("Tests", ("table:paired", "figure:seed_differences", "table:all_pairs")),
    "datasets": (
        "Over datasets",
        ("figure:critical_difference", "table:ranks", "figure:performance_profiles"),
    ),
    "noise": ("Sources of noise", ("figure:noise_sources", "table:noise")),
    "ablation": ("Ablation", ("table:ablation", "figure:calibration_gain")),
    GALLERY: ("Retrieval gallery", ()),
    "curves": ("Learning curves", ("figure:learning_curves",)),
    ANALYSES: ("Analyses", ()),
    "cost": ("Cost", ("table:cost", "figure:loss_cost")),
    "missing": ("Runs without a result", ("table:missing",)),
}


@dataclass(frozen=True)
class Download:
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


@dataclass(frozen=True)
class GalleryPair:
    """The queries of two runs, below a heading, and the pictures that fit as data addresses."""

    title: str
    metric: str
    record: PairQueries
    pictures: Mapping[str, str]


@dataclass(frozen=True)
class GallerySection:
    """What the page shows; ``reason`` when there is nothing; ``left_out`` counts pictures."""

    pairs: list[GalleryPair] = field(default_factory=list)
    reason: str = ""
    left_out: int = 0
    reasons: Mapping[str, str] = field(default_factory=lambda: REASONS)


def gallery_section(gallery: Gallery, limit: int = LIMIT) -> GallerySection:
    """Return what the page shows of a gallery, with at most ``limit`` bytes."""
    left_out, pairs = 0, []
    for record in gallery.pairs:
        pictures: dict[str, str] = {}
        for which in SIDES:
            content = base64.b64encode(gallery.files[getattr(record, which).file])
            if len(content) > limit:
                left_out += 1
            else:
                limit -= len(content)
                pictures[which] = f"data:image/png;base64,{content.decode()}"
        pair = record.pair
        where = dataset_label(pair.dataset, pair.setting)
        title = f"{where} · batch size {pair.batch_size} · seed {pair.seed}"
        pairs.append(GalleryPair(title, metric_label(pair.metric), record, pictures))
    return GallerySection(pairs, gallery.reason, left_out)


@dataclass(frozen=True)
class AnalysisItem:
    """One analysis on the page; the figure is an ``svg`` element, the table a ``figure`` or ""."""

    name: str
    summary: AnalysisSummary
    figure: str
    table: str
    note: str
    downloads: tuple[Download, ...]


def load_analysis(folder: Path) -> AnalysisItem:
    """Return what an analysis has left in a folder of its own."""
    name, summary = folder.name, AnalysisSummary.read(folder)
    svg, table = (folder / "figure.svg").read_text("utf-8"), folder / "table.html"
    downloads = [
        download(label, f"{ANALYSES}/{name}/{file}", (folder / file).read_bytes(), f"{name}_{file}")
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


@dataclass(frozen=True)
class Item:
    """One table or figure on the page, with its element and the files to download."""

    kind: str
    record: Artefact
    element: str = ""
    folded: bool = False
    downloads: tuple[Download, ...] = ()


@dataclass(frozen=True)
class Section:
    """A section of the page."""

    anchor: str
    title: str
    items: list[Item]

    @property
    def reasons(self) -> list[str]:
        """Return each reason for an empty section once; none when something can be shown."""
        reasons = [item.record.reason for item in self.items]
        return list(dict.fromkeys(reasons)) if all(reasons) else []


@dataclass(frozen=True)
class Built:
    """What the page is made of besides numbers; ``failed``: what could not be made, and why."""

    tables: list[Artefact]
    figures: list[Artefact]
    gallery: Gallery
    analyses: list[AnalysisItem] = field(default_factory=list)
    failed: Mapping[str, str] = field(default_factory=dict)


def build_page(inputs: Inputs, built: Built) -> str:
    """Return the whole page; equal parts give equal bytes."""
    templates = environment("benchmark.report.page")
    assert templates.loader is not None
    tables = {
        "recipe_deviations": recipe_deviations(inputs.study),
        "recipe_sources": recipe_sources(inputs.study),
    }
    gallery, queries = gallery_section(built.gallery), built.gallery.files.get(TABLE)
    items = {
        f"{kind}:{record.name}": Item(kind, record) if record.reason else make(record)
        for kind, make, found in (
            ("table", _table, built.tables),
            ("figure", _figure, built.figures),
        )
        for record in found
    }
    failures = [f"Not made: {name} ({reason})." for name, reason in built.failed.items()]
    verdicts = inputs.verdicts
    figures = [
        *[item.element for item in items.values()],
        *[analysis.figure for analysis in built.analyses],
    ]
    style, script = (
        f"\n{templates.loader.get_source(templates, name)[0]}{rules}\n"
        for name, rules in (("style.css", size_rules(figures)), ("sort.js", ""))
    )
    extra = [GALLERY, *[ANALYSES] * bool(built.analyses)]
    return templates.get_template("page.html.j2").render(
        study=inputs.study,
        answer=answer(inputs),
        notices=[*failures, *notices(inputs)],
        runs=run_counts(inputs),
        verdicts=verdict_counts(inputs),
        claims=claim_counts(inputs),
        claims_heading=claims_heading(inputs),
        sections=_sections(items, inputs, extra),
        gallery=gallery,
        gallery_files=[download("Every recorded query (CSV)", f"{GALLERY}/{TABLE}", queries)]
        if queries is not None
        else [],
        analyses=built.analyses,
        tones=TONES,
        record=inputs.provenance,
        sources="".join(to_html(table, name) for name, table in tables.items() if table),
        budgets=bool(inputs.budgets),
        registered=inputs.registered,
        meanings=VERDICTS,
        rule="" if verdicts.empty else rule(verdicts["level"].min()),
        margins=[] if verdicts.empty else sorted(verdicts["margin"].dropna().unique()),
        metric_of=metric_of,
        metric_label=metric_label,
        loss_label=loss_label,
        confidence=confidence,
        count=count,
        duration=duration,
        version=__version__,
        style=style,
        script=script,
        style_digest=_digest(style),
        script_digest=_digest(script),
    )


def _digest(text: str) -> str:
    """Return the digest by which a content security policy allows one element."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _table(record: Artefact) -> Item:
    downloads = _downloads("tables", record, CSV="csv", LaTeX="tex")
    long = record.name == "published" and record.rows > LONG
    unmeasured = record.group == "paper" and not record.measured
    folded = record.name in FOLDED or long or unmeasured
    return Item("table", record, record.html, folded, downloads)


def _figure(record: Artefact) -> Item:
    element = inline_svg(record.files["svg"], f"figure-{record.name}", record.alt)
    downloads = _downloads("figures", record, **{"Numbers (CSV)": "csv"})
    return Item("figure", record, element, downloads=downloads)


def _downloads(folder: str, record: Artefact, **labels: str) -> tuple[Download, ...]:
    return tuple(
        download(label, f"{folder}/{record.name}.{kind}", record.files[kind].encode())
        for label, kind in labels.items()
    )


def _sections(items: dict[str, Item], inputs: Inputs, extra: Sequence[str]) -> list[Section]:
    """Return the sections that the page has; those of ``extra`` bring their own content."""
    grouped = defaultdict(list)
    for key, item in items.items():
        grouped[f"{item.kind}/{item.record.group}"].append(key)
    sections, placed = [], set()
    for anchor in _order(inputs):
        title, entries = SECTIONS[anchor]
        keys = [key for entry in entries for key in grouped.get(entry, [entry]) if key in items]
        placed.update(keys)
        if anchor == "claims" and _no_claim_bears_on(inputs):
            continue
        if keys or anchor in extra:
            sections.append(Section(anchor, title, [items[key] for key in keys]))
    rest = [item for key, item in items.items() if key not in placed]
    return [*sections, *[Section("more", "More", rest)] * bool(rest)]


def _no_claim_bears_on(inputs: Inputs) -> bool:
    """Return whether the study is about no paper and has no runs that a claim speaks of."""
    if inputs.claims.empty or inputs.study.references.published:
        return False
    return bool((inputs.claims["verdict"] == NOT_RUN).all())


def _order(inputs: Inputs) -> list[str]:
    """Return the anchors in the order of this study's page.

    What papers say comes later where neither a number nor a claim was judged.
    """
    references = inputs.study.references
    judged = not inputs.claims.empty and (
        not inputs.claims["verdict"].isin([NOT_RUN, NOT_ASKED]).all()
    )
    if references.published or references.frozen or judged:
        return list(SECTIONS)
    rest = [anchor for anchor in SECTIONS if anchor not in OF_PAPERS]
    after = rest.index("ablation") + 1
    return [*rest[:after], *OF_PAPERS, *rest[after:]]
