"""Every shipped study is valid, complete, and agrees with the others on the runs they share."""

from __future__ import annotations

import pytest

from benchmark.grid import expand
from benchmark.losses.catalogue import load_catalogue
from benchmark.study import load_study, study_names
from benchmark.study.format import ROOT, schema_files

CONFIG = ROOT / "workflow" / "config"


def test_the_expected_studies_are_shipped():
    assert {"embedded", "smoke"} <= set(study_names())


@pytest.mark.parametrize("name", study_names())
def test_study_is_valid_and_asks_for_runs(name):
    study = load_study(name)
    assert study.name == name and study.question
    assert expand(study)


def test_studies_that_share_a_run_mean_the_same_by_it():
    seen: dict[str, tuple[str, str]] = {}
    for name in study_names():
        for run_id, run in expand(load_study(name)).items():
            other, digest = seen.setdefault(run_id, (name, run.digest))
            assert digest == run.digest, f"{other} and {name} ask for {run_id} with different contents"


def test_smoke_has_every_registered_loss():
    assert set(load_study("smoke").losses) == set(load_catalogue())


def test_embedded_has_the_eight_losses_two_batch_sizes_and_five_seeds():
    study = load_study("embedded")
    ap_losses = {"smooth_ap", "sup_ap", "roadmap", "fast_ap", "softbin_ap", "blackbox_ap", "calibration"}
    assert set(study.losses) >= ap_losses | {"triplet_semihard"}
    (block,) = study.blocks
    assert block.batch_sizes == (32, 128) and block.seeds == (0, 1, 2, 3, 4)
    assert [dataset.name for dataset in block.datasets] == ["glyphs_1k"]


def test_every_recipe_belongs_to_a_study():
    used = {block["recipe"] for path in CONFIG.glob("*.yaml") for block in blocks_of(path)}
    assert {path.stem for path in (CONFIG / "recipes").glob("*.yaml")} == used


@pytest.mark.parametrize("path", schema_files(), ids=lambda path: path.name)
def test_committed_schema_equals_the_code(path):
    fix = "run: python -m benchmark validate --write-schemas"
    assert path.read_text(encoding="utf-8") == schema_files()[path], fix


def blocks_of(path):
    import yaml

    return yaml.safe_load(path.read_text())["blocks"]
