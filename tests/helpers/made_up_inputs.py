"""Inputs of the report: statistics, verdicts and printed numbers of made-up runs."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from long_tables import run_table
from made_up_budgets import made_up_budgets
from made_up_results import made_up_block, made_up_runs, made_up_study

from benchmark.core.files import write_json
from benchmark.papers.judging import FrozenRuns, judge_frozen, judge_numbers
from benchmark.papers.matching import candidates
from benchmark.papers.paper import asked_numbers
from benchmark.papers.printed import Printed, printed_of
from benchmark.papers.verdicts import table_of
from benchmark.report.build import Attempts, write_figures, write_tables
from benchmark.report.inputs import Inputs
from benchmark.report.page import Built, build_page, load_analysis
from benchmark.report.records import Artefact, Gallery, Part
from benchmark.report.table import NothingToShow
from benchmark.runs.table import RunTable
from benchmark.stats.analysis import analyse, shares
from benchmark.stats.samples import Samples

WENT_WRONG = {
    ("roadmap", 128, 3): "diverged",
    ("fast_ap", 32, 0): "missing",
    ("blackbox_ap", 32, 1): "failed",
}


def made_up_inputs(
    study=None, *, bad=None, references=False, runs: pd.DataFrame | None = None
) -> Inputs:
    """Return inputs in memory; with ``references``, a published table (not run) is judged too."""
    study = study or made_up_study()
    runs = made_up_runs(study, bad=bad) if runs is None else runs
    asked = ("smoothap2020/table2",) if references else study.references.published
    return inputs_of(study, runs, asked, frozen=references)


def inputs_of(study, runs: pd.DataFrame, asked=(), frozen: bool = False) -> Inputs:
    """Return the inputs that the steps before would have left for ``runs``."""
    table = run_table(runs)
    stats = analyse(table, study.comparison, study.metrics)
    last, best = (
        judge_numbers(asked_numbers(asked), Samples(table, each), candidates(study))
        for each in ("last", "best")
    )
    if frozen:
        last += judge_frozen(_frozen(table), Samples(table))
    stats["verdicts"] = table_of(last)
    printed = printed_of(study, table, stats["verdicts"], table_of(best))
    return Inputs.of(study, table, stats, printed, made_up_provenance())


def inputs_over_datasets() -> Inputs:
    """Return inputs of three datasets, with the noise of a square of seeds.

    On the first one larger batches see as many images, or take as many steps.
    """
    study = made_up_study(losses=("smooth_ap", "sup_ap", "fast_ap"))
    names, losses = ("glyphs_tiny", "glyphs_1k", "glyphs"), study.blocks[0].losses
    block = made_up_block(losses, (32,), (0, 1), datasets=names)
    square = shares(np.random.default_rng(0).normal(0.5, 0.01, (4, 4)))
    noise = pd.DataFrame(map(dataclasses.asdict, square)).assign(
        dataset="glyphs_1k", setting="r10~square", batch_size=32, split="test", metric="map",
        loss="sup_ap", sd=0.01, runs=16, mean=0.5,
    )  # fmt: skip
    equal = [
        made_up_block(losses, (128,), (0, 1), name=each, setting=f"r10~{each}", datasets=names[:1])
        for each in ("images", "steps")
    ]
    inputs = made_up_inputs(dataclasses.replace(study, blocks=(block, *equal)))
    return dataclasses.replace(inputs, noise=noise)


def inputs_of_trials() -> Inputs:
    """Return inputs of a study that gives losses equal numbers of trials."""
    study = made_up_study(losses=("smooth_ap", "sup_ap"))
    return dataclasses.replace(made_up_inputs(study), budgets=made_up_budgets())


def printed_inputs(study, printed: Printed, claims: pd.DataFrame | None = None) -> Inputs:
    """Return inputs of papers' tables and figures, and verdicts on claims, alone."""
    tables = {} if claims is None else {"claims": claims}
    return Inputs.of(study, RunTable.from_rows([], []), tables, printed, {})


def made_up_provenance() -> dict:
    """Return a provenance record in the shape that collecting writes."""
    return {
        "study": "made_up",
        "runs": {"ok": 77},
        "code_versions": {"1.0+abc1234": 77},
        "platforms": {"linux-x86_64": 77},
        "packages": {"torch": {"2.13.0": 77}, "numpy": {"2.4.6": 70, "2.3.0": 7}},
        "hardware": [
            {
                "cpu": "A processor",
                "cores": 4,
                "usable_cores": 2,
                "memory_gb": 7.5,
                "gpus": [],
                "runs": 77,
            }
        ],
        "weights": [],
        "datasets": {
            "glyphs_1k": {"fingerprints": {"0123abcd": 77}, "counts": {"train": {"images": 5000}}}
        },
        "total_seconds": 4000.0,
        "errors": [],
        "warnings": [],
    }


def write_collected(inputs: Inputs, runs: pd.DataFrame, results: Path) -> Path:
    """Write what collecting leaves in a study's results folder; return that folder."""
    folder = results / inputs.study.name
    run_table(runs).write(folder)
    write_json(folder / "provenance.json", dict(inputs.provenance))
    return folder


def made_tables(inputs: Inputs, folder: Path) -> dict[str, Artefact]:
    """Write the tables of the inputs into a folder; return their records by name."""
    return {each.name: each for each in write_tables(inputs, folder, Strict())}


def made_figures(inputs: Inputs, folder: Path) -> dict[str, Artefact]:
    """Write the figures of the inputs into a folder; return their records by name."""
    return {each.name: each for each in write_figures(inputs, folder, Strict())}


def drawn(parts: Iterable[Part]) -> dict[str, Any]:
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


def built(inputs: Inputs, folder: Path, gallery: Gallery | None = None) -> Built:
    """Write the tables and figures of the inputs into a study's folder; return what is shown."""
    return Built(
        list(made_tables(inputs, folder / "tables").values()),
        list(made_figures(inputs, folder / "figures").values()),
        gallery or Gallery(inputs.study.name, [], "no pictures were asked for"),
        [load_analysis(path.parent) for path in sorted(folder.glob("analyses/*/summary.json"))],
    )


def written_page(inputs: Inputs, folder: Path, gallery: Gallery | None = None) -> str:
    """Return the page of the inputs, whose tables and figures are written into ``folder``."""
    return build_page(inputs, built(inputs, folder, gallery))


def _frozen(table: RunTable) -> FrozenRuns:
    """Return frozen runs: the last-epoch scores themselves, one loss two points higher."""
    samples, frozen = Samples(table), {}
    for cell in table.cells():
        for metric in ("recall_at_1", "map_at_r", "map"):
            now = samples.sample(cell, "test", metric)
            shift = 2.0 if cell.loss == "fast_ap" else 0.0
            then = {seed: score + shift for seed, score in now.by_seed.items()}
            if now.n:
                frozen[cell, "test", metric] = dataclasses.replace(now, by_seed=then)
    return frozen
