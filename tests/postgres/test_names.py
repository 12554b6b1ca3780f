# pyright: basic
"""Tables whose names have dots are told apart, and columns that rows have anyway are refused."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import LiteralString

import pytest

from fairlead.events.commits import Document, identity
from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.spi.context import ExternalAccess
from fairlead.runtime.pipeline.spi.errors import BadInput
from fairlead.runtime.pipeline.stores.postgres.dotted import by_present_names
from fairlead.runtime.pipeline.stores.postgres.names import TableName
from fairlead.runtime.pipeline.stores.postgres.tables.catalog import TableFilter
from fairlead_tests.postgres_pipes import Reading, source_config
from fairlead_tests.postgres_server import Database

Read = Callable[..., Reading]
SCHEMA, TABLE = TableName("a.b", "c"), TableName("a", "b.c")
INCLUDE = "source.table.include.list"


@pytest.mark.parametrize(
    ("name", "key", "quoted"),
    [
        (SCHEMA, '"a.b".c', '"a.b".c'),
        (TABLE, "a.b.c", 'a."b.c"'),
        (TableName("public", "t"), "public.t", "public.t"),
        (TableName('"a', 'b".c'), '"""a".b".c', '"""a"."b"".c"'),
    ],
)
def test_a_key_of_offsets_is_that_of_one_table_and_can_be_read(
    name: TableName, key: str, quoted: str
) -> None:
    assert (name.key, name.quoted) == (key, quoted)
    assert TableName.parse(quoted, "") == name


@pytest.mark.parametrize(
    ("include", "exclude", "found"),
    [
        ((), (), {SCHEMA, TABLE}),
        ((r"a\.b\.c",), (), {SCHEMA, TABLE}),
        ((r'"a\.b"\.c',), (), {SCHEMA}),
        ((r'a\."b\.c"',), (), {TABLE}),
        ((), (r'"a\.b"\..*',), {TABLE}),
    ],
)
def test_patterns_tell_dotted_names_apart_by_quotes(
    include: tuple[str, ...], exclude: tuple[str, ...], found: set[TableName]
) -> None:
    rules = TableFilter(include, exclude)
    assert {each for each in (SCHEMA, TABLE) if rules.means(each, each)} == found


@dataclass(frozen=True)
class Named:
    """A table, with its oid."""

    name: TableName
    oid: int


OLD: Document = {"slot": "s", "table": "a.b.c"}
OF_SCHEMA: Document = {"slot": "s", "table": '"a.b".c'}
BOTH = (Named(SCHEMA, 7), Named(TABLE, 8))


@pytest.mark.parametrize(
    ("tables", "logged", "read"),
    [
        (BOTH, {identity(OLD): {"oid": 7}}, {identity(OF_SCHEMA): {"oid": 7}}),
        (BOTH, {identity(OLD): {"oid": 8}}, {identity(OLD): {"oid": 8}}),
        (BOTH, {identity(OLD): {"n": 1}}, {identity(OLD): {"n": 1}}),
        (BOTH[:1], {identity(OLD): {"n": 1}}, {identity(OF_SCHEMA): {"n": 1}}),
        (BOTH[1:], {identity(OLD): {"oid": 7}}, {identity(OLD): {"oid": 7}}),
        (
            BOTH,
            {identity(OF_SCHEMA): {"oid": 7, "n": 2}, identity(OLD): {"oid": 7, "n": 1}},
            {identity(OF_SCHEMA): {"oid": 7, "n": 2}},
        ),
        (
            BOTH,
            {identity(OLD): {"oid": 7, "n": 1}, identity(OF_SCHEMA): {"oid": 7, "n": 2}},
            {identity(OF_SCHEMA): {"oid": 7, "n": 2}},
        ),
    ],
)
def test_an_offset_under_an_old_name_is_that_of_the_table_with_its_oid(
    tables: tuple[Named, ...],
    logged: Mapping[str, Document],
    read: Mapping[str, Document],
) -> None:
    assert by_present_names(logged, tables) == read


@pytest.mark.parametrize("mode", ["xmin", "incrementing", "log"])
def test_tables_with_dots_in_their_names_are_read_each(
    database: Database, read: Read, mode: str
) -> None:
    database.run("CREATE SCHEMA a")
    database.run('CREATE SCHEMA "a.b"')
    database.run('CREATE TABLE "a.b".c (id int PRIMARY KEY, v text)')
    database.run('CREATE TABLE a."b.c" (id int PRIMARY KEY, n int)')
    database.run("""INSERT INTO "a.b".c VALUES (1, 'one')""")
    database.run('INSERT INTO a."b.c" VALUES (2, 22)')
    column = {"incrementing_column_name": "id"} if mode == "incrementing" else {}
    given = {"mode": mode, "table_include_list": r"a\..*,\"a\..*", **column}
    config = source_config(database, given)
    assert SparkPipeline.probe(config, ExternalAccess()).warnings == (
        '"a.b".c and a."b.c" are tables of one topic, a.b.c',
    )
    reading = read(**given)
    for at in (1, 3, 5):
        assert reading.rows("id") == [(at,), (at + 1,)]
        if at == 3:
            reading.begin(tasks=2)
        database.run("""INSERT INTO "a.b".c VALUES (%s, 'one')""", at + 2)
        database.run('INSERT INTO a."b.c" VALUES (%s, 22)', at + 3)
    for table in ('"a.b"', 'a."b'):
        alone = read(**{**given, "table_include_list": table.replace(".", r"\.") + r".*"})
        assert {n % 2 for (n,) in alone.rows("id")} == {1 if table == '"a.b"' else 0}


@pytest.mark.parametrize("mode", ["xmin", "log"])
def test_offsets_of_an_earlier_release_for_a_dotted_schema_go_on(
    database: Database, read: Read, mode: str
) -> None:
    database.run('CREATE SCHEMA "a.b"')
    database.run('CREATE TABLE "a.b".c (id int PRIMARY KEY, v text)')
    database.run("""INSERT INTO "a.b".c VALUES (1, 'one')""")
    reading = read(mode=mode)
    assert reading.rows("id") == [(1,)]
    database.run("""INSERT INTO "a.b".c VALUES (2, 'two')""")
    assert reading.rows("id") == [(2,)]
    for each in [*reading.offsets]:  # as earlier releases spelled them
        reading.offsets[each.replace('"', "")] = reading.offsets.pop(each)
    reading.begin()
    database.run("""INSERT INTO "a.b".c VALUES (3, 'three')""")
    assert reading.rows("id") == [(3,)]
    reading.begin()
    database.run("""INSERT INTO "a.b".c VALUES (4, 'four')""")
    assert reading.rows("id") == [(4,)]


@pytest.mark.parametrize(
    ("mode", "column"),
    [
        *(("xmin", each) for each in ("_topic", "_Topic", "__op", "__deleted")),
        *(("log", each) for each in ("_topic", "__op", "__deleted", "__lsn", "__seq", "__ts_ms")),
    ],
)
def test_a_column_whose_values_would_be_lost_is_refused(
    database: Database, read: Read, mode: str, column: str
) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY)")
    database.run("INSERT INTO t VALUES (1)")
    reading = read(mode=mode)
    assert reading.rows("id") == [(1,)]
    with database.session() as session:
        session.execute(f'ALTER TABLE t ADD "{column}" text'.encode())
    database.run("INSERT INTO t VALUES (2, 'mine')")
    told = f"public.t has a column {column}, a name by which rows tell where they come from and"
    errors = SparkPipeline.probe(source_config(database, {"mode": mode}), ExternalAccess()).errors
    assert [*errors] == [INCLUDE]
    assert errors[INCLUDE].startswith(told)
    for _ in range(2):
        with pytest.raises(BadInput, match=told):
            reading.take()


@pytest.mark.parametrize("column", ["__lsn", "_key", "topic"])
def test_a_column_that_only_a_log_or_a_sink_has_is_read(
    database: Database, read: Read, column: LiteralString
) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY, " + column + " text)")
    database.run("INSERT INTO t VALUES (1, 'mine')")
    assert read(mode="xmin").rows("id", column) == [(1, "mine")]


def test_a_query_names_the_column_of_the_topic_otherwise(database: Database) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY, _topic text)")
    for query, told in (
        ("SELECT * FROM t", {"source.query"}),
        ("SELECT id, _topic AS topic FROM t", set()),
    ):
        config = source_config(database, {"mode": "bulk", "query": query})
        assert set(SparkPipeline.probe(config, ExternalAccess()).errors) == told
