"""Every shipped study is valid, complete, and agrees with the others on the runs they share."""

from __future__ import annotations

import math
import re

import pytest
import yaml
from gpu_memory import asked_mb, counted, counted_mb, training_mb

from benchmark.core.recipe import ModelConfig
from benchmark.losses.catalogue import load_catalogue
from benchmark.published.loading import load_papers
from benchmark.runs.rates import rates
from benchmark.study import load_study, study_names
from benchmark.study.grid import expand
from benchmark.study.model import ROOT, schema_files
from benchmark.verdicts.matching import StudyGrid, reached_numbers

CONFIG = ROOT / "workflow" / "config"
PAPER_STUDIES = ("roadmap", "smooth_ap", "fast_ap", "listwise")
NAMED = yaml.safe_load((ROOT / "benchmark" / "losses" / "pml_named.yaml").read_text())


def test_the_expected_studies_are_shipped():
    assert {"embedded", "smoke", *PAPER_STUDIES} <= set(study_names())


@pytest.mark.parametrize("name", study_names())
def test_study_is_valid_and_asks_for_runs(name):
    study = load_study(name)
    assert study.name == name
    assert study.question
    assert expand(study)


def test_studies_that_share_a_run_mean_the_same_by_it():
    seen: dict[str, tuple[str, str]] = {}
    for name in study_names():
        for run_id, run in expand(load_study(name)).items():
            other, digest = seen.setdefault(run_id, (name, run.digest))
            assert digest == run.digest, (
                f"{other} and {name} ask for {run_id} with different contents"
            )


def test_smoke_has_every_loss_of_the_suite_and_some_of_the_library():
    library = {"pml", *NAMED}
    losses = set(load_study("smoke").losses)
    assert set(load_catalogue()) - library <= losses
    assert len(losses & library) >= 4


def test_embedded_has_the_eight_losses_two_batch_sizes_and_five_seeds():
    study = load_study("embedded")
    ap_losses = {
        "smooth_ap",
        "sup_ap",
        "roadmap",
        "fast_ap",
        "softbin_ap",
        "blackbox_ap",
        "calibration",
    }
    assert set(study.losses) >= ap_losses | {"triplet_semihard"}
    (block,) = study.blocks
    assert block.batch_sizes == (32, 128)
    assert block.seeds == (0, 1, 2, 3, 4)
    assert [dataset.name for dataset in block.datasets] == ["glyphs_1k"]


def test_every_recipe_belongs_to_a_study():
    used = {
        name
        for path in CONFIG.glob("*.yaml")
        for block in blocks_of(path)
        for name in recipes_in(block)
    }
    for path in CONFIG.glob("*.yaml"):  # what --config dataset= trains with
        used |= set(
            (yaml.safe_load(path.read_text()).get("rules") or {}).get("instead", {}).values()
        )
    for name in list(used):
        while name:  # what it extends
            used.add(name)
            name = yaml.safe_load((CONFIG / "recipes" / f"{name}.yaml").read_text()).get("extends")
    assert {path.stem for path in (CONFIG / "recipes").glob("*.yaml")} == used


@pytest.mark.parametrize("name", PAPER_STUDIES)
def test_a_papers_study_names_no_folder_of_this_machine(name):
    for block in load_study(name).blocks:
        assert all("root" not in key for dataset in block.datasets for key in dataset.params)


def test_the_first_look_takes_three_seeds_and_the_last_ten_but_table_5_always_its_five():
    study = load_study("roadmap")
    assert study.looks == (3, 5, 10)
    assert {len(block.seeds) for block in study.blocks if "table5" in block.name} == {5}
    assert {len(block.seeds) for block in study.blocks if "table5" not in block.name} == {3}
    planned = {block.name: len(block.planned_seeds) for block in study.blocks}
    assert {count for name, count in planned.items() if name.startswith("table5")} == {5}
    assert {planned[name] for name in ("table1", "table6", "table9")} == {10}


def test_paper_and_code_differ_where_the_recipes_say_so():
    runs = expand(load_study("roadmap"))
    code, paper = (
        runs[f"inaturalist/{setting}/roadmap/bs64/seed0"].spec
        for setting in ("resnet50", "resnet50~paper")
    )
    assert code.loss.params["weights"] == [1.0, 1.0]
    assert paper.loss.params["weights"] is None
    assert (code.loss.params["offset"], code.loss.params["start"]) == (1.0, 0.0)
    assert (paper.loss.params["offset"], paper.loss.params["start"]) == (None, 0.5)
    assert code.recipe.input.crop_area[0] > paper.recipe.input.crop_area[0]


ONE_TABLE = {  # of a paper's study
    "roadmap_table1": "roadmap",
    "smooth_ap_table2": "smooth_ap",
    "fast_ap_table1": "fast_ap",
    "listwise_table2": "listwise",
}


@pytest.mark.parametrize("name", ONE_TABLE)
def test_the_study_of_one_table_has_its_numbers_and_no_run_besides(name):
    own = load_study(name)
    others = load_study(ONE_TABLE[name])
    table = name.rpartition("_")[2]
    asked = [
        (number, cell)
        for number, cell in reached_numbers(StudyGrid.of(others))
        if number.table == table
    ]
    assert reached_numbers(StudyGrid.of(own)) == asked
    assert own.looks == others.looks
    planned = {run_id: run.digest for run_id, run in expand(others).items()}
    runs = expand(own)
    assert {run_id: run.digest for run_id, run in runs.items()}.items() <= planned.items()
    assert {run.spec.cell for run in runs.values()} == {cell for _, cell in asked}
    needs = {run.resources for run in runs.values()}
    assert needs == {expand(others)[run_id].resources for run_id in runs}


@pytest.mark.parametrize("name", list(ONE_TABLE) + list(ONE_TABLE.values()))
def test_the_page_of_the_papers_counts_the_runs_and_the_scores_of_a_study(name):
    study = load_study(name)
    scores = [number for number in load_papers().asked(study.references.published) if number.judged]
    page = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    assert re.search(rf"\| `{name}` .* \| {len(expand(study))} \| {len(scores)} \|", page)


@pytest.mark.parametrize("name", [name for name in study_names() if name.startswith(PAPER_STUDIES)])
def test_a_block_asks_for_the_memory_of_a_gpu_that_is_counted_for_its_largest_run(name):
    """Smaller ones may ask for what the study does."""
    study = load_study(name)
    needed = {}
    for block in study.blocks:
        most = math.ceil(max(map(training_mb, block.specs())) / 1000) * 1000
        needed[block.name] = max(needed.get(block.name, 0), most)
    for block in study.blocks:
        asked = (block.resources or study.resources).gpu_mem_mb
        right = asked == needed[block.name] or study.resources.gpu_mem_mb == asked
        assert right and asked >= needed[block.name], (block.name, asked, needed[block.name])


def test_what_is_asked_for_holds_every_peak_that_was_measured():
    measured = [row for row in rates() if row.peak_mb]
    assert len(measured) >= 30
    short = [row for row in measured if float(row.peak_mb) > asked_mb(float(row.counted_mb))]
    assert not short


def test_the_table_of_rates_has_the_count_of_today():
    """A change of what is counted would make the measured factors another's."""
    (row,) = [row for row in rates() if rate_key(row) == ("resnet50", "float16", 224, 128)]
    spec = next(
        spec
        for block in load_study("roadmap").blocks
        for spec in block.specs()
        if spec.recipe.model.backbone == "resnet50.tv_in1k"
        and spec.recipe.training.precision == "float16"
        and (spec.batch_size, spec.recipe.input.image_size) == (128, 224)
    )
    assert counted_mb(spec) == pytest.approx(float(row.counted_mb), rel=0.01)


def rate_key(row):
    return row.network, row.precision, row.image_size, row.at_once


def test_what_is_kept_of_an_image_is_what_resnet_50_is_known_to_keep():
    """Two float32 maps a batch norm: what a convolution gives, and what follows the ReLU."""
    image, weights = counted(ModelConfig(backbone="resnet50", freeze_batch_norm=True), 224)
    assert image / 2**20 == pytest.approx(82, abs=1)
    assert weights == pytest.approx(4 * 23.5e6, rel=0.01)


@pytest.mark.parametrize("path", schema_files(), ids=lambda path: path.name)
def test_committed_schema_equals_the_code(path):
    fix = "run: python -m benchmark validate --write-schemas"
    assert path.read_text(encoding="utf-8") == schema_files()[path], fix


def blocks_of(path):
    return yaml.safe_load(path.read_text())["blocks"]


def recipes_in(block):
    return [block["recipe"]] if isinstance(block["recipe"], str) else list(block["recipe"].values())
