"""Inputs of the report: statistics, verdicts and printed numbers of made-up runs and papers."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from made_up_records import made_up_recipe
from made_up_results import made_up_block, made_up_budgets, made_up_runs, made_up_study, run_table

from benchmark.core.files import write_json
from benchmark.core.options import defaults_of
from benchmark.losses.catalogue import load_catalogue
from benchmark.published.loading import load_papers
from benchmark.report.artefacts import Artefact, Kind, PlannedArtefact
from benchmark.report.build import Attempts, write_artefacts
from benchmark.report.gallery import Gallery
from benchmark.report.page import Built, build_page, load_analysis
from benchmark.report.study_results import StudyResults
from benchmark.report.table import NothingToShow
from benchmark.runs.run_table import RunTable
from benchmark.stats.samples import Samples
from benchmark.stats.study_tables import analyse, shares
from benchmark.study.model import Block, Comparison, References, Study, Variant
from benchmark.verdicts.frozen import FrozenRuns
from benchmark.verdicts.judging import judged, pairs_of_frozen, pairs_of_numbers
from benchmark.verdicts.matching import StudyGrid
from benchmark.verdicts.printed import Printed, printed_of

WENT_WRONG = {
    ("roadmap", 128, 3): "diverged",
    ("fast_ap", 32, 0): "missing",
    ("blackbox_ap", 32, 1): "failed",
}


def two_losses(**changes: Any) -> Study:
    """Return a study of SmoothAP and SupAP at batch size 32, with two seeds."""
    usual = {"losses": ("smooth_ap", "sup_ap"), "batch_sizes": (32,), "seeds": (0, 1)}
    return made_up_study(**usual | changes)


def statuses(text: str) -> dict[tuple[str, int, int], str]:
    """Return the runs that did not finish: "loss, batch size, seed and status" in each line."""
    found = {}
    for line in text.strip().splitlines():
        loss, size, seed, status = line.split()
        found[loss, int(size), int(seed)] = status
    return found


# Inputs by what they are made of: tests of one process share them, and change copies alone.
_SHARED: dict[str, StudyResults] = {}


def made_up_inputs(
    study=None, *, bad=None, references=False, runs: pd.DataFrame | None = None
) -> StudyResults:
    """Return inputs in memory; with ``references``, a published table (not run) is judged too."""
    study = study or made_up_study()
    asked = ("smoothap2020/table2",) if references else study.references.published
    if runs is not None:
        return inputs_of(study, runs, asked, frozen=references)
    made_of = repr((study, bad, references))
    if made_of not in _SHARED:
        runs = made_up_runs(study, bad=bad)
        _SHARED[made_of] = inputs_of(study, runs, asked, frozen=references)
    return _SHARED[made_of]


def inputs_of(study, runs: pd.DataFrame, asked=(), frozen: bool = False) -> StudyResults:
    """Return the inputs that the steps before would have left for ``runs``."""
    table = run_table(runs)
    stats = analyse(table, study.comparison, study.metrics)
    asked = load_papers().asked(asked)
    grid = StudyGrid.of(study)
    last = pairs_of_numbers(asked, Samples(table, "last"), grid.candidates)
    best = pairs_of_numbers(asked, Samples(table, "best"), grid.candidates)
    if frozen:
        last += pairs_of_frozen(_frozen(table), Samples(table))
    stats["verdicts"] = judged(last)
    printed = printed_of(grid, table, stats["verdicts"], judged(best))
    return StudyResults.of(grid, table, stats, printed, collected_provenance())


def inputs_over_datasets() -> StudyResults:
    """Return inputs of three datasets, with the noise of a square of seeds.

    On the first one larger batches see as many images, or take as many steps.
    """
    study = made_up_study(losses=("smooth_ap", "sup_ap", "fast_ap"))
    names = ("glyphs_tiny", "glyphs_1k", "glyphs")
    losses = study.blocks[0].losses
    block = made_up_block(losses, (32,), (0, 1), datasets=names)
    square = shares(np.random.default_rng(0).normal(0.5, 0.01, (4, 4)))
    noise = square.assign(
        dataset="glyphs_1k",
        setting="r10~square",
        batch_size=32,
        split="test",
        metric="map",
        loss="sup_ap",
        sd=0.01,
        runs=16,
        mean=0.5,
    )
    equal = [
        made_up_block(losses, (128,), (0, 1), name=each, setting=f"r10~{each}", datasets=names[:1])
        for each in ("images", "steps")
    ]
    inputs = made_up_inputs(dataclasses.replace(study, blocks=(block, *equal)))
    return dataclasses.replace(inputs, noise=noise)


def inputs_of_trials() -> StudyResults:
    """Return inputs of a study that gives losses equal numbers of trials."""
    study = made_up_study(losses=("smooth_ap", "sup_ap"))
    return dataclasses.replace(made_up_inputs(study), budgets=made_up_budgets())


def inputs_of_challenge(trials: int) -> StudyResults:
    """Return inputs of a loss that meets a field after 1 trial, or after more."""
    inputs = inputs_of_trials()
    budgets = dict(inputs.budgets)
    for name in ("budget_ranks", "budget_curves", "budget_gaps", "budget_order"):
        table = budgets[name]
        most = 1 if trials == 1 else 4
        table = table[table["trials"] <= most]
        budgets[name] = table.assign(trials=table["trials"].replace({4: trials}))
    study = dataclasses.replace(
        inputs.study, references=References(trials="made_up", field="frozen")
    )
    return dataclasses.replace(inputs, study=study, budgets=budgets)


def printed_inputs(study, printed: Printed, claims: pd.DataFrame | None = None) -> StudyResults:
    """Return inputs of papers' tables and figures, and verdicts on claims, alone."""
    tables = {} if claims is None else {"claims": claims}
    return StudyResults.of(StudyGrid.of(study), RunTable.from_rows([], []), tables, printed, {})


def collected_provenance() -> dict:
    """Return a study's provenance in the shape that collecting writes."""
    machine = {"cpu": "A processor", "cores": 4, "usable_cores": 2, "memory_gb": 7.5, "gpus": []}
    content = {"fingerprints": {"0123abcd": 77}, "counts": {"train": {"images": 5000}}}
    return {
        "study": "made_up",
        "runs": {"ok": 77},
        "code_versions": {"1.0+abc1234": 77},
        "platforms": {"linux-x86_64": 77},
        "packages": {"torch": {"2.13.0": 77}, "numpy": {"2.4.6": 70, "2.3.0": 7}},
        "hardware": [{**machine, "runs": 77}],
        "weights": [],
        "datasets": {"glyphs_1k": content},
        "total_seconds": 4000.0,
        "errors": [],
        "warnings": [],
    }


def write_collected(inputs: StudyResults, runs: pd.DataFrame, results: Path) -> Path:
    """Write what collecting leaves in a study's results folder; return that folder."""
    folder = results / inputs.study.name
    run_table(runs).write(folder)
    write_json(folder / "provenance.json", dict(inputs.provenance))
    return folder


def made(kind: Kind, inputs: StudyResults, folder: Path) -> dict[str, Artefact]:
    """Write the tables or figures of the inputs into a folder; return their records by name."""
    return {each.name: each for each in write_artefacts(kind, inputs, folder, Strict())}


def drawn(parts: Iterable[PlannedArtefact]) -> dict[str, Any]:
    """Return what each part makes, or its reason to make nothing, by name."""
    found: dict[str, Any] = {}
    for part in parts:
        try:
            found[part.name] = part.make()
        except NothingToShow as reason:
            found[part.name] = reason
    return found


class Strict(Attempts):
    """Attempts that let nothing fail."""

    @contextlib.contextmanager
    def at(self, name: str) -> Iterator[None]:
        """Let every error pass."""
        yield


def built(inputs: StudyResults, folder: Path, gallery: Gallery | None = None) -> Built:
    """Write the tables and figures of the inputs into a study's folder; return what is shown."""
    return Built(
        [
            *made("table", inputs, folder / "tables").values(),
            *made("figure", inputs, folder / "figures").values(),
        ],
        gallery or Gallery([], "no pictures were asked for"),
        [load_analysis(path.parent) for path in sorted(folder.glob("analyses/*/summary.json"))],
    )


def written_page(inputs: StudyResults, folder: Path, gallery: Gallery | None = None) -> str:
    """Return the page of the inputs, whose tables and figures are written into ``folder``."""
    return build_page(inputs, built(inputs, folder, gallery))


def _frozen(table: RunTable) -> FrozenRuns:
    """Return frozen runs: the last-epoch scores themselves, one loss two points higher."""
    samples = Samples(table)
    frozen = {}
    for cell in table.statuses():
        for metric in ("recall_at_1", "map_at_r", "map"):
            now = samples.sample(cell, "test", metric)
            shift = 2.0 if cell.loss == "fast_ap" else 0.0
            then = {seed: score + shift for seed, score in now.by_seed.items()}
            if now.n:
                frozen[cell, "test", metric] = dataclasses.replace(now, by_seed=then)
    return frozen


DATASETS = ("cub", "sop", "inaturalist")
COMPARED = ("fast_ap", "softbin_ap", "blackbox_ap", "smooth_ap", "sup_ap", "roadmap")
ABLATION = ("smooth_ap", "sup_ap", "roadmap")
RECIPE = made_up_recipe("resnet50.tv_in1k", 512)


def variant(label: str, name: str | None = None, **params) -> Variant:
    """Returns a loss with all its hyperparameters, of which ``params`` are the study's own."""
    name = name or label
    options = {**defaults_of(load_catalogue()[name].config), **params}
    return Variant(label, name, options, tuple(params))


def roadmap_study(seeds=(0, 1, 2), sizes=(32, 64, 128, 224, 384), datasets=DATASETS):
    """Returns a study of ROADMAP's tables 1, 3 and 6 and figures 4 and 13."""
    sweeps = [variant(f"roadmap_lambda_{at}", "roadmap", lambda_=at) for at in (0.0, 0.2, 0.8)]
    slopes = [variant(f"sup_ap_rho_{each}", "sup_ap", rho=each) for each in (1.0, 10.0, 1000.0)]

    def block(name, names, losses, batch_sizes):
        where = {"setting": "resnet50", "datasets": names, "recipe": RECIPE}
        return made_up_block(tuple(losses), batch_sizes, seeds, name=name, **where)

    return made_up_study(
        name="roadmap",
        title="ROADMAP and five other losses",
        seeds=seeds,
        blocks=(
            block("table1", datasets, map(variant, COMPARED), sizes[1:3]),
            block("table6", datasets, map(variant, ABLATION), sizes),
            block("figure4", datasets[-1:], [*sweeps, *slopes], (224,)),
        ),
        metrics=("recall_at_1", "map_at_r"),
        comparison=Comparison("smooth_ap", ABLATION, 0.05),
        references=References(("roadmap2021v2",), None),
    )


def paper_inputs(study, **options) -> StudyResults:
    """Return the inputs of ``study`` with made-up runs (``options`` as made_up_runs takes them)."""
    made_of = repr((study, options))
    if made_of not in _SHARED:
        runs = near_published(made_up_runs(study, **options), "roadmap2021v2")
        _SHARED[made_of] = inputs_of(study, runs, study.references.published)
    return _SHARED[made_of]


def roadmap_inputs() -> StudyResults:
    """Return the inputs of ROADMAP's study with two runs for each number that it has."""
    return paper_inputs(roadmap_study(seeds=(0, 1), sizes=(32, 64, 128, 224)), epochs=2)


def near_published(runs: pd.DataFrame, paper: str) -> pd.DataFrame:
    """Returns ``runs`` with each loss's scores on each data set moved near a value that the paper
    prints for it."""
    table1 = load_papers().of(paper).table("table1")
    level = {}
    for number in table1:
        level[number.dataset, number.loss, number.metric] = number.points / 100
    keys = ["dataset", "base_loss", "metric"]
    ends = runs[runs["selection"] == "last"].groupby(keys)["value"].mean()
    shift = {key: level[key] - end for key, end in ends.items() if key in level}
    moved = runs["value"] + runs[keys].apply(tuple, axis=1).map(shift).fillna(0.0)
    return runs.assign(value=moved.where(runs["selection"] == "cost", moved.clip(0, 1)))


SAMPLERS = {  # by option: the sampler, and what it differs in from the plain recipe
    "": ("m_per_class", {"samples_per_class": 4}, ()),
    "p8": ("m_per_class", {"samples_per_class": 8}, ("params",)),
    "hard": ("category_pairs", {"samples_per_class": 4}, ("name", "params")),
    "random": ("m_per_class", {"samples_per_class": 4}, ("params",)),
}


def sweep_study(seeds: tuple[int, ...] = (0, 1)) -> Study:
    """Return FastAP's bins and batch sizes, both samplings, and SmoothAP's images of a class."""

    def block(losses: list[Variant], sizes: tuple[int, ...], option: str = "") -> Block:
        name, params, changed = SAMPLERS[option]
        made = made_up_block(
            tuple(losses),
            sizes,
            seeds,
            name=option or "plain",
            setting=f"test_resnet~{option}" if option else "test_resnet",
            recipe=made_up_recipe("test_resnet", 128, name, **params),
        )
        sampler = {"name": name, "params": params}
        overrides = {"sampler": {key: sampler[key] for key in changed}} if changed else {}
        return dataclasses.replace(made, overrides=overrides)

    bins = [variant(f"fast_ap_bins_{count}", "fast_ap", bins=count) for count in (5, 20)]
    blocks = (
        block([*map(variant, ("smooth_ap", "fast_ap")), *bins], (128,)),
        block([variant("fast_ap")], (32, 64)),
        block([variant("smooth_ap")], (128,), "p8"),
        block([variant("fast_ap")], (64,), "hard"),
        block([variant("fast_ap")], (64,), "random"),
    )
    return made_up_study(name="sweeps", blocks=blocks, seeds=seeds)


DIGEST = "0123456789abcdef"  # of the specification of every made-up run
QUERIES = 12
ITEMS = 40
CLASSES = 5
SHOWN = 6
SIDE = 64


def write_neighbours_file(path: Path, seed: int, *, queries: int = QUERIES) -> dict:
    """Write the file of a run whose ranking depends on ``seed``; return its arrays."""
    rng = np.random.default_rng(seed)
    labels = np.arange(ITEMS) % CLASSES
    own_labels = labels[:queries, None]
    scores = rng.normal(size=(queries, ITEMS)) + 1.2 * (labels == own_labels)
    np.fill_diagonal(scores, -np.inf)
    order = np.argsort(-scores, axis=1)[:, :-1]
    matches = labels[order] == own_labels
    shown = order[:, :SHOWN]
    ranks = [np.flatnonzero(row) + 1 for row in matches]
    arrays = {
        "spec_digest": np.array(DIGEST),
        "queries": np.arange(queries),
        "neighbours": shown,
        "scores": np.take_along_axis(scores, shown, axis=1).astype(np.float32),
        "matches": matches[:, :SHOWN],
        "query_names": np.array([f"/data/pictures/query {i} <b>.png" for i in range(queries)]),
        "neighbour_names": np.char.add("item ", shown.astype("U2")),
        "query_images": rng.integers(0, 255, (queries, SIDE, SIDE, 3), dtype=np.uint8),
        "positives": np.array([len(row) for row in ranks]),
        "positive_ranks": np.concatenate(ranks),
        "query_categories": labels[:queries] // 2,
        "neighbour_images": rng.integers(0, 255, (queries * SHOWN, SIDE, SIDE, 3), dtype=np.uint8),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **arrays)
    return arrays
