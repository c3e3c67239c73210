"""Databases from elsewhere in the place of the store: one message each, nothing is changed."""

from __future__ import annotations

import contextlib
import sqlite3

import pytest

from benchmark.runs.tracking import store
from benchmark.runs.tracking.store import TrackingError


def test_a_database_that_is_none_is_one_clear_error(tmp_path):
    (tmp_path / store.DATABASE).write_text("not a database, but longer than the header of one" * 50)
    with pytest.raises(
        TrackingError, match=r"mlflow\.db cannot be used .*free some space, or delete the file"
    ):
        store.prepare("toy", "A toy", tmp_path)


def test_a_database_of_another_program_is_refused_and_left_as_it_is(tmp_path):
    with sqlite3.connect(tmp_path / store.DATABASE) as database:
        database.execute("create table bookmarks (address text)")
    database.close()
    before = (tmp_path / store.DATABASE).read_bytes()
    with pytest.raises(TrackingError, match=r"something else, with the table 'bookmarks'"):
        store.prepare("toy", "A toy", tmp_path)
    assert (tmp_path / store.DATABASE).read_bytes() == before


@pytest.mark.parametrize(
    "statements",
    [
        "alter table runs rename to runs2; create view runs as with recursive c(x) as "
        "(select 1 union all select x + 1 from c) select runs2.* from runs2, c",
        "create trigger t after insert on experiments begin insert into tags select x, x, x from "
        "(with recursive c(x) as (select 1 union all select x + 1 from c) select x from c); end",
    ],
    ids=["view", "trigger"],
)
def test_a_database_that_computes_is_refused(tmp_path, statements):
    store.prepare("toy", "A toy", tmp_path)
    with contextlib.closing(sqlite3.connect(tmp_path / store.DATABASE)) as database:
        database.executescript(statements)
    with pytest.raises(TrackingError, match=r"it computes: it has the view or trigger '(runs|t)'"):
        store.prepare("other", "Another", tmp_path)


def test_a_view_of_the_users_own_database_is_theirs(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mine.db'}")
    store.prepare("toy", "A toy", tmp_path)
    with contextlib.closing(sqlite3.connect(tmp_path / "mine.db")) as database:
        database.execute("create view best as select * from runs")
    assert store.prepare("other", "Another", tmp_path)


def test_a_store_of_a_newer_version_is_one_clear_error(tmp_path):
    store.prepare("toy", "A toy", tmp_path)
    with sqlite3.connect(tmp_path / store.DATABASE) as database:
        database.execute("update alembic_version set version_num = 'ffffffffffff'")
    with pytest.raises(TrackingError, match=r"mlflow\.db cannot be used .*delete the file"):
        store.prepare("toy", "A toy", tmp_path)


def test_a_damaged_database_is_one_message(tmp_path, caplog):
    store.prepare("toy", "A toy", tmp_path)
    with contextlib.closing(sqlite3.connect(tmp_path / store.DATABASE)) as database:
        database.execute("delete from experiments")
        database.commit()
    with pytest.raises(TrackingError, match=r"mlflow\.db cannot be used"):
        store.prepare("other", "Another", tmp_path)
    assert not [record for record in caplog.records if record.exc_info]
