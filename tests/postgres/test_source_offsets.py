# pyright: basic
"""Where a source goes on: from offsets that people set, and after what befalls the database."""

import datetime as dt
from collections.abc import Callable
from typing import LiteralString

import pytest

from fairlead.events.commits import Document, identity
from fairlead.runtime.pipeline.connectors import pipeline_keys as keys
from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.spi.context import ExternalAccess
from fairlead.runtime.pipeline.spi.errors import BadInput, OffsetRefused, SourceAway
from fairlead.runtime.pipeline.spi.offsets import SeekEnd
from fairlead.runtime.pipeline.stores.postgres.source import config_check
from fairlead.runtime.pipeline.stores.postgres.tables import windows
from fairlead_tests.connectors.pipes import take
from fairlead_tests.postgres_pipes import AMPLE, Reading, source_config
from fairlead_tests.postgres_server import Database

Read = Callable[..., Reading]
NUMBER = {"mode": "incrementing", "incrementing_column_name": "id"}
TIME = {"mode": "timestamp", "timestamp_column_name": "at"}
TABLE = {"table": "public.ev"}


@pytest.fixture
def read(read: Read, database: Database) -> Read:
    """Return what reads the table of five rows by a config."""
    database.run("CREATE TABLE ev (id int PRIMARY KEY, at timestamp NOT NULL)")
    database.run(
        "INSERT INTO ev SELECT i, make_timestamp(2026, 1, i, 0, 0, 0) FROM generate_series(1, 5) i"
    )
    return read


@pytest.mark.parametrize("given", [NUMBER, TIME, {"mode": "xmin"}], ids=["number", "time", "xmin"])
def test_earliest_reads_everything_again_and_latest_nothing_that_is_there(
    database: Database, read: Read, given: dict[str, str]
) -> None:
    reading = read(**given)
    assert reading.rows("id") == [(n,) for n in range(1, 6)]
    reading.seek(SeekEnd.EARLIEST)
    assert reading.rows("id") == [(n,) for n in range(1, 6)]
    database.run("INSERT INTO ev VALUES (6, now())")
    reading.seek(SeekEnd.LATEST)
    assert reading.rows("id") == []
    database.run("INSERT INTO ev VALUES (7, now())")
    assert reading.rows("id") == [(7,)]


def test_a_time_is_where_its_rows_begin(database: Database, read: Read) -> None:
    reading = read(**TIME)
    reading.seek(dt.datetime(2026, 1, 4, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))))
    assert reading.rows("id") == [(4,), (5,)]
    database.run("INSERT INTO ev VALUES (6, now())")
    assert reading.rows("id") == [(6,)]
    with pytest.raises(OffsetRefused, match=r"only source\.mode=timestamp and .* know times"):
        read(**NUMBER).seek(dt.datetime(2026, 1, 4, tzinfo=dt.UTC))


def test_a_number_may_be_set_to_go_on_behind(read: Read) -> None:
    reading = read(**NUMBER)
    reading.begin()
    reading.offsets[identity(TABLE)] = {"horizon": 0, "cursor": 3, "whole": True}
    assert reading.rows("id") == [(4,), (5,)]


@pytest.mark.parametrize(
    ("partition", "offset", "told"),
    [
        ({"topic": "ev"}, None, r"partition\.table is missing"),
        ({"table": "public.ev", "chunk": "0"}, None, r"partition\.chunk must be a whole number"),
        (TABLE, {"cursor": 3}, r"offset\.horizon is missing"),
        (TABLE, {"horizon": 0, "cursor": "3"}, r"offset\.cursor must be a whole number"),
        (TABLE, {"horizon": 0, "id": 3}, r"offset\.id is unknown"),
    ],
)
def test_an_offset_that_no_table_has_is_refused(
    database: Database, partition: dict[str, str], offset: dict[str, int] | None, told: str
) -> None:
    kind = keys.SOURCE_TYPES.find("postgres")
    with pytest.raises(OffsetRefused, match=told):
        kind.check_offset(source_config(database, NUMBER), partition, offset)
    wrong: Document = {"horizon": 0, "cursor": "yesterday"}
    with pytest.raises(OffsetRefused, match="must be a time"):
        kind.check_offset(source_config(database, TIME), TABLE, wrong)


def test_a_database_that_was_restored_is_told_and_not_read(read: Read) -> None:
    reading = read(**NUMBER)
    reading.offsets[identity(TABLE)] = {"horizon": 1 << 40, "cursor": 3, "whole": True}
    with pytest.raises(BadInput, match="the database knows of none after"):
        reading.take()


@pytest.mark.parametrize("given", [NUMBER, TIME, {"mode": "xmin"}], ids=["number", "time", "xmin"])
def test_a_failover_is_told_until_somebody_says_that_it_lost_nothing(
    database: Database, read: Read, given: dict[str, str]
) -> None:
    reading = read(**given)
    reading.begin()
    database.run("INSERT INTO ev VALUES (6, now())")
    assert len(reading.rows("id")) == 6
    offset = reading.offsets[identity(TABLE)]
    assert offset["timeline"] == 1
    for timeline, told in ((7, "the server went from timeline 7 to 1 (a failover): if"), (1, "")):
        reading.offsets[identity(TABLE)] = {**offset, "timeline": timeline}
        for _ in range(2):
            reading.begin()
            database.run("UPDATE ev SET at = now() WHERE id = 6")
            (source,) = reading.sources
            plan = source.plan(reading.offsets, AMPLE)
            assert plan.remark.startswith(told)
            assert bool(plan.remark) == bool(told)
            take(source, plan, reading.offsets)


def test_transactions_that_cannot_be_told_apart_any_more_are_told(
    read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "FURTHEST", 100)
    reading = read(**NUMBER)
    reading.offsets[identity(TABLE)] = {"horizon": 5, "cursor": 3, "whole": True}
    with pytest.raises(BadInput, match=r"was not looked at for .* transactions"):
        reading.take()


def test_a_table_that_is_rewritten_in_the_middle_of_its_snapshot_is_told(
    read: Read,
) -> None:
    reading = read(mode="xmin")
    reading.begin()
    partition: Document = {"table": "public.ev", "chunk": 0}
    reading.offsets[identity(partition)] = {"horizon": 9, "file": 1, "page": 0}
    with pytest.raises(BadInput, match=r"public\.ev was rewritten .*: read it again"):
        reading.take()


def test_a_source_whose_server_is_away_says_so_and_goes_on_after(
    database: Database, read: Read
) -> None:
    reading = read(mode="xmin")
    assert len(reading.rows("id")) == 5
    database.server.stop()
    (source,) = reading.sources
    try:
        for told in ("terminating connection|server closed", "Connection refused"):
            with pytest.raises(SourceAway, match=told):
                source.plan(reading.offsets, AMPLE)
    finally:
        database.server.start()
    database.run("INSERT INTO ev VALUES (6, now())")
    assert reading.rows("id") == [(6,)]


@pytest.mark.parametrize(
    ("given", "key", "told"),
    [
        ({**NUMBER, "incrementing_column_name": "no"}, "incrementing.column.name", "has no column"),
        (
            {**NUMBER, "incrementing_column_name": "t"},
            "incrementing.column.name",
            "whole number or",
        ),
        ({**NUMBER, "incrementing_column_name": "n"}, "incrementing.column.name", "may be null"),
        ({**TIME, "timestamp_column_name": "id"}, "timestamp.column.name", "which is no time"),
        ({"mode": "xmin", "connection_password": "wrong-one"}, "connection.url", "authentication"),
    ],
)
def test_what_keeps_a_table_from_being_followed_is_found_beforehand(
    database: Database, given: dict[str, str], key: str, told: str
) -> None:
    database.run("CREATE TABLE ev (id int PRIMARY KEY, n int, t text NOT NULL)")
    findings = SparkPipeline.probe(source_config(database, given), ExternalAccess())
    assert told in findings.errors[f"source.{key}"]
    assert "wrong-one" not in str(findings)


@pytest.mark.parametrize("key", ["table_include_list", "table_whitelist"])
@pytest.mark.parametrize("kind", ["VIEW", "MATERIALIZED VIEW"])
@pytest.mark.parametrize("mode", ["xmin", "bulk", "log"])
def test_a_view_that_is_named_as_a_table_is_told_beforehand(
    database: Database, key: str, kind: LiteralString, mode: str
) -> None:
    database.run(f"CREATE {kind} ev AS SELECT 1 AS id")
    config = source_config(database, {"mode": mode, key: r"public\.ev"})
    assert SparkPipeline.probe(config, ExternalAccess()).errors == {
        f"source.{key.replace('_', '.')}": f"public.ev is a {kind.lower()}, which is not read as "
        "tables are: name it in source.query"
    }


def test_views_beside_tables_are_passed_over_and_told_where_tables_are_named(
    database: Database,
) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY)")
    database.run("CREATE VIEW ev AS SELECT 1 AS id")
    told = "public.ev is a view, which is not read as tables are: name it in source.query"
    for include, warnings in (({}, ()), ({"table_include_list": r"public\..*"}, (told,))):
        config = source_config(database, {"mode": "xmin", **include})
        findings = SparkPipeline.probe(config, ExternalAccess())
        assert (findings.errors, findings.warnings) == ({}, warnings)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"mode": "xmin"}, "than the last 2^32 of them comes again when the number of its"),
        ({"mode": "log"}, "than the last 2^32 of them may be missing in the snapshot when the"),
        ({"mode": "bulk"}, ""),
        (NUMBER, ""),
    ],
)
def test_a_server_whose_old_rows_look_new_is_told_beforehand(
    database: Database, monkeypatch: pytest.MonkeyPatch, given: dict[str, str], told: str
) -> None:
    database.run("CREATE TABLE ev (id int PRIMARY KEY)")
    config = source_config(database, given)
    assert SparkPipeline.probe(config, ExternalAccess()).warnings == ()
    monkeypatch.setattr(config_check, "XMIN_RANGE", 1)
    warnings = SparkPipeline.probe(config, ExternalAccess()).warnings
    assert [told in each for each in warnings] == ([True] if told else [])


def test_a_table_that_may_not_be_read_is_told(database: Database) -> None:
    database.run("CREATE TABLE ev (id) AS VALUES (1)")
    database.run("GRANT USAGE ON SCHEMA public TO public")
    database.run("DROP ROLE IF EXISTS poor")
    database.run("CREATE ROLE poor LOGIN PASSWORD 'poor-pass'")
    given = {"mode": "xmin", "connection_user": "poor", "connection_password": "poor-pass"}
    reading = Reading(database, source_config(database, given))
    try:
        with pytest.raises(BadInput, match="permission denied for table ev"):
            reading.take()
    finally:
        reading.close()


def test_modes_ask_for_their_columns(database: Database) -> None:
    errors = SparkPipeline.validate(source_config(database, {"mode": "timestamp+incrementing"}))
    assert set(errors.errors) == {
        "source.incrementing.column.name",
        "source.timestamp.column.name",
    }
