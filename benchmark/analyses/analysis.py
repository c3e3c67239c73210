"""What an analysis is, the files that it writes, and the runs that it looks at.

Runs leave no weights behind. So an analysis trains the networks that it looks at, once per
specification and code version. It records the batches of the last epoch and the test set after it.
"""

from __future__ import annotations

import math
import re
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmark.analyses import ANALYSES
from benchmark.core import provenance
from benchmark.core.code_version import code_version
from benchmark.core.documents import parse_yaml
from benchmark.core.errors import ConfigError, RunError, unknown_name
from benchmark.core.files import replacing, write_text
from benchmark.core.options import defaults_of, without_added
from benchmark.core.records import DatasetChoice, LossChoice, RunSpec
from benchmark.core.seeding import derive
from benchmark.core.words import listed
from benchmark.losses.catalogue import load_catalogue
from benchmark.report.artefacts import AnalysedRun, AnalysisSummary, Finding, Verdict
from benchmark.report.drawing import Drawing, save
from benchmark.report.labels import dataset_name
from benchmark.report.render import to_csv, to_html, to_markdown
from benchmark.report.table import Column, Table, TableCell, grouped, text_column
from benchmark.stats.intervals import t_interval
from benchmark.study.model import Block, Study

QUICK_DATASET = "glyphs_tiny"
WORDS = Path(__file__).with_name("words.yaml")
_VERDICTS: dict[bool | None, tuple[Verdict, str]] = {
    True: ("supported", "This agrees with the paper."),
    False: ("contradicted", "This does not agree with the paper."),
    None: ("inconclusive", "This decides neither way."),
}


@dataclass(frozen=True)
class Analysis:
    """A finished analysis, without its words.

    data     the numbers behind the figure, one row per mark
    headers  of the table's columns; a header is a word, or several words from top to bottom
    rows     (title of the section, values); the first row says which columns hold words
    values   the values of the names in braces in the words
    claims   whether each claim holds (None: open); a list of (holds, values) for a claim that is
             made several times
    digits   significant digits of the table's numbers
    words    as in ``words.yaml``, which has the words of the suite's own analyses
    """

    figure: Any
    data: pd.DataFrame
    headers: Iterable[Sequence[str]]
    rows: Iterable[tuple[str, Iterable[str | float]]]
    values: Mapping[str, Any]
    claims: Mapping[str, Any]
    digits: int = 3
    words: Mapping[str, Any] = field(default_factory=dict)


def make(name: str, context: Context, folder: Path) -> AnalysisSummary:
    """Make one analysis and write its figure, table and summary into ``folder``.

    Return the summary.
    """
    entry = ANALYSES[name]
    made: Analysis = entry.target(context)
    words = made.words or parse_yaml(WORDS.read_text(encoding="utf-8")).value[name]
    title = words.get("title", entry.display)
    caption = words["caption"].format(**made.values)
    alt = words["alt"].format(**made.values)
    under_table = words["table"].format(**made.values)
    table = _table(words.get("table_title", title), under_table, made)
    findings = _findings(words.get("claims", {}), made)
    sentences = [finding.sentence for finding in findings]
    sentences += [note.format(**made.values) for note in words.get("notes", ())]
    save(Drawing(caption, alt, made.figure, made.data), folder, "figure", entry.display)
    write_text(folder / "table.csv", to_csv(table))
    write_text(folder / "table.md", to_markdown(table))
    write_text(folder / "table.html", to_html(table, f"analysis-{name}"))
    summary = AnalysisSummary(
        name=name,
        title=entry.display,
        places=list(entry.facts["places"]),
        caption=caption,
        alt=alt,
        table_caption=table.caption,
        table_notes=table.notes,
        sentences=sentences,
        claims=findings,
        code_version=code_version(entry.target.__module__),
        platform=provenance.platform_label(),
        study=context.study.name,
        quick=context.quick,
        seeds=sorted({spec.seed for spec in context.used}),
        runs=[AnalysedRun(spec.run_id, spec.digest) for spec in context.used],
    )
    summary.write(folder)
    return summary


def _findings(claims: Mapping[str, Sequence[str]], made: Analysis) -> list[Finding]:
    """Return what an analysis says of each claim; ``claims`` have a place and two sentences."""
    findings = []
    for key, outcome in made.claims.items():
        outcomes = outcome if isinstance(outcome, list) else [(outcome, {})]
        for holds, own_values in outcomes:
            values = {**made.values, **own_values}
            place, claimed, measured = claims[key]
            verdict, judgement = _VERDICTS[holds]
            numbers = measured.format(**values)
            finding = Finding(
                key.format(**own_values),
                place,
                claimed.format(**values),
                numbers,
                verdict,
                f"{numbers} {judgement}",
            )
            findings.append(finding)
    return findings


def _table(title: str, caption: str, made: Analysis) -> Table:
    def cell(value: str | float) -> TableCell:
        if isinstance(value, str):
            return TableCell(value)
        if not math.isfinite(value):
            return TableCell("")
        number = float(value) + 0.0  # no "-0"
        text = f"{number:.{made.digits}g}".replace("e-0", "e-")
        return TableCell(text, numbers=(number,))

    rows = [(section, [*values]) for section, values in made.rows]
    _, first_values = rows[0]
    columns = []
    for header, value in zip(made.headers, first_values, strict=True):
        words = (header,) if isinstance(header, str) else tuple(header)
        columns.append(text_column(*words) if isinstance(value, str) else Column(words, ("",)))
    filled = ((section, [*map(cell, values)]) for section, values in rows)
    return Table(title, caption, columns, grouped(filled))


def shades(colour: str, count: int) -> list[np.ndarray]:
    """Return ``count`` tones of a colour from light to dark, distinct from white and black."""
    from matplotlib.colors import to_rgb

    base = np.array(to_rgb(colour))
    tones = []
    for depth in np.linspace(-1, 1, count):  # -1 lightest, 0 the colour itself, 1 darkest
        room = 0.55 * (1 - base) if depth < 0 else 0.3 * base
        tones.append(base - depth * room)
    return tones


def generator(*role: str | int) -> np.random.Generator:
    """Return the generator of the numbers that an analysis draws for a role."""
    return np.random.default_rng(derive(0, *role))


def rising(values: Iterable[float]) -> bool:
    """Return whether each value is above the one before."""
    return all(after > before for before, after in pairwise(values))


def judged(changes: Iterable[float], form: str) -> tuple[str, bool | None]:
    """Return the mean change over seeds and its interval in words, and whether it is above 0.

    The second value is None if the interval contains 0, or if there is one seed.
    """
    change = t_interval(changes)
    if change.n < 2:
        return f"{change.mean:{form}} (one seed)", None
    words = f"{change.mean:{form}} (95% interval {change.low:{form}} to {change.high:{form}})"
    is_above = None
    if change.low > 0 or change.high < 0:
        is_above = change.low > 0
    return words, is_above


@dataclass(frozen=True)
class Recording:
    """Float32 embeddings with unit rows and int64 labels of one run.

    batches, batch_labels     (T, D), (T,): the input of the loss in the last epoch, in order
    sizes                     (S,): images of each of the S batches, T in all
    query, query_labels       (Q, D), (Q,): the first protocol, after training
    gallery, gallery_labels   (G, D), (G,); empty: the queries are searched among themselves
    """

    batches: np.ndarray
    batch_labels: np.ndarray
    sizes: np.ndarray
    query: np.ndarray
    query_labels: np.ndarray
    gallery: np.ndarray
    gallery_labels: np.ndarray

    def steps(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield embeddings (B, D) and labels (B,) of each training step of the epoch, in order."""
        ends = np.cumsum(self.sizes)[:-1]
        return zip(np.split(self.batches, ends), np.split(self.batch_labels, ends), strict=True)


def recorded(spec: RunSpec, folder: Path, say: Callable[[str], None]) -> Recording:
    """Return the recording of ``spec`` from ``folder``. Train first if there is no recording."""
    from benchmark.training.components import version_of_run

    version = re.sub(r"[^\w.]", "-", version_of_run(spec))
    path = folder / f"{spec.run_id.replace('/', '__')}-{spec.digest}-{version}.npz"
    if path.is_file():
        with np.load(path) as stored:
            return Recording(**stored)
    say(f"training {spec.run_id} ({spec.recipe.training.epochs} epochs) to look at its embeddings")
    recording = _train(spec)
    with replacing(path) as temporary, open(temporary, "wb") as stream:
        np.savez(stream, **vars(recording))
    return recording


def _train(spec: RunSpec) -> Recording:
    from benchmark.core.interrupts import StopRequest
    from benchmark.training.components import build_components
    from benchmark.training.loop import Trainer
    from benchmark.training.numerics import prepare_numerics
    from benchmark.training.progress import Progress
    from benchmark.training.step import DivergedError

    training = spec.recipe.training
    components = build_components(spec, prepare_numerics(training))
    seen: deque = deque(maxlen=len(components.sampler.epoch(training.epochs - 1)))

    def note(module: Any, inputs: tuple) -> None:
        seen.append([tensor.detach().cpu().numpy().copy() for tensor in inputs[:2]])

    hook = components.loss.register_forward_pre_hook(note)
    try:
        with StopRequest() as stop, tempfile.TemporaryDirectory() as scratch:
            trainer = Trainer(components, Path(scratch), Progress(spec.run_id, training.epochs))
            embedded, *_ = trainer.run(stop).embedded.values()
    except DivergedError as error:
        words = f"{spec.run_id} diverged ({error}), so its embeddings cannot be analysed"
        raise RunError(words) from error
    finally:
        hook.remove()
    rows, labels = zip(*seen, strict=True)
    query = embedded.protocol.query
    gallery = embedded.protocol.gallery
    return Recording(
        batches=np.concatenate(rows).astype(np.float32),
        batch_labels=np.concatenate(labels).astype(np.int64),
        sizes=np.array([*map(len, labels)]),
        query=embedded.query,
        query_labels=query.labels,
        gallery=embedded.query[:0] if embedded.gallery is None else embedded.gallery,
        gallery_labels=query.labels[:0] if gallery is None else gallery.labels,
    )


@dataclass
class Context:
    """The first block of a study (its first dataset and its recipe), seen by an analysis.

    seeds    one training each; by default the study's first three, with ``quick`` the first
    quick    the smallest dataset and one epoch: every step is taken, and the numbers mean nothing
    say      prints one line of progress
    dataset  another dataset of the study: the first block that has it, on it alone
    used     the runs that were looked at so far
    block    the block that is trained, without a memory, because analyses look at batches
    """

    study: Study
    results: Path
    seeds: Sequence[int] = ()
    quick: bool = False
    say: Callable[[str], None] = print
    dataset: str | None = None
    used: list[RunSpec] = field(default_factory=list)
    block: Block = field(init=False)

    def __post_init__(self) -> None:
        self.seeds = tuple(self.seeds) or self.study.seeds[: 1 if self.quick else 3]
        self._first = self.study.blocks[0]
        if self.dataset is not None:
            first_with = {}
            for block in reversed(self.study.blocks):
                for choice in block.datasets:
                    first_with[choice.label] = replace(block, datasets=(choice,))
            if self.dataset not in first_with:
                what = f"dataset of study '{self.study.name}'"
                problem = unknown_name(what, self.dataset, first_with)
                raise ConfigError("analyse --dataset", [problem])
            self._first = first_with[self.dataset]
        block = self._first
        recipe = replace(block.recipe, memory=replace(block.recipe.memory, size=None))
        if self.quick:
            recipe = replace(recipe, training=replace(recipe.training, epochs=1))
            tiny = DatasetChoice(QUICK_DATASET, QUICK_DATASET, {})
            block = replace(block, datasets=(tiny,), batch_sizes=(16, 32))
        self.block = replace(block, recipe=recipe, batch_sizes=tuple(sorted(block.batch_sizes)))

    @property
    def place(self) -> str:
        """Return the dataset in words."""
        return dataset_name(self.block.datasets[0].label)

    @property
    def description(self) -> str:
        """Return the dataset and the seeds in words: "Glyphs-1k, seeds 0, 1 and 2"."""
        word = "seeds" if len(self.seeds) > 1 else "seed"
        return f"{self.place}, {word} {listed(self.seeds)}"

    def spec(self, loss: str, batch_size: int, seed: int, **params: Any) -> RunSpec:
        """Return the specification of a run: the study's own if it has the run, else one like it.

        ``loss`` is a variant of the study, or a registered loss with its defaults. A variant has
        the hyperparameters of the block's setting on its dataset, else of its recipe, else of any
        block.
        """
        chosen = self._variant(loss)
        if chosen is None:
            config = load_catalogue()[loss].config
            chosen = LossChoice(loss, loss, without_added(config, defaults_of(config)))
        label = loss
        changed = {}
        for key, value in params.items():
            if chosen.params.get(key) != value:
                changed[key] = value
                label += f"_{key}_{value:g}"
        if changed:
            chosen = replace(chosen, label=label, params={**chosen.params, **changed})
        recipe = self.block.recipe_of(chosen.name)
        dataset = self.block.datasets[0]
        return RunSpec(dataset, self.block.setting, chosen, batch_size, seed, recipe)

    def _variant(self, loss: str) -> LossChoice | None:
        """Return the variant of the nearest block that has one of this label; None without one."""
        first = self._first
        dataset = first.datasets[0].label

        def distance(block: Block) -> int:
            if block.setting != first.setting:
                return 2
            if dataset in [choice.label for choice in block.datasets]:
                return 0
            return 1 if block.recipe_name == first.recipe_name else 2

        for block in (first, *sorted(self.study.blocks, key=distance)):
            for variant in block.losses:
                if variant.label == loss:
                    return variant.choice
        return None

    def trained(self, loss: str, batch_size: int, seed: int, **params: Any) -> Recording:
        """Return what a training of this run left: kept, or trained now (seconds to hours)."""
        spec = self.spec(loss, batch_size, seed, **params)
        if spec not in self.used:
            self.used.append(spec)
        folder = self.study.folder(self.results) / "analyses" / "embeddings"
        return recorded(spec, folder, self.say)


def doubled(sizes: Sequence[int]) -> list[int]:
    """Return the batch sizes from the smallest to twice the largest, each twice the one before."""
    series = [min(sizes)]
    while series[-1] < 2 * max(sizes):
        series.append(2 * series[-1])
    return series
