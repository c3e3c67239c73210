"""A new field of a recipe needs a row beside the papers: told here at once, by its name.

And a field that a ledger says has no effect really has none.
"""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import get_type_hints

import numpy as np
import pytest
import yaml
from PIL import Image
from tiny_runs import curve, tiny_spec, write_spec_in

from benchmark.core.recipe import Recipe
from benchmark.core.records import DatasetChoice
from benchmark.published.fidelity import study_ledger
from benchmark.published.loading import load_papers
from benchmark.published.paper import shared_facts
from benchmark.study import load_study
from benchmark.study.data_files import PACKAGE
from benchmark.training.run import train

RECIPES = Path(__file__).parents[2] / "workflow" / "config" / "recipes"
OPEN = ("sampler.params",)  # its keys are the sampler's


def own_facts():
    return [fact for paper in load_papers().values() for fact in paper.facts]


def without_row(recipe, items):
    facts = [fact for fact in (*shared_facts(), *own_facts()) if fact.is_of(recipe)]
    return [item for item in items if not any(fact.is_about(item) for fact in facts)]


ITEMS = [
    f"{section}.{field.name}"
    for section, kind in get_type_hints(Recipe).items()
    for field in fields(kind)
    if f"{section}.{field.name}" not in OPEN
]
OF_PAPERS = sorted(
    path.stem
    for path in RECIPES.glob("*.yaml")
    if any(fact.is_of(path.stem) for fact in own_facts() if fact.recipe != "*")
)


@pytest.mark.parametrize("recipe", OF_PAPERS)
def test_every_field_of_a_recipe_has_a_row_in_a_ledger(recipe):
    missing = without_row(recipe, ITEMS)
    folder = PACKAGE
    assert not missing, f"{', '.join(missing)}: add a row to {folder / 'fidelity.csv'}"


def test_a_field_without_a_row_is_named():
    assert len(OF_PAPERS) > 20
    assert without_row(OF_PAPERS[0], ["model.backbone", "model.made_up"]) == ["model.made_up"]


ALWAYS: dict = {}
FROZEN = {"model.freeze_batch_norm": [True]}
# Another value for each field that a ledger says cannot act, and what switches it off; "section
# field" of several recipes, changed together in one run.
IDLE = {
    "input.degrees": (45.0, {"input.augmentation": ["crop_flip"]}),
    "input.translate": (0.4, {"input.augmentation": ["crop_flip"]}),
    "input.scale": ([0.5, 2.0], {"input.augmentation": ["crop_flip"]}),
    "input.noise": (1.0, {"input.augmentation": ["crop_flip"]}),
    "input.crop_area": ([0.5, 0.6], {"input.crop": ["random"]}),
    "input.crop_aspect": ([0.9, 1.1], {"input.crop": ["random"]}),
    "input.own_normalisation": (True, ALWAYS),
    "input.workers": (1, ALWAYS),
    "training.threads": (2, ALWAYS),
    "training.checkpoint_seconds": (0.0, ALWAYS),
    "schedule.peak_at": (0.9, {"schedule.name": ["constant", "linear", "step"]}),
    "schedule.milestones": ([1], {"schedule.name": ["constant", "linear"]}),
    "schedule.gamma": (0.9, {"schedule.name": ["constant", "linear"]}),
    "memory.key": ("fifo", {"memory.size": [None]}),
    "memory.start_epoch": (1.0, {"memory.size": [None]}),
    "memory.write_first": (True, {"memory.size": [None]}),
    "optimizer.proxy_lr_multiplier": (9.0, ALWAYS),
    "optimizer.proxy_weight_decay": (0.5, ALWAYS),
    "evaluation.batch_size": (7, ALWAYS),
    "evaluation.every": (2, ALWAYS),
    "evaluation.neighbour_queries": (2, ALWAYS),
    "evaluation.neighbours": (3, ALWAYS),
    "evaluation.keep_embeddings": (True, ALWAYS),
    "evaluation.recall_at": ([1, 2], ALWAYS),
    "evaluation.scale_power": (3.0, {"evaluation.scales": [None]}),
    "evaluation.whitening_power": (0.1, {"evaluation.whitening": [None]}),
}
NATIVE = {"input.native_size": [True], "input.train_resize": ["none"]}
# Those that need another recipe to be idle, or cannot be set then.
ELSEWHERE = {
    "input.resize": (None, NATIVE),
    "input.keep_aspect": (None, NATIVE),
    "input.max_side": (None, {"input.native_size": [False]}),  # refused then
    "training.staged": (None, {"training.micro_batch": [None]}),  # refused then
    "training.micro_batch": (None, FROZEN),  # tests/unit/training/test_micro_batches.py
    "packed_copies": (None, ALWAYS),  # no study reads any
}


def test_what_has_no_effect_is_switched_off_in_its_recipe():
    known = {**IDLE, **ELSEWHERE}
    wrong = []
    for study in ("fast_ap", "listwise", "roadmap", "smooth_ap"):
        rows = study_ledger(load_study(study))
        values = {(row.recipe, row.item): yaml.safe_load(row.ours or "null") for row in rows}
        for row in (each for each in rows if each.effect == "no effect"):
            for item, wanted in known[row.item][1].items():
                plain = "deit" in row.recipe and item == "model.freeze_batch_norm"  # has none
                if values[row.recipe, item] not in wanted and not plain:
                    wrong.append(f"{row.recipe}: {row.item} acts, {item} is not one of {wanted}")
    assert wrong == []


def images(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    for number in range(48):
        path = folder / f"class{number % 8}" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (40, 52, 3), dtype=np.uint8)).save(path)
    return folder


def trained(folder: Path, changes: dict[str, object], **overlay: dict[str, object]) -> list[float]:
    """Return the losses of a run on the images beside its folder, and its last scores."""
    sections: dict[str, dict[str, object]] = {
        "model": {"channels": 3, "freeze_batch_norm": True},
        "input": {"augmentation": "crop_flip", "crop": "random", "resize": 36},
        "optimizer": {"name": "adam"},
        "schedule": {"name": "constant"},
        "training": {"epochs": 3},
        "evaluation": {"recall_at": [1], "every": 1},
    }
    for section, values in overlay.items():
        sections[section] |= values
    for item, value in changes.items():
        section, _, field = item.partition(".")
        sections.setdefault(section, {})[field] = value
    data = DatasetChoice("folder", "folder", {"root": str(images(folder.parent / "images"))})
    folder.mkdir()
    train(write_spec_in(folder, replace(tiny_spec(**sections), dataset=data, batch_size=16)))
    lines = curve(folder)
    scores = lines[-1]["evaluation"]["test"]
    return [*(line["loss"] for line in lines), scores["recall_at_1"], scores["map"]]


def test_what_has_no_effect_changes_no_loss_and_no_score(tmp_path):
    # batches of another size round otherwise, which may swap two images of nearly equal scores
    plain = trained(tmp_path / "plain", {})
    changed = trained(tmp_path / "changed", {item: value for item, (value, _) in IDLE.items()})
    assert changed == pytest.approx(plain, rel=1e-3)
    for item, value in (("optimizer.lr", 3e-3), ("input.resize", 40), ("input.flip", False)):
        acts = trained(tmp_path / item, {item: value})
        assert acts != pytest.approx(plain, rel=1e-3), item


def test_sizes_have_no_effect_where_images_are_cropped_and_shown_as_they_are(tmp_path):
    native = {"input": {"train_resize": "none", "native_size": True, "crop": "random_resized"}}
    changes = {"input.resize": 48, "input.keep_aspect": True}
    plain, other = (
        trained(tmp_path / name, given, **native) for name, given in (("a", {}), ("b", changes))
    )
    assert plain == other
