"""What an analysis is, the files that it leaves, and the runs that it looks at.

Runs leave no weights behind, so an analysis trains what it looks at, once per specification and
code version: the batches of the last epoch and the test set after it.
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
    headers  of the table's columns, each a word or several from top to bottom
    rows     (title of the section, values); the first says which columns hold words
    values   what stands in braces in the words
    claims   whether each holds (None: open); a list of (holds, values) for one made several times
    digits   significant ones of the table's numbers
    words    as in ``words.yaml``, which has those of the suite's own analyses
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
    """Make one analysis, write its figure, table and summary into ``folder``; return the last."""
    entry = ANALYSES[name]
    made: Analysis = entry.target(context)
    words = made.words or parse_yaml(WORDS.read_text(encoding="utf-8")).value[name]
    title = words.get("title", entry.display)
    caption, alt, note = (words[each].format(**made.values) for each in ("caption", "alt", "table"))
    lines = _table(words.get("table_title", title), note, made)
    found = []
    for key, outcome in made.claims.items():
        for holds, own in outcome if isinstance(outcome, list) else [(outcome, {})]:
            place, *sentences = words["claims"][key]
            says, numbers = (each.format(**{**made.values, **own}) for each in sentences)
            verdict, judgement = _VERDICTS[holds]
            sentence = f"{numbers} {judgement}"
            found.append(Finding(key.format(**own), place, says, numbers, verdict, sentence))
    save(Drawing(caption, alt, made.figure, made.data), folder, "figure", entry.display)
    write_text(folder / "table.csv", to_csv(lines))
    write_text(folder / "table.md", to_markdown(lines))
    write_text(folder / "table.html", to_html(lines, f"analysis-{name}"))
    notes = [each.format(**made.values) for each in words.get("notes", ())]
    summary = AnalysisSummary(
        name=name,
        title=entry.display,
        places=list(entry.facts["places"]),
        caption=caption,
        alt=alt,
        table_caption=lines.caption,
        table_notes=lines.notes,
        sentences=[*(each.sentence for each in found), *notes],
        claims=found,
        code_version=code_version(entry.target.__module__),
        platform=provenance.platform_label(),
        study=context.study.name,
        quick=context.quick,
        seeds=sorted({spec.seed for spec in context.used}),
        runs=[AnalysedRun(spec.run_id, spec.digest) for spec in context.used],
    )
    summary.write(folder)
    return summary


def _table(title: str, caption: str, made: Analysis) -> Table:
    def cell(value: str | float) -> TableCell:
        if isinstance(value, str) or not math.isfinite(value):
            return TableCell(value if isinstance(value, str) else "")
        number = float(value) + 0.0  # no "-0"
        return TableCell(f"{number:.{made.digits}g}".replace("e-0", "e-"), numbers=(number,))

    lines = [(section, [*values]) for section, values in made.rows]
    columns = []
    for header, first in zip(made.headers, lines[0][1], strict=True):
        words = (header,) if isinstance(header, str) else tuple(header)
        columns.append(text_column(*words) if isinstance(first, str) else Column(words, ("",)))
    filled = ((section, [*map(cell, values)]) for section, values in lines)
    return Table(title, caption, columns, grouped(filled))


def shades(colour: str, count: int) -> list[np.ndarray]:
    """Return ``count`` tones of a colour from light to dark, distinct from white and black."""
    from matplotlib.colors import to_rgb

    base = np.array(to_rgb(colour))
    depths = np.linspace(-1, 1, count)  # -1 lightest, 0 the colour itself, 1 darkest
    return [base - depth * (0.55 * (1 - base) if depth < 0 else 0.3 * base) for depth in depths]


def rising(values: Iterable[float]) -> bool:
    """Return whether each value is above the one before."""
    return all(after > before for before, after in pairwise(values))


def judged(changes: Iterable[float], form: str) -> tuple[str, bool | None]:
    """Return the mean change over seeds and its interval in words, and whether it is above 0.

    The second is None where the interval, or one seed, decides nothing.
    """
    found = t_interval(changes)
    if found.n < 2:
        return f"{found.mean:{form}} (one seed)", None
    words = f"{found.mean:{form}} (95% interval {found.low:{form}} to {found.high:{form}})"
    return words, found.low > 0 if found.low > 0 or found.high < 0 else None


@dataclass(frozen=True)
class Recording:
    """Float32 embeddings with unit rows and int64 labels of one run.

    batches, batch_labels     (T, D), (T,): what the loss saw in the last epoch, batch after batch
    sizes                     (S,): images of each of the S batches, T in all
    query, query_labels       (Q, D), (Q,): the first protocol, after training
    gallery, gallery_labels   (G, D), (G,); empty when the queries are searched among themselves
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
    """Return the recording of ``spec`` from ``folder``, training it first where it is missing."""
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
            item = next(iter(trainer.run(stop).embedded.values()))
    except DivergedError as error:
        words = f"{spec.run_id} diverged ({error}), so its embeddings cannot be analysed"
        raise RunError(words) from error
    finally:
        hook.remove()
    rows, labels = zip(*seen, strict=True)
    query = item.protocol.query
    gallery = item.protocol.gallery
    return Recording(
        batches=np.concatenate(rows).astype(np.float32),
        batch_labels=np.concatenate(labels).astype(np.int64),
        sizes=np.array([*map(len, labels)]),
        query=item.query,
        query_labels=query.labels,
        gallery=item.query[:0] if item.gallery is None else item.gallery,
        gallery_labels=query.labels[:0] if gallery is None else gallery.labels,
    )


@dataclass
class Context:
    """The first block of a study (its first dataset and its recipe), seen by an analysis.

    seeds    one training each; by default the study's first three, quick one
    quick    the smallest dataset and one epoch: the numbers mean nothing, every step is taken
    say      prints one line of progress
    dataset  another of the study: the first block that has it, on it alone
    used     the runs that were looked at, filled on the way
    block    what is trained: without a memory, as what is looked at are batches
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
            blocks = reversed(self.study.blocks)
            places = {each.label: (each, block) for block in blocks for each in block.datasets}
            if self.dataset not in places:
                what = f"dataset of study '{self.study.name}'"
                raise ConfigError("analyse --dataset", [unknown_name(what, self.dataset, places)])
            choice, block = places[self.dataset]
            self._first = replace(block, datasets=(choice,))
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
        numbers = listed(self.seeds)
        return f"{self.place}, seed{'s' if len(self.seeds) > 1 else ''} {numbers}"

    def spec(self, loss: str, batch_size: int, seed: int, **params: Any) -> RunSpec:
        """Return the specification of a run: the study's own where it has it, else made like it.

        ``loss`` is a variant of the study, or a registered loss with its defaults. A variant has
        the hyperparameters of the block's setting on its dataset, else of its recipe, else of any
        block.
        """
        first = self._first
        blocks = self.study.blocks
        same_setting = [block for block in blocks if block.setting == first.setting]
        place = first.datasets[0].label
        nearest = []
        for block in same_setting:
            if place in [choice.label for choice in block.datasets]:
                nearest.append(block)
        alike = [block for block in same_setting if block.recipe_name == first.recipe_name]
        variants = (
            variant.choice
            for block in (first, *nearest, *alike, *blocks)
            for variant in block.losses
            if variant.label == loss
        )
        chosen = next(variants, None)
        if chosen is None:
            config = load_catalogue()[loss].config
            chosen = LossChoice(loss, loss, without_added(config, defaults_of(config)))
        if changed := {key: new for key, new in params.items() if chosen.params.get(key) != new}:
            label = "_".join([loss, *(f"{key}_{value:g}" for key, value in changed.items())])
            chosen = replace(chosen, label=label, params={**chosen.params, **changed})
        recipe = self.block.recipe_of(chosen.name)
        dataset = self.block.datasets[0]
        return RunSpec(dataset, self.block.setting, chosen, batch_size, seed, recipe)

    def trained(self, loss: str, batch_size: int, seed: int, **params: Any) -> Recording:
        """Return what a training of this run left: kept, or trained now (seconds to hours)."""
        spec = self.spec(loss, batch_size, seed, **params)
        if spec not in self.used:
            self.used.append(spec)
        return recorded(spec, self.study.folder(self.results) / "analyses" / "embeddings", self.say)


def doubled(sizes: Sequence[int]) -> list[int]:
    """Return the batch sizes from the smallest to twice the largest, each twice the one before."""
    found = [min(sizes)]
    while found[-1] < 2 * max(sizes):
        found.append(2 * found[-1])
    return found
