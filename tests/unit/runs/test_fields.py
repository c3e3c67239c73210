"""A field travels: it says what its runs are of, and one from elsewhere is checked."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_up_fields import made_up_field, made_up_tables, sign, study_with_rules, write_features

from benchmark.core.errors import BenchmarkError, ConfigError, DataError, ReferenceDataError
from benchmark.datasets import load_dataset
from benchmark.runs.field import freeze_field, read_field
from benchmark.study import load_study
from benchmark.study.grid import expand
from benchmark.study.manifest import FEATURES, MANIFEST, ROWS, read_manifest
from benchmark.study.model import ROOT
from benchmark.study.own import Challenged, write_one_loss

GLYPHS = ROOT / "results" / "reference" / "reality_check"
RUNS = "final/runs.csv"


@pytest.fixture(scope="module")
def frozen(tmp_path_factory):
    """Return the folder of a field that no test changes."""
    return made_up_field(tmp_path_factory.mktemp("frozen") / "field")


@pytest.fixture
def field(frozen, tmp_path):
    """Return the folder of a field to change."""
    return Path(shutil.copytree(frozen, tmp_path / "field"))


def manifest_of(folder):
    return json.loads((folder / MANIFEST).read_text())


def renew(folder, name):
    """Give the manifest the digest that a changed file has now."""
    content = manifest_of(folder)
    content["files"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    sign(folder, content)


def test_a_field_comes_back_as_it_was_frozen(frozen):
    field = read_field(frozen)
    for found, made in zip((field.trials, field.final), made_up_tables(), strict=True):
        kept = made.runs[found.runs.columns]
        assert found.runs.astype(str).equals(kept.astype(str))
        assert set(made.runs.columns) == set(kept.columns)
        pd.testing.assert_frame_equal(found.scores, made.scores)


def test_the_manifest_says_what_the_runs_are_of(frozen):
    manifest = read_manifest(frozen)
    file = manifest.file
    assert file.rules.trials == (1, 4)
    assert file.seeds == (0,)
    (block,) = file.entries
    assert block.batch_sizes == (32,)
    assert manifest.recipes["tiny"]["optimizer"]["lr"] == 0.001
    assert manifest.ranges["smooth_ap"]["losses.tau"]
    assert manifest.ranges["proxy_anchor"]["optimizer.lr"] == {"times": [0.1, 10.0]}
    assert manifest.data == {"glyphs_tiny": load_dataset("glyphs_tiny").fingerprint}
    assert manifest.features is None
    assert manifest.licence == "unstated"
    assert set(manifest.made_by) == {"code_version", "platform", "kernels", "processor"}


def test_the_field_of_glyphs_asks_a_challenger_for_the_runs_of_its_study(tmp_path):
    """As when the challenger's study was made of the study itself."""
    against = Challenged(GLYPHS, read_manifest(GLYPHS))
    path = write_one_loss(against, "roadmap", tmp_path / "one.yaml")
    found = {run_id: run.digest for run_id, run in expand(load_study(path)).items()}
    whole = {run_id: run.digest for run_id, run in expand(load_study("reality_check")).items()}
    assert len(found) == 34
    assert found.items() <= whole.items()


def test_the_field_of_glyphs_is_that_of_the_present_study():
    field = read_field(GLYPHS)
    study = load_study("reality_check")
    assert set(field.trials.runs["run_id"]) == set(expand(study))
    assert field.manifest.data == {"glyphs_1k": load_dataset("glyphs_1k").fingerprint}
    assert len(field.final.runs) == study.trials.final_runs


def test_features_stay_at_home_but_for_256_rows(tmp_path):
    path = write_features(tmp_path / "mine.npz")
    folder = made_up_field(tmp_path / "field", {"file": str(path)}, licence="CC0")
    manifest = read_manifest(folder)
    assert manifest.licence == "CC0"
    assert manifest.features.shape == (320, 6)
    assert manifest.features.dtype == "float32"
    assert not (folder / FEATURES).exists()
    rows = np.load(folder / ROWS)
    given = np.load(path)["embeddings"]
    assert len(rows["rows"]) == 256
    assert np.array_equal(given[rows["numbers"]], rows["rows"])
    assert str(tmp_path) not in (folder / MANIFEST).read_text()


def test_features_say_which_network_made_them(tmp_path):
    facts = {"model": ["resnet50.a1", "native", 3], "weights": "0123", "view": {}}
    path = write_features(tmp_path / "mine.npz", made_by=np.array(json.dumps(facts)))
    folder = made_up_field(tmp_path / "field", {"file": str(path)})
    assert read_manifest(folder).features.network == "resnet50.a1"
    assert read_manifest(folder).features.weights == "0123"


def test_features_that_travel_are_the_same_data(tmp_path):
    path = write_features(tmp_path / "mine.npz")
    table = tmp_path / "rows.csv"
    lines = [f"class {number % 8},{'train' if number % 8 < 4 else 'test'}" for number in range(320)]
    table.write_text("\n".join(["kind,split", *lines]))
    params = {"file": str(path), "labels": str(table), "keys": {"labels": "kind"}}
    folder = made_up_field(tmp_path / "field", params, with_features=True)
    (digest,) = read_manifest(folder).data.values()
    own = {"file": str(folder / FEATURES), "keys": {"labels": "kind"}}
    assert load_dataset("features", own).fingerprint == digest


def test_features_in_the_folder_do_not_travel_unasked(tmp_path):
    path = write_features(tmp_path / "mine.npz")
    made_up_field(tmp_path / "field", {"file": str(path)}, with_features=True)
    with pytest.raises(ReferenceDataError, match="--with-features"):
        made_up_field(tmp_path / "field", {"file": str(path)})


def test_features_and_images_do_not_share_a_field(tmp_path):
    study = study_with_rules(tmp_path, {"file": str(write_features(tmp_path / "mine.npz"))})
    block = study.trials.blocks[0]
    glyphs = study_with_rules(tmp_path / "glyphs").trials.blocks[0]
    object.__setattr__(block, "datasets", (*block.datasets, *glyphs.datasets))
    object.__setattr__(glyphs.datasets[0], "label", "others")
    with pytest.raises(ReferenceDataError, match="one dataset"):
        freeze_field(study, *made_up_tables(), tmp_path / "field")


# What somebody may write into a manifest, digest included: dotted key, and value.
MANIFESTS = {
    "another version": ("version", 2),
    "a key that is not there": ("extra", 1),
    "a licence of pages": ("licence", "x" * 10_000),
    "a name of markup": ("ranges.<script>", {}),
    "a path of a dataset": ("study.blocks.0.datasets.0.params", {"root": "/etc"}),
    "weights in a file": ("recipes.tiny.model.checkpoint", "../weights.pth"),
    "weights in an option": ("recipes.tiny.options", {"a": {"model": {"checkpoint": "w.pth"}}}),
    "a folder of images": (
        "study.blocks.0.datasets",
        [{"name": "folder", "params": {"root": ".."}}],
    ),
    "a recipe that leaves": ("recipes.../up", {"label": "a"}),
    "no rules": ("study.rules", None),
    "other trials": ("study.rules.trials", [1, 2]),
    "other folds": ("study.rules.folds", 3),
    "more batch sizes": ("study.blocks.0.batch_sizes", [32, 64]),
    "another metric": ("study.metrics", ["recall_at_1"]),
    "a file of all files": ("files./etc/passwd", "0" * 64),
    "no features": ("study.blocks.0.datasets", [{"name": "features", "label": "glyphs_tiny"}]),
    "features without rows": ("features", {"names": "0", "labels": "0", "split": "0"}),
}


def put(content, key, value):
    """Set the value at a dotted key; the last part may have dots."""
    steps = key.split(".", 1 if key.startswith(("files", "recipes...")) else -1)
    *above, last = steps
    for step in above:
        content = content[int(step) if step.isdigit() else step]
    content[last] = value


@pytest.mark.parametrize("case", MANIFESTS)
def test_a_manifest_that_does_not_fit_is_refused(field, case, messages):
    content = manifest_of(field)
    put(content, *MANIFESTS[case])
    sign(field, content)
    with pytest.raises(ConfigError) as caught:
        read_field(field)
    messages(caught.value)


def test_a_changed_number_is_seen(field):
    text = (field / MANIFEST).read_text()
    (field / MANIFEST).write_text(text.replace('"lr": 0.001', '"lr": 0.002'))
    with pytest.raises(ConfigError, match="was changed"):
        read_field(field)


def cells(change):
    """Return a function that changes the table of final runs as cells of text."""

    def changed(field):
        table = pd.read_csv(field / RUNS, dtype=str, keep_default_na=False)
        change(table).to_csv(field / RUNS, index=False, lineterminator="\n")

    return changed


def scores(change):
    """Return a function that changes the scores of final runs."""

    def changed(field):
        path = field / "final" / "scores.csv"
        change(pd.read_csv(path)).to_csv(path, index=False, lineterminator="\n")

    return changed


def first(**values):
    """Return a function that sets cells of the first row."""

    def changed(table):
        for name, value in values.items():
            table[name] = [value, *table[name].iloc[1:]]
        return table

    return changed


TABLES = {
    "a formula": cells(first(processor="=cmd|' /C calc'!A0")),
    "a formula with a sign": cells(first(reason="-x+1")),
    "a letter that controls a terminal": cells(first(platform="\x1b[2J")),
    "a long cell": cells(first(reason="x" * 2_000)),
    "a loss of markup": cells(lambda table: table.replace("sup_ap", "<b>sup_ap</b>", regex=True)),
    "a run twice": cells(lambda table: pd.concat([table, table[:1]])),
    "a run less": cells(lambda table: table[1:]),
    "a loss less": cells(lambda table: table[table["loss"] != "sup_ap"]),
    "a run without a result": cells(first(status="missing")),
    "a seed of text": cells(first(seed="one")),
    "a budget of text": cells(first(**{"trials.budget": "all"})),
    "another seed": cells(first(seed="7")),
    "an infinite cost": cells(first(total_seconds="inf")),
    "a column of others": cells(lambda table: table.assign(**{"recipe.model.channels": "1"})),
    "a column less": cells(lambda table: table.drop(columns="kernels")),
    "no rows": cells(lambda table: table[:0]),
    "a score above 1": scores(first(value=1.5)),
    "a score of NaN": scores(first(value=np.nan)),
    "a score twice": scores(lambda table: pd.concat([table, table[:1]])),
    "a score less": scores(lambda table: table[1:]),
    "a score of another metric": scores(first(metric="map")),
    "a score of an epoch on the way": scores(first(selection="best")),
    "a column of scores": scores(lambda table: table.assign(more=1)),
}


@pytest.mark.parametrize("case", TABLES)
def test_a_table_that_freeze_does_not_write_is_refused(field, case, messages):
    TABLES[case](field)
    for name in (RUNS, "final/scores.csv"):
        renew(field, name)
    with pytest.raises(ConfigError) as caught:
        read_field(field)
    messages(caught.value)


def outside(field):
    (field / RUNS).rename(field.parent / "runs.csv")
    (field / RUNS).symlink_to(field.parent / "runs.csv")


def piped(field):
    (field / RUNS).unlink()
    os.mkfifo(field / RUNS)


def large(field):
    with open(field / RUNS, "ab") as file:
        file.truncate(2**33)


def gone(field):
    (field / RUNS).unlink()


def cut(field):
    (field / RUNS).write_bytes((field / RUNS).read_bytes()[:-200])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (outside, "leads out of the folder"),
        (piped, "not a regular file"),
        (large, "allowed: 10,000,000"),
        (gone, "is missing"),
        (cut, "not the file that was frozen"),
    ],
)
def test_a_file_that_is_not_there_as_it_was_is_refused(field, change, words):
    change(field)
    with pytest.raises((ConfigError, DataError), match=words):
        read_field(field)


def test_a_byte_that_changed_on_the_way_is_an_error_or_changes_nothing(field):
    whole = read_field(field)
    generator = random.Random(0)
    files = [path for path in sorted(field.rglob("*")) if path.is_file()]
    refused = 0
    for _ in range(60):
        path = generator.choice(files)
        content = path.read_bytes()
        place = generator.randrange(len(content))
        changed = bytearray(content)
        changed[place] ^= 1 << generator.randrange(8)
        path.write_bytes(changed)
        try:
            found = read_field(field)
        except BenchmarkError:
            refused += 1
        else:
            assert found.manifest == whole.manifest
        path.write_bytes(content)
    assert refused > 40


STRANGE = ("", "nan", "-1", "1e999", "[1]", "{}", '"', "true", "null", "\u202e", "a,b", "9" * 30)


def test_a_strange_cell_is_read_or_refused_and_nothing_else(field):
    table = pd.read_csv(field / RUNS, dtype=str, keep_default_na=False)
    generator = random.Random(0)
    for _ in range(60):
        name = generator.choice([*table.columns])
        changed = table.copy()
        changed.loc[generator.randrange(len(table)), name] = generator.choice(STRANGE)
        changed.to_csv(field / RUNS, index=False, lineterminator="\n")
        renew(field, RUNS)
        try:
            read_field(field)
        except BenchmarkError as error:
            assert str(error)


def test_the_field_of_digits_is_made_of_what_its_command_writes(tmp_path):
    folder = ROOT / "results" / "reference" / "digits"
    shutil.copy(folder / "features.py", tmp_path)
    subprocess.run([sys.executable, tmp_path / "features.py"], check=True)
    field = read_field(folder)
    params = {"file": str(tmp_path / FEATURES), "train_share": 0.6}
    assert field.manifest.data == {"digits": load_dataset("features", params).fingerprint}
    assert set(field.trials.runs["loss"]) == set(load_study(folder / "digits.yaml").losses)
    assert len(field.trials.runs) + len(field.final.runs) == 444
