"""Train the bank that challenges are drawn from: ``python tests/error_rates/bank.py FOLDER``.

One loss, SmoothAP, is trained by the rules of ``reality_check`` on stored features of glyphs_tiny:
the published setting and ``TRIALS`` trials, each on both folds of held-out classes and, on the test
classes, under ``SEEDS`` seeds. Then again with disturbed labels: a share of the training rows swap
their labels at random. Held-out and test classes keep theirs.

``bank.csv`` has a row for each setting and ``BLOCK`` seeds, from ``first`` on: mAP@R in [0, 1],
"nan" where a run diverged. The folds stand beside the first seeds. ``bank.json`` says what made it.
Both lie beside this file. A stopped bank goes on.
"""

import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

from benchmark.core import provenance
from benchmark.core.code_version import code_version
from benchmark.core.interrupts import StopRequest
from benchmark.core.recipe import InputConfig
from benchmark.core.records import DatasetChoice, RunSpec
from benchmark.core.seeding import derive
from benchmark.datasets import load_dataset
from benchmark.datasets.base import Dataset
from benchmark.losses.catalogue import load_catalogue
from benchmark.study import load_study
from benchmark.study.model import Block
from benchmark.study.trials import VIEW, trial_blocks
from benchmark.training import components
from benchmark.training.loop import Trainer
from benchmark.training.numerics import prepare_numerics
from benchmark.training.progress import Progress
from benchmark.training.step import DivergedError

BANK = Path(__file__).with_name("bank.csv")
MADE_BY = Path(__file__).with_name("bank.json")
STUDY = "reality_check"
LOSS = "smooth_ap"
METRIC = "map_at_r"
DATASET = "glyphs_tiny"
SIDE = 64  # pixels, as in the study's recipe
BATCH = 32  # the study's 64 needs more than the 16 classes of a fold
FOLDS = 2
TRIALS = 100
SEEDS = 60
# Of the settings with disturbed labels.
FEWER_TRIALS = 24
FEWER_SEEDS = 20
BLOCK = 10  # seeds of a row
SHARES = (0.0, 0.1, 0.2, 0.3)  # of the training rows whose labels are disturbed
FOLD_COLUMNS = [f"fold{fold}" for fold in range(FOLDS)]
SEED_COLUMNS = [f"seed{number}" for number in range(BLOCK)]
COLUMNS = ["disturbed", "trial", "first", *FOLD_COLUMNS, *SEED_COLUMNS]
Loader = Callable[[str, dict[str, Any]], Dataset]


class Row(NamedTuple):
    """A row of the bank: some seeds of a setting, under a share of disturbed labels."""

    disturbed: float
    trial: int
    first: int
    trials: tuple[RunSpec, ...]
    finals: tuple[RunSpec, ...]

    @property
    def key(self) -> tuple[str, ...]:
        return f"{self.disturbed:g}", str(self.trial), str(self.first)


def write_features(folder: Path) -> Path:
    """Return the file of the features, which is made if it is not there."""
    path = folder / f"{DATASET}.npz"
    if not path.exists():
        words = ["features", "extract", DATASET, "--image-size", str(SIDE), "--out", str(path)]
        subprocess.run([sys.executable, "-m", "benchmark", *words], check=True)
    return path


def block_of(features: Path) -> Block:
    """Return the study's block of the one loss, with a head on stored features."""
    study = load_study(STUDY)
    assert study.trials is not None
    (block,) = study.trials.blocks
    loss = next(loss for loss in block.losses if loss.name == LOSS)
    recipe = block.recipe
    recipe = replace(
        recipe,
        model=replace(recipe.model, backbone="features", pretrained=False, checkpoint=None),
        input=InputConfig(),
        evaluation=replace(recipe.evaluation, neighbour_queries=0),
    )
    choice = DatasetChoice(DATASET, "features", {"file": str(features)})
    return replace(
        block,
        recipe=recipe,
        losses=(loss,),
        datasets=(choice,),
        batch_sizes=(BATCH,),
    )


def rows_to_train(block: Block) -> Iterator[Row]:
    """Yield the rows of the bank, the first seeds of all settings before further seeds.

    The settings are the same for all shares.
    """
    (loss,) = block.losses
    (whole,) = block.datasets
    views = []
    for fold in range(FOLDS):
        params = {"of": whole.name, "folds": FOLDS, "fold": fold, "params": whole.params}
        views.append(DatasetChoice(f"{whole.label}.fold{fold}", VIEW, params))
    config = load_catalogue()[LOSS].config
    settings = [*trial_blocks(block, loss, config, TRIALS)]
    for first in range(1, SEEDS + 1, BLOCK):
        seeds = tuple(range(first, first + BLOCK))
        for share in SHARES:
            if share and first > FEWER_SEEDS:
                continue
            trials = FEWER_TRIALS if share else TRIALS
            for number, setting in enumerate(settings[: trials + 1]):
                on_views = replace(setting, datasets=tuple(views))
                under_seeds = replace(setting, seeds=seeds)
                of_folds = tuple(on_views.specs()) if first == 1 else ()
                yield Row(share, number, first, of_folds, tuple(under_seeds.specs()))


def loader(share: float) -> Loader:
    """Return what loads a dataset once and disturbs the labels of its training rows."""

    @cache
    def loaded(text: str) -> Dataset:
        name, params = json.loads(text)
        dataset = load_dataset(name, params)
        labels = disturbed(dataset.train.labels, share)
        return replace(dataset, train=replace(dataset.train, labels=labels))

    return lambda name, params: loaded(json.dumps([name, params]))


def disturbed(labels: np.ndarray, share: float) -> np.ndarray:
    """Return the labels (N,) after a share of the rows, drawn at random, swapped theirs."""
    rng = np.random.default_rng(derive(0, "disturbed labels", str(share)))
    rows = rng.permutation(len(labels))[: round(share * len(labels))]
    swapped = labels.copy()
    swapped[rows] = labels[rng.permutation(rows)]
    return swapped


def score(spec: RunSpec) -> float:
    """Return the score of a run; NaN if it diverges."""
    device = prepare_numerics(spec.recipe.training)
    with tempfile.TemporaryDirectory() as folder, StopRequest() as stop:
        progress = Progress(spec.run_id, spec.recipe.training.epochs)
        trainer = Trainer(components.build_components(spec, device), Path(folder), progress)
        try:
            last = trainer.run(stop)
        except DivergedError:
            return float("nan")
    (scores,) = last.scores.values()
    return scores[METRIC]


def finished() -> set[tuple[str, ...]]:
    """Return the keys of the rows that the bank has."""
    if not BANK.exists():
        return set()
    with BANK.open(newline="") as stream:
        return {tuple([*row.values()][:3]) for row in csv.DictReader(stream)}


def train_bank(folder: Path) -> None:
    """Train the rows that are not there yet."""
    features = write_features(folder)
    block = block_of(features)
    write_facts(features, block)
    done = finished()
    if not done:
        BANK.write_text(",".join(COLUMNS) + "\n")
    loaders = {share: loader(share) for share in SHARES}
    started = time.process_time()
    runs = 0
    for row in rows_to_train(block):
        if row.key in done:
            continue
        with (
            patch.object(components, "load_dataset", loaders[row.disturbed]),
            open(os.devnull, "w") as nowhere,
            redirect_stdout(nowhere),
        ):
            of_folds = [f"{score(spec):.6f}" for spec in row.trials] or [""] * FOLDS
            of_seeds = [f"{score(spec):.6f}" for spec in row.finals]
        runs += len(row.trials) + len(row.finals)
        with BANK.open("a") as stream:
            stream.write(",".join([*row.key, *of_folds, *of_seeds]) + "\n")
        spent = time.process_time() - started
        print(f"{row.key}: {runs} runs, {spent:.0f} s of processor time")


def write_facts(features: Path, block: Block) -> None:
    """Write what made the bank."""
    with np.load(features) as arrays:
        made_by = json.loads(str(arrays["made_by"]))
    facts = {
        "study": STUDY,
        "loss": LOSS,
        "metric": METRIC,
        "recipe": asdict(block.recipe),
        "batch_size": BATCH,
        "code_version": code_version(),
        "packages": provenance.packages(),
        "platform": provenance.platform_label(),
        "kernels": provenance.kernels(),
        "processor": provenance.hardware().cpu,
        "features": made_by,
    }
    MADE_BY.write_text(json.dumps(facts, indent=1, default=str) + "\n")


if __name__ == "__main__":
    train_bank(Path(sys.argv[1]))
