# pyright: basic
"""A batch arrives in a table as the config says: inserted, upserted, updated, deleted."""

import datetime as dt
import math
import random
import re
from decimal import Decimal
from typing import Any, LiteralString
from uuid import UUID

import pyarrow as pa
import pytest

from fairlead.events.model import Token
from fairlead.runtime.pipeline.spi.errors import BadInput, RowsRefused, SchemaRefused, SinkBroken
from fairlead.runtime.pipeline.stores.postgres.sink import sink as sink_module
from fairlead_tests.connectors.publish_once import SinkLog
from fairlead_tests.postgres_pipes import sink_of, tables_of
from fairlead_tests.postgres_server import PASSWORD, Database

UTC = dt.UTC
DAY = dt.datetime(2026, 1, 2)  # noqa: DTZ001
UPSERT = {"insert_mode": "upsert", "pk_mode": "record_value"}
WIDE = pa.array([Decimal(5)], pa.decimal256(70, 0))


@pytest.fixture
def log() -> SinkLog:
    return SinkLog()


def test_a_batch_is_inserted_and_leaves_nothing_aside(database: Database, log: SinkLog) -> None:
    database.run(
        "CREATE TABLE t (id int PRIMARY KEY, v varchar(5), made timestamptz DEFAULT now())"
    )
    sink = sink_of(database)
    log.acquire(sink)
    log.write(sink, pa.table({"id": [1, 2], "v": ["a", None]}))
    log.write(sink, pa.table({"id": [3], "v": ["c"]}))
    sink.close()
    found = database.run("SELECT id, v, made IS NOT NULL FROM t ORDER BY id")
    assert found == [(1, "a", True), (2, None, True), (3, "c", True)]
    assert tables_of(database) == {"t", "fairlead_published"}


def test_rows_are_not_seen_before_they_are_published(database: Database, log: SinkLog) -> None:
    database.run("CREATE TABLE t (id bigint)")
    sink = sink_of(database)
    log.acquire(sink)
    log.count(log.stage(sink, pa.table({"id": [1]})))
    assert database.run("SELECT * FROM t") == []
    log.publish(sink)
    assert database.run("SELECT * FROM t") == [(1,)]
    sink.close()


def test_every_type_is_made_and_filled(database: Database, log: SinkLog) -> None:
    now = dt.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    rows = pa.table(
        {
            "b": [True],
            "i16": pa.array([1], pa.int16()),
            "i32": pa.array([2], pa.int32()),
            "u64": pa.array([2**64 - 1], pa.uint64()),
            "f32": pa.array([0.5], pa.float32()),
            "f64": [0.1],
            "dec": pa.array([Decimal("12.30")], pa.decimal128(10, 2)),
            "text": ["ä\n"],
            "bin": [b"\0\xff"],
            "day": [now.date()],
            "clock": [now.time()],
            "plain": pa.array([now.replace(tzinfo=None)], pa.timestamp("us")),
            "zoned": pa.array([now], pa.timestamp("ms", "Europe/Berlin")),
            "list": [[1, None]],
            "struct": [{"a": 1, "b": ["x"]}],
            "dict": pa.array(["d"]).dictionary_encode(),
            "none": pa.nulls(1),
        }
    )
    sink = sink_of(database, auto_create="true")
    log.acquire(sink)
    log.write(sink, rows)
    sink.close()
    ((*found,),) = database.run("SELECT * FROM t")
    milli = now.replace(microsecond=678000)
    assert found == [
        *(True, 1, 2, Decimal(2**64 - 1), 0.5, 0.1, Decimal("12.30"), "ä\n", b"\0\xff"),
        *(now.date(), now.time(), now.replace(tzinfo=None), milli, [1, None]),
        *({"a": 1, "b": ["x"]}, "d", None),
    ]


def test_what_copy_cannot_write_is_cast_before_the_batch_counts(
    database: Database, log: SinkLog
) -> None:
    database.run("CREATE TYPE mood AS ENUM ('sad', 'glad')")
    database.run("CREATE TABLE t (u uuid, j jsonb, m mood, n numeric, us uuid[], at timestamptz)")
    one = "00000000-0000-0000-0000-000000000001"
    rows = {"u": [one], "j": ['{"a": 1}'], "m": ["glad"], "n": [0.1], "us": [[one]]}
    sink = sink_of(database)
    log.acquire(sink)
    log.write(sink, pa.table({**rows, "at": ["2026-01-02 03:04:05+01"]}))
    at = dt.datetime(2026, 1, 2, 2, 4, 5, tzinfo=UTC)
    wanted = (UUID(one), {"a": 1}, "glad", Decimal("0.1"), [UUID(one)], at)
    assert database.run("SELECT * FROM t") == [wanted]
    for wrong in ({"u": ["one"]}, {"m": ["so-so"]}, {"us": [["two"]]}):
        with pytest.raises(BadInput, match="invalid input"):
            log.stage(sink, pa.table({**rows, **wrong}))
    sink.close()
    assert tables_of(database) == {"t", "fairlead_published"}


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (pa.array([1 << 40]), "column n of type integer cannot hold int64"),
        (pa.array([1.5]), "column n of type integer cannot hold double"),
        (pa.array(["x"]), 'invalid input syntax for type integer: "x"'),
        (pa.array([None], pa.int32()), 'null value in column "n"'),
    ],
)
def test_a_value_that_a_column_cannot_hold_is_told_before_it_counts(
    database: Database, log: SinkLog, values: pa.Array, told: str
) -> None:
    database.run("CREATE TABLE t (n int NOT NULL)")
    sink = sink_of(database)
    log.acquire(sink)
    with pytest.raises(BadInput, match=told):
        log.stage(sink, pa.table({"n": values}))
    log.write(sink, pa.table({"n": [1]}))
    sink.close()
    assert database.run("SELECT * FROM t") == [(1,)]


@pytest.mark.parametrize(
    ("kind", "fits", "wrong", "told"),
    [
        ("real", pa.array([1.5, math.inf, -0.0]), pa.array([1.5, 1e300]), "double: 1e.300 is out"),
        ("real", pa.array([1e-40]), pa.array([-1e-300]), "double: -1e-300 is out of range"),
        ("real[]", pa.array([[1.5], None]), pa.array([[None, -1e39]]), "1e.39 is out of range"),
        ("real", pa.array(["1e30"]), pa.array(["1e300"]), '"1e300" is out of range for type real'),
        ("real", WIDE, pa.array([Decimal("1e60")], WIDE.type), r"decimal256\(70, 0\): 10+ is out"),
        ("double precision", pa.array(["1e300"]), pa.array(["1e400"]), '"1e400" is out of range'),
        ("smallint", pa.array([32767]), pa.array([32768]), "32768 not in range"),
        ("smallint[]", pa.array([[-32768]]), pa.array([[-32769]]), "-32769 not in range"),
        ("int", pa.array([1.0]), pa.array([3e9]), "3000000000.0+ was truncated"),
        ("bigint", pa.array([Decimal(7)]), pa.array([Decimal("1e30")]), "out of bounds"),
        ("numeric(5,2)", pa.array([999.25]), pa.array([1000.0]), "numeric field overflow"),
        ("numeric(5,2)", pa.array([Decimal("999")]), pa.array([Decimal(1000)]), "field overflow"),
        ("bool", pa.array([0, 1, None]), pa.array([1, 5]), "5 is neither 0 nor 1"),
        ("timestamp", pa.array([DAY]), pa.array([86_400]), "a number is no time"),
        ("date", pa.array([DAY.date()]), pa.array([20_000]), "a number is no time"),
        ("time", pa.array([DAY.time()]), pa.array([1.5]), "a number is no time"),
        ("text", pa.array([DAY]), pa.array([1 << 62]).cast(pa.timestamp("us")), "there is no text"),
        ("text", pa.array([86_400_000_000]).cast(pa.time64("us")), None, ""),
    ],
)
def test_a_value_that_would_be_another_one_in_its_column_is_told(
    database: Database, log: SinkLog, kind: LiteralString, fits: Any, wrong: Any, told: str
) -> None:
    database.run(f"CREATE TABLE t (v {kind})")
    sink = sink_of(database)
    log.acquire(sink)
    if wrong is not None:
        with pytest.raises(RowsRefused, match=told) as refused:
            log.stage(sink, pa.table({"v": wrong}))
        assert str(refused.value).startswith("public.t")
    log.write(sink, pa.table({"v": fits}))
    sink.close()
    assert database.run("SELECT count(*) FROM t") == [(len(fits),)]


@pytest.mark.parametrize(
    ("numbers", "told"),
    [
        ([1, -5], r"the row with \(n\)=\(-5\): it breaks t_n_check, CHECK \(\(n > 0\)\)"),
        ([3, 7], r"the row with \(n, u\)=\(7, 0{8}.*\): there is one already; set sink\.insert"),
        ([3, 4, 4], r"the row with \(n, u\)=\(4, .*\): it is not the only one of its batch"),
    ],
)
def test_a_row_that_breaks_a_constraint_is_told_before_it_counts(
    database: Database, log: SinkLog, numbers: list[int], told: str
) -> None:
    one = "00000000-0000-0000-0000-000000000001"
    database.run(
        "CREATE TABLE t (n int CHECK (n > 0), u uuid, UNIQUE (u, n), CHECK (n < least(9)))"
    )
    database.run("INSERT INTO t VALUES (7, %s)", one)
    sink = sink_of(database)
    log.acquire(sink)
    with pytest.raises(BadInput, match=told):
        log.stage(sink, pa.table({"n": numbers, "u": [one] * len(numbers)}))
    log.write(sink, pa.table({"n": [1, 7, 7], "u": [one, None, None]}))
    sink.close()
    assert len(database.run("SELECT * FROM t")) == 4


def test_a_constraint_that_is_added_under_way_is_seen_after_a_while(
    database: Database, log: SinkLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.run("CREATE TABLE t (n int)")
    sink = sink_of(database)
    log.acquire(sink)
    log.write(sink, pa.table({"n": [1]}))
    database.run("ALTER TABLE t ADD CHECK (n < 5)")
    monkeypatch.setattr(sink_module, "_FITTED_S", 0.0)
    with pytest.raises(RowsRefused, match="it breaks t_n_check"):
        log.stage(sink, pa.table({"n": [7]}))
    sink.close()


def test_a_table_is_looked_at_again_when_a_batch_cannot_be_put_in_place(
    database: Database, log: SinkLog
) -> None:
    database.run("CREATE TABLE t (n int)")
    sink = sink_of(database)
    log.acquire(sink)
    log.write(sink, pa.table({"n": [1]}))
    database.run("ALTER TABLE t ADD CHECK (n < 5)")
    log.count(log.stage(sink, pa.table({"n": [2, 7]})))
    with pytest.raises(SinkBroken, match=r'violates check constraint "t_n_check".*DELETE') as told:
        log.publish(sink)
    (staged,) = re.findall(r"waits \((\S+)\)", str(told.value))
    with database.server.connected(database.name) as connection:
        connection.execute(f"DELETE FROM {staged} WHERE n = 7".encode())
    log.publish(sink)
    with pytest.raises(RowsRefused, match="it breaks t_n_check"):
        log.stage(sink, pa.table({"n": [8]}))
    sink.close()
    assert database.run("SELECT n FROM t") == [(1,), (2,)]


def test_rows_that_are_added_may_have_a_key_that_the_table_does_not_know(
    database: Database, log: SinkLog
) -> None:
    database.run("CREATE TABLE t (n int, CHECK (n IS NOT NULL))")
    database.run("INSERT INTO t VALUES (1)")
    sink = sink_of(database, pk_mode="record_value", pk_fields="n")
    log.acquire(sink)
    log.write(sink, pa.table({"n": [1, 1]}))
    sink.close()
    assert database.run("SELECT * FROM t") == [(1,)] * 3


def test_a_role_that_may_only_add_rows_adds_them(database: Database, log: SinkLog) -> None:
    database.run("CREATE TABLE t (n int PRIMARY KEY)")
    database.run("DROP ROLE IF EXISTS adder")
    database.run("CREATE ROLE adder LOGIN PASSWORD 'p'")
    database.run("GRANT ALL ON SCHEMA public TO adder; GRANT INSERT ON t TO adder")
    sink = sink_of(database, connection_user="adder", connection_password="p")
    log.acquire(sink)
    log.write(sink, pa.table({"n": [1]}))
    sink.close()
    assert database.run("SELECT * FROM t") == [(1,)]


def test_the_last_row_of_a_key_wins(database: Database, log: SinkLog) -> None:
    database.run(
        "CREATE TABLE t (a int, b uuid, v text, untouched int DEFAULT 7, PRIMARY KEY (a, b))"
    )
    one = "00000000-0000-0000-0000-000000000001"
    sink = sink_of(database, insert_mode="upsert", pk_mode="record_value")
    log.acquire(sink)
    log.write(sink, pa.table({"a": [1, 1, 2], "b": [one] * 3, "v": ["x", "y", "z"]}))
    log.write(sink, pa.table({"a": [2, 3, 2], "b": [one] * 3, "v": ["old", "new", "newest"]}))
    sink.close()
    found = database.run("SELECT a, v, untouched FROM t ORDER BY a")
    assert found == [(1, "y", 7), (2, "newest", 7), (3, "new", 7)]


def test_a_delete_deletes_and_a_row_after_it_stands(database: Database, log: SinkLog) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY, v text)")
    database.run("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    sink = sink_of(
        database,
        insert_mode="upsert",
        pk_mode="record_value",
        pk_fields="id",
        delete_enabled="true",
    )
    log.acquire(sink)
    rows = {"id": [1, 2, 2, 4, 4], "v": [None, None, "B", "d", None]}
    log.write(sink, pa.table({**rows, "__op": ["d", "d", "c", "c", "d"]}))
    log.write(sink, pa.table({"id": [3], "v": ["x"], "__deleted": ["true"]}))
    sink.close()
    assert database.run("SELECT id, v FROM t") == [(2, "B")]


@pytest.mark.parametrize("way", ["table", "prepared"])
def test_a_value_that_must_be_unique_passes_from_one_row_to_another(
    database: Database, log: SinkLog, way: str
) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY, email text UNIQUE)")
    database.run("INSERT INTO t VALUES (5, 'a'), (8, 'b')")
    upsert = {"insert_mode": "upsert", "pk_mode": "record_value", "delete_enabled": "true"}
    sink = sink_of(database, **upsert, stage_with=way)
    log.acquire(sink)
    log.write(sink, pa.table({"id": [5, 6], "email": ["a", "a"], "__op": ["d", "c"]}))
    log.write(sink, pa.table({"id": [8, 7], "email": ["c", "b"], "__op": ["u", "c"]}))
    sink.close()
    assert database.run("SELECT * FROM t ORDER BY id") == [(6, "a"), (7, "b"), (8, "c")]


def test_a_delete_needs_no_value_beside_its_key(database: Database, log: SinkLog) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY, v text NOT NULL CHECK (v IS NOT NULL))")
    database.run("INSERT INTO t VALUES (1, 'a')")
    upsert = {"insert_mode": "upsert", "pk_mode": "record_value", "delete_enabled": "true"}
    sink = sink_of(database, **upsert)
    log.acquire(sink)
    rows = {"id": [1, 2], "v": [None, "b"], "__op": ["d", "c"]}
    log.write(sink, pa.table(rows))
    with pytest.raises(BadInput, match=r"public\.t refuses a row: .*v is required"):
        log.stage(sink, pa.table({**rows, "v": [None, None]}))
    sink.close()
    assert database.run("SELECT * FROM t") == [(2, "b")]


def test_deletes_that_are_not_enabled_are_passed_over(database: Database, log: SinkLog) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY, v text)")
    sink = sink_of(database, insert_mode="upsert", pk_mode="record_value")
    log.acquire(sink)
    log.write(sink, pa.table({"id": [1, 1], "v": ["a", None], "__op": ["c", "d"]}))
    sink.close()
    assert database.run("SELECT * FROM t") == [(1, "a")]


TOMBSTONES = pa.table(
    {
        "id": [None, 2, None, 3, None],
        "v": [None, "b", None, "d", None],
        "__op": pa.nulls(5, pa.string()),
        "_key": [{"id": n} for n in (1, 2, 2, 3, 4)],
        "_topic": ["t"] * 5,
    }
)


def test_a_tombstone_deletes_the_row_of_its_key(database: Database, log: SinkLog) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY, v text NOT NULL)")
    database.run("INSERT INTO t VALUES (1, 'one'), (2, 'two'), (9, 'nine')")
    upsert = {"insert_mode": "upsert", "pk_mode": "record_key", "pk_fields": "id"}
    sink = sink_of(database, **upsert, delete_enabled="true")
    log.acquire(sink)
    log.write(sink, TOMBSTONES)
    sink.close()
    assert database.run("SELECT * FROM t ORDER BY id") == [(3, "d"), (9, "nine")]


def test_tombstones_alone_need_no_columns_beside_their_key(
    database: Database, log: SinkLog
) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY, v text NOT NULL, w text)")
    database.run("INSERT INTO t VALUES (1, 'one'), (2, 'two')")
    upsert = {"insert_mode": "upsert", "pk_mode": "record_key", "pk_fields": "id"}
    sink = sink_of(database, **upsert, delete_enabled="true")
    log.acquire(sink)
    log.write(sink, TOMBSTONES.select(["_key", "_topic"]).slice(0, 1))
    with pytest.raises(SchemaRefused, match="demands v, which rows do not have"):
        log.stage(sink, pa.table({"_key": [{"id": 3}], "w": ["w"]}))
    sink.close()
    assert database.run("SELECT * FROM t") == [(2, "two", None)]


@pytest.mark.parametrize(
    "given",
    [
        {"insert_mode": "upsert", "pk_mode": "record_key"},
        {"insert_mode": "update", "pk_mode": "record_key"},
        {"insert_mode": "upsert", "pk_mode": "record_value", "delete_enabled": "true"},
    ],
)
def test_a_tombstone_that_deletes_nothing_is_a_bad_row(
    database: Database, log: SinkLog, given: dict[str, str]
) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY, v text)")
    database.run("INSERT INTO t VALUES (1, 'one')")
    sink = sink_of(database, **given)
    log.acquire(sink)
    with pytest.raises(RowsRefused, match=r"public\.t: a row is a tombstone, .*: set sink\.delete"):
        log.stage(sink, TOMBSTONES)
    sink.close()
    assert database.run("SELECT * FROM t") == [(1, "one")]


def test_an_update_adds_no_row(database: Database, log: SinkLog) -> None:
    database.run("CREATE TABLE t (id int, v text)")
    database.run("INSERT INTO t VALUES (1, 'a')")
    sink = sink_of(database, insert_mode="update", pk_mode="record_value", pk_fields="id")
    log.acquire(sink)
    log.write(sink, pa.table({"id": [1, 1, 2], "v": ["x", "y", "z"]}))
    log.write(sink, pa.table({"id": [1]}))  # which changes nothing
    sink.close()
    assert database.run("SELECT * FROM t") == [(1, "y")]


def test_a_topic_names_its_table_and_the_schema_of_it(database: Database, log: SinkLog) -> None:
    database.run("CREATE SCHEMA lake")
    sink = sink_of(database, table_name_format="lake.${table}", auto_create="true")
    log.acquire(sink)
    topics = ["pre.public.a", "pre.public.b", "pre.public.a"]
    log.write(sink, pa.table({"n": [1, 2, 3], "_topic": topics, "__lsn": [7, 8, 9]}))
    sink.close()
    assert database.run("SELECT n FROM lake.a ORDER BY n") == [(1,), (3,)]
    assert database.run("SELECT * FROM lake.b") == [(2,)]


def test_a_row_without_a_topic_that_would_name_its_table_is_refused(
    database: Database, log: SinkLog
) -> None:
    sink = sink_of(database, table_name_format="t_${topic}", auto_create="true")
    log.acquire(sink)
    for topics in (["a", None], [None, None]):
        with pytest.raises(RowsRefused, match="a row has no _topic, on which sink"):
            log.stage(sink, pa.table({"n": [1, 2], "_topic": pa.array(topics, pa.string())}))
    sink.close()
    assert tables_of(database) == {"fairlead_published"}


def test_the_key_of_a_record_becomes_columns(database: Database, log: SinkLog) -> None:
    given = {"insert_mode": "upsert", "pk_mode": "record_key", "pk_fields": "id"}
    sink = sink_of(database, auto_create="true", **given)
    log.acquire(sink)
    log.write(sink, pa.table({"v": ["a", "b"], "_key": [{"id": 1}, {"id": 1}]}))
    sink.close()
    assert database.run("SELECT id, v FROM t") == [(1, "b")]


def test_a_table_takes_new_and_wider_columns_only_if_it_may(
    database: Database, log: SinkLog
) -> None:
    database.run("CREATE TABLE t (id int, price numeric(6,2))")
    wide = pa.table(
        {
            "id": [1 << 40],
            "price": pa.array([Decimal("123456.789")], pa.decimal128(12, 3)),
            "name": ["n"],
        }
    )
    strict, lenient = sink_of(database), sink_of(database, auto_evolve="true")
    log.acquire(strict)
    with pytest.raises(SchemaRefused, match=r"public\.t has no column name text: add it, set"):
        log.stage(strict, wide)
    strict.close()
    log.acquire(lenient)
    log.write(lenient, wide)
    log.write(lenient, pa.table({"id": [2]}))
    lenient.close()
    assert database.run("SELECT * FROM t ORDER BY id DESC") == [
        (1 << 40, Decimal("123456.789"), "n"),
        (2, None, None),
    ]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "there is no table public.t: make it, or set"),
        ({"insert_mode": "upsert", "pk_mode": "record_value"}, "no primary key"),
        ({"insert_mode": "upsert", "pk_mode": "record_value", "pk_fields": "v"}, "no unique index"),
        ({"fields_whitelist": "v"}, "demands id, which rows do not have"),
    ],
)
def test_a_table_that_rows_do_not_fit_is_told(
    database: Database, log: SinkLog, given: dict[str, str], told: str
) -> None:
    if given:
        database.run("CREATE TABLE t (id int NOT NULL, v text)")
    sink = sink_of(database, **given)
    log.acquire(sink)
    with pytest.raises(SchemaRefused, match=told):
        log.stage(sink, pa.table({"id": [1], "v": ["a"]}))
    sink.close()


def test_columns_that_the_server_makes_are_left_to_it(database: Database, log: SinkLog) -> None:
    database.run(
        "CREATE TABLE t (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v text,"
        " twice text GENERATED ALWAYS AS (v || v) STORED)"
    )
    sink = sink_of(database, insert_mode="upsert", pk_mode="record_value")
    log.acquire(sink)
    log.write(sink, pa.table({"id": [5], "v": ["a"], "twice": ["no"]}))
    sink.close()
    assert database.run("SELECT * FROM t") == [(5, "a", "aa")]


ORDERED = {"insert_mode": "upsert", "pk_mode": "record_value", "pk_order_column": "v"}


def test_an_older_row_does_not_replace_a_newer_one(database: Database, log: SinkLog) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY, v int, who text)")
    database.run("INSERT INTO t VALUES (1, 5, 'there'), (2, 5, 'there'), (3, NULL, 'there')")
    sink = sink_of(database, **ORDERED)
    log.acquire(sink)
    rows: list[tuple[Any, ...]]
    rows = [(1, 4, "older"), (2, 5, "as old"), (3, 1, "newer"), (4, 7, "first"), (4, 6, "late")]
    rows += [(1, None, "unordered"), (5, None, "unordered")]
    names = ("id", "v", "who")
    log.write(sink, pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))))
    wanted = [(1, 5, "there"), (2, 5, "as old"), (3, 1, "newer"), (4, 7, "first")]
    assert database.run("SELECT * FROM t ORDER BY id") == [*wanted, (5, None, "unordered")]
    sink.close()
    update = sink_of(database, **{**ORDERED, "insert_mode": "update"})
    log.acquire(update, Token(2, 0))
    log.write(update, pa.table({"id": [1, 2], "v": [4, 6], "who": ["older", "newer"]}))
    update.close()
    found = database.run("SELECT * FROM t WHERE id < 3 ORDER BY id")
    assert found == [(1, 5, "there"), (2, 6, "newer")]


def test_an_older_delete_deletes_nothing_that_is_newer(database: Database, log: SinkLog) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY, __lsn bigint)")
    database.run("INSERT INTO t VALUES (1, 5), (2, 5), (3, 5)")
    sink = sink_of(database, **{**ORDERED, "pk_order_column": "__lsn"}, delete_enabled="true")
    log.acquire(sink)
    rows = {"id": [1, 2, 3, 3, 4, 4], "__op": ["d", "d", "u", "d", "d", "c"]}
    log.write(sink, pa.table({**rows, "__lsn": [4, 6, 9, 8, 1, 2]}))
    assert database.run("SELECT * FROM t ORDER BY id") == [(1, 5), (3, 9), (4, 2)]
    with pytest.raises(BadInput, match=r"public\.t: a delete has no __lsn, so that"):
        log.stage(sink, pa.table({"id": [1], "__lsn": pa.nulls(1, pa.int64()), "__op": ["d"]}))
    sink.close()


LATE = {
    "foreign key": ("ALTER TABLE t ADD FOREIGN KEY (p) REFERENCES parent", "present in table"),
    "deferred": (
        "ALTER TABLE t ADD FOREIGN KEY (p) REFERENCES parent DEFERRABLE INITIALLY DEFERRED",
        r"t_p_fkey\" Key \(p\)=\(9\) is not present",
    ),
    "second key": ("CREATE UNIQUE INDEX ON t (p) WHERE p > 5", r"Key \(p\)=\(9\) already exists"),
    "trigger": (
        """CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.p = 9 THEN RAISE 'nine is not wanted' USING ERRCODE = 'U0009'; END IF;
        RETURN NEW; END $$;
        CREATE TRIGGER refuse BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION refuse()""",
        "nine is not wanted",
    ),
}


@pytest.mark.parametrize("what", LATE)
def test_what_shows_only_when_a_row_goes_in_is_told_before_it_counts(
    database: Database, log: SinkLog, what: str
) -> None:
    database.run("CREATE TABLE parent (p int PRIMARY KEY)")
    database.run("INSERT INTO parent VALUES (1), (2)")
    database.run("CREATE TABLE t (id int PRIMARY KEY, p int)")
    with database.server.connected(database.name) as connection:
        connection.execute(LATE[what][0].encode())
    upsert = {"insert_mode": "upsert", "pk_mode": "record_value"}
    sink = sink_of(database, **upsert)
    log.acquire(sink)
    ids = [1, 2] if what == "second key" else [1]
    bad = pa.table({"id": ids, "p": [9] * len(ids)})
    with pytest.raises(RowsRefused, match=f"a row would be refused: .*{LATE[what][1]}"):
        log.stage(sink, bad)
    log.write(sink, pa.table({"id": [3, 4], "p": [1, 2]}))
    assert database.run("SELECT * FROM t ORDER BY id") == [(3, 1), (4, 2)]
    sink.close()


def test_a_batch_that_waits_can_be_rid_of_the_row_that_it_waits_for(
    database: Database, log: SinkLog
) -> None:
    database.run("CREATE TABLE parent (p int PRIMARY KEY)")
    database.run("CREATE TABLE t (id int, p int REFERENCES parent)")
    database.run("INSERT INTO parent VALUES (1)")
    sink = sink_of(database, dry_run="false")
    log.acquire(sink)
    log.count(log.stage(sink, pa.table({"id": [1, 2], "p": [1, 9]})))
    with pytest.raises(SinkBroken, match=r"Key \(p\)=\(9\) is not present.*DELETE the") as told:
        log.publish(sink)
    (table,) = re.findall(r"waits \((\S+)\)", str(told.value))
    with database.server.connected(database.name) as connection:
        connection.execute(f"DELETE FROM {table} WHERE p = 9".encode())
    log.publish(sink)
    sink.close()
    assert database.run("SELECT * FROM t") == [(1, 1)]


NOT_GIVEN = {
    "partition": (
        """CREATE TABLE t (id int) PARTITION BY RANGE (id);
        CREATE TABLE t_one PARTITION OF t FOR VALUES FROM (1) TO (9)""",
        'no partition of relation "t" found for row',
    ),
    "check of a partition": (
        """CREATE TABLE t (id int) PARTITION BY RANGE (id);
        CREATE TABLE t_one PARTITION OF t (CHECK (id < 7)) FOR VALUES FROM (1) TO (9)""",
        "violates check constraint",
    ),
    "check of another column": (
        "CREATE TABLE t (id int, paid bool, CHECK (id < 5 OR paid IS NOT NULL))",
        "violates check constraint",
    ),
    "required domain": (
        "CREATE DOMAIN named AS text NOT NULL; CREATE TABLE t (id int, who named)",
        "domain named does not allow null values",
    ),
    "computed column": (
        "CREATE TABLE t (id int, part int GENERATED ALWAYS AS (1 / (8 - id)) STORED)",
        "division by zero",
    ),
    "view": (
        "CREATE TABLE base (id int CHECK (id < 5)); CREATE VIEW t AS SELECT id FROM base",
        "violates check constraint",
    ),
    "blind collation": (
        """CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level2',
        deterministic = false);
        CREATE TABLE t (id int, v text COLLATE blind UNIQUE)""",
        "duplicate key value",
    ),
    "equal nulls": (
        "CREATE TABLE t (id int, v text UNIQUE NULLS NOT DISTINCT)",
        "duplicate key value",
    ),
}
ROWS = {
    "partition": {"id": [9]},
    "blind collation": {"id": [1, 2], "v": ["a", "A"]},
    "equal nulls": {"id": [1, 2], "v": [None, None]},
}


@pytest.mark.parametrize("what", NOT_GIVEN)
def test_what_rows_do_not_show_themselves_is_told_before_they_count(
    database: Database, log: SinkLog, what: str
) -> None:
    made, why = NOT_GIVEN[what]
    with database.server.connected(database.name) as connection:
        connection.execute(made.encode())
    sink = sink_of(database)
    log.acquire(sink)
    with pytest.raises(RowsRefused, match=f"a row would be refused: .*{why}"):
        log.stage(sink, pa.table(ROWS.get(what, {"id": [8]})))
    sink.close()
    assert database.run("SELECT * FROM t") == []


ALIKE = {
    "uuid": ("0ABC0000-0000-0000-0000-000000000000", "0abc0000-0000-0000-0000-000000000000"),
    "char(4)": ("a", "a "),
    "numeric": ("1.0", "1.00"),
    "int[]": ([1, 2], [1, 2]),
    "float8": (0.0, -0.0),
    "numeric(4,1)": (Decimal("1.01"), Decimal("1.02")),
    "timestamptz(0)": tuple(dt.datetime(2026, 1, 2, 3, 4, 5, at, UTC) for at in (1, 2)),
    "varchar(1)": ("a", "a "),
}


@pytest.mark.parametrize("kind", ALIKE)
def test_keys_that_are_alike_to_the_server_are_told_before_they_count(
    database: Database, log: SinkLog, kind: str
) -> None:
    with database.server.connected(database.name) as connection:
        connection.execute(f"CREATE TABLE t (k {kind} PRIMARY KEY)".encode())
    sink = sink_of(database)
    log.acquire(sink)
    with pytest.raises(RowsRefused, match="it is not the only one of its batch"):
        log.stage(sink, pa.table({"k": [*ALIKE[kind]]}))
    log.write(sink, pa.table({"k": [ALIKE[kind][0]]}))
    sink.close()
    assert database.run("SELECT count(*) FROM t") == [(1,)]


def test_a_role_that_may_only_add_rows_is_told_of_those_that_are_there(
    database: Database, log: SinkLog
) -> None:
    database.run("CREATE TABLE t (n int PRIMARY KEY)")
    database.run("INSERT INTO t VALUES (1)")
    database.run("DROP ROLE IF EXISTS adder")
    database.run("CREATE ROLE adder LOGIN PASSWORD 'p'")
    database.run("GRANT ALL ON SCHEMA public TO adder; GRANT INSERT ON t TO adder")
    sink = sink_of(database, connection_user="adder", connection_password="p")
    log.acquire(sink)
    with pytest.raises(RowsRefused, match="a row would be refused: duplicate key value"):
        log.stage(sink, pa.table({"n": [1]}))
    sink.close()


def test_names_that_the_server_would_cut_are_refused_and_no_two_tables_become_one(
    database: Database, log: SinkLog
) -> None:
    sink = sink_of(database, table_name_format="${topic}", auto_create="true")
    log.acquire(sink)
    topics = [f"{'a' * 63}{each}" for each in "xy"]
    with pytest.raises(SchemaRefused, match=r"has no names of more than 63 bytes: a{63}x\. Rename"):
        log.stage(sink, pa.table({"n": [1, 2], "_topic": topics}))
    with pytest.raises(SchemaRefused, match=r"has no names of more than 63 bytes: b{64}\. Rename"):
        log.stage(sink, pa.table({"b" * 64: [1], "_topic": ["t"]}))
    log.write(sink, pa.table({"b" * 63: [1], "_topic": ["t"]}))
    sink.close()
    assert database.run("SELECT * FROM t") == [(1,)]


@pytest.mark.parametrize("mode", ["upsert", "update"])
def test_a_number_that_the_server_always_makes_is_not_set_by_an_update(
    database: Database, log: SinkLog, mode: str
) -> None:
    database.run("CREATE TABLE t (k text PRIMARY KEY, n int GENERATED ALWAYS AS IDENTITY, v text)")
    database.run("INSERT INTO t (k) VALUES ('a')")
    sink = sink_of(database, insert_mode=mode, pk_mode="record_value")
    log.acquire(sink)
    log.write(sink, pa.table({"k": ["a", "b"], "n": [7, 8], "v": ["x", "y"]}))
    sink.close()
    added = [("b", 8, "y")] if mode == "upsert" else []
    assert database.run("SELECT * FROM t ORDER BY k") == [("a", 1, "x"), *added]


@pytest.mark.parametrize("way", ["table", "prepared"])
def test_a_truncate_that_a_foreign_key_forbids_is_told_before_it_counts(
    database: Database, log: SinkLog, way: str
) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY, parent int REFERENCES t)")
    upsert = {"insert_mode": "upsert", "pk_mode": "record_value", "truncate_enabled": "true"}
    sink = sink_of(database, **upsert, stage_with=way)
    log.acquire(sink)
    rows = pa.table({"id": [None, 1], "__op": ["t", "c"]})
    log.write(sink, rows)
    database.run("CREATE TABLE child (p int REFERENCES t)")
    with pytest.raises(RowsRefused, match="child refers to it by a foreign key, so it takes no"):
        log.stage(sink, rows)
    sink.close()
    assert database.run("SELECT id FROM t") == [(1,)]


def test_a_truncate_of_partitions_that_refer_to_one_another_is_none_that_a_key_forbids(
    database: Database, log: SinkLog
) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY, up int REFERENCES t) PARTITION BY RANGE (id)")
    database.run("CREATE TABLE t_one PARTITION OF t FOR VALUES FROM (1) TO (9)")
    database.run("INSERT INTO t VALUES (7, 7)")
    upsert = {"insert_mode": "upsert", "pk_mode": "record_value", "truncate_enabled": "true"}
    sink = sink_of(database, **upsert)
    log.acquire(sink)
    rows = pa.table({"id": [None, 1], "__op": ["t", "c"]})
    log.write(sink, rows)
    assert database.run("SELECT id FROM t") == [(1,)]
    database.run("CREATE TABLE child (p int REFERENCES t_one)")
    with pytest.raises(RowsRefused, match="child refers to it by a foreign key, so it takes no"):
        log.stage(sink, rows)
    sink.close()


def test_a_database_with_operators_of_its_own_for_arrays_takes_rows(
    database: Database, log: SinkLog
) -> None:
    database.run("CREATE EXTENSION intarray")
    database.run("CREATE TABLE t (id int CHECK (id > 0))")
    sink = sink_of(database)
    log.acquire(sink)
    log.write(sink, pa.table({"id": [1]}))
    sink.close()
    assert database.run("SELECT * FROM t") == [(1,)]


def test_rows_of_a_foreign_table_are_sent_once(database: Database, log: SinkLog) -> None:
    database.run("CREATE TABLE base (sent serial, id int)")
    made = f"""CREATE EXTENSION postgres_fdw;
        CREATE SERVER there FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '127.0.0.1',
            port '{database.server.port}', dbname '{database.name}');
        CREATE USER MAPPING FOR postgres SERVER there OPTIONS (user 'postgres',
            password '{PASSWORD}');
        CREATE FOREIGN TABLE t (id int) SERVER there OPTIONS (table_name 'base')"""
    with database.server.connected(database.name) as connection:
        connection.execute(made.encode())
    sink = sink_of(database)
    log.acquire(sink)
    log.write(sink, pa.table({"id": [7]}))
    sink.close()
    assert database.run("SELECT * FROM base") == [(1, 7)]


def test_what_is_wrong_with_a_table_makes_no_bad_rows(database: Database, log: SinkLog) -> None:
    database.run(
        "CREATE TABLE t (id int NOT NULL UNIQUE, v int, w int GENERATED ALWAYS AS (v) STORED)"
    )
    database.run("CREATE PUBLICATION p FOR TABLE t")
    sink = sink_of(database, insert_mode="upsert", pk_mode="record_value", pk_fields="id")
    log.acquire(sink)
    rows = pa.table({"id": [1], "v": [2]})
    with pytest.raises(SinkBroken, match=r"cannot update .* does not have a replica identity"):
        log.stage(sink, rows)
    database.run("ALTER TABLE t REPLICA IDENTITY FULL")
    log.write(sink, rows)
    sink.close()
    assert database.run("SELECT * FROM t") == [(1, 2, 2)]


def test_a_batch_without_rows_may_have_no_columns_but_those_of_records(
    database: Database, log: SinkLog
) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY, v text NOT NULL)")
    sink = sink_of(database, insert_mode="upsert", pk_mode="record_value", pk_fields="id")
    log.acquire(sink)
    nothing = pa.table({"_key": pa.array([], pa.string()), "_offset": pa.array([], pa.int64())})
    sink.prepare(nothing.schema)
    log.write(sink, nothing)
    rows = pa.table({"id": [1], "v": ["one"], "_offset": [5]})
    sink.prepare(rows.schema)
    log.write(sink, rows)
    sink.close()
    assert database.run("SELECT * FROM t") == [(1, "one")]


@pytest.mark.parametrize("mode", ["insert", "upsert"])
def test_a_null_is_refused_before_it_counts_although_its_column_has_a_default(
    database: Database, log: SinkLog, mode: str
) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY, v int NOT NULL DEFAULT 5)")
    upsert = {"insert_mode": mode, "pk_mode": "record_value", "delete_enabled": "true"}
    sink = sink_of(database, **(upsert if mode == "upsert" else {}))
    log.acquire(sink)
    log.write(sink, pa.table({"id": [1]}))
    rows = {"id": [2, 3], "v": [7, None]}
    with pytest.raises(RowsRefused, match="a row would be refused: null value in column"):
        log.stage(sink, pa.table({**rows, "__op": ["d", "c"]} if mode == "upsert" else rows))
    log.write(sink, pa.table({"id": [2], "v": [7]}))
    sink.close()
    assert database.run("SELECT * FROM t ORDER BY id") == [(1, 5), (2, 7)]


def test_a_value_that_is_too_long_for_an_index_is_told_before_it_counts(
    database: Database, log: SinkLog
) -> None:
    database.run("CREATE TABLE t (id int, v text)")
    database.run("CREATE INDEX ON t (v)")
    sink = sink_of(database)
    log.acquire(sink)
    rows = pa.table({"id": [1], "v": [random.Random(0).randbytes(4000).hex()]})
    with pytest.raises(RowsRefused, match=r"index row size \d+ exceeds btree version 4 maximum"):
        log.stage(sink, rows)
    log.write(sink, pa.table({"id": [1], "v": ["long " * 1000]}))
    database.run("DROP INDEX t_v_idx")
    sink.close()
    sink = sink_of(database)
    log.acquire(sink)
    log.write(sink, rows)
    sink.close()
    assert database.run("SELECT count(*) FROM t") == [(2,)]


def wide(database: Database, last: str, *, required: bool = False) -> list[str]:
    """Make a table of as many columns as there may be, `id`, `c1` … and `c1599` of a type."""
    names = [f"c{number}" for number in range(1, 1600)]
    kinds = [*["text"] * 1598, f"{last} NOT NULL" if required else last]
    made = ", ".join(f"{name} {kind}" for name, kind in zip(names, kinds, strict=True))
    database.run(f"CREATE TABLE t (id int PRIMARY KEY, {made})")
    return names


def test_a_table_of_as_many_columns_as_there_may_be_is_written_by_key(
    database: Database, log: SinkLog
) -> None:
    names = wide(database, "int")
    sink = sink_of(database, **UPSERT, delete_enabled="true")
    log.acquire(sink)

    def rows(**given: Any) -> pa.Table:
        count = len(given["id"])
        texts = {name: pa.nulls(count, pa.string()) for name in names[:-1]}
        return pa.table({"id": [], **texts, "c1599": pa.nulls(count, pa.int32()), **given})

    log.write(sink, rows(id=[2, 1, 2, 3], c1=["a", "b", "c", "x"], c1599=[1, 2, None, 4]))
    shown = "SELECT id, c1, c1599 FROM t ORDER BY id"
    assert database.run(shown) == [(1, "b", 2), (2, "c", None), (3, "x", 4)]
    gone = {"id": [1, 2, 2, 3], "__op": ["d", "d", "u", "u"], "c1": [None, None, "d", None]}
    log.write(sink, rows(**gone, c1599=[None, None, 5, 6]))
    assert database.run(shown) == [(2, "d", 5), (3, None, 6)]
    sink.close()
    assert tables_of(database) == {"t", "fairlead_published"}


def test_a_row_of_a_table_of_so_many_columns_is_refused_before_it_counts(
    database: Database, log: SinkLog
) -> None:
    names = wide(database, "text", required=True)
    database.run("ALTER TABLE t ADD CHECK (c1 <> 'bad')")
    sink = sink_of(database, **UPSERT, delete_enabled="true")
    log.acquire(sink)
    good = {"id": [1], **{each: ["v"] for each in names}}
    for wrong, told in (
        ({"c1599": pa.nulls(1, pa.string())}, "c1599 is required|null value in column"),
        ({"c1": ["bad"]}, r"\(c1\)=\(bad\): it breaks t_c1_check"),
        ({"c2": ["nul\0"]}, "invalid byte sequence"),
    ):
        with pytest.raises(RowsRefused, match=told):
            log.stage(sink, pa.table({**good, **wrong}))
    log.write(sink, pa.table(good))
    sink.close()
    assert database.run("SELECT id, c1599 FROM t") == [(1, "v")]
