# pyright: basic
"""What commits to tables is read from the server's log, after a snapshot, each change once."""

import datetime as dt
import json
import random
import re
import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from fairlead.events.commits import identity
from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.spi.context import ExternalAccess
from fairlead.runtime.pipeline.spi.errors import (
    BadInput,
    NotReady,
    OffsetRefused,
    SourceAway,
)
from fairlead.runtime.pipeline.spi.offsets import SeekEnd
from fairlead.runtime.pipeline.spi.source import Limit
from fairlead.runtime.pipeline.stores.postgres.source.log import source as log_source
from fairlead.runtime.pipeline.stores.postgres.tables import reading as reading_module
from fairlead.runtime.pipeline.stores.postgres.tables.snapshots import whole_xid
from fairlead_tests.connectors.pipes import take
from fairlead_tests.postgres_pipes import AMPLE, Reading, rows, source_config
from fairlead_tests.postgres_server import PASSWORD, Database, started, wait_until

Read = Callable[..., Reading]
SMALL = Limit(7, 1 << 20, 4096)
TABLE = "CREATE TABLE t (id int PRIMARY KEY, v text)"
SLOT = "SELECT slot_name::text FROM pg_replication_slots WHERE database = current_database()"


@pytest.fixture
def read(read_log: Read) -> Read:
    """Return what reads the log by a config."""
    return read_log


def told(reading: Reading, *names: str, limit: Limit = AMPLE) -> list[Any]:
    """Read, and return the rows of the operation and some columns, in their order."""
    return [row for table in reading.take(limit) for row in rows(table, ["__op", *names])]


@pytest.mark.parametrize("limit", [AMPLE, SMALL], ids=["ample", "small"])
def test_changes_follow_what_is_there(database: Database, read: Read, limit: Limit) -> None:
    database.run(TABLE)
    database.run("INSERT INTO t SELECT i, 'v' || i FROM generate_series(1, 3) i")
    reading = read()
    reading.begin()
    database.run("INSERT INTO t VALUES (4, NULL)")
    assert told(reading, "id", "v", limit=limit) == [
        *(("r", 1, "v1"), ("r", 2, "v2"), ("r", 3, "v3"), ("c", 4, None)),
    ]
    database.run("UPDATE t SET v = 'new' WHERE id = 1")
    database.run("UPDATE t SET id = 20 WHERE id = 2")
    database.run("DELETE FROM t WHERE id = 3")
    database.run("TRUNCATE t")
    assert told(reading, "id", "v", "__deleted", limit=limit) == [
        ("u", 1, "new", False),
        *(("d", 2, None, True), ("c", 20, "v2", False)),
        ("d", 3, None, True),
        ("t", None, None, False),
    ]
    reading.begin()
    assert told(reading, "id") == []


def test_each_row_comes_from_the_snapshot_or_from_the_log(database: Database, read: Read) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY, v int, pad text DEFAULT repeat('x', 900))")
    database.run("INSERT INTO t (id, v) SELECT i, 0 FROM generate_series(1, 8000) i")
    database.run("ANALYZE t")
    stop = threading.Event()
    writers = [threading.Thread(target=write, args=(database, who, stop)) for who in range(4)]
    for each in writers:
        each.start()
    reading = read()
    while not reading.split:
        try:
            reading.begin(tasks=3)
        except NotReady:
            stop.wait(0.01)
    first = [row for each in reading.take(Limit(400, 1 << 19, 9)) for row in of_t(each)]
    stop.set()
    for each in writers:
        each.join()
    found = [*first, *(row for each in reading.take(Limit(50, 1 << 20, 9)) for row in of_t(each))]
    state: dict[int, int] = {}
    for operation, number, value in found:
        if operation in {"r", "c"}:  # no row comes from both sides
            assert number not in state, (operation, number)
        if operation == "d":
            state.pop(number, None)
        else:
            state[number] = value
    assert {each[0] for each in found} == {"r", "c", "u", "d"}
    assert state == dict(database.run("SELECT id, v FROM t"))


def test_a_transaction_is_known_by_the_low_half_of_its_number() -> None:
    era = 1 << 32
    assert whole_xid(7, 5) == 7  # it commits after the look
    assert whole_xid(era - 1, era + 3) == era - 1
    assert whole_xid(2, era - 1) == era + 2
    assert whole_xid(9, 5 * era + 9) == 5 * era + 9


def of_t(table: pa.Table) -> list[Any]:
    return rows(table, ["__op", "id", "v"])


def write(database: Database, who: int, stop: threading.Event) -> None:
    """Change a quarter of the rows, in subtransactions too; some transactions come to nothing."""
    dice, made = random.Random(who), 8000 + who
    quarter = range(2000 * who + 1, 2000 * who + 2001)
    gone: set[int] = set()
    with database.session() as session:
        while not stop.is_set():
            lost: set[int] = set()
            for _ in range(dice.choice((1, 3))):
                with session.transaction():
                    number, kind = dice.choice(quarter), dice.random()
                    if kind < 0.4:
                        made += 4
                        session.execute("INSERT INTO t (id, v) VALUES (%s, 1)", (made,))
                    elif kind < 0.8:
                        session.execute("UPDATE t SET v = v + 1 WHERE id = %s", (number,))
                    elif number not in gone | lost:
                        session.execute("DELETE FROM t WHERE id = %s", (number,))
                        lost.add(number)
            stop.wait(dice.choice((0, 0.001, 0.02, 0.1)))
            if dice.random() < 0.9:
                session.commit()
                gone |= lost
            else:
                session.rollback()


def test_what_counts_is_not_read_again_although_the_slot_was_not_advanced(
    database: Database, read: Read
) -> None:
    database.run(TABLE)
    database.run("CREATE TABLE u (id int PRIMARY KEY)")
    reading = read()
    assert told(reading, "id") == []
    database.run("INSERT INTO t SELECT i, 'x' FROM generate_series(1, 30) i")
    database.run("INSERT INTO u SELECT generate_series(1, 9)")
    found: dict[str, list[int]] = {"public.t": [], "public.u": []}
    while plan := _planned(reading):
        (table,) = plan.ranges
        found[table["_topic"][0].as_py()] += table["id"].to_pylist()
        for each in plan.advances:  # it counts, and the worker dies before it says so
            assert reading.offsets.get(identity(each.partition)) == each.start
            reading.offsets[identity(each.partition)] = each.end or {}
        reading.begin()
    assert found == {"public.t": [*range(1, 31)], "public.u": [*range(1, 10)]}


def test_changes_of_a_plan_that_was_not_committed_come_again_in_smaller_batches(
    database: Database, read: Read
) -> None:
    database.run(TABLE)
    database.run("CREATE TABLE u (id int PRIMARY KEY)")
    reading = read()
    assert told(reading, "id") == []
    with database.session() as session:
        session.execute("INSERT INTO t SELECT i, 'x' FROM generate_series(1, 30) i")
        session.execute("INSERT INTO u SELECT generate_series(1, 9)")
        session.execute("INSERT INTO t SELECT i, 'x' FROM generate_series(31, 50) i")
    found: dict[str, list[int]] = {"public.t": [], "public.u": []}
    (source,) = reading.sources
    while source.plan(reading.offsets, Limit(35, 1 << 20, 9)).ranges:
        table = take(source, source.plan(reading.offsets, SMALL), reading.offsets)
        found[table["_topic"][0].as_py()] += table["id"].to_pylist()
    assert found == {"public.t": [*range(1, 51)], "public.u": [*range(1, 10)]}


def test_a_task_may_read_on_while_the_slot_stays_where_the_log_is(
    database: Database, read: Read
) -> None:
    database.run(TABLE)
    reading = read()
    assert told(reading, "id") == []
    reading.settled = dict(reading.offsets)
    positions, found = dict(reading.offsets), list[int]()
    (source,) = reading.sources
    for first in (1, 11, 21):
        database.run("INSERT INTO t SELECT %s + i, 'x' FROM generate_series(0, 9) i", first)
        while (plan := source.plan(positions, SMALL)).ranges:
            found += plan.ranges[0]["id"].to_pylist()
            positions |= {identity(each.partition): each.end or {} for each in plan.advances}
    assert found == [*range(1, 31)]
    reading.begin()
    assert [each for _, each in told(reading, "id")] == found, "as none of it was logged"


def _planned(reading: Reading) -> Any:
    (source,) = reading.sources
    plan = source.plan(reading.offsets, SMALL)
    return plan if plan.ranges else None


def test_a_large_transaction_is_read_in_parts_by_one_peek(database: Database, read: Read) -> None:
    database.run(TABLE)
    reading = read()
    assert told(reading, "id") == []
    database.run("INSERT INTO t SELECT i, 'x' FROM generate_series(1, 9000) i")
    database.run("INSERT INTO t VALUES (9001, 'y')")
    (source,) = reading.sources
    tables = []
    while (plan := source.plan(reading.offsets, Limit(1000, 1 << 20, 9))).ranges:
        tables.append(take(source, plan, reading.offsets))
        if len(tables) == 3:
            ended = database.run(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                " WHERE application_name LIKE 'fairlead log%'"
            )
            assert ended == [(True,)]
            with pytest.raises(SourceAway):
                source.plan(reading.offsets, AMPLE)
            reading.begin()
            (source,) = reading.sources
    assert max(each.num_rows for each in tables) == 1000
    assert [n for each in tables for n in each["id"].to_pylist()] == [*range(1, 9002)]
    assert len({n for each in tables for n in each["__lsn"].to_pylist()}) == 2
    assert tables[-1]["__seq"].to_pylist()[-1] == 1


def test_values_come_from_the_log_as_from_the_table(database: Database, read: Read) -> None:
    database.run("CREATE TYPE mood AS ENUM ('sad', 'glad')")
    database.run("CREATE DOMAIN price AS numeric(8,2)")
    database.run(
        """CREATE TABLE t (id int PRIMARY KEY, b bool, i8 int8, f8 float8, n numeric, p price,
        c char(4), u uuid, jb jsonb, tz timestamptz, ts timestamp, d date, ti time, by bytea,
        ai int[], at text[], m mood, money money, inf timestamp, iv interval, nothing text,
        made int GENERATED ALWAYS AS (id * 2) STORED)"""
    )
    values = (
        "true, 3, 0.1, 1.5, 2.25, 'ab', '00000000-0000-0000-0000-000000000001', '{\"a\": 1}',"
        " '2026-01-02 03:04:05.678901+02', '2026-01-02 03:04:05', '2026-01-02', '03:04:05',"
        " '\\x00ff', '{1,null}', '{\"a,b\",null,\"\"}', 'glad', '12.34', 'infinity', '1 day', NULL"
    )
    with database.server.connected(database.name) as session:
        session.execute(f"INSERT INTO t VALUES (1, {values})".encode())
        reading = read()
        (there,) = reading.take()
        session.execute(f"INSERT INTO t VALUES (2, {values})".encode())
        (logged,) = reading.take()
    assert logged.schema == there.schema
    told_of = {"id", "__op", "__lsn", "__seq", "__ts_ms"}
    first, second = there.to_pylist()[0], logged.to_pylist()[0]
    assert {k: v for k, v in first.items() if k not in told_of} == {
        k: v for k, v in second.items() if k not in told_of
    }
    assert second["at"] == ["a,b", None, ""]
    assert second["tz"] == dt.datetime(2026, 1, 2, 1, 4, 5, 678901, tzinfo=dt.UTC)
    assert "made" not in second


def test_times_of_the_log_are_of_the_zone_that_is_told(database: Database, read: Read) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY, at timestamp)")
    database.run("INSERT INTO t VALUES (1, '2025-07-15 12:00')")
    reading = read(db_timezone="Asia/Tokyo")
    reading.begin()
    database.run("INSERT INTO t VALUES (2, '2025-07-15 12:00')")
    moment = dt.datetime(2025, 7, 15, 3, tzinfo=dt.UTC)
    assert told(reading, "id", "at") == [("r", 1, moment), ("c", 2, moment)]


@pytest.mark.parametrize("identity_is", ["DEFAULT", "FULL"])
def test_large_values_that_did_not_change_are_there_all_the_same(
    database: Database, read: Read, identity_is: str
) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY, n int, big text NOT NULL)")
    database.run("ALTER TABLE t ALTER big SET STORAGE EXTERNAL")
    with database.server.connected(database.name) as session:
        session.execute(f"ALTER TABLE t REPLICA IDENTITY {identity_is}".encode())
    reading = read()
    assert told(reading, "id") == []
    database.run("INSERT INTO t SELECT i, 0, repeat(i::text, 9000) FROM generate_series(1, 3) i")
    database.run("UPDATE t SET n = 1 WHERE id = 1")
    found = told(reading, "id", "n", "big")
    assert found[3] == ("u", 1, 1, "1" * 9000)
    database.run("UPDATE t SET n = 2 WHERE id < 3")
    database.run("UPDATE t SET id = 30 WHERE id = 3")
    database.run("DELETE FROM t WHERE id = 2")
    found = told(reading, "id", "n", "big")
    gone = ("u", 2, 2, "2" * 9000)
    old = "3" * 9000 if identity_is == "FULL" else None
    wanted = [("u", 1, 2, "1" * 9000), gone, ("d", 3, 0 if old else None, old)]
    wanted += [("c", 30, 0, "3" * 9000), ("d", 2, 2 if old else None, gone[3] if old else None)]
    if identity_is == "DEFAULT":  # nobody knows what the row had that is deleted since
        wanted.remove(gone)
        plan = reading.sources[0].plan(reading.offsets, AMPLE)
        assert "1 updates were left out of rows that are deleted since" in plan.remark
    assert found == wanted


def test_a_table_may_be_altered_and_others_may_come(database: Database, read: Read) -> None:
    database.run(TABLE)
    reading = read(publication_autocreate_mode="all_tables", table_exclude_list=r".*\.secret")
    assert told(reading, "id") == []
    database.run("INSERT INTO t VALUES (1, 'one')")
    database.run("ALTER TABLE t ADD more int, DROP v")
    database.run("INSERT INTO t VALUES (2, 22)")
    database.run("CREATE TABLE secret (id int PRIMARY KEY)")
    database.run("INSERT INTO secret VALUES (7)")
    first, second = reading.take()
    assert rows(first, ["id", "v"]) == [(1, "one")]
    assert rows(second, ["id", "more"]) == [(2, 22)]
    database.run("CREATE TABLE later (id int PRIMARY KEY)")
    database.run("INSERT INTO later VALUES (1)")
    database.run("INSERT INTO t VALUES (3, 33)")
    (source,) = reading.sources
    plan = source.plan(reading.offsets, AMPLE)
    assert "waits until public.later, which is new, is taken up" in plan.remark
    before = reading.split
    reading.begin(tasks=2)  # the connector looks for new tables
    assert reading.split != before
    database.run("INSERT INTO later VALUES (2)")
    assert sorted(told(reading, "id", "_topic")) == [
        *(("c", 2, "public.later"), ("c", 3, "public.t"), ("r", 1, "public.later")),
    ]
    before = reading.split
    reading.begin(tasks=2)
    assert reading.split == before


def test_a_snapshot_begins_when_older_transactions_have_ended(
    database: Database, read: Read
) -> None:
    database.run(TABLE)
    reading = read()
    reading.begin()
    database.run("CREATE TABLE later (id int PRIMARY KEY)")
    with psycopg.connect(database.url, password=PASSWORD) as late:
        late.execute("INSERT INTO later VALUES (1)")
        with pytest.raises(NotReady, match=r"transaction \d+ is open .* since before the log"):
            reading.begin()
        late.commit()
    reading.begin()
    assert told(reading, "id") == [("r", 1)]


def test_the_log_waits_for_the_snapshot_of_all_tasks(database: Database, read: Read) -> None:
    database.run("CREATE TABLE big (id int PRIMARY KEY, pad text) WITH (fillfactor = 10)")
    database.run("INSERT INTO big SELECT i, repeat('x', 700) FROM generate_series(1, 3000) i")
    database.run("ANALYZE")
    reading = read()
    reading.begin(tasks=2)
    database.run("DELETE FROM big WHERE id = 3000")
    first, _ = reading.sources
    while (plan := first.plan(reading.offsets, Limit(500, 1 << 20, 9))).ranges:
        take(first, plan, reading.offsets)
    assert plan.remark == "the log waits until the snapshot of public.big is read"
    reading.settled = dict(reading.offsets)
    assert {row[0] for row in told(reading, "id")} == {"r"}  # read, and not yet in the sink
    reading.settled = None
    assert told(reading, "id")[-1] == ("d", 3000)


def test_the_lag_of_a_connector_that_does_not_run_grows_with_the_log(
    database: Database, read: Read
) -> None:
    database.run(TABLE)
    database.run("INSERT INTO t VALUES (0, 'none')")
    reading = read()
    assert reading.lag() is None, "nothing is read"
    assert told(reading, "id") == [("r", 0)]
    database.run("INSERT INTO t VALUES (1, 'one')")
    assert told(reading, "id") == [("c", 1)]
    before = reading.lag()
    database.run("INSERT INTO t SELECT n, 'more' FROM generate_series(2, 1000) n")
    after = reading.lag()
    assert before is not None
    assert after is not None
    assert (after.ranges, after.bytes > before.bytes + 50_000) == (1, True)
    assert Reading.of(database, mode="xmin").lag() is None, "tables are not counted"


def test_the_log_is_read_on_from_either_end(database: Database, read: Read) -> None:
    database.run(TABLE)
    database.run("INSERT INTO t VALUES (1, 'one')")
    reading = read()
    assert told(reading, "id") == [("r", 1)]
    database.run("INSERT INTO t VALUES (2, 'two')")
    assert told(reading, "id") == [("c", 2)]
    reading.seek(SeekEnd.EARLIEST)
    assert told(reading, "id") == [("r", 1), ("r", 2)]
    database.run("INSERT INTO t VALUES (3, 'three')")
    reading.seek(SeekEnd.LATEST)
    database.run("INSERT INTO t VALUES (4, 'four')")
    assert told(reading, "id") == [("c", 4)]
    with pytest.raises(OffsetRefused, match="from an end of it, not from a time"):
        reading.seek(dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
    later = read(snapshot_mode="no_data", slot_name="another", publication_name="Another one")
    later.begin()
    database.run("INSERT INTO t VALUES (5, 'five')")
    assert told(later, "id") == [("c", 5)]


def test_a_slot_that_is_gone_or_was_moved_on_is_told_and_may_be_begun_anew(
    database: Database, read: Read
) -> None:
    database.run(TABLE)
    reading = read()
    assert told(reading, "id") == []
    database.run("INSERT INTO t VALUES (1, 'one')")
    ((slot,),) = database.run(SLOT)
    end = "pg_replication_slot_advance(%s, pg_current_wal_flush_lsn())"
    database.run(f"SELECT {end}", slot)
    with pytest.raises(
        BadInput, match=r"created again, or somebody else advances it, and what lies"
    ):
        reading.take()
    database.run("SELECT pg_drop_replication_slot(%s)", slot)
    with pytest.raises(BadInput, match=f"the replication slot {slot} is gone, and what was wri"):
        reading.take()
    reading.begin()  # the connector makes another one, which has not what is lost
    with pytest.raises(BadInput, match="it was created again"):
        reading.take()
    reading.seek(SeekEnd.EARLIEST)
    assert told(reading, "id") == [("r", 1)]


def test_tables_are_read_anew_when_that_is_needed(database: Database, read: Read) -> None:
    database.run(TABLE)
    database.run("INSERT INTO t VALUES (1, 'one'), (2, 'two')")
    reading = read(snapshot_mode="when_needed")
    assert told(reading, "id") == [("r", 1), ("r", 2)]
    database.run("INSERT INTO t VALUES (3, 'three')")
    assert told(reading, "id") == [("c", 3)]
    for harm in (
        "SELECT pg_drop_replication_slot(%s)",
        "SELECT pg_replication_slot_advance(%s, pg_current_wal_flush_lsn())",
    ):
        database.run("DELETE FROM t WHERE id = 1")
        database.run("INSERT INTO t VALUES (1, 'lost')")
        for (slot,) in database.run(SLOT):
            database.run(harm, slot)
        with pytest.raises(NotReady, match=r"is gone.*The connector has the tables read again"):
            reading.take()
        reading.begin()
        split = reading.split
        database.run("INSERT INTO t VALUES (4, 'four')")
        assert sorted(told(reading, "id")) == [("c", 4), ("r", 1), ("r", 2), ("r", 3)]
        database.run("DELETE FROM t WHERE id = 4")
        reading.begin()
        assert (reading.split, told(reading, "id")) == (split, [("d", 4)])
    validated = SparkPipeline.validate({**reading.config, "source.mode": "xmin"})
    assert set(validated.errors) == {"source.snapshot.mode"}


@pytest.mark.parametrize("mode", ["initial", "no_data", "when_needed"])
def test_a_table_that_is_made_anew_is_told_or_read_anew(
    database: Database, read: Read, mode: str
) -> None:
    database.run(TABLE)
    database.run("CREATE TABLE u (id int PRIMARY KEY)")
    database.run("INSERT INTO t VALUES (1, 'one')")
    reading = read(snapshot_mode=mode)
    assert told(reading, "id") == ([] if mode == "no_data" else [("r", 1)])
    database.run("DROP TABLE t")
    database.run(TABLE)
    database.run("INSERT INTO t VALUES (2, 'before it is published')")
    if mode == "when_needed":
        reading.begin()
    else:
        with pytest.raises(BadInput, match=r"public\.t was dropped and made anew, or another"):
            reading.begin()
        reading.seek(SeekEnd.EARLIEST if mode == "initial" else SeekEnd.LATEST)
    database.run("INSERT INTO t VALUES (3, 'after')")
    database.run("INSERT INTO u VALUES (1)")
    there = [] if mode == "no_data" else [("r", 2)]
    assert sorted(told(reading, "id")) == [("c", 1), ("c", 3), *there]
    reading.begin()
    database.run("DELETE FROM t WHERE id = 3")
    assert told(reading, "id") == [("d", 3)]


def test_offsets_without_oids_count_for_the_table_of_their_snapshot_alone(
    database: Database, read: Read
) -> None:
    database.run(TABLE)
    database.run("INSERT INTO t VALUES (1, 'one')")
    reading = read(snapshot_mode="when_needed")
    assert told(reading, "id") == [("r", 1)]
    for partition, offset in reading.offsets.items():  # as earlier releases wrote them
        reading.offsets[partition] = {each: offset[each] for each in offset if each != "oid"}
    reading.begin()
    assert told(reading, "id") == []
    database.run("DROP TABLE t")
    database.run(TABLE)
    database.run("INSERT INTO t VALUES (2, 'before it is published')")
    reading.begin()
    assert told(reading, "id") == [("r", 2)]


def test_a_table_that_is_away_for_a_time_is_told(database: Database, read: Read) -> None:
    database.run(TABLE)
    database.run("CREATE TABLE u (id int PRIMARY KEY)")
    database.run("INSERT INTO t VALUES (1, 'one')")
    reading = read()
    assert told(reading, "id") == [("r", 1)]
    database.run("DROP TABLE t")
    reading.begin()
    database.run(TABLE)
    database.run("INSERT INTO t VALUES (2, 'two')")
    for _ in range(2):
        with pytest.raises(BadInput, match=r"public\.t was dropped and made anew, or another"):
            reading.begin()


def test_a_table_that_is_read_from_its_latest_change_is_never_read_from_the_table(
    database: Database, read: Read
) -> None:
    database.run(TABLE)
    database.run("CREATE TABLE u (id int PRIMARY KEY)")
    database.run("INSERT INTO t VALUES (1, 'one')")
    reading = read()
    assert told(reading, "id") == [("r", 1)]
    reading.seek(SeekEnd.LATEST)
    with database.session() as session:
        session.execute("INSERT INTO t VALUES (2, 'two')")
        session.execute("INSERT INTO u VALUES (3)")
    assert sorted(told(reading, "id")) == [("c", 2), ("c", 3)]
    reading.begin()
    assert told(reading, "id") == []


def test_what_a_deleted_connector_had_on_the_server_is_dropped(
    database: Database, read: Read
) -> None:
    database.run(TABLE)
    reading = read()
    reading.begin(tasks=2)
    for source in reading.sources:
        source.remove_external_state()
        source.remove_external_state()
    assert database.run(SLOT) == []
    assert database.run("SELECT pubname FROM pg_publication") == []


def stopped(reading: Reading) -> None:
    """Have the sources of a connector that is stopped give up what they need not keep."""
    reading.begin(tasks=2)
    for source in reading.sources:
        source.release()
        source.release()
    reading.close()


def test_a_slot_goes_with_a_stop_only_if_that_is_wanted(database: Database, read: Read) -> None:
    database.run(TABLE)
    reading = read()
    assert told(reading, "id") == []
    stopped(reading)
    database.run("INSERT INTO t VALUES (1, 'one')")
    assert told(reading, "id") == [("c", 1)]
    config = {**reading.config, "source.mode": "xmin", "source.slot.drop.on.stop": "true"}
    assert set(SparkPipeline.validate(config).errors) == {"source.slot.drop.on.stop"}


@pytest.mark.parametrize("mode", ["initial", "no_data", "when_needed"])
def test_what_is_lost_by_a_slot_that_went_with_a_stop_is_told(
    database: Database, read: Read, mode: str
) -> None:
    database.run(TABLE)
    database.run("INSERT INTO t VALUES (1, 'one')")
    reading = read(snapshot_mode=mode, slot_drop_on_stop="true")
    assert told(reading, "id") == ([] if mode == "no_data" else [("r", 1)])
    stopped(reading)
    assert database.run(SLOT) == []
    database.run("INSERT INTO t VALUES (2, 'two')")  # whoever resumes it learns that this is lost
    if mode != "when_needed":
        with pytest.raises(
            BadInput, match="it was created again, or somebody else advances it, and"
        ):
            reading.take()
        stopped(reading)
        reading.seek(SeekEnd.EARLIEST)
    reading.begin()
    database.run("INSERT INTO t VALUES (3, 'three')")
    there = [] if mode == "no_data" else [("r", 1), ("r", 2)]
    assert sorted(told(reading, "id")) == [("c", 3), *there]


def test_what_the_server_reads_again_for_a_transaction_that_stays_open_is_told(
    database: Database, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_source, "_MUCH_REREAD", 1 << 20)
    database.run(TABLE)
    reading = read()
    assert told(reading, "id") == []
    with database.session() as late:
        late.execute("INSERT INTO t VALUES (0, 'late')")
        database.run("INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(1, 2000) i")
        assert len(told(reading, "id", limit=SMALL)) == 2000
        database.run("CHECKPOINT")
        database.run("INSERT INTO t VALUES (-1, 'x')")
        (source,) = reading.sources
        plan = source.plan(reading.offsets, AMPLE)
        assert re.match(r"each look has the server read \d MB of its log again", plan.remark)
        take(source, plan, reading.offsets)
        late.commit()
    assert told(reading, "id") == [("c", 0)]


def test_a_slot_that_is_in_use_is_waited_for_and_a_zombie_is_ended(
    database: Database, read: Read
) -> None:
    database.run(TABLE)
    reading = read()
    assert told(reading, "id") == []
    database.run("INSERT INTO t SELECT i, 'x' FROM generate_series(1, 2000) i")
    ((slot,),) = database.run(SLOT)
    (zombie,) = reading.sources
    zombie.plan(reading.offsets, SMALL)  # and it stops, in the middle of a peek
    reading.sources.clear()
    reading.begin()
    assert len(told(reading, "id")) == 2000
    with pytest.raises(SourceAway):
        zombie.plan(reading.offsets, SMALL)
    zombie.close()
    assert database.run("SELECT active FROM pg_replication_slots WHERE slot_name = %s", slot) == [
        (False,)
    ]


def test_what_keeps_the_log_from_being_read_is_found_beforehand(database: Database) -> None:
    database.run("CREATE TABLE bare (id int)")
    config = source_config(database, {"mode": "log"})
    findings = SparkPipeline.probe(config, ExternalAccess())
    assert (
        "public.bare: there is no primary key, and no other replica identity"
        in (findings.errors["source.table.include.list"])
    )
    database.run("ALTER TABLE bare REPLICA IDENTITY FULL")
    with database.session() as other:  # a look ends no session
        assert SparkPipeline.probe(config, ExternalAccess()).errors == {}
        other.execute("SELECT 1")
    config["source.publication.autocreate.mode"] = "disabled"
    (told_of,) = SparkPipeline.probe(config, ExternalAccess()).errors.values()
    assert "there is no publication fairlead_orders_" in told_of
    assert 'FOR TABLE ONLY "public"."bare"' in told_of
    validated = SparkPipeline.validate(
        {**config, "source.snapshot.mode": "initial_only", "source.slot.name": "No"}
    )
    assert set(validated.errors) == {"source.snapshot.mode", "source.slot.name"}


def test_a_publication_that_is_dropped_and_a_right_that_is_missing_are_told(
    database: Database, read: Read
) -> None:
    database.run(TABLE)
    reading = read()
    assert told(reading, "id") == []
    ((slot,),) = database.run(SLOT)
    with database.server.connected(database.name) as session:
        session.execute(f"DROP PUBLICATION {slot}".encode())
    database.run("INSERT INTO t VALUES (1, 'one')")
    with pytest.raises(BadInput, match=r'publication ".*" does not exist .* Read the tables again'):
        reading.take()
    database.run("DROP ROLE IF EXISTS reader")
    database.run("CREATE ROLE reader LOGIN PASSWORD 'reader-pass'")
    database.run("GRANT USAGE ON SCHEMA public TO reader")
    database.run("GRANT SELECT ON t TO reader")
    poor = read(connection_user="reader", connection_password="reader-pass")
    with pytest.raises(BadInput, match=r"have the tables' owner do it: CREATE PUBLICATION"):
        poor.begin()
    with database.server.connected(database.name) as session:
        session.execute(f"CREATE PUBLICATION {slot} FOR ALL TABLES".encode())
    database.run("SELECT pg_drop_replication_slot(%s)", slot)
    with pytest.raises(BadInput, match="its role must have REPLICATION"):
        poor.begin()


def test_a_server_that_logs_no_rows_and_a_slot_that_it_gave_up_are_told() -> None:
    with started(wal_level="replica") as server:
        database = server.empty("test")
        database.run(TABLE)
        config = source_config(database, {"mode": "log"})
        (flaw,) = SparkPipeline.probe(config, ExternalAccess()).errors.items()
        assert flaw[0] == "source.mode"
        assert "wal_level is replica" in flaw[1]
        assert "ALTER SYSTEM SET wal_level = 'logical'" in flaw[1]
        server.stop()
        server.settings = {
            **server.settings,
            "wal_level": "logical",
            "max_slot_wal_keep_size": "1MB",
            "max_wal_size": "32MB",
        }
        server.start()
        reading = Reading.of(database, mode="log")
        assert told(reading, "id") == []
        for _ in range(4):
            database.run("SELECT pg_switch_wal()")
            database.run("INSERT INTO t SELECT 1, 'x' ON CONFLICT DO NOTHING")
            database.run("CHECKPOINT")
        with pytest.raises(BadInput, match=r"was invalidated: .* max_slot_wal_keep_size allows"):
            reading.take()
        reading.close()


def test_a_table_made_anew_is_read_whatever_offset_an_earlier_release_had_for_it(
    database: Database, read: Read
) -> None:
    database.run(TABLE)
    database.run("INSERT INTO t VALUES (1, 'one')")
    reading = read(snapshot_mode="when_needed")
    reading.begin()
    reading.seek(SeekEnd.LATEST)
    for partition, offset in reading.offsets.items():  # as earlier releases wrote them
        reading.offsets[partition] = {each: offset[each] for each in offset if each != "oid"}
    database.run("INSERT INTO t VALUES (2, 'two')")
    assert told(reading, "id") == [("c", 2)]
    for _ in range(2):
        database.run("DROP TABLE t")
        database.run(TABLE)
        database.run("INSERT INTO t VALUES (3, 'before it is published')")
        reading.begin()
        assert told(reading, "id") == [("r", 3)]
        database.run("INSERT INTO t VALUES (4, 'after')")
        reading.begin()
        assert told(reading, "id") == [("c", 4)]


def test_workers_of_an_earlier_release_can_read_the_configs_of_tasks(
    database: Database, read: Read
) -> None:
    database.run(TABLE)
    reading = read()
    reading.begin()
    ((share, log),) = (
        (each["task.source.share"], each["task.source.log"]) for each in reading.split
    )
    ((followed,), (shared,)) = json.loads(log)[1], json.loads(share)
    assert (len(shared), len(followed)) == (14, 6)  # members, which are told by their place


def test_labels_of_an_enum_that_were_renamed_since_are_read_as_they_were(
    database: Database, read: Read
) -> None:
    database.run("CREATE TYPE mood AS ENUM ('sad', 'happy')")
    database.run("CREATE TABLE t (id int PRIMARY KEY, m mood, more mood[])")
    reading = read()
    assert told(reading, "id") == []
    database.run("INSERT INTO t VALUES (1, 'sad', '{sad,happy}')")
    database.run("ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'")
    database.run("INSERT INTO t VALUES (2, 'blue', NULL)")
    found = told(reading, "id", "m", "more")
    assert [each[:2] for each in found] == [("c", 1), ("c", 2)]
    assert found[1][2] == "blue"


def test_changes_have_the_texts_that_rows_of_the_snapshot_have(
    database: Database, read: Read
) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY, ip inet, ips inet[], areas box[])")
    row = "'10.0.0.1', '{10.0.0.1}', '{(1,1),(0,0);(2,2),(1,1)}')"
    with database.server.connected(database.name) as connection:
        connection.execute(f"INSERT INTO t VALUES (1, {row}".encode())
        reading = read()
        seen = told(reading, "ip", "ips", "areas")
        connection.execute(f"INSERT INTO t VALUES (2, {row}".encode())
    assert seen == [("r", "10.0.0.1/32", ["10.0.0.1/32"], ["(1,1),(0,0)", "(2,2),(1,1)"])]
    assert told(reading, "ip", "ips", "areas") == [("c", *seen[0][1:])]


def test_large_values_of_a_table_that_is_just_rewritten_are_found(
    database: Database, read: Read
) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY, n int, big text NOT NULL)")
    database.run("ALTER TABLE t ALTER big SET STORAGE EXTERNAL")
    database.run("INSERT INTO t VALUES (1, 0, repeat('1', 9000))")
    reading = read()
    assert told(reading, "id") == [("r", 1)]
    database.run("UPDATE t SET n = 1")
    found: list[Any] = []
    with database.session() as session:
        session.execute("ALTER TABLE t ALTER COLUMN n TYPE bigint")
        reads = threading.Thread(target=lambda: found.extend(told(reading, "id", "n", "big")))
        reads.start()
        wait_until(
            lambda: database.run("SELECT count(*)::int FROM pg_locks WHERE NOT granted") == [(1,)]
        )
    reads.join()
    assert found == [("u", 1, 1, "1" * 9000)]


def test_a_snapshot_whose_table_is_rewritten_just_then_is_not_empty(
    database: Database, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.run(TABLE)
    database.run("INSERT INTO t VALUES (1, 'one')")
    reading = read()
    reading.begin()
    inner = reading_module.RowReader.read

    def late(*given: Any) -> Any:
        monkeypatch.setattr(reading_module.RowReader, "read", inner)
        database.run("ALTER TABLE t ALTER COLUMN id TYPE bigint")
        return inner(*given)

    monkeypatch.setattr(reading_module.RowReader, "read", late)
    with pytest.raises(SourceAway, match=r"public\.t was rewritten while it was read"):
        reading.take()
    with pytest.raises(BadInput, match=r"public\.t was rewritten \(TRUNCATE, VACUUM FULL"):
        reading.take()


def test_a_table_that_was_taken_out_of_the_publication_after_a_seek_is_told(
    database: Database, read: Read
) -> None:
    database.run(TABLE)
    database.run("CREATE TABLE u (id int PRIMARY KEY)")
    reading = read()
    reading.begin()
    reading.seek(SeekEnd.LATEST)
    database.run("INSERT INTO t VALUES (1, 'one')")
    database.run("INSERT INTO u VALUES (1)")
    assert told(reading, "id") == [("c", 1), ("c", 1)]
    ((publication,),) = database.run("SELECT pubname FROM pg_publication")
    with database.server.connected(database.name) as connection:
        connection.execute(f"ALTER PUBLICATION {publication} DROP TABLE t".encode())
    database.run("INSERT INTO t VALUES (2, 'in no log')")
    with pytest.raises(BadInput, match=r"public\.t was taken out of the publication"):
        reading.begin()
    reading.seek(SeekEnd.LATEST)
    database.run("INSERT INTO t VALUES (3, 'three')")
    assert told(reading, "id") == [("c", 3)]


@pytest.mark.parametrize("mode", ["initial", "when_needed"])
def test_a_table_that_was_taken_out_of_the_publication_is_told_or_read_anew(
    database: Database, read: Read, mode: str
) -> None:
    database.run(TABLE)
    database.run("CREATE TABLE u (id int PRIMARY KEY)")
    reading = read(snapshot_mode=mode)
    reading.begin()
    database.run("INSERT INTO t VALUES (1, 'one')")
    assert told(reading, "id") == [("c", 1)]
    ((publication,),) = database.run("SELECT pubname FROM pg_publication")
    with database.server.connected(database.name) as connection:
        connection.execute(f"ALTER PUBLICATION {publication} DROP TABLE t".encode())
    database.run("INSERT INTO t VALUES (2, 'in no log')")
    if mode == "initial":
        for _ in range(2):
            with pytest.raises(BadInput, match=r"public\.t was taken out of the publication"):
                reading.begin()
        reading.seek(SeekEnd.EARLIEST)
    reading.begin()
    assert sorted(told(reading, "id")) == [("r", 1), ("r", 2)]
    database.run("INSERT INTO t VALUES (3, 'three')")
    reading.begin()
    assert told(reading, "id") == [("c", 3)]
