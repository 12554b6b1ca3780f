# pyright: basic
"""A query is read whole, or on behind the highest values of its columns."""

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest

from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.spi.context import ExternalAccess
from fairlead.runtime.pipeline.spi.errors import OffsetRefused
from fairlead.runtime.pipeline.spi.offsets import SeekEnd
from fairlead.runtime.pipeline.spi.source import Limit
from fairlead.runtime.pipeline.stores.postgres.tables import reading as reading_module
from fairlead_tests.postgres_pipes import AMPLE, Reading, source_config
from fairlead_tests.postgres_server import Database

Read = Callable[..., Reading]
SMALL = Limit(7, 1 << 20, 4096)
QUERY = "SELECT o.id, x, at, name FROM orders o JOIN people USING (who) WHERE name <> 'z%{}'"
MODES = {
    "number": {"mode": "incrementing", "incrementing_column_name": "id"},
    "xid8": {"mode": "incrementing", "incrementing_column_name": "x"},
    "time": {"mode": "timestamp", "timestamp_column_name": "at"},
    "both": {
        "mode": "timestamp+incrementing",
        "timestamp_column_name": "at",
        "incrementing_column_name": "id",
    },
}


@pytest.fixture
def read(read: Read, database: Database) -> Read:
    """Return what reads the query by a config: twenty rows, five of each of four transactions."""
    database.run("CREATE TABLE people (who int PRIMARY KEY, name text)")
    database.run("INSERT INTO people VALUES (1, 'one'), (2, 'two')")
    database.run(
        """CREATE TABLE orders (id int PRIMARY KEY, who int, at timestamptz NOT NULL DEFAULT now(),
        x xid8 NOT NULL DEFAULT pg_current_xact_id())"""
    )
    for first in (1, 6, 11, 16):
        add(database, first, first + 4)
    return read


def add(database: Database, first: int, last: int) -> None:
    given = "INSERT INTO orders (id, who) SELECT i, 1 + i %% 2 FROM generate_series(%s::int, %s) i"
    database.run(given, first, last)


@pytest.mark.parametrize("mode", MODES)
def test_a_query_is_read_on_behind_its_columns(database: Database, read: Read, mode: str) -> None:
    reading = read(query=f"{QUERY};", topic_prefix="orders", **MODES[mode])
    names = ("id", "name", "_topic")
    assert reading.rows(*names, limit=SMALL) == [
        (n, ("one", "two")[n % 2], "orders") for n in range(1, 21)
    ]
    assert reading.rows("id") == []
    add(database, 21, 30)
    reading.begin()
    assert reading.rows("id", limit=SMALL) == [(n,) for n in range(21, 31)]
    reading.seek(SeekEnd.EARLIEST)
    assert len(reading.rows("id")) == 30


def test_a_query_is_read_whole_in_pages(read: Read) -> None:
    reading = read(query=f"{QUERY} ORDER BY 1", mode="bulk")
    assert [each.num_rows for each in reading.take(SMALL)] == [7, 7, 6]
    assert reading.take() == []
    reading.begin()
    assert reading.take() == []


def test_a_row_of_a_query_that_commits_late_is_read_by_its_transaction(
    database: Database, read: Read
) -> None:
    reading = read(query=QUERY, **MODES["xid8"])
    assert len(reading.rows("id")) == 20
    with database.session() as late:
        late.execute("INSERT INTO orders (id, who) VALUES (21, 1)")
        add(database, 22, 23)
        assert reading.rows("id") == []
        late.commit()
    assert reading.rows("id") == [(21,), (22,), (23,)]


def test_a_time_of_a_query_is_let_grow_old(database: Database, read: Read) -> None:
    reading = read(query=QUERY, timestamp_delay_interval_ms="3600000", **MODES["time"])
    assert reading.rows("id") == []
    database.run("UPDATE orders SET at = now() - interval '2 hours' WHERE id < 3")
    assert reading.rows("id") == [(1,), (2,)]
    reading.seek(dt.datetime.now(dt.UTC) - dt.timedelta(hours=3))
    assert reading.rows("id") == [(1,), (2,)]
    with pytest.raises(OffsetRefused, match="a query is read from earliest, or with"):
        reading.seek(SeekEnd.LATEST)


@pytest.mark.parametrize(
    ("given", "key", "told"),
    [
        ({"mode": "bulk", "query": "SELEC 1"}, "query", "syntax error at or near"),
        ({"mode": "bulk", "query": "SELECT 1 AS a, 2 AS a"}, "query", "gives a twice"),
        ({**MODES["number"], "query": "SELECT 1"}, "incrementing.column.name", "no column id"),
        (
            {**MODES["time"], "query": "SELECT 1 AS at"},
            "timestamp.column.name",
            "the query gives at as int4",
        ),
    ],
)
def test_what_is_wrong_with_a_query_is_found_beforehand(
    database: Database, given: dict[str, str], key: str, told: str
) -> None:
    findings = SparkPipeline.probe(source_config(database, given), ExternalAccess())
    assert told in findings.errors[f"source.{key}"]


def test_a_query_is_no_table(database: Database) -> None:
    given = {"query": "SELECT 1", "table_include_list": "t", "snapshot_mode": "no_data"}
    wrong = SparkPipeline.validate(source_config(database, {**given, "mode": "xmin"}))
    assert set(wrong.errors) == {
        f"source.{key}" for key in ("mode", "table.include.list", "snapshot.mode")
    }
    assert "no transaction of their own" in wrong.errors["source.mode"][0]


def test_the_first_page_is_small_as_nobody_knows_how_large_its_rows_are(
    database: Database, read: Read
) -> None:
    add(database, 21, 3000)
    reading = read(query="SELECT id FROM orders", **MODES["number"])
    pages = [each.num_rows for each in reading.take()]
    assert pages == [1000, 2000]


def test_a_table_that_is_rewritten_just_before_it_is_read_whole_does_not_look_empty(
    database: Database, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = reading_module.RowReader.read

    def late(*given: Any, **named: Any) -> Any:
        monkeypatch.setattr(reading_module.RowReader, "read", inner)
        database.run("ALTER TABLE orders ALTER COLUMN who TYPE bigint")
        return inner(*given, **named)

    monkeypatch.setattr(reading_module.RowReader, "read", late)
    reading = read(query="SELECT id FROM orders", mode="bulk")
    assert reading.rows("id") == [(n,) for n in range(1, 21)]


def test_rows_of_a_day_are_read_once_it_is_over(database: Database, read: Read) -> None:
    database.run("CREATE TABLE days (n int, day date DEFAULT now()::date)")
    database.run("INSERT INTO days VALUES (1, now()::date - 1), (2, DEFAULT)")
    mode = {"mode": "timestamp", "timestamp_column_name": "day"}
    reading = read(query="SELECT n, day FROM days", **mode)
    assert reading.rows("n") == [(1,)]
    ((day,),) = database.run("SELECT now()::date - 2")
    database.run("INSERT INTO days VALUES (3, DEFAULT)")
    assert reading.rows("n") == []
    database.run("UPDATE days SET day = day - 1")  # the next morning
    reading.offsets = {key: {"timestamp": str(day)} for key in reading.offsets}
    assert reading.rows("n") == [(2,), (3,)]


def test_rows_of_a_day_are_read_at_once_by_their_number(database: Database, read: Read) -> None:
    database.run("CREATE TABLE days (n int, day date DEFAULT now()::date)")
    database.run("INSERT INTO days VALUES (1)")
    mode = {"timestamp_column_name": "day", "incrementing_column_name": "n"}
    reading = read(query="SELECT n, day FROM days", mode="timestamp+incrementing", **mode)
    assert reading.rows("n") == [(1,)]
    database.run("INSERT INTO days VALUES (2)")
    assert reading.rows("n") == [(2,)]


def test_row_security_of_a_table_of_the_query_is_told(database: Database, read: Read) -> None:
    database.run("DROP ROLE IF EXISTS app")
    database.run("CREATE ROLE app LOGIN PASSWORD 'app-pass'")
    database.run("GRANT USAGE ON SCHEMA public TO app")
    database.run("CREATE TABLE mine (id int)")
    database.run("INSERT INTO mine VALUES (1)")
    database.run("ALTER TABLE mine ENABLE ROW LEVEL SECURITY")
    database.run("GRANT SELECT ON mine TO app")
    role = {"connection_user": "app", "connection_password": "app-pass"}
    given = {"mode": "bulk", "query": "SELECT m.id FROM mine m JOIN mine n USING (id)", **role}
    told = (
        "row security applies to a table of the query, and only the rows that it shows to the role "
        "are read: ALTER ROLE … BYPASSRLS shows all"
    )
    for shown, remark in ((0, told), (1, "")):
        found = SparkPipeline.probe(source_config(database, given), ExternalAccess())
        assert (found.errors, found.warnings) == ({}, (remark,) if remark else ())
        reading = read(**given)
        reading.begin()
        plan = reading.sources[0].plan({}, AMPLE)
        assert (plan.rows, plan.remark) == (shown, remark)
        reading.take()
        assert reading.sources[0].plan(reading.offsets, AMPLE).remark == remark
        database.run("ALTER ROLE app BYPASSRLS")
    database.run("DROP OWNED BY app")
