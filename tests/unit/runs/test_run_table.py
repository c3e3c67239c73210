"""The tables of runs and scores are written and read without loss, and offer views by cell."""

from __future__ import annotations

import warnings

import pytest
from made_up_results import long_table, without_number, write_long

from benchmark.core.records import CELL_COLUMNS, Cell, Setting
from benchmark.runs.run_table import RunTable

MEANS = {"smooth_ap": 0.5, "sup_ap": 0.6}


@pytest.fixture
def folder(tmp_path):
    """The folder of a study of two losses and five seeds, of which one is missing."""
    runs = without_number(long_table(MEANS, setting="tiny~long"), "seed == 4", "missing")
    write_long(runs, tmp_path)
    return tmp_path


def settings(**values: object) -> RunTable:
    """Returns the table of one run with these settings."""
    identity = {
        "run_id": "d/s/l/bs8/seed0", "dataset": "d", "setting": "s", "backbone": "s", "options": (),
        "loss": "l", "base_loss": "l", "batch_size": 8, "seed": 0, "status": "missing",
    }  # fmt: skip
    return RunTable.from_rows([{**identity, **values}], [])


def test_the_files_give_back_what_was_written(folder):
    table = RunTable.read(folder)
    before = [path.read_bytes() for path in sorted(folder.iterdir())]
    table.write(folder)
    assert [path.read_bytes() for path in sorted(folder.iterdir())] == before
    assert set(table.runs["options"]) == {("long",)}


@pytest.mark.parametrize(
    "value",
    [0.1 + 0.2, 1, 1.0, True, None, "avg", "1", "true", "null", "", [1, 10], {"k": 2}, 'a,"b"\n'],
)
def test_a_setting_keeps_its_value_and_type(value, tmp_path):
    settings(**{"loss.x": value}).write(tmp_path)
    found = RunTable.read(tmp_path).runs["loss.x"][0]
    wanted = tuple(value) if isinstance(value, list) else value
    assert found == wanted
    assert type(found) is type(wanted)


def test_scores_are_read_to_the_last_bit(tmp_path):
    value = 0.1 + 0.2 + 1e-16
    run_id = "d/s/l/bs8/seed0"
    rows = settings().runs.to_dict("records")
    RunTable.from_rows(rows, [(run_id, "test", "last", 1, "map", value)]).write(tmp_path)
    assert RunTable.read(tmp_path).scores["value"][0] == value


def test_views_have_the_columns_of_a_cell_and_leave_out_what_has_no_score(folder):
    table = RunTable.read(folder)
    scores = table.test_scores("last", ["map_at_r"])
    assert len(scores) == 8
    assert set(scores["metric"]) == {"map_at_r"}
    assert {*CELL_COLUMNS, "seed", "run_id", "epoch", "value"} <= set(scores)
    assert len(table.attempts()) == 10
    assert set(table.attempts()["status"]) == {"ok", "missing"}


def test_cells_are_typed_and_counted_by_status(folder):
    table = RunTable.read(folder)
    cell = Cell("glyphs", Setting("tiny", ("long",)), "sup_ap", "sup_ap", 32)
    assert list(table.statuses())[1] == cell
    assert table.statuses()[cell] == {"ok": 4, "missing": 1}


def test_columns_are_added_to_runs_of_many_settings_without_a_warning(tmp_path):
    settings(**{f"recipe.training.option{number}": 1 for number in range(150)}).write(tmp_path)
    runs = RunTable.read(tmp_path).runs
    with warnings.catch_warnings(action="error"):
        assert runs.assign(split="test")["split"].eq("test").all()


def test_missing_tables_name_the_commands(tmp_path, messages):
    with messages.raised():
        RunTable.read(tmp_path / "own")


def chosen(rows, rule, lead=""):
    """Return the rows that a rule chooses among those of the runs "a" and "b"."""
    whole = {"batch_size": 32, "seed": 0}
    runs = [{"run_id": name, "status": "ok", "loss": name, **whole} for name in ("a", "b")]
    found = RunTable.from_rows(runs, rows).test_scores(rule, lead=lead)
    values = found[["run_id", "split", "epoch", "metric", "value"]].itertuples(index=False)
    return sorted(map(tuple, values))


def test_one_best_epoch_is_chosen_by_map_at_r_for_all_metrics_of_a_split():
    """The epoch of each run and split; mAP where mAP@R is not measured, the last without curve."""
    rows = [
        ("a", "test", "curve", 1, "recall_at_1", 0.9),
        ("a", "test", "curve", 1, "map_at_r", 0.4),
        ("a", "test", "curve", 2, "recall_at_1", 0.7),
        ("a", "test", "curve", 2, "map_at_r", 0.6),
        ("a", "test", "curve", 3, "recall_at_1", 0.8),
        ("a", "test", "curve", 3, "map_at_r", 0.6),
        ("a", "test", "last", 3, "recall_at_1", 0.8),
        ("a", "hard", "curve", 1, "map", 0.3),
        ("a", "hard", "curve", 2, "map", 0.2),
        ("a", "train", "curve", 1, "loss", 0.1),
        ("b", "test", "last", 3, "recall_at_1", 0.5),
    ]
    assert chosen(rows, "one_best") == [
        ("a", "hard", 1, "map", 0.3),
        ("a", "test", 2, "map_at_r", 0.6),
        ("a", "test", 2, "recall_at_1", 0.7),
        ("b", "test", 3, "recall_at_1", 0.5),
    ]


def curve(run, split, metric, *values):
    return [(run, split, "curve", epoch, metric, value) for epoch, value in enumerate(values, 1)]


def test_the_best_recall_at_1_of_each_split_chooses_the_epoch_of_all_its_metrics():
    rows = [
        *curve("a", "small", "recall_at_1", 0.9, 0.8),
        *curve("a", "small", "map_at_r", 0.3, 0.5),
        *curve("a", "large", "recall_at_1", 0.6, 0.7),
        *curve("a", "large", "map_at_r", 0.4, 0.2),
    ]
    assert chosen(rows, "best_recall_at_1") == [
        ("a", "large", 2, "map_at_r", 0.2),
        ("a", "large", 2, "recall_at_1", 0.7),
        ("a", "small", 1, "map_at_r", 0.3),
        ("a", "small", 1, "recall_at_1", 0.9),
    ]


def test_a_split_that_leads_chooses_the_epoch_of_all_splits_of_its_runs_alone():
    rows = [
        *curve("a", "rparis6k_hard", "map", 0.1, 0.3, 0.2),
        *curve("a", "roxford5k_hard", "map", 0.3, 0.1, 0.2),
        *curve("b", "test", "map", 0.5, 0.4),
    ]
    assert chosen(rows, "one_best", "rparis6k_hard") == [
        ("a", "roxford5k_hard", 2, "map", 0.1),
        ("a", "rparis6k_hard", 2, "map", 0.3),
        ("b", "test", 1, "map", 0.5),
    ]
