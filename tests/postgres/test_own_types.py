# pyright: basic
"""Types of a user's are read and written as what they are, whatever their names are."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from fairlead_tests.connectors.publish_once import SinkLog
from fairlead_tests.postgres_pipes import Reading, sink_of
from fairlead_tests.postgres_server import Database

Read = Callable[..., Reading]
TYPES = """
    CREATE SCHEMA app; CREATE SCHEMA "_x";
    CREATE TYPE status AS ENUM ('new'); ALTER TYPE status RENAME TO _status;
    CREATE TYPE app.money AS ENUM ('low'); CREATE TYPE app.date AS ENUM ('never');
    CREATE TYPE app.int4 AS ENUM ('four'); CREATE TYPE app._int4 AS ENUM ('list');
    CREATE TYPE "_x"._text AS ENUM ('t'); CREATE TYPE app."text" AS (a int, b text);
    CREATE DOMAIN app.numeric AS int;
    CREATE DOMAIN amount AS numeric(12, 2); CREATE DOMAIN price AS amount CHECK (VALUE >= 0);
    CREATE DOMAIN label AS app.date; CREATE DOMAIN prices AS price[]; CREATE DOMAIN whole AS int;
    CREATE DOMAIN row_of AS int[]; CREATE DOMAIN matrix AS int[][]"""
COLUMNS = {
    "status": ("_status", "new", pa.string(), "new"),
    "statuses": ("_status[]", "{new,NULL}", pa.list_(pa.string()), ["new", None]),
    "money": ("app.money", "low", pa.string(), "low"),
    "day": ("app.date", "never", pa.string(), "never"),
    "days": ("app.date[]", "{never}", pa.list_(pa.string()), ["never"]),
    "int4": ("app.int4", "four", pa.string(), "four"),
    "not_a_list": ("app._int4", "list", pa.string(), "list"),
    "lists": ("app._int4[]", "{list}", pa.list_(pa.string()), ["list"]),
    "in_x": ('"_x"._text', "t", pa.string(), "t"),
    "pair": ('app."text"', "(1,b)", pa.string(), "(1,b)"),
    "number": ("app.numeric", "7", pa.int32(), 7),
    "price": ("price", "2.5", pa.decimal128(12, 2), Decimal("2.50")),
    "offered": ("price[]", "{1.5}", pa.list_(pa.decimal128(12, 2)), [Decimal("1.50")]),
    "prices": ("prices", "{3.5,NULL}", pa.list_(pa.decimal128(12, 2)), [Decimal("3.50"), None]),
    "label": ("label", "never", pa.string(), "never"),
    "labels": ("label[]", "{never}", pa.list_(pa.string()), ["never"]),
    "wholes": ("whole[]", "[2:3]={1,2}", pa.list_(pa.int32()), [1, 2]),
    "rows": ("row_of[]", '{"{1,2}","{3}"}', pa.list_(pa.string()), ["{1,2}", "{3}"]),
    "matrix": ("matrix", "{{1,2},{3,4}}", pa.string(), "{{1,2},{3,4}}"),
    "matrices": ("matrix[]", '{"{{1}}"}', pa.list_(pa.string()), ["{{1}}"]),
}
"""By the name of a column its type, a value as text, and the type and the value in Arrow."""


@pytest.fixture
def log() -> SinkLog:
    return SinkLog()


@pytest.fixture
def typed(database: Database) -> Database:
    """A database with a table `t` of all of these columns, and one beside it."""
    for each in TYPES.split(";"):
        database.run(each)
    columns = ", ".join(f"{name} {kind}" for name, (kind, *_) in COLUMNS.items())
    database.run(f"CREATE TABLE t (id int PRIMARY KEY, {columns})")
    database.run("CREATE TABLE u (id int PRIMARY KEY)")
    return database


def add(database: Database, number: int) -> None:
    values = (f"'{text}'" for _, text, _, _ in COLUMNS.values())
    database.run(f"INSERT INTO t VALUES ({number}, {', '.join(values)})")


def check(table: Any) -> None:
    kinds = {each.name: each.type for each in table.schema if each.name in COLUMNS}
    assert kinds == {name: kind for name, (_, _, kind, _) in COLUMNS.items()}
    for row in table.select([*COLUMNS]).to_pylist():
        assert row == {name: value for name, (*_, value) in COLUMNS.items()}


@pytest.mark.parametrize("mode", ["xmin", "log", "bulk"])
def test_a_type_is_built_in_only_by_its_schema_and_a_domain_has_the_values_under_it(
    typed: Database, read: Read, mode: str
) -> None:
    typed.run("INSERT INTO u VALUES (1)")
    add(typed, 1)
    # Nobody knows the dimensions of what a query gives.
    columns = ", ".join(COLUMNS).replace("matrix", "matrix::text")
    query = {"query": f"SELECT t.id, {columns} FROM t CROSS JOIN u"} if mode == "bulk" else {}
    reading = read(mode=mode, **query)
    found = reading.take()
    tables = ["public.t", "public.u"] if not query else ["query"]
    assert sorted(each["_topic"][0].as_py() for each in found) == tables
    add(typed, 2)
    of_t = [each for each in (*found, *reading.take()) if "status" in each.column_names]
    assert [row for each in of_t for row in each["id"].to_pylist()] == [1, 2][: len(of_t)]
    for each in of_t:
        check(each)


@pytest.mark.parametrize("staging", ["table", "prepared"])
def test_what_was_read_of_such_types_is_written_to_them(
    typed: Database, read: Read, log: SinkLog, staging: str
) -> None:
    add(typed, 1)
    (table,) = read(mode="bulk", table_include_list=r"public\.t").take()
    typed.run("CREATE TABLE copy (LIKE t)")
    sink = sink_of(typed, table_name_format="copy", stage_with=staging)
    log.acquire(sink)
    log.write(sink, table.drop_columns(["_topic"]))
    sink.close()
    assert typed.run("SELECT t::text FROM copy t") == [
        (str(row).replace("[2:3]=", ""),) for (row,) in typed.run("SELECT t::text FROM t")
    ]
