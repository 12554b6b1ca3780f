# pyright: basic
"""What is in tables is read once, whatever is written to them meanwhile."""

import datetime as dt
import logging
import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from typing import Any, LiteralString

import psycopg
import pyarrow as pa
import pytest

from fairlead.runtime.pipeline.spi.config import ConfigInvalid
from fairlead.runtime.pipeline.spi.errors import BadInput, SourceAway
from fairlead.runtime.pipeline.spi.offsets import SeekEnd
from fairlead.runtime.pipeline.spi.source import Limit
from fairlead.runtime.pipeline.stores.postgres.tables import chunks
from fairlead.runtime.pipeline.stores.postgres.tables import reading as reading_module
from fairlead.runtime.pipeline.stores.postgres.tables import source as source_module
from fairlead.runtime.pipeline.stores.postgres.tables.shares import TaskShare
from fairlead_tests.connectors.pipes import take
from fairlead_tests.postgres_pipes import AMPLE, Reading, rows
from fairlead_tests.postgres_server import PASSWORD, Database, wait_until

Read = Callable[..., Reading]
UTC = dt.UTC
SMALL = Limit(40, 1 << 20, 4096)


MODES = {
    "xmin": {"mode": "xmin"},
    "number": {"mode": "incrementing", "incrementing_column_name": "id"},
    "xid8": {"mode": "incrementing", "incrementing_column_name": "x"},
    "time": {"mode": "timestamp", "timestamp_column_name": "at"},
}
TABLE = """CREATE TABLE ev (id bigserial PRIMARY KEY, who int,
    x xid8 NOT NULL DEFAULT pg_current_xact_id(),
    at timestamptz NOT NULL DEFAULT clock_timestamp())"""


@pytest.mark.parametrize("mode", MODES)
def test_what_is_there_and_what_comes_is_read_once(
    database: Database, read: Read, mode: str
) -> None:
    database.run(TABLE)
    database.run("INSERT INTO ev (who) SELECT i FROM generate_series(1, 100) i")
    reading = read(**MODES[mode])
    assert reading.rows("who", limit=SMALL) == [(n,) for n in range(1, 101)]
    assert reading.rows("who") == []
    database.run("INSERT INTO ev (who) SELECT i FROM generate_series(101, 200) i")
    assert reading.rows("who", limit=SMALL) == [(n,) for n in range(101, 201)]
    reading.begin()  # another owner goes on from the offsets
    assert reading.rows("who") == []
    database.run("INSERT INTO ev (who) VALUES (201)")
    assert reading.rows("who") == [(201,)]


@pytest.mark.parametrize("mode", MODES)
def test_a_row_that_commits_late_is_neither_lost_nor_doubled(
    database: Database, read: Read, mode: str
) -> None:
    database.run(TABLE)
    reading = read(**MODES[mode])
    with database.session() as late:
        late.execute("INSERT INTO ev (who) VALUES (1)")
        database.run("INSERT INTO ev (who) VALUES (2)")
        assert reading.rows("who") == []  # behind an open transaction nothing is certain
        with late.transaction():
            late.execute("INSERT INTO ev (who) VALUES (3)")
        late.commit()
        database.run("INSERT INTO ev (who) VALUES (4)")
    assert reading.rows("who", limit=Limit(1, 1, 1)) == [(1,), (2,), (3,), (4,)]
    assert reading.rows("who") == []


@pytest.mark.parametrize(
    ("mode", "late"), [("number", "(1, 0, DEFAULT)"), ("time", "(1, 0, '2001-01-01')")]
)
def test_an_audit_counts_the_rows_that_came_later_than_is_looked_back(
    database: Database, read: Read, mode: str, late: LiteralString
) -> None:
    database.run(TABLE)
    database.run("INSERT INTO ev (id, who) SELECT i, i FROM generate_series(101, 200) i")
    given = {**MODES[mode], "lookback_rows": "10", "audit_interval_ms": "1"}
    reading = read(**given)
    assert len(reading.rows("who")) == 100
    for number in (201, 202):
        database.run("INSERT INTO ev (id, who) VALUES (%s, %s)", number, number)
        assert reading.rows("who") == [(number,)]
        assert reading.sources[0].plan(reading.offsets, AMPLE).remark == ""
        time.sleep(0.002)
    database.run(f"INSERT INTO ev (id, who, at) VALUES {late}")
    assert reading.rows("who") == []
    time.sleep(0.002)
    database.run("INSERT INTO ev (id, who) VALUES (203, 203)")
    assert reading.rows("who") == [(203,)]
    remark = reading.sources[0].plan(reading.offsets, AMPLE).remark
    assert remark.startswith("at least 1 rows of public.ev were added later than ")


@pytest.mark.parametrize("mode", MODES)
def test_a_window_that_ends_with_a_full_batch_is_left_behind(
    database: Database, read: Read, mode: str
) -> None:
    database.run(TABLE)
    reading = read(**MODES[mode])
    assert reading.rows("who") == []
    for last in (0, SMALL.rows):  # while the snapshot is caught up with, and afterwards
        values = range(last + 1, last + SMALL.rows + 1)
        database.run("INSERT INTO ev (who) SELECT unnest(%s::int[])", list(values))
        assert reading.rows("who", limit=SMALL) == [(n,) for n in values]
    database.run("INSERT INTO ev (who) VALUES (100)")
    assert reading.rows("who", limit=SMALL) == [(100,)]


def test_a_transaction_that_stays_open_is_told(
    database: Database, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_module, "_HELD_S", 0.0)
    database.run(TABLE)
    reading = read(mode="xmin")
    reading.begin()
    with database.session() as late:
        late.execute("INSERT INTO ev (who) VALUES (1)")
        database.run("INSERT INTO ev (who) VALUES (2)")
        (xid,) = late.execute("SELECT pg_current_xact_id()::text").fetchone() or ("",)
        reading.take()
        plan = reading.sources[0].plan(reading.offsets, AMPLE)
        assert plan.remark.startswith(f"rows wait for transaction {xid}, which is open")


def test_writers_that_commit_in_any_order_lose_and_double_nothing(
    database: Database, read: Read
) -> None:
    database.run(TABLE)
    database.run("CREATE INDEX ON ev (x)")
    readings = {mode: read(**given) for mode, given in MODES.items()}
    found: dict[str, list[int]] = {mode: [] for mode in MODES}

    def look() -> None:
        for mode, reading in readings.items():
            found[mode] += [number for (number,) in reading.rows("id", limit=SMALL)]

    stop = threading.Event()
    writers = [threading.Thread(target=write, args=(database, who, stop)) for who in range(4)]
    for each in writers:
        each.start()
    end = time.monotonic() + 1
    while time.monotonic() < end:
        look()
        time.sleep(0.01)
    stop.set()
    for each in writers:
        each.join()
    wanted = [number for (number,) in database.run("SELECT id FROM ev ORDER BY id")]
    assert len(wanted) > 20

    def all_found() -> bool:  # what found nothing rests a little, by how long it took
        look()
        return min(map(len, found.values())) >= len(wanted)

    with suppress(AssertionError):  # what is missing tells more than that time is over
        wait_until(all_found)
    assert {mode: sorted(each) for mode, each in found.items()} == dict.fromkeys(MODES, wanted)


def write(database: Database, who: int, stop: threading.Event) -> None:
    """Add rows in transactions of which some take long, and some come to nothing."""
    dice = random.Random(who)
    with database.session() as session:
        while not stop.is_set():
            for _ in range(dice.choice((1, 3))):
                session.execute("INSERT INTO ev (who) VALUES (%s)", (who,))
            stop.wait(dice.choice((0.005, 0.01, 0.05, 0.2)))
            session.commit() if dice.random() < 0.9 else session.rollback()


@pytest.mark.parametrize("mode", ["xmin", "time"])
def test_a_change_is_read_as_the_row_that_it_made(
    database: Database, read: Read, mode: str
) -> None:
    database.run(TABLE)
    database.run("INSERT INTO ev (who) VALUES (1), (2)")
    reading = read(**MODES[mode])
    assert reading.rows("id", "who") == [(1, 1), (2, 2)]
    database.run("UPDATE ev SET who = 20, at = clock_timestamp() WHERE id = 2")
    assert reading.rows("id", "who") == [(2, 20)]


@pytest.mark.parametrize("mode", ["number", "xid8", "time"])
@pytest.mark.parametrize("limit", [AMPLE, Limit(100, 1 << 18, 4096)], ids=["ample", "small"])
def test_what_changes_while_its_snapshot_is_read_is_not_lost(
    database: Database, read: Read, mode: str, limit: Limit
) -> None:
    database.run(TABLE)
    database.run("ALTER TABLE ev ADD pad text DEFAULT repeat('x', 300)")
    database.run("INSERT INTO ev (who) SELECT 0 FROM generate_series(1, 3000)")
    database.run("VACUUM ANALYZE ev")
    given = {**MODES[mode], "lookback_rows": "10", "lookback_ms": "0"}
    reading = read(**given)
    reading.begin(tasks=3)
    (source,) = reading.sources
    first = source.plan(reading.offsets, Limit(600, 1 << 18, 4096))
    found = rows(take(source, first, reading.offsets), ["id", "who"])
    assert 0 < len(found) < 3000
    with database.session() as late:
        database.run("UPDATE ev SET who = 1 WHERE id % 5 = 0")
        late.execute("UPDATE ev SET who = 2 WHERE id = 4")
        database.run("UPDATE ev SET who = 3 WHERE id % 10 = 0")
        database.run("INSERT INTO ev (who) SELECT 4 FROM generate_series(1, 50)")
        found += [row for table in reading.take(limit) for row in rows(table, ["id", "who"])]
        database.run("UPDATE ev SET who = 5 WHERE id IN (20, 2990)")
        found += [row for table in reading.take(limit) for row in rows(table, ["id", "who"])]
        late.commit()
    found += [row for table in reading.take(limit) for row in rows(table, ["id", "who"])]
    database.run("INSERT INTO ev (who) VALUES (6)")
    found += [row for table in reading.take(limit) for row in rows(table, ["id", "who"])]
    assert {number for number, _ in found} == {n for (n,) in database.run("SELECT id FROM ev")}
    assert len(found) == len(set(found))
    later = {row for row in found if row[1] in {1, 3}}
    assert len({number for number, _ in later}) >= 600 - 2
    assert (3051, 6) in found


def test_tasks_share_a_snapshot_by_its_pages(database: Database, read: Read) -> None:
    database.run("CREATE TABLE big (id int, pad text) WITH (fillfactor = 10)")
    database.run("INSERT INTO big SELECT i, repeat('x', 400) FROM generate_series(1, 6000) i")
    database.run("CREATE TABLE small (id int)")
    database.run("INSERT INTO small VALUES (0)")
    database.run("ANALYZE")
    reading = read(mode="xmin")
    reading.begin(tasks=3)
    assert len(reading.split) == 3
    first = {
        task: source.plan(reading.offsets, Limit(500, 1 << 20, 4096))
        for task, source in enumerate(reading.sources)
    }
    assert all(0 < plan.rows < 5_000 for plan in first.values())
    # Rows that change while the snapshot goes on come once, after it.
    database.run("UPDATE big SET id = -id WHERE id % 1000 = 0")
    database.run("INSERT INTO big VALUES (7000, 'new')")
    wanted = [*range(-6000, 0, 1000), 0, *(n for n in range(1, 6001) if n % 1000), 7000]
    found = reading.rows("id", limit=Limit(500, 1 << 20, 4096))
    assert found == [(n,) for n in sorted(wanted)]
    again = reading.split
    reading.begin(tasks=3)
    assert reading.split == again
    reading.begin(tasks=2)
    assert reading.rows("id") == []


@pytest.mark.parametrize("mode", ["xmin", "log"])
def test_a_snapshot_is_a_line_of_the_log_as_it_begins_goes_on_and_ends(
    database: Database, read: Read, caplog: pytest.LogCaptureFixture, mode: str
) -> None:
    database.run("CREATE TABLE big (id int PRIMARY KEY, v text)")
    database.run("ALTER TABLE big ALTER v SET STORAGE PLAIN")
    database.run("INSERT INTO big SELECT i, repeat('x', 7000) FROM generate_series(1, 2500) i")
    database.run("ANALYZE big")
    with caplog.at_level(logging.INFO, chunks.__name__):
        reading = read(mode=mode)
        reading.begin()
        limit = Limit(1_500, 1 << 26, 4096)
        (source,) = reading.sources
        first = take(source, source.plan(reading.offsets, limit), reading.offsets)
        reading.begin()  # as after a restart
        assert first.num_rows + len(reading.rows("id")) == 2_500
        database.run("INSERT INTO big VALUES (0)")
        assert len(reading.rows("id")) == 1
        reading.begin()
        assert reading.rows("id") == []
    task = threading.current_thread().name
    assert [each.getMessage() for each in caplog.records] == [
        f"{task} reads the snapshot of public.big: 3 of 3 chunks",
        f"{task} reads the snapshot of public.big: 2 of 3 chunks",
        f"{task} has read the snapshot of public.big",
    ]


def test_what_commits_waits_until_the_snapshot_is_in_the_sink(
    database: Database, read: Read
) -> None:
    database.run("CREATE TABLE big (id int PRIMARY KEY, v int, pad text) WITH (fillfactor = 10)")
    database.run("INSERT INTO big SELECT i, 0, repeat('x', 400) FROM generate_series(1, 6000) i")
    database.run("ANALYZE")
    reading = read(mode="xmin")
    reading.begin(tasks=2)
    follower, late = reading.sources
    stale = late.plan(reading.offsets, AMPLE)
    assert 6000 in stale.ranges[0]["id"].to_pylist()
    database.run("UPDATE big SET v = 1 WHERE id = 6000")
    while (plan := follower.plan(reading.offsets, AMPLE)).ranges:
        take(follower, plan, reading.offsets)  # its own part, and nothing newer of the other's
        assert 6000 not in plan.ranges[0]["id"].to_pylist()
    told = "what commits to public.big waits until its snapshot is read"
    assert plan.remark == told
    reading.settled = dict(reading.offsets)
    take(late, stale, reading.offsets)
    while (plan := late.plan(reading.offsets, AMPLE)).ranges:
        take(late, plan, reading.offsets)
    assert follower.plan(reading.offsets, AMPLE).remark == told  # it counts, and is to be published
    reading.settled = None
    (newer,) = follower.plan(reading.offsets, AMPLE).ranges
    assert rows(newer, ["id", "v"]) == [(6000, 1)]


def test_a_table_is_followed_on_once_its_former_task_has_published(
    database: Database, read: Read
) -> None:
    database.run(TABLE)
    reading = read(**MODES["number"])
    assert reading.rows("who") == []
    database.run("INSERT INTO ev (who) VALUES (1)")
    reading.settled = dict(reading.offsets)
    assert reading.rows("who") == [(1,)]
    database.run("INSERT INTO ev (who) VALUES (2)")
    reading.begin()
    assert reading.rows("who") == []
    reading.settled = None
    assert reading.rows("who") == [(2,)]


def test_a_connector_that_is_made_anew_goes_on_where_its_offsets_say(
    database: Database, read: Read
) -> None:
    database.run("CREATE TABLE big (id int, pad text) WITH (fillfactor = 10)")
    database.run("INSERT INTO big SELECT i, repeat('x', 700) FROM generate_series(1, 3000) i")
    reading = read(mode="xmin")
    reading.begin()
    limit = Limit(10_000, 1 << 20, 4096)
    (source,) = reading.sources
    found = rows(take(source, source.plan(reading.offsets, limit), reading.offsets), ["id"])
    assert 0 < len(found) < 3000
    database.run("INSERT INTO big VALUES (3001, 'between')")
    reading.split = ()  # it was deleted, and created under its name again
    reading.begin(tasks=2)
    found += reading.rows("id", limit=limit)
    assert sorted(found) == [(n,) for n in range(1, 3002)]


def test_no_data_begins_with_what_commits_and_initial_only_ends_before_it(
    database: Database, read: Read
) -> None:
    database.run(TABLE)
    database.run("INSERT INTO ev (who) VALUES (1)")
    later = read(**MODES["number"], snapshot_mode="no_data")
    before = read(mode="xmin", snapshot_mode="initial_only")
    bulk = read(mode="bulk")
    for each in (later, before, bulk):
        each.begin()
    database.run("INSERT INTO ev (who) VALUES (2)")
    assert later.rows("who") == [(2,)]
    assert before.rows("who") == [(1,)]
    assert bulk.rows("who") == [(1,), (2,)]
    database.run("INSERT INTO ev (who) VALUES (3)")
    assert later.rows("who") == [(3,)]
    assert before.rows("who") == []
    assert bulk.rows("who") == []


def test_types_are_read_as_arrow_has_them(database: Database, read: Read) -> None:
    database.run("CREATE TYPE mood AS ENUM ('sad', 'glad')")
    database.run("CREATE DOMAIN price AS numeric(8,2)")
    database.run(
        """CREATE TABLE t (b bool, i2 int2, i4 int4, i8 int8, f4 float4, f8 float8, t text,
        vc varchar(9), n numeric, nd numeric(10,2), dom price, u uuid, j json, jb jsonb,
        tz timestamptz, ts timestamp, d date, ti time, by bytea, ai int[], au uuid[], an numeric[],
        m mood, inet inet, money money, oid oid, xid xid8, inf timestamp, infd date)"""
    )
    one = "00000000-0000-0000-0000-000000000001"
    now = dt.datetime(2026, 1, 2, 3, 4, 5, 678901)  # noqa: DTZ001
    database.run(
        """INSERT INTO t VALUES (true, 1, 2, 3, 0.5, 0.1, 't', 'vc', 1.5, 2.25, 3.5, %s, '{"a": 1}',
        '{"b":2}', %s, %s, %s, %s, '\\x00ff', '{1,null}', %s, '{1.5}', 'glad', '10.0.0.1', '12.34',
        7, '8', 'infinity', '-infinity')""",
        *(one, now.replace(tzinfo=UTC), now, now.date(), now.time(), [one]),
    )
    (table,) = read(mode="bulk", topic_prefix="shop.").take()
    plain = pa.timestamp("us")
    assert [(each.name, each.type) for each in table.schema] == [
        *(("b", pa.bool_()), ("i2", pa.int16()), ("i4", pa.int32()), ("i8", pa.int64())),
        *(("f4", pa.float32()), ("f8", pa.float64()), ("t", pa.string()), ("vc", pa.string())),
        *(("n", pa.decimal128(38, 18)), ("nd", pa.decimal128(10, 2))),
        *(("dom", pa.decimal128(8, 2)), ("u", pa.string()), ("j", pa.string())),
        *(("jb", pa.string()), ("tz", pa.timestamp("us", "UTC")), ("ts", plain)),
        *(("d", pa.date32()), ("ti", pa.time64("us")), ("by", pa.binary())),
        *(("ai", pa.list_(pa.int32())), ("au", pa.list_(pa.string()))),
        *(("an", pa.list_(pa.decimal128(38, 18))), ("m", pa.string()), ("inet", pa.string())),
        *(("money", pa.decimal128(19, 2)), ("oid", pa.int64()), ("xid", pa.int64())),
        *(("inf", plain), ("infd", pa.date32()), ("_topic", pa.string())),
    ]
    far = dt.datetime(9999, 12, 31, 23, 59, 59, 999999)  # noqa: DTZ001
    (row,) = (tuple(each.values()) for each in table.to_pylist())
    assert row == (
        *(True, 1, 2, 3, 0.5, 0.1, "t", "vc", Decimal("1.5"), Decimal("2.25"), Decimal("3.5")),
        *(one, '{"a": 1}', '{"b": 2}', now.replace(tzinfo=UTC), now, now.date(), now.time()),
        *(b"\x00\xff", [1, None], [one], [Decimal("1.5")], "glad", "10.0.0.1/32"),
        *(Decimal("12.34"), 7, 8, far, dt.date(1, 1, 1), "shop.public.t"),
    )


@pytest.mark.parametrize(
    ("mapping", "types"),
    [
        ("none", [pa.decimal128(9, 0), pa.decimal128(12, 2), pa.decimal128(38, 18)]),
        ("precision_only", [pa.int32(), pa.decimal128(12, 2), pa.decimal128(38, 18)]),
        ("best_fit", [pa.int32(), pa.float64(), pa.decimal128(38, 18)]),
        ("best_fit_eager_double", [pa.int32(), pa.float64(), pa.float64()]),
    ],
)
def test_numbers_are_mapped_as_asked(
    database: Database, read: Read, mapping: str, types: list[Any]
) -> None:
    database.run("CREATE TABLE t (a numeric(9,0), b numeric(12,2), c numeric)")
    database.run("INSERT INTO t VALUES (123456789, 1.25, 2.5)")
    (table,) = read(mode="bulk", numeric_mapping=mapping).take()
    assert [each.type for each in table.schema][:3] == types
    assert [
        float(value) for value in table.to_pylist()[0].values() if not isinstance(value, str)
    ] == [*(123456789, 1.25, 2.5)]


@pytest.mark.parametrize("mode", ["bulk", "timestamp"])
def test_times_without_a_zone_are_of_the_zone_that_is_told(
    database: Database, read: Read, mode: str
) -> None:
    database.run("CREATE TABLE t (at timestamp NOT NULL, others timestamp[], moment timestamptz)")
    winter, summer = "2025-01-15 12:00", "2025-07-15 12:00"
    database.run(
        f"INSERT INTO t VALUES ('{winter}', '{{{summer}}}', '{winter}+00'),"
        f" ('{summer}', NULL, 'infinity')"
    )
    zone = "America/New_York"
    table = pa.concat_tables(read(mode=mode, timestamp_column_name="at", db_timezone=zone).take())
    moments = pa.timestamp("us", "UTC")
    assert [each.type for each in table.schema][:3] == [moments, pa.list_(moments), moments]
    utc = [dt.datetime(2025, month, 15, hour, tzinfo=dt.UTC) for month, hour in ((1, 17), (7, 16))]
    assert sorted(table["at"].to_pylist()) == utc


@pytest.mark.parametrize("mode", ["bulk", "log"])
@pytest.mark.parametrize("kind", ["timestamp", "timestamp[]"])
def test_a_time_that_the_told_zone_skips_is_told_and_one_that_it_has_twice_is_the_later(
    database: Database, read: Read, mode: str, kind: str
) -> None:
    database.run(f"CREATE TABLE t (id int PRIMARY KEY, at {kind})")
    shown = "'{%s}'" if kind.endswith("[]") else "'%s'"
    twice, none = shown % "2025-11-02 01:30", shown % "infinity"
    database.run(f"INSERT INTO t VALUES (1, {twice}), (2, NULL), (3, {none})")
    reading = read(mode=mode, db_timezone="America/New_York")
    rows = [row for table in reading.take() for row in table.to_pylist()]
    first = next(row["at"] for row in rows if row["id"] == 1)
    later = dt.datetime(2025, 11, 2, 6, 30, tzinfo=dt.UTC)
    assert first == ([later] if kind.endswith("[]") else later)
    database.run(f"INSERT INTO t VALUES (4, {shown % '2026-03-08 02:30'})")
    if mode == "bulk":
        reading = read(mode=mode, db_timezone="America/New_York")
    told = r"^table public.t: .*2026-03-08 02:30:00.* in column at of the row with id=4, which the"
    with pytest.raises(BadInput, match=told):
        reading.take()


def test_tables_are_chosen_by_patterns_and_partitions_go_by_their_root(
    database: Database, read: Read
) -> None:
    database.run("CREATE SCHEMA lake")
    database.run("CREATE TABLE lake.orders (id int) PARTITION BY RANGE (id)")
    database.run("CREATE TABLE lake.orders_1 PARTITION OF lake.orders FOR VALUES FROM (0) TO (10)")
    database.run("CREATE TABLE lake.orders_2 PARTITION OF lake.orders FOR VALUES FROM (10) TO (20)")
    database.run("CREATE TABLE public.orders (id int)")
    database.run("CREATE TABLE lake.secret (id int)")
    database.run("CREATE TABLE lake.fairlead_published (id int)")
    database.run("INSERT INTO lake.orders VALUES (1), (11)")
    for table in ("public.orders", "lake.secret", "lake.fairlead_published"):
        with database.server.connected(database.name) as connection:
            connection.execute(f"INSERT INTO {table} VALUES (99)")
    reading = read(mode="xmin", table_include_list=r"lake\..*", table_exclude_list=r".*\.secret")
    assert reading.rows("id", "_topic") == [(1, "lake.orders"), (11, "lake.orders")]


def test_a_whitelist_names_tables_bare_or_with_their_schema(database: Database, read: Read) -> None:
    database.run("CREATE SCHEMA lake")
    for table in ("lake.a", "public.a", "lake.b", "public.c"):
        database.run(f"CREATE TABLE {table} AS SELECT 1 AS id")
    reading = read(mode="xmin", table_whitelist=r"a,lake\.b")
    assert reading.rows("_topic") == [("lake.a",), ("lake.b",), ("public.a",)]


def test_a_column_that_may_be_null_is_followed_only_where_that_is_said_to_be_fine(
    database: Database, read: Read
) -> None:
    database.run("CREATE TABLE ev (id bigint, who int)")
    database.run("INSERT INTO ev VALUES (1, 1), (NULL, 2)")
    mode = {"mode": "incrementing", "incrementing_column_name": "id"}
    with pytest.raises(ConfigInvalid, match=r"id of public\.ev may be null, .* make it NOT NULL"):
        read(**mode).take()
    assert read(**mode, validate_non_null="false").rows("who") == [(1,), (2,)]


def test_a_table_that_changes_is_read_on_as_it_is(database: Database, read: Read) -> None:
    database.run(TABLE)
    database.run("INSERT INTO ev (who) VALUES (1)")
    reading = read(**MODES["number"])
    assert reading.rows("who") == [(1,)]
    database.run("ALTER TABLE ev ADD COLUMN more text DEFAULT 'm'")
    database.run("INSERT INTO ev (who) VALUES (2)")
    assert reading.rows("who", "more") == [(2, "m")]
    database.run("ALTER TABLE ev DROP COLUMN more, ALTER COLUMN who TYPE text")
    database.run("INSERT INTO ev (who) VALUES ('three')")
    # A change of a type writes all rows anew; those before the cursor are looked at as well.
    (table,) = reading.take()
    assert "more" not in table.column_names
    assert table["who"].to_pylist()[-1] == "three"


def test_a_table_that_is_rewritten_while_it_is_half_read_is_told(
    database: Database, read: Read
) -> None:
    database.run("CREATE TABLE ev (n int)")
    reading = read(mode="xmin")
    assert reading.rows("n") == []
    database.run("INSERT INTO ev SELECT generate_series(1, 100)")
    (source,) = reading.sources
    take(source, source.plan(reading.offsets, SMALL), reading.offsets)
    database.run("VACUUM FULL ev")
    with pytest.raises(BadInput, match=r"public\.ev was rewritten .* while many rows of it"):
        source.plan(reading.offsets, SMALL)


REPLACE: dict[str, LiteralString] = {
    "made anew": f"DROP TABLE ev; {TABLE}",
    "renamed": f"ALTER TABLE ev RENAME TO old; {TABLE.replace('ev', 'fresh')};"
    " ALTER TABLE fresh RENAME TO ev",
}


@pytest.mark.parametrize("how", REPLACE)
@pytest.mark.parametrize("mode", [*MODES, "bulk"])
def test_a_table_that_takes_the_place_of_another_is_told_and_may_be_read_from_its_beginning(
    database: Database, read: Read, mode: str, how: str
) -> None:
    database.run(TABLE)
    database.run("INSERT INTO ev (who) SELECT i FROM generate_series(1, 9) i")
    reading = read(**MODES.get(mode, {"mode": mode}), table_include_list=r"public\.ev")
    reading.begin()
    if mode == "bulk":
        assert len(reading.rows("who")) == 9
    else:
        database.run("INSERT INTO ev (who) VALUES (10)")
        assert len(reading.rows("who")) == 10
    database.run(REPLACE[how])
    database.run("INSERT INTO ev (who) VALUES (1), (2)")
    if mode == "bulk":  # its task is done, and looks again when it is started anew
        reading.begin()
    for _ in range(2):
        with pytest.raises(BadInput, match=r"public\.ev was dropped and made anew, or another"):
            reading.take()
        reading.begin()
    reading.seek(SeekEnd.EARLIEST)
    assert reading.rows("who") == [(1,), (2,)]


def test_an_offset_that_has_no_oid_goes_on(database: Database, read: Read) -> None:
    database.run(TABLE)
    database.run("INSERT INTO ev (who) VALUES (1)")
    reading = read(mode="xmin")
    reading.begin()
    database.run("INSERT INTO ev (who) VALUES (2)")
    assert reading.rows("who") == [(1,), (2,)]
    for key, each in reading.offsets.items():
        reading.offsets[key] = {name: value for name, value in each.items() if name != "oid"}
    reading.split = [
        {name: str(TaskShare((TaskShare.parse(value).tables[0]._replace(oid=0),)))}
        for (name, value) in reading.split[0].items()
    ]
    reading.begin()
    database.run("INSERT INTO ev (who) VALUES (3)")
    assert reading.rows("who") == [(3,)]


def test_what_is_written_in_a_subtransaction_or_by_two_phases_is_read(
    database: Database, read: Read
) -> None:
    database.run(TABLE)
    reading = read(mode="xmin")
    reading.begin()
    with psycopg.connect(database.url, password=PASSWORD) as session:
        xid = session.xid(1, "one", "two")
        session.tpc_begin(xid)
        session.execute("INSERT INTO ev (who) VALUES (1)")
        session.tpc_prepare()
        assert reading.rows("who") == []
        session.tpc_commit()
    assert reading.rows("who") == [(1,)]


def rewritten(database: Database, reading: Reading) -> None:
    """Plan while the table is locked by a change of a type, which commits while the plan waits."""
    told: list[Exception] = []

    def plan() -> None:
        try:
            reading.sources[0].plan(reading.offsets, AMPLE)
        except SourceAway as away:
            told.append(away)

    with database.session() as session:
        session.execute("ALTER TABLE ev ALTER COLUMN who TYPE bigint")
        planning = threading.Thread(target=plan)
        planning.start()
        wait_until(lambda: database.run(WAITING) == [(1,)])
    planning.join()
    assert [str(each).rpartition(": ")[2] for each in told] == ["public.ev was rewritten just now"]


WAITING: LiteralString = "SELECT count(*)::int FROM pg_locks WHERE NOT granted"


@pytest.mark.parametrize("mode", ["bulk", "xid8"])
def test_a_table_that_is_rewritten_while_a_look_waits_for_it_does_not_look_empty(
    database: Database, read: Read, mode: str
) -> None:
    database.run(TABLE)
    database.run("INSERT INTO ev (who) VALUES (1)")
    reading = read(**MODES.get(mode, {"mode": mode}))
    reading.begin()
    if mode == "xid8":
        follow(database, reading)
    rewritten(database, reading)
    assert reading.rows("who") == [(1,) if mode == "bulk" else (3,)]


def follow(database: Database, reading: Reading) -> None:
    """Read a table of one row until its snapshot is caught up with, and add a row."""
    assert reading.rows("who") == [(1,)]
    database.run("INSERT INTO ev (who) VALUES (2)")
    assert reading.rows("who") == [(2,)]
    database.run("INSERT INTO ev (who) VALUES (3)")


@pytest.mark.parametrize("mode", ["bulk", "xid8"])
def test_a_table_that_is_rewritten_just_before_its_rows_are_read_does_not_look_empty(
    database: Database, read: Read, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.run(TABLE)
    database.run("INSERT INTO ev (who) VALUES (1)")
    reading = read(**MODES.get(mode, {"mode": mode}))
    reading.begin()
    if mode == "xid8":
        follow(database, reading)
    inner = reading_module.RowReader.read

    def late(*given: Any) -> Any:
        monkeypatch.setattr(reading_module.RowReader, "read", inner)
        database.run("ALTER TABLE ev ALTER COLUMN who TYPE bigint")
        return inner(*given)

    monkeypatch.setattr(reading_module.RowReader, "read", late)
    with pytest.raises(SourceAway, match=r"public\.ev was rewritten while it was read"):
        reading.take()
    assert reading.rows("who") == [(1,) if mode == "bulk" else (3,)]


def test_a_lock_of_a_table_that_is_not_read_keeps_nobody_waiting(
    database: Database, read: Read
) -> None:
    database.run(TABLE)
    database.run("CREATE TABLE other (n int)")
    database.run("INSERT INTO ev (who) VALUES (1)")
    with database.session() as session:
        session.execute("LOCK TABLE other IN ACCESS EXCLUSIVE MODE")
        reading = read(mode="xmin", table_include_list=r"public\.ev")
        assert reading.rows("who") == [(1,)]


def test_large_rows_of_a_table_that_the_server_has_not_counted_come_in_small_batches(
    database: Database, read: Read
) -> None:
    database.run("CREATE TABLE ev (big text)")
    database.run("ALTER TABLE ev ALTER big SET STORAGE EXTERNAL")
    reading = read(mode="xmin")
    assert reading.rows("big") == []
    database.run("INSERT INTO ev SELECT repeat('x', 100000) FROM generate_series(1, 300)")
    tables = reading.take(Limit(1_000_000, 1 << 20, 4096))
    assert max(each.num_rows for each in tables) <= 100
    assert sum(each.num_rows for each in tables) == 300


def test_a_number_of_more_digits_than_a_decimal_has_is_told_and_not_cut(
    database: Database, read: Read
) -> None:
    database.run("CREATE TABLE ev (n numeric, more numeric[])")
    most = Decimal("-99999999999999999999.5")
    database.run("INSERT INTO ev VALUES (%s, ARRAY[%s])", most, most)
    assert read(mode="bulk").rows("n", "more") == [(most, [most])]
    for column in ("n", "more"):
        database.run("TRUNCATE ev")
        database.run("INSERT INTO ev VALUES (1e20, ARRAY[1])")
        if column == "more":
            database.run("UPDATE ev SET n = 1, more = ARRAY[1e20]")
        with pytest.raises(BadInput, match=rf"column {column}: .* more than 20 digits before the"):
            read(mode="bulk").take()
    database.run("UPDATE ev SET n = 1e20, more = NULL")
    assert read(mode="bulk", numeric_mapping="best_fit_eager_double").rows("n") == [(1e20,)]


@pytest.mark.parametrize("kind", ["timestamp", "timestamptz[]"])
def test_a_time_after_the_last_of_64_bits_is_told_and_not_another_one(
    database: Database, read: Read, kind: LiteralString
) -> None:
    database.run(f"CREATE TABLE ev (n int, at {kind})")
    values = ("294246-12-31", "-infinity", "4713-01-01 BC", "infinity")
    for each in values:
        database.run(
            f"INSERT INTO ev VALUES (1, '{{{each}}}')"
            if "[" in kind
            else f"INSERT INTO ev VALUES (1, '{each}')"
        )
    assert read(mode="bulk").rows("n") == [(1,)] * 4
    database.run("UPDATE ev SET at = replace(at::text, '294246', '294247')::" + kind)
    with pytest.raises(BadInput, match="column at: a time is after the year 294246, the last"):
        read(mode="bulk").take()


def test_arrays_begin_anywhere_and_are_not_flattened(database: Database, read: Read) -> None:
    database.run("CREATE TABLE ev (n int[], at timestamp[], t text[][])")
    database.run("INSERT INTO ev VALUES ('[2:3]={1,2}', '{infinity,NULL}', '{{a,b},{c,d}}')")
    last = dt.datetime.fromisoformat("9999-12-31 23:59:59.999999")
    found = [([1, 2], [last, None], "{{a,b},{c,d}}")]
    assert read(mode="bulk").rows("n", "at", "t") == found
    database.run("UPDATE ev SET n = '{{1,2},{3,4}}'")
    with pytest.raises(
        BadInput, match=r"^table public.*2 dimensions in column n.*, which is read as a list: decl"
    ):
        read(mode="bulk").take()


def test_a_table_without_columns_is_passed_over(database: Database, read: Read) -> None:
    database.run(TABLE)
    database.run("CREATE TABLE nothing ()")
    database.run("CREATE TABLE emptied (n int)")
    database.run("ALTER TABLE emptied DROP COLUMN n")
    database.run("INSERT INTO ev (who) VALUES (1)")
    assert read(mode="xmin").rows("who") == [(1,)]
